"""What rules hide in bytes of whatever kind, and in the bytes that those hold. Never an exception.

What is not read, because it is too deep or too large, counts as hidden.
"""

import re
from collections.abc import Sequence
from typing import Any

from pqadmin.display import format as write
from pqadmin.display.redaction import Redaction, Span
from pqadmin.display.values import compressed, msgpack

#: Payloads in payloads that are looked into.
MAX_INSIDE = 3
#: Other encodings of text: each writes JSON with zeros in it.
_WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
#: How a packed tuple, of which only the beginning may be here, writes zeros; and the last code that begins one.
_ESCAPED, _TUPLE = b"\0\xff", 0x33
#: What a payload with a key in it has at least one of: a quote, the code of a map, or what zlib begins with.
_KEYS = re.compile(rb'["\x80-\x8f\xde\xdf\x08\x18\x28\x38\x48\x58\x68\x78]')
#: What a look into a payload costs, in nodes.
_COST = 8


class Inside:
    """Looks into the payloads of one value: one bound on what is unpacked and read for all of them."""

    def __init__(self, rules: Redaction, *, depth: int = 0, room: msgpack.SpaceLimit | None = None) -> None:
        self._rules = rules
        self._depth = depth
        self.room = msgpack.SpaceLimit(unpacked=compressed.MAX_UNPACKED) if room is None else room

    def __call__(self, payload: bytes, *, cut: bool = False) -> bool:
        """Return whether a payload, or with `cut` its beginning, holds anything that rules hide."""
        if not payload or not self._rules:
            return False
        if _KEYS.search(payload) is None:
            return False
        self.room.nodes -= _COST
        for _ in range(compressed.MAX_LEVELS):
            level = compressed.unpack(payload, limit=max(0, self.room.unpacked), cut=cut)
            if level is None:
                break
            self.room.unpacked -= len(level.data)
            if not level.whole:
                return True
            payload = level.data
        else:
            if compressed.unpack(payload, limit=1, cut=cut) is not None:
                return True
        if self._depth >= MAX_INSIDE and write.as_text(payload, cut=cut) is None:
            return True
        within = Inside(self._rules, depth=self._depth + 1, room=self.room)
        spans, stopped = parts(payload, self._rules, inside=within)
        return stopped or bool(spans)

    def any(self, elements: Sequence[Any]) -> bool:
        """Return whether any bytes of a tuple do, those of tuples in it too."""
        return any(
            self(element) if isinstance(element, bytes) else isinstance(element, tuple | list) and self.any(element)
            for element in elements
        )


def parts(data: bytes, rules: Redaction, *, inside: Inside | None = None) -> tuple[tuple[Span, ...], bool]:
    """Return the hidden parts of bytes, and whether a bound was reached.

    JSON and msgpack are found with other things before or behind them as well.
    """
    if not rules or not data:
        return (), False
    if is_wide(data, rules):
        return ((0, len(data)),), False
    if write.as_text(data, cut=True) is not None:
        return tuple(rules.spans(data)), False
    quoted = rules.spans(data, anywhere=True)
    inside = inside or Inside(rules)
    if _ESCAPED in data and data[0] <= _TUPLE and any(msgpack.hidden_parts(_unescaped(data), rules, inside=inside)):
        return ((0, len(data)),), False
    spans, stopped = msgpack.hidden_parts(data, rules, inside=inside)
    return joined(quoted, spans), stopped


def is_wide(data: bytes, rules: Redaction) -> bool:
    """Return whether bytes are JSON in UTF-16 or UTF-32 with something hidden in it."""
    return b"\0" in data and any(
        # No key is without both, and they are looked for in no time.
        '"'.encode(encoding) in data and ":".encode(encoding) in data and rules.covers(data.decode(encoding, "replace"))
        for encoding in _WIDE
    )


def _unescaped(data: bytes) -> bytes:
    return data.replace(_ESCAPED, b"\0")


def joined(*several: Sequence[Span]) -> tuple[Span, ...]:
    """Return parts in order, those that overlap made one."""
    found: list[Span] = []
    for begin, end in sorted(span for spans in several for span in spans):
        if found and begin < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return tuple(found)
