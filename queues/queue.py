"""The verbs of one queue.

Each verb is one transaction; given `tr=` it joins that transaction instead and takes effect when that one commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Unpack, cast

from queues.errors import BadEnd, BadState, BadTime, NaiveTime, TimePassed, WrongKind, display_name
from queues.items import ready
from queues.items.admission import encoded
from queues.items.counters import counted_in, total
from queues.items.stored_item import ItemRead, as_item
from queues.keys.queue_keys import STATES, GenerationKeys
from queues.kv.port import ReadTransaction, Transaction
from queues.model import cursor as cursors
from queues.model.config import MAX_REASON, Pause, check_text
from queues.model.cursor import End
from queues.model.duration import LEASE, Duration, Wait, seconds_of
from queues.model.item import Item, Page
from queues.model.priority import Priority, normalize
from queues.model.records import MAX_VALUE_SIZE
from queues.model.settings import Settings, check_settings
from queues.operations.dead import Deaths
from queues.operations.delay import Moment, When, check_when, either
from queues.operations.handle import check_limit
from queues.operations.lease import Lease
from queues.operations.search import Searching
from queues.operations.wait import Waiting
from queues.serving.push_batch import One
from queues.status.status import QueueStatus, Totals, read_status, read_totals

#: Whole numbers of less magnitude are priorities of an int queue as they are.
_SMALL = 1 << 63
_ENDS: dict[str, End] = {"min": "min", "max": "max", "head": "min", "tail": "max"}


class Queue(Waiting, Deaths, Searching):
    """A named, durable, double-ended priority queue, or a FIFO queue. Thread-safe."""

    # Priority queues

    def push(
        self,
        value: Any,
        priority: Priority,
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
        tr: Transaction | None = None,
    ) -> Item:
        """Add an item. Conflicts with nobody; run twice it adds two items.

        With `delay` (seconds or a timedelta), or until `due` (aware), it is delayed: not taken before then. What is due
        by now is ready at once.
        """
        if delay is not None or due is not None:
            return self.push_many([(value, priority)], delay=delay, due=due, tr=tr)[0]
        if tr is None and not self._guess[1].attached:
            item: Any = self._context.kv.serve(self._own_pushes or self._pushes, self._pushing(value, priority))
            return item  # type: ignore[no-any-return]
        self._require("priority", "push", "enqueue")
        return self._insert([(encoded(value, self.config), normalize(priority, self.priority_type))], tr)[0]

    def _pushing(self, value: Any, priority: Priority) -> One:
        """Return the request to push one item; what most pushes are is asked in place, because a call costs more."""
        config = self._guess[1]
        if config.kind != "priority":
            self._require("priority", "push", "enqueue")
        if config.codec != "bytes" or type(value) is not bytes or len(value) > MAX_VALUE_SIZE:
            value = encoded(value, config)
        if type(priority) is not int or config.priority_type != "int" or not -_SMALL < priority < _SMALL:
            priority = normalize(priority, config.priority_type)
        return value, priority

    def push_many(
        self,
        items: Iterable[tuple[Any, Priority] | tuple[Any, Priority, When | None]],
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
        tr: Transaction | None = None,
    ) -> list[Item]:
        """Add at most 1,000 items and 5 MB as one: all or none, in this order.

        `delay` or `due` hold for every item that brings none of its own as a third element.
        """
        self._require("priority", "push", "enqueue")
        kind, common = self.priority_type, either(delay, due)
        items = list(items)
        if common is None and {*map(len, items)} == {2}:
            if kind == "int" and self._guess[1].codec == "bytes" and _plain(*zip(*items, strict=True)):
                return self._insert(cast(list[tuple[bytes, Priority | None]], items), tr)
            return self._insert([(encoded(item[0], self.config), normalize(item[1], kind)) for item in items], tr)
        return self._push(self._checked(items, common), tr)

    def _checked(
        self, items: Iterable[tuple[Any, Priority] | tuple[Any, Priority, When | None]], common: Moment | None
    ) -> list[tuple[bytes, Priority | None, Moment | None]]:
        """Return what is to be pushed, as it goes into the store."""
        config = self.config
        kind = config.priority_type
        return [
            (encoded(value, config), normalize(priority, kind), _own_when(when) if when else common)
            for value, priority, *when in items
        ]

    def pop_min(self, *, wait: Wait = False, tr: Transaction | None = None) -> Item | None:
        """Take the item of the smallest priority, the oldest among equals; None when nothing is ready.

        `wait=True` waits forever for one, `wait=5.0` or a timedelta that long, through a pause too.
        """
        if wait is False and tr is None and self._guess[1].kind == "priority":
            return self._take_one("min")
        return self._wait(lambda: _only(self.pop_many(1, end="min", tr=tr)), None, wait, tr)

    def pop_max(self, *, wait: Wait = False, tr: Transaction | None = None) -> Item | None:
        """Take the item of the largest priority, the newest among equals; None when nothing is ready.

        `wait` is that of pop_min.
        """
        if wait is False and tr is None and self._guess[1].kind == "priority":
            return self._take_one("max")
        return self._wait(lambda: _only(self.pop_many(1, end="max", tr=tr)), None, wait, tr)

    def pop_many(self, n: int, *, end: str = "min", tr: Transaction | None = None) -> list[Item]:
        """Take at most `n` items (1 to 1,000, 5 MB) from one end as one, the first to leave first."""
        self._require("priority", "pop", "dequeue")
        return self._take(n, check_end(end), tr)

    def peek_min(self, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the item that pop_min would take, changing nothing."""
        self._require("priority", "peek_min", "peek")
        return self._peek("min", tr)

    def peek_max(self, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the item that pop_max would take, changing nothing."""
        self._require("priority", "peek_max", "peek")
        return self._peek("max", tr)

    # FIFO queues

    def enqueue(
        self,
        value: Any,
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
        tr: Transaction | None = None,
    ) -> Item:
        """Add an item at the tail. Conflicts with nobody; run twice it adds two items.

        With `delay`, or until `due` (aware), it is delayed: it comes to the tail then. What is due by now does at once.
        """
        return self.enqueue_many([value], delay=delay, due=due, tr=tr)[0]

    def enqueue_many(
        self,
        values: Iterable[Any],
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
        tr: Transaction | None = None,
    ) -> list[Item]:
        """Add at most 1,000 items and 5 MB at the tail as one: all or none, in this order; `delay` or `due` for all."""
        self._require("fifo", "enqueue", "push")
        common = either(delay, due)
        return self._push([(encoded(value, self.config), None, common) for value in values], tr)

    def dequeue(self, *, wait: Wait = False, tr: Transaction | None = None) -> Item | None:
        """Take the item at the head; None when nothing is ready.

        `wait=True` waits forever for one, `wait=5.0` or a timedelta that long, through a pause too.
        """
        return self._wait(lambda: _only(self.dequeue_many(1, tr=tr)), None, wait, tr)

    def dequeue_many(self, n: int, *, tr: Transaction | None = None) -> list[Item]:
        """Take at most `n` items (1 to 1,000, 5 MB) from the head as one, in order."""
        self._require("fifo", "dequeue", "pop")
        return self._take(n, "min", tr)

    def peek(self, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the item at the head, changing nothing."""
        self._require("fifo", "peek", "peek_min")
        return self._peek("min", tr)

    # Both kinds: leasing

    def lease(
        self,
        *,
        seconds: Duration = 60.0,
        end: str = "min",
        worker: str | None = None,
        keep: bool = False,
        wait: Wait = False,
        tr: Transaction | None = None,
    ) -> Lease | None:
        """Hold the item at one end for a time; None when nothing is ready.

        No other caller gets it meanwhile. Acknowledge it with `ack`. An item that is neither acknowledged, released
        nor extended in time returns to its place, or is dead after its last attempt. `worker` names the holder, by
        default this process. `wait` is that of pop_min.

        A lease is a context manager too: see `Lease`. With `keep` it is extended by `seconds` again and again while
        its block runs.
        """
        leases = self.lease_many(1, seconds=seconds, end=end, worker=worker, keep=keep, wait=wait, tr=tr)
        return leases[0] if leases else None

    def lease_many(
        self,
        n: int,
        *,
        seconds: Duration = 60.0,
        end: str = "min",
        worker: str | None = None,
        keep: bool = False,
        wait: Wait = False,
        tr: Transaction | None = None,
    ) -> list[Lease]:
        """Hold at most `n` items (1 to 1,000, 5 MB) from one end for a time, the first to leave first.

        With `wait`, it returns as soon as there is at least one. The rest is as for `lease`.
        """
        side = self._leasing_end(end)
        held = seconds_of(seconds, LEASE, above_zero=True)
        return self._wait(
            lambda: self._lease(n, seconds=held, end=side, worker=worker, keep=keep, tr=tr),
            list[Lease](),
            wait,
            tr,
        )

    def _leasing_end(self, end: str) -> End:
        side = check_end(end)
        if self.kind == "fifo" and side == "max":
            raise WrongKind("{queue} is a fifo queue: items leave at its head only.", queue=display_name(self.name))
        return side

    # Both kinds: looking

    def depth(self, state: str = "ready", *, tr: ReadTransaction | None = None) -> int:
        """Return the exact number of items in a state (ready, delayed, leased, dead), from counters."""
        if state not in STATES:
            raise BadState("Items are ready, delayed, leased or dead, not {state}.", state=repr(state))

        def count(tr: ReadTransaction) -> int:
            generations = counted_in(self._current(tr), state)
            reads = [
                (tr.get(keys.counter(state, "in")), tr.get(keys.counter(state, "out")))
                for keys in map(self._keys.generation, generations)
            ]
            return sum(total(arrived.wait()) - total(left.wait()) for arrived, left in reads)

        return self._context.read(count, tr)

    def totals(self, *, tr: ReadTransaction | None = None) -> Totals:
        """Return the exact depths by state and the traffic, from counters."""
        return self._context.read(lambda tr: read_totals(tr, self._keys, self._current(tr)), tr)

    def oldest(self, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the ready item that was pushed first, from the index by age."""

        def look(tr: ReadTransaction) -> Item | None:
            config, read = self._with_config(tr, lambda config: ready.OldestRead(tr, self._keys, config.generations))
            found = read.wait()
            there = None if found is None else ItemRead(tr, self._keys, found[0], "ready", found[1]).wait()
            return None if there is None else as_item(there, fifo=config.fifo, codec=config.values)

        return self._context.read(look, tr)

    def items(
        self,
        *,
        end: str = "min",
        limit: int = 50,
        after: str | None = None,
        priority: Priority | None = None,
        preview: int | None = None,
        tr: ReadTransaction | None = None,
    ) -> Page:
        """Return a page of ready items in order from one end, changing nothing.

        `after` is the cursor of the page before; else `priority` begins at that priority, seen from `end`.
        Values are cut to `preview` bytes. The cost depends on `limit` alone, not on depth or place.
        """
        side = check_end(end)
        check_limit(limit)
        suffix = None if after is None else cursors.decode(after, self.id, side)
        if priority is not None:
            self._require("priority", "a priority", "head or tail")
            priority = normalize(priority, self.priority_type)

        return self._context.read(
            lambda tr: self._page(tr, side=side, limit=limit, suffix=suffix, priority=priority, preview=preview), tr
        )

    def status(self, *, preview: int = 256, tr: ReadTransaction | None = None) -> QueueStatus:
        """Return everything that a screen shows of this queue, at one read version; values cut to `preview`."""

        def look(tr: ReadTransaction) -> QueueStatus:
            change = tr.get(self._keys.change)
            config = self._current(tr)
            return read_status(tr, self._keys, config, total(change.wait()), preview)

        return self._context.read(look, tr)

    # Both kinds: one particular item

    def remove(self, item_id: str, *, verb: str = "delete", tr: Transaction | None = None) -> Item | None:
        """Take the one item of this id, wherever it stands; None when it is not here. `verb` counts it in the traffic.

        Conflicts with whoever takes the same item. Together with a push in one transaction it moves an item.
        """
        return self._context.transact(lambda tr: self._remove(tr, item_id, verb), tr)

    # Both kinds: operating

    def pause(self, *, reason: str, until: datetime | None = None, by: str = "", tr: Transaction | None = None) -> None:
        """Stop taking, with a reason; pushing goes on. `until` (aware) resumes by itself."""
        if until is not None and until.utcoffset() is None:
            raise NaiveTime("The time to resume needs a time zone.")
        now = self._context.now()
        if until is not None and until <= now:
            raise TimePassed("The time to resume has passed already.")
        pause = Pause(reason=check_text(reason, MAX_REASON), by=check_text(by), since=now, until=until)
        self._reconfigure(lambda config: replace(config, pause=pause), tr)

    def resume(self, *, tr: Transaction | None = None) -> None:
        """Let items be taken again; resuming what is not paused changes nothing."""
        self._reconfigure(lambda config: replace(config, pause=None), tr)

    def configure(self, *, tr: Transaction | None = None, **changes: Unpack[Settings]) -> None:
        """Change settings of the queue; the others stay. Raises `BadSetting`, `NotForAttached`.

        Items keep what was true of them: dead ones stay dead, and none leaves because it is larger than a new limit.
        """
        self._reconfigure(lambda config: replace(config, **check_settings(config, changes)), tr)

    def _page(
        self,
        tr: ReadTransaction,
        *,
        side: End,
        limit: int,
        suffix: bytes | None,
        priority: Priority | None,
        preview: int | None,
    ) -> Page:
        config = self._current(tr)
        ahead = ready.Ahead(tr, self._keys, config.generations)
        reads = []
        for generation in config.generations:
            keys = self._keys.generation(generation)
            begin, stop = _window(keys, side, suffix, priority)
            read = tr.get_range(begin, stop, limit=limit + 1, reverse=side == "max")
            reads.append((generation, keys, read))
        entries = [
            ready.Entry(generation, keys.suffix_of(key), key, value)
            for generation, keys, read in reads
            for key, value in read.wait()
        ]
        entries.sort(key=lambda entry: entry.suffix, reverse=side == "max")
        shown = entries[:limit]
        if ahead.tried():
            shown = ready.with_attempts(tr, self._keys, config, shown)
        more = len(entries) > limit
        return Page(
            items=tuple(ready.as_item(entry, config, preview=preview) for entry in shown),
            cursor=cursors.encode(self.id, side, shown[-1].suffix) if more else None,
        )


def _plain(values: Sequence[Any], priorities: Sequence[Any]) -> bool:
    """Say whether these may go into a queue of whole numbers as they are, as almost all do."""
    return (
        {*map(type, values)} == {bytes}
        and {*map(type, priorities)} == {int}
        and max(map(len, values)) <= MAX_VALUE_SIZE
        and min(priorities) > -_SMALL
        and max(priorities) < _SMALL
    )


def _own_when(when: Sequence[object]) -> Moment | None:
    if len(when) > 1:
        raise BadTime("An item is a value, a priority and at most one delay or due time.")
    return check_when(when[0])


def check_end(end: str) -> End:
    """Return an end by its name; raise `BadEnd`."""
    if end not in _ENDS:
        raise BadEnd("The ends of a queue are min and max (FIFO: head and tail), not {end}.", end=repr(end))
    return _ENDS[end]


def _only(items: list[Item]) -> Item | None:
    return items[0] if items else None


def _window(keys: GenerationKeys, end: End, suffix: bytes | None, priority: Priority | None) -> tuple[bytes, bytes]:
    begin, stop = keys.ready_range
    if suffix is not None:
        place = keys.ready(suffix)
        return (place + b"\x00", stop) if end == "min" else (begin, place)
    if priority is not None:
        first, last = keys.from_priority(priority)
        return (first, stop) if end == "min" else (begin, last)
    return begin, stop
