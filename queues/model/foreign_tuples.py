"""Foreign keys and values: tuples written by other programs, decoded strictly and shown as text.

Follows FoundationDB's tuple specification. Bytes that no tuple layer would write are no tuple: they are shown in
hexadecimal digits, and raise nothing.
"""

import math
import struct
from dataclasses import dataclass
from uuid import UUID

_NULL, _BYTES, _TEXT, _NESTED = 0x00, 0x01, 0x02, 0x05
_NEGATIVE, _ZERO, _POSITIVE = 0x0B, 0x14, 0x1D
_FLOAT, _DOUBLE, _FALSE, _TRUE, _UUID, _VERSIONSTAMP = 0x20, 0x21, 0x26, 0x27, 0x30, 0x33
_ESCAPED = 0xFF
#: Deeper nesting is refused: no page could show it.
_MAX_DEPTH = 32
#: Characters of one element that are shown: as many as the largest integer needs.
MAX_TEXT = 700
#: Beginning of the ids of foreign items.
_MARK = "key-"


@dataclass(frozen=True, slots=True)
class SingleFloat:
    """A number of 32 bits."""

    value: float


@dataclass(frozen=True, slots=True)
class Versionstamp:
    """A commit's version and a number within it. Without a version, the key was written incomplete."""

    version: bytes | None
    number: int


Element = None | bool | int | float | str | bytes | UUID | SingleFloat | Versionstamp | tuple["Element", ...]


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """The key of an item in an attached queue, without the queue's prefix."""

    suffix: bytes
    fifo: bool

    @property
    def elements(self) -> tuple[Element, ...] | None:
        """The key as a tuple; None when it is none."""
        return unpack(self.suffix)

    @property
    def order(self) -> tuple[int | float | str | None, int | None]:
        """Both `priority` and `count`, for one decoding."""
        elements = self.elements
        first = elements[0] if elements and not self.fifo else None
        count = elements[-2] if elements is not None and len(elements) == (2 if self.fifo else 3) else None
        return _plain(first), count if isinstance(count, int) and not isinstance(count, bool) else None

    @property
    def recipe(self) -> bool:
        """Whether the key is the recipe's: (priority, count, random), FIFO: (index, random)."""
        return self.count is not None

    @property
    def count(self) -> int | None:
        """The push order; None unless the key is the recipe's."""
        return self.order[1]

    @property
    def priority(self) -> int | float | str | None:
        """The priority if it is a finite number or text. Else None, and `priority_text` shows it."""
        return self.order[0]

    @property
    def priority_text(self) -> str:
        """The priority, of any type, as text; the raw key if it is no tuple. Empty in a FIFO queue."""
        if self.fifo:
            return ""
        elements = self.elements
        return describe(elements[0]) if elements else self.raw

    @property
    def text(self) -> str:
        """The whole key as text: a tuple, or hexadecimal digits."""
        elements = self.elements
        return self.raw if elements is None else describe(elements)

    @property
    def raw(self) -> str:
        """The key in hexadecimal digits."""
        return self.suffix.hex()


def item_id(suffix: bytes) -> str:
    """Return the id of the item at this key: the key in hexadecimal digits."""
    return _MARK + suffix.hex()


def parse_id(text: str) -> bytes | None:
    """Return the key of an id of `item_id`; None for another text."""
    try:
        suffix = bytes.fromhex(text.removeprefix(_MARK))
    except ValueError:
        return None
    return suffix if suffix and item_id(suffix) == text else None


def decoded_value(value: bytes) -> tuple[Element, ...] | None:
    """Return a value as a tuple, as the Java recipe writes values. None when it is none.

    Printable text is no tuple: some printable characters are type codes as well.
    """
    if not value or value[0] > _VERSIONSTAMP or _is_text(value):
        return None
    return unpack(value)


def describe(element: Element, limit: int = MAX_TEXT) -> str:
    """Return an element in Python's notation, invisible characters escaped, cut at `limit`."""
    text = _text(element, limit)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def unpack(packed: bytes) -> tuple[Element, ...] | None:
    """Return the elements of a packed tuple; None for bytes that no tuple layer writes."""
    elements: list[Element] = []
    at = 0
    try:
        while at < len(packed):
            element, at = _element(packed, at, 0)
            elements.append(element)
    except _NotATuple:
        return None
    return tuple(elements)


