"""Liveness and readiness checks for machines, without login.

`Health` answers before the application and on threads of its own, so that the answer comes when views wait for a locked
table, and under any host name.
"""

import asyncio
import json
import logging
import shutil
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, connections

from pqadmin.conf.proxy import Application
from pqadmin.server import plain_page
from pqadmin.store import get_store, store_skew
from queues.admin import SKEWED_CLOCK, LogLimit
from queues.errors import QueueError, StoreError

log = logging.getLogger(__name__)
_limited = LogLimit(log)

#: Seconds that one check may take.
WITHIN = 2.0


class Health:
    """ASGI application that answers /livez and /readyz, and passes everything else on."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._threads = {
            name: _Thread(name, check)
            for name, check in {"store": _store, "database": _database, "disk": _disk}.items()
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, or pass it on."""
        path = scope.get("path")
        if scope["type"] != "http" or path not in {"/livez", "/readyz"}:
            await self._application(scope, receive, send)
        elif scope["method"] not in {"GET", "HEAD"}:
            await _answer(scope, send, 405, {"status": "method not allowed"})
        elif path == "/livez":
            await _answer(scope, send, 200, {"status": "ok"})
        else:
            found = await asyncio.gather(*(thread.ask() for thread in self._threads.values()))
            await _answer(scope, send, *_report(dict(zip(self._threads, found, strict=True))))


class _Thread:
    """The thread of one check: a check that hangs delays neither other checks nor the event loop."""

    def __init__(self, name: str, check: Callable[[], bool]) -> None:
        self._name = name
        self._check = check
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"health-{name}")
        self._running: Future[bool] | None = None

    async def ask(self) -> bool:
        """Return the check's result; False if it takes too long."""
        if self._running is None or self._running.done():
            self._running = self._executor.submit(self._run)
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self._running)), WITHIN)
        except TimeoutError:
            _limited.warn(self._name, "not ready: the %s has not answered within %g s", self._name, WITHIN)
            return False

    def _run(self) -> bool:
        try:
            return self._check()
        finally:
            connections.close_all()  # this thread's own: the next check opens a new one


def _report(found: dict[str, bool]) -> tuple[int, dict[str, Any]]:
    ready, skew = all(found.values()), store_skew()
    body: dict[str, Any] = {
        "status": "ok" if ready else "unavailable",
        "checks": {name: "ok" if ok else "unavailable" for name, ok in found.items()},
    }
    if abs(skew) > SKEWED_CLOCK:
        body["clock_skew_seconds"] = round(skew, 1)
    return 200 if ready else 503, body


async def _answer(scope: Any, send: Any, status: int, body: dict[str, Any]) -> None:
    content, head = json.dumps(body).encode(), scope["method"] == "HEAD"
    await plain_page.send_answer(send, status, content, head=head, content_type="application/json")


def _store() -> bool:
    try:
        get_store().snapshot(())  # decodes no queue: an unreadable one does not make the site unready
    except (StoreError, QueueError) as error:
        _limited.warn("store", "not ready: the store: %s", error)
        return False
    return True


def _database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        _limited.warn("database", "not ready: the database: %s", type(error).__name__)
        return False
    return True


def _disk() -> bool:
    """Return whether the disks of the data folder and of an embedded store have room."""
    least = settings.PQADMIN_MIN_FREE_BYTES
    engine, _colon, path = settings.PQADMIN_STORE.partition(":")
    folders = [Path(settings.PQADMIN_DATA), *([Path(path)] if engine == "lmdb" else [])]
    for folder in folders if least else ():
        try:
            free = shutil.disk_usage(_existing(folder)).free
        except OSError as error:
            _limited.warn("disk", "not ready: the disk of %s: %s", folder, error)
            return False
        if free < least:
            _limited.warn("disk", "not ready: the disk of %s has %d bytes free, less than %d", folder, free, least)
            return False
    return True


def _existing(folder: Path) -> Path:
    return next((path for path in (folder, *folder.absolute().parents) if path.exists()), folder)
