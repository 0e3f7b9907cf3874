"""The page of a queue's history: charts, tables with the same numbers, and marks of what people did."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape

from pqadmin.accounts.roles import Role
from queues import Store
from tests.dashboard.conftest import Desk
from tests.dashboard.screen import Screen

HERE = "/queues/jobs/history/"


def data_of(screen: Screen) -> dict:
    found = re.search(r'<template id="history-data">(.*?)</template>', screen.html)
    assert found
    return json.loads(unescape(found[1]))


def record(store: Store) -> None:
    recorder = store.recorder()
    recorder.look()
    recorder.flush()


def test_charts_and_tables_tell_the_same(operator: Desk, store: Store) -> None:
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"x", 1)] * 987)
    record(store)
    jobs.pop_min()
    for span in ("10m", "6h", "48h", "90d"):
        page = operator.open(f"{HERE}?span={span}")
        depth = data_of(page)["charts"]["depth"]
        assert depth["labels"] == ["ready", "delayed", "leased", "dead"]
        assert depth["columns"][0][-1] == 986
        assert "986" in page
    assert operator.open(f"{HERE}?span=nonsense").status == 200
    fresh = operator.client.get(f"{HERE}data/?span=10m")
    assert fresh.json()["charts"]["depth"]["columns"][0][-1] == 986
    assert fresh["Cache-Control"] == "private, no-store"


def test_what_people_did_is_marked_with_who_and_why(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    record(store)
    store.acts("<b>eve</b>").pause("jobs", reason="</script><script>alert(1)</script>")
    store.acts("bob").push("jobs", b"y", priority=2)
    page = operator.open(HERE)
    assert "</script><script>alert" not in page.html
    assert [mark["label"] for mark in data_of(page)["marks"]] == ["paused · <b>eve</b>"]
    assert "alert(1)" in page  # as text


def test_a_queue_without_a_history_says_from_when_on_there_is_one(operator: Desk, store: Store) -> None:
    store.create_queue("jobs")
    assert "Nothing is recorded yet" in operator.open(HERE)


def test_no_history_is_kept_of_an_attached_queue(desk: Callable[..., Desk], store: Store) -> None:
    store.attach("legacy", prefix=b"old")
    viewer = desk(Role.VIEWER)
    assert "No history is kept" in viewer.open("/queues/legacy/history/")
    assert viewer.client.get("/queues/legacy/history/data/").status_code == 404
    assert viewer.open("/queues/nobody/history/").status == 404
