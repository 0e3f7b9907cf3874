"""Every reason why a queue needs a look, from real queues read at moments that the test sets."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pqadmin.live.board.board import Board
from pqadmin.live.board.health import Problem, Rules
from pqadmin.live.words import state_words
from pqadmin.wall.levels import Level, level_of
from queues import Queue, Store, open_store
from tests.conftest import Clock, store_url


@pytest.fixture
def store(engine: str, tmp_path: Any, clock: Clock) -> Iterator[Store]:
    """A fresh store on each engine, with a clock that does not move."""
    with open_store(store_url(engine, tmp_path), clock=clock) as opened:
        yield opened


class Watched:
    """One queue on a board, read whenever the clock has gone on; calendar and monitor go by the same clock."""

    def __init__(self, store: Store, clock: Clock, rules: Rules | None = None) -> None:
        self.store, self.clock, self.board = store, clock, Board() if rules is None else Board(rules)
        self.jobs: Queue = store.create_queue("jobs")
        self.look()

    def look(self) -> tuple[str, ...]:
        """Read the queue and return its problems, the worst first."""
        ids = [self.jobs.id]
        self.board.apply(self.store.snapshot(ids, previous=self.board.previous(ids)), self.clock.now)
        return self.known()

    def known(self) -> tuple[str, ...]:
        """Return the problems as of now, by what was read last."""
        row = self.board.row(self.jobs.id, self.clock.now)
        assert row is not None
        return tuple(map(str, row.problems))

    def after(self, seconds: float) -> tuple[str, ...]:
        """Let time pass in which nothing changes, and return the problems."""
        self.clock.advance(seconds)
        self.board.hold([self.jobs.id], self.clock.now)
        return self.known()

    def words(self) -> str:
        """Return what the row says below the queue's name."""
        row = self.board.row(self.jobs.id, self.clock.now)
        assert row is not None
        return state_words(row, datetime.fromtimestamp(self.clock.now, UTC))


Watch = Callable[..., Watched]


@pytest.fixture
def watched(store: Store, clock: Clock) -> Watched:
    """A watched queue without anything in it, by the rules as they come."""
    return Watched(store, clock)


def test_nothing_taken_for_a_minute_while_items_are_ready(watched: Watched) -> None:
    assert watched.after(3_600) == (), "an empty queue may be quiet"
    watched.jobs.push_many([(b"x", 1)] * 2)
    watched.jobs.pop_min()
    assert watched.look() == ()
    assert watched.after(59) == ()
    assert watched.after(2) == ("stalled",)
    assert watched.words() == "stalled · nothing taken for 61 s"
    watched.jobs.push(b"x", priority=1)
    assert watched.look() == ("stalled",), "what arrives takes nothing"
    watched.jobs.pop_min()
    assert watched.look() == ()


def test_a_queue_that_was_empty_is_not_stalled_by_what_is_pushed(watched: Watched, clock: Clock) -> None:
    watched.board.put_directory({"jobs": watched.jobs.id}, 1)

    def everywhere() -> tuple[str, str, int, Level]:
        (row,) = (overview := watched.board.overview(clock.now, datetime.fromtimestamp(clock.now, UTC))).rows
        return row.state, row.outlook, overview.summary.problems.get(Problem.STALLED, 0), level_of(row)

    def push() -> tuple[str, ...]:
        watched.jobs.push_many([(b"x", 1)] * 2)
        return watched.look()

    assert watched.after(540) == ()
    assert push() == (), "nothing could be taken before"
    assert everywhere() == ("ok", "growing", 0, Level.OK)
    assert watched.after(59) == ()
    assert everywhere() == ("ok", "unknown", 0, Level.OK)
    assert watched.after(2) == ("stalled",)
    assert everywhere() == ("stalled", "stalled", 1, Level.BAD)
    assert watched.words() == "stalled · nothing taken for 61 s"
    watched.jobs.pop_min()
    assert watched.look() == ()
    watched.jobs.pop_min()
    assert watched.look() == ()
    assert watched.after(540) == ()
    assert push() == (), "it was empty once more"
    assert watched.after(61) == ("stalled",)


