"""Keys of one queue: subspaces, the ends that order items, and index values with their places.

The table of keys is in queues/keys/keyspace.py.
"""

from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Any, Literal

import msgspec

from queues.model import records
from queues.model.ids import TIME
from queues.model.priority import Priority
from queues.model.tuples import (
    FIRST,
    LAST,
    WHOLE_END,
    WHOLE_FIRST,
    Range,
    children,
    pack,
    pack_again,
    pack_bytes,
    pack_number,
    pack_priority,
    unpack_again,
    unpack_behind,
    unpack_item,
)

#: The states that generations hold, and that a purge takes.
IN_GENERATIONS = ("ready", "delayed")
Side = Literal["in", "out"]
SIDES: tuple[Side, Side] = ("in", "out")
STATES = ("ready", "delayed", "leased", "dead")
#: The generation of the totals of leased and dead items, which no purge removes; live ones begin at 1.
OUTSIDE = 0
#: The change key behind a queue's prefix.
CHANGE = pack("v")
#: What follows a queue's prefix in the other keys that every process needs of every queue.
_INDEX = {state: pack("o", state) for state in STATES}
_LEASES, _EXPIRIES, _DEAD, _TRAFFIC, _WAITS, _WAKE, _DRIFT, _HEALTH, _CONSUMER = (pack(kind) for kind in "lezThwfsp")
_STAGING, _REQUESTS, _RESULTS = (pack("r", kind) for kind in "fqa")
_READY, _LATER, _DELAYED, _COUNTERS, _BANDS = (pack(kind) for kind in "icdnb")


class Subspace(msgspec.Struct, frozen=True):
    """Keys that begin with a packed prefix. Ranges are (begin, end) with the end excluded."""

    prefix: bytes

    def key(self, *elements: Any) -> bytes:
        """Return the key of these elements."""
        return self.prefix + pack(*elements)

    def key_again(self, *elements: Any) -> bytes:
        """Return the same, its end cached: for keys that many queues have, such as totals."""
        return self.prefix + pack_again(*elements)

    def at(self, suffix: bytes) -> bytes:
        """Return the key with this packed end, or of a cursor's position."""
        return self.prefix + suffix

    def sub(self, *elements: Any) -> "Subspace":
        """Return the subspace behind these elements."""
        return Subspace(self.prefix + pack(*elements))

    @property
    def all(self) -> Range:
        """The range of all its keys."""
        return children(self.prefix)

    def below(self, *elements: Any) -> Range:
        """Return the range of the keys that begin with these elements and have more."""
        return children(self.key(*elements))

    def before(self, *elements: Any, behind: bytes | None = None) -> Range:
        """Return the range of the keys before this one; of those behind another key, if there is one."""
        return (self.prefix if behind is None else behind) + FIRST, self.key(*elements)

    def older(self, than: bytes | None) -> Range:
        """Return the range of the ids before this one; None: of all."""
        return self.all if than is None else self.before(than)

    def suffix_of(self, key: bytes) -> bytes:
        """Return the packed end of a key."""
        return key[len(self.prefix) :]

    def elements(self, key: bytes) -> tuple[Any, ...]:
        """Return the elements of a key."""
        return unpack_behind(key, len(self.prefix))

    def elements_again(self, key: bytes) -> tuple[Any, ...]:
        """Return the same, cached: for ends of keys that many queues share, such as totals."""
        return unpack_again(key, len(self.prefix))


def last_element(key: bytes) -> Any:
    """Return the last element of a key, such as the id in an entry of an index."""
    return unpack_behind(key, 0)[-1]


