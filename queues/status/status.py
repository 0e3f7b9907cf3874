"""Status of queues, as screens show it: read from counters, indexes and both ends.

The cost of a status is the same at one thousand and at ten million items. A `Snapshot` holds many queues at one
read version, so sums over it add up even while items move between queues.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from queues.consumers.consumer import NONE, Consumers, begin_consumers
from queues.health import Health, decode, limits_of
from queues.items.counters import depth_of, total
from queues.items.finished import FINISHED
from queues.items.ready import Heads, OldestRead, stored
from queues.items.stored_item import as_item, at_place
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import OUTSIDE, STATES, QueueKeys, Side, Subspace
from queues.kv.port import KeyValue, ReadTransaction, Result
from queues.model.bands import Band, bands
from queues.model.config import Config, Kind, Pause
from queues.model.ids import at, to_ms
from queues.model.item import Item
from queues.model.limits import UNSET, Limits
from queues.model.priority import PriorityType
from queues.model.records import reading

#: A queue has at most 10 depth totals, 32 band totals and a few dozen verbs.
_ALL = 1_000
#: Bytes of a value that are kept where preview fields are looked for in it.
FIELDS_WITHIN = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Exact depths by state, and the traffic since the queue was created."""

    ready: int
    delayed: int
    leased: int
    dead: int
    #: Items by verb: push, pop, restore …; they only grow.
    traffic: Mapping[str, int]

    @property
    def arrived(self) -> int:
        """Items that ever came in, by push or move. One that comes back after a lease is no new one."""
        return self.traffic.get("push", 0) + self.traffic.get("move_in", 0)

    @property
    def left(self) -> int:
        """Items that came in and are no longer in the queue."""
        return max(0, self.arrived - self.ready - self.delayed - self.leased - self.dead)


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class QueueStatus:
    """One queue as it was at one read version."""

    id: int
    name: str
    kind: Kind
    priority_type: PriorityType
    #: Grows with every change of the queue.
    change: int
    totals: Totals
    #: How often an item became ready, and ceased to be ready: rates are their differences over time. Each lease counts
    #: again; `totals` count items.
    arrived: int = 0
    left: int = 0
    #: The priority mix, lowest band first; empty in a FIFO queue.
    bands: tuple[Band, ...] = ()
    #: Since when the oldest ready item can be taken; None when nothing is ready.
    oldest: datetime | None = None
    #: First to leave at the minimum end (FIFO: the head); its value cut, `attempts` and `ready_at` not asked for.
    min: Item | None = None
    #: First to leave at the maximum end (FIFO: the tail); its value cut, `attempts` and `ready_at` not asked for.
    max: Item | None = None
    pause: Pause | None = None
    #: Pushing is refused.
    closed: bool = False
    next_due: datetime | None = None
    next_expiry: datetime | None = None
    #: Counters and items were seen to disagree.
    drift: bool = False
    #: As recorded last; None before the first time, and of an attached queue. A new verdict changes the queue.
    health: Health | None = None
    #: The processes that take from it through this library. One that comes or goes changes the queue.
    consumers: Consumers = NONE
    #: Processes keep conflicting, so one of them executes the pops of all: see queues/serving/staging.py.
    staging: bool = False
    #: Other programs write the items: no counters, ages, rates, bands, pause. `change` differs when what is shown does;
    #: totals count the actions of this store only.
    attached: bool = False
    #: Prefix of the items of an attached queue.
    prefix: bytes | None = None
    #: When the items of an attached queue were counted; None: not yet, and the depth is a lower bound.
    counted_at: datetime | None = None
    #: What operators should know about the queue, and the address of instructions.
    note: str = ""
    runbook: str = ""
    #: Keys to redact on pages: names or globs.
    redact: tuple[str, ...] = ()
    #: Fields of values that lists of queues show, by their paths.
    preview: tuple[str, ...] = ()
    #: What values are: bytes, text, json or msgpack.
    codec: str = "bytes"
    #: The most items, and the largest value, that may be pushed; None: no limit.
    max_depth: int | None = None
    max_value: int | None = None
    #: Seconds for which finished items are kept; None: not at all.
    keep_finished: float | None = None
    #: How many finished items are kept now.
    finished: int = 0
    #: Limits of its targets that the queue sets itself.
    limits: Limits = UNSET
    #: Why the records cannot be read; then only id, name and change are known, and numbers mean nothing.
    unreadable: str = ""

    @property
    def live_consumers(self) -> int | None:
        """The number of live consumers. None when unknown, as where programs take that send no heartbeats."""
        untold = self.attached or (self.health is not None and self.health.untold_takes)
        known = self.consumers.known and not untold
        return len(self.consumers.live) if self.consumers.live or known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Many queues at one read version."""

    #: The read version: grows with every commit of the store.
    version: int
    #: When it was read, UTC.
    at: datetime
    #: Grows whenever a queue is created, renamed, deleted or restored.
    directory_change: int
    #: By queue id, without deleted queues. Unchanged ones are the same objects as in the previous snapshot.
    queues: Mapping[int, QueueStatus]
    #: The change number of every requested queue, deleted ones included.
    changes: Mapping[int, int]


def unreadable_status(queue_id: int, name: str, change: int, reason: str) -> QueueStatus:
    """Return the status of an unreadable queue."""
    return QueueStatus(
        id=queue_id,
        name=name,
        kind="priority",
        priority_type="int",
        change=change,
        totals=Totals(ready=0, delayed=0, leased=0, dead=0, traffic={}),
        unreadable=reason,
    )


def read_totals(tr: ReadTransaction, keys: QueueKeys, config: Config) -> Totals:
    """Read the exact depths and the traffic of one queue."""
    return _totals(config, _Counters(tr, keys, config).wait(), TotalsRead(tr, keys.traffic).wait())


def read_status(
    tr: ReadTransaction, keyspace: Keyspace, config: Config, change: int, preview: int, now: datetime
) -> QueueStatus:
    """Read one queue's status; raise `QueueUnreadable`."""
    with reading(config.name):
        return begin_status(tr, keyspace, config, change, preview, now)()


