"""What pages and frames are made from follows the store, wherever it goes."""

import shutil
import threading
import weakref
from collections.abc import ItemsView
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pqadmin.accounts.scope import Scope
from pqadmin.display import format as write
from pqadmin.live import frame_json
from pqadmin.live.board.board import Board
from pqadmin.live.board.overviews import EVERYTHING, Overview
from pqadmin.live.board.row_html import render_rows
from pqadmin.live.board.rows import load_of
from pqadmin.live.monitor import Monitor
from queues import Snapshot, Store, Totals, open_store
from queues.admin import TargetRules
from queues.model.limits import Limits
from queues.status.status import unreadable_status
from tests.live.conftest import PATIENCE


def test_rows_do_not_change_places_for_an_item_more_or_less() -> None:
    assert [load_of(n) for n in (None, 0, 1, 9, 10, 1_000)] == [0, 0, 1, 1, 2, 4]
    loads = [0]
    for ready in (9, 10, 9, 11, 6, 5, 9, 0):
        loads.append(load_of(ready, loads[-1]))
    assert loads[1:] == [1, 2, 2, 2, 2, 1, 1, 0]


def test_a_store_that_was_replaced_by_a_backup_is_shown_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pqadmin.live.monitor.PAGE_PAUSE", 0.0)
    live, backup = tmp_path / "live", tmp_path / "backup"
    with open_store(f"lmdb:{live}") as store:
        store.create_queue("jobs").push(b"x", priority=1)
    shutil.copytree(live, backup)
    with open_store(f"lmdb:{live}") as newer, open_store(f"lmdb:{backup}") as older:
        newer.queue("jobs").push_many([(b"y", 2)] * 4)
        now = [newer]
        monitor = Monitor(lambda: now[0])
        monitor.refresh()
        assert [row.status.totals.ready for row in monitor.overview().rows] == [5]

        now[0] = older
        monitor.refresh()
        assert monitor.board.ready(older.queue("jobs").id) == 1
        older.queue("jobs").push(b"z", priority=3)
        monitor.refresh()
        assert monitor.board.ready(older.queue("jobs").id) == 2


def test_the_page_and_the_frame_say_the_same_rates(tmp_path: Path) -> None:
    board = Board()
    with open_store(f"lmdb:{tmp_path / 'store'}") as store:
        jobs = store.create_queue("jobs")
        for at, count in ((0.0, 1), (3.0, 1_000), (7.0, 1_000), (7.5, 1_000)):
            jobs.push_many([(b"x", 1)] * count)
            board.apply(store.snapshot([jobs.id], previous=board.previous([jobs.id])), at)
    row = board.row(jobs.id, 7.7)
    assert row.rate_in > 100
    page = str(render_rows([row], now=row.as_of, can_act=False))
    assert f'data-field="rate-in" data-label="in/s">{write.rate(row.rate_in)}<' in page
    assert f'"in":{row.rate_in},' in frame_json.row(row)


class Listed(dict[str, int]):
    """A list of all queues that may halt where all of its names are gone through."""

    halted: threading.Event | None = None
    going: threading.Event | None = None

    def items(self) -> ItemsView[str, int]:
        """Halt, if told so."""
        if self.going is not None and self.halted is not None:
            self.halted.set()
            assert self.going.wait(2 * PATIENCE)
        return super().items()


def test_overviews_of_many_scopes_are_not_all_kept() -> None:
    board = Board()
    board.put_directory({f"team{number}:a": number for number in range(1, 401)}, 1)
    scopes = [Scope.of_globs([f"team{number}:*"]) for number in range(1, 401)]
    for scope in scopes:
        board.overview(1.0, datetime.now(UTC), scope)
    kept = board.overview(1.0, datetime.now(UTC), scopes[-1])
    assert board.overview(1.0, datetime.now(UTC), scopes[-1]) is kept
    first = weakref.ref(board.overview(1.0, datetime.now(UTC), scopes[0]))
    for scope in scopes[1:]:
        board.overview(1.0, datetime.now(UTC), scope)
    assert first() is None, "dropped in favor of newer scopes"


