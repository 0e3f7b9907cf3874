"""msgpack, read strictly and within bounds, whole or as far as a cut goes. Never an exception.

Why not a library: rules of redaction need to know at which bytes a value lies, previews hold only the beginning of one,
and a header may claim four thousand million elements, for which libraries make room before they look.

Follows https://github.com/msgpack/msgpack/blob/master/spec.md. Only a map or an array is taken for msgpack: single
numbers and strings are bytes that could be anything.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pqadmin.dashboard import format as write
from pqadmin.dashboard.redaction import Redaction, Span
from pqadmin.dashboard.values.tree import Members, Number, Other

#: Values that are read: more are hundreds of milliseconds of work, and are not drawn either.
MAX_NODES = 100_000
#: Nesting that is read; deeper is taken for other bytes.
MAX_DEPTH = 100
#: Bytes of a binary value that are written.
_MAX_BYTES = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: By code: how the number or length behind it is packed.
_UNSIGNED = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q"}
_SIGNED = {0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_BINARY = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_EXTENSION = {0xC7: ">B", 0xC8: ">H", 0xC9: ">I"}
_FIXED_EXTENSION = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_STRING = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_ARRAY = {0xDC: ">H", 0xDD: ">I"}
_MAP = {0xDE: ">H", 0xDF: ">I"}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_TIMESTAMP = -1

Put = Callable[[Any], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """A map or an array: what was read of it, and the parts that rules hide."""

    node: Any
    spans: tuple[Span, ...]
    #: Whether all of it was read.
    whole: bool


class _NotMsgpack(Exception):
    """No encoder writes these bytes."""


class _Cut(Exception):
    """The bytes end here, or enough was read."""


def unpack(value: bytes, rules: Redaction, *, cut: bool = False) -> Unpacked | None:
    """Read a map or an array, or as much of one as there is with `cut`; None for other bytes."""
    if not value or not (0x80 <= value[0] <= 0x9F or 0xDC <= value[0] <= 0xDF):
        return None
    reader = _Reader(value, rules, cut=cut)
    try:
        reader.read(reader.roots.append, 0)
        if reader.at != len(value):
            return None
    except _NotMsgpack:
        return None
    except _Cut:
        return Unpacked(node=reader.roots[0], spans=tuple(reader.spans), whole=False) if reader.roots else None
    return Unpacked(node=reader.roots[0], spans=tuple(reader.spans), whole=True)


class _Reader:
    """Reads one value. Each node is handed over before what is in it, so that a cut leaves what was read."""

    def __init__(self, value: bytes, rules: Redaction, *, cut: bool) -> None:
        self._value = value
        self._rules = rules
        self._cut = cut
        self._left = MAX_NODES
        #: Inside of what is hidden, nothing else is.
        self._hidden = False
        self.at = 0
        self.roots: list[Any] = []
        self.spans: list[Span] = []

    def read(self, put: Put, depth: int) -> None:
        """Read the value at `at` and hand it over."""
        self._left -= 1
        if self._left < 0:
            self._stop()
        if depth > MAX_DEPTH:
            raise _NotMsgpack
        code = self._some(1)[0]
        if code <= 0x7F or code >= 0xE0:
            put(Number(code if code <= 0x7F else code - 0x100))
        elif code <= 0x8F or code in _MAP:
            self._map(code & 0x0F if code <= 0x8F else self._number(_MAP[code]), put, depth)
        elif code <= 0x9F or code in _ARRAY:
            self._array(code & 0x0F if code <= 0x9F else self._number(_ARRAY[code]), put, depth)
        elif code <= 0xBF or code in _STRING:
            self._string(code & 0x1F if code <= 0xBF else self._number(_STRING[code]), put)
        elif code in _CONSTANTS:
            put(_CONSTANTS[code])
        elif code in _UNSIGNED or code in _SIGNED:
            put(Number(self._number(_UNSIGNED.get(code) or _SIGNED[code])))
        elif code in (0xCA, 0xCB):
            put(self._float(code))
        elif code in _BINARY:
            self._bytes(self._number(_BINARY[code]), "bin", put)
        elif code in _EXTENSION or code in _FIXED_EXTENSION:
            size = _FIXED_EXTENSION.get(code) or self._number(_EXTENSION[code])
            self._extension(size, put)
        else:
            raise _NotMsgpack

    def _some(self, size: int) -> bytes:
        raw = self._value[self.at : self.at + size]
        if len(raw) < size:
            self._end()
        self.at += size
        return raw

    def _end(self) -> None:
        """The bytes are over before the value is."""
        if not self._cut:
            raise _NotMsgpack
        raise _Cut

    def _stop(self) -> None:
        """Enough was read; nobody looked at the rest, so it is hidden wherever anything may be."""
        if self._rules and not self._hidden:
            self.spans.append((self.at, len(self._value)))
        raise _Cut

    def _number(self, packing: str) -> int:
        number: int = struct.unpack(packing, self._some(struct.calcsize(packing)))[0]
        return number

    def _float(self, code: int) -> Number | Other:
        single = code == 0xCA
        number: float = struct.unpack(">f" if single else ">d", self._some(4 if single else 8))[0]
        text = f"{number:.9g}" if single else repr(number)
        return Number(text) if math.isfinite(number) else Other(text, "float")

    def _fits(self, elements: int) -> None:
        """Refuse a length that the bytes left can not hold."""
        if elements > len(self._value) - self.at and not self._cut:
            raise _NotMsgpack

    def _map(self, size: int, put: Put, depth: int) -> None:
        self._fits(2 * size)
        members = Members()
        put(members)
        for _ in range(size):
            keys: list[Any] = []
            self.read(keys.append, depth + 1)
            key = keys[0]
            members.append((key, Other(write.ELLIPSIS, "")))

            def replace(node: Any, key: Any = key) -> None:
                members[-1] = (key, node)

            name = key.name if isinstance(key, Other) else key if isinstance(key, str) else ""
            if self._hidden or not self._rules.hides(name):
                self.read(replace, depth + 1)
            else:
                self._cover(replace, depth + 1)

    def _cover(self, put: Put, depth: int) -> None:
        begin, self._hidden = self.at, True
        try:
            self.read(put, depth)
        except _Cut:
            self.spans.append((begin, len(self._value)))
            raise
        self._hidden = False
        self.spans.append((begin, self.at))

    def _array(self, size: int, put: Put, depth: int) -> None:
        self._fits(size)
        elements: list[Any] = []
        put(elements)
        for _ in range(size):
            self.read(elements.append, depth + 1)

    def _string(self, size: int, put: Put) -> None:
        raw = self._value[self.at : self.at + size]
        if len(raw) < size:
            put(raw.decode("utf-8", "ignore") + write.ELLIPSIS)
            self._end()
        begin = self.at
        self.at += size
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            put(_bytes(raw, "str"))
            return
        put(text)
        if not self._hidden and self._rules.covers(text):
            self.spans.append((begin, self.at))

    def _bytes(self, size: int, kind: str, put: Put) -> None:
        raw = self._value[self.at : self.at + size]
        put(_bytes(raw, kind))
        self._some(size)

    def _extension(self, size: int, put: Put) -> None:
        kind = self._number(">b")
        raw = self._some(size)
        moment = _moment(raw) if kind == _TIMESTAMP else None
        put(Other(moment, "timestamp") if moment is not None else _bytes(raw, f"ext {kind}"))


def _bytes(raw: bytes, kind: str) -> Other:
    more = write.ELLIPSIS if len(raw) > _MAX_BYTES else ""
    return Other(
        f"h'{raw[:_MAX_BYTES].hex()}{more}'", f"{kind}, {write.size(len(raw))}", raw.decode("utf-8", "replace")
    )


def _moment(raw: bytes) -> str | None:
    """Write a timestamp; None for one that is none, or of no year that a calendar here has."""
    if len(raw) == 4:
        seconds, nanoseconds = int.from_bytes(raw, "big"), 0
    elif len(raw) == 8:
        both = int.from_bytes(raw, "big")
        seconds, nanoseconds = both & (1 << 34) - 1, both >> 34
    elif len(raw) == 12:
        seconds, nanoseconds = int.from_bytes(raw[4:], "big", signed=True), int.from_bytes(raw[:4], "big")
    else:
        return None
    if nanoseconds >= 10**9:
        return None
    try:
        at = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return None
    fraction = f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""
    return f"{at:%Y-%m-%dT%H:%M:%S}{fraction}Z"
