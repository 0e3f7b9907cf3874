"""Actions on all that match, on pages without JavaScript: counted, confirmed, begun, canceled, gone on with, undone."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from pqadmin.accounts.roles import Role
from pqadmin.dashboard.jobs.words import tell
from pqadmin.display.values import what_searchers_see
from queues import Job, Queue, Store
from queues.items.scan import Query
from tests.dashboard.conftest import Desk

HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture
def jobs(store: Store) -> Queue:
    queue = store.create_queue("jobs")
    queue.push_many([(b"bad %d" % n if n % 3 == 0 else b"good %d" % n, n % 5) for n in range(60)])
    store.create_queue("review")
    return queue


def only(store: Store) -> Job:
    (job,) = store.actions("").jobs()
    return job


def run(store: Store) -> None:
    """Run all jobs, as the site's runner does."""
    for job in store.actions("").running_jobs():
        store.actions("").run_bulk(job.id, shown=what_searchers_see)


def test_all_that_match_are_counted_moved_and_come_back(operator: Desk, store: Store, jobs: Queue) -> None:
    page = operator.open("/queues/jobs/bulk/?act=move&state=ready&q=BAD&low=1&high=4")
    assert "16" in page
    assert "all 48 that could match: exact" in page
    assert "value contains “BAD”" in page
    assert "priority 1 to 4" in page
    assert jobs.depth() == 60
    address, fields = page.form("q=BAD&low=1&high=4")
    assert (fields["count"], fields["ended"]) == ("16", "on")
    begun = operator.post(address, fields, to="review", reason="why <b>", rate="")
    assert begun.path == f"/jobs/{only(store).id}/"
    assert "Move ready items from jobs to review" in begun
    assert "waiting for a server" in begun
    assert "why <b>" in begun
    again = operator.post(address, fields, to="review", reason="why <b>", rate="")
    assert "Nothing was done a second time." in again
    assert begun.path == again.path
    run(store)
    done = operator.open(begun.path)
    assert "48 of 48" not in done
    assert re.search(r"Changed 16\b", done.text)
    assert (jobs.depth(), store.queue("review").depth()) == (44, 16)
    undoing = operator.send(done, "/undo/")
    assert "This undoes: Move ready items from jobs to review" in undoing
    run(store)
    assert "Undone 16" in operator.open(undoing.path)
    assert "Undone by:" in operator.open(begun.path)
    assert (jobs.depth(), store.queue("review").depth()) == (60, 0)
    listed = operator.open("/jobs/")
    assert "Nothing is running." in listed
    assert "undone" in listed
    acts = [(entry.verb, entry.count, entry.id) for entry in store.audit.entries(limit=50).entries]
    assert acts == [("undo", 16, undoing.path.split("/")[2]), ("move", 16, begun.path.split("/")[2])]
    audit = operator.open("/audit/")
    assert {begun.path, undoing.path, "/queues/review/"} <= set(audit.links)
    assert "jobs → review 16 items bulk job" in audit


def test_an_act_on_all_is_one_entry_of_the_trash_and_undone_there(operator: Desk, store: Store, jobs: Queue) -> None:
    begun = store.actions("ada").begin_bulk("delete", "jobs", query=Query(text="bad"))
    run(store)
    page = operator.open("/trash/")
    assert f"/jobs/{begun.id}/" in page.links
    undoing = operator.send(page, f"{begun.id}/restore/")
    assert undoing.path.startswith("/jobs/")
    assert "This undoes: " in undoing
    run(store)
    assert jobs.depth() == 60
    assert not operator.open("/trash/").has_form(f"{begun.id}/restore/")


def test_the_header_counts_what_the_page_shows(operator: Desk, store: Store, jobs: Queue) -> None:
    begun = [store.actions("").begin_bulk("delete", "jobs", query=Query(text=text)) for text in ("bad", "good")]
    for path in ("/jobs/", f"/jobs/{begun[0].id}/"):
        assert "Bulk jobs 2 2 running" in operator.open(path)
    run(store)
    assert "running Audit" not in operator.open("/jobs/")


