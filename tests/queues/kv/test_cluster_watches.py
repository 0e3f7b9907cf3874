"""Watches of a cluster's keys: more keys than one client may watch wake no thread for nothing."""

from collections.abc import Callable

import pytest

from queues.kv.cluster.watches import Watches
from queues.kv.watching import WatchBoard, Watcher

#: FoundationDB's limit of one client.
LIMIT = 10_000


class LibraryFuture:
    """A watch of the client library; it is ready when it fires or is canceled."""

    def __init__(self, library: "Library") -> None:
        self._library = library
        self._callbacks: list[Callable[[LibraryFuture], None]] = []

    def on_ready(self, callback: Callable[["LibraryFuture"], None]) -> None:
        self._callbacks.append(callback)

    def cancel(self) -> None:
        self.fire()

    def fire(self) -> None:
        self._library.outstanding.discard(self)
        for callback in self._callbacks:
            callback(self)


class Library:
    """A transaction of the client library, on an empty database; it is its own reads."""

    def __init__(self) -> None:
        self.outstanding: set[LibraryFuture] = set()
        self.watches: dict[bytes, LibraryFuture] = {}
        self.snapshot = self

    def get(self, key: bytes) -> "Library":
        return self

    def wait(self) -> None:
        return None

    def watch(self, key: bytes) -> LibraryFuture:
        future = self.watches[key] = LibraryFuture(self)
        self.outstanding.add(future)
        assert len(self.outstanding) <= LIMIT
        return future

    def arm(self) -> None:
        pass


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture
def board() -> WatchBoard:
    return WatchBoard()


@pytest.fixture
def look(library: Library, board: WatchBoard) -> Callable[[range], Watcher]:
    """Begin to watch these keys, as a thread does that is in `watch`."""
    watches = Watches(board)

    def look(numbers: range) -> Watcher:
        known = {b"%d" % n: None for n in numbers}
        watcher = Watcher(known, None)
        board.add(watcher)
        missing = watches.unset(known)
        assert not missing or watches.begin(library, missing)
        return watcher

    return look


def test_a_thread_that_watches_more_keys_than_there_are_watches_sleeps(
    board: WatchBoard, library: Library, look: Callable[[range], Watcher]
) -> None:
    for _ in range(3):
        assert not board.wait(look(range(12_000)), 0)
    watcher = look(range(12_000))
    library.watches[b"7"].fire()
    assert board.wait(watcher, 0)


def test_threads_that_together_watch_more_keys_than_there_are_watches_sleep(
    board: WatchBoard, library: Library, look: Callable[[range], Watcher]
) -> None:
    first, second = range(5_000), range(5_000, 10_000)
    watcher = look(first)
    for _ in range(3):
        other = look(second)
        assert not board.wait(watcher, 0)
        watcher = look(first)
        assert not board.wait(other, 0)
    library.watches[b"7"].fire()
    assert board.wait(watcher, 0)


def test_a_watch_on_an_older_value_wakes_though_the_key_is_watched_anew(board: WatchBoard, library: Library) -> None:
    watches = Watches(board)
    assert watches.begin(library, {b"key": None})
    old = library.watches[b"key"]
    assert watches.begin(library, {b"key": None})
    watcher = Watcher({b"key": None}, None)
    board.add(watcher)
    old.fire()
    assert board.wait(watcher, 0)
