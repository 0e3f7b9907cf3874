"""Every verb is a request: immutable, and the same after it was sent as bytes."""

import functools
import operator
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from queues import Consumers, Item, Query, Queue, Store
from queues.items.stored_item import StoredItem
from queues.model.config import Pause
from queues.operations import attached  # noqa: F401 - executes requests to attached queues
from queues.operations.configure import ConfigureRequest, PauseRequest
from queues.operations.finished import FindFinishedRequest, FinishedPageRequest
from queues.operations.lease import ExpireRequest
from queues.operations.measure import ConsumersRequest, DepthRequest, OldestRequest, StatusRequest, TotalsRequest
from queues.operations.open_queue import OpenQueue, Request
from queues.operations.peek import PageRequest, PeekManyRequest, StatePageRequest
from queues.operations.pop import LeaseRequest, PopRequest, RemoveRequest
from queues.operations.promote import PromoteRequest, RescheduleRequest
from queues.operations.push import PushManyRequest, PushRequest
from queues.operations.retry_dead import DeleteDeadRequest, RetryDeadRequest
from queues.operations.search import FindRequest, SearchRequest
from queues.operations.settle import AckRequest, ExtendRequest, ReleaseRequest
from queues.operations.wait import OutlookRequest
from tests.conftest import Clock
from tests.full_count import check_full_count

#: Ids and nonces that requests bring.
FIRST, SECOND, THIRD = (bytes.fromhex("01a2" * 3) + bytes([n]) * 14 for n in (1, 2, 3))
NONCE = b"n" * 8
YEAR = datetime(2020, 1, 1, tzinfo=UTC)
_ANY: Any = functools.reduce(operator.or_, Request.__subclasses__())
_decode = msgspec.msgpack.Decoder(_ANY).decode


class Prepared:
    """A queue with one item in every state, whose ids and leases are known."""

    def __init__(self, store: Store, name: str, clock: Clock) -> None:
        self.queue = store.create_queue(name)
        opened, self.now_ms = self.queue.opened, int(clock.now * 1000)
        self.queue.configure(max_attempts=1)
        send = opened.send
        send(PushManyRequest(opened.id, ((b"leased", 1), (b"dying", 2)), (FIRST, SECOND)))
        send(self.leases(2, (NONCE, b"d" * 8)))
        send(ReleaseRequest(opened.id, (SECOND, b"d" * 8), None, "failed", True, self.now_ms))
        later = (self.now_ms + 60_000,)
        send(PushManyRequest(opened.id, ((b"delayed", 7),), (THIRD,), later, self.now_ms))
        self.queue.push_many([(b"ready", 5), (b"last", 9)])

    def leases(self, n: int, nonces: tuple[bytes, ...]) -> LeaseRequest:
        return LeaseRequest(self.queue.id, n, "min", self.now_ms, self.now_ms + 5_000, "worker", nonces)


