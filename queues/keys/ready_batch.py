"""What many ready keys hold, read by loops that run in C: they cost a fifth of those of the interpreter.

The plain form is `unpacked_suffix`; a test compares both.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from queues.keys.queue_keys import unpacked_suffix
from queues.model.bands import band_of
from queues.model.ids import LAST_MS, SIZE, TIME, minted_ms
from queues.model.priority import Priority
from queues.model.tuples import ZERO, pack, pack_number, unpack_behind, unpack_item

#: For fewer keys it is cheaper to read each by itself.
_FEW = 6
#: Bytes of a packed id without a zero, and what is cut from the end of a key that has one.
_PACKED_ID = SIZE + 2
_packed_id_of = itemgetter(slice(-_PACKED_ID, None))
_time_of = itemgetter(slice(1 - _PACKED_ID, 1 - _PACKED_ID + TIME))


class ReadyBatch(NamedTuple):
    """What the ordering parts of ready keys hold."""

    #: In any order.
    packed_ids: list[bytes]
    #: Items by band; empty in a FIFO queue.
    bands: Mapping[int, int]
    #: Items by the milliseconds of their ids' creation; ids without a time are left out.
    created: Mapping[int, int]


def read_batch(suffixes: Sequence[bytes], edges: Sequence[Priority], *, fifo: bool) -> ReadyBatch:
    """Return what the ordering parts of ready keys hold; `edges` are those of the queue's bands."""
    first = None if len(suffixes) < _FEW else unpack_item(suffixes[0], fifo=fifo)
    if first is None:
        return _read_each(suffixes, edges, fifo=fifo)
    count_size = (first[1].bit_length() + 7) >> 3
    size, code = 1 + count_size + _PACKED_ID, ZERO + count_size
    ends = b"".join(map(itemgetter(slice(-size, None)), suffixes))
    n, usual, others = len(suffixes), suffixes, list[bytes]()
    packed_ids = list(map(_packed_id_of, usual))
    if not (
        len(ends) == n * size
        and ends[::size] == bytes([code]) * n
        and ends[1 + count_size :: size] == b"\x01" * n
        and ends[size - 1 :: size] == bytes(n)
        and b"".join(packed_ids).count(0) == n
    ):
        usual = [one for one in suffixes if _is_usual(one, size, code)]
        others = [one for one in suffixes if not _is_usual(one, size, code)]
        packed_ids = list(map(_packed_id_of, usual))
    bands: dict[int, int] = {}
    for packed, number in Counter(map(itemgetter(slice(None, -size)), usual)).items():
        priority = _priority(packed)
        if packed if fifo else priority is None:  # not what it seemed
            return _read_each(suffixes, edges, fifo=fifo)
        if priority is not None:
            band = band_of(edges, priority)
            bands[band] = bands.get(band, 0) + number
    created = {
        ms: number
        for time, number in Counter(map(_time_of, usual)).items()
        if (ms := int.from_bytes(time, "big")) <= LAST_MS
    }
    if not others:
        return ReadyBatch(packed_ids, bands, created)
    rest = _read_each(others, edges, fifo=fifo)
    return ReadyBatch(
        packed_ids + rest.packed_ids, Counter(bands) + Counter(rest.bands), Counter(created) + Counter(rest.created)
    )


def _read_each(suffixes: Sequence[bytes], edges: Sequence[Priority], *, fifo: bool) -> ReadyBatch:
    packed_ids: list[bytes] = []
    bands: dict[int, int] = {}
    created: dict[int, int] = {}
    for suffix in suffixes:
        priority, _, rand, packed_id = unpacked_suffix(suffix, fifo=fifo)
        packed_ids.append(packed_id)
        if priority is not None:
            band = band_of(edges, priority)
            bands[band] = bands.get(band, 0) + 1
        if isinstance(rand, bytes) and len(rand) == SIZE and (ms := minted_ms(rand)) <= LAST_MS:
            created[ms] = created.get(ms, 0) + 1
    return ReadyBatch(packed_ids, bands, created)


def _is_usual(suffix: bytes, size: int, code: int) -> bool:
    """Say whether a key ends with a count of this code, and an id of 20 bytes without a zero."""
    return (
        len(suffix) >= size
        and suffix[-size] == code
        and suffix[-_PACKED_ID] == 1
        and suffix.find(0, -_PACKED_ID) == len(suffix) - 1
    )


@lru_cache(maxsize=4_096)
def _priority(packed: bytes) -> Priority | None:
    """Return the one priority that is packed here; None for anything else, and for nothing.

    No packed element begins with another one. So where this is a whole one, the key has no other reading.
    """
    if packed[:1] >= bytes([ZERO]):
        number = int.from_bytes(packed[1:], "big")
        if packed == pack_number(number):
            return number
    try:
        (priority,) = unpack_behind(packed, 0)
    except Exception:  # the tuple layer raises whatever it stumbles over
        return None
    return priority if type(priority) in (int, float, str) and pack(priority) == packed else None
