"""Delayed items: promote what is due, promote or reschedule one item."""

from collections.abc import Sequence

from queues.items import delayed, state_machine
from queues.items.counters import CounterDelta
from queues.items.stored_item import as_item, find
from queues.kv.port import Transaction
from queues.model import ids
from queues.model.item import Item
from queues.operations.open_queue import OpenQueue, Request, executes


class PromoteRequest(Request[int], frozen=True, gc=False):
    """Make items that are due ready, in due order; the answer is their number."""

    limit: int
    now_ms: int


class RescheduleRequest(Request[Item | None], frozen=True, gc=False):
    """Let one delayed item be due at another time. The answer is the item, or None."""

    item_id: str
    #: In milliseconds; None: ready at once.
    due_ms: int | None
    now_ms: int


@executes(PromoteRequest)
def promote(queue: OpenQueue, tr: Transaction, requests: Sequence[PromoteRequest]) -> Sequence[int]:
    """Promote for the first request."""
    request, config = requests[0], queue.current(tr)
    return [delayed.promote_due(tr, queue.keys, config, until_ms=request.now_ms, limit=request.limit)]


@executes(RescheduleRequest)
def reschedule(queue: OpenQueue, tr: Transaction, requests: Sequence[RescheduleRequest]) -> Sequence[Item | None]:
    """Reschedule the item of the first request."""
    request, config, keys = requests[0], queue.current(tr), queue.keys
    (there,) = find(tr, keys, config, [ids.parse(request.item_id)], ["delayed"])
    if there is None:
        return [None]
    delta = CounterDelta(keys, wake=False)
    if request.due_ms is None:
        after = state_machine.promoted(there, config, config.base + tr.stamp(), request.now_ms)
        delta.traffic("promote")
    else:
        after = state_machine.delayed_until(there, config, request.due_ms)
    tr.use_reserve()
    state_machine.refuse_taken(tr, keys, config, [(there, after)])
    state_machine.change(tr, keys, config, there, after, delta, now_ms=request.now_ms)
    delta.apply(tr)
    return [as_item(after, fifo=config.fifo, codec=config.values)]
