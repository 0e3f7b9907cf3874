"""What pages and frames are made from follows the store, wherever it goes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from pqadmin.dashboard.rows import render_rows
from pqadmin.live import wire
from pqadmin.live.board import Board
from pqadmin.live.monitor import Monitor
from queues import open_store


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
            board.apply(store.snapshot([jobs.id], previous=board.previous()), at)
    row = board.row(jobs.id, 7.7)
    assert row is not None
    assert row.rate_in is not None
    assert row.rate_in > 100
    page = str(render_rows([row], now=row.as_of, can_act=False))
    shown = re.search(r'data-field="rate-in" data-value="([^"]*)"', page)
    assert shown is not None
    assert f'"in":{float(shown[1])},' in wire.row(row)
    assert f'"grows_by":{row.grows_by},' in wire.row(row)
