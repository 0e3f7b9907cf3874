"""Delays: items that become ready later, and the verbs about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from math import ceil

from queues.errors import BadTime, NaiveTime
from queues.items import delayed, transition
from queues.items.counters import CounterDelta
from queues.items.equal_ids import taken
from queues.items.scan import page
from queues.items.stored_item import as_item, find
from queues.keys.suffix import ready_suffix
from queues.kv.port import ReadTransaction, Result, Transaction
from queues.model import ids
from queues.model.config import Config
from queues.model.duration import Duration, delay_of
from queues.model.item import Item, Page
from queues.model.priority import Priority
from queues.operations.handle import check_limit
from queues.operations.pop import Taking
from queues.serving.lease_batch import Errand, Finish

#: How long to wait from now, or until when.
When = Duration | datetime

#: The same, checked.
Moment = timedelta | datetime

_MILLISECOND = timedelta(milliseconds=1)


class Delays(Taking):
    """The verbs of delayed items."""

    def promote(self, limit: int = 100, *, tr: Transaction | None = None) -> int:
        """Make at most `limit` items (1 to 1,000) that are due ready, in due order, and return their number.

        Never early by the store's clock. Sweeps call this until it returns 0, and pops for what is late; two at once
        do each item once. A call stops early at 1 MB of values.
        """
        self._own("its items are never delayed.")
        check_limit(limit)
        now_ms = self._context.now_ms()
        return self._context.transact(
            lambda tr: delayed.promote_due(tr, self._keys, self._current(tr), until_ms=now_ms, limit=limit), tr
        )

    def promote_now(self, item_id: str, *, tr: Transaction | None = None) -> Item | None:
        """Make one delayed item ready, due or not, and return it; None when no delayed item has this id."""
        return self._move_due(item_id, None, tr)

    def reschedule(
        self,
        item_id: str,
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
        tr: Transaction | None = None,
    ) -> Item | None:
        """Let a delayed item become ready at another time, now included, and return it; None when none has this id."""
        when = either(delay, due)
        if when is None:
            raise BadTime("Say when the item shall be due: delay= or due=.")
        return self._move_due(item_id, self._due_ms(when), tr)

    def delayed(
        self,
        *,
        limit: int = 50,
        after: str | None = None,
        preview: int | None = None,
        tr: ReadTransaction | None = None,
    ) -> Page:
        """Return a page of delayed items, the next due first, changing nothing.

        `after` is the cursor of the page before; values are cut to `preview` bytes.
        """
        self._own("its items are never delayed.")

        def look(tr: ReadTransaction, config: Config, behind: bytes | None, limit: int) -> list[tuple[bytes, Item]]:
            return page(tr, self._keys, config, "delayed", after=behind, limit=limit, preview=preview)

        return self._state_page("delayed", look, limit=limit, after=after, tr=tr)

    # Inside

    def _move_due(self, item_id: str, due_ms: int | None, tr: Transaction | None) -> Item | None:
        self._own("its items are never delayed.")
        rand = ids.parse(item_id)
        now_ms = self._context.now_ms()

        def write(tr: Transaction) -> Item | None:
            config = self._current(tr)
            (there,) = find(tr, self._keys, config, [rand], ["delayed"])
            if there is None:
                return None
            delta = CounterDelta(self._keys, wake=False)
            if due_ms is None:
                after = transition.promoted(there, config, config.base + tr.stamp())
                delta.traffic("promote")
            else:
                after = transition.delayed_until(there, config, due_ms)
            tr.use_reserve()
            transition.refuse_taken(tr, self._keys, config, [(there, after)])
            transition.change(tr, self._keys, config, there, after, delta, now_ms=now_ms)
            delta.apply(tr)
            return as_item(after, fifo=config.fifo, codec=config.values)

        return self._context.transact(write, tr)

    def _push(
        self, entries: Sequence[tuple[bytes, Priority | None, Moment | None]], tr: Transaction | None
    ) -> list[Item]:
        """Push values, each at once or delayed."""
        values = [(value, priority) for value, priority, _ in entries]
        if all(when is None for _, _, when in entries):
            return self._insert(values, tr)
        pushed: list[Item] = self._run(self._delaying(entries), tr)
        return pushed

    def _delaying(self, entries: Sequence[tuple[bytes, Priority | None, Moment | None]]) -> Errand:
        """Return the errand that pushes values of which some are delayed."""
        values = [(value, priority) for value, priority, _ in entries]
        self._own("its items cannot be delayed, as others would take them before.")
        dues = [None if when is None else self._due_ms(when) for _, _, when in entries]
        rands = self._rands(values)
        now_ms = self._context.now_ms()

        def stored(generation: int) -> list[bytes]:
            states = ["ready" if due_ms is None else "delayed" for due_ms in dues]
            return [self._keys.index(state, rand, generation) for state, rand in zip(states, rands, strict=True)]

        def begin(tr: Transaction) -> Finish:
            # Together with the config, so that it takes no longer: no other push has these keys.
            generation = self.config.generations[-1]
            return partial(finish, tr, generation, [tr.get(key) for key in stored(generation)])

        def finish(
            tr: Transaction,
            generation: int,
            held: list[Result[bytes | None]],
            config: Config,
            delta: CounterDelta,
        ) -> list[Item]:
            self._admit(tr, config, values)
            if config.generations[-1] != generation:
                held = [tr.get(key) for key in stored(config.generations[-1])]
            if any(read.wait() is not None for read in held):
                raise taken()
            delta.traffic("push", len(values))
            items = []
            for (value, priority), rand, due_ms in zip(values, rands, dues, strict=True):
                if due_ms is None:
                    suffix = ready_suffix(priority, config.base + tr.stamp(), rand)
                    there = transition.new_ready(rand, value, config, suffix)
                else:
                    there = transition.new_delayed(rand, value, config, priority, due_ms)
                transition.change(tr, self._keys, config, None, there, delta, now_ms=now_ms)
                items.append(as_item(there, fifo=config.fifo, codec=config.values))
            return items

        size = sum(len(value) for value, _ in values)
        return Errand(begin=begin, rands=tuple(rands), size=size)

    def _due_ms(self, when: Moment) -> int | None:
        """Return when an item is due, never early; None: now."""
        return due_ms(when, self._context.clock())


def due_ms(when: Moment, seconds: float) -> int | None:
    """Return when an item is due, never early; None: now, which is so many seconds since the epoch."""
    if isinstance(when, timedelta):
        if when <= timedelta(0):
            return None
        due = ceil(seconds * 1000) + _milliseconds(when)
    else:
        due = _milliseconds(when - ids.EPOCH)
        if due <= int(seconds * 1000):
            return None
    if due > ids.LAST_MS:
        raise BadTime("An item is due before the year 10000.")
    return due


def _milliseconds(span: timedelta) -> int:
    """Return a span in milliseconds, rounded up."""
    whole, rest = divmod(span, _MILLISECOND)
    return whole + bool(rest)


def either(delay: Duration | None, due: datetime | None) -> Moment | None:
    """Return the one of both that is given, checked; raise `BadTime`."""
    if delay is not None and due is not None:
        raise BadTime("An item has a delay or a due time, not both.")
    if due is not None and not isinstance(due, datetime):
        raise BadTime("A due time is a datetime, not {type}.", type=type(due).__name__)
    return check_when(due) if delay is None else delay_of(delay)


def check_when(when: object) -> Moment | None:
    """Return a delay or a due time, or None for at once; raise `BadTime` for anything else."""
    if isinstance(when, datetime):
        if when.utcoffset() is None:
            raise NaiveTime("A due time needs a time zone: a naive datetime says no moment.")
        return when
    return None if when is None else delay_of(when)
