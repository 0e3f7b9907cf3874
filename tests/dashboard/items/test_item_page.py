"""The item page: its value, what can be done in each state, its neighbors, its history, and where an item went."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pqadmin.accounts.roles import Role
from pqadmin.dashboard.items.history import SHOWN
from pqadmin.display.values import what_searchers_see
from queues import Item, Query, Queue, Store
from tests.dashboard.conftest import Desk
from tests.dashboard.screen import Screen

_MOVING = ("move", "reprioritize")
HERE = "/queues/jobs/items/"
BIG = "123456789012345678901234567890123456789012345678901234567890"


@pytest.fixture
def jobs(store: Store) -> Queue:
    """A queue whose items die at their first failure."""
    queue = store.create_queue("jobs")
    queue.configure(max_attempts=1)
    return queue


def in_state(jobs: Queue, state: str) -> Item:
    """Push an item and bring it to a state."""
    item = jobs.push(b"x", priority=1, delay=timedelta(hours=3) if state == "delayed" else None)
    if state in ("leased", "dead"):
        lease = jobs.lease(seconds=600, worker="render-7")
        if state == "dead":
            jobs.release(lease, reason="no <b>frame</b>")
    found = jobs.find(item.id)
    assert found.state == state
    return found


def acts_of(page: Screen) -> list[str]:
    """Return the acts that the page's buttons lead to."""
    links = re.findall(r'href="([^"]+)"', page.html[: page.html.index('id="act"')])
    verbs = {
        "edit/": "edit",
        "push/?like=": "duplicate",
        **{
            f"?act={verb}&": verb
            for verb in (*_MOVING, "delete", "promote", "reschedule", "delay", "retry", "release", "ack")
        },
    }
    links = [link.replace("&amp;", "&") for link in links]
    return [verb for link in links for part, verb in verbs.items() if part in link]


@pytest.mark.parametrize(
    ("state", "acts"),
    [
        ("ready", ["move", "reprioritize", "delay", "edit", "duplicate", "delete"]),
        ("delayed", ["promote", "reschedule", "move", "reprioritize", "edit", "duplicate", "delete"]),
        ("leased", ["release", "duplicate", "delete"]),
        ("dead", ["retry", "move", "edit", "duplicate", "delete"]),
    ],
)
def test_each_state_offers_what_fits_it(operator: Desk, jobs: Queue, state: str, acts: list[str]) -> None:
    page = operator.open(f"{HERE}{in_state(jobs, state).id}/")
    assert acts_of(page) == acts
    for link in re.findall(r'<a class="button" href="([^"]+)"', page.html[: page.html.index('id="act"')]):
        assert operator.open(link.replace("&amp;", "&")).status == 200, link


def test_each_state_says_what_matters_in_it(operator: Desk, jobs: Queue) -> None:
    delayed = operator.open(f"{HERE}{in_state(jobs, 'delayed').id}/")
    assert re.search(r"Due in \d", delayed.text)
    leased = in_state(jobs, "leased")
    page = operator.open(f"{HERE}{leased.id}/")
    assert "render-7" in page
    assert f"…-{leased.lease}…" in page
    assert re.search(r"Ends in \d+:\d\d", page.text)
    dead = operator.open(f"{HERE}{in_state(jobs, 'dead').id}/")
    assert "no <b>frame</b>" in dead.text
    assert "<b>frame</b>" not in dead.html


def test_a_person_that_holds_a_lease_can_end_it_well(operator: Desk, jobs: Queue, store: Store) -> None:
    item = jobs.push(b"x", priority=1)
    assert store.actions("ada").lease("jobs", seconds=60) is not None
    assert "ack" in acts_of(operator.open(f"{HERE}{item.id}/"))


def test_fifo_items_are_between_head_and_tail(operator: Desk, store: Store) -> None:
    item = store.create_queue("line", kind="fifo").enqueue(b"x")
    page = operator.open(f"/queues/line/items/{item.id}/")
    assert acts_of(page) == ["move", "reprioritize", "delay", "edit", "duplicate", "delete"], (
        "to the front, or to the back"
    )
    assert "The head: first to leave" in page
    assert "The tail: last to leave" in page


def test_viewers_see_an_item_and_act_on_nothing(desk: Callable[..., Desk], jobs: Queue) -> None:
    item = jobs.push(b"seen", priority=1)
    page = desk(Role.VIEWER).open(f"{HERE}{item.id}/")
    assert "seen" in page
    assert acts_of(page) == []