def test_of_very_many_queues_a_page_shows_nothing_that_was_worked_out_long_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pqadmin.live.monitor.PAGE_QUEUES", 1)
    now = [0.0]
    with open_store(f"lmdb:{tmp_path / 'store'}") as store:
        monitor = Monitor(lambda: store, clock=lambda: now[0])
        queues = [store.create_queue(name) for name in ("a", "b")]
        list_all(monitor.board, store)
        read(monitor.board, store, [queue.id for queue in queues])
        assert [row.ready for row in monitor.overview().rows] == [0, 0]
        queues[0].push(b"x", priority=1)
        read(monitor.board, store, [queue.id for queue in queues])
        now[0] = 3_600.0
        assert [row.ready for row in monitor.overview().rows] == [1, 0]


def test_a_socket_does_not_wait_for_the_overview_of_other_people() -> None:
    board = Board()
    known: dict[str, Any] = {"eu:a": 1, "us:a": 2}
    directory = Listed(known)
    board.put_directory(directory, 1)
    assert board.in_sight(Scope.of_globs(["eu:*"])) == {1}
    directory.halted, directory.going = threading.Event(), threading.Event()
    with ThreadPoolExecutor(2) as threads:
        others = threads.submit(board.overview, 1.0, datetime.now(UTC), Scope.of_globs(["us:*"]))
        assert directory.halted.wait(PATIENCE)
        try:
            asked = threads.submit(lambda: (board.in_sight(Scope.of_globs(["eu:*"])), board.ready(1)))
            assert asked.result(PATIENCE) == ({1}, None)
        finally:
            directory.going.set()
        assert others.result(PATIENCE).summary.queues == 1


def test_the_sum_of_rates_is_unknown_while_busy_queues_were_not_watched(store: Store) -> None:
    board, queues = Board(), [store.create_queue(name) for name in ("busy:1", "busy:2", "busy:3", "still")]
    board.put_directory(store.directory(), 1)
    ids = [queue.id for queue in queues]

    def read(at: float) -> float | None:
        board.apply(store.snapshot(ids, previous=board.previous(ids)), at)
        board.hurry()
        return board.overview(at, AT).summary.rate_in

    read(0.0)
    assert read(5.0) == 0.0
    for queue in queues[:3]:
        queue.push_many([(b"x", 1)] * 500)
    assert read(60.0) is None, "0 would be that of the one queue that rested"
    for queue in queues[:3]:
        queue.push_many([(b"x", 1)] * 10)
    assert read(65.0) == 6.0


AT = datetime(2026, 11, 22, 8, tzinfo=UTC)


def waiting() -> Board:
    """Return a board with one queue from which items were taken, and one that waits."""
    board = Board()
    board.put_directory({"jobs": 1}, 1, TargetRules(defaults=Limits(no_consumer=20.0, oldest=60.0, dead=0)))
    jobs = replace(
        unreadable_status(1, "jobs", 1, ""),
        totals=Totals(ready=1, delayed=0, leased=0, dead=0, traffic={"push": 2, "pop": 1}),
        arrived=1,
        oldest=AT - timedelta(seconds=20),
    )
    board.apply(Snapshot(version=1, at=AT, directory_change=1, queues={1: jobs}, changes={1: 1}), 0.0)
    return board


def shown(board: Board, seconds: float) -> tuple[str, ...]:
    (row,) = board.overview(seconds, AT).rows
    return row.level, *row.verdict.codes


def test_a_row_changes_when_its_time_has_come_though_no_person_touches_the_queue() -> None:
    board = waiting()

    def now(seconds: float) -> tuple[str, ...]:
        board.hold([1], seconds, AT + timedelta(seconds=seconds))
        return shown(board, seconds)

    assert now(0.0) == ("unknown", "stale"), "nothing was recorded, and no consumer was seen yet"
    assert now(5.0) == ("unknown", "stale")
    before = board.overview(9.0, AT)
    assert board.row(1, 9.5) is before.rows[0], "nothing differs: it is the very same row"
    assert now(26.0) == ("critical", "no-consumer")
    assert now(50.0) == ("critical", "no-consumer")
    assert now(81.0) == ("critical", "no-consumer", "old")


