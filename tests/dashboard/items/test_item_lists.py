"""The states of a queue as tabs: what each lists, paging, searching, choosing; all of it by addresses alone."""

import gzip
import re
from datetime import timedelta
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest

from pqadmin.accounts.roles import Role
from pqadmin.pages import item_search
from queues import Queue, Store
from tests.dashboard.conftest import Desk
from tests.dashboard.screen import Screen

HOUR = timedelta(hours=1)


@pytest.fixture
def jobs(store: Store) -> Queue:
    """60 ready, 55 delayed, 2 leased, 3 dead."""
    jobs = store.create_queue("jobs")
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"hopeless-%d" % n, -9) for n in range(3)])
    for lease in jobs.lease_many(3, worker="w0"):
        jobs.release(lease, reason="no such <customer>")
    jobs.push_many([(b"held-%d" % n, -n - 1) for n in range(2)])
    jobs.lease_many(2, seconds=3600, worker="w<1>")
    jobs.push_many([(b"ready-%02d" % n, n) for n in range(60)])
    jobs.push_many([(b"later-%02d" % n, n, (n + 1) * HOUR) for n in range(55)])
    return jobs


def list_of(page: Screen) -> str:
    """Return what the list's part of a page says."""
    return re.split("Ready (?!items)", page.text, maxsplit=1)[1]


def values(page: Screen) -> list[str]:
    """Return the values of the rows, from top to bottom."""
    body = re.sub("</?mark>", "", page.html.split('id="items"', 1)[1])
    return re.findall(r">((?:ready|later|held|hopeless|m)-\d+)<", body)


def follow(desk: Desk, page: Screen, words: str) -> Screen:
    """Follow the link of the list that says so."""
    found = re.search(rf'href="([^"]*)"[^>]*>{words}<', page.html.split('id="items"', 1)[1])
    assert found, words
    return desk.open("/queues/jobs/" + found[1].replace("&amp;", "&").split("#")[0])


def test_each_tab_lists_its_state_with_its_depth(operator: Desk, jobs: Queue) -> None:
    page = operator.open("/queues/jobs/?state=ready")
    for words in ("Ready 60", "Delayed 55", "Leased 2", "Dead 3", "Trash 0"):
        assert words in page
    assert values(page) == [f"ready-{n:02}" for n in range(50)]
    assert re.search(r"All 60 as of \d\d:\d\d:\d\d", page.text), "the tabs go on, so the number tells its moment"
    delayed = operator.open("/queues/jobs/?state=delayed")
    assert values(delayed) == [f"later-{n:02}" for n in range(50)]
    assert "in 59:" in list_of(delayed) or "in 1:00:00" in list_of(delayed)
    held = operator.open("/queues/jobs/?state=leased")
    assert sorted(values(held)) == ["held-0", "held-1"]
    assert "w<1>" in held
    dead = operator.open("/queues/jobs/?state=dead")
    assert values(dead) == ["hopeless-2", "hopeless-1", "hopeless-0"], "those that died last come first"
    assert "no such <customer>" in dead
    by_reason = operator.open("/queues/jobs/?state=dead&q=SUCH+<customer>")
    assert values(by_reason) == values(dead)
    assert "Text is looked for in reasons, and in values as stored" in by_reason
    assert by_reason.html.count("no <mark>such &lt;customer&gt;</mark>") == 3
    assert values(operator.open("/queues/jobs/?state=dead&q=hopeless-1")) == ["hopeless-1"]
    assert values(operator.open("/queues/jobs/?state=nonsense")) == values(page)


@pytest.mark.parametrize(("state", "name"), [("ready", "ready"), ("delayed", "later")])
def test_pages_go_on_from_both_ends_by_cursor(operator: Desk, jobs: Queue, state: str, name: str) -> None:
    depth = jobs.depth(state)
    for end, expected in (("min", range(depth)), ("max", reversed(range(depth)))):
        page = operator.open(f"/queues/jobs/?state={state}&end={end}")
        rest = follow(operator, page, "Next items")
        assert values(page) + values(rest) == [f"{name}-{n:02}" for n in expected]
        assert "Next items" not in rest
        assert values(follow(operator, rest, "Back to the first")) == values(page)


