"""Compressed values: gzip and zlib, decompressed within a bound. Never an exception."""

import zlib
from dataclasses import dataclass
from typing import Literal

#: Bytes that are unpacked of a value: what more there is stays packed.
MAX_UNPACKED = 1_000_000
#: Values packed in values in values.
MAX_LEVELS = 3
#: gzip files behind each other in one value: each costs a decompressor.
_MAX_MEMBERS = 32
_GZIP = b"\x1f\x8b\x08"
_ZLIB_BITS, _GZIP_BITS = 15, 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """What was in a packed value."""

    kind: Literal["gzip", "zlib"]
    packed: int
    data: bytes
    #: All of it was unpacked, and its checksum is right.
    whole: bool
    #: There is more than is unpacked of a value; else it is damaged, or was cut.
    large: bool


def unpack(value: bytes, *, limit: int = MAX_UNPACKED, cut: bool = False) -> Unpacked | None:
    """Decompress gzip or zlib, `limit` bytes at most; None for other values.

    What is damaged, or with `cut` only a beginning, gives what can be read of it.
    """
    if not begins_packed(value):
        return None
    if value.startswith(_GZIP):
        data, whole = _gunzip(value, limit)
        if not data and not whole and not cut:
            return None  # it only begins like one
        return _unpacked("gzip", value, data, limit, whole=whole)
    # Two bytes with a check in them, and often text: only what unpacks to its end is taken for zlib.
    data, whole, rest = _inflate(value, _ZLIB_BITS, limit)
    large = len(data) > limit
    if (whole and not rest) or large or (cut and data):
        return _unpacked("zlib", value, data, limit, whole=whole)
    return None


def begins_packed(value: bytes) -> bool:
    """Return whether a value begins as packed ones do; it need not be one."""
    if value.startswith(_GZIP):
        return True
    return len(value) > 2 and value[0] & 0x0F == 8 and value[0] >> 4 <= 7 and not int.from_bytes(value[:2], "big") % 31


def unpack_all(value: bytes) -> tuple[bytes, tuple[Unpacked, ...]]:
    """Unpack a value that is packed several times. Return what is inside, and the levels, the outermost first."""
    levels: list[Unpacked] = []
    while len(levels) < MAX_LEVELS and (level := unpack(value)) is not None:
        levels.append(level)
        value = level.data
    return value, tuple(levels)


def _unpacked(kind: Literal["gzip", "zlib"], value: bytes, data: bytes, limit: int, *, whole: bool) -> Unpacked:
    large = len(data) > limit
    return Unpacked(kind=kind, packed=len(value), data=data[:limit], whole=whole and not large, large=large)


def _gunzip(value: bytes, limit: int) -> tuple[bytes, bool]:
    """Return the decompressed bytes, at most a little more than `limit`, and whether that is all."""
    unpacked = b""
    for _ in range(_MAX_MEMBERS):
        data, whole, value = _inflate(value, _GZIP_BITS, limit - len(unpacked))
        unpacked += data
        if not whole or len(unpacked) > limit:
            return unpacked, False
        value = value.lstrip(b"\0")  # files are padded with zeros
        if not value:
            return unpacked, True
    return unpacked, False


def _inflate(value: bytes, bits: int, limit: int) -> tuple[bytes, bool, bytes]:
    """Return at most `limit` + 1 bytes, whether the stream ended well, and the bytes behind it."""
    inflater = zlib.decompressobj(wbits=bits)
    pieces: list[bytes] = []
    size = 0
    # In steps: what was unpacked before a damaged place is kept.
    for at in range(0, len(value), _STEP):
        try:
            piece = inflater.decompress(inflater.unconsumed_tail + value[at : at + _STEP], limit + 1 - size)
        except zlib.error:
            return b"".join(pieces), False, b""
        pieces.append(piece)
        size += len(piece)
        if inflater.eof:
            return b"".join(pieces), True, inflater.unused_data + value[at + _STEP :]
        if size > limit:
            break
    return b"".join(pieces), False, b""


_STEP = 512