class _NotATuple(Exception):
    """These bytes were not written by a tuple layer."""


def _element(packed: bytes, at: int, depth: int) -> tuple[Element, int]:
    code = packed[at]
    at += 1
    if code == _NULL:
        return None, at
    if code in (_BYTES, _TEXT):
        return _string(packed, at, text=code == _TEXT)
    if code == _NESTED:
        return _nested(packed, at, depth + 1)
    if _NEGATIVE <= code <= _POSITIVE:
        return _integer(packed, at, code)
    if code in (_FLOAT, _DOUBLE):
        return _number(packed, at, double=code == _DOUBLE)
    if code in (_FALSE, _TRUE):
        return code == _TRUE, at
    if code == _UUID:
        raw, at = _some(packed, at, 16)
        return UUID(bytes=raw), at
    if code == _VERSIONSTAMP:
        raw, at = _some(packed, at, 12)
        version = None if raw[:10] == b"\xff" * 10 else raw[:10]
        return Versionstamp(version, int.from_bytes(raw[10:], "big")), at
    raise _NotATuple


def _some(packed: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(packed):
        raise _NotATuple
    return packed[at : at + size], at + size


def _string(packed: bytes, at: int, *, text: bool) -> tuple[bytes | str, int]:
    end = packed.find(b"\x00", at)
    while end >= 0 and packed[end + 1 : end + 2] == b"\xff":
        end = packed.find(b"\x00", end + 2)
    if end < 0:
        raise _NotATuple
    raw = packed[at:end].replace(b"\x00\xff", b"\x00")
    if not text:
        return raw, end + 1
    try:
        return raw.decode(), end + 1
    except UnicodeDecodeError:
        raise _NotATuple from None


def _nested(packed: bytes, at: int, depth: int) -> tuple[tuple[Element, ...], int]:
    if depth > _MAX_DEPTH:
        raise _NotATuple
    elements: list[Element] = []
    while at < len(packed):
        if packed[at] != _NULL:
            element, at = _element(packed, at, depth)
            elements.append(element)
        elif packed[at + 1 : at + 2] == b"\xff":
            elements.append(None)
            at += 2
        else:
            return tuple(elements), at + 1
    raise _NotATuple


def _integer(packed: bytes, at: int, code: int) -> tuple[int, int]:
    negative = code < _ZERO
    size = abs(code - _ZERO)
    if code in (_NEGATIVE, _POSITIVE):
        raw, at = _some(packed, at, 1)
        size = raw[0] ^ 0xFF if negative else raw[0]
        if size < 8:
            raise _NotATuple
    raw, at = _some(packed, at, size)
    # A number has one encoding, without leading zeros.
    if size and raw[0] == (0xFF if negative else 0x00):
        raise _NotATuple
    number = int.from_bytes(raw, "big")
    return (number - (1 << 8 * size) + 1 if negative else number), at


def _number(packed: bytes, at: int, *, double: bool) -> tuple[float | SingleFloat, int]:
    raw, at = _some(packed, at, 8 if double else 4)
    # Stored so that bytes order as numbers: the sign bit is flipped, or all bits of a negative number.
    raw = bytes([raw[0] ^ 0x80]) + raw[1:] if raw[0] & 0x80 else bytes(byte ^ 0xFF for byte in raw)
    value: float = struct.unpack(">d" if double else ">f", raw)[0]
    return (value if double else SingleFloat(value)), at


def _plain(element: Element) -> int | float | str | None:
    if isinstance(element, bool) or not isinstance(element, int | float | str):
        return None
    return None if isinstance(element, float) and not math.isfinite(element) else element


def _is_text(value: bytes) -> bool:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return False
    return text.translate({9: None, 10: None, 13: None}).isprintable()


def _text(element: Element, limit: int) -> str:
    if isinstance(element, str | bytes):
        return repr(element[:limit])
    if isinstance(element, SingleFloat):
        return f"SingleFloat({element.value!r})"
    if isinstance(element, Versionstamp):
        version = "incomplete" if element.version is None else element.version.hex()
        return f"Versionstamp({version}, {element.number})"
    if not isinstance(element, tuple):
        return repr(element)
    parts: list[str] = []
    length = 0
    for part in element:
        parts.append(_text(part, limit))
        length += len(parts[-1])
        if length > limit:
            break
    return f"({', '.join(parts)}{',' if len(element) == 1 else ''})"
