"""msgpack, read strictly and within bounds, whole or as far as a cut goes. Never an exception.

Why not a library: rules of redaction need to know at which bytes a value lies, previews hold only the beginning of one,
and a header may claim four thousand million elements, for which libraries make room before they look.

Follows https://github.com/msgpack/msgpack/blob/master/spec.md. Only maps and arrays, one or several behind each other,
are taken for msgpack: single numbers and strings are bytes that could be anything.
"""

import math
import re
import struct
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from pqadmin.display import format as write
from pqadmin.display.redaction import Redaction, Span
from pqadmin.display.values.tree import Members, Number, Other, Roots

#: Values that are read: more are hundreds of milliseconds of work, and are not drawn either.
MAX_NODES = 100_000
#: Nesting that is read; deeper is taken for other bytes, and hidden wherever anything may be.
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
#: Numbers of one byte each.
_SMALL = re.compile(rb"[\x00-\x7f\xe0-\xff]*+")

Put = Callable[[Any], None]


class Judge(Protocol):
    """Says whether a payload holds anything that rules hide."""

    room: "SpaceLimit"

    def __call__(self, payload: bytes, *, cut: bool = False) -> bool: ...


@dataclass(slots=True, kw_only=True)
class SpaceLimit:
    """What may still be read and unpacked: shared by all that is looked at inside of one value."""

    nodes: int = MAX_NODES
    #: Bytes that are unpacked of payloads.
    unpacked: int = 0
    #: How deep the value lies that is read.
    depth: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """A map or an array, or several as `Roots`: what was read of them, and the parts that rules hide."""

    node: Any
    spans: tuple[Span, ...]
    #: Whether all of it was read.
    whole: bool
    #: More was there than is read of a value.
    stopped: bool = False


class _NotMsgpack(Exception):
    """No encoder writes these bytes."""


class _Cut(Exception):
    """The bytes end here, or enough was read."""


def unpack(value: bytes, rules: Redaction, *, cut: bool = False, inside: Judge | None = None) -> Unpacked | None:
    """Read maps and arrays, or as much of them as there is with `cut`. None for other bytes.

    `inside` judges what bytes, extensions and strings that are no text hold.
    """
    reader = _Reader(value, rules, cut=cut, inside=inside)
    whole = True
    try:
        while reader.at < len(value):
            if not _begins(value, reader.at):
                return None
            reader.read(reader.roots.append, 0)
    except _NotMsgpack:
        return None
    except _Cut:
        whole = False
    if not reader.roots:
        return None
    node = reader.roots[0] if len(reader.roots) == 1 else reader.roots
    return Unpacked(node=node, spans=reader.found(), whole=whole, stopped=reader.stopped)


def hidden_parts(value: bytes, rules: Redaction, *, inside: Judge) -> tuple[tuple[Span, ...], bool]:
    """Return the hidden parts of bytes that read as msgpack, and whether a bound was reached."""
    reader = _Reader(value, rules, cut=True, inside=inside)
    depth = inside.room.depth  # that of the value which these bytes lie in
    with suppress(_NotMsgpack, _Cut):
        while True:
            small = _SMALL.match(value, reader.at)
            reader.at = reader.at if small is None else small.end()
            if reader.at == len(value):
                break
            reader.read(_forget, depth)
    return reader.found(), reader.stopped


def _begins(value: bytes, at: int) -> bool:
    return 0x80 <= value[at] <= 0x9F or 0xDC <= value[at] <= 0xDF


def _forget(node: Any) -> None:
    """Take a node that is not drawn."""


