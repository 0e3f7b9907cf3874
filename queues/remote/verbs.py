"""The verbs of programs over HTTP: push, pop, lease and what settles leases."""

import base64
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from queues.items.stored_item import StoredItem
from queues.model import ids
from queues.model.item import Item
from queues.operations.open_queue import OpenQueue
from queues.operations.pop import LeaseRequest, PopRequest
from queues.operations.push import PushManyRequest, PushRequest
from queues.operations.settle import AckRequest, ExtendRequest, LeaseKey, ReleaseRequest
from queues.remote.call import Call
from queues.remote.connection import Connection
from queues.remote.delivery import over_http
from queues.remote.problems import result_error
from queues.remote.shapes import item_of, leased_of, text_of


def call_on(queue: OpenQueue, method: str, *path: str, **rest: Any) -> Call:
    """Return a call about a queue: its name may be another one's by now, so it says which is meant."""
    headers = {**rest.pop("headers", {}), "PQ-Queue-ID": str(queue.id)}
    return Call(method=method, path=("queues", queue.config.name, *path), headers=headers, **rest)


@over_http(PushRequest)
async def push(connection: Connection, queue: OpenQueue, request: PushRequest, key: str) -> Item:
    """Push one item: its value is the body."""
    headers = {"Content-Type": "application/octet-stream"}
    if request.priority is not None:
        text = isinstance(request.priority, str)
        headers["PQ-Priority"] = quote(str(request.priority), safe="") if text else repr(request.priority)
    call = call_on(queue, "POST", "items", content=request.value, headers=headers, key=key)
    (shape,) = (await connection.send(call))["items"]
    return _pushed(queue, shape, request.value)


@over_http(PushManyRequest)
async def push_many(connection: Connection, queue: OpenQueue, request: PushManyRequest, key: str) -> list[Item]:
    """Push items as one."""
    dues = request.due_ms or (None,) * len(request.values)
    items = []
    for (value, priority), due_ms in zip(request.values, dues, strict=True):
        item: dict[str, Any] = {"value_base64": base64.b64encode(value).decode()}
        if priority is not None:
            item["priority"] = priority
        if due_ms is not None:
            item["due_at"] = text_of(ids.at(due_ms))
        items.append(item)
    call = call_on(queue, "POST", "items", body={"items": items}, key=key)
    shapes = (await connection.send(call))["items"]
    return [_pushed(queue, shape, value) for shape, (value, _) in zip(shapes, request.values, strict=True)]


@over_http(PopRequest)
async def pop(connection: Connection, queue: OpenQueue, request: PopRequest, key: str) -> list[Item]:
    """Pop items; the server waits for one if it is to."""
    query = {"end": request.end, "n": request.n}
    call = call_on(queue, "POST", "pop", query=query, key=key, wait=request.wait)
    return [item_of(shape, queue.config) for shape in (await connection.send(call))["items"]]


@over_http(LeaseRequest)
async def lease(connection: Connection, queue: OpenQueue, request: LeaseRequest, key: str) -> list[StoredItem]:
    """Lease items; the server waits for one if it is to."""
    seconds = (request.expires_ms - request.now_ms) / 1000
    query = {"end": request.end, "n": request.n, "seconds": seconds, "worker": request.worker}
    call = call_on(queue, "POST", "lease", query=query, key=key, wait=request.wait)
    return [leased_of(shape, shape["lease"]) for shape in (await connection.send(call))["items"]]


@over_http(AckRequest)
async def ack(connection: Connection, queue: OpenQueue, request: AckRequest, key: str) -> list[LeaseKey]:
    """Acknowledge leases. Repeated it changes nothing, unless it has to hold."""
    tokens = _tokens(request.leases)
    body = {"leases": tokens, "must_hold": request.must_hold}
    call = call_on(queue, "POST", "ack", body=body, key=key if request.must_hold else "")
    results = (await connection.send(call))["results"]
    return [lease for lease, result in zip(request.leases, results, strict=True) if not result["done"]]


@over_http(ReleaseRequest)
async def release(connection: Connection, queue: OpenQueue, request: ReleaseRequest, key: str) -> Item:
    """Release a lease."""
    body = {
        "leases": _tokens([request.lease]),
        "delay": None if request.due_ms is None else (request.due_ms - request.now_ms) / 1000,
        "reason": request.reason,
        "traceback": request.traceback,
        "count_attempt": request.count_attempt,
    }
    call = call_on(queue, "POST", "release", body=body, query={"return": "value"}, key=key)
    return item_of((await _settle(connection, call))["item"], queue.config)


@over_http(ExtendRequest)
async def extend(connection: Connection, queue: OpenQueue, request: ExtendRequest, key: str) -> StoredItem:
    """Extend a lease. Repeated it ends a little later, so it needs no key."""
    (token,) = _tokens([request.lease])
    body = {"leases": [token], "seconds": (request.expires_ms - request.now_ms) / 1000}
    result = await _settle(connection, call_on(queue, "POST", "extend", body=body, query={"return": "value"}))
    return leased_of(result["item"], token)


async def _settle(connection: Connection, call: Call) -> Any:
    """Return the one result of a call; raise the problem in it."""
    (result,) = (await connection.send(call))["results"]
    if not result["done"]:
        raise result_error(result["problem"], connection.host)
    return result


def _tokens(leases: Iterable[LeaseKey]) -> list[str]:
    return [f"{rand.hex()}-{nonce.hex()}" for rand, nonce in leases]


def _pushed(queue: OpenQueue, shape: dict[str, Any], value: bytes) -> Item:
    """Return an item that was pushed: what is ready at once, is so since its push."""
    ready_at = shape["pushed_at"] if shape["state"] == "ready" else None
    return item_of({**shape, "ready_at": ready_at}, queue.config, value)
