"""Consistent cuts: what one read transaction saw of the queues on screens, as finished texts."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pqadmin.live.consumers_panel import described
from pqadmin.live.frame_json import END_ITEMS, Ends
from queues import Item, QueueStatus, ReadTransaction, Snapshot, Store
from queues.admin import MAX_SNAPSHOT
from queues.errors import QueueUnreadable

#: Bytes of a value that are read for a row.
PREVIEW_BYTES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Queues at one read version. Never changes once made, so that all sockets may share it."""

    version: int
    #: Milliseconds since the epoch.
    at: int
    #: Every queue that was asked for, gone ones included.
    covers: frozenset[int]
    #: Rows and ends as JSON text, by queue id.
    rows: Mapping[int, str]
    ends: Mapping[int, str]
    #: The names that the rows have at this version: what may be seen is decided by them.
    names: Mapping[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one read transaction gave."""

    snapshot: Snapshot
    ends: Mapping[int, Ends]


def pack(screens: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Group whole screens into few transactions of at most 500 queues each."""
    packed: list[frozenset[int]] = []
    for screen in sorted(set(screens), key=lambda ids: (-len(ids), sorted(ids))):
        for index, group in enumerate(packed):
            if len(group | screen) <= MAX_SNAPSHOT:
                packed[index] = group | screen
                break
        else:
            packed.append(screen)
    return packed


def read(
    store: Store,
    ids: Sequence[int],
    *,
    previous: Snapshot | None,
    ends_of: Collection[int],
    known_ends: Collection[tuple[QueueStatus, Ends]],
) -> Reading:
    """Read queues, and the first items of both ends of some (`ends_of`), in one transaction.

    What did not change since `previous` is not read again; attached queues always are, as nothing tells of changes.
    """

    def look(tr: ReadTransaction) -> Reading:
        snapshot = store.snapshot(ids, previous=previous, preview=PREVIEW_BYTES, tolerant=True, tr=tr)
        ends: dict[int, Ends] = {}
        for queue_id in ends_of:
            status = snapshot.queues.get(queue_id)
            if status is None:
                continue
            known = None if status.attached else next((ends for of, ends in known_ends if of is status), None)
            ends[queue_id] = _ends(store, status, tr) if known is None else known
        return Reading(snapshot=snapshot, ends=ends)

    reading = store.read(look)
    store.remember(reading.snapshot)
    return reading


def _ends(store: Store, status: QueueStatus, tr: ReadTransaction) -> Ends:
    """Read both ends of a queue; a damaged item there is its page's matter alone."""
    low: Sequence[Item] = ()
    high: Sequence[Item] = ()
    why = status.unreadable
    if not why:
        try:
            queue = store.queue(status.name, tr=tr)
            low = queue.items(end="min", limit=END_ITEMS, preview=PREVIEW_BYTES, tr=tr).items
            high = queue.items(end="max", limit=END_ITEMS, preview=PREVIEW_BYTES, tr=tr).items
        except QueueUnreadable as error:
            low, high, why = (), (), error.why
    return Ends(min=low, max=high, redact=status.redact, consumers=described(status), unreadable=why)
