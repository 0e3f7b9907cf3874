"""The verbs of an attached queue: those of our own, as far as they need nobody else to take part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from queues.context import StoreContext
from queues.errors import STATE_WORDS, NotForAttached
from queues.items import attached
from queues.items.counters import total
from queues.items.scan import Found, Lane, Met, Order
from queues.keys.queue_keys import AttachedKeys
from queues.kv.port import MAX_KEY_SIZE, KeyValue, ReadTransaction, Result, Transaction
from queues.model import cursor as cursors
from queues.model.config import Config
from queues.model.cursor import End
from queues.model.foreign_tuples import parse_id
from queues.model.item import Item, Page
from queues.model.priority import Priority
from queues.operations.search import Query
from queues.operations.wait import Outlook
from queues.queue import Queue
from queues.serving.take_request import Take, Taken, deal
from queues.status import attached_status
from queues.status.attached_counts import count_within
from queues.status.status import QueueStatus, Totals, TrafficRead

#: Seconds between two looks of whoever waits for items, as what others push tells nobody: while something comes, and at
#: most; and how much later each look is that finds nothing.
BUSY_LOOK, IDLE_LOOK, SLOWER = 0.05, 0.1, 0.005
#: Items and bytes of one chunk of a purge: each item is written into the trash.
MAX_CHUNK, CHUNK_BYTES = 200, 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What one step of a purge took."""

    items: tuple[Item, ...]
    #: Items left where they are, because their keys are too long to be put back.
    skipped: int
    #: Where the next step goes on; None: that was all.
    place: bytes | None