def test_a_list_begins_at_a_priority_an_age_or_an_id(operator: Desk, jobs: Queue) -> None:
    assert values(operator.open("/queues/jobs/?from=57")) == ["ready-57", "ready-58", "ready-59"]
    assert values(operator.open("/queues/jobs/?from=2&end=max")) == ["ready-02", "ready-01", "ready-00"]
    assert values(operator.open("/queues/jobs/?low=3&high=4")) == ["ready-03", "ready-04"]
    assert values(operator.open("/queues/jobs/?age=15m")) == []
    assert len(values(operator.open("/queues/jobs/?since=15+min&end=max"))) == 50
    item = jobs.items(priority=31).items[0]
    assert values(operator.open(f"/queues/jobs/?id={item.id}")) == ["ready-31"]
    assert values(operator.open(f"/queues/jobs/?id=…{item.id[-10:].upper()}")) == ["ready-31"]
    elsewhere = operator.open(f"/queues/jobs/?state=dead&id={item.id}")
    assert "The item of this id is ready." in elsewhere
    assert f"/queues/jobs/items/{item.id}/" in elsewhere.links


def test_a_search_says_its_scope_and_the_address_holds_it(operator: Desk, jobs: Queue) -> None:
    page = operator.open("/queues/jobs/?q=READY-5")
    assert values(page) == [f"ready-{n}" for n in range(50, 60)]
    assert "searched 60 items, all there are · 10 found" in page
    assert 'name="q" value="READY-5"' in page.html
    assert any("state=delayed" in link and "q=READY-5" in link for link in page.links), "tabs carry the search"
    nothing = operator.open("/queues/jobs/?q=nowhere&state=delayed")
    assert "searched 55 items, all there are · 0 found" in nothing
    assert "Nothing found" in nothing


def test_a_long_search_goes_on_step_by_step(operator: Desk, jobs: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_search, "SCAN", 25)
    monkeypatch.setattr(item_search, "SECONDS", 0.0)
    page, found, steps = operator.open("/queues/jobs/?q=-3"), list[str](), 1
    assert "searched 25 of 60 · 0 found" in page
    while True:
        found += values(page)
        if "Continue" not in page:
            break
        page = follow(operator, page, "Continue")
        steps += 1
    assert found == [f"ready-{n}" for n in range(30, 40)]
    assert steps == 3
    assert "searched 60 items, all there are · 10 found" in page


def test_what_is_wrong_is_said_at_its_field_and_asks_for_nothing(operator: Desk, jobs: Queue) -> None:
    for query, words in (
        ("low=high", "is not a whole number"),
        ("until=tomorrow", "Give a length of time"),
        ("age=99999999999d", "Give a length of time"),
        ("since=0001-01-01T00:00%2B14:00", "This is too far away"),
        ("id=xyz", "An id, or a part of one"),
    ):
        page = operator.open(f"/queues/jobs/?{query}")
        assert words in page, query
        assert 'aria-invalid="true"' in page.html
        assert values(page)[0] == "ready-00"
    fifo = operator.open("/queues/jobs/?low=1")
    assert "aria-invalid" not in fifo.html


def test_all_that_match_are_offered_by_the_very_query_of_the_page(operator: Desk, jobs: Queue) -> None:
    page = operator.open("/queues/jobs/?state=delayed&q=later-1&low=3&until=2030-01-02+03:04&end=max")
    bulk = [urlsplit(link) for link in page.links if "/bulk/?" in link]
    assert {parse_qs(link.query)["act"][0] for link in bulk} == {"promote", "move", "reprioritize", "delete"}
    for link in bulk:
        assert link.path == "/queues/jobs/bulk/"
        assert {name: field for name, (field,) in parse_qs(link.query).items() if name != "act"} == {
            "state": "delayed",
            "q": "later-1",
            "low": "3",
            "until": "2030-01-02T03:04:00.000Z",
        }


