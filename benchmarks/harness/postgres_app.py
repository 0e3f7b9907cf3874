"""A minimal ASGI application over PostgreSQL for `benchmarks.http`: a queue as one would write it in an hour.

`POST /push` with `{"value": …, "priority": …}` and `POST /pop`, JSON both ways, behind one bearer token; a table, a
pool of connections, FOR UPDATE SKIP LOCKED, prepared statements, every answer after its commit. Nothing else is done.

    APP_DATABASE=… APP_TOKEN=… daphne benchmarks.harness.postgres_app:application
"""

import json
import os
from typing import Any

from psycopg_pool import AsyncConnectionPool

from benchmarks.peers.postgres import POP, PUSH

#: More made PostgreSQL slower here.
_CONNECTIONS = 16
_ALLOWED = (b"authorization", f"Bearer {os.environ['APP_TOKEN']}".encode())
_pool: AsyncConnectionPool[Any] | None = None


async def _opened() -> AsyncConnectionPool[Any]:
    global _pool
    if _pool is None:
        _pool = AsyncConnectionPool(
            os.environ["APP_DATABASE"],
            min_size=_CONNECTIONS,
            max_size=_CONNECTIONS,
            open=False,
            kwargs={"autocommit": True, "prepare_threshold": 0},
        )
        await _pool.open(wait=True)
    return _pool


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer one request."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    status, answer = await _answer(scope, body)
    content = json.dumps(answer).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


async def _answer(scope: Any, body: bytes) -> tuple[int, dict[str, Any]]:
    if _ALLOWED not in scope["headers"]:
        return 401, {}
    async with (await _opened()).connection() as database, database.cursor(binary=True) as cursor:
        if scope["path"] == "/push":
            item = json.loads(body)
            await cursor.execute(PUSH + " RETURNING id", (item["priority"], item["value"].encode()))
            return 201, {"id": (await cursor.fetchone())[0]}
        await cursor.execute(POP)
        found = await cursor.fetchone()
        return 200, {"items": [] if found is None else [{"value": bytes(found[0]).decode()}]}