def test_neighbors_are_shown_at_any_depth(operator: Desk, jobs: Queue) -> None:
    items = jobs.push_many([(b"value %d" % n, n) for n in range(200)])
    page = operator.open(f"{HERE}{items[120].id}/")
    assert "value 119" in page
    assert "value 121" in page
    assert "value 118" not in page.text


def test_what_people_did_is_told_newest_first(operator: Desk, jobs: Queue, store: Store) -> None:
    ann = store.actions("ann", via="cli")
    item = ann.push("jobs", b"x", priority=7)
    ann.reprioritize("jobs", [item.id], priority=2, reason="<b>called twice</b>")
    text = operator.open(f"{HERE}{item.id}/").text
    assert text.index("ann re-prioritized priority 7 → 2") < text.index("ann pushed")
    assert "<b>called twice</b>" in text
    for n in range(SHOWN):
        ann.reprioritize("jobs", [item.id], priority=n + 10)
    page = operator.open(f"{HERE}{item.id}/")
    assert "All of it in the audit" in page
    audit = operator.open(f"/audit/?item={item.id}")
    assert audit.status == 200
    assert "pushed" in audit


def test_an_item_that_a_program_took_left_no_trace(operator: Desk, jobs: Queue) -> None:
    item = jobs.push(b"x", priority=1)
    jobs.pop_min()
    for item_id in (item.id, "0" * 40, "<script>", "x" * 500):
        page = operator.open(f"{HERE}{item_id}/")
        assert page.status == 404
        assert "a program or an act on many items has taken it since, or it never was here" in page
    assert "its id was minted" in operator.open(f"{HERE}{item.id}/")
    assert operator.open(f"{HERE}{item.id}/download/").status == 404


def test_of_an_item_that_was_taken_after_its_retry_the_last_act_is_told(
    operator: Desk, jobs: Queue, store: Store
) -> None:
    item = in_state(jobs, "dead")
    store.actions("eve").retry_dead("jobs", [item.id])
    assert re.search(r"as of \d\d:\d\d:\d\d UTC", operator.open(f"{HERE}{item.id}/").text)
    jobs.pop_min()
    page = operator.open(f"{HERE}{item.id}/")
    assert re.search(r"Its timeline ends with: eve retried, [-0-9]+ [:0-9]+ UTC; a program or an act", page.text)
    assert "or it never was here" not in page
    assert re.search(r"as of \d\d:\d\d:\d\d UTC", page.text)
    assert f'href="{HERE}{item.id}/">Look again' in page.html


@pytest.mark.parametrize(
    ("act", "words"),
    [
        ("pop", "eve popped it from the min end"),
        ("delete", "eve deleted it"),
        ("several", "eve deleted it"),
        ("ack", "eve said that it is done"),
    ],
)
def test_what_a_person_took_can_be_put_back_from_there(
    operator: Desk, jobs: Queue, store: Store, act: str, words: str
) -> None:
    eve = store.actions("eve")
    item, other = jobs.push_many([(b"x", 1), (b"y", 2)])
    if act == "pop":
        eve.pop("jobs")
    elif act == "ack":
        eve.lease("jobs", seconds=60)
        eve.ack("jobs", item.id)
    else:
        eve.delete_items("jobs", [item.id, other.id] if act == "several" else [item.id])
    eve.push("jobs", b"later", priority=3)
    page = operator.open(f"{HERE}{item.id}/")
    assert page.status == 404
    assert words in page
    assert "It is in the trash." in page
    assert ("Undo it for all 2 items" in page) == (act == "several")
    operator.send(page, "/restore/")
    assert jobs.find(item.id) is not None
    assert (jobs.find(other.id)) is not None


def test_what_was_restored_and_taken_again_is_not_offered_twice(operator: Desk, jobs: Queue, store: Store) -> None:
    eve = store.actions("eve")
    item = jobs.push(b"x", priority=1)
    popped = eve.pop("jobs")
    eve.undo(popped.trash_id)
    jobs.pop_min()
    page = operator.open(f"{HERE}{item.id}/")
    assert "a program or an act on many items has taken it since" in page
    assert "/restore/" not in page.html


def test_a_moved_item_leads_to_where_it_is(operator: Desk, jobs: Queue, store: Store) -> None:
    store.create_queue("review")
    item = jobs.push(b"x", priority=1)
    store.actions("eve").move_items("jobs", [item.id], "review")
    page = operator.open(f"{HERE}{item.id}/")
    assert "eve moved it to review" in page
    assert f"/queues/review/items/{item.id}/" in page.html
    store.queue("review").pop_min()
    assert "To that queue" in operator.open(f"{HERE}{item.id}/")
    store.actions("eve").delete_queue("review", confirm="review")
    assert operator.open(f"{HERE}{item.id}/").status == 404


