"""Ends of keys that order items, and index values that hold an item's place."""

from collections.abc import Mapping
from struct import Struct
from typing import Any

from queues.model import records
from queues.model.ids import TIME
from queues.model.priority import Priority
from queues.model.tuples import pack, pack_bytes, pack_number, pack_priority, unpack_behind, unpack_item


def ready_suffix(priority: Priority | None, count: int | None, rand: bytes) -> bytes:
    """Return the ordering part of a ready key; a FIFO queue's items have no priority."""
    if count is None:  # as other programs may write it
        return pack(count, rand) if priority is None else pack(priority, count, rand)
    ordered = pack_number(count) + pack_bytes(rand)
    return ordered if priority is None else pack_priority(priority) + ordered


def ready_elements(suffix: bytes, *, fifo: bool) -> tuple[Priority | None, int, Any]:
    """Return (priority, count, rand) of a ready key's ordering part."""
    return unpacked_suffix(suffix, fifo=fifo)[:3]


def with_rand(suffix: bytes, rand: bytes, *, fifo: bool) -> bytes:
    """Return the ordering part of a ready key with another id."""
    priority, count, _ = ready_elements(suffix, fifo=fifo)
    return ready_suffix(priority, count, rand)


def unpacked_suffix(suffix: bytes, *, fifo: bool) -> tuple[Priority | None, int, Any, bytes]:
    """Return (priority, count, rand, packed rand) of a ready key's ordering part."""
    common = unpack_item(suffix, fifo=fifo)
    if common is not None:
        return common
    elements = unpack_behind(suffix, 0)
    if fifo:
        count, rand = elements
        return None, count, rand, pack(rand)
    priority, count, rand = elements
    return priority, count, rand, pack(rand)


def timed_suffix(ms: int, rand: bytes) -> bytes:
    """Return the ordering part of a key that is ordered by time."""
    return pack(ms, rand)


def timed_elements(suffix: bytes) -> tuple[int, bytes]:
    """Return (milliseconds, rand) of such a key's ordering part."""
    ms, rand = unpack_behind(suffix, 0)
    return ms, rand


#: Bytes of a lease's nonce.
NONCE_SIZE = 8
#: Bytes of an index value before the nonce: the size of that, attempts, generation.
_HEAD = 9
#: In the byte of the nonce's size: a record lies before the suffix.
_RECORD = 0x80
#: The field of that record with the time at which the item became ready, if that was after its push (ms).
SINCE = "since"

_place = Struct(">BII").pack


def place(
    generation: int, suffix: bytes, attempts: int = 0, nonce: bytes = b"", header: Mapping[str, Any] | None = None
) -> bytes:
    """Return the value of an index key: the item's place and its attempts.

    `nonce` is that of the lease that expired, until the item changes again; `header` what else a ready item's entry
    tells, as its value lies alone.
    """
    if header:
        return _place(len(nonce) | _RECORD, attempts, generation) + nonce + records.encode(header, suffix)
    return _place(len(nonce), attempts, generation) + nonce + suffix


def read_place(value: bytes) -> tuple[int, bytes, int]:
    """Return (generation, suffix, attempts) of an index value."""
    begin = _behind_nonce(value)
    if value[:1] >= b"\x80":
        begin = records.behind_header(value, begin)
    return int.from_bytes(value[5:_HEAD], "big"), value[begin:], int.from_bytes(value[1:5], "big")


def place_header(value: bytes) -> dict[str, Any]:
    """Return what else an index value tells of a ready item."""
    return records.decode(value[_behind_nonce(value) :])[0] if value[:1] >= b"\x80" else {}


def ready_since(value: bytes) -> int | None:
    """Return when the item of an index value became ready, if that was after its push; in milliseconds."""
    return place_header(value).get(SINCE)


def by_age(rand: bytes, since_ms: int) -> bytes:
    """Return what orders an item that became ready after its push in the index by age: that time, then its id."""
    return since_ms.to_bytes(TIME, "big") + rand


def id_by_age(element: bytes, value: bytes) -> bytes:
    """Return the id in an entry of the index by age."""
    return element if ready_since(value) is None else element[TIME:]


def expired_nonce(value: bytes) -> bytes:
    """Return the nonce of the expired lease in an index value; empty if the item changed since."""
    return value[_HEAD : _behind_nonce(value)]


def _behind_nonce(value: bytes) -> int:
    return _HEAD + (int.from_bytes(value[:1], "big") & ~_RECORD)  # a damaged value may be empty