def test_what_was_not_confirmed_for_long_is_unknown_and_not_stalled_by_that() -> None:
    board = waiting()
    assert shown(board, 100.0) == ("unknown", "stale"), "no second of it was watched"
    assert shown(board, 200.0) == ("unknown", "stale")
    board.hold([1], 201.0, AT + timedelta(seconds=201))
    assert shown(board, 201.5)[0] == "critical", "now it is known that nothing was taken meanwhile"


@pytest.mark.parametrize("step", [timedelta(hours=-2), timedelta(hours=2)])
def test_what_stays_unchanged_is_judged_and_dated_by_a_clock_that_was_set(step: timedelta) -> None:
    board = waiting()
    for seconds in (1.0, 2.0):
        board.hold([1], seconds, AT + timedelta(seconds=seconds))
        shown(board, seconds)
    board.hold([1], 9.0, AT + step)
    board.hurry()
    assert board.overview(9.0, AT + step).summary.as_of == AT + step
    assert (shown(board, 9.0)[0] == "critical") == (step > timedelta())
    read = AT + 2 * step
    row = board.row_as_read(unreadable_status(1, "jobs", 2, "damaged"), 9.5, read)
    assert row is not None
    assert row.as_of == read
    assert row.verdict.since == read.timestamp()


def seen_by(board: Board, glob: str) -> Overview:
    """Return what a scope sees of the board an hour later: nothing is kept from before."""
    return board.overview(3_600.0, datetime.now(UTC), Scope.of_globs([glob]))


def read(board: Board, store: Store, ids: list[int]) -> None:
    """Read queues as the sweep does: their statuses, but not the list of all queues."""
    board.apply(store.snapshot(ids, previous=board.previous(ids), tolerant=True), 0.0)


def list_all(board: Board, store: Store) -> None:
    """Read the list of all queues, but none of them."""
    board.put_directory(store.directory(), store.snapshot(()).directory_change)


def names_and_oldest(overview: Overview) -> tuple[list[str], str | None, int]:
    """Return all that tells a name, and how many queues are still to be read."""
    return [row.status.name for row in overview.rows], overview.summary.oldest_queue, overview.summary.unread


def test_the_old_name_of_a_renamed_queue_is_hidden_from_people_that_see_the_new_one(tmp_path: Path) -> None:
    board = Board()
    with open_store(f"lmdb:{tmp_path / 'store'}") as store:
        merger = store.create_queue("secret:merger")
        merger.push(b"x", priority=1)
        list_all(board, store)
        read(board, store, [merger.id])
        assert names_and_oldest(seen_by(board, "secret:*")) == (["secret:merger"], "secret:merger", 0)

        store.rename_queue("secret:merger", "team:x")
        list_all(board, store)
        assert names_and_oldest(seen_by(board, "team:*")) == ([], None, 1)
        assert names_and_oldest(seen_by(board, "secret:*")) == ([], None, 0)
        read(board, store, [merger.id])
        assert names_and_oldest(seen_by(board, "team:*")) == (["team:x"], "team:x", 0)


def test_the_new_name_of_a_renamed_queue_is_hidden_from_people_that_saw_the_old_one(tmp_path: Path) -> None:
    board = Board()
    with open_store(f"lmdb:{tmp_path / 'store'}") as store:
        team = store.create_queue("team:x")
        team.push(b"x", priority=1)
        list_all(board, store)
        read(board, store, [team.id])
        assert names_and_oldest(board.overview(0.0, datetime.now(UTC), EVERYTHING)) == (["team:x"], "team:x", 0)
        assert names_and_oldest(seen_by(board, "team:*")) == (["team:x"], "team:x", 0)

        store.rename_queue("team:x", "secret:merger")
        read(board, store, [team.id])
        assert names_and_oldest(board.overview(7_200.0, datetime.now(UTC), Scope.of_globs(["team:*"]))) == ([], None, 1)
        list_all(board, store)
        assert names_and_oldest(board.overview(7_200.0, datetime.now(UTC), EVERYTHING)) == (
            ["secret:merger"],
            "secret:merger",
            0,
        )