def test_items_are_chosen_with_plain_forms(operator: Desk, desk: object, jobs: Queue) -> None:
    page = operator.open("/queues/jobs/?state=dead")
    assert page.has_form("/queues/jobs/act/")
    ids = {item.id for item in jobs.dead().items}
    assert set(re.findall(r'name="id" value="([0-9a-f]{40})"', page.html)) == ids
    assert page.html.count(" checked") == 0
    chosen = follow(operator, page, "Select page")
    assert len(re.findall(r'name="id" value="[0-9a-f]{40}"[^>]*\bchecked', chosen.html)) == 3
    assert set(re.findall(r'name="act"\s+value="(\w+)"', page.html)) == {
        "retry",
        "move",
        "reprioritize",
        "delete",
    }
    viewer = desk(Role.VIEWER, "vic").open("/queues/jobs/?state=dead")
    assert values(viewer) == values(page)
    assert not viewer.has_form("/act/")
    assert "Settings" not in list_of(viewer)


def test_the_trash_of_a_queue_is_undone_from_its_page(operator: Desk, store: Store, jobs: Queue) -> None:
    acts = store.actions("eve")
    item = jobs.peek_min()
    acts.delete_item("jobs", item.id)
    acts.create_queue("other")
    acts.push("other", b"x", priority=1)
    acts.delete_item("other", acts.push("other", b"y", priority=2).id)
    page = operator.open("/queues/jobs/?state=trash")
    assert "Trash 1" in page
    assert "deleted" in list_of(page)
    assert "eve" in list_of(page)
    back = operator.send(page, "/restore/")
    assert "Put back" in back
    assert jobs.peek_min() == item
    assert "Nothing of this queue is in the trash" in operator.open("/queues/jobs/?state=trash")


def test_a_push_does_not_count_as_trash_and_is_undone_all_the_same(operator: Desk, jobs: Queue) -> None:
    pushed = operator.send(operator.open("/queues/jobs/push/"), "/push/", value="plain", priority="1")
    assert "Pushed" in pushed
    assert "Trash 0" in operator.open("/queues/jobs/")
    page = operator.open("/queues/jobs/?state=trash")
    assert "Nothing of this queue is in the trash" in page
    (address,) = re.findall(r'href="(/trash/\?queue=jobs&amp;act=push)"', page.html)
    pushes = operator.open(unescape(address))
    assert "jobs pushed 1 ada" in pushes
    assert "taken out again" in operator.send(pushes, "/restore/")
    assert b"plain" not in [item.value for item in jobs.items(limit=100).items]


def test_a_long_trash_is_gone_through_by_cursor(operator: Desk, store: Store, jobs: Queue) -> None:
    acts = store.actions("eve")
    for item in jobs.items(limit=53).items:
        acts.delete_item("jobs", item.id)
    assert "Trash 10+" in operator.open("/queues/jobs/")
    page = operator.open("/queues/jobs/?state=trash")
    assert "Trash 50+" in page
    older = follow(operator, page, "Older")
    assert (page.html.count("Undo: "), older.html.count("Undo: ")) == (50, 3)
    assert "does not continue this list" in operator.open("/queues/jobs/?state=trash&after=garbage")


def test_large_values_fill_a_page_too(operator: Desk, store: Store) -> None:
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"m-%02d " % n + b"x" * 60_000, n) for n in range(60)])
    page = operator.open("/queues/jobs/")
    assert len(re.findall(r'name="id" value="[0-9a-f]', page.html)) == 50
    assert len(re.findall(r'name="id" value="[0-9a-f]', follow(operator, page, "Next items").html)) == 10


def test_fifo_queues_have_no_priorities_to_search_by(operator: Desk, store: Store) -> None:
    store.create_queue("jobs", kind="fifo").enqueue_many([b"m-%02d" % n for n in range(5)])
    page = operator.open("/queues/jobs/?end=tail")
    assert values(page) == [f"m-{n:02}" for n in (4, 3, 2, 1, 0)]
    assert 'id="low"' not in page.html
    assert "has no priorities" in operator.open("/queues/jobs/?from=1")
    assert "Re-prioritize" not in list_of(page)


