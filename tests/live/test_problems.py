"""Every reason why a queue needs a look, from real queues read at moments that the test sets; nothing is recorded."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pqadmin.live.board.board import Board
from pqadmin.live.board.rows import Row
from pqadmin.live.words import trend_words, verdict_words
from queues import Queue, Store, open_store
from queues.admin import TargetRules
from queues.model.limits import Limits
from tests.conftest import Clock, store_url


@pytest.fixture
def engine() -> str:
    """One engine: verdicts are derived from rows, which are the same on each."""
    return "simulated"


@pytest.fixture
def store(engine: str, tmp_path: Any, clock: Clock) -> Iterator[Store]:
    """A fresh store on each engine, with a clock that does not move."""
    with open_store(store_url(engine, tmp_path), clock=clock) as opened:
        yield opened


class Watched:
    """One queue on a board, read whenever the clock has gone on; calendar and monitor go by the same clock."""

    def __init__(self, store: Store, clock: Clock, targets: Limits | None = None) -> None:
        self.store, self.clock, self.board = store, clock, Board()
        self.jobs: Queue = store.create_queue("jobs")
        self.board.put_directory({"jobs": self.jobs.id}, 1, TargetRules(defaults=targets or Limits()))
        self.look()

    def look(self) -> str:
        """Read the queue and return the words of its row."""
        ids = [self.jobs.id]
        self.board.apply(self.store.snapshot(ids, previous=self.board.previous(ids)), self.clock.now)
        return self.words()

    @property
    def row(self) -> Row:
        """The row as of now."""
        row = self.board.row(self.jobs.id, self.clock.now)
        assert row is not None
        return row

    def words(self) -> str:
        """Return what the row says below the queue's name."""
        return verdict_words(self.row, datetime.fromtimestamp(self.clock.now, UTC))

    def after(self, seconds: float) -> str:
        """Let time pass in which nothing changes, and return the words."""
        while seconds > 0:
            step = min(seconds, 10.0)
            seconds -= step
            self.clock.advance(step)
            self.board.hold([self.jobs.id], self.clock.now, self.store.now())
            said = self.words()
        return said


@pytest.fixture
def watched(store: Store, clock: Clock) -> Watched:
    """A watched queue from which an item was taken."""
    watched = Watched(store, clock)
    watched.jobs.push_many([(b"x", 1)] * 3)
    watched.jobs.pop_min()
    return watched


def test_nothing_taken_for_a_minute_while_items_are_ready(watched: Watched) -> None:
    assert watched.look() == "ok", "it was taken from just now"
    assert watched.after(59) == "ok"
    assert watched.after(12) == "critical · no consumer for 1 min"
    assert trend_words(watched.row) == "stalled"
    watched.jobs.push(b"x", priority=1)
    assert watched.look() == "critical · no consumer for 1 min", "what arrives takes nothing"
    watched.store.actions("ana").pop("jobs")
    assert watched.look() == "critical · no consumer for 1 min", "neither does a person"
    assert watched.after(660) == "critical · no consumer for 12 min"
    watched.jobs.pop_min()
    watched.look()
    watched.jobs.pop_min()
    watched.look()
    assert watched.after(61) == "ok", "nothing waits any more"


def test_a_site_that_saw_nothing_yet_says_so(store: Store, clock: Clock, watched: Watched) -> None:
    clock.advance(61)
    late = Board()
    late.apply(store.snapshot([watched.jobs.id]), clock.now)

    def said() -> str:
        late.hold([watched.jobs.id], clock.now, store.now())
        row = late.row(watched.jobs.id, clock.now)
        return verdict_words(row, datetime.fromtimestamp(clock.now, UTC))

    assert said() == "unknown · nothing recorded yet"
    clock.advance(30)
    assert said() == "unknown · nothing recorded yet"
    clock.advance(35)
    assert said() == "critical · no consumer for 1 min"


def test_first_items_are_not_unknown_while_nothing_is_recorded(store: Store, clock: Clock) -> None:
    watched = Watched(store, clock)
    watched.jobs.push(b"x", priority=1)
    assert watched.look() == "ok · nothing taken yet"
    used = store.queue("jobs")
    used.push(b"x", priority=1)
    used.pop_min()
    late = Board()
    late.apply(store.snapshot([used.id]), clock.now)
    clock.advance(50)
    late.hold([used.id], clock.now, store.now())
    row = late.row(used.id, clock.now)
    assert row.level == "ok", "no item waits for a minute yet"


def test_a_pause_names_the_person_and_excuses_until_it_ends(store: Store, clock: Clock) -> None:
    watched = Watched(store, clock, Limits(oldest=0))
    jobs = watched.jobs
    jobs.push_many([(b"x", 1)] * 2)
    jobs.pop_min()
    jobs.pause(reason="deploy", by="ada", until=datetime.fromtimestamp(clock.now + 3_600, UTC))
    assert watched.look().startswith("warning · paused by ada, <10 s ago: deploy · resumes ")
    assert watched.after(3_590).startswith("warning · paused by ada, 45 min ago: deploy")
    assert watched.row.mark == "paused"
    assert watched.after(30) == "ok", "the pause has ended by itself"
    assert watched.after(61) == "critical · no consumer for 1 min"


def test_items_that_were_pushed_long_ago_and_are_ready_since_now_do_not_stall(store: Store, clock: Clock) -> None:
    watched = Watched(store, clock, Limits(oldest=0))
    jobs = watched.jobs
    jobs.push(b"now", priority=1)
    jobs.pop_min()
    jobs.push(b"later", priority=1, delay=timedelta(minutes=10))
    assert watched.look() == "ok"
    assert watched.after(601) == "ok"
    store.sweep()
    assert watched.look() == "ok", "it fell due"
    assert watched.after(71) == "critical · no consumer for 1 min"


def test_dead_items_are_a_warning(watched: Watched) -> None:
    jobs = watched.jobs
    jobs.configure(max_attempts=1)
    for n in range(2):
        jobs.release(jobs.lease(seconds=10))
        assert watched.look() == f"warning · {n + 1} dead"


def test_the_oldest_claimable_item_waits_for_a_quarter_of_an_hour(watched: Watched) -> None:
    jobs = watched.jobs
    jobs.pop_many(2)
    jobs.push(b"later", priority=5, delay=timedelta(hours=2))
    jobs.push(b"now", priority=9)

    def minute() -> str:
        watched.clock.advance(60)
        jobs.push(b"x", priority=1)
        jobs.pop_min()  # it is not stalled: other items are taken before it
        return watched.look()

    assert {minute() for _ in range(14)} == {"ok"}
    watched.clock.advance(59)
    jobs.pop_max()
    jobs.push(b"now", priority=9)
    assert watched.look() == "ok", "another one is the oldest now; what is delayed cannot be claimed"
    assert {minute() for _ in range(15)} == {"ok"}
    assert minute() == "warning · oldest waits 15 min"


def test_targets_are_settings_and_zero_switches_them_off(store: Store, clock: Clock) -> None:
    watched = Watched(store, clock, Limits(no_consumer=5, oldest=0, dead=2))
    watched.jobs.push_many([(b"x", 1)] * 3)
    watched.jobs.pop_min()
    watched.look()
    assert watched.after(20) == "critical · no consumer for 20 s"
    assert watched.after(100_000).startswith("critical · no consumer for 24 h")