def test_a_queue_that_was_paused_is_not_stalled_as_it_goes_on(store: Store, clock: Clock) -> None:
    watched = Watched(store, clock, Rules(old_after=0))
    jobs = watched.jobs
    jobs.push_many([(b"x", 1)] * 2)
    jobs.pause(reason="deploy")
    assert watched.look() == ("paused",)
    assert watched.after(3_600) == ("paused",)
    jobs.resume()
    assert watched.look() == (), "nothing could be taken before"
    assert watched.after(59) == ()
    assert watched.after(2) == ("stalled",)
    jobs.pause(reason="deploy", until=datetime.fromtimestamp(clock.now, UTC) + timedelta(hours=1))
    assert watched.look() == ("paused",)
    assert watched.after(3_601) == (), "the pause has ended by itself"
    assert watched.after(61) == ("stalled",)
    jobs.push(b"x", priority=1)
    assert watched.look() == ("stalled",), "a pause that is over excuses nothing"


def test_items_that_were_pushed_long_ago_and_are_ready_since_now_do_not_stall(store: Store, clock: Clock) -> None:
    watched = Watched(store, clock, Rules(old_after=0))
    jobs = watched.jobs
    jobs.push(b"later", priority=1, delay=timedelta(minutes=10))
    assert watched.look() == ()
    assert watched.after(601) == ()
    store.sweep()
    assert watched.look() == (), "it fell due"
    assert watched.after(61) == ("stalled",)
    lease = jobs.lease(seconds=600)
    assert watched.look() == ()
    assert watched.after(300) == ()
    jobs.release(lease)
    assert watched.look() == (), "it came back"
    assert watched.after(61) == ("stalled",)
    ann = store.actions("ann")
    (taken,) = ann.pop_many("jobs", 1)
    assert watched.look() == ()
    assert watched.after(300) == ()
    ann.undo(taken.trash_id)
    assert watched.look() == (), "it was put back"
    assert watched.after(61) == ("stalled",)


def test_growing_for_two_minutes_without_a_break(watched: Watched) -> None:
    def second(pushes: int, pops: int) -> tuple[str, ...]:
        watched.clock.advance(1)
        watched.jobs.push_many([(b"x", 1)] * pushes)
        watched.jobs.pop_many(pops)
        return watched.look()

    assert {second(2, 1) for _ in range(110)} == {()}
    assert {second(0, 3) for _ in range(15)} == {()}, "a break"
    assert {second(2, 1) for _ in range(110)} == {()}, "the two minutes begin anew"
    assert {second(2, 1) for _ in range(30)} == {(), ("growing",)}


def test_items_that_are_dead(store: Store, clock: Clock) -> None:
    watched = Watched(store, clock)
    watched.jobs.configure(max_attempts=1)
    watched.jobs.push(b"x", priority=1)
    lease = watched.jobs.lease(seconds=10)
    assert watched.look() == ()
    watched.jobs.release(lease)
    assert watched.look() == ("dead",)
    assert watched.words() == "empty · 1 dead"


def test_a_pause_that_holds(watched: Watched, clock: Clock) -> None:
    watched.jobs.pause(reason="deploy", by="ada", until=datetime.fromtimestamp(clock.now + 120, UTC))
    assert watched.look() == ("paused",)
    assert watched.after(119) == ("paused",)
    assert "ada" in watched.words()
    assert "deploy" in watched.words()
    assert watched.after(2) == ()


def test_the_oldest_claimable_item_waits_for_a_quarter_of_an_hour(watched: Watched) -> None:
    jobs = watched.jobs
    jobs.push(b"later", priority=5, delay=timedelta(hours=2))
    jobs.push(b"now", priority=9)

    def minute() -> tuple[str, ...]:
        watched.clock.advance(60)
        jobs.push(b"x", priority=1)
        jobs.pop_min()  # it is not stalled: other items are taken before it
        return watched.look()

    assert {minute() for _ in range(14)} == {()}
    watched.clock.advance(59)
    jobs.pop_max()
    jobs.push(b"now", priority=9)
    assert watched.look() == (), "another one is the oldest now; what is delayed cannot be claimed"
    assert {minute() for _ in range(14)} == {()}
    assert minute() == ("old",)
    assert "oldest waits 15 min" in watched.words()


def test_rules_are_settings_and_zero_switches_them_off(store: Store, clock: Clock) -> None:
    watched = Watched(store, clock, Rules(stalled_after=5, old_after=0, dead_from=2))
    watched.jobs.push(b"x", priority=1)
    assert watched.look() == ()
    assert watched.after(6) == ("stalled",)
    assert watched.after(100_000) == ("stalled",)
