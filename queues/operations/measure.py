"""Measuring a queue, changing nothing: depths, traffic, ages, and the status that a screen shows."""

from queues.consumers.consumer import Consumers, begin_consumers
from queues.errors import BadState
from queues.items import ready
from queues.items.counters import counted_in, total
from queues.items.stored_item import ItemRead, as_item
from queues.keys.queue_keys import STATES
from queues.kv.port import ReadTransaction
from queues.model.item import Item
from queues.operations.open_queue import OpenQueue, Request, reads
from queues.status.status import QueueStatus, Totals, read_status, read_totals


class DepthRequest(Request[int], frozen=True, gc=False):
    """Count the items in a state."""

    state: str


class TotalsRequest(Request[Totals], frozen=True, gc=False):
    """Count the items by state, and the traffic."""


class OldestRequest(Request[Item | None], frozen=True, gc=False):
    """Find the item that is ready for longest."""


class StatusRequest(Request[QueueStatus], frozen=True, gc=False):
    """Read everything that a screen shows of the queue; values are cut to `preview` bytes."""

    preview: int


class ConsumersRequest(Request[Consumers], frozen=True, gc=False):
    """Read which processes take from the queue."""


def depth_request(queue: OpenQueue, state: str) -> DepthRequest:
    """Return the request for a depth; raise `BadState`."""
    if state not in STATES:
        raise BadState("Items are ready, delayed, leased or dead, not {state}.", state=repr(state))
    return DepthRequest(queue.id, state)


@reads(DepthRequest)
def depth(tr: ReadTransaction, queue: OpenQueue, request: DepthRequest) -> int:
    """Return the exact depth, from counters."""
    reading = [
        (tr.get(keys.counters.key(request.state, "in")), tr.get(keys.counters.key(request.state, "out")))
        for keys in map(queue.keys.generation, counted_in(queue.current(tr), request.state))
    ]
    return sum(total(arrived.wait()) - total(left.wait()) for arrived, left in reading)


@reads(TotalsRequest)
def totals(tr: ReadTransaction, queue: OpenQueue, request: TotalsRequest) -> Totals:
    """Return the exact depths by state and the traffic, from counters."""
    return read_totals(tr, queue.keys, queue.current(tr))


@reads(OldestRequest)
def oldest(tr: ReadTransaction, queue: OpenQueue, request: OldestRequest) -> Item | None:
    """Return the item that is ready for longest, from the index by age."""
    config, read = queue.with_config(tr, lambda config: ready.OldestRead(tr, queue.keys, config.generations))
    found = read.wait()
    there = None if found is None else ItemRead(tr, queue.keys, found[0], "ready", found[1]).wait()
    return None if there is None else as_item(there, fifo=config.fifo, codec=config.values)


@reads(StatusRequest)
def status(tr: ReadTransaction, queue: OpenQueue, request: StatusRequest) -> QueueStatus:
    """Return the status of the queue."""
    change = tr.get(queue.keys.change)
    config = queue.current(tr)
    context = queue.context
    return read_status(tr, context.keyspace, config, total(change.wait()), request.preview, context.clock.now())


@reads(ConsumersRequest)
@reads(ConsumersRequest, attached=True)
def consumers(tr: ReadTransaction, queue: OpenQueue, request: ConsumersRequest) -> Consumers:
    """Return the consumers that are live now, and the one that ended last."""
    finish = begin_consumers(tr, queue.context.keyspace, queue.id)
    queue.current(tr)
    return finish(queue.context.clock.now_ms())
