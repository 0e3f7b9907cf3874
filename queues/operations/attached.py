"""The verbs of attached queues, with items in a subspace that other programs write by FoundationDB's recipes.

Ages are unknown, depths are counted, and other programs would not keep to a pause, a delay or a lease: there are none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

from queues.errors import STATE_WORDS, NotForAttached
from queues.items import attached
from queues.items.counters import total
from queues.items.scan import Found as Pairs
from queues.items.scan import Lane, Met, Order
from queues.keys.queue_keys import AttachedKeys
from queues.kv.port import MAX_KEY_SIZE, KeyValue, ReadTransaction, Result, Transaction
from queues.model import cursor as cursors
from queues.model.config import Config
from queues.model.cursor import End
from queues.model.foreign_tuples import parse_id
from queues.model.item import Item, Page
from queues.operations.measure import DepthRequest, OldestRequest, StatusRequest, TotalsRequest, depth_request
from queues.operations.open_queue import OpenQueue, executes, reads
from queues.operations.peek import PageRequest, window_of
from queues.operations.pop import PopRequest, RemoveRequest, deal, fitting, wanted_of, with_times
from queues.operations.push import PushManyRequest, PushRequest, as_many, together, with_ids
from queues.operations.search import FindRequest, Found, Layout, SearchRequest, search
from queues.status import attached_status
from queues.status.attached_counts import count_within
from queues.status.status import QueueStatus, Totals, TotalsRead

#: Items and bytes of one chunk of a purge: each item is written into the trash.
MAX_CHUNK, CHUNK_BYTES = 200, 1_000_000


def _keys(queue: OpenQueue) -> AttachedKeys:
    assert queue.foreign is not None
    return queue.foreign


@executes(PushRequest, PushManyRequest, attached=True, prepare=with_ids)
def push(queue: OpenQueue, tr: Transaction, requests: Sequence[PushRequest | PushManyRequest]) -> Sequence[Any]:
    """Push for as many as fit together, each item behind the last of its priority."""
    config = queue.current(tr)
    pushes = together([as_many(request) for request in requests])
    values = list(chain.from_iterable(push.values for push in pushes))
    ids = list(chain.from_iterable(push.ids for push in pushes))
    items = iter(attached.insert(tr, queue.keys, _keys(queue), values, ids, config) if values else ())
    pushed = [list(islice(items, len(push.values))) for push in pushes]
    return [
        each[0] if isinstance(request, PushRequest) else each for request, each in zip(requests, pushed, strict=False)
    ]


@executes(PopRequest, attached=True, contended=True, prepare=with_times)
def pop(queue: OpenQueue, tr: Transaction, requests: Sequence[PopRequest]) -> Sequence[list[Item]]:
    """Pop for each in turn. The last ones get no answer when there is no room."""
    foreign, source = _keys(queue), tr if requests[0].serializable else tr.snapshot
    fit = fitting(queue, requests)
    wanted = wanted_of(fit)

    def issue(_: Config) -> dict[End, Result[list[KeyValue]]]:
        return {end: _head(source, foreign, n, end) for end, n in wanted.items()}

    config, heads = queue.with_config(tr, issue)
    ends = {end: head.wait() for end, head in heads.items()}
    if read := [*chain.from_iterable(ends.values())]:
        queue.item_size = sum(len(value) for _, value in read) // len(read) + 1
    hands = deal(fit, ends, {})
    return [attached.take(tr, queue.keys, foreign, pairs, config, "pop") if pairs else [] for pairs in hands]


def _head(tr: ReadTransaction, foreign: AttachedKeys, n: int, end: End) -> Result[list[KeyValue]]:
    return tr.get_range(*foreign.all, limit=n, reverse=end == "max")


@executes(RemoveRequest, attached=True)
def remove(queue: OpenQueue, tr: Transaction, requests: Sequence[RemoveRequest]) -> Sequence[Item | None]:
    """Remove the item of the first request."""
    request, foreign, config = requests[0], _keys(queue), queue.current(tr)
    suffix = parse_id(request.item_id)
    if suffix is None or not foreign.holds(suffix):
        return [None]
    pairs = tr.get_range(*foreign.only(suffix), limit=1).wait()
    taken = attached.take(tr, queue.keys, foreign, pairs, config, request.verb) if pairs else []
    return [taken[0] if taken else None]


# Looking


@reads(PageRequest, attached=True)
def page(tr: ReadTransaction, queue: OpenQueue, request: PageRequest) -> Page:
    """Return a page of items."""
    foreign, limit, reverse = _keys(queue), request.limit, request.end == "max"
    window = window_of(foreign, request)
    config, read = queue.with_config(tr, lambda _: tr.get_range(*window, limit=limit + 1, reverse=reverse))
    pairs = read.wait()
    shown = [
        attached.as_item(foreign.suffix_of(key), value, fifo=config.fifo, codec=config.values, preview=request.preview)
        for key, value in pairs[:limit]
    ]
    more = len(pairs) > limit
    last = foreign.suffix_of(pairs[limit - 1][0]) if more else b""
    return Page(items=tuple(shown), cursor=cursors.encode(queue.id, request.end, last) if more else None)


@reads(DepthRequest, attached=True)
def depth(tr: ReadTransaction, queue: OpenQueue, request: DepthRequest) -> int:
    """Count the items within one transaction."""
    check_state(queue, request.state)
    queue.current(tr)
    return count_within(tr, _keys(queue))


def count(queue: OpenQueue, state: str) -> int:
    """Count the items of a state by many short reads, in no transaction of the caller."""
    depth_request(queue, state)
    check_state(queue, state)
    return queue.context.counts.count(queue.context.kv.read(queue.current)).depth


def count_unless(queue: OpenQueue, stop: Callable[[], bool]) -> int | None:
    """Count the ready items until `stop`, asked again and again, says so: None."""
    counted = queue.context.counts.count_unless(stop, queue.context.kv.read(queue.current))
    return None if counted is None else counted.depth


def check_state(queue: OpenQueue, state: str) -> None:
    """Raise `NotForAttached` for a state that items of attached queues are never in."""
    if state != "ready":
        raise NotForAttached(
            queue.config.name, "its items are ready or gone, not {state}.", state=STATE_WORDS.get(state, state)
        )


@reads(TotalsRequest, attached=True)
def totals(tr: ReadTransaction, queue: OpenQueue, request: TotalsRequest) -> Totals:
    """Count the items within one transaction, and read the traffic that came through this program."""
    return totals_of(tr, queue, depth(tr, queue, DepthRequest(queue.id, "ready")))


def totals_of(tr: ReadTransaction, queue: OpenQueue, ready: int) -> Totals:
    """Return the totals of a queue of this depth."""
    return Totals(ready=ready, delayed=0, leased=0, dead=0, traffic=TotalsRead(tr, queue.keys.traffic).wait())


@reads(OldestRequest, attached=True)
def oldest(tr: ReadTransaction, queue: OpenQueue, request: OldestRequest) -> None:
    """Return None: the keys of other programs do not tell when an item was pushed."""
    queue.current(tr)


@reads(StatusRequest, attached=True)
def status(tr: ReadTransaction, queue: OpenQueue, request: StatusRequest) -> QueueStatus:
    """Return the status, with the depth as it was counted last; have it counted again."""
    change, context = tr.get(queue.keys.change), queue.context
    config, counts, now = queue.current(tr), context.counts, context.clock.now()
    counts.want([queue.id])
    return attached_status.begin_status(
        tr, context.keyspace, config, total(change.wait()), request.preview, counts=counts, now=now
    )()


@reads(FindRequest, attached=True)
def find(tr: ReadTransaction, queue: OpenQueue, request: FindRequest) -> Item | None:
    """Return the item of an id, which is its key."""
    suffix = parse_id(request.item_id)
    return None if suffix is None else attached.find(tr, _keys(queue), suffix, queue.current(tr))


class _AttachedLayout(Layout):
    """Items by their keys, in one stretch."""

    def __init__(self, tr: ReadTransaction, queue: OpenQueue, request: SearchRequest) -> None:
        check_state(queue, request.query.state)
        if request.query.since is not None or request.query.until is not None:
            raise NotForAttached(queue.config.name, "its keys do not say when an item was pushed.")
        super().__init__(tr, queue, request)

    def names_item(self) -> bool:
        return self.query.item_id.startswith("key-")

    def find(self) -> Item | None:
        return find(self.tr, self.queue, FindRequest(self.queue.id, self.query.item_id.lower()))

    def lanes(self, order: Order) -> list[Lane]:
        foreign, query = _keys(self.queue), self.query
        begin, end = foreign.all
        if query.low is not None:
            # Other programs may have written −0.0, which equals 0.0 and sorts before it.
            low = -0.0 if query.low == 0.0 and isinstance(query.low, float) else query.low
            begin = foreign.below(low)[0]
        if query.high is not None:
            end = foreign.below(query.high)[1]
        return [Lane(1, (begin, end), foreign.at, foreign.suffix_of)]

    def meet(self, order: Order, found: Sequence[Pairs]) -> list[Met | None]:
        fifo, codec = self.config.fifo, self.config.values
        return [
            Met(place, value, partial(attached.as_item, place, value, fifo=fifo, codec=codec))
            for place, _, (_, value) in found
        ]

    def order(self) -> Order:
        return "place"

    def with_pasts(self, found: Sequence[Item]) -> Sequence[Item]:
        return found


@reads(SearchRequest, attached=True)
def search_attached(tr: ReadTransaction, queue: OpenQueue, request: SearchRequest, **local: Any) -> Found:
    """Do one step of a search."""
    return search(tr, queue, request, layout=_AttachedLayout, **local)


# Purging


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What one step of a purge took."""

    items: tuple[Item, ...]
    #: Items left where they are, because their keys are too long to be put back.
    skipped: int
    #: Where the next step goes on; None: that was all.
    place: bytes | None


def last_place(tr: ReadTransaction, queue: OpenQueue) -> bytes | None:
    """Return the place of the last item, for a purge that takes no more than is there when it begins."""
    queue.current(tr)
    foreign = _keys(queue)
    key = tr.get_key(*foreign.all, reverse=True).wait()
    return None if key is None else foreign.suffix_of(key)


def take_chunk(tr: Transaction, queue: OpenQueue, *, after: bytes | None, last: bytes, limit: int) -> Chunk:
    """Take at most `limit` items behind the place `after`, up to the place `last`: key by key, never as a range."""
    config, foreign = queue.current(tr), _keys(queue)
    begin = foreign.all[0] if after is None else foreign.only(after)[1]
    end = foreign.only(last)[1]
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
    removed = attached.take(tr, queue.keys, foreign, ours, config, "purge") if ours else []
    more = len(taken) < len(pairs) or len(pairs) == limit
    return Chunk(
        items=tuple(removed),
        skipped=len(taken) - len(ours),
        place=foreign.suffix_of(taken[-1][0]) if more else None,
    )
