"""The age of a list that a page shows: what left it, what changed in it, and what came."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from pqadmin.accounts.roles import Role
from queues import Actions, Queue, Store
from tests.dashboard.conftest import Desk


@pytest.fixture
def jobs(store: Store) -> Queue:
    """70 ready items, of which a page shows 50."""
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"ready-%02d" % n, n) for n in range(70)])
    return jobs


class List:
    """A list as a page shows it."""

    def __init__(self, desk: Desk, query: str = "state=ready") -> None:
        self.desk = desk
        html = desk.open(f"/queues/jobs/?{query}").html
        self.marks = dict(re.findall(r'<tr data-id="(\w+)"\s+data-mark="(\w+)"', html))
        found = re.search(r'data-age-url="([^"]+)".*?data-at="(\d+)"', html, re.DOTALL)
        assert found
        self.url, self.at = found[1].replace("&amp;", "&"), found[2]
        self.more = {} if 'rel="next"' in html else {"whole": ""}

    def age(self) -> tuple[dict[str, str], int]:
        """Return what is not as it was by its id, and how many items came."""
        told = self.told()
        changed = zip(self.marks.items(), told["rows"], strict=True)
        return {item_id: code for (item_id, mark), code in changed if code != mark}, told["new"]

    def told(self, **more: str) -> dict[str, Any]:
        """Return the whole answer."""
        answer: dict[str, Any] = self.ask(shown=" ".join(self.marks), at=self.at, **self.more, **more).json()
        return answer

    def ask(self, **fields: str) -> Any:
        return self.desk.client.get(f"{self.url}&{urlencode(fields)}")


def test_what_left_and_what_changed_is_told_by_row(operator: Desk, jobs: Queue, store: Store, ann: Actions) -> None:
    store.create_queue("review")
    shown = List(operator)
    assert len(shown.marks) == 50
    assert shown.age() == ({}, 0)
    ids = list(shown.marks)
    jobs.pop_min()
    lease = jobs.lease(seconds=60, worker="w")
    ann.move_items("jobs", [ids[2]], "review")
    ann.reprioritize("jobs", [ids[3]], priority=900)
    ann.delay("jobs", [ids[4]], delay=timedelta(hours=1))
    codes, new = shown.age()
    assert {item_id: codes[item_id] for item_id in codes if item_id != ids[3]} == {
        ids[0]: "-",
        ids[1]: "-leased",
        ids[2]: "-",
        ids[4]: "-delayed",
    }
    assert not codes[ids[3]].startswith("-"), "it is there, at another place"
    assert new == 0, "what moves up from the next page is not new"
    jobs.release(lease, count_attempt=False)
    assert ids[1] not in shown.age()[0]


def test_an_edited_value_of_the_same_size_is_a_change(operator: Desk, jobs: Queue, store: Store) -> None:
    shown = List(operator)
    item_id = next(iter(shown.marks))
    store.actions("ann").edit_item("jobs", item_id, b"READY-00", expect=b"ready-00")
    assert list(shown.age()[0]) == [item_id]


def test_marks_tell_nothing_of_hidden_values(operator: Desk, store: Store) -> None:
    jobs = store.create_queue("jobs")
    jobs.configure(redact=["password"])
    for value in (b"sesame", b"barley"):
        jobs.push(b'{"password": "' + value + b'", "pad": "' + b"x" * 300 + b'"}', 1)
    shown = List(operator)
    assert len(set(shown.marks.values())) == 1
    assert shown.age() == ({}, 0)


def test_new_items_are_counted_where_the_page_would_show_them(operator: Desk, jobs: Queue) -> None:
    first, second = List(operator), List(operator, "state=ready&low=60")
    jobs.push_many([(b"new", -1)] * 3)
    jobs.push(b"far behind", priority=1_000)
    assert first.age() == ({}, 3)
    assert second.age() == ({}, 1), "it is within the bounds"
    jobs.push_many([(b"new", -1)] * 90)
    assert first.age()[1] == 50, "as many as a page has, at least"


@pytest.mark.parametrize("query", ["q=ready-6", "q=ready-6&end=max", "q=READY&low=60"])
def test_arrivals_that_match_a_search_are_counted(operator: Desk, jobs: Queue, query: str) -> None:
    shown = List(operator, f"state=ready&{query}")
    assert shown.age() == ({}, 0)
    jobs.push_many([(b"other", -1), (b"ready-60", 65), (b"ready-66", 900)])
    assert shown.told()["counted"] is True
    assert shown.age() == ({}, 2)


def test_arrivals_are_counted_in_a_search_by_field_of_each_state(operator: Desk, store: Store) -> None:
    jobs = store.create_queue("jobs")
    jobs.configure(max_attempts=1)
    ours, theirs = b'{"customer": {"id": 4711}}', b'{"customer": {"id": 4712}}'
    lists = {state: List(operator, f"state={state}&q=customer.id:4711") for state in ("ready", "delayed", "dead")}
    for value in (ours, theirs, ours):
        jobs.push(value, 1)
        jobs.push(value, 1, delay=timedelta(hours=1))
    assert [lists[state].age()[1] for state in lists] == [2, 2, 0]
    while lease := jobs.lease():
        jobs.release(lease, reason="no")
    assert [lists[state].age()[1] for state in lists] == [0, 2, 2]


def test_arrivals_are_counted_in_a_search_of_a_deep_queue(operator: Desk, jobs: Queue) -> None:
    jobs.push_many([(b"other", n) for n in range(100, 1_100)])
    jobs.push_many([(b"needle", 2_000)] * 2)
    shown = List(operator, "state=ready&q=needle")
    assert len(shown.marks) == 2
    jobs.pop_min()
    assert shown.age() == ({}, 0)
    jobs.push_many([(b"needle", 3_000)] * 3 + [(b"other", 3_000)] * 40)
    assert shown.told()["counted"] is True
    assert shown.age() == ({}, 3)
    jobs.push_many([(b"other", n) for n in range(1_000)])
    assert shown.told()["counted"] is False, "too many came to look at all"
    assert shown.age()[1] <= 3


def test_a_deep_search_without_an_index_says_that_it_did_not_count(operator: Desk, jobs: Queue) -> None:
    for _ in range(2):
        jobs.push_many([(b"other", n) for n in range(600)], delay=timedelta(hours=1))
    shown = List(operator, "state=delayed&q=needle")
    jobs.push(b"needle", 1, delay=timedelta(hours=2))
    assert (shown.told()["new"], shown.told()["counted"]) == (0, False)


def test_arrivals_that_a_search_does_not_see_are_not_counted(operator: Desk, store: Store) -> None:
    jobs = store.create_queue("jobs")
    jobs.configure(redact=["password"])
    shown = List(operator, "state=ready&q=sesame")
    jobs.push(b'{"password": "sesame"}', 1)
    assert shown.age() == ({}, 0)
    jobs.push(b'{"word": "sesame"}', 1)
    assert shown.age() == ({}, 1)


def test_an_empty_list_counts_all_that_comes(operator: Desk, jobs: Queue) -> None:
    dead = List(operator, "state=dead")
    assert dead.age() == ({}, 0)
    jobs.configure(max_attempts=1)
    lease = jobs.lease()
    jobs.release(lease, reason="no")
    assert dead.age() == ({}, 1)


def test_a_lease_that_is_extended_is_no_change(operator: Desk, jobs: Queue) -> None:
    lease = jobs.lease(seconds=60)
    shown = List(operator, "state=leased")
    jobs.extend(lease, seconds=600)
    assert shown.age() == ({}, 0)


@pytest.mark.parametrize("shown", ["", "x", "0" * 40, "key-00", "\x00 \u202e", "a " * 5_000, "'; drop" * 9])
def test_hostile_ids_are_gone_and_nothing_else(operator: Desk, jobs: Queue, shown: str) -> None:
    answer = List(operator).ask(shown=shown, at="9" * 40)
    assert answer.status_code == 200
    assert set(answer.json()["rows"]) <= {"-"}
    assert len(answer.json()["rows"]) <= 200


def test_only_readers_of_the_queue_are_told(desk: Any, jobs: Queue) -> None:
    assert List(desk(Role.VIEWER, "ann")).ask(shown="").status_code == 200
    stranger = desk(Role.NONE, "eve")
    assert stranger.client.get("/queues/jobs/age/?shown=").status_code in (302, 403, 404)


def test_the_counts_of_trash_and_finished_items_are_told_as_tabs_show_them(
    operator: Desk, jobs: Queue, ann: Actions
) -> None:
    jobs.configure(keep_finished=3600)
    shown = List(operator)
    assert shown.told(tabs="")["tabs"] == {"finished": "0", "trash": "0"}
    ann.delete_items("jobs", list(shown.marks)[:2])
    jobs.ack(jobs.lease(seconds=60))
    assert shown.told(tabs="")["tabs"] == {"finished": "1", "trash": "1"}
    for item_id in list(shown.marks)[3:15]:
        ann.delete_item("jobs", item_id)
    assert shown.told(tabs="")["tabs"]["trash"] == "10+", "as far as a page counts"
