"""Rows show the health that the recorder keeps in the store."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pqadmin.live.board.board import Board
from pqadmin.live.board.health import Outlook, Problem, Rules, State
from pqadmin.live.board.rows import Row
from pqadmin.live.words import state_words
from queues import Queue, Store, open_store
from tests.conftest import Clock, store_url


@pytest.fixture
def store(engine: str, tmp_path: Path, clock: Clock) -> Iterator[Store]:
    """A store whose time the test gives."""
    with open_store(store_url(engine, tmp_path), clock=clock) as opened:
        yield opened


class Site:
    """A recorder, and a board that reads the store beside it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.recorder = store.recorder(count=clock)
        self.restart()

    def restart(self) -> None:
        """Begin with a board that has seen nothing."""
        self.board = Board(Rules())
        self.board.put_directory(self.store.directory(), 1)

    def pass_time(self, seconds: int, queue: Queue) -> Row:
        """Look every ten seconds, and return the row at the end."""
        for _ in range(seconds // 10):
            self.clock.advance(10)
            self.recorder.look()
            self.recorder.flush()
            self.board.apply(self.store.snapshot([queue.id]), self.clock())
            row = self.board.row(queue.id, self.clock())
        assert row is not None
        return row


def used(store: Store) -> Queue:
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"x", n) for n in range(20)])
    jobs.pop_many(5)
    return jobs


def test_a_stalled_queue_stays_so_through_acts_of_people_and_a_restart(store: Store, clock: Clock) -> None:
    jobs = used(store)
    site = Site(store, clock)
    assert site.pass_time(120, jobs).state is State.STALLED
    since = site.pass_time(10, jobs).quiet_since
    store.actions("ana").pop("jobs")
    row = site.pass_time(60, jobs)
    assert (row.state, row.problem, row.quiet_since) == (State.STALLED, Problem.STALLED, since)
    site.restart()
    row = site.pass_time(10, jobs)
    assert (row.state, row.problem, row.quiet_since) == (State.STALLED, Problem.STALLED, since)


def test_items_of_a_test_are_no_emergency(store: Store, clock: Clock) -> None:
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"x", n) for n in range(10)])
    row = Site(store, clock).pass_time(1_200, jobs)
    assert (row.state, row.problem, row.outlook) == (State.OK, Problem.NONE, Outlook.UNKNOWN)


def test_a_queue_that_grows_unevenly_grows(store: Store, clock: Clock) -> None:
    jobs = used(store)
    site = Site(store, clock)
    for n in range(30):
        jobs.push_many([(b"x", 1)] * 60)
        jobs.pop_many(70 if n % 5 == 0 else 30)
        row = site.pass_time(10, jobs)
    assert (row.state, row.outlook, row.problem) == (State.GROWING, Outlook.GROWING, Problem.GROWING)
    assert row.grows_by is not None
    assert 1 < row.grows_by < 4


def test_a_queue_whose_items_come_back_fails(store: Store, clock: Clock) -> None:
    jobs = used(store)
    site = Site(store, clock)
    for _ in range(20):
        for lease in jobs.lease_many(3):
            jobs.release(lease, reason="ValueError: no", count_attempt=False)
        row = site.pass_time(10, jobs)
    assert Problem.FAILING in row.problems
    assert row.problem is not Problem.STALLED
    assert "most taken items come back" in state_words(row, datetime.fromtimestamp(clock(), UTC))
