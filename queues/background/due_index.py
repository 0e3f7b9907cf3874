"""The due index: which queues have something due in which second. So no sweep reads all queues.

A transaction that delays or leases an item marks its second without reading, so marks conflict with no other
transaction. A mark may be out of date: most leases are acknowledged before they expire. The sweeper looks at the queue
then, and moves the mark to the second in which something falls due next. Many items that come at once, as from the
trash, mark second 0: look now.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass

from queues.keys.keyspace import Keyspace
from queues.kv.port import ReadTransaction, Transaction
from queues.model.config import Config, decode
from queues.model.records import UNREADABLE

#: Pages of marks of one look: it goes on behind those of queues that are left alone.
_PAGES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A queue with marks of seconds that have come."""

    queue_id: int
    seconds: tuple[int, ...]
    #: When its next item or lease falls due, in milliseconds; None: nothing is delayed or leased there.
    moment_ms: int | None

    @property
    def settled(self) -> bool:
        """Say whether it has one mark, in the second of its next due time."""
        return self.moment_ms is not None and self.seconds == (self.moment_ms // 1000,)

    def asks(self, now_ms: int) -> bool:
        """Say whether there is something to do."""
        return not self.settled or (self.moment_ms is not None and self.moment_ms <= now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class DueIndex:
    """The due index at one read version."""

    queues: Sequence[Marked]
    #: The beginning of the first marked second that has not come, in milliseconds; None: there is none.
    next_ms: int | None
    #: Marks of seconds that have come, of queues that are left alone, by queue, the first one first.
    stuck: Mapping[int, Sequence[int]]
    #: Those of them that cannot be read.
    unreadable: Set[int]


def look(tr: ReadTransaction, keyspace: Keyspace, *, now_ms: int, limit: int, resting: Container[int] = ()) -> DueIndex:
    """Return the due index up to now, or its first `limit` marks behind those of queues that are left alone."""
    begin, end = keyspace.due_index
    queues: list[Marked] = []
    stuck: dict[int, list[int]] = {}
    unreadable: set[int] = set()
    next_ms = None
    for _ in range(_PAGES):
        pairs = tr.get_range(begin, end, limit=limit + 1).wait()
        seconds: dict[int, list[int]] = {}
        for key, _ in pairs[:limit]:
            second, queue_id = keyspace.due.elements(key)
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
    """Leave the first mark of each queue, so that queues that are left alone hide no other.

    Conflicts with no other transaction: the mark that is set says to look at the queue, as the cleared ones did.
    """
    tr.use_reserve()
    for queue_id, (first, *others) in stuck.items():
        tr.set(keyspace.due.key(first, queue_id), b"")
        for second in others:
            tr.clear(keyspace.due.key(second, queue_id))


def settle(tr: Transaction, keyspace: Keyspace, queues: Sequence[Marked]) -> None:
    """Move the marks of these queues to their next due times.

    Reads items by snapshot, and conflicts on the marks that it clears: a transaction that sets one of them meanwhile
    has delayed or leased an item that this does not see.
    """
    tr.use_reserve()
    moments = begin_moments(tr.snapshot, keyspace, [queue.queue_id for queue in queues])()
    for queue in queues:
        if queue.queue_id not in moments:
            continue
        moment_ms = moments[queue.queue_id]
        for second in queue.seconds:
            mark = keyspace.due.key(second, queue.queue_id)
            tr.add_read_conflict_key(mark)
            tr.clear(mark)
        if moment_ms is not None:
            tr.set(keyspace.due.key(moment_ms // 1000, queue.queue_id), b"")


def begin_moments(
    tr: ReadTransaction, keyspace: Keyspace, queue_ids: Iterable[int]
) -> Callable[[], dict[int, int | None]]:
    """Issue the reads of when something falls due next in each queue. One that cannot be read is left out."""
    records = [(queue_id, tr.get(keyspace.configs.key(queue_id))) for queue_id in queue_ids]

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
    expiry = tr.get_key(*keys.expiries.all)
    dues = [
        (generation, tr.get_key(*generation.delayed.all)) for generation in map(keys.generation, config.generations)
    ]

    def finish() -> int | None:
        moments = [generation.delayed.elements(key)[0] for generation, read in dues if (key := read.wait()) is not None]
        if (key := expiry.wait()) is not None:
            moments.append(keys.expiries.elements(key)[0])
        return min(moments, default=None)

    return finish
