"""Counters of a queue: the additions of one transaction, one atomic ADD for each key.

Every transaction that changes a queue adds 1 to its change key. One that may make an item ready adds 1 to the wake key,
too; so does one after which an item falls due soon. An item that falls due later need not: no waiting thread sleeps for
more than 30 seconds without a look. (To compare with the earliest due time would not do: that item may be gone at
commit, and a thread that began to wait meanwhile would miss both.)
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from queues.errors import QueueClosed, QueueFull, ValueTooLarge, Words, display_name
from queues.keys.queue_keys import IN_GENERATIONS, OUTSIDE, SIDES, QueueKeys, Side
from queues.kv.port import Result, Transaction
from queues.model.config import Config


def total(value: bytes | None) -> int:
    """Return a total as a number; absent is 0."""
    return 0 if value is None else int.from_bytes(value, "little", signed=True)


def total_bytes(number: int) -> bytes | None:
    """Return the bytes that hold a total; 0 stands for absent, as totals only grow."""
    return None if number == 0 else number.to_bytes(8, "little", signed=True)


#: Verbs that programs and people both do; the work of people is counted once more under a name of its own.
SHARED = ("push", "pop", "lease", "ack", "release", "promote")
#: What these names begin with.
BY_HAND = "hand_"
#: Verbs that people alone do, as far as they change what is ready.
OF_PEOPLE = ("delete", "move", "move_in", "restore", "purge", "retry", "delay", *(BY_HAND + verb for verb in SHARED))

#: Twice the longest sleep: a transaction may commit some seconds after its time was taken.
SOON_MS = 60_000
#: The same for sweepers: most leases end later, and so wake no sweeper.
SWEEP_SOON_MS = 20_000


class CounterDelta:
    """Collects one transaction's additions to the totals of one queue."""

    __slots__ = ("_keys", "_seconds", "_totals")

    def __init__(self, keys: QueueKeys, *, wake: bool) -> None:
        self._keys = keys
        self._totals = {keys.change: 1}
        self._seconds: set[int] = set()
        if wake:
            self.wake()

    def wake(self) -> None:
        """Wake waiting workers: an item may be ready, or falls due sooner."""
        self._totals[self._keys.wake] = 1

    def falls_due(self, ms: int, now_ms: int | None) -> None:
        """Enter a time in the due index, and wake the workers and sweepers that might sleep past it.

        Without the time now all are woken.
        """
        self._seconds.add(ms // 1000)
        if now_ms is None or ms - now_ms < SOON_MS:
            self.wake()
        if now_ms is None or ms - now_ms < SWEEP_SOON_MS:
            self._totals[self._keys.due_wake] = 1

    def look_again(self) -> None:
        """Have the sweeper look at the queue: many items may have come at once."""
        self._seconds.add(0)
        self._totals[self._keys.due_wake] = 1

    def state(self, generation: int, state: str, side: Side, n: int = 1) -> None:
        """Count `n` items in or out of a state."""
        self._add(self._keys.generation(generation).counters.key_again(state, side), n)

    def bands(self, generation: int, bands: Mapping[int, int], side: Side) -> None:
        """Count so many items in or out of each priority band."""
        keys = self._keys.generation(generation)
        for band, n in bands.items():
            self._add(keys.bands.key_again(band, side), n)

    def traffic(self, verb: str, n: int = 1) -> None:
        """Count a verb's work."""
        self._add(self._keys.traffic.key_again(verb), n)

    def by_hand(self, verb: str, n: int = 1) -> None:
        """Note that what a verb's work counts was done by a person."""
        if verb in SHARED:
            self.traffic(BY_HAND + verb, n)

    def waits(self, now_ms: int, pushed: Mapping[int, int]) -> None:
        """Count the waits of taken items: so many of each were pushed at these milliseconds."""
        buckets: dict[int, int] = {}
        for pushed_ms, n in pushed.items():
            bucket = wait_bucket(now_ms - pushed_ms)
            buckets[bucket] = buckets.get(bucket, 0) + n
        for bucket, n in buckets.items():
            self._add(self._keys.waits.key_again(bucket), n)

    @property
    def empty(self) -> bool:
        """Whether nothing was counted."""
        return len(self._totals) == 1

    def apply(self, tr: Transaction) -> None:
        """Write the additions."""
        tr.add_all(self._totals)
        for second in self._seconds:
            tr.set(self._keys.due_mark(second), b"")

    def _add(self, key: bytes, n: int) -> None:
        self._totals[key] = self._totals.get(key, 0) + n


def wake(tr: Transaction, keys: QueueKeys) -> None:
    """Signal viewers and workers that the queue changed."""
    CounterDelta(keys, wake=True).apply(tr)


def note_by_hand(tr: Transaction, keys: QueueKeys, verb: str, n: int) -> None:
    """Count work that this transaction did for a person, not for a consumer."""
    delta = CounterDelta(keys, wake=False)
    delta.by_hand(verb, n)
    delta.apply(tr)


#: √2-wide buckets: 63 reach 2^31.5 ms, 36 days; longer waits count as that.
LAST_BUCKET = 63


@lru_cache(maxsize=4_096)
def wait_bucket(ms: int) -> int:
    """Return the histogram bucket of a wait: bucket b holds waits of at least 2^(b/2) ms (bucket 0: from 0)."""
    if ms < 2:
        return 0
    half = ms.bit_length() - 1
    # 2^(half + 0.5) ≤ ms, squared so that no float decides at an edge.
    return min(2 * half + (ms * ms >= 1 << (2 * half + 1)), LAST_BUCKET)


def counted_in(config: Config, state: str) -> tuple[int, ...]:
    """Return the generations that tell the depth of a state by their totals."""
    return config.generations if state in IN_GENERATIONS else (OUTSIDE,)


def depth_of(config: Config, totals: dict[tuple[int, str, Side], int], state: str) -> int:
    """Return the depth of a state from the totals of all generations."""
    return sum(
        totals.get((generation, state, "in"), 0) - totals.get((generation, state, "out"), 0)
        for generation in counted_in(config, state)
    )


# The limits of a queue


#: How a refusal ends that has nothing more to say.
_END = Words(".")


def admit(tr: Transaction, keys: QueueKeys, config: Config, sizes: Iterable[int], outcome: Words = _END) -> None:
    """Raise `QueueClosed`, `QueueFull` or `ValueTooLarge` unless values of these sizes may come in by push or move.

    A limit of items is checked against the counters without reading them serializably, so that pushes go on conflicting
    with nothing: what is pushed at the very same moment may pass it by as much. What comes back from the trash always
    may.
    """
    if config.closed:
        raise QueueClosed("Pushing to {queue} is closed{outcome}", queue=display_name(config.name), outcome=outcome)
    if not config.limited:
        return
    coming = list(sizes)
    refuse_large(config, coming, outcome)
    if config.max_depth is not None:
        waiting = _waiting(tr, keys, config)
        if waiting + len(coming) > config.max_depth:
            raise QueueFull(
                "{queue} holds {waiting:,} items, ready and delayed, and takes at most {most:,}{outcome}",
                queue=display_name(config.name),
                waiting=waiting,
                most=config.max_depth,
                outcome=outcome,
            )


def refuse_large(config: Config, sizes: Sequence[int], outcome: Words = _END) -> None:
    """Raise `ValueTooLarge` for a value that is larger than the queue takes."""
    if config.max_value is None or not sizes or max(sizes) <= config.max_value:
        return
    error = ValueTooLarge(
        "{queue} takes values of at most {most:,} bytes; this one has {size:,}{outcome}",
        queue=display_name(config.name),
        most=config.max_value,
        size=max(sizes),
        outcome=outcome,
    )
    if outcome is _END and len(sizes) > 1:
        error.index = sizes.index(max(sizes))
    raise error


def _waiting(tr: Transaction, keys: QueueKeys, config: Config) -> int:
    reads: list[tuple[Side, Result[bytes | None]]] = [
        (side, tr.snapshot.get(keys.generation(generation).counters.key(state, side)))
        for state in IN_GENERATIONS
        for generation in counted_in(config, state)
        for side in SIDES
    ]
    return sum(total(read.wait()) if side == "in" else -total(read.wait()) for side, read in reads)
