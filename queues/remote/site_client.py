"""Site behind a remote store: its queues with verdicts and rates, looks at one, and its events."""

import base64
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from queues.model.priority import Priority
from queues.queue import Queue
from queues.remote.connection import Connection
from queues.remote.reads import LookRequest
from queues.remote.shapes import judged_of
from queues.remote.verbs import call_on
from queues.status.site_protocol import JudgedQueue, QueueLook

#: Queues of one answer.
PAGE = 500


class RemoteSite:
    """What the site tells of its queues; see `queues.status.site_protocol.Site`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def queues(self, prefix: str) -> tuple[list[JudgedQueue], datetime]:
        """Return the queues that the token may see, by name, and the time by the store's clock."""
        found: list[JudgedQueue] = []
        next_: str | None = ""
        while next_ is not None:
            page = self._connection.get("queues", prefix=prefix, after=next_, limit=PAGE, ends="true")
            found += map(judged_of, page["queues"])
            next_ = page["next"]
        return found, datetime.fromisoformat(page["at"])

    @contextmanager
    def following(self) -> Iterator[Callable[[float], object]]:
        """Follow the changes of all queues: what is yielded waits for one, at most so many seconds."""
        news = threading.Event()
        stream = self._connection.thread.begin(self._connection.follow(news.set))

        def wait(seconds: float) -> None:
            news.wait(seconds)
            news.clear()

        try:
            yield wait
        finally:
            stream.cancel()

    def look(self, queue: Queue, *, change: int | None = None) -> QueueLook | None:
        """Return a look at a queue. None if it is as it was at this change."""
        return queue.opened.send(LookRequest(queue.id, change))

    def targets(self, queue: str) -> Mapping[str, Any]:
        """Return the limits of a queue as JSON: where each comes from, and the share of the last day beyond it."""
        found: Mapping[str, Any] = self._connection.get("queues", queue, "targets")
        return found

    def push_chunk(
        self, queue: Queue, items: Sequence[tuple[bytes, Priority | None]], *, source: str, last_line: int
    ) -> None:
        """Push a chunk of an import in one transaction, with its mark in the audit."""
        shapes = [{"value_base64": base64.b64encode(value).decode(), "priority": priority} for value, priority in items]
        body = {"items": shapes, "source": source, "last_line": last_line}
        call = call_on(queue.opened, "POST", "items", "chunk", body=body, key=secrets.token_hex(16))
        self._connection.call(call)