Make = Callable[[Prepared], Request]
WRITES: list[Make] = [
    lambda at: PushRequest(at.queue.id, b"new", 3, bytes.fromhex("01a3" * 3) + b"4" * 14),
    lambda at: PushManyRequest(at.queue.id, ((b"a", 1), (b"b", -2)), (b"1" * 20, b"2" * 20), (None, 2**42), at.now_ms),
    lambda at: PopRequest(at.queue.id, 2, "max", at.now_ms),
    lambda at: at.leases(1, (b"m" * 8,)),
    lambda at: AckRequest(at.queue.id, ((FIRST, NONCE), (SECOND, NONCE)), True),
    lambda at: ReleaseRequest(at.queue.id, (FIRST, NONCE), at.now_ms + 9_000, "busy", False, at.now_ms),
    lambda at: ExtendRequest(at.queue.id, (FIRST, NONCE), at.now_ms + 90_000, at.now_ms),
    lambda at: ExpireRequest(at.queue.id, 10, at.now_ms + 10_000),
    lambda at: PromoteRequest(at.queue.id, 10, at.now_ms + 70_000),
    lambda at: RescheduleRequest(at.queue.id, THIRD.hex(), at.now_ms + 90_000, at.now_ms),
    lambda at: RetryDeadRequest(at.queue.id, SECOND.hex(), at.now_ms),
    lambda at: DeleteDeadRequest(at.queue.id, SECOND.hex()),
    lambda at: RemoveRequest(at.queue.id, at.queue.peek_max().id, "delete", at.now_ms),
    lambda at: PauseRequest(
        at.queue.id, Pause(reason="lunch", by="ann", since=datetime(2026, 1, 1, tzinfo=UTC), until=None)
    ),
    lambda at: PauseRequest(at.queue.id, None),
    lambda at: ConfigureRequest(at.queue.id, {"max_depth": 9, "redact": ["secret*"], "note": "ä"}),
]
_QUERY = Query(text="rea", low=1, high=9, since=YEAR)
READS: list[Make] = [
    lambda at: PeekManyRequest(at.queue.id, 2, "max"),
    lambda at: PageRequest(at.queue.id, "min", 1, None, 5, 2),
    lambda at: StatePageRequest(at.queue.id, "dead", 5, None, None),
    lambda at: DepthRequest(at.queue.id, "leased"),
    lambda at: TotalsRequest(at.queue.id),
    lambda at: OldestRequest(at.queue.id),
    lambda at: StatusRequest(at.queue.id, 10),
    lambda at: FindRequest(at.queue.id, THIRD.hex()),
    lambda at: FindFinishedRequest(at.queue.id, THIRD.hex()),
    lambda at: FinishedPageRequest(at.queue.id, 5, None),
    lambda at: SearchRequest(at.queue.id, _QUERY, "min", 10, 100, None, None),
    lambda at: OutlookRequest(at.queue.id),
    lambda at: ConsumersRequest(at.queue.id),
]


def sent(request: Request) -> Request:
    """Return what another process reads of a request."""
    return _decode(msgspec.msgpack.encode(request))


def told(answer: Any) -> Any:
    """Return an answer without what tells one queue from another: ids that the store chose, and its own name."""
    if isinstance(answer, list | tuple):
        return [told(each) for each in answer]
    if isinstance(answer, Item):
        return (answer.raw, answer.priority, answer.state, answer.attempts, answer.reason, answer.due_at)
    if isinstance(answer, StoredItem):
        return (answer.value, answer.state, answer.attempts, answer.nonce, answer.expires_ms)
    if hasattr(answer, "items"):
        return told(answer.items)
    if hasattr(answer, "totals"):
        return (answer.totals, told(answer.min), told(answer.max), answer.pause)
    if isinstance(answer, Consumers):
        return answer
    if hasattr(answer, "known"):
        return (answer.ready, answer.late, answer.rest)
    return answer if not isinstance(answer, bytes) else b"config"


def test_every_kind_of_request_is_here(store: Store, clock: Clock) -> None:
    there = Prepared(store, "jobs", clock)
    kinds = {kind for kind in Request.__subclasses__() if kind.__module__.startswith("queues.operations")}
    assert {type(make(there)) for make in (*WRITES, *READS)} == kinds  # remote stores have one more of their own


@pytest.mark.parametrize("number", range(len(WRITES) + len(READS)))
def test_a_request_that_was_sent_is_executed_alike(store: Store, clock: Clock, number: int) -> None:
    make = (*WRITES, *READS)[number]
    one, other = Prepared(store, "one", clock), Prepared(store, "other", clock)
    request, received = make(one), sent(make(other))
    assert sent(request) == request
    assert type(received) is type(request)

    def deliver(opened: OpenQueue) -> Callable[[Request], Any]:
        return opened.send if number < len(WRITES) else opened.look

    assert told(deliver(one.queue.opened)(request)) == told(deliver(other.queue.opened)(received))
    assert states(one.queue) == states(other.queue)
    assert check_full_count(store, one.queue) == check_full_count(store, other.queue)


def states(queue: Queue) -> Any:
    pages = [queue.items(), queue.delayed(), queue.leased(), queue.dead()]
    config = queue.opened.context.kv.read(queue.opened.current)
    return [told(page) for page in pages], config.pause, config.max_depth, config.redact, config.note


def test_requests_cannot_be_changed(store: Store) -> None:
    request = PopRequest(1, 1, "min")
    with pytest.raises(AttributeError):
        request.n = 2
    assert request == PopRequest(1, 1, "min")
    assert len({request, PopRequest(1, 1, "min"), PopRequest(1, 1, "max")}) == 2
