"""Dead items, those that no worker could finish: retry or delete one."""

from collections.abc import Sequence

from queues.items import state_machine
from queues.items.stored_item import as_item, find
from queues.kv.port import Transaction
from queues.model import ids
from queues.model.item import Item
from queues.operations.open_queue import OpenQueue, Request, executes


class RetryDeadRequest(Request[Item | None], frozen=True, gc=False):
    """Put a dead item back at its place, with all its attempts before it. The answer is the item, or None."""

    item_id: str
    now_ms: int


class DeleteDeadRequest(Request[Item | None], frozen=True, gc=False):
    """Take a dead item out for good; the answer is the item, or None."""

    item_id: str


@executes(RetryDeadRequest, DeleteDeadRequest)
def end_death(
    queue: OpenQueue, tr: Transaction, requests: Sequence[RetryDeadRequest | DeleteDeadRequest]
) -> Sequence[Item | None]:
    """Retry or delete the item of the first request."""
    request, config = requests[0], queue.current(tr)
    (there,) = find(tr, queue.keys, config, [ids.parse(request.item_id)], ["dead"])
    if there is None:
        return [None]
    after = state_machine.retried(there, config, request.now_ms) if isinstance(request, RetryDeadRequest) else None
    tr.use_reserve()
    verb = "delete" if after is None else "retry"
    state_machine.apply(tr, queue.context.keyspace, config, [(there, after)], verb)
    return [as_item(after or there, fifo=config.fifo, codec=config.values)]
