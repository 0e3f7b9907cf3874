"""Rows show the health that the recorder keeps in the store."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pqadmin.live.board.board import Board
from pqadmin.live.board.rows import Row
from pqadmin.live.words import verdict_words
from queues import Queue, Store, open_store
from queues.admin import average_rates
from queues.health.targets import DEFAULTS
from tests.conftest import Clock, store_url


@pytest.fixture
def engine() -> str:
    """One engine: what is recorded is the same on each, as `tests/conformance/health` says."""
    return "simulated"


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
        self.board = Board()
        self.board.put_directory(self.store.directory(), 1)

    def pass_time(self, seconds: int, queue: Queue) -> Row:
        """Look every ten seconds, and return the row at the end."""
        for _ in range(seconds // 10):
            self.clock.advance(10)
            self.recorder.look()
            self.recorder.flush()
            self.board.apply(self.store.snapshot([queue.id], previous=self.board.previous([queue.id])), self.clock())
            row = self.board.row(queue.id, self.clock())
        assert row is not None
        return row


def used(store: Store) -> Queue:
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"x", n) for n in range(20)])
    jobs.pop_many(5)
    return jobs


def words(row: Row, clock: Clock, *, whole: bool = False) -> str:
    return verdict_words(row, datetime.fromtimestamp(clock(), UTC), whole=whole)


def test_a_stalled_queue_stays_so_through_acts_of_people_and_a_restart(store: Store, clock: Clock) -> None:
    jobs = used(store)
    site = Site(store, clock)
    row = site.pass_time(120, jobs)
    assert (row.level, row.trend, words(row, clock)) == ("critical", "stalled", "critical · no consumer for 1 min")
    since = row.verdict.reasons[0].since
    store.actions("ana").pop("jobs")
    row = site.pass_time(60, jobs)
    assert (row.level, row.verdict.reasons[0].since) == ("critical", since)
    site.restart()
    row = site.pass_time(10, jobs)
    assert (row.level, row.verdict.reasons[0].since) == ("critical", since)
    assert words(row, clock) == "critical · no consumer for 3 min"


def test_recorded_waits_stay_on_rows_until_the_recorder_lets_go_of_them(store: Store, clock: Clock) -> None:
    jobs = store.create_queue("jobs")
    jobs.configure(target_wait=10)
    site = Site(store, clock)
    for _ in range(30):
        jobs.push_many([(b"x", 1)] * 2)
        site.pass_time(30, jobs)
        jobs.pop_many(2)
    row = site.pass_time(90, jobs)
    assert words(row, clock) == "critical · some wait about 28 s, target 10 s"
    row = site.pass_time(600, jobs)
    assert (row.level, row.verdict.reasons) == ("ok", ())


@pytest.mark.parametrize(("target", "told"), [(20, "warning · some wait about 28 s, target 20 s"), (31, "ok")])
def test_waits_that_are_within_their_target_are_not_told(store: Store, clock: Clock, target: int, told: str) -> None:
    """All items wait for 30 seconds, which are counted as 23 to 33."""
    jobs = store.create_queue("jobs")
    jobs.configure(target_wait=target)
    site = Site(store, clock)
    for _ in range(30):
        jobs.push_many([(b"x", 1)] * 2)
        row = site.pass_time(30, jobs)
        jobs.pop_many(2)
    assert words(row, clock) == told


def test_waits_beyond_their_target_stay_told_through_a_restart_of_the_recorder(store: Store, clock: Clock) -> None:
    jobs = store.create_queue("jobs")
    jobs.configure(target_wait=10)
    site = Site(store, clock)
    told = []
    for n in range(24):
        if n == 14:
            site = Site(store, clock)
        jobs.push_many([(b"x", 1)] * 2)
        row = site.pass_time(30, jobs)
        jobs.pop_many(2)
        told.append(words(row, clock))
    assert set(told[12:]) == {"critical · some wait about 28 s, target 10 s"}


def test_items_of_a_test_are_no_emergency(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"x", n) for n in range(10)])
    row = Site(store, clock).pass_time(1_200, jobs)
    assert (words(row, clock), row.trend) == ("ok · nothing taken yet", "unknown")


def test_a_queue_that_grows_unevenly_grows(store: Store, clock: Clock) -> None:
    jobs = used(store)
    site = Site(store, clock)
    for n in range(30):
        jobs.push_many([(b"x", 1)] * 60)
        jobs.pop_many(70 if n % 5 == 0 else 30)
        row = site.pass_time(10, jobs)
    assert (row.level, row.trend) == ("warning", "growing")
    assert 1 < row.verdict.grows_by < 4
    assert "warning · grows about 2/s" in words(row, clock)


def test_a_queue_whose_items_come_back_fails(store: Store, clock: Clock) -> None:
    jobs = used(store)
    site = Site(store, clock)
    for _ in range(20):
        for lease in jobs.lease_many(3):
            jobs.release(lease, reason="ValueError: no", count_attempt=False)
        row = site.pass_time(10, jobs)
    assert words(row, clock).startswith("critical · nothing finished for 3 min, every attempt fails")


def test_workers_that_hang_in_what_they_hold_are_told_by_its_number(store: Store, clock: Clock) -> None:
    jobs = used(store)
    held = jobs.lease_many(4, seconds=60)
    site = Site(store, clock)
    for _ in range(20):
        for lease in held:
            jobs.extend(lease, seconds=60)
        store.context.presence.beat()
        row = site.pass_time(20, jobs)
    assert words(row, clock) == "warning · nothing finished for 5 min, 1 consumer holds 4 items"
    assert words(row, clock, whole=True) == "warning · nothing finished for 6 min, 1 consumer holds 4 items"


def test_the_page_of_a_queue_tells_the_number_of_now_and_a_row_a_rough_one(store: Store, clock: Clock) -> None:
    jobs = used(store)
    jobs.configure(max_attempts=1)
    site = Site(store, clock)
    for _ in range(2):
        jobs.push_many([(b"x", 1)] * 101)
        for lease in jobs.lease_many(101):
            jobs.release(lease, reason="ValueError: no")
        row = site.pass_time(20, jobs)
        jobs.push_many([(b"x", 1)] * 10)
        for lease in jobs.lease_many(10):
            jobs.release(lease, reason="ValueError: no")
        row = site.pass_time(20, jobs)
    assert "at least 200 dead" in words(row, clock)
    assert "222 dead" in words(row, clock, whole=True)


@pytest.mark.parametrize("damaged", [True, False])
def test_items_that_waited_while_nothing_was_recorded_are_not_said_to_be_well(
    store: Store, clock: Clock, damaged: bool
) -> None:
    jobs = used(store)
    if damaged:
        assert Site(store, clock).pass_time(120, jobs).level == "critical"
        key = store.context.keyspace.queue(jobs.id).health
        store.transact(lambda tr: tr.set(key, b"\x01damaged"))
        jobs.push(b"x", 1)  # what was read before is read again
    clock.advance(1_800)
    site = Site(store, clock)
    told = [words(site.pass_time(10, jobs), clock) for _ in range(12)]
    assert "ok" not in {text.partition(" ")[0] for text in told}, told
    assert told[0] == "unknown · nothing recorded yet"
    assert told[-1].startswith("critical · no consumer for")


def test_a_consumer_that_takes_soon_after_a_first_start_is_told_as_well(store: Store, clock: Clock) -> None:
    jobs = used(store)
    clock.advance(1_800)
    jobs.configure(target_oldest=0)
    site = Site(store, clock)
    assert words(site.pass_time(10, jobs), clock) == "unknown · nothing recorded yet"
    jobs.pop_many(5)
    assert words(site.pass_time(10, jobs), clock) == "ok"


def test_every_process_tells_the_same_averages_also_just_after_a_restart(store: Store, clock: Clock) -> None:
    jobs = store.create_queue("jobs")
    site = Site(store, clock)
    for _ in range(120):
        jobs.push_many([(b"x", 1)] * 20)
        jobs.pop_many(10)
        site.pass_time(10, jobs)
    clock.advance(60)

    def told() -> object:
        return average_rates(jobs.status(), DEFAULTS, store.now())

    before = told()
    assert before is not None
    for average, steady in zip(before, (2.0, 1.0), strict=True):
        # Nothing came in the last minute: the shorter an average, the less is left of it.
        assert [round(rate / steady, 1) for rate in average] == [0.4, 0.8, 0.9]
    Site(store, clock).recorder.look()
    assert told() == before


def test_what_a_queue_got_before_it_was_looked_at_first_counts_if_it_is_new(store: Store, clock: Clock) -> None:
    site = Site(store, clock)
    site.recorder.look()
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"x", 1)] * 500)

    def pushed() -> list[float]:
        """Return the items that each average tells of its minutes."""
        told = average_rates(jobs.status(), DEFAULTS, store.now())
        assert told is not None
        return [round(rate * seconds) for rate, seconds in zip(told[0], (60, 300, 900), strict=True)]

    site.pass_time(20, jobs)
    assert pushed() == pytest.approx([390, 475, 492], abs=5), "500, and a part of them is forgotten"
    ana = store.actions("ana")
    trash_id = ana.delete_queue("jobs", confirm="jobs")
    site.recorder.look()
    clock.advance(10)
    site.recorder.look()
    ana.undo(trash_id)
    site.pass_time(20, jobs)
    assert pushed() == pytest.approx([200, 420, 470], abs=40), "one that comes back is not new"


def test_a_consumer_that_died_while_no_process_watched_is_not_said_to_be_well(store: Store, clock: Clock) -> None:
    jobs = store.create_queue("jobs")
    site = Site(store, clock)
    for _ in range(30):
        jobs.push(b"x", 1)
        jobs.pop_min()
        assert words(site.pass_time(10, jobs), clock) == "ok"
    clock.advance(60)
    jobs.pop_min()
    jobs.push_many([(b"x", 1)] * 9)
    clock.advance(600)
    site = Site(store, clock)
    told = [words(site.pass_time(10, jobs), clock).partition(" ")[0] for _ in range(9)]
    assert (told[0], told[-1]) == ("unknown", "critical")
    assert set(told) == {"unknown", "critical"}


def test_an_idle_queue_that_gets_an_old_item_back_was_watched_all_the_time(store: Store, clock: Clock) -> None:
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"x", 1)] * 2)
    jobs.pop_min()
    taken = store.actions("ana").pop("jobs")
    site = Site(store, clock)
    assert site.pass_time(120, jobs).level == "ok"
    for _ in range(60):
        clock.advance(10)
        site.recorder.look()
        site.board.hold([jobs.id], clock(), store.now())
    store.actions("ana").undo(str(taken.trash_id))
    site.board.apply(store.snapshot([jobs.id], previous=site.board.previous([jobs.id])), clock())
    row = site.board.row(jobs.id, clock())
    assert row is not None
    assert row.level == "ok"


def test_a_process_that_starts_knows_that_an_idle_queue_was_watched(store: Store, clock: Clock) -> None:
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"x", 1)] * 2)
    jobs.pop_min()
    taken = store.actions("ana").pop("jobs")
    site = Site(store, clock)
    for _ in range(600):
        clock.advance(1)
        site.recorder.look()
    store.actions("ana").undo(str(taken.trash_id))
    for _ in range(2):
        clock.advance(1)
        site.recorder.look()
    site.restart()
    site.board.apply(store.snapshot([jobs.id]), clock())
    row = site.board.row(jobs.id, clock())
    assert row is not None
    assert words(row, clock) == "ok"


def test_a_queue_that_is_read_alone_has_the_recorded_verdict_and_no_rates_of_before(store: Store, clock: Clock) -> None:
    jobs = used(store)
    site = Site(store, clock)
    site.pass_time(10, jobs)
    for _ in range(60):
        clock.advance(10)
        site.recorder.look()
        site.recorder.flush()
    jobs.push(b"x", 1)
    row = site.board.row_as_read(jobs.status(), clock(), store.now())
    assert row is not None
    assert (row.level, row.trend, row.rate_in) == ("critical", "stalled", None), "as a program asks now and then"
