"""The page of a queue's history: charts, tables with the same numbers, and marks of what people did."""

import json
import re
from datetime import timedelta
from html import unescape
from zoneinfo import ZoneInfo

import pytest

from pqadmin.accounts.roles import Role
from pqadmin.accounts.scope import Scope
from pqadmin.dashboard.history.action_marks import acts
from pqadmin.dashboard.history.ranges import SPANS, span_of
from pqadmin.display.moments import write_moment
from pqadmin.pages.reader_preferences import TIME_ZONE
from queues import Queue, Store, open_store
from tests.conftest import Clock
from tests.dashboard.conftest import Desk
from tests.dashboard.screen import Screen

HERE = "/queues/jobs/history/"


def data_of(screen: Screen) -> dict:
    found = re.search(r'data-numbers="(.*?)"', screen.html)
    assert found
    return json.loads(unescape(found[1]))


def record(store: Store) -> None:
    recorder = store.recorder()
    recorder.look()
    recorder.flush()


def test_charts_and_tables_tell_the_same(operator: Desk, store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"x", 1)] * 987)
    record(store)
    jobs.pop_min()
    for span in SPANS:
        page = operator.open(f"{HERE}?span={span}")
        depth = data_of(page)["charts"]["depth"]
        assert depth["labels"] == ["ready", "delayed", "leased", "dead"]
        assert depth["columns"][0][-1] == 986
        assert "986" in page
    assert operator.open(f"{HERE}?span=nonsense").status == 200
    fresh = operator.client.get(f"{HERE}data/?span=10m")
    assert fresh.json()["charts"]["depth"]["columns"][0][-1] == 986
    assert fresh["Cache-Control"] == "private, no-store"