def test_attached_queues_have_the_tabs_that_the_core_has(operator: Desk, store: Store) -> None:
    legacy = store.attach("jobs", prefix=("legacy",))
    legacy.push_many([(b"m-%02d" % n, n) for n in range(5)])
    page = operator.open("/queues/jobs/?state=dead")
    assert values(page) == [f"m-{n:02}" for n in range(5)]
    assert "Delayed" not in list_of(page)
    assert 'id="until"' not in page.html
    assert values(operator.open("/queues/jobs/?low=2&high=3&q=M-")) == ["m-02", "m-03"]
    first = legacy.items(limit=1).items[0]
    assert values(operator.open(f"/queues/jobs/?id={first.id}")) == ["m-00"]


def test_hidden_parts_of_values_are_not_found(operator: Desk, store: Store) -> None:
    jobs = store.create_queue("jobs")
    jobs.push_many([(b'{"token": "s3cret", "a": 1}', 1), (b'{"note": "s3cret"}', 2)])
    jobs.configure(redact=("token",))
    page = operator.open("/queues/jobs/?q=s3cret")
    assert "searched 2 items, all there are · 1 found" in page
    assert "note" in list_of(page)
    assert "token" not in list_of(page)
    assert "s3cret" not in list_of(operator.open("/queues/jobs/?q=token"))


def test_a_search_for_text_says_where_it_does_not_look(operator: Desk, store: Store, settings: object) -> None:
    settings.PQADMIN_REDACT = ()
    store.create_queue("jobs").push(gzip.compress(b"needle"), priority=1)
    limits = "Text is looked for in values as stored: not inside of gzip or zlib"
    found = operator.open("/queues/jobs/?q=needle")
    assert "searched 1 item, all there is · 0 found" in found
    assert f"{limits}." in found, "what was not looked into is not reported as absent"
    assert limits not in operator.open("/queues/jobs/?low=1")
    store.actions("ada").configure("jobs", redact=("token",))
    assert f"{limits}, nor in what is redacted." in operator.open("/queues/jobs/?q=needle")


def test_hostile_names_values_and_reasons_stay_text(operator: Desk, store: Store) -> None:
    evil = "<script>alert(1)</script>\u202e"
    jobs = store.create_queue("jobs", priority_type="str")
    jobs.configure(max_attempts=1)
    jobs.push_many([(evil.encode(), evil), (evil.encode(), "b")])
    jobs.release(jobs.lease(worker=evil), reason=evil)
    jobs.lease(worker=evil)
    jobs.push(evil.encode(), priority=evil, delay=HOUR)
    for query in ("state=dead", "state=leased", "state=delayed", "q=<script>", "low=<b>", "id=<b>", "until=<b>"):
        page = operator.open(f"/queues/jobs/?{query}")
        assert "<script>alert" not in page.html.replace("&lt;", "")
        assert "\u202e" not in page.html


def test_line_breaks_of_errors_are_signs(operator: Desk, store: Store) -> None:
    jobs = store.create_queue("jobs")
    jobs.configure(max_attempts=1)
    jobs.push(b"v", priority=1)
    jobs.release(jobs.lease(worker="w"), reason="Traceback:\n  File\r\n\tValueError")
    page = operator.open("/queues/jobs/?state=dead")
    assert page.html.count("Traceback: ↵ File ↵ ValueError") == 2, "the row and its title"


def test_a_foreign_cursor_or_priority_shows_the_beginning_and_says_so(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"first", priority=1)
    store.create_queue("other").push_many([(b"x", 1)] * 60)
    foreign = next(link for link in operator.open("/queues/other/").links if "after=" in link)
    for query in (foreign, "?after=garbage", "?after=%00", "?after=" + "f" * 5_000):
        page = operator.open("/queues/jobs/" + query)
        assert page.status == 200
        assert "does not continue this list" in page
        assert "first" in page
    wrong = operator.open("/queues/jobs/?from=1.5")
    assert "is not" in wrong
    assert "first" in wrong