class QueueKeys:
    """The keys of one queue: a subspace for each kind of key, and single keys."""

    __slots__ = (
        "_due",
        "_generations",
        "_index",
        "_queue_id",
        "_whole",
        "change",
        "dead",
        "drift",
        "expiries",
        "health",
        "last_consumer",
        "leases",
        "requests",
        "results",
        "staging",
        "traffic",
        "waits",
        "wake",
    )

    def __init__(self, prefix: bytes, due: Subspace, queue_id: int) -> None:
        self._whole = Subspace(prefix)
        self._due = due
        self._queue_id = queue_id
        self._generations: dict[int, GenerationKeys] = {}
        self._index = {state: Subspace(prefix + kind) for state, kind in _INDEX.items()}
        self.leases = Subspace(prefix + _LEASES)
        #: Leases by expiry, the next one first.
        self.expiries = Subspace(prefix + _EXPIRIES)
        #: Dead items, the first to die first.
        self.dead = Subspace(prefix + _DEAD)
        #: Totals by verb.
        self.traffic = Subspace(prefix + _TRAFFIC)
        #: The wait histogram, the shortest waits first.
        self.waits = Subspace(prefix + _WAITS)
        #: Requests to the fulfiller, and parts of their results, the first one first.
        self.requests = Subspace(prefix + _REQUESTS)
        self.results = Subspace(prefix + _RESULTS)
        self.staging = prefix + _STAGING
        self.wake = prefix + _WAKE
        self.change = prefix + CHANGE
        self.drift = prefix + _DRIFT
        self.health = prefix + _HEALTH
        self.last_consumer = prefix + _CONSUMER

    def generation(self, generation: int) -> "GenerationKeys":
        """Return the keys of one generation."""
        keys = self._generations.get(generation)
        if keys is None:
            keys = self._generations[generation] = GenerationKeys(self._whole.key(generation))
        return keys

    def found_at(self, state: str, generation: int, rand: bytes) -> list[bytes]:
        """Return the keys by which an item of a state may be found by its id."""
        found = [self.index(state, generation).key(rand)]
        return [*found, self.generation(generation).later.key(rand)] if state == "ready" else found

    def index(self, state: str, generation: int = 1) -> Subspace:
        """Return the index of a state by item id, the oldest item first; of ready items by since when they are."""
        if generation > 1 and state in IN_GENERATIONS:
            return self._whole.sub(generation, "o", state)
        return self._index[state]

    def indexes(self, state: str, generations: Sequence[int]) -> list[Range]:
        """Return the ranges of every index of a state, in these generations."""
        return [self.index(state, generation).all for generation in (generations if state in IN_GENERATIONS else (1,))]

    @property
    def due_wake(self) -> bytes:
        """The wake key of sweepers, for what falls due soon."""
        return self._due.key("w")

    def due_mark(self, second: int) -> bytes:
        """Return the queue's entry of the due index for a second."""
        return self._due.key(second, self._queue_id)

    @property
    def everything(self) -> Range:
        """The range of all keys of the queue."""
        return self._whole.all

    def elements(self, key: bytes) -> tuple[Any, ...]:
        """Return the elements of a key behind the queue's id."""
        return self._whole.elements(key)

    def behind(self, *elements: Any) -> bytes:
        """Return the end of all keys of the queue that begin with these elements."""
        return self._whole.key(*elements) + LAST


class GenerationKeys:
    """Keys of the ready and delayed items and their totals in one generation."""

    __slots__ = ("_prefix", "ahead", "bands", "counters", "delayed", "later", "ready")

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        #: Ready items: their ends order them, the same in every generation.
        self.ready = Subspace(prefix + _READY)
        #: Delayed items, the next due first.
        self.delayed = Subspace(prefix + _DELAYED)
        #: Ready items by id that became ready after their push, and then the delayed items.
        self.later = Subspace(prefix + _LATER)
        self.ahead = self.later.all[0], self.delayed.all[1]
        #: Totals of states and of bands, in and out.
        self.counters = Subspace(prefix + _COUNTERS)
        self.bands = Subspace(prefix + _BANDS)

    @property
    def everything(self) -> Range:
        """The range of all keys of the generation."""
        return Subspace(self._prefix).all


class AttachedKeys(Subspace, frozen=True):
    """Keys of the recipe under a given prefix: the items of an attached queue, and perhaps other keys."""

    def holds(self, suffix: bytes) -> bool:
        """Return whether a key with this suffix is among the queue's items."""
        return FIRST <= suffix < LAST

    def only(self, suffix: bytes) -> Range:
        """Return the range of exactly one key; unlike keys, ranges have no length limit."""
        key = self.at(suffix)
        return key, key + FIRST

    def counts(self, priority: Priority | None) -> Range:
        """Return the range of keys of one priority with a whole number as count (FIFO: index)."""
        begin = self.prefix if priority is None else self.key(priority)
        return begin + WHOLE_FIRST, begin + WHOLE_END


# Ends of keys, and places


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
    """Return the element of the index by age of an item that became ready after its push: time, then id."""
    return since_ms.to_bytes(TIME, "big") + rand


def id_by_age(element: bytes, value: bytes) -> bytes:
    """Return the id in an entry of the index by age."""
    return element if ready_since(value) is None else element[TIME:]


def expired_nonce(value: bytes) -> bytes:
    """Return the nonce of the expired lease in an index value. Empty if the item changed since."""
    return value[_HEAD : _behind_nonce(value)]


def _behind_nonce(value: bytes) -> int:
    return _HEAD + (int.from_bytes(value[:1], "big") & ~_RECORD)  # a damaged value may be empty