def test_every_act_is_offered_for_its_states_only(operator: Desk, store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"later", 1)] * 3, delay=timedelta(hours=1))
    for state, acts in (
        ("ready", {"move", "reprioritize", "delete"}),
        ("delayed", {"promote", "move", "reprioritize", "delete"}),
        ("leased", {"release", "delete"}),
        ("dead", {"retry", "move", "reprioritize", "delete"}),
    ):
        page = operator.open(f"/queues/jobs/bulk/?state={state}&act=nonsense")
        offered = {found[1] for link in page.links if (found := re.search(r"bulk/\?act=(\w+)&", link))}
        assert offered == acts
        assert page.has_form(f"state={state}") == (state in ("ready", "delayed"))
    page = operator.open("/queues/jobs/bulk/?state=delayed&act=promote")
    operator.send(page, "state=delayed")
    run(store)
    assert (jobs.depth(), jobs.depth("delayed")) == (63, 0)
    assert "purge the queue" in operator.open("/queues/jobs/bulk/?act=delete")


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ({"how": "set", "priority": "9"}, b"good 5"),
        ({"how": "shift", "shift": "-5"}, b"bad 0"),
        ({"how": "front"}, b"bad 0"),
        ({"how": "back"}, b"good 5"),
    ],
)
def test_priorities_are_set_shifted_and_items_brought_to_an_end(
    operator: Desk, store: Store, jobs: Queue, typed: dict[str, str], first: bytes
) -> None:
    page = operator.open("/queues/jobs/bulk/?act=reprioritize&q=bad")
    begun = operator.send(page, "q=bad", **typed)
    assert begun.path.startswith("/jobs/"), begun.text
    run(store)
    assert only(store).status == "done"
    assert jobs.peek_min().value == first


@pytest.mark.parametrize(
    ("act", "typed", "words"),
    [
        ("move", {"to": ""}, "Say which queue the items move to."),
        ("move", {"to": "jobs"}, "name another one"),
        ("move", {"to": "nowhere"}, "nowhere"),
        ("move", {"to": "review", "priority": "high"}, "not a whole number"),
        ("reprioritize", {"how": "set", "priority": ""}, "A priority is needed."),
        ("reprioritize", {"how": "shift", "shift": "x"}, "not a whole number"),
        ("delete", {"rate": "0"}, "A number of items a second"),
        ("delete", {"rate": "nan"}, "A number of items a second"),
    ],
)
def test_what_was_typed_wrong_is_at_its_field(
    operator: Desk, store: Store, jobs: Queue, act: str, typed: dict[str, str], words: str
) -> None:
    page = operator.open(f"/queues/jobs/bulk/?act={act}")
    refused = operator.send(page, f"act={act}&state=ready", reason="kept", **typed)
    assert refused.status == 422
    assert words in refused
    assert refused.form(f"act={act}&state=ready")[1]["reason"] == "kept"
    assert store.actions("").jobs() == []


@pytest.mark.parametrize("query", ["", "&q=bad"])
def test_another_number_than_the_one_confirmed_begins_nothing(
    operator: Desk, store: Store, jobs: Queue, query: str
) -> None:
    page = operator.open(f"/queues/jobs/bulk/?act=delete{query}")
    jobs.push_many([(b"bad", 0)] * 11)
    refused = operator.send(page, f"state=ready{query}")
    assert refused.status == 409
    assert "The depth has changed" in refused
    assert store.actions("").jobs() == []
    jobs.push_many([(b"bad", 0)] * 10)
    assert operator.send(refused, f"state=ready{query}").path == f"/jobs/{only(store).id}/", "ten more are tolerated"


def test_a_job_is_canceled_and_let_go_on(operator: Desk, desk: Callable[..., Desk], store: Store, jobs: Queue) -> None:
    job = store.actions("ann").begin_bulk("delete", "jobs")
    store.actions("ann").run_bulk(job.id, progress=lambda job: False)
    page = operator.open(f"/jobs/{job.id}/")
    canceled = operator.send(page, "/cancel/")
    assert "Canceled. What it did stays done until you undo it." in canceled
    late = operator.send(page, "/cancel/")
    assert "Nothing was done a second time." in late
    assert store.actions("").job(job.id).status == "canceled"
    viewer = desk(Role.VIEWER).open(f"/jobs/{job.id}/")
    assert "canceled" in viewer
    assert not viewer.has_form("/resume/")
    going = operator.send(canceled, "/resume/")
    assert "It goes on where it was." in going
    run(store)
    assert jobs.depth() == 0
    operator.send(canceled, "/undo/")  # the other button of a page that was left open
    run(store)
    assert jobs.depth() == 60
    assert "No such job" in operator.open("/jobs/nonsense/")


