"""The agenda: which queues have something that falls due, and in which second, so that no sweep asks all of them.

Whatever delays or leases an item marks its second, blindly: marks conflict with nobody. A mark may stand for what is
gone since (most leases are acknowledged before they expire); whoever sweeps looks at the queue then, and puts the mark
where its next moment is. What came all at once, as from the trash, marks second 0: look now.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass

from queues.keys.keyspace import Keyspace
from queues.kv.port import ReadTransaction, Transaction
from queues.model.config import Config, decode
from queues.model.records import UNREADABLE

#: Pages of marks of one look: it goes on behind those that nothing can be done about.
_PAGES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A queue with marks that have come."""

    queue_id: int
    seconds: tuple[int, ...]
    #: When its next item or lease falls due, in milliseconds; None: nothing is delayed or leased there.
    moment_ms: int | None

    @property
    def settled(self) -> bool:
        """Say whether its marks stand where its next moment is."""
        return self.moment_ms is not None and self.seconds == (self.moment_ms // 1000,)

    def asks(self, now_ms: int) -> bool:
        """Say whether there is something to do about it."""
        return not self.settled or (self.moment_ms is not None and self.moment_ms <= now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class DueIndex:
    """What falls due, at one read version."""

    queues: Sequence[Marked]
    #: The beginning of the first marked second that has not come, in milliseconds; None: there is none.
    next_ms: int | None
    #: Marks that have come of queues that are left alone, by queue, the first one first.
    stuck: Mapping[int, Sequence[int]]
    #: Those of them that cannot be read.
    unreadable: Set[int]


def look(tr: ReadTransaction, keyspace: Keyspace, *, now_ms: int, limit: int, resting: Container[int] = ()) -> DueIndex:
    """Return the agenda up to now, or its first `limit` marks behind those that nothing can be done about."""
    begin, end = keyspace.agenda
    queues: list[Marked] = []
    stuck: dict[int, list[int]] = {}
    unreadable: set[int] = set()
    next_ms = None
    for _ in range(_PAGES):
        pairs = tr.get_range(begin, end, limit=limit + 1).wait()
        seconds: dict[int, list[int]] = {}
        for key, _ in pairs[:limit]:
            second, queue_id = keyspace.read_mark(key)
            if second > now_ms // 1000:
                next_ms = second * 1000
                break
            left = queue_id in resting or queue_id in unreadable
            (stuck if left else seconds).setdefault(queue_id, []).append(second)
        moments = begin_moments(tr, keyspace, seconds)()
        for queue_id, marks in seconds.items():
            if queue_id in moments:
                queues.append(Marked(queue_id=queue_id, seconds=tuple(marks), moment_ms=moments[queue_id]))
            else:
                stuck[queue_id] = marks
                unreadable.add(queue_id)
        if next_ms is not None or len(pairs) <= limit or any(queue.asks(now_ms) for queue in queues):
            break
        begin = pairs[limit][0]
    return DueIndex(queues=queues, next_ms=next_ms, stuck=stuck, unreadable=unreadable)


def collapse(tr: Transaction, keyspace: Keyspace, stuck: Mapping[int, Sequence[int]]) -> None:
    """Leave the first mark of each queue, so that those that nothing can be done about keep no other from being seen.

    Conflicts with nobody: the mark that is set says to look at the queue, whatever the cleared ones stood for.
    """
    tr.use_reserve()
    for queue_id, (first, *others) in stuck.items():
        tr.set(keyspace.agenda_mark(first, queue_id), b"")
        for second in others:
            tr.clear(keyspace.agenda_mark(second, queue_id))


def settle(tr: Transaction, keyspace: Keyspace, queues: Sequence[Marked]) -> None:
    """Put the marks of these queues where their next moments are.

    Reads what others push by snapshot, as it conflicts on the marks that it clears: whoever sets one of them meanwhile
    has pushed something that this does not see.
    """
    tr.use_reserve()
    moments = begin_moments(tr.snapshot, keyspace, [queue.queue_id for queue in queues])()
    for queue in queues:
        if queue.queue_id not in moments:
            continue
        moment_ms = moments[queue.queue_id]
        for second in queue.seconds:
            mark = keyspace.agenda_mark(second, queue.queue_id)
            tr.add_read_conflict_key(mark)
            tr.clear(mark)
        if moment_ms is not None:
            tr.set(keyspace.agenda_mark(moment_ms // 1000, queue.queue_id), b"")


def begin_moments(
    tr: ReadTransaction, keyspace: Keyspace, queue_ids: Iterable[int]
) -> Callable[[], dict[int, int | None]]:
    """Issue the reads of when something falls due next in each queue; one that cannot be read is left out."""
    records = [(queue_id, tr.get(keyspace.config(queue_id))) for queue_id in queue_ids]

    def finish() -> dict[int, int | None]:
        configs = [(queue_id, record, decode(record)) for queue_id, read in records for record in [read.wait()]]
        found: dict[int, int | None] = {queue_id: None for queue_id, record, _ in configs if record is None}
        parts = [(queue_id, _begin(tr, keyspace, config)) for queue_id, _, config in configs if config is not None]
        for queue_id, part in parts:
            with suppress(*UNREADABLE):
                found[queue_id] = part()
        return found

    return finish


def _begin(tr: ReadTransaction, keyspace: Keyspace, config: Config) -> Callable[[], int | None]:
    if config.attached:
        return lambda: None
    keys = keyspace.queue(config.id)
    expiry = tr.get_key(*keys.expiries())
    dues = [
        (generation, tr.get_key(*generation.delayed_range())) for generation in map(keys.generation, config.generations)
    ]

    def finish() -> int | None:
        moments = [generation.due_ms(key) for generation, read in dues if (key := read.wait()) is not None]
        if (key := expiry.wait()) is not None:
            moments.append(keys.expires_ms(key))
        return min(moments, default=None)

    return finish
