"""Pausing and resuming the queues of a group, and single ones from their rows."""

from collections.abc import Callable
from datetime import UTC, datetime

from pqadmin.accounts.models import Grant
from pqadmin.accounts.roles import Role
from queues import Store
from tests.dashboard.conftest import Desk


def paused_queues(store: Store) -> set[str]:
    """Return the names of all paused queues."""
    return {name for name in store.directory() if store.queue(name).pause_state is not None}


def test_a_group_is_paused_with_a_reason_and_resumed_by_the_answer(operator: Desk, store: Store) -> None:
    for name in ("mail:in", "mail:out", "mail:eu:out", "mailing", "alone"):
        store.create_queue(name)
    store.queue("mail:in").pause(reason="before", by="eve")
    assert "/groups/pause/?group=mail%3A" in operator.open("/?group=group").links
    form = operator.open("/groups/pause/?group=mail:")
    assert "1 queue of the group: mail:out" in form
    assert "1 more stays as it is." in form
    assert operator.send(form, "?group=mail%3A", reason=" ").status == 422
    done = operator.send(form, "?group=mail%3A", reason="provider is down", lasting="1h")
    assert "Paused 1 queue: pushes go on." in done
    assert paused_queues(store) == {"mail:in", "mail:out"}
    pause = store.queue("mail:out").pause_state
    assert (pause.by, pause.reason) == ("ada", "provider is down")
    assert pause.until is not None
    again = operator.send(form, "?group=mail%3A", reason="provider is down", lasting="1h")
    assert "already sent" in again
    resumed = operator.send(done, "/groups/resume/")
    assert "Resumed 1 queue." in resumed
    assert paused_queues(store) == {"mail:in"}, "what another person paused before stays so"


def test_a_notice_lifts_no_pause_that_another_person_set_since(operator: Desk, store: Store) -> None:
    for name in ("a:1", "a:2"):
        store.create_queue(name)
    done = operator.send(operator.open("/groups/pause/?group=a:"), "?group=a%3A", reason="deploy")
    store.queue("a:1").resume()
    store.queue("a:1").pause(reason="ledger closing", by="eve")
    assert "Resumed 1 queue." in operator.send(done, "/groups/resume/")
    assert paused_queues(store) == {"a:1"}


def test_a_notice_says_when_all_of_its_pauses_are_gone(operator: Desk, store: Store) -> None:
    jobs = store.create_queue("a:1")
    done = operator.send(operator.open("/groups/pause/?group=a:"), "?group=a%3A", reason="deploy")
    jobs.pause(reason="ledger closing", by="eve")
    refused = operator.send(done, "/groups/resume/")
    assert refused.status == 404
    assert "No queue of this group is paused by ada any more" in refused
    assert paused_queues(store) == {"a:1"}


def test_each_queue_of_a_paused_group_has_an_audit_record(operator: Desk, store: Store) -> None:
    for name in ("a:1", "a:2", "a:3"):
        store.create_queue(name)
    operator.send(operator.open("/groups/pause/?group=a:"), "?group=a%3A", reason="ledger")
    seen = [(entry.queue, entry.verb, entry.reason) for entry in store.audit.entries(limit=10).entries]
    assert sorted(entry for entry in seen if entry[1] == "pause") == [(f"a:{n}", "pause", "ledger") for n in (1, 2, 3)]
    page = operator.open("/groups/resume/?group=a:")
    assert "3 queues of the group: a:1 , a:2 , a:3" in page or "3 queues of the group: a:1, a:2, a:3" in page
    operator.send(page, "?group=a%3A")
    assert not paused_queues(store)
    assert "No queue of this group is paused" in operator.open("/groups/resume/?group=a:")


def test_queues_without_a_group_are_one(operator: Desk, store: Store) -> None:
    for name in ("alone", "a:1", "other"):
        store.create_queue(name)
    done = operator.send(operator.open("/groups/pause/?group="), "?group=", reason="ledger")
    assert paused_queues(store) == {"alone", "other"}
    assert "Resumed 2 queues." in operator.send(done, "/groups/resume/")
    assert not paused_queues(store)


def test_a_group_is_paused_where_its_person_may_act_and_nowhere_else(desk: Callable[..., Desk], store: Store) -> None:
    for name in ("a:mine", "a:seen", "a:hidden"):
        store.create_queue(name)
    granted = desk(Role.NONE, "grace")
    for glob, role in (("a:mine", Role.OPERATOR), ("a:seen", Role.VIEWER)):
        Grant.objects.create(
            user_id=granted.client.session["_auth_user_id"],
            glob=glob,
            role=role.value,
            given_by="boss",
            given_at=datetime.now(UTC),
        )
    form = granted.open("/groups/pause/?group=a:")
    assert "1 queue of the group: a:mine" in form
    assert "hidden" not in form.text
    every = " ".join(str(number) for number in store.directory().values())
    granted.send(form, "?group=a%3A", reason="ledger", queues=every)
    assert paused_queues(store) == {"a:mine"}


def test_only_what_the_page_showed_is_paused(operator: Desk, store: Store) -> None:
    first = store.create_queue("a:1")
    store.create_queue("a:2")
    form = operator.open("/groups/pause/?group=a:")
    store.create_queue("a:3")
    store.delete_queue("a:1")
    store.create_queue("a:1")
    done = operator.send(form, "?group=a%3A", reason="ledger")
    assert "Paused 1 queue" in done
    assert paused_queues(store) == {"a:2"}
    assert first.id != store.queue("a:1").id
    strange = operator.post("/groups/pause/?group=a:", {**form.form("?group=a%3A")[1], "queues": "x -1 \0 9999"})
    assert "No queue of this group can be paused" in strange


def test_a_row_leads_to_the_pause_and_back(operator: Desk, store: Store) -> None:
    store.create_queue("jobs")
    form = operator.open("/queues/jobs/pause/?next=/%3Fq%3Djobs")
    assert "/?q=jobs" in form.links
    done = operator.send(form, "pause/", reason="ledger")
    assert done.path == "/"
    assert done.response.request["QUERY_STRING"] == "q=jobs"
    page = operator.open("/queues/jobs/resume/?next=/%3Fq%3Djobs")
    assert "paused by ada" in page
    done = operator.send(page, "resume/")
    assert done.path == "/"
    assert not paused_queues(store)
    astray = operator.open("/queues/jobs/pause/?next=//evil.example/")
    assert not [link for link in astray.links if "evil" in link]
    assert operator.send(astray, "pause/", reason="ledger").path == "/queues/jobs/"
