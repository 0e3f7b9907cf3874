"""What a job meets next: a look at some items, bounded in items and bytes, that changes nothing.

A look is a read of its own, so that it never conflicts; the chunk that follows reads the items once more, and does
nothing when the job's mark has moved since.
"""

from collections.abc import Callable
from dataclasses import dataclass

from queues.bulk.bulk_job import Job
from queues.items import scan as walking
from queues.items.scan import Lane, Order
from queues.keys.item_suffix import ready_elements, timed_elements
from queues.keys.queue_keys import QueueKeys
from queues.kv.port import ReadTransaction
from queues.model.config import Config
from queues.model.cursor import End
from queues.model.ids import to_ms
from queues.operations.search import Query

#: Items and bytes of one look.
SCAN, LOOK_BYTES = 2_000, 1_000_000
#: Items of one read, to begin with and at most.
_FIRST_READ, _MAX_READ = 25, 200

#: Gives, by a queue's config, what a searcher sees of a value; None: all of it.
Shown = Callable[[Config], Callable[[bytes], bytes] | None]


def all_shown(config: Config) -> None:
    """Let searches see all of every value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Items that a job meets, from its mark on."""

    mark: bytes | None
    #: Of each its place, and its id if it matches.
    met: list[tuple[bytes, bytes | None]]
    #: Nothing is behind these.
    ended: bool

    @property
    def wanted(self) -> list[bytes]:
        """The ids of those that match."""
        return [rand for _, rand in self.met if rand is not None]


def order_of(act: str, query: Query, *, shifts: bool, ordered: bool) -> Order:
    """Return along what an act walks: its items' places where their order counts, else their ids if that is less."""
    if query.state == "leased":
        return "age"  # leases that are extended change their places
    if shifts or (act == "reprioritize" and query.state != "ready"):
        return "age"  # these stay in their state: one that is moved behind the mark would be met again
    timed = query.since is not None or query.until is not None
    return "age" if timed and not ordered and act not in ("move", "promote") else "place"


def lanes_of(keys: QueueKeys, config: Config, query: Query, order: Order) -> list[Lane]:
    """Return the ranges of the items that a query may match."""
    if order == "age":
        since, until = (None if at is None else to_ms(at) for at in (query.since, query.until))
        return walking.by_age(keys, config, query.state, since, until)
    return walking.by_place(keys, config, query.state, query.low, query.high)


def bounds(tr: ReadTransaction, lanes: list[Lane]) -> tuple[bytes, bytes] | None:
    """Return the first and the last place now; None when there is none."""
    ends = [walking.along(tr, lanes, after=None, end=end, limit=1)[0] for end in _ENDS]
    return (ends[0][0][0], ends[1][0][0]) if all(ends) else None


def just_before(ends: tuple[bytes, bytes]) -> bytes:
    """Return the place before a walk between these ends; no place or id lies between it and the first."""
    return ends[0][:-1]


def look(
    tr: ReadTransaction,
    keys: QueueKeys,
    config: Config,
    job: Job,
    *,
    limit: int,
    shown: Shown = all_shown,
    scan: int = SCAN,
) -> Look:
    """Return the items behind a job's mark, up to `limit` that match."""
    query = job.wanted
    filters = query.filters
    lanes = lanes_of(keys, config, query, job.order)
    seen = shown(config) if query.text else None
    read = walking.read_index if job.order == "age" else walking.read_places
    met: list[tuple[bytes, bytes | None]] = []
    wanted = size = 0
    place, step = job.mark, _FIRST_READ
    while True:
        found, last = walking.along(tr, lanes, after=place, end="min", limit=min(step, scan - len(met)))
        for (at, _, _), one in zip(found, read(tr, keys, config, query.state, found), strict=True):
            if at > job.bound:
                return Look(mark=job.mark, met=met, ended=True)
            fits = one is not None and (not filters or query.matches(one.item(), shown=seen))
            met.append((at, _rand(at, job, config) if fits else None))
            wanted += fits
            size += 0 if one is None else len(one.value)
            if wanted == limit or (size >= LOOK_BYTES and wanted):
                return Look(mark=job.mark, met=met, ended=False)
        if last:
            return Look(mark=job.mark, met=met, ended=True)
        if len(met) >= scan or size >= LOOK_BYTES:
            return Look(mark=job.mark, met=met, ended=False)
        place = found[-1][0]
        fitting = (LOOK_BYTES - size) * len(met) // max(size, 1)
        step = max(1, min(step * 4, _MAX_READ, fitting))


def _rand(place: bytes, job: Job, config: Config) -> bytes:
    if job.order == "age":
        return place
    rand: bytes = ready_elements(place, fifo=config.fifo)[2] if job.state == "ready" else timed_elements(place)[1]
    return rand


_ENDS: tuple[End, End] = ("min", "max")
