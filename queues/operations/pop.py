"""Taking from the ends of a queue: pops and leases, those of many callers in one transaction.

The requests of a batch are executed in their order, as if one came after the other; each end is read once for all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter, itemgetter
from typing import TypeVar

from msgspec.structs import replace

from queues.errors import QueuePaused, display_name
from queues.items import delayed, finished, lease_expiry, leased, ready
from queues.items.counters import CounterDelta
from queues.items.stored_item import ItemRead, PlaceRead, StoredItem
from queues.kv.port import KeyValue, Transaction
from queues.model import ids
from queues.model.config import Config, Pause
from queues.model.cursor import End
from queues.model.item import Item
from queues.model.records import UNREADABLE, reading
from queues.operations.open_queue import OpenQueue, Request, check_number, executes
from queues.serving.batch import Batch, Execution
from queues.serving.staging import Staging

#: Bytes of values that one batch takes; a request alone may take more.
BATCH_BYTES = 1_000_000
#: Bytes of one hand that are written elsewhere: by leases items and logs, by pops into the trash at least the logs. A
#: process that takes for another one writes leases twice.
HAND_BYTES = 4_000_000
#: Bytes of values that one batch reads, as far as they can be guessed from the batch before.
_READ_BYTES = 2_000_000
#: A batch first promotes and expires some of what is late by more than so many milliseconds: so late it is only where
#: no process sweeps.
LATE_MS = 250
#: What it promotes and expires at most: which delayed items, of a window, is left to chance.
_WINDOW, _FEW = 100, 8


class PopRequest(Request[list[Item]], frozen=True, gc=False):
    """Take at most `n` items from one end; the answer is their list."""

    n: int
    end: End
    #: 0: when it is executed.
    now_ms: int = 0
    #: The read of the end conflicts too, as a caller's transaction may decide by it; and nothing late is done first.
    serializable: bool = False
    #: Seconds for which a server may wait for an item; batches do not wait.
    wait: float = 0.0
    #: The worker in the records of finished items; None: a person pops, so audit and trash tell instead.
    taker: str | None = None


class LeaseRequest(Request[list[StoredItem]], frozen=True, gc=False):
    """Hold at most `n` items from one end for a time; the answer is the list of their leases."""

    n: int
    end: End
    now_ms: int
    expires_ms: int
    worker: str
    #: One for each lease: what tells it from earlier ones of the same item.
    nonces: tuple[bytes, ...]
    #: As those of `PopRequest`.
    serializable: bool = False
    wait: float = 0.0


TakeRequest = PopRequest | LeaseRequest
Taken = list[Item] | list[StoredItem]


def pop_request(queue: OpenQueue, n: int, end: End, tr: Transaction | None, *, by_hand: bool = False) -> PopRequest:
    """Return the request to pop at most `n` items; raise `BadLimit`."""
    check_number(n)
    return PopRequest(queue.id, n, end, 0, tr is not None, taker=None if by_hand else queue.taker)


R = TypeVar("R", PopRequest, LeaseRequest)


def waiting(request: R, seconds: float) -> R:
    """Return the request as it is sent to a server that waits so long for an item."""
    return replace(request, wait=seconds) if seconds else request


# Executing

_n, _now_ms = attrgetter("n"), attrgetter("now_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Front:
    """The items at the ends of a queue."""

    config: Config
    #: The first to leave first.
    ends: Mapping[End, list[KeyValue]]
    #: The items that have a past, by key.
    pasts: Mapping[bytes, StoredItem]
    #: Something was due.
    late: bool


def _staged(queue: OpenQueue, execution: Execution) -> Batch:
    return Staging(queue, execution, kinds=TakeRequest, idle=PopRequest(queue.id, 0, "min"))


def with_times(queue: OpenQueue, requests: Sequence[TakeRequest]) -> Sequence[TakeRequest]:
    """Return the requests with the time of those that tell none."""
    now_ms, first = queue.context.clock.now_ms(), requests[0]
    if not first.now_ms and requests.count(first) == len(requests):  # so are most
        return [replace(first, now_ms=now_ms)] * len(requests)
    return [request if request.now_ms else replace(request, now_ms=now_ms) for request in requests]


@executes(PopRequest, LeaseRequest, contended=True, batch=_staged, prepare=with_times)
def take(queue: OpenQueue, tr: Transaction, requests: Sequence[TakeRequest]) -> Sequence[Taken]:
    """Take for as many as fit together, in turn, and return what each gets; raise `QueueUnreadable`."""
    try:
        return _take(queue, tr, fitting(queue, requests))
    except UNREADABLE:
        with reading(queue.config.name):  # only here: it would cost each batch
            raise


def _take(queue: OpenQueue, tr: Transaction, requests: Sequence[TakeRequest]) -> Sequence[Taken]:
    alike = _are_alike(requests)
    now_ms = requests[0].now_ms if alike else max(map(_now_ms, requests))
    front = _front_of(tr, queue, [_together(requests)] if alike else requests, now_ms)
    if read := [*chain.from_iterable(front.ends.values())]:
        size = sum(map(len, map(itemgetter(1), read)))
        queue.item_size = size // len(read) + 1
        if alike and size <= BATCH_BYTES and not front.pasts and not front.config.keep_finished:
            return _pop_alike(tr, queue, front, requests, now_ms)
    else:
        ready.note_drift(tr, queue.keys, front.config)
    hands = deal(requests, front.ends, front.pasts)
    delta = CounterDelta(queue.keys, wake=False)
    dealt = list(zip(requests, hands, strict=False))
    popped = [pair for request, hand in dealt if isinstance(request, PopRequest) for pair in hand]
    items: Iterator[Item] = iter(())
    if popped:
        items = iter(ready.take_pairs(tr, queue.keys, front.config, popped, now_ms, delta, pasts=front.pasts))
    grants = [
        leased.Grant(hand, request.now_ms, request.expires_ms, request.worker, request.nonces)
        for request, hand in dealt
        if hand and isinstance(request, LeaseRequest)
    ]
    leases: Iterator[list[StoredItem]] = iter(())
    if grants:
        leases = iter(leased.begin(tr, queue.keys, front.config, grants, delta, now_ms=now_ms, pasts=front.pasts))
    if front.config.keep_finished:
        _keep(queue, tr, front, dealt, now_ms, delta)
    answers: list[Taken] = [
        list(islice(items, len(hand))) if isinstance(request, PopRequest) else next(leases) if hand else []
        for request, hand in dealt
    ]
    if any(hands):
        delta.apply(tr)
    return answers


def _are_alike(requests: Sequence[TakeRequest]) -> bool:
    """Say whether all are the same pop, as most are."""
    first = requests[0]
    return type(first) is PopRequest and first.n > 0 and requests.count(first) == len(requests)


def _together(requests: Sequence[TakeRequest]) -> TakeRequest:
    """Return one request that wants as much as so many that are alike."""
    return replace(requests[0], n=requests[0].n * len(requests))


def _pop_alike(
    tr: Transaction, queue: OpenQueue, front: _Front, requests: Sequence[TakeRequest], now_ms: int
) -> Sequence[list[Item]]:
    """Pop for requests that are alike, in slices of the items at their end; `deal` does the same for any."""
    first, delta = requests[0], CounterDelta(queue.keys, wake=False)
    items = ready.take_pairs(tr, queue.keys, front.config, front.ends[first.end], now_ms, delta, pasts={})
    delta.apply(tr)
    return [items[at : at + first.n] for at in range(0, first.n * len(requests), first.n)]


def _keep(
    queue: OpenQueue,
    tr: Transaction,
    front: _Front,
    dealt: Iterable[tuple[TakeRequest, list[KeyValue]]],
    now_ms: int,
    delta: CounterDelta,
) -> None:
    """Write the records of what programs pop."""
    for request, hand in dealt:
        if isinstance(request, PopRequest) and request.taker is not None:
            gone = ready.stored(queue.keys, front.config, hand, front.pasts)
            keyspace, taker = queue.context.keyspace, request.taker
            finished.keep(tr, keyspace, front.config, gone, delta, now_ms=now_ms, taker=taker)


def wanted_of(requests: Sequence[TakeRequest]) -> Mapping[End, int]:
    """Return how many items are wanted from each end."""
    wanted: dict[End, int] = {}
    for request in requests:
        wanted[request.end] = wanted.get(request.end, 0) + request.n
    return wanted


def fitting(queue: OpenQueue, requests: Sequence[TakeRequest]) -> Sequence[TakeRequest]:
    """Return the first requests for items that can be read at once, one at least."""
    room = min(ready.MAX_ITEMS, _READ_BYTES // queue.item_size)
    if sum(map(_n, requests)) <= room:
        return requests
    for at, request in enumerate(requests):
        room -= request.n
        if at and room < 0:
            return requests[:at]
    return requests


def _front_of(tr: Transaction, queue: OpenQueue, requests: Sequence[TakeRequest], now_ms: int) -> _Front:
    """Return the items at the ends, as far as wanted; if asked, late items are processed first."""
    wanted = wanted_of(requests)
    if requests[0].serializable:
        return _read_front(tr, queue, wanted, now_ms, None, serializable=True)
    since_ms, late_ms = min(map(_now_ms, requests)), now_ms - LATE_MS
    front = _read_front(tr, queue, wanted, since_ms, late_ms)
    if front.late:
        # Some of it only: other callers do more, and a sweep all of it.
        delayed.promote_due(tr, queue.keys, front.config, until_ms=late_ms, limit=_WINDOW, few=_FEW)
        lease_expiry.expire_due(tr, queue.keys, front.config, until_ms=now_ms, limit=_FEW, budget=delayed.BUDGET)
        front = _read_front(tr, queue, wanted, since_ms, None)
    return front


def _read_front(
    tr: Transaction,
    queue: OpenQueue,
    wanted: Mapping[End, int],
    now_ms: int,
    late_ms: int | None,
    *,
    serializable: bool = False,
) -> _Front:
    """Read the ends, as far as they are wanted now; `late` where something was due by `late_ms`."""
    keys = queue.keys
    expired = None if late_ms is None else tr.snapshot.get_key(*keys.expiries.before(late_ms + 1))

    def issue(config: Config) -> tuple[dict[End, ready.Heads], ready.Ahead]:
        source = tr if serializable else tr.snapshot
        heads = {end: ready.Heads(source, keys, config.generations, end=end, limit=n or 1) for end, n in wanted.items()}
        return heads, ready.Ahead(tr.snapshot, keys, config.generations)

    config, (heads, ahead) = queue.with_config(tr, issue)
    if config.pause is not None and config.pause.holds(now_ms):
        raise _paused(config, config.pause)
    asks = ahead.pasts()
    late = False
    if late_ms is not None:
        due_ms = ahead.next_due_ms()
        late = (due_ms is not None and due_ms <= late_ms) or (expired is not None and expired.wait() is not None)
    ends = {end: head.wait() for end, head in heads.items()}
    pasts: dict[bytes, StoredItem] = {}
    if asks:
        for pairs in ends.values():
            pasts |= ready.pasts_of(tr.snapshot, keys, config, pairs)
    return _Front(config=config, ends=ends, pasts=pasts, late=late)


def deal(
    requests: Sequence[TakeRequest], ends: Mapping[End, list[KeyValue]], pasts: Mapping[bytes, StoredItem]
) -> list[list[KeyValue]]:
    """Return what each gets when one comes after the other; the last ones get nothing when there is no room."""
    logs = {key: there.weight - len(there.value) for key, there in pasts.items() if there.entries}
    if len(requests) == 1:
        (request,) = requests
        return [_fitting_hand(request, ends[request.end][: request.n], logs)]
    hands: list[list[KeyValue]] = []
    at = dict.fromkeys(ends, 0)
    both = len(ends) > 1
    taken: set[bytes] = set()
    room = BATCH_BYTES
    plenty = sum(logs.values()) + sum(len(value) for entries in ends.values() for _, value in entries) <= room
    for request in requests:
        entries, begin = ends[request.end], at[request.end]
        hand = _fitting_hand(request, entries[begin : begin + request.n], logs)
        if both:
            # Where the other end's requests have come to, nothing is left: they took all that follows.
            left = next((n for n, (key, _) in enumerate(hand) if key in taken), len(hand))
            hand = hand[:left]
            taken.update(key for key, _ in hand)
        if not plenty:
            room -= sum(len(value) + logs.get(key, 0) for key, value in hand)
            if hands and room < 0:
                break
        hands.append(hand)
        at[request.end] = begin + len(hand)
    return hands


def _fitting_hand(request: TakeRequest, hand: list[KeyValue], logs: Mapping[bytes, int]) -> list[KeyValue]:
    """Return the first items of a hand that one transaction can write elsewhere, one at least."""
    leases = isinstance(request, LeaseRequest)
    if len(hand) < 2 or not (leases or logs):
        return hand
    room = HAND_BYTES
    for n, (key, value) in enumerate(hand):
        room -= logs.get(key, 0) + (len(value) if leases else 0)
        if n and room < 0:
            return hand[:n]
    return hand


def _paused(config: Config, pause: Pause) -> QueuePaused:
    queue = display_name(config.name)
    if pause.by:
        return QueuePaused("{queue} is paused by {by}: {reason}", queue=queue, by=pause.by, reason=pause.reason)
    return QueuePaused("{queue} is paused: {reason}", queue=queue, reason=pause.reason)


# One particular item


class RemoveRequest(Request[Item | None], frozen=True, gc=False):
    """Take the ready item of an id and count it under `verb`; the answer is the item, or None."""

    item_id: str
    verb: str
    now_ms: int


@executes(RemoveRequest)
def remove(queue: OpenQueue, tr: Transaction, requests: Sequence[RemoveRequest]) -> Sequence[Item | None]:
    """Remove the item of the first request; raise `QueueUnreadable`."""
    request, config, keys = requests[0], queue.current(tr), queue.keys
    rand = ids.parse(request.item_id)
    place = None if rand is None else PlaceRead(tr, keys, config.generations, rand).wait()
    delta = CounterDelta(keys, wake=False)
    with reading(config.name):
        there = None if rand is None or place is None else ItemRead(tr, keys, rand, "ready", place).wait()
        if there is None:
            return [None]
        (item,) = ready.take(tr, keys, config, [there], request.now_ms, delta, verb=request.verb)
    delta.apply(tr)
    return [item]