def test_a_failure_says_why_and_at_which_item(operator: Desk, store: Store, jobs: Queue) -> None:
    store.create_queue("texts", priority_type="str")
    begun = operator.send(operator.open("/queues/jobs/bulk/?act=move"), "act=move&state=ready", to="texts")
    run(store)
    page = operator.open(begun.path)
    assert "It failed after 0 items." in page
    assert f"/queues/jobs/items/{jobs.peek_min().id}/" in page.links
    assert page.has_form("/resume/")
    assert not page.has_form("/undo/")


def test_hostile_values_reasons_and_queries_draw_nothing(operator: Desk, store: Store) -> None:
    queue = store.create_queue("evil")
    queue.push_many([(HOSTILE.encode(), 1)] * 3)
    page = operator.open(f"/queues/evil/bulk/?act=delete&q={HOSTILE.replace('/', '%2F')}")
    assert "<script>alert(1)" not in page.html
    assert "\u202e" not in page.text
    begun = operator.post(*next(form for form in page.forms if "count" in form[1]), reason=HOSTILE)
    for shown in (begun, operator.open("/jobs/"), operator.open("/audit/")):
        assert "<script>alert(1)" not in shown.html
        assert "\u202e" not in shown.text
    for address in ("?q=%00", "?state=x", "?since=x", "?low=x", "?low=1&high=0", "?q=" + "x" * 2_000):
        answer = operator.open(f"/queues/evil/bulk/{address}")
        assert answer.status in (200, 422)
    assert "No job on this page" not in operator.open("/jobs/?after=damaged")


def test_what_is_hidden_is_not_found_by_acting_on_all(operator: Desk, store: Store) -> None:
    queue = store.create_queue("secrets")
    queue.push_many([(b'{"token": "abc", "n": %d}' % n, 1) for n in range(3)])
    store.actions("ann").configure("secrets", redact=("token",))
    hidden = operator.open("/queues/secrets/bulk/?act=delete&q=abc")
    assert "Nothing matches" in hidden
    assert "abc" not in hidden.text.replace("“abc”", "")
    page = operator.open("/queues/secrets/bulk/?act=delete&q=token")
    assert "abc" not in page
    store.actions("ann").begin_bulk("delete", "secrets", query=Query(text="abc"))
    run(store)
    assert (only(store).done, queue.depth()) == (0, 3)


def test_attached_queues_say_what_they_offer(operator: Desk, store: Store) -> None:
    store.attach("legacy", prefix=b"\x15old\x00")
    page = operator.open("/queues/legacy/bulk/?act=delete")
    assert page.status == 409
    assert "moved and deleted by pages, or purged" in page


@pytest.mark.parametrize(
    "path",
    [
        "/queues/jobs/bulk/?act=delete&state=ready",
        "/queues/jobs/purge/",
        "/queues/jobs/delete/",
        "/queues/jobs/act/?act=move&id={item}",
        "/queues/review/bulk/?act=delete&state=ready",
    ],
)
def test_a_person_that_is_about_to_act_sees_running_jobs_of_other_people(
    path: str, operator: Desk, store: Store, jobs: Queue
) -> None:
    store.queue("review").push(b"waits", priority=1)
    path = path.format(item=jobs.items(limit=1).items[0].id)
    assert "Under way on this queue now" not in operator.open(path)
    job = store.actions(HOSTILE).begin_bulk("move", "jobs", to="review", query=Query(text="bad"))
    mine = store.actions("ada").begin_bulk("move", "jobs", to="review", query=Query(text="good"))
    page = operator.open(path)
    assert "Under way on this queue now" in page
    assert "Move ready items from jobs to review waiting for a server · 0 % · by <script>" in page
    assert "0 % · by you" in page
    assert {f"/jobs/{job.id}/", f"/jobs/{mine.id}/"} <= set(page.links)
    run(store)
    assert "Under way on this queue now" not in operator.open(path)


