"""Finds other processes' commits while threads watch keys: one thread per store, which ends without watchers."""

import logging
import threading
import time
from collections.abc import Callable

from queues.kv.errors import StoreError
from queues.kv.port import ReadTransaction
from queues.kv.watching import WatchBoard, Watcher

log = logging.getLogger("queues.kv")

#: Seconds between two looks at the number of the last commit, while other processes commit and while none does.
_BUSY_EVERY = 0.002
_IDLE_EVERY = 0.005
#: Seconds without such a commit after which none does.
_IDLE_AFTER = 1.0
#: Comparing may take up to this part of the time; what is watched is then looked at less often.
_SHARE = 0.1
_LONGEST = 0.05
#: Seconds without a watcher after which the thread ends.
_STAY = 1.0

#: The version that was read, and the watchers that know another value.
_Compared = tuple[int, list[Watcher]]


class Poller:
    """Compares the number of the last commit and, after another process's commit, the watched values."""

    def __init__(
        self,
        board: WatchBoard,
        last_txnid: Callable[[], int],
        made_all: Callable[[int, int], bool],
        read: Callable[[Callable[[ReadTransaction], _Compared]], _Compared],
        name: str,
    ) -> None:
        self._board = board
        self._last_txnid = last_txnid
        #: Whether this process made all commits from one number to another: its watchers are told directly.
        self._made_all = made_all
        self._read = read
        self._name = name
        self._lock = threading.Lock()
        self._stop = threading.Lock()  # an Event costs several times as much per look
        self._stop.acquire()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def start(self) -> None:
        """Make sure that the thread runs. Call it after a watcher was registered and before it reads."""
        with self._lock:
            if self._thread is None and not self._stopped:
                thread = threading.Thread(target=self._work, name=f"pq-poller {self._name}", daemon=True)
                thread.start()
                self._thread = thread

    def stop(self) -> None:
        """End the thread."""
        with self._lock:
            if not self._stopped:
                self._stop.release()
            self._stopped = True
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        seen = -1
        pause = _BUSY_EVERY
        changed_at = watched_at = time.monotonic()
        while not self._stop.acquire(timeout=pause):
            now = time.monotonic()
            if len(self._board):
                watched_at = now
            elif now - watched_at > _STAY and self._leave():
                return
            pause = _BUSY_EVERY if now - changed_at < _IDLE_AFTER else _IDLE_EVERY
            try:
                newest = self._last_txnid()
                if newest == seen:
                    continue
                if not self._made_all(seen + 1, newest):
                    changed_at = now
                    newest = self._compare()
                    pause = min(_LONGEST, max(_BUSY_EVERY, (time.monotonic() - now) / _SHARE))
                seen = newest
            except StoreError:  # gone for now: watchers look for themselves
                self._board.rouse(self._board.watchers())
                pause = _LONGEST
            except Exception:  # never end: without this thread no watcher would see other processes' commits again
                log.exception("Looking for other processes' commits failed; it goes on")
                self._board.rouse(self._board.watchers())
                pause = _LONGEST

    def _leave(self) -> bool:
        """End for want of watchers, unless one has just come."""
        with self._lock:
            if len(self._board):
                return False
            self._thread = None
            return True

    def _compare(self) -> int:
        """Wake the watchers that know another value; return the version that was read.

        It can be one less than LMDB's number of the last commit, which shows just before readers see the commit.
        """
        watchers = self._board.watchers()
        version, changed = self._read(lambda tr: (tr.get_read_version(), [w for w in watchers if _differs(tr, w)]))
        self._board.rouse(changed)
        return version


def _differs(tr: ReadTransaction, watcher: Watcher) -> bool:
    return any(tr.get(key).wait() != value for key, value in watcher.known.items())
