"""The page of a queue's history: charts, tables with the same numbers, and marks of what people did."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape

from pqadmin.accounts.roles import Role
from pqadmin.dashboard.history.series import with_ages
from queues import Store
from queues.history import Point
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


def test_the_age_of_what_waits_grows_between_changes_too() -> None:
    idle = Point(at=100, ready=0, delayed=0, leased=0, dead=0, arrived=0, left=0)
    pushed = replace(idle, at=200, ready=1, arrived=1, oldest_at=200)
    more, taken = replace(pushed, at=201, ready=2, arrived=2), replace(idle, at=500, arrived=2, left=2)
    points = with_ages([idle, pushed, more, taken], step=1)
    assert [point.at for point in points] == [100, 200, 201, 499, 500]
    assert [point.ready for point in points] == [0, 1, 2, 2, 0]
    assert [point.oldest_at and point.at - point.oldest_at for point in points] == [None, 0, 1, 299, None]


def test_the_chart_of_ages_slopes_and_rates_stay(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    record(store)
    data = data_of(operator.open(HERE))
    oldest, rates = data["charts"]["oldest"], data["charts"]["rates"]
    assert oldest["sloping"] is True
    assert rates["sloping"] is False
    assert len(data["times"]) == len(oldest["columns"][0]) == len(rates["columns"][0])


def test_what_people_did_is_marked_with_person_and_reason(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    record(store)
    store.actions("<b>eve</b>").pause("jobs", reason="</script><script>alert(1)</script>")
    store.actions("bob").push("jobs", b"y", priority=2)
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