class AttachedQueue(Queue):
    """A queue whose items lie in a subspace that others write by FoundationDB's recipes. Thread-safe.

    Ages are unknown, depths are counted, and nobody else would keep to a pause, a delay or a lease: there are none.
    """

    def __init__(self, context: StoreContext, config: Config) -> None:
        super().__init__(context, config)
        assert config.prefix is not None
        self._foreign = AttachedKeys(config.prefix)

    # Looking

    def depth(self, state: str = "ready", *, tr: ReadTransaction | None = None) -> int:
        """Count the ready items: exact when nothing changes meanwhile. The cost grows with the depth.

        Alone it goes by many short reads; with `tr` it is one transaction's reading, five seconds at most.
        """
        if state != "ready":
            raise NotForAttached(
                self.name, "its items are ready or gone, not {state}.", state=STATE_WORDS.get(state, state)
            )
        if tr is None:
            return self._context.counts.count(self._context.kv.read(self._current)).depth
        self._current(tr)
        return count_within(tr, self._foreign)

    def totals(self, *, tr: ReadTransaction | None = None) -> Totals:
        """Return the counted depth, and the traffic that came through us."""
        ready = self.depth(tr=tr)
        traffic = self._context.read(lambda tr: TrafficRead(tr, self._keys).wait(), tr)
        return Totals(ready=ready, delayed=0, leased=0, dead=0, traffic=traffic)

    def oldest(self, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return None: others' keys do not say when an item was pushed."""
        self._context.read(self._current, tr)
        return None

    def find(self, item_id: str, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the item of this id, which is its key; None when it was taken or never was here."""
        suffix = parse_id(item_id)
        if suffix is None:
            return None

        def look(tr: ReadTransaction) -> Item | None:
            return attached.find(tr, self._foreign, suffix, self._current(tr))

        return self._context.read(look, tr)

    def status(self, *, preview: int = 256, tr: ReadTransaction | None = None) -> QueueStatus:
        """Return everything that a screen shows of this queue; its depth as it was counted last."""
        counts, now = self._context.counts, self._context.now()

        def look(tr: ReadTransaction) -> QueueStatus:
            change = tr.get(self._keys.change)
            config = self._current(tr)
            return attached_status.begin_status(
                tr, self._keys, config, total(change.wait()), preview, counts=counts, now=now
            )()

        found = self._context.read(look, tr)
        counts.want([self.id])
        return found

    def depth_unless(self, stop: Callable[[], bool]) -> int | None:
        """Count the ready items until `stop`, asked again and again, says so: None."""
        count = self._context.counts.count_unless(stop, self._context.kv.read(self._current))
        return None if count is None else count.depth

    # Not for attached queues

    def pause(self, *, reason: str, until: datetime | None = None, by: str = "", tr: Transaction | None = None) -> None:
        """Raise `NotForAttached`: others would go on taking."""
        raise NotForAttached(self.name, "it cannot be paused, as others would go on taking.")

    def resume(self, *, tr: Transaction | None = None) -> None:
        """Raise `NotForAttached`."""
        raise NotForAttached(self.name, "it is never paused.")

    # Searching

    def _check_query(self, query: Query) -> None:
        if query.state != "ready":
            raise NotForAttached(self.name, "its items are ready or gone, not {state}.", state=STATE_WORDS[query.state])
        if query.since is not None or query.until is not None:
            raise NotForAttached(self.name, "its keys do not say when an item was pushed.")

    def _lanes(self, config: Config, order: Order, query: Query) -> list[Lane]:
        begin, end = self._foreign.range
        if query.low is not None:
            # Others may have written −0.0, which equals 0.0 and sorts before it.
            begin = self._foreign.from_priority(
                -0.0 if query.low == 0.0 and isinstance(query.low, float) else query.low
            )[0]
        if query.high is not None:
            end = self._foreign.from_priority(query.high)[1]
        return [Lane(1, begin, end, self._foreign.key, self._foreign.suffix_of)]

    def _order(self, tr: ReadTransaction, config: Config, query: Query, scan: int) -> Order:
        return "place"

    def _meet(
        self, tr: ReadTransaction, config: Config, order: Order, state: str, found: Sequence[Found]
    ) -> list[Met | None]:
        return [
            Met(place, value, partial(attached.as_item, place, value, fifo=config.fifo, codec=config.values))
            for place, _, (_, value) in found
        ]

    def _attempts(self, tr: ReadTransaction, config: Config, found: Sequence[Item]) -> list[Item]:
        return list(found)

    # Bulk

    def last_place(self) -> bytes | None:
        """Return the place of the last item, for a purge that takes no more than is there when it begins."""

        def look(tr: ReadTransaction) -> bytes | None:
            self._current(tr)
            key = tr.get_key(*self._foreign.range, reverse=True).wait()
            return None if key is None else self._foreign.suffix_of(key)

        return self._context.read(look, None)

    def take_chunk(self, tr: Transaction, *, after: bytes | None, last: bytes, limit: int) -> Chunk:
        """Take at most `limit` items behind the place `after`, up to the place `last`: key by key, never as a range."""
        config = self._current(tr)
        begin = self._window("min", after, None)[0]
        end = self._foreign.only(last)[1]
        limit = min(limit, MAX_CHUNK)
        pairs = tr.snapshot.get_range(begin, end, limit=limit).wait()
        taken: list[KeyValue] = []
        room = CHUNK_BYTES
        for pair in pairs:
            if taken and len(pair[1]) > room:
                break
            taken.append(pair)
            room -= len(pair[1])
        ours = [pair for pair in taken if len(pair[0]) <= MAX_KEY_SIZE]
        removed = attached.take(tr, self._keys, self._foreign, ours, config, "purge") if ours else []
        more = len(taken) < len(pairs) or len(pairs) == limit
        return Chunk(
            items=tuple(removed),
            skipped=len(taken) - len(ours),
            place=self._foreign.suffix_of(taken[-1][0]) if more else None,
        )

    # What the verbs are made of

    def _insert(self, values: Sequence[tuple[bytes, Priority | None]], tr: Transaction | None) -> list[Item]:
        rands = self._rands(values)
        if not rands:
            return []

        def write(tr: Transaction) -> list[Item]:
            return attached.insert(tr, self._keys, self._foreign, values, rands, self._current(tr))

        return self._context.transact(write, tr)

    def _serve_takes(self, tr: Transaction, takes: Sequence[Take], *, serializable: bool) -> Sequence[Taken]:
        wanted: dict[End, int] = {}
        for take in takes:
            wanted[take.end] = wanted.get(take.end, 0) + take.n

        def issue(_: Config) -> dict[End, Result[list[KeyValue]]]:
            source = tr if serializable else tr.snapshot
            return {end: self._head(source, n, end) for end, n in wanted.items()}

        config, heads = self._with_config(tr, issue)
        hands = deal(takes, {end: head.wait() for end, head in heads.items()})
        return [attached.take(tr, self._keys, self._foreign, pairs, config, "pop") if pairs else [] for pairs in hands]

    def _remove(self, tr: Transaction, item_id: str, verb: str) -> Item | None:
        suffix = parse_id(item_id)
        config = self._current(tr)
        if suffix is None or not self._foreign.holds(suffix):
            return None
        pairs = tr.get_range(*self._foreign.only(suffix), limit=1).wait()
        taken = attached.take(tr, self._keys, self._foreign, pairs, config, verb) if pairs else []
        return taken[0] if taken else None

    def _peek(self, end: End, tr: ReadTransaction | None) -> Item | None:
        def look(tr: ReadTransaction) -> Item | None:
            config, head = self._with_config(tr, lambda _: self._head(tr, 1, end))
            found = [
                attached.as_item(self._foreign.suffix_of(key), value, fifo=config.fifo, codec=config.values)
                for key, value in head.wait()
            ]
            return found[0] if found else None

        return self._context.read(look, tr)

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
        begin, end = self._window(side, suffix, priority)
        pairs = tr.get_range(begin, end, limit=limit + 1, reverse=side == "max").wait()
        shown = [
            attached.as_item(
                self._foreign.suffix_of(key), value, fifo=config.fifo, codec=config.values, preview=preview
            )
            for key, value in pairs[:limit]
        ]
        more = len(pairs) > limit
        last = self._foreign.suffix_of(pairs[limit - 1][0]) if more else b""
        return Page(items=tuple(shown), cursor=cursors.encode(self.id, side, last) if more else None)

    def _outlook(self, tr: ReadTransaction) -> Outlook:
        wake, first = tr.get(self._keys.wake), tr.get_key(*self._foreign.range)
        self._current(tr)
        return Outlook(known={self._keys.wake: wake.wait()}, ready=0 if first.wait() is None else 1)

    def _rest(self, outlook: Outlook, looks: int) -> float:
        return min(BUSY_LOOK + SLOWER * looks, IDLE_LOOK)

    def _window(self, side: End, suffix: bytes | None, priority: Priority | None) -> tuple[bytes, bytes]:
        begin, end = self._foreign.range
        if suffix is not None:
            first, behind = self._foreign.only(suffix)
            return (behind, end) if side == "min" else (begin, first)
        if priority is not None:
            first, behind = self._foreign.from_priority(priority)
            return (first, end) if side == "min" else (begin, behind)
        return begin, end

    def _head(self, tr: ReadTransaction, n: int, end: End) -> Result[list[KeyValue]]:
        return tr.get_range(*self._foreign.range, limit=n, reverse=end == "max")


def open_queue(context: StoreContext, config: Config) -> Queue:
    """Return the handle that fits a queue's config."""
    return AttachedQueue(context, config) if config.attached else Queue(context, config)
