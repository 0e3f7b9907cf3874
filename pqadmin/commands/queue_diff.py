"""Difference between two looks at a queue: the items that came, changed or went, and how many more.

A look reads the counters of a queue, the items near both ends, and the first of each other state, at one version. The
counters are exact: what passed unseen, because it was taken at once or lies in the middle, is told as a number.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from queues import AnyQueue, Item, Page, ReadTransaction, Snapshot, Store
from queues.admin import BY_HAND, QueueLook, to_ms
from queues.errors import QueueNotFound

#: Items that are read of each end and of each state, and bytes of each.
WINDOW, _PREVIEW = 200, 4_096
#: By how much an item's push may lie before the look before it: its commit came after its time was taken.
_LATE = timedelta(seconds=2)
#: What happens to an item, and the verbs of the counters that bring it about.
_VERBS = {
    "pushed": ("push", "move_in", "restore"),
    "leased": ("lease",),
    "released": ("release", "expire"),
    "dead": ("release", "expire"),
    "ready": ("promote",),
    "retried": ("retry",),
    "delayed": ("delay",),
    "gone": ("pop", "ack", "delete", "move", "purge"),
}
#: What happened to an item by its states before and now.
_CHANGES = {
    ("leased", "ready"): "released",
    ("leased", "delayed"): "released",
    ("leased", "dead"): "dead",
    ("delayed", "ready"): "ready",
    ("dead", "ready"): "retried",
    ("ready", "delayed"): "delayed",
}


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to one item, and by which verb, if that is sure."""

    what: str
    item: Item
    verb: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened between two looks; `more` are items, by verb, of which no event tells."""

    events: Sequence[Event]
    more: Mapping[str, int]


def look(store: Store, queue: AnyQueue, *, change: int | None = None) -> QueueLook | None:
    """Read a queue; None if it is as it was at this change. Raises `QueueNotFound`."""
    if store.site is not None:
        return store.site.look(queue, change=change)

    def read(tr: ReadTransaction) -> tuple[Snapshot, list[Page]]:
        snapshot = store.snapshot([queue.id], preview=0, tr=tr)
        status = snapshot.queues.get(queue.id)
        if status is None:
            raise QueueNotFound(queue.name, gone=True)
        if status.change == change and status.pause is None:  # a pause ends without a change
            return snapshot, []
        looks: list[Callable[..., Page]] = [queue.items, partial(queue.items, end="max")]
        looks += [] if queue.attached else [queue.delayed, queue.leased, queue.dead]
        return snapshot, [page(limit=WINDOW, preview=_PREVIEW, tr=tr) for page in looks]

    with store.suggesting():
        snapshot, pages = store.read(read)
    if not pages:
        return None
    now, status = store.now(), snapshot.queues[queue.id]
    pause = status.pause
    return QueueLook(
        at=now,
        change=status.change,
        traffic=None if status.attached else status.totals.traffic,
        items={item.id: item for page in pages for item in page.items},
        whole=all(len(page.items) < WINDOW for page in pages),
        pause=pause if pause is not None and pause.holds(to_ms(now)) else None,
        snapshot=snapshot,
    )


def changes(before: QueueLook, now: QueueLook, *, find: Callable[[str], Item | None], most: int) -> Changes:
    """Return what happened between two looks, with events of at most so many items.

    `find` looks for an item that was seen and is near no end any more.
    """
    counts = None if before.traffic is None or now.traffic is None else _counts(before.traffic, now.traffic)
    events: list[Event] = []
    for what, item in _seen(before, now, find):
        if len(events) == most:
            break
        verbs = [verb for verb in _VERBS[what] if counts is not None and counts[verb] > 0]
        if counts is not None and not verbs:
            continue  # it was told before, as one of many
        if counts is not None:
            counts[verbs[0]] -= 1
            counts["dead"] -= what == "dead"  # counted once more, beside the release
        events.append(Event(what, item, verbs[0] if len(verbs) == 1 else ""))
    return Changes(events, {} if counts is None else +counts)


def _counts(before: Mapping[str, int], now: Mapping[str, int]) -> Counter[str]:
    """Return the items by verb; extensions are none, and what people did is counted twice."""
    verbs = (verb for verb in now if verb != "extend" and not verb.startswith(BY_HAND))
    return Counter({verb: now[verb] - before.get(verb, 0) for verb in verbs})


def _seen(before: QueueLook, now: QueueLook, find: Callable[[str], Item | None]) -> Iterator[tuple[str, Item]]:
    """Yield what happened to each item that is, or was, near an end."""
    for item_id, item in sorted(now.items.items(), key=lambda each: each[1].pushed_at or before.at):
        was = before.items.get(item_id)
        if was is None and (item.pushed_at is None or item.pushed_at >= before.at - _LATE):
            yield "pushed", item
        if item.state == "leased" and (was is None or was.leased_at != item.leased_at):
            yield "leased", item
        elif was is not None and (what := _CHANGES.get((was.state, item.state))):
            yield what, item
    for item_id, item in before.items.items():
        if item_id not in now.items and (now.whole or find(item_id) is None):
            yield "gone", item
