"""Crowds of threads: each is answered, whether the rest of its batch comes back or not."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from queues import Queue, open_store

LONG = 120
CROWD = 32


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Queue]:
    with open_store(f"lmdb:{tmp_path / 'store'}") as store:
        yield store.create_queue("jobs")


def crowd(jobs: Queue, calls: list[int]) -> list[str]:
    """Let as many threads as there are numbers push at once, each so often; return the ids."""
    together = threading.Barrier(len(calls))
    ids: list[str] = []

    def work(number: int, n: int) -> None:
        together.wait(LONG)
        ids.extend(jobs.push(b"%d" % number, priority=number).id for _ in range(n))

    all_end([threading.Thread(target=work, args=(number, n), daemon=True) for number, n in enumerate(calls)])
    return ids


def all_end(threads: list[threading.Thread]) -> None:
    """Start them and wait for all."""
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive(), "a thread is still waiting for its answer"


def test_threads_that_never_come_back_hold_up_no_other_one(jobs: Queue) -> None:
    for _ in range(10):
        crowd(jobs, [1] * CROWD)
    assert jobs.depth() == 10 * CROWD


def test_a_crowd_that_melts_away_is_answered_to_the_last(jobs: Queue) -> None:
    calls = [1 + n % 10 for n in range(2 * CROWD)]
    ids = crowd(jobs, calls)
    assert len(set(ids)) == sum(calls) == jobs.depth()
