"""The servers of one open store: all handles of a queue use the same ones, so that their requests meet."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from queues.kv.port import Server

S = TypeVar("S", bound=Server[Any, Any])


class Servers:
    """Servers by what they serve; one is there while somebody holds it. Thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._servers: weakref.WeakValueDictionary[Hashable, Any] = weakref.WeakValueDictionary()

    def of(self, what: Hashable, make: Callable[[], S]) -> S:
        """Return the one server of this, made now if there is none."""
        with self._mutex:
            server: S | None = self._servers.get(what)
            if server is None:
                server = self._servers[what] = make()
            return server

    def stop(self) -> None:
        """Have every server that does something by itself stop it."""
        with self._mutex:
            servers = list(self._servers.values())
        for server in servers:
            if stop := getattr(server, "stop", None):
                stop()