def test_an_item_that_a_bulk_job_took_is_told(operator: Desk, jobs: Queue, store: Store) -> None:
    review, (moved, deleted) = store.create_queue("review"), jobs.push_many([(b"x", 1), (b"y", 2)])
    eve = store.actions("eve")
    for job in (
        eve.begin_bulk("move", "jobs", to="review", query=Query(text="x")),
        eve.begin_bulk("delete", "jobs", query=Query(text="y")),
    ):
        eve.run_bulk(job.id, shown=what_searchers_see)
    page = operator.open(f"{HERE}{moved.id}/")
    assert "eve moved it to review" in page
    assert f"/queues/review/items/{moved.id}/" in page.html
    assert "An act of eve on many items, begun" in operator.open(f"{HERE}{deleted.id}/")
    review.pop_min()
    assert "may have taken it" in operator.open(f"{HERE}{moved.id}/")
    later = jobs.push(b"z", 3)
    jobs.pop_min()
    assert "a program or an act on many items has taken it since" in operator.open(f"{HERE}{later.id}/")


def test_a_bulk_job_that_ended_before_the_last_act_on_an_item_has_not_taken_it(
    operator: Desk, jobs: Queue, store: Store
) -> None:
    item, _other = jobs.push_many([(b"x", 2), (b"y", 3)])
    eve = store.actions("eve")
    job = eve.begin_bulk("delete", "jobs", query=Query(text="y"))
    eve.run_bulk(job.id, shown=what_searchers_see)
    eve.reprioritize("jobs", [item.id], priority=1)
    jobs.pop_min()
    page = operator.open(f"{HERE}{item.id}/")
    assert "may have taken it" not in page
    assert "a program or an act on many items has taken it since" in page


@pytest.fixture
def done(store: Store) -> Callable[..., str]:
    """Do a bulk job of ann and return the address of its page."""
    ann = store.actions("ann", via="cli")

    def do(*args: Any, **named: Any) -> str:
        job = ann.begin_bulk(*args, **named)
        assert ann.run_bulk(job.id, shown=what_searchers_see).done
        return f"/jobs/{job.id}/"

    return do


@pytest.mark.parametrize("state", ["ready", "delayed", "dead"])
def test_an_item_tells_which_bulk_job_moved_it_here(
    operator: Desk, jobs: Queue, store: Store, done: Callable[..., str], state: str
) -> None:
    review = store.create_queue("review")
    own = review.push(b"was here", 5)
    for _ in range(7):
        in_state(jobs, state)
    url = done("move", "jobs", to="review", query=Query(state=state))
    later = review.push(b"came later", 1)
    moved = [
        item
        for item in review.search(Query(state="delayed" if state == "delayed" else "ready")).items
        if item.raw == b"x"
    ]
    assert len(moved) == 7
    for item in moved:
        page = operator.open(f"/queues/review/items/{item.id}/")
        assert f"ann moved by a bulk job Move {state} items from jobs to review" in page.text
        assert url in page.html
    for other in (own, later):
        assert url not in operator.open(f"/queues/review/items/{other.id}/").html


def test_a_moved_item_names_its_bulk_job_in_every_state(
    operator: Desk, jobs: Queue, store: Store, done: Callable[..., str]
) -> None:
    review = store.create_queue("review")
    jobs.push_many([(b"x", n) for n in range(300)])
    url = done("move", "jobs", to="review")
    lease = review.lease(seconds=60)
    here = f"/queues/review/items/{lease.item.id}/"
    assert url in operator.open(here).html
    review.release(lease, delay=timedelta(hours=1))
    assert url in operator.open(here).html
    review.configure(max_attempts=1)
    dead = review.lease(seconds=60)
    review.release(dead, reason="no")
    assert url in operator.open(f"/queues/review/items/{dead.item.id}/").html


@pytest.mark.parametrize("how", [{"priority": 5}, {"shift": 10}, {"place": "front"}, {"place": "back"}])
def test_an_item_tells_which_bulk_job_gave_it_its_priority(
    operator: Desk, jobs: Queue, done: Callable[..., str], how: dict[str, Any]
) -> None:
    items = jobs.push_many([(b"even" if n % 2 == 0 else b"odd", n) for n in range(40)])
    url = done("reprioritize", "jobs", query=Query(text="even"), **how)
    for item in items[1:12]:
        page = operator.open(f"{HERE}{item.id}/")
        assert (url in page.html) == (item.raw == b"even"), item.priority
        assert "probably" not in page


