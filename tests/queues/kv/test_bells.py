"""What wakes a thread: by an event descriptor, or by a lock where there is none."""

import _thread
import gc
import os
import resource
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queues.kv import open_kv
from queues.kv.bells import Bell

LONG = 120


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def limit() -> Iterator[Callable[[int], None]]:
    """Let the process have so many descriptors until the test ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda most: resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_descriptors_left_a_lock_does(limit: Callable[[int], None]) -> None:
    limit(3)
    bell = Bell()
    bell.ring()
    assert bell.listen_for(LONG)


def test_bells_leave_descriptors_to_other_threads(limit: Callable[[int], None]) -> None:
    before = descriptors()
    limit(400)
    bells = [Bell() for _ in range(500)]
    assert descriptors() < before + 100
    for bell in bells:
        bell.ring()
        assert bell.listen_for(LONG)


def test_where_another_library_replaces_threads_its_locks_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """To read from a descriptor would stop all of gevent's greenlets, the writer's as well."""

    class Lock:
        def __init__(self) -> None:
            self._lock = _thread.allocate_lock()
            self.acquire, self.release = self._lock.acquire, self._lock.release

    monkeypatch.setattr(threading, "Lock", Lock)
    before = descriptors()
    bell = Bell()
    assert descriptors() == before
    bell.ring()
    assert bell.listen_for(LONG)


def test_a_late_ring_writes_into_no_other_file(tmp_path: Path) -> None:
    """A thread that was interrupted leaves a bell that may still be rung: its descriptor must not be reused."""
    ring = Bell().ring
    with (tmp_path / "other").open("wb", buffering=0) as other:
        ring()
        assert os.fstat(other.fileno()).st_size == 0


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors are counted in /proc")
def test_threads_that_ended_leave_no_descriptor(tmp_path: Path) -> None:
    kv = open_kv(f"lmdb:{tmp_path / 'store'}")
    kv.transact(lambda tr: tr.set(b"k", b"v"))
    before = descriptors()
    for _ in range(30):
        thread = threading.Thread(target=kv.transact, args=(lambda tr: tr.set(b"k", b"v"),))
        thread.start()
        thread.join(LONG)
    assert descriptors() <= before + 1  # that of the last call may still be held by its batch
    kv.close()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors are counted in /proc")
def test_stores_that_are_closed_leave_no_descriptor(tmp_path: Path) -> None:
    gc.disable()
    try:
        before = descriptors()
        for n in range(20):
            kv = open_kv(f"lmdb:{tmp_path / str(n)}")
            kv.transact(lambda tr: tr.set(b"k", b"v"))
            kv.close()
        assert descriptors() <= before + 2
    finally:
        gc.enable()