class _Reader:
    """Reads one value. Each node is handed over before what is in it, so that a cut leaves what was read."""

    def __init__(self, value: bytes, rules: Redaction, *, cut: bool, inside: Judge | None) -> None:
        self._value = value
        self._rules = rules
        self._cut = cut
        self._inside = inside
        self._room = SpaceLimit() if inside is None else inside.room
        #: Inside of what is hidden, nothing else is.
        self._hidden = False
        #: Values of quoted keys: in strings and bytes, and across them where JSON was cut in pieces.
        self._quoted = rules.spans(value)
        self.at = 0
        self.stopped = False
        self.roots: Roots = Roots()
        self._spans: list[Span] = []

    def found(self) -> tuple[Span, ...]:
        """Return the parts that rules hide, in order."""
        return tuple(sorted(self._spans))

    def read(self, put: Put, depth: int) -> None:
        """Read the value at `at` and hand it over."""
        self._room.nodes -= 1
        if self._room.nodes < 0:
            self._stop(_Cut())
        if depth > MAX_DEPTH:
            self._stop(_NotMsgpack())
        self._room.depth = depth
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
            self._payload(self._number(_BINARY[code]), "bin", put)
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

    def _stop(self, why: Exception) -> None:
        """The limit was reached; the rest was not read, so it counts as hidden."""
        self.stopped = True
        if self._rules and not self._hidden:
            self._spans.append((self.at, len(self._value)))
        raise why

    def _number(self, packing: str) -> int:
        number: int = struct.unpack(packing, self._some(struct.calcsize(packing)))[0]
        return number

    def _float(self, code: int) -> Number | Other:
        single = code == 0xCA
        number: float = struct.unpack(">f" if single else ">d", self._some(4 if single else 8))[0]
        text = f"{number:.9g}" if single else repr(number)
        return Number(text) if math.isfinite(number) else Other(text, "float")

    def _fits(self, elements: int) -> None:
        """Refuse a length that the bytes left cannot hold."""
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
        except (_Cut, _NotMsgpack):
            self._spans.append((begin, len(self._value)))
            raise
        self._hidden = False
        self._spans.append((begin, self.at))

    def _array(self, size: int, put: Put, depth: int) -> None:
        self._fits(size)
        elements: list[Any] = []
        put(elements)
        for _ in range(size):
            self.read(elements.append, depth + 1)

    def _string(self, size: int, put: Put) -> None:
        begin = self.at
        raw = self._value[begin : begin + size]
        missing = len(raw) < size
        try:
            text = raw.decode("utf-8", "ignore" if missing else "strict")
        except UnicodeDecodeError:
            self._payload(size, "str", put)
            return
        covered = self._covered(begin, raw, text)
        put(_covered(raw) if covered else text + write.ELLIPSIS * missing)
        self._some(size)

    def _payload(self, size: int, kind: str, put: Put) -> None:
        raw = self._value[self.at : self.at + size]
        moment = _moment(raw) if kind == f"ext {_TIMESTAMP}" else None
        if self._covered(self.at, raw, None, cut=len(raw) < size):
            put(_covered(raw))
        else:
            put(_bytes(raw, kind) if moment is None else Other(moment, "timestamp"))
        self._some(size)

    def _covered(self, begin: int, raw: bytes, text: str | None, *, cut: bool = False) -> bool:
        """Return whether rules hide a string or bytes, for what they hold; then all of it is hidden."""
        if self._hidden or not self._rules:
            return False
        end = begin + len(raw)
        # The last part that begins before this ends; parts do not overlap.
        at = bisect_right(self._quoted, (end - 1, len(self._value))) - 1
        hides = at >= 0 and self._quoted[at][1] > begin and end > begin
        if not hides and text is not None:
            hides = self._rules.covers(text)
        elif not hides and self._inside is not None:
            hides = self._inside(raw, cut=cut)
        if hides:
            self._spans.append((begin, end))
        return hides

    def _extension(self, size: int, put: Put) -> None:
        kind = self._number(">b")
        self._payload(size, f"ext {kind}", put)


def _bytes(raw: bytes, kind: str) -> Other:
    more = write.ELLIPSIS if len(raw) > _MAX_BYTES else ""
    return Other(
        f"h'{raw[:_MAX_BYTES].hex()}{more}'", f"{kind}, {write.size(len(raw))}", raw.decode("utf-8", "replace")
    )


def _covered(raw: bytes) -> Other:
    """Return what is hidden; as a key it is compared all the same."""
    return Other("", "", raw.decode("utf-8", "replace"), hidden=True)


def _moment(raw: bytes) -> str | None:
    """Write a timestamp. None for one that is none, or of no year that a calendar here has."""
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