def begin_status(
    tr: ReadTransaction, keyspace: Keyspace, config: Config, change: int, preview: int, now: datetime
) -> Callable[[], QueueStatus]:
    """Issue every read of one queue's status; the returned function waits for them."""
    keys = keyspace.queue(config.id)
    consumers = begin_consumers(tr, keyspace, config.id)
    counters, traffic = _Counters(tr, keys, config), TotalsRead(tr, keys.traffic)
    mix = _Mix(tr, keys, config)
    oldest = OldestRead(tr, keys, config.generations)
    low = Heads(tr, keys, config.generations, end="min", limit=1)
    high = Heads(tr, keys, config.generations, end="max", limit=1)
    due = [tr.get_key(*keys.generation(generation).delayed.all) for generation in config.generations]
    expiry = tr.get_key(*keys.expiries.all)
    drift, staging, health = tr.get(keys.drift), tr.get(keys.staging), tr.get(keys.health)

    def finish() -> QueueStatus:
        counted = counters.wait()
        ages = oldest.wait()
        first, last = low.wait(), high.wait()
        dues = [
            keys.generation(generation).delayed.elements(key)[0]
            for generation, read in zip(config.generations, due, strict=True)
            if (key := read.wait()) is not None
        ]
        expiry_key = expiry.wait()
        return QueueStatus(
            id=config.id,
            name=config.name,
            kind=config.kind,
            priority_type=config.priority_type,
            change=change,
            totals=_totals(config, counted, traffic.wait()),
            arrived=sum(counted.get((generation, "ready", "in"), 0) for generation in config.generations),
            left=sum(counted.get((generation, "ready", "out"), 0) for generation in config.generations),
            bands=mix.wait(),
            oldest=None if ages is None else at_place(ages[0], "ready", ages[1]).ready_at,
            min=_shown(keys, config, first, preview),
            max=_shown(keys, config, last, preview),
            pause=config.pause,
            closed=config.closed,
            next_due=at(min(dues)) if dues else None,
            next_expiry=None if expiry_key is None else at(keys.expiries.elements(expiry_key)[0]),
            drift=drift.wait() is not None,
            staging=staging.wait() is not None,
            health=decode(health.wait()),
            consumers=consumers(to_ms(now)),
            note=config.note,
            runbook=config.runbook,
            redact=config.redact,
            preview=config.preview,
            codec=config.codec,
            max_depth=config.max_depth,
            max_value=config.max_value,
            keep_finished=config.keep_finished,
            finished=counted.get((OUTSIDE, FINISHED, "in"), 0) - counted.get((OUTSIDE, FINISHED, "out"), 0),
            limits=limits_of(config),
        )

    return finish


