"""Leases: items that a worker holds for a time and acknowledges when done.

A leased item goes to no other worker until it is acknowledged, released, or its lease expires. So a worker that dies
loses nothing: the item comes back to its place, and another worker gets it. It may be worked on more than once, then;
only one of the workers that held it can acknowledge it, the rest get `StaleLease`.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from queues.errors import WrongKind, display_name
from queues.items import delayed, lease_expiry
from queues.items.stored_item import StoredItem, as_item
from queues.keys.queue_keys import NONCE_SIZE
from queues.kv.port import Transaction
from queues.model import ids
from queues.model.config import check_worker
from queues.model.cursor import End
from queues.model.item import Item
from queues.operations.lease_block import Binding, LeaseBlock, binding_of, bound
from queues.operations.open_queue import MAX_WORKER, OpenQueue, Request, check_limit, check_number, executes
from queues.operations.peek import check_end
from queues.operations.pop import LeaseRequest
from queues.operations.settle import NO_LEASES, expires_ms_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease(LeaseBlock):
    """An item that is held for a time; as a context manager it settles itself.

    `with lease:` acknowledges the item when the block succeeds. When the block raises, it releases the item with the
    error as the reason, and the error goes on; one that is no `Exception`, as KeyboardInterrupt, counts no attempt.
    A lease from an `AsyncQueue` is used in `async with`. A copied or unpickled lease raises `LeaseNotBound`: settle it
    by the verbs of its queue.
    """

    item: Item
    #: What says that it is this lease: keep it as text, pass it wherever a lease is asked for.
    token: str = field(repr=False)
    #: When a sweep may end it, UTC, unless it is extended.
    expires_at: datetime


class ExpireRequest(Request[int], frozen=True, gc=False):
    """End leases that are over; the answer is their number."""

    limit: int
    now_ms: int


@executes(ExpireRequest)
def expire(queue: OpenQueue, tr: Transaction, requests: Sequence[ExpireRequest]) -> Sequence[int]:
    """End leases for the first request."""
    request, config = requests[0], queue.current(tr)
    return [
        lease_expiry.expire_due(
            tr, queue.keys, config, until_ms=request.now_ms, limit=request.limit, budget=delayed.BUDGET
        )
    ]


# Requests


def leasing_end(queue: OpenQueue, end: str) -> End:
    """Return the end that leases are taken from; raise `BadEnd`, `WrongKind`."""
    side = check_end(end)
    if side == "max" and queue.config.fifo:
        name = display_name(queue.config.name)
        raise WrongKind("{queue} is a fifo queue: items leave at its head only.", queue=name)
    return side


def lease_request(
    queue: OpenQueue, n: int, *, seconds: float, end: End, worker: str | None, tr: Transaction | None
) -> LeaseRequest:
    """Return the request to lease at most `n` items; raise `NotForAttached`, `BadLimit`, `BadTime`, `BadValue`."""
    queue.check_own(NO_LEASES)
    check_number(n)
    return LeaseRequest(
        queue.id,
        n,
        end,
        queue.context.clock.now_ms(),
        expires_ms_of(queue, seconds),
        _worker(queue, worker),
        tuple(os.urandom(NONCE_SIZE) for _ in range(n)),
        tr is not None,
    )


def as_leases(queue: OpenQueue, entries: Iterable[StoredItem], binding: Binding) -> list[Lease]:
    """Return what a `LeaseRequest` was answered as leases that `binding` settles."""
    return [as_lease(queue, entry, binding) for entry in entries]


def as_lease(queue: OpenQueue, entry: StoredItem, binding: Binding) -> Lease:
    """Return a leased item as a lease that `binding` settles."""
    token = f"{entry.rand.hex()}-{entry.nonce.hex()}"
    item = as_item(entry, fifo=queue.config.fifo, codec=queue.config.values)
    return bound(Lease(item=item, token=token, expires_at=ids.at(entry.expires_ms)), binding)


def extended(queue: OpenQueue, entry: StoredItem, lease: Lease | str) -> Lease:
    """Return the lease that an `ExtendRequest` was answered, settled as the one before."""
    return as_lease(queue, entry, binding_of(lease))


def expire_request(queue: OpenQueue, limit: int) -> ExpireRequest:
    """Return the request to end expired leases; raise `NotForAttached`, `BadLimit`."""
    queue.check_own(NO_LEASES)
    check_limit(limit)
    return ExpireRequest(queue.id, limit, queue.context.clock.now_ms())


def _worker(queue: OpenQueue, name: str | None) -> str:
    """Return the name of the holder: by default this process and its machine."""
    return queue.taker if name is None else check_worker(name, MAX_WORKER)