def test_the_chart_of_ages_slopes_and_rates_stay(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    record(store)
    data = data_of(operator.open(HERE))
    oldest, rates = data["charts"]["oldest"], data["charts"]["rates"]
    assert oldest["sloping"] is True
    assert rates["sloping"] is False
    assert len(oldest["times"]) == len(oldest["columns"][0]) == len(rates["columns"][0])


def test_what_people_did_is_marked_with_person_and_reason(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    record(store)
    store.actions("<b>eve</b>").pause("jobs", reason="</script><script>alert(1)</script>")
    store.actions("bob").push("jobs", b"y", priority=2)
    page = operator.open(HERE)
    assert "</script><script>alert" not in page.html
    assert [mark["label"] for mark in data_of(page)["marks"]] == ["paused · <b>eve</b>"]
    assert "<b>eve</b> paused “</script><script>alert(1)</script>”" in page.text


def test_a_pause_is_an_interval_from_its_beginning_to_its_end(operator: Desk, store: Store, jobs: Queue) -> None:
    jobs.push(b"x", priority=1)
    record(store)
    acts = store.actions("ann")
    acts.pause("jobs", reason="a")
    acts.pause("jobs", reason="b")
    acts.resume("jobs")
    acts.pause("jobs", reason="c")
    page = operator.open(HERE)
    first, second, third = data_of(page)["pauses"]
    marked = [mark["at"] for mark in data_of(page)["marks"]][::-1]
    assert (first, second, third) == (marked[0:2], marked[1:3], [marked[3], None])
    ended = write_moment(store.now() - timedelta(seconds=20))
    assert data_of(operator.open(f"{HERE}?from=2026-01-01&to={ended}"))["pauses"] == []


def test_a_pause_that_began_before_a_range_is_told_however_much_was_done_since(operator: Desk, clock: Clock) -> None:
    with open_store("memory:", clock=clock) as store:
        store.create_queue("jobs").push(b"x", priority=1)
        acts_of, sees = store.actions("ann"), Scope.of(Role.VIEWER)
        acts_of.pause("jobs", reason="a")
        began = store.now().timestamp()
        for _ in range(40):
            clock.advance(60)
            acts_of.push("jobs", b"x", priority=1)
            found = acts(store, store.queue("jobs").status(), span_of("10m", store.now()), sees)
            assert [(begin, end) for begin, end in found.pauses] == [(pytest.approx(began, abs=1), None)]
        acts_of.resume("jobs")
        ended = store.now().timestamp()
        for minutes in range(1, 13):
            clock.advance(60)
            found = acts(store, store.queue("jobs").status(), span_of("10m", store.now()), sees)
            assert len(found.pauses) == (minutes <= 10)
            assert all(end == pytest.approx(ended, abs=1) for _begin, end in found.pauses)
        hour = acts(store, store.queue("jobs").status(), span_of("1h", store.now()), sees)
        assert len(hour.pauses) == 1


def test_the_pause_of_a_queue_is_told_where_the_act_that_began_it_is_not_read(clock: Clock) -> None:
    with open_store("memory:", clock=clock) as store:
        store.create_queue("jobs")
        acts_of, sees = store.actions("ann"), Scope.of(Role.VIEWER)

        def pauses(span: str) -> list[tuple[float, float | None]]:
            return list(acts(store, store.queue("jobs").status(), span_of(span, store.now()), sees).pauses)

        acts_of.pause("jobs", reason="a")
        began = pytest.approx(store.now().timestamp(), abs=1)
        for _ in range(1_010):
            clock.advance(1)
            acts_of.push("jobs", b"x", priority=1)
        assert pauses("1h") == [(began, None)], "it is in the range, below more acts than are read"
        clock.advance(700)
        assert pauses("10m") == [(began, None)]
        acts_of.resume("jobs")
        clock.advance(700)
        assert pauses("10m") == []


def test_a_chosen_range_is_the_same_to_all_readers(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    record(store)
    now = store.now()
    operator.client.cookies[TIME_ZONE] = "Asia/Kolkata"
    local = (now - timedelta(hours=2)).astimezone(ZoneInfo("Asia/Kolkata"))
    asked = operator.client.get(HERE, {"from": local.strftime("%Y-%m-%dT%H:%M"), "to": ""})
    assert asked.status_code == 302
    address = asked["Location"]
    page = operator.open(address)
    since = data_of(page)["since"]
    assert 0 <= int((now - timedelta(hours=2)).timestamp()) - since < 60
    assert f'value="{local.strftime("%Y-%m-%dT%H:%M")}:00"' in page.html
    operator.client.cookies[TIME_ZONE] = "UTC"
    assert data_of(operator.open(address))["since"] == since


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("from=yesterday-ish", "Give a date and a time"),
        ("from=2026-02-02T10:00Z&to=2026-02-02T09:00Z", "ends before it begins"),
        ("from=2990-01-01T00:00Z", "begins in the future"),
        ("from=1999-01-01T00:00Z&to=1999-01-02T00:00Z", "go back 90 days"),
        ("from=999999-01-01", "Give a date and a time"),
    ],
)
def test_a_range_that_cannot_be_shown_is_refused_in_words(operator: Desk, store: Store, query: str, told: str) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    record(store)
    page = operator.open(f"{HERE}?{query}")
    assert (page.status, told in page, data_of(page)["live"]) == (200, True, True)
    assert operator.client.get(f"{HERE}data/?{query}").status_code == 400


def test_the_mix_has_exact_numbers(operator: Desk, store: Store) -> None:
    jobs = store.create_queue("jobs", bands=[10, 20, 30])
    jobs.push_many([(b"x", 11)] * 2 + [(b"x", 21)] * 97 + [(b"x", 40)] * 901)
    record(store)
    mix = data_of(operator.open(HERE))["charts"]["mix"]
    assert mix["labels"] == ["10–19", "20–29", "≥30"], "the empty band below is left out"
    assert [column[-1] for column in mix["columns"]] == [2, 97, 901]


def test_a_damaged_history_says_so_and_shows_the_rest(operator: Desk, store: Store, jobs: Queue) -> None:
    jobs.push(b"x", priority=1)
    record(store)
    assert "cannot be read" not in operator.open(HERE)
    begin, end = store.context.keyspace.history.below(jobs.id, "s")
    key = store.context.kv.read(lambda tr: tr.get_range(begin, end, limit=1).wait())[0][0]
    store.transact(lambda tr: tr.set(key, b"\x02garbage"))
    page = operator.open(HERE)
    assert (page.status, "A part of this history cannot be read" in page) == (200, True)
    assert operator.open("/").status == operator.open("/queues/jobs/").status == 200


def test_the_queue_page_has_the_last_hour(operator: Desk, store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"x", 1)] * 7)
    record(store)
    data = data_of(operator.open("/queues/jobs/"))
    assert list(data["charts"]) == ["depth", "rates"]
    assert data["charts"]["depth"]["columns"][0][-1] == 7
    assert data["until"] - data["since"] == 3_600
    brief = operator.client.get(f"{HERE}data/?span=1h&brief").json()
    assert list(brief["charts"]) == ["depth", "rates"]


def test_a_queue_without_a_history_says_from_when_on_there_is_one(operator: Desk, store: Store) -> None:
    store.create_queue("jobs")
    assert "Nothing is recorded yet" in operator.open(HERE)


def test_no_history_is_kept_of_an_attached_queue(viewer: Desk, store: Store) -> None:
    store.attach("legacy", prefix=b"old")
    assert "No history is kept" in viewer.open("/queues/legacy/history/")
    assert viewer.client.get("/queues/legacy/history/data/").status_code == 404
    assert viewer.open("/queues/nobody/history/").status == 404