@pytest.mark.parametrize(
    ("act", "state", "told"),
    [
        ("promote", "delayed", "ann promoted by a bulk job"),
        ("retry", "dead", "ann retried by a bulk job"),
        ("release", "leased", "· by a bulk job Take back"),
    ],
)
def test_an_item_tells_which_bulk_job_changed_it(
    operator: Desk, jobs: Queue, done: Callable[..., str], act: str, state: str, told: str
) -> None:
    for _ in range(7):
        in_state(jobs, state)
    items = jobs.search(Query(state=state)).items
    url = done(act, "jobs", query=Query(state=state, item_id=items[3].id))
    for item in items:
        page = operator.open(f"{HERE}{item.id}/")
        assert (url in page.html, told in page.text) == ((True, True) if item is items[3] else (False, False))
    done(act, "jobs", query=Query(state=state))
    for item in items:
        assert operator.open(f"{HERE}{item.id}/").text.count(told) == 1


def test_what_the_log_of_a_bulk_job_does_not_tell_is_told_as_probable(
    operator: Desk, jobs: Queue, done: Callable[..., str]
) -> None:
    items = jobs.push_many([(b"x", n) for n in range(10, 310)])
    url = done("reprioritize", "jobs", query=Query(low=0, high=1_000), priority=5)
    first, last = (operator.open(f"{HERE}{items[n].id}/") for n in (0, -1))
    assert "ann re-prioritized by a bulk job Set the priority" in first.text
    assert "ann re-prioritized probably by a bulk job Set the priority" in last.text
    assert url in last.html
    jobs.push(b"later", 5)
    (later,) = jobs.search(Query(text="later")).items
    assert url not in operator.open(f"{HERE}{later.id}/").html


def test_a_bulk_job_that_was_undone_is_not_told(
    operator: Desk, jobs: Queue, store: Store, done: Callable[..., str]
) -> None:
    item = jobs.push(b"x", 1)
    url = done("reprioritize", "jobs", priority=5)
    assert url in operator.open(f"{HERE}{item.id}/").html
    ann = store.actions("ann")
    undoing = ann.undo(url.split("/")[2]).job
    assert undoing is not None
    ann.run_bulk(undoing.id)
    assert url not in operator.open(f"{HERE}{item.id}/").html


def test_json_is_a_tree_with_exact_numbers(operator: Desk, store: Store) -> None:
    value = b'{"big": %s, "rate": 1.10, "twice": 1, "twice": 2, "\\u202e": [null, true]}' % BIG.encode()
    item = store.create_queue("jobs").push(value, priority=1)
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert BIG in page
    assert "1.10" in page
    assert page.text.count('"twice"') == 2
    assert "⟨202E⟩" in page
    assert item.id in page
    raw = operator.open(f"/queues/jobs/items/{item.id}/?as=hex")
    assert "000000  7b 22 62 69 67" in raw.html
    text = operator.open(f"/queues/jobs/items/{item.id}/?as=text")
    assert '"rate": 1.10' in text


@pytest.mark.parametrize(
    ("value", "view", "words"),
    [
        (b"", "text", "empty value"),
        ("Grüße\x07".encode(), "text", "Grüße"),
        (b"\xff\xfe\x00", "hex", "ff fe 00"),
        (b"[" * 40_000 + b"]" * 40_000, "text", "Only the beginning is shown."),
        (b"x" * 90_000, "text", "Only the beginning is shown."),
        (json.dumps(list(range(9_000))).encode(), "json", "more are not drawn"),
        (b"NaN", "text", "NaN"),
        (b"\xed\xa0\x80", "hex", "ed a0 80"),
    ],
)
def test_each_value_is_shown_in_the_view_that_fits(
    operator: Desk, store: Store, value: bytes, view: str, words: str
) -> None:
    item = store.create_queue("jobs").push(value, priority=1)
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert words in page
    assert f'?as={view}" aria-current="true"' in page.html
    for other in ("json", "text", "hex", "nonsense"):
        assert operator.open(f"/queues/jobs/items/{item.id}/?as={other}&all").status == 200


def test_a_download_is_only_bytes(operator: Desk, store: Store) -> None:
    item = store.create_queue("jobs").push(b"<script>alert(1)</script>", priority=1)
    response = operator.client.get(f"/queues/jobs/items/{item.id}/download/")
    assert response.content == b"<script>alert(1)</script>"
    assert response["Content-Type"] == "application/octet-stream"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"].startswith("attachment;")
