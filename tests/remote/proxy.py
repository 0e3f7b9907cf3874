"""A TCP proxy that cuts connections: before a request goes on, after it went, or before its answer comes back."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import cycle
from urllib.parse import urlsplit

#: What happens to one request after the other.
PLAN = ("unsent", "pass", "sent", "pass", "answered", "pass", "answered")
_METHODS = (b"GET ", b"POST ", b"PATCH ", b"DELETE ", b"PUT ")


class Proxy:
    """Connects clients to a site; `cuts` counts what it cut, at most `most`. Used by the thread of its event loop."""

    def __init__(self, target: str, plan: Sequence[str]) -> None:
        self.target = target
        self.most = self.cuts = 0
        self.address = ""
        self._plan = cycle(plan)
        self._tasks: set[asyncio.Task[None]] = set()

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        task = asyncio.current_task()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        there = urlsplit(self.target)
        try:
            back, forth = await asyncio.open_connection(there.hostname, there.port)
        except OSError:
            writer.transport.abort()
            return
        fate = "pass"

        async def answers() -> None:
            with suppress(OSError):
                while data := await back.read(65_536):
                    if fate == "answered":
                        break
                    writer.write(data)
            writer.transport.abort()

        answering = asyncio.ensure_future(answers())
        try:
            with suppress(OSError):
                while data := await reader.read(65_536):
                    if data.startswith(_METHODS):
                        fate = next(self._plan) if self.cuts < self.most else "pass"
                        self.cuts += fate != "pass"
                    if fate == "unsent":
                        break
                    forth.write(data)
                    await forth.drain()
                    if fate == "sent":
                        break
            if fate in ("unsent", "sent"):
                writer.transport.abort()
            forth.close()
            await answering
        finally:
            writer.transport.abort()
            forth.transport.abort()


@contextmanager
def proxy(target: str, plan: Sequence[str] = PLAN) -> Iterator[Proxy]:
    """Run a proxy before the site at an address."""
    made, loop = Proxy(target, plan), asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(made.meet, "127.0.0.1", 0))
    made.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield made
    finally:

        async def end() -> None:
            server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for _ in range(5):  # connections are closed in the turns that follow
                await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
