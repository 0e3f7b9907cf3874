"""The watches of one open cluster store: set once per key and value, shared by all waiting threads.

A watch that is still set with the value that a caller knows costs nothing to wait for again. Watches may fire for
nothing, fail or be dropped by the cluster: each of these counts as a wake-up, and callers read before they believe.
Where more keys are waited for than there are watches, threads sleep on without some, and read those keys again from
time to time.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from queues.kv.cluster.transaction import ClusterTransaction
from queues.kv.watching import WatchBoard

#: A database takes 10,000 watches of one client.
MAX_WATCHES = 8_000


@dataclass(slots=True, kw_only=True, eq=False)
class _Watch:
    """One watch that is set, and the value that it was set on."""

    value: bytes | None
    future: Any
    #: It had to make room for another one.
    dropped: bool = False


class Watches:
    """The watches that are set, by key. Thread-safe."""

    def __init__(self, board: WatchBoard) -> None:
        self._board = board
        self._lock = threading.Lock()
        self._set: OrderedDict[bytes, _Watch] = OrderedDict()

    def unset(self, known: Mapping[bytes, bytes | None]) -> dict[bytes, bytes | None]:
        """Return what is known of those keys that no watch is set on with this value, and that one can be set on."""
        with self._lock:
            missing = {}
            for key, value in islice(known.items(), MAX_WATCHES):
                watch = self._set.get(key)
                if watch is None or watch.value != value:
                    missing[key] = value
                else:
                    self._set.move_to_end(key)
            return missing

    def begin(self, tr: ClusterTransaction, known: Mapping[bytes, bytes | None]) -> bool:
        """Set watches in a transaction of their own. False, setting none, when a value differs already."""
        reads = {key: tr.snapshot.get(key) for key in known}
        if any(read.wait() != known[key] for key, read in reads.items()):
            return False
        self._make_room(len(known))
        futures = {key: tr.watch(key) for key in known}
        tr.arm()
        for key, future in futures.items():
            watch = _Watch(value=known[key], future=future)
            with self._lock:
                self._set[key] = watch
                self._set.move_to_end(key)
            # Called at once, in this thread, where the watch has fired already: so not under the lock.
            future.on_ready(lambda _, key=key, watch=watch: self._fired(key, watch))
        return True

    def cancel(self) -> None:
        """Drop every watch; used when the store is closed."""
        with self._lock:
            dropped = list(self._set.values())
            self._set.clear()
        for watch in dropped:
            watch.future.cancel()

    def _fired(self, key: bytes, watch: _Watch) -> None:
        with self._lock:
            if watch.dropped:
                return
            if self._set.get(key) is watch:
                del self._set[key]
        self._board.notify((key,))

    def _make_room(self, wanted: int) -> None:
        """Drop the watches that were asked for longest ago. Threads that wait for them set them again, at their pace.

        If these threads were woken, they would in turn drop those of other threads, and none would sleep.
        """
        dropped = []
        with self._lock:
            while self._set and len(self._set) + wanted > MAX_WATCHES:
                watch = self._set.popitem(last=False)[1]
                watch.dropped = True
                dropped.append(watch)
        for watch in dropped:
            watch.future.cancel()
