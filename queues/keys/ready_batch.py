"""Decoding of many ready keys at once, column by column.

Loops in C cost a fifth of Python loops. So the keys of a batch are decoded together as far as they end alike, and the
rest one by one.
"""

import struct
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from fdb import tuple as fdb_tuple

from queues.model import ids
from queues.model.bands import band_of
from queues.model.priority import Priority, PriorityType
from queues.model.tuples import ZERO, pack, pack_number, unpack_item

#: Priorities that are remembered; a transaction has at most a quarter as many.
_MANY = 4_096
_FEW_PLACES = 16
T = TypeVar("T")


def counted(these: Sequence[T]) -> dict[T, int]:
    """Return the number of each value; faster than a Counter for a few."""
    if len(these) > _FEW_PLACES:
        return Counter(these)
    counts: dict[T, int] = {}
    for one in these:
        counts[one] = counts.get(one, 0) + 1
    return counts


def pack_numbers(numbers: range) -> list[bytes]:
    """Return each of these whole numbers, which count up by 1, packed as a tuple."""
    first, last = numbers[0], numbers[-1]
    size = (first.bit_length() + 7) >> 3
    if not 0 < size <= 7 or first < 0 or size != (last.bit_length() + 7) >> 3:
        return [pack_number(number) for number in numbers]
    if first == last:
        return [((ZERO + size) << 8 * size | first).to_bytes(size + 1, "big")]
    code = (ZERO + size) << 8 * size  # in front of the number, so both are one larger number
    words = struct.pack(f">{len(numbers)}Q", *range(code + first, code + last + 1))
    return list(chain.from_iterable(_cut(f"{7 - size}x{size + 1}s").iter_unpack(words)))


def pack_ids(ids: Sequence[bytes]) -> list[bytes]:
    """Return each of these byte strings packed as a tuple."""
    if len(ids) == 1:
        return [b"\x01" + ids[0].replace(b"\x00", b"\x00\xff") + b"\x00"]
    if 0 in b"".join(ids):
        ids = list(map(bytes.replace, ids, repeat(b"\x00"), repeat(b"\x00\xff")))
    return list(map(b"".join, zip(repeat(b"\x01"), ids, repeat(b"\x00"), strict=False)))


_cut = lru_cache(struct.Struct)


class _Known(NamedTuple):
    #: Of pushed items; normalized, so 0.0 is never −0.0 here.
    packed: dict[Priority, bytes]
    #: Of popped items, as stored.
    priorities: dict[bytes, Priority]
    bands: dict[bytes, int]


class Places:
    """Cache of packed priorities and their bands. Thread-safe: entries are only added, or all replaced."""

    def __init__(self, edges: tuple[Priority, ...]) -> None:
        self.edges = edges
        self._known = _Known({}, {}, {})

    def pack(self, priorities: Sequence[Priority]) -> tuple[list[bytes], dict[int, int]]:
        """Return these priorities packed, and how many are in each band."""
        known = self._room()
        try:
            packed = list(map(known.packed.__getitem__, priorities))
        except KeyError:
            for priority in priorities:
                if priority not in known.packed:
                    one = pack(priority)
                    known.bands[one] = band_of(priority, self.edges)
                    known.packed[priority] = one
            packed = list(map(known.packed.__getitem__, priorities))
        return packed, counted(list(map(known.bands.__getitem__, packed)))

    def unpack(self, packed: Sequence[bytes]) -> tuple[list[Priority], dict[int, int]] | None:
        """Return these packed priorities, and how many are in each band; None when one is foreign."""
        known = self._room()
        try:
            priorities = list(map(known.priorities.__getitem__, packed))
        except KeyError:
            for one in set(packed).difference(known.priorities):
                priority = _unpacked(one)
                if priority is None:
                    return None
                known.bands[one] = band_of(priority, self.edges)
                known.priorities[one] = priority
            priorities = list(map(known.priorities.__getitem__, packed))
        return priorities, counted(list(map(known.bands.__getitem__, packed)))

    def _room(self) -> _Known:
        known = self._known
        if len(known.bands) > _MANY:
            known = self._known = _Known({}, {}, {})
        return known


