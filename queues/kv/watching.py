"""The threads of this process that wait for changes of keys, and what wakes them."""

import threading
from collections.abc import Collection, Iterable, Mapping
from enum import Enum

from queues.kv.errors import StoreClosed


class Wake(Enum):
    """Why a watcher stopped waiting."""

    CHANGED = "changed"
    INTERRUPTED = "interrupted"
    CLOSED = "closed"


class Watcher:
    """One thread in `watch`: the values it knows, and the lock it sleeps on."""

    __slots__ = ("_asleep", "known", "owner", "wake")

    def __init__(self, known: Mapping[bytes, bytes | None], owner: object) -> None:
        self.known = dict(known)
        self.owner = owner
        self.wake: Wake | None = None
        self._asleep = threading.Lock()
        self._asleep.acquire()

    def rouse(self, why: Wake) -> None:
        """Wake the thread. Call it once, with the board's lock held."""
        self.wake = why
        self._asleep.release()

    def sleep(self, timeout: float) -> None:
        """Wait until roused or until `timeout` seconds have passed."""
        self._asleep.acquire(timeout=min(max(0.0, timeout), threading.TIMEOUT_MAX))


class WatchBoard:
    """The watchers of one store in this process, found by key."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        #: The watchers of each key; empty when no thread watches.
        self.by_key: dict[bytes, set[Watcher]] = {}
        self._watchers: set[Watcher] = set()

    def __len__(self) -> int:
        return len(self._watchers)

    def add(self, watcher: Watcher) -> None:
        """Register a watcher: whatever is committed from now on wakes it."""
        with self._lock:
            self._watchers.add(watcher)
            for key in watcher.known:
                self.by_key.setdefault(key, set()).add(watcher)

    def discard(self, watcher: Watcher) -> None:
        """Forget a watcher."""
        with self._lock:
            self._forget(watcher)

    def watchers(self) -> list[Watcher]:
        """Return all watchers."""
        with self._lock:
            return list(self._watchers)

    def notify(self, keys: Iterable[bytes]) -> None:
        """Wake the watchers of the keys that a commit wrote."""
        by_key = self.by_key
        if not by_key:
            return
        with self._lock:
            for key in by_key.keys() & keys:
                self._rouse(by_key.get(key, ()), Wake.CHANGED)

    def rouse(self, watchers: Collection[Watcher]) -> None:
        """Wake these watchers: their keys have changed."""
        with self._lock:
            self._rouse(watchers, Wake.CHANGED)

    def rouse_all(self, why: Wake, owner: object | None = None) -> None:
        """Wake all watchers, or all of one owner."""
        with self._lock:
            self._rouse([w for w in self._watchers if owner is None or w.owner is owner], why)

    def wait(self, watcher: Watcher, timeout: float) -> bool:
        """Sleep until the registered watcher is roused (True) or the time is up (False). Forget it."""
        try:
            watcher.sleep(timeout)
        finally:
            self.discard(watcher)
        if watcher.wake is Wake.CLOSED:
            raise StoreClosed("The store was closed while it was watched; open it again.")
        return watcher.wake is not None

    def _rouse(self, watchers: Collection[Watcher], why: Wake) -> None:
        for watcher in list(watchers):
            if watcher in self._watchers:
                self._forget(watcher)
                watcher.rouse(why)

    def _forget(self, watcher: Watcher) -> None:
        if watcher not in self._watchers:
            return
        self._watchers.discard(watcher)
        for key in watcher.known:
            waiting = self.by_key.get(key)
            if waiting is not None:
                waiting.discard(watcher)
                if not waiting:
                    del self.by_key[key]
