"""Threads in two cohorts: one learns of its answers while the other's commit is flushed, and no thread is forgotten."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from queues import Queue, open_store
from queues.kv import combining
from queues.kv.combining import Combiner

LONG = 120
CROWD = 32


@pytest.fixture
def parted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have every crowd part, however slow the disk is; return how many were kept each time."""
    kept: list[int] = []
    first_cohort = Combiner._first_cohort

    def count(self: Combiner, answered: Sequence[Any], pace: Any) -> int:
        told = first_cohort(self, answered, pace)
        kept.append(len(answered) - told)
        return told

    monkeypatch.setattr(combining, "RETURN", float(LONG))
    monkeypatch.setattr(Combiner, "_first_cohort", count)
    return kept


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

    everybody_ends([threading.Thread(target=work, args=(number, n), daemon=True) for number, n in enumerate(calls)])
    return ids


def everybody_ends(threads: list[threading.Thread]) -> None:
    """Start them and wait for all."""
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive(), "a thread is still waiting for its answer"


def test_kept_threads_are_released_when_the_rest_never_come_back(jobs: Queue, parted: list[int]) -> None:
    for _ in range(10):
        crowd(jobs, [1] * CROWD)
    assert any(parted)
    assert jobs.depth() == 10 * CROWD


def test_a_crowd_that_melts_away_is_answered_to_the_last(jobs: Queue, parted: list[int]) -> None:
    calls = [1 + n % 40 for n in range(2 * CROWD)]
    ids = crowd(jobs, calls)
    assert any(parted)
    assert len(set(ids)) == sum(calls) == jobs.depth()


def test_the_cohorts_are_alike(jobs: Queue, parted: list[int]) -> None:
    crowd(jobs, [60] * CROWD)
    kept = [n for n in parted if n]
    assert len(kept) > 20
    assert sorted(kept)[len(kept) // 2] in range(CROWD // 2 - 4, CROWD // 2 + 5)


def test_few_threads_are_told_at_once(jobs: Queue, parted: list[int]) -> None:
    crowd(jobs, [20] * 8)
    assert not any(parted)


def test_where_a_commit_takes_longer_than_all_take_to_come_back_no_thread_is_kept(
    jobs: Queue, parted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(combining, "RETURN", 0.0)
    crowd(jobs, [20] * CROWD)
    assert parted
    assert not any(parted)