@lru_cache(maxsize=64)
def places(priority_type: PriorityType, edges: tuple[Priority, ...]) -> Places:
    """Return the places of all queues of this type and these edges."""
    return Places(edges)


def _unpacked(packed: bytes) -> Priority | None:
    """Return a packed priority; None unless it is one number or text in canonical form."""
    try:
        (priority,) = fdb_tuple.unpack(packed)
    except Exception:  # the tuple layer may raise anything
        return None
    fits = type(priority) in (int, float, str) and pack(priority) == packed
    return priority if fits else None


class Columns(NamedTuple):
    """Elements of ready keys, one column for each."""

    #: None for each in a FIFO queue.
    priorities: Sequence[Priority | None]
    #: Counts and ids, packed.
    tails: Sequence[bytes]
    packed_ids: Sequence[bytes]
    #: Items by band; empty in a FIFO queue.
    bands: dict[int, int]
    #: Items by the milliseconds of their push; ids without a time are left out.
    pushed: dict[int, int]


def columns_of(keys: Sequence[bytes], begin: int, places: Places | None) -> Columns:
    """Decode ready keys, at least one, behind their first `begin` bytes. `places` is None in a FIFO queue."""
    fifo = places is None
    packed, tails, packed_ids, times = _rows(keys, begin, fifo=fifo)
    known = _known(packed, places)
    if known is None:  # other programs wrote some of them
        packed, tails, packed_ids, times = zip(*(_one(key[begin:], fifo=fifo) for key in keys), strict=True)
        known = _foreign(packed, places)
    pushed = {ms: n for time, n in counted(times).items() if time and (ms := _ms(time)) <= ids.LAST_MS}
    return Columns(known[0], tails, packed_ids, known[1], pushed)


#: Packed priorities, counts and ids packed, packed ids, and the packed bytes of the ids' times; empty for no time.
_Rows = tuple[Sequence[bytes], Sequence[bytes], Sequence[bytes], Sequence[bytes]]


class _Ending:
    """Layout of a key's end. A count of `size` bytes, and an id with zeros in its time."""

    def __init__(self, size: int, zeros: tuple[int, ...]) -> None:
        self.size = size
        #: Their places in the packed id.
        self.zeros = zeros
        self.packed_id = 2 + ids.SIZE + len(zeros)
        self.id_at = 1 + size
        self.length = self.id_at + self.packed_id
        self.tail_of = itemgetter(slice(-self.length, None))
        self.packed_id_of = itemgetter(slice(-self.packed_id, None))
        self.time_of = itemgetter(slice(self.id_at + 1, self.id_at + 1 + ids.TIME + len(zeros)))


_ending_of = lru_cache(_Ending)


#: How many layouts are tried: sizes of counts and zeros of times differ now and then.
_ENDINGS = 8
#: Fewer keys are cheaper to decode one by one.
_FEW = 6


def _rows(keys: Sequence[bytes], begin: int, *, fifo: bool) -> _Rows:
    if len(keys) < _FEW:
        return tuple(zip(*(_one(key[begin:], fifo=fifo) for key in keys), strict=True))  # type: ignore[return-value]
    ending = _ending(keys[0][begin:], fifo=fifo)
    rows = None if ending is None else _alike(keys, begin, ending)
    if rows is not None:
        return rows
    known: dict[bytes, Any] = {}
    rest = keys
    for _ in range(_ENDINGS):
        ending = _ending(rest[0][begin:], fifo=fifo)
        if ending is None:
            break
        code, at, one = ZERO + ending.size, -ending.length, -ending.packed_id
        own = [key for key in rest if len(key) + at >= begin and key[at] == code and key[one] == 1]
        rows = _alike(own, begin, ending)
        if rows is None:
            break
        known.update(zip(own, zip(*rows, strict=True), strict=True))
        rest = [key for key in rest if key not in known]
        if not rest:
            break
    for key in rest:
        known[key] = _one(key[begin:], fifo=fifo)
    return tuple(zip(*map(known.__getitem__, keys), strict=True))  # type: ignore[return-value]


