"""The threads that run views: a few that stay, instead of a new one for every request.

Django runs the sync code of one request on one thread. asgiref makes that thread anew for each request unless
it is given an executor; here a request is given the one with the fewest requests at that moment.
"""

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import ThreadSensitiveContext

Application = Callable[[Any, Any, Any], Awaitable[None]]


class ThreadPool:
    """An ASGI application that gives each http request one of `threads` persistent threads."""

    def __init__(self, application: Application, *, threads: int) -> None:
        self._application = application
        self._executors = [ThreadPoolExecutor(1, thread_name_prefix=f"view-{n}") for n in range(threads)]
        self._busy = [0] * threads

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Run one request."""
        lane = self._busy.index(min(self._busy))
        self._busy[lane] += 1
        try:
            async with ThreadSensitiveContext(executor=self._executors[lane]):
                await self._application(scope, receive, send)
        finally:
            self._busy[lane] -= 1

    def close(self) -> None:
        """Let the threads end after what they are running; requests after this fail."""
        for executor in self._executors:
            executor.shutdown(wait=False)