def _shown(keys: QueueKeys, config: Config, pairs: list[KeyValue], preview: int) -> Item | None:
    for there in stored(keys, config, pairs):
        size = preview_bytes(config, preview)
        return replace(as_item(there, fifo=config.fifo, codec=config.values, preview=size), ready_at=None)
    return None


def preview_bytes(config: Config, asked: int) -> int:
    """Return how many bytes of a value a status keeps: more where fields are looked for in them."""
    return max(asked, FIELDS_WITHIN) if asked and config.preview else asked


class _Counters:
    """Pending reads of all depth totals."""

    def __init__(self, tr: ReadTransaction, keys: QueueKeys, config: Config) -> None:
        self._reads = [(generation, keys.generation(generation)) for generation in (OUTSIDE, *config.generations)]
        self._pending: list[Result[list[KeyValue]]] = [
            tr.get_range(*generation_keys.counters.all, limit=_ALL) for _, generation_keys in self._reads
        ]

    def wait(self) -> dict[tuple[int, str, Side], int]:
        totals: dict[tuple[int, str, Side], int] = {}
        for (generation, generation_keys), read in zip(self._reads, self._pending, strict=True):
            for key, value in read.wait():
                state, side = generation_keys.counters.elements_again(key)
                totals[generation, state, side] = total(value)
        return totals


class TotalsRead:
    """Pending read of totals, such as the traffic by verb or the waits by bucket."""

    def __init__(self, tr: ReadTransaction, within: Subspace) -> None:
        self._within = within
        self._read = tr.get_range(*within.all, limit=_ALL)

    def wait(self) -> dict[Any, int]:
        """Return the totals by what they count."""
        return {self._within.elements_again(key)[0]: total(value) for key, value in self._read.wait()}


class _Mix:
    """Pending reads of the priority mix."""

    def __init__(self, tr: ReadTransaction, keys: QueueKeys, config: Config) -> None:
        self._config = config
        self._reads = [
            (generation_keys, tr.get_range(*generation_keys.bands.all, limit=_ALL))
            for generation_keys in map(keys.generation, () if config.fifo else config.generations)
        ]

    def wait(self) -> tuple[Band, ...]:
        if self._config.fifo:
            return ()
        depths = [0] * (len(self._config.edges) + 1)
        for generation_keys, read in self._reads:
            for key, value in read.wait():
                band, side = generation_keys.bands.elements_again(key)
                depths[band] += total(value) if side == "in" else -total(value)
        return bands(self._config.edges, depths)


def _totals(config: Config, counted: dict[tuple[int, str, Side], int], traffic: dict[str, int]) -> Totals:
    depths = {state: depth_of(config, counted, state) for state in STATES}
    return Totals(
        ready=depths["ready"],
        delayed=depths["delayed"],
        leased=depths["leased"],
        dead=depths["dead"],
        traffic=traffic,
    )