def _ending(packed: bytes, *, fifo: bool) -> _Ending | None:
    """Return the layout of a key's end; None for a foreign key."""
    common = unpack_item(packed, fifo=fifo)
    elements: Any = fdb_tuple.unpack(packed) if common is None else common[:3]
    count, item_id = elements[-2:]
    if type(count) is not int or not 0 <= count < 1 << 56 or type(item_id) is not bytes or len(item_id) != ids.SIZE:
        return None
    if 0 in item_id[ids.TIME :]:
        return None
    return _ending_of((count.bit_length() + 7) >> 3, _zeros(item_id[: ids.TIME]))


@lru_cache(maxsize=4_096)
def _zeros(time: bytes) -> tuple[int, ...]:
    """Return the positions of a time's zeros in a packed id. Each shifts the later ones by one."""
    return tuple(1 + at + n for n, at in enumerate(at for at, byte in enumerate(time) if not byte))


def _alike(keys: Sequence[bytes], begin: int, ending: _Ending) -> _Rows | None:
    """Return the columns of keys that all end with this layout, or None.

    The caller checks that the rest before it is a packed priority (FIFO: nothing). No other tuple has these bytes then:
    a number's code and its bytes, the code of a byte string, and its bytes up to the first zero not followed by 255.
    """
    n, zeros, length, id_at = len(keys), ending.zeros, ending.length, ending.id_at
    tails = list(map(ending.tail_of, keys))
    whole = b"".join(tails)
    packed_ids = list(map(ending.packed_id_of, keys))
    if (
        len(whole) != n * length
        or whole[::length] != bytes((ZERO + ending.size,)) * n
        or whole[id_at::length] != b"\x01" * n
        or whole[length - 1 :: length] != b"\x00" * n
        or b"".join(packed_ids).count(0) != n * (1 + len(zeros))
        or any(whole[id_at + at :: length] != b"\x00" * n for at in zeros)
        or any(whole[id_at + at + 1 :: length] != b"\xff" * n for at in zeros)
    ):
        return None
    packed = list(map(itemgetter(slice(begin, -length)), keys))
    return packed, tails, packed_ids, list(map(ending.time_of, tails))


def _one(suffix: bytes, *, fifo: bool) -> tuple[bytes, bytes, bytes, bytes]:
    """Return the elements of one key of any program."""
    common = unpack_item(suffix, fifo=fifo)
    if common is not None:
        priority, _, item_id, packed_id = common
        packed = b"" if priority is None else suffix[: suffix[0] - ZERO + 1]
    else:
        elements: tuple[Any, ...] = fdb_tuple.unpack(suffix)
        item_id = elements[-1]
        packed, packed_id = b"" if fifo else pack(elements[0]), pack(item_id)
    time = item_id[: ids.TIME] if isinstance(item_id, bytes) and len(item_id) == ids.SIZE else b""
    return packed, suffix[len(packed) :], packed_id, time.replace(b"\x00", b"\x00\xff") if 0 in time else time


def _known(packed: Sequence[bytes], places: Places | None) -> tuple[Sequence[Priority | None], dict[int, int]] | None:
    """Return priorities, and how many are in each band; None when one is foreign."""
    if places is not None:
        return places.unpack(packed)
    return None if any(packed) else ([None] * len(packed), {})


def _foreign(packed: Sequence[bytes], places: Places | None) -> tuple[Sequence[Priority | None], dict[int, int]]:
    """Return the same for foreign priorities."""
    if places is None:
        return [None] * len(packed), {}
    priorities = [fdb_tuple.unpack(one)[0] for one in packed]
    return priorities, counted([band_of(priority, places.edges) for priority in priorities if priority is not None])


@lru_cache(maxsize=4_096)
def _ms(time: bytes) -> int:
    return int.from_bytes(time.replace(b"\x00\xff", b"\x00"), "big")
