"""Keys of one queue: items, indexes and totals, by generation.

The table of keys is in queues/keys/keyspace.py.
"""

from collections.abc import Sequence
from typing import Any, Literal

from queues.model.priority import Priority
from queues.model.tuples import (
    FIRST,
    LAST,
    WHOLE_END,
    WHOLE_FIRST,
    Range,
    children,
    pack,
    pack_bytes,
    unpack_again,
    unpack_behind,
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


class QueueKeys:
    """The keys of one queue."""

    __slots__ = (
        "_dead",
        "_due",
        "_expiries",
        "_generations",
        "_index",
        "_leases",
        "_prefix",
        "_queue_id",
        "_requests",
        "_results",
        "_totals",
        "_traffic",
        "_waits",
        "change",
        "drift",
        "staging",
        "wake",
    )

    def __init__(self, prefix: bytes, due: bytes, queue_id: int) -> None:
        self._prefix = prefix
        #: Prefix of the due index.
        self._due = due
        self._queue_id = queue_id
        self._generations: dict[int, GenerationKeys] = {}
        self._index = {state: prefix + pack("o", state) for state in STATES}
        self._leases = prefix + pack("l")
        self._expiries = prefix + pack("e")
        self._dead = prefix + pack("z")
        self._traffic = prefix + pack("T")
        #: Keys of totals, by verb and by bucket.
        self._totals: dict[str | int, bytes] = {}
        self._waits = prefix + pack("h")
        self.wake = prefix + pack("w")
        self.change = prefix + CHANGE
        self.drift = prefix + pack("f")
        self.staging = prefix + pack("r", "f")
        self._requests = prefix + pack("r", "q")
        self._results = prefix + pack("r", "a")

    def generation(self, generation: int) -> "GenerationKeys":
        """Return the keys of one generation."""
        keys = self._generations.get(generation)
        if keys is None:
            keys = self._generations[generation] = GenerationKeys(self._prefix + pack(generation))
        return keys

    def index(self, state: str, rand: bytes, generation: int = 1) -> bytes:
        """Return the index key of an item in this state."""
        return self.indexed(state, generation) + pack_bytes(rand)

    def by_age(self, state: str, generation: int = 1) -> Range:
        """Return the range of an index, oldest first."""
        return children(self.indexed(state, generation))

    def indexes(self, state: str, generations: Sequence[int]) -> list[Range]:
        """Return the ranges of every index of a state, in these generations."""
        return [self.by_age(state, generation) for generation in (generations if state in IN_GENERATIONS else (1,))]

    def rand_of_index(self, state: str, key: bytes) -> bytes:
        """Return the item id in an index key."""
        rand: bytes = unpack_behind(key, len(self._prefix))[-1]
        return rand

    def indexed(self, state: str, generation: int) -> bytes:
        """Return the prefix of the index keys of a state."""
        if generation > 1 and state in IN_GENERATIONS:
            return self.generation(generation).indexed(state)
        return self._index[state]

    def traffic(self, verb: str) -> bytes:
        """Return the key of a traffic total."""
        key = self._totals.get(verb)
        if key is None:
            key = self._totals[verb] = self._traffic + pack(verb)
        return key

    def all_traffic(self) -> Range:
        """Return the range of traffic totals."""
        return children(self._traffic)

    def verb_of(self, key: bytes) -> str:
        """Return the verb that a traffic key counts."""
        verb: str = unpack_again(key, len(self._traffic))[0]
        return verb

    def wait(self, bucket: int) -> bytes:
        """Return the key of a bucket of the wait histogram."""
        key = self._totals.get(bucket)
        if key is None:
            key = self._totals[bucket] = self._waits + pack(bucket)
        return key

    def all_waits(self) -> Range:
        """Return the range of the wait histogram, the shortest waits first."""
        return children(self._waits)

    def bucket_of(self, key: bytes) -> int:
        """Return the bucket that a key of `all_waits` counts."""
        bucket: int = unpack_again(key, len(self._waits))[0]
        return bucket

    @property
    def due_wake(self) -> bytes:
        """The wake key of sweepers, for what falls due soon."""
        return self._due + pack("w")

    def due_mark(self, second: int) -> bytes:
        """Return the queue's entry of the due index for a second."""
        return self._due + pack(second, self._queue_id)

    @property
    def everything(self) -> Range:
        """The range of all keys of the queue."""
        return children(self._prefix)

    def elements(self, key: bytes) -> tuple[Any, ...]:
        """Return the elements of a key behind the queue's id."""
        return unpack_behind(key, len(self._prefix))

    def behind(self, *elements: Any) -> bytes:
        """Return the end of all keys of the queue that begin with these elements."""
        return self._prefix + pack(*elements) + LAST

    def lease(self, rand: bytes) -> bytes:
        """Return the key of an item's lease."""
        return self._leases + pack(rand)

    def leases(self) -> Range:
        """Return the range of leases."""
        return children(self._leases)

    def expiry(self, suffix: bytes) -> bytes:
        """Return the key of a lease by its expiry, or of a cursor's position."""
        return self._expiries + suffix

    def expiry_at(self, ms: int, rand: bytes) -> bytes:
        """Return the key of the lease of an item that expires at a time."""
        return self._expiries + pack(ms, rand)

    def expiries(self) -> Range:
        """Return the range of leases by expiry, the next one first."""
        return children(self._expiries)

    def expired_by(self, ms: int) -> Range:
        """Return the range of leases that end by this time, the first one first."""
        return children(self._expiries)[0], self.expiry(pack(ms + 1))

    def expiry_suffix_of(self, key: bytes) -> bytes:
        """Return the part of an expiry key that orders leases."""
        return key[len(self._expiries) :]

    def expires_ms(self, key: bytes) -> int:
        """Return when the lease of an expiry key ends, in milliseconds."""
        expires_ms: int = unpack_behind(key, len(self._expiries))[0]
        return expires_ms

    def request(self, ms: int, request: bytes) -> bytes:
        """Return the key of a request to the fulfiller."""
        return self._requests + pack(ms, request)

    def requests(self, ms: int | None = None) -> Range:
        """Return the range of requests, the first one first; with `ms`, of those made by then."""
        begin, end = children(self._requests)
        return begin, end if ms is None else self._requests + pack(ms + 1)

    def request_of(self, key: bytes) -> tuple[int, bytes]:
        """Return (milliseconds, request) of a request's key."""
        ms, request = unpack_behind(key, len(self._requests))
        return ms, request

    def result(self, ms: int, request: bytes, n: int) -> bytes:
        """Return the key of a part of a request's result."""
        return self._results + pack(ms, request, n)

    def result_parts(self, ms: int, request: bytes) -> Range:
        """Return the range of all parts of a request's result."""
        return children(self._results + pack(ms, request))

    def results(self, ms: int | None = None) -> Range:
        """Return the range of results, the first one first; with `ms`, of requests made by then."""
        begin, end = children(self._results)
        return begin, end if ms is None else self._results + pack(ms + 1)

    def result_of(self, key: bytes) -> tuple[int, bytes]:
        """Return (milliseconds, request) of a result's key."""
        ms, request, _ = unpack_behind(key, len(self._results))
        return ms, request

    def dead_item(self, suffix: bytes) -> bytes:
        """Return the key of a dead item, or of a cursor's position."""
        return self._dead + suffix

    def dead(self) -> Range:
        """Return the range of dead items, the first to die first."""
        return children(self._dead)

    def dead_suffix_of(self, key: bytes) -> bytes:
        """Return the part of a dead item's key that orders dead items."""
        return key[len(self._dead) :]


class GenerationKeys:
    """Keys of the ready and delayed items and their totals in one generation."""

    __slots__ = ("_bands", "_counters", "_prefix", "_ready", "_sides", "ahead", "ready_range", "tried")

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._ready = prefix + pack("i")
        self.tried = prefix + pack("d")
        #: The mark of tried items, followed by the delayed items.
        self.ahead = self.tried, children(self.tried)[1]
        self._counters = prefix + pack("n")
        self._bands = prefix + pack("b")
        self._sides: dict[tuple[str | int, Side], bytes] = {}
        self.ready_range = children(self._ready)

    def counter(self, state: str, side: Side) -> bytes:
        """Return the key of a state's total in or out."""
        return self._side(self._counters, state, side)

    def band(self, band: int, side: Side) -> bytes:
        """Return the key of a band's total in or out."""
        return self._side(self._bands, band, side)

    def _side(self, prefix: bytes, what: str | int, side: Side) -> bytes:
        key = self._sides.get((what, side))
        if key is None:
            key = self._sides[what, side] = prefix + pack(what, side)
        return key

    @property
    def everything(self) -> Range:
        """The range of all keys of the generation."""
        return children(self._prefix)

    def indexed(self, state: str) -> bytes:
        """Return the prefix of the index keys of a state, in generations after the first."""
        return self._prefix + pack("o", state)

    def stored(self, state: str, suffix: bytes) -> bytes:
        """Return the key of a ready or delayed item."""
        return (self._ready if state == "ready" else self._prefix + pack("d")) + suffix

    def counters(self) -> Range:
        """Return the range of the depth totals."""
        return children(self._counters)

    def counter_of(self, key: bytes) -> tuple[str, Side]:
        """Return (state, side) of a depth total's key."""
        state, side = unpack_again(key, len(self._counters))
        return state, side

    def bands(self) -> Range:
        """Return the range of the band totals."""
        return children(self._bands)

    def band_of(self, key: bytes) -> tuple[int, Side]:
        """Return (band, side) of a band total's key."""
        band, side = unpack_again(key, len(self._bands))
        return band, side

    def delayed_range(self) -> Range:
        """Return the range of delayed items, the next due first."""
        return children(self.tried)

    def due_by(self, ms: int) -> Range:
        """Return the range of delayed items that are due by this time, the next due first."""
        return children(self.tried)[0], self.delayed(pack(ms + 1))

    def due_ms(self, key: bytes) -> int:
        """Return when the delayed item of this key is due, in milliseconds."""
        due_ms: int = unpack_behind(key, len(self.tried))[0]
        return due_ms

    def delayed(self, suffix: bytes) -> bytes:
        """Return the key of a delayed item, or of a cursor's position."""
        return self.tried + suffix

    def delayed_suffix_of(self, key: bytes) -> bytes:
        """Return the part of a delayed key that orders items, the same in every generation."""
        return key[len(self.tried) :]

    def ready(self, suffix: bytes) -> bytes:
        """Return the key of a ready item, or of a cursor's position."""
        return self._ready + suffix

    def suffix_of(self, key: bytes) -> bytes:
        """Return the part of a ready key that orders items, the same in every generation."""
        return key[len(self._ready) :]

    def from_priority(self, priority: Priority) -> Range:
        """Return the range of ready items of exactly this priority."""
        return children(self._ready + pack(priority))


class AttachedKeys:
    """Keys of the recipe under a given prefix: the items of an attached queue."""

    __slots__ = ("_prefix", "range")

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        #: As the recipe reads it: it holds every packed tuple, and perhaps other keys.
        self.range = children(prefix)

    def key(self, suffix: bytes) -> bytes:
        """Return the key of an item, or of a cursor's position."""
        return self._prefix + suffix

    def suffix_of(self, key: bytes) -> bytes:
        """Return an item's key without the prefix."""
        return key[len(self._prefix) :]

    def holds(self, suffix: bytes) -> bool:
        """Return whether a key with this suffix is among the queue's items."""
        return FIRST <= suffix < LAST

    def only(self, suffix: bytes) -> Range:
        """Return the range of exactly one key; unlike keys, ranges have no length limit."""
        key = self.key(suffix)
        return key, key + FIRST

    def from_priority(self, priority: Priority) -> Range:
        """Return the range of the items of exactly this priority."""
        return children(self._prefix + pack(priority))

    def counts(self, priority: Priority | None) -> Range:
        """Return the range of keys of one priority with a whole number as count (FIFO: index)."""
        begin = self._prefix if priority is None else self._prefix + pack(priority)
        return begin + WHOLE_FIRST, begin + WHOLE_END
