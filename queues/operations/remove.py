"""Removing one particular item anywhere among the ready ones."""

from collections.abc import Sequence

from queues.items import ready
from queues.items.counters import CounterDelta
from queues.items.stored_item import ItemRead, PlaceRead
from queues.kv.port import Transaction
from queues.model import ids
from queues.model.item import Item
from queues.operations.open_queue import OpenQueue, Request, executes


class RemoveRequest(Request[Item | None], frozen=True, gc=False):
    """Take the ready item of an id and count it under `verb`; the answer is the item, or None."""

    item_id: str
    verb: str
    now_ms: int


@executes(RemoveRequest)
def remove(queue: OpenQueue, tr: Transaction, requests: Sequence[RemoveRequest]) -> Sequence[Item | None]:
    """Remove the item of the first request."""
    request, config, keys = requests[0], queue.current(tr), queue.keys
    rand = ids.parse(request.item_id)
    place = None if rand is None else PlaceRead(tr, keys, config.generations, rand).wait()
    there = None if rand is None or place is None else ItemRead(tr, keys, rand, "ready", place).wait()
    if there is None:
        return [None]
    delta = CounterDelta(keys, wake=False)
    (item,) = ready.take(tr, keys, config, [there], request.now_ms, delta, verb=request.verb)
    delta.apply(tr)
    return [item]
