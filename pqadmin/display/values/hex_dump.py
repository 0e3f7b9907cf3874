"""Hex dumps: bytes as they lie there, sixteen a line, with what is hidden covered byte by byte."""

from collections.abc import Sequence
from html import escape

from pqadmin.display.redaction import Span

#: Bytes that are drawn, and those when all is asked for: more is in the download.
MAX_HEX, MAX_ALL = 4_096, 100_000
_LINE = 16
_COVERED = "▒▒"


def draw(value: bytes, spans: Sequence[Span], *, everything: bool) -> tuple[str, bool]:
    """Draw bytes with the spans covered; return the HTML, and whether it was cut."""
    room = MAX_ALL if everything else MAX_HEX
    shown = value[:room]
    return escape(dump(shown, covers(shown, spans))), len(value) > room


def covers(value: bytes, spans: Sequence[Span]) -> bytearray:
    """Return a byte for each of the value: not zero where spans cover it."""
    hidden = bytearray(len(value))
    for begin, end in spans:
        stop = min(end, len(value))
        if begin < stop:
            hidden[begin:stop] = b"\1" * (stop - begin)
    return hidden


def dump(value: bytes, hidden: bytes | bytearray = b"") -> str:
    """Write a dump; `hidden` has a byte that is not zero for each that is covered."""
    lines = []
    for at in range(0, len(value), _LINE):
        line = value[at : at + _LINE]
        covers = hidden[at : at + _LINE] or bytes(len(line))
        pairs = [_COVERED if cover else f"{byte:02x}" for byte, cover in zip(line, covers, strict=True)]
        if len(pairs) > 8:
            pairs.insert(8, "")
        text = "".join(
            "▒" if cover else chr(byte) if 0x20 <= byte < 0x7F else "·"
            for byte, cover in zip(line, covers, strict=True)
        )
        lines.append(f"{at:06x}  {' '.join(pairs):<49} {text}")
    return "\n".join(lines)
