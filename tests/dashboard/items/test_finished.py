"""Finished items on pages: their list, their own page, and the setting that keeps them."""

import html
from datetime import timedelta

import pytest

from queues import Actions, Queue, Store
from tests.dashboard.conftest import Desk
from tests.dashboard.items.test_attempts import timeline

DAY = 86_400


@pytest.fixture
def jobs(store: Store) -> Queue:
    queue = store.create_queue("jobs")
    queue.configure(keep_finished=timedelta(days=1), redact=["iban"])
    return queue


def finish(jobs: Queue, value: bytes = b"x") -> str:
    """Push an item, have a worker fail once and then acknowledge it, and return its id."""
    item = jobs.push(value, priority=7)
    jobs.release(jobs.lease(worker="press-1"), reason="jam")
    jobs.ack(jobs.lease(worker="press-2"))
    return item.id


def test_the_page_of_a_finished_item_shows_its_timeline(operator: Desk, jobs: Queue) -> None:
    item_id = finish(jobs, b'{"iban": "hunter2"}')
    page = operator.open(f"/queues/jobs/items/{item_id}/")
    assert page.status == 200
    assert "This item is finished" in page.text
    assert "press-2 acknowledged it" in page.text
    assert "hunter2" not in page.html
    assert timeline(page) == [
        "press-2 acknowledged",
        "press-2 leased attempt 2",
        "press-1 released attempt 1 jam",
        "press-1 leased attempt 1",
        "pushed",
    ]


def test_a_popped_item_names_the_process(operator: Desk, jobs: Queue) -> None:
    item = jobs.push(b"", priority=7)
    taker = jobs.opened.taker
    jobs.pop_min()
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert f"{taker} popped it" in page.text
    assert timeline(page) == [f"{taker} popped", "pushed"]


def test_a_form_about_a_finished_item_says_that_it_is_gone(operator: Desk, jobs: Queue) -> None:
    item_id = finish(jobs)
    page = operator.open(f"/queues/jobs/items/{item_id}/edit/")
    assert (page.status, "This item is finished" in page) == (404, True)


def test_the_tab_lists_the_newest_first(operator: Desk, jobs: Queue) -> None:
    long = finish(jobs, b'{"n": "' + b"y" * 300 + b'", "iban": "hunter2"}')
    short = finish(jobs, b'{"iban": "hunter2"}')
    page = operator.open("/queues/jobs/?state=finished")
    assert page.html.index(f"items/{short}/") < page.html.index(f"items/{long}/")
    assert "hunter2" not in page.html
    assert 'id="tab-finished"' in page.html
    assert "press-2" in page.text
    assert "data-age-url" not in page.html
    assert 'name="act"' not in page.html


def test_a_queue_without_the_setting_has_no_tab(operator: Desk, store: Store) -> None:
    plain = store.create_queue("plain")
    plain.push(b"x", priority=1)
    plain.pop_min()
    assert 'id="tab-finished"' not in operator.open("/queues/plain/").html
    assert "keeps no finished items" in operator.open("/queues/plain/?state=finished").text


def test_an_empty_list_says_for_how_long_items_are_kept(operator: Desk, jobs: Queue) -> None:
    assert "is listed here for 1 d" in operator.open("/queues/jobs/?state=finished").text


def test_more_than_a_page_has_a_way_on(operator: Desk, jobs: Queue) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(60)])
    jobs.pop_many(60)
    page = operator.open("/queues/jobs/?state=finished")
    assert page.html.count('<td class="nowrap">popped</td>') == 50
    (onward, *_) = [link for link in page.links if "after=" in link]
    rest = operator.open(f"/queues/jobs/{html.unescape(onward)}")
    assert rest.html.count('<td class="nowrap">popped</td>') == 10
    assert "does not continue this list" in operator.open("/queues/jobs/?state=finished&after=x").text


@pytest.mark.parametrize("address", ["/queues/jobs/?id={}&state=ready", "/search/?q={}"])
def test_a_search_for_its_whole_id_finds_it(operator: Desk, jobs: Queue, address: str) -> None:
    item_id = finish(jobs)
    page = operator.open(address.format(item_id))
    assert f"items/{item_id}/" in page.html
    assert "acknowledged" in page.text


def test_the_palette_finds_it_without_acts(operator: Desk, jobs: Queue) -> None:
    item_id = finish(jobs)
    page = operator.open(f"/palette/?q={item_id}")
    assert f"/queues/jobs/items/{item_id}/" in page.html
    assert "this item in jobs" not in page.text


def test_finished_items_are_not_exported(operator: Desk, jobs: Queue) -> None:
    finish(jobs)
    page = operator.open("/queues/jobs/export/?state=finished&format=csv")
    assert "cannot be exported" in page.text


@pytest.mark.parametrize(("typed", "kept"), [("7 d", 7 * DAY), ("90", 90), ("", None), ("0", None)])
def test_the_setting_is_a_duration(operator: Desk, jobs: Queue, store: Store, typed: str, kept: float | None) -> None:
    page = operator.open("/queues/jobs/settings/")
    assert page.form("settings/")[1]["keep_finished"] == "1 d"
    saved = operator.send(page, "settings/", keep_finished=typed)
    assert "time to keep finished items" in saved
    assert store.queue("jobs").config.keep_finished == kept


@pytest.mark.parametrize("typed", ["soon", "400 d", "0.5 s"])
def test_what_is_no_time_to_keep_items_is_refused(operator: Desk, jobs: Queue, store: Store, typed: str) -> None:
    refused = operator.send(operator.open("/queues/jobs/settings/"), "settings/", keep_finished=typed)
    assert refused.form("settings/")[1]["keep_finished"] == typed
    assert store.queue("jobs").config.keep_finished == DAY


def test_what_a_person_does_stays_in_audit_and_trash(operator: Desk, ann: Actions, jobs: Queue) -> None:
    item = jobs.push(b"x", priority=1)
    ann.pop("jobs")
    assert "It is in the trash" in operator.open(f"/queues/jobs/items/{item.id}/").text
