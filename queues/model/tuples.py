"""Tuple encoding: FoundationDB's bytes, written several times faster on the hot path.

Whole numbers of up to seven bytes, byte strings, text and floats are packed here, other elements by FoundationDB's
tuple layer. Both give the same bytes: tests compare them.
"""

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from operator import add
from typing import Any

from fdb import tuple as fdb_tuple

Range = tuple[bytes, bytes]
#: Every encoded element begins with a code between these two, so they bound all keys behind a packed prefix.
FIRST, LAST = b"\x00", b"\xff"
#: The codes of whole numbers, from the largest negative ones on; the first code after them.
WHOLE_FIRST, WHOLE_END = b"\x0b", b"\x1e"
#: The code of the number 0; the code of another number differs from it by the number's bytes.
ZERO = 0x14
_CODES = [bytes([code]) for code in range(256)]
_MASKS = [(1 << 8 * size) - 1 for size in range(8)]
_SIGN = 1 << 63
_ALL = (1 << 64) - 1
_double, _word = struct.Struct(">d"), struct.Struct(">Q")


def pack(*elements: Any) -> bytes:
    """Return the elements packed as a tuple."""
    packed = b""
    for element in elements:
        kind = type(element)
        if kind is int:
            size = (element.bit_length() + 7) >> 3
            if size > 7:
                break
            if element >= 0:
                packed += _CODES[ZERO + size] + element.to_bytes(size, "big")
            else:
                packed += _CODES[ZERO - size] + (_MASKS[size] + element).to_bytes(size, "big")
        elif kind is bytes:
            packed += pack_bytes(element)
        elif kind is str:
            packed += b"\x02" + element.encode().replace(b"\x00", b"\x00\xff") + b"\x00"
        elif kind is float:
            bits: int = _word.unpack(_double.pack(element))[0]
            packed += b"\x21" + _word.pack(bits ^ _ALL if bits & _SIGN else bits | _SIGN)
        else:
            break
    else:
        return packed
    whole: bytes = fdb_tuple.pack(elements)
    return whole


def pack_number(number: int) -> bytes:
    """Return one whole number packed as a tuple."""
    size = (number.bit_length() + 7) >> 3
    if number < 0 or size > 7:
        return pack(number)
    return _CODES[ZERO + size] + number.to_bytes(size, "big")


def pack_priority(priority: int | float | str) -> bytes:
    """Return a priority packed as a tuple; frequent ones are cached."""
    return pack(priority) if type(priority) is float else _pack_again(priority)  # the cache would confuse 0.0 and -0.0


@lru_cache(maxsize=4_096, typed=True)
def _pack_again(priority: int | float | str) -> bytes:
    return pack(priority)


def pack_priorities(priorities: Sequence[int | float | str]) -> Iterator[bytes]:
    """Yield priorities of one type, each packed as a tuple."""
    return map(pack if type(priorities[0]) is float else _pack_again, priorities)


#: The same as `pack`, cached: for ends of keys that many queues share, such as totals.
pack_again = lru_cache(maxsize=1_024, typed=True)(pack)


def pack_bytes(element: bytes) -> bytes:
    """Return one byte string packed as a tuple."""
    return b"\x01" + (element.replace(b"\x00", b"\x00\xff") if 0 in element else element) + b"\x00"


def pack_numbers(numbers: range) -> list[bytes]:
    """Return whole numbers, each 1 larger than the one before, each packed as a tuple."""
    packed: list[bytes] = []
    first, stop = numbers.start, numbers.stop
    while first < stop:
        if first > 0:  # those up to the next multiple of 256 differ in their last bytes alone
            last = first & 0xFF
            packed += map(add, repeat(pack_number(first)[:-1]), _CODES[last : last + stop - first])
        else:
            packed.append(pack_number(first))
        first = numbers.start + len(packed)
    return packed


def pack_ids(ids: Sequence[bytes]) -> list[bytes]:
    """Return byte strings, each packed as a tuple."""
    if 0 in b"".join(ids):
        return list(map(pack_bytes, ids))
    return list(map(b"".join, zip(repeat(b"\x01"), ids, repeat(b"\x00"), strict=False)))


def unpack_behind(key: bytes, begin: int) -> tuple[Any, ...]:
    """Return the elements that a key holds behind its first `begin` bytes."""
    elements: tuple[Any, ...] = fdb_tuple.unpack(key, begin)
    return elements


def unpack_again(key: bytes, begin: int) -> tuple[Any, ...]:
    """Return the same of keys that many queues share behind their prefixes, such as totals. Cached."""
    return _unpack_again(key[begin:])


@lru_cache(maxsize=1_024)
def _unpack_again(packed: bytes) -> tuple[Any, ...]:
    elements: tuple[Any, ...] = fdb_tuple.unpack(packed)
    return elements


def children(prefix: bytes) -> Range:
    """Return the range of all keys with more elements than a packed prefix."""
    return prefix + FIRST, prefix + LAST


def behind(prefix: bytes) -> bytes:
    """Return the first key behind all keys that begin with `prefix`."""
    stripped = prefix.rstrip(LAST)
    return stripped[:-1] + bytes([stripped[-1] + 1])


def unpack_item(packed: bytes, *, fifo: bool) -> tuple[int | None, int, bytes, bytes] | None:
    """Return (priority, count, rand, packed rand) of such a tuple without negative numbers; else None.

    A FIFO queue's tuples have no priority.
    """
    at, priority = 0, None
    try:
        if not fifo:
            at = packed[0] - ZERO + 1
            if not 0 < at <= 9:
                return None
            priority = int.from_bytes(packed[1:at], "big")
        rand = at + packed[at] - ZERO + 1
        if not at < rand <= at + 9 or packed[rand] != 1 or packed[-1]:
            return None
    except IndexError:
        return None
    count, raw = int.from_bytes(packed[at + 1 : rand], "big"), packed[rand + 1 : -1]
    if 0 in raw:
        if raw.count(b"\x00") != raw.count(b"\x00\xff"):
            return None
        raw = raw.replace(b"\x00\xff", b"\x00")
    return priority, count, raw, packed[rand:]


def unpacked_row(packed: bytes) -> tuple[Any, ...]:
    """Return (priority, count, rand) of such a tuple of either kind; the priority is None in a FIFO queue's."""
    common = unpack_item(packed, fifo=False) or unpack_item(packed, fifo=True)
    elements = unpack_behind(packed, 0) if common is None else common[:3]
    return elements if len(elements) == 3 else (None, *elements)