def test_a_job_is_at_none_or_all_only_when_it_is(store: Store, jobs: Queue) -> None:
    job = store.actions("bob").begin_bulk("move", "jobs", to="review")
    told = {met: tell(replace(job, met=met, total=10**6), store.now()) for met in (0, 1, 500_000, 10**6 - 1, 10**6)}
    assert [each["percent"] for each in told.values()] == [
        f"{text}\u202f%" for text in ("0", "<\u202f1", "50", ">\u202f99", ">\u202f99")
    ]
    assert tell(replace(job, status="done", met=1, total=1), store.now())["percent"] == "100\u202f%"


def test_a_queue_page_tells_of_a_running_job_until_it_has_ended(operator: Desk, store: Store, jobs: Queue) -> None:
    job = store.actions("bob").begin_bulk("move", "jobs", to="review")
    for path in ("/queues/jobs/", "/queues/review/"):
        page = operator.open(path)
        assert "Move ready items from jobs to review waiting for a server · 0 % · by bob" in page
        assert f"/jobs/{job.id}/" in page.links
        assert "Both may meet" not in page, "the reader is not about to act"
    part = operator.open("/queues/jobs/jobs/", **{"HX-Request": "true"})
    assert "by bob" in part
    assert 'hx-get="/queues/jobs/jobs/"' in part.html
    assert operator.open("/queues/jobs/jobs/").path == "/queues/jobs/"
    run(store)
    assert "bob" not in operator.open("/queues/jobs/jobs/", **{"HX-Request": "true"})


def test_a_page_that_follows_a_job_offers_to_undo_it_as_soon_as_it_did_something(
    operator: Desk, store: Store, jobs: Queue
) -> None:
    job = store.actions("ann").begin_bulk("delete", "jobs")
    before = operator.open(f"/jobs/{job.id}/")
    store.actions("ann").run_bulk(job.id, progress=lambda job: False)
    after = operator.open(f"/jobs/{job.id}/")
    assert (before.has_form("/undo/"), after.has_form("/undo/")) == (False, True)
    before_set, after_set = (re.findall('data-set="[^"]*"', page.html) for page in (before, after))
    assert before_set != after_set, "the page replaces what there is to do when this changes"


def test_jobs_elsewhere_are_not_told_and_many_are_counted(operator: Desk, store: Store, jobs: Queue) -> None:
    store.create_queue("other").push(b"x", priority=1)
    store.actions("bob").begin_bulk("delete", "other")
    assert "Under way" not in operator.open("/queues/jobs/bulk/?act=delete")
    for _ in range(5):
        store.actions("bob").begin_bulk("delete", "jobs")
    page = operator.open("/queues/jobs/bulk/?act=delete")
    assert page.text.count("Delete ready items of jobs") == 3
    assert "2 more jobs" in page


MEET, COME = "Both may meet the same items", "More items are on their way here"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/queues/jobs/purge/", {MEET}),
        ("/queues/jobs/bulk/?act=delete&state=ready", {MEET}),
        ("/queues/review/purge/", {COME}),
        ("/queues/review/bulk/?act=delete&state=ready", {COME}),
        ("/queues/jobs/delete/", {"Without the queue a job here fails"}),
        ("/queues/review/delete/", {"Without the queue a job here fails"}),
    ],
)
def test_what_a_job_means_for_an_act_is_said_of_what_it_does(
    path: str, said: set[str], operator: Desk, store: Store, jobs: Queue
) -> None:
    store.queue("review").push(b"waits", priority=1)
    store.actions("bob").begin_bulk("move", "jobs", to="review")
    page = operator.open(path)
    assert {each for each in (MEET, COME, "Without the queue a job here fails") if each in page} == said


def test_a_job_that_pushes_brings_items_and_takes_none(operator: Desk, store: Store, jobs: Queue) -> None:
    store.actions("bob").begin_push("jobs", [(b"x", 1)])
    page = operator.open("/queues/jobs/purge/")
    assert COME in page
    assert MEET not in page
