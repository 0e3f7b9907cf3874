"""Creating, pausing, renaming and deleting queues on pages."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from pqadmin.pages.queue_context import paused, row_of
from queues import Queue, Store
from queues.errors import QueueNotFound
from tests.dashboard.conftest import Desk
from tests.waiting import await_true


def test_a_new_queue_is_created_once(operator: Desk, store: Store) -> None:
    action, fields = operator.open("/new/").form("/new/")
    fields |= {"name": "orders:eu:new", "edges": "1, 5, 10"}
    created = operator.post(action, fields)
    assert created.path == "/queues/orders:eu:new/"
    assert "is ready for its first item" in created
    again = operator.post(action, fields)
    assert "Nothing was done a second time." in again
    assert store.queue("orders:eu:new").config.edges == (1, 5, 10)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "A queue needs a name."),
        ("a/b", "is made of letters, digits"),
        ("a b", "a space"),
        ("\u202eevil", "U+202E"),
        ("tab\there", "U+0009"),
        ("x" * 10_000, "at most 200 characters"),
        ("..", "only dots"),
        ("jobs", "jobs"),
        ("<script>alert(1)</script>", "letters, digits"),
    ],
)
def test_a_bad_name_is_refused_at_its_field(operator: Desk, store: Store, name: str, words: str) -> None:
    store.create_queue("jobs")
    refused = operator.send(operator.open("/new/"), "/new/", name=name, kind="fifo")
    assert refused.status == 422
    assert words in refused
    assert 'id="create-name_error"' in refused.html
    assert refused.form("/new/")[1]["kind"] == "fifo"
    assert list(store.directory()) == ["jobs"]


def test_bad_edges_are_refused_at_their_field(operator: Desk, store: Store) -> None:
    for edges in ("3, x", "5, 2", ",".join(map(str, range(40)))):
        refused = operator.send(operator.open("/new/"), "/new/", name="q", edges=edges)
        assert refused.status == 422
        assert 'id="create-edges_error"' in refused.html
    assert not store.directory()


def test_a_queue_may_be_called_new(operator: Desk, store: Store) -> None:
    assert operator.open("/queues/new/").path == "/new/"
    store.create_queue("new")
    assert operator.open("/queues/new/").path == "/queues/new/"


def test_pause_wants_a_reason_and_resume_ends_it(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    form = operator.open("/queues/jobs/pause/")
    refused = operator.send(form, "pause/", reason=" ", lasting="1h")
    assert refused.status == 422
    assert "Give a reason" in refused
    assert refused.form("pause/")[1]["lasting"] == "1h"
    paused = operator.send(refused, "pause/", reason="ledger closing")
    assert "Paused: nothing is taken, pushes go on." in paused
    assert "ledger closing" in paused
    pause = store.queue("jobs").pause_state
    assert (pause.by, pause.reason) == ("ada", "ledger closing")
    assert pause.until is not None
    resumed = operator.send(paused, "resume/")
    assert "Resumed" in resumed
    assert store.queue("jobs").pause_state is None


def test_a_pause_that_was_not_seen_is_replaced_only_when_asked_again(operator: Desk, store: Store) -> None:
    jobs = store.create_queue("jobs")
    form = operator.open("/queues/jobs/pause/")
    jobs.pause(reason="ledger closing", by="eve")
    refused = operator.send(form, "pause/", reason="deploy", lasting="15m")
    assert refused.status == 409
    assert "Nothing was changed: it is paused by eve" in refused.text
    assert "ledger closing" in refused.text
    assert store.queue("jobs").pause_state.reason == "ledger closing"
    assert refused.form("pause/")[1]["reason"] == "deploy"
    assert "Paused: nothing is taken" in operator.send(refused, "pause/", lasting="15m")
    assert store.queue("jobs").pause_state.reason == "deploy"


def test_a_pause_that_another_person_set_since_is_lifted_only_when_asked_again(operator: Desk, store: Store) -> None:
    jobs = store.create_queue("jobs")
    paused = operator.send(operator.open("/queues/jobs/pause/"), "pause/", reason="deploy", lasting="")
    (offer,) = [form for form in paused.forms if form[0].endswith("resume/") and "paused_by" in form[1]]
    page = operator.open("/queues/jobs/resume/")
    jobs.resume()
    jobs.pause(reason="ledger closing", by="eve")
    for sent in (offer, page.form("resume/")):
        refused = operator.post(*sent)
        assert refused.status == 409
        assert "Nothing was changed: it is paused by eve" in refused.text
    assert store.queue("jobs").pause_state.reason == "ledger closing"
    assert "Resumed" in operator.send(refused, "resume/")
    assert store.queue("jobs").pause_state is None


def test_a_pause_that_has_run_out_refuses_no_resume(operator: Desk, store: Store) -> None:
    jobs = store.create_queue("jobs")
    done = operator.send(operator.open("/queues/jobs/pause/"), "pause/", reason="deploy", lasting="")
    (offer,) = [form for form in done.forms if form[0].endswith("resume/") and "paused_by" in form[1]]
    jobs.pause(reason="ledger closing", by="eve", until=store.now() + timedelta(seconds=0.3))
    await_true(lambda: not paused(jobs.status(), store.now()))
    assert "Resumed" in operator.post(*offer)


def test_the_form_of_a_pause_shows_the_one_that_it_replaces(operator: Desk, store: Store) -> None:
    jobs = store.create_queue("jobs")
    form = operator.open("/queues/jobs/pause/")
    jobs.pause(reason="ledger closing", by="eve")
    incomplete = operator.send(form, "pause/", reason="", lasting="15m")
    for shown in (incomplete, operator.open("/queues/jobs/pause/")):
        assert "It is paused by eve" in shown.text
        assert "ledger closing" in shown.text
    assert store.queue("jobs").pause_state.reason == "ledger closing"
    jobs.resume()
    assert "Your pause takes its place" not in operator.open("/queues/jobs/pause/").text


def test_a_queue_is_paused_until_a_moment(operator: Desk, store: Store) -> None:
    store.create_queue("jobs")
    form = operator.open("/queues/jobs/pause/")
    past = operator.send(form, "pause/", reason="r", lasting="at", at="2001-01-01T00:00")
    assert "That moment has passed." in past
    assert "Give a date and a time, such as" in operator.send(form, "pause/", reason="r", lasting="at", at="soon")
    for at in ("0001-01-01T00:00+05:00", "9999-12-31T23:59-05:00"):
        assert "This is too far away." in operator.send(form, "pause/", reason="r", lasting="at", at=at)
    done = operator.send(form, "pause/", reason="r", lasting="at", at="2999-01-01T10:00+05:00")
    assert "It resumes 2999-01-01 05:00:00 UTC." in done


def test_a_pause_that_has_run_out_is_none(operator: Desk, store: Store) -> None:
    now = datetime.now(UTC)
    jobs = store.create_queue("jobs")
    jobs.pause(reason="r", by="eve", until=now + timedelta(hours=1))
    status = jobs.status()
    assert paused(status, now)
    assert not paused(status, now + timedelta(hours=2))
    assert row_of(status, now).mark == "paused"
    assert row_of(status, now + timedelta(hours=2)).mark == "empty"
    hidden = re.compile(r"<span[^>]* hidden>the queue is paused")
    assert not hidden.search(operator.open("/queues/jobs/push/").html)
    jobs.resume()
    assert hidden.search(operator.open("/queues/jobs/push/").html)


def test_rename_keeps_the_items_and_can_be_undone(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    store.create_queue("taken")
    refused = operator.send(operator.open("/queues/jobs/rename/"), "rename/", name="taken")
    assert refused.status == 422
    assert 'id="rename-name_error"' in refused.html
    renamed = operator.send(refused, "rename/", name="tasks")
    assert renamed.path == "/queues/tasks/"
    assert store.queue("tasks").depth() == 1
    undone = operator.post(*renamed.form("/queues/tasks/rename/"))
    assert undone.path == "/queues/jobs/"


def test_delete_wants_the_name_and_can_be_undone(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push_many([(b"x", 1)] * 3)
    form = operator.open("/queues/jobs/delete/")
    assert "3 items go to the trash with the queue." in form
    refused = operator.send(form, "delete/", confirm="job", reason="not used")
    assert refused.status == 422
    assert "The name does not match" in refused
    assert refused.form("delete/")[1]["reason"] == "not used"
    deleted = operator.send(refused, "delete/", confirm="jobs")
    assert deleted.path == "/"
    assert "Deleted jobs." in deleted
    with pytest.raises(QueueNotFound):
        store.queue("jobs")
    restored = operator.send(deleted, "/restore/")
    assert restored.path == "/queues/jobs/"
    assert store.queue("jobs").depth() == 3


def test_a_changed_depth_stops_the_deletion(operator: Desk, store: Store, jobs: Queue) -> None:
    form = operator.open("/queues/jobs/delete/")
    jobs.push_many([(b"x", 1)] * 500)
    refused = operator.send(form, "delete/", confirm="jobs")
    assert refused.status == 409
    assert "The depth has changed" in refused
    assert "500 items go to the trash" in refused
    assert store.queue("jobs").depth() == 500
    assert refused.form("delete/")[1]["depth"] == "500"


def test_a_name_taken_meanwhile_stops_the_restoring(operator: Desk, store: Store) -> None:
    store.create_queue("jobs")
    store.delete_queue("jobs")
    store.create_queue("jobs")
    refused = operator.send(operator.open("/trash/"), "/restore/")
    assert "The name is taken" in refused
    assert refused.path == "/trash/"


@pytest.mark.parametrize(
    ("act", "verb", "typed"),
    [
        ("pause", "pause", {"reason": "ledger closing"}),
        ("rename", "rename", {"name": "tasks"}),
        ("delete", "delete_queue", {"confirm": "jobs"}),
    ],
)
def test_a_form_of_a_queue_works_once(operator: Desk, store: Store, act: str, verb: str, typed: dict[str, str]) -> None:
    store.create_queue("jobs")
    action, fields = operator.open(f"/queues/jobs/{act}/").form(f"{act}/")
    operator.post(action, fields, **typed)
    again = operator.post(action, fields, **typed)
    assert again.status == 200
    assert "Nothing was done a second time." in again
    assert [entry.verb for entry in store.audit.entries().entries] == [verb]


def test_a_resume_form_works_once(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").pause(reason="r", by="eve")
    action, fields = operator.open("/queues/jobs/").form("resume/")
    operator.post(action, fields)
    store.queue("jobs").pause(reason="again", by="eve")
    again = operator.post(action, fields)
    assert "Nothing was done a second time." in again
    assert store.queue("jobs").pause_state is not None
    assert [entry.verb for entry in store.audit.entries().entries] == ["resume"]


def test_a_deletion_that_is_sent_twice_leads_back(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    action, fields = operator.open("/queues/jobs/delete/").form("delete/")
    operator.post(action, fields, confirm="jobs")
    again = operator.post(action, fields, confirm="jobs")
    assert again.path == "/trash/"
    assert operator.send(again, "/restore/").path == "/queues/jobs/"
    assert store.queue("jobs").depth() == 1


@pytest.mark.parametrize(
    ("act", "typed"),
    [("pause", {"reason": "r"}), ("rename", {"name": "tasks"}), ("delete", {"confirm": "jobs"}), ("resume", {})],
)
def test_a_form_acts_only_on_the_queue_that_it_was_made_for(
    operator: Desk, store: Store, act: str, typed: dict[str, str]
) -> None:
    store.create_queue("jobs").pause(reason="r", by="eve")
    page = operator.open("/queues/jobs/" if act == "resume" else f"/queues/jobs/{act}/")
    action, fields = page.form(f"{act}/")
    store.delete_queue("jobs")
    store.create_queue("jobs").pause(reason="other", by="eve")
    refused = operator.post(action, fields, **typed)
    assert "Another queue has this name now" in refused
    for forged in ({}, {"queue_id": "1"}, {"queue_id": "9" * 30}, {"queue_id": "x"}):
        refused = operator.post(action, {"depth": "0", **forged}, **typed)
        assert "This form has expired" in refused or "Another queue has this name now" in refused
    assert list(store.directory()) == ["jobs"]
    pause = store.queue("jobs").pause_state
    assert pause.reason == "other"
    assert not store.audit.entries().entries
    if act != "resume":  # the form that was shown instead is for the queue that is there now
        assert "Another queue" not in operator.send(refused, f"{act}/", **typed)
