"""The verbs of time, leases and single items by command."""

import io
import threading
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from pqadmin.commands.tables import print_items
from queues import Queue
from tests.commands.conftest import Run, Shop


def test_an_item_is_pushed_delayed_rescheduled_promoted_and_each_is_undone(run: Run, shop: Shop, jobs: Queue) -> None:
    due = datetime.now(UTC) + timedelta(days=2)
    item = run("push", "jobs", "later", "--priority=3", "--due", due.isoformat(), "--json").json["item"]
    assert (item["state"], jobs.depth("delayed"), jobs.depth()) == ("delayed", 1, 0)
    assert datetime.fromisoformat(item["due_at"]) >= due - timedelta(milliseconds=1)
    assert run("peek", "jobs", "--state=delayed", "--json").json["items"][0]["id"] == item["id"]
    changed = run("reschedule", "jobs", item["id"], "--delay=1h", "--json").json
    moved = jobs.find(item["id"])
    assert moved.due_at < due - timedelta(hours=46)
    run("undo", changed["trash_id"])
    assert jobs.find(item["id"]).due_at >= due - timedelta(milliseconds=1)
    promoted = run("promote", "jobs", item["id"], "--reason", "customer waits", "--json").json
    assert (promoted["items"], jobs.depth(), jobs.depth("delayed")) == (1, 1, 0)
    assert shop.store.audit.entries().entries[0].reason == "customer waits"
    run("undo", promoted["trash_id"])
    assert (jobs.depth(), jobs.depth("delayed")) == (0, 1)
    gone = run("promote", "jobs", "0" * 40)
    assert gone.code == 1
    assert run("reschedule", "jobs", item["id"]).code != 0


def test_a_worker_in_a_shell_leases_extends_releases_and_acknowledges(run: Run, jobs: Queue) -> None:
    run("configure", "jobs", "--max-attempts=5")
    jobs.push_many([(b"a", 1), (b"b", 2)])
    held = run("lease", "jobs", "-n", "2", "--for=30s", "--worker", "shell", "--json").json["leases"]
    assert [(lease["value"], lease["worker"], lease["state"]) for lease in held] == [
        ("a", "shell", "leased"),
        ("b", "shell", "leased"),
    ]
    extended = run("extend", "jobs", held[0]["token"], "--for=10m", "--json").json
    assert extended["token"] == held[0]["token"]
    assert extended["expires_at"] > held[0]["expires_at"]
    released = run("release", "jobs", held[1]["token"], "--delay=1h", "--json").json["item"]
    assert (released["state"], released["attempts"]) == ("delayed", 1)
    jobs.push(b"c", priority=3)
    (third,) = run("lease", "jobs", "--json").json["leases"]
    given_back = run("release", "jobs", third["token"], "--no-attempt", "--json").json["item"]
    assert (given_back["state"], given_back["attempts"]) == ("ready", 0)
    run("pop", "jobs")
    assert run("ack", "jobs", held[0]["token"], "--json").json == {"queue": "jobs", "acked": 1, "stale": []}
    assert run("ack", "jobs", held[0]["token"]).code == 0
    stale = run("ack", "jobs", held[1]["token"])
    assert (stale.code, held[1]["token"] in stale.error) == (1, True)
    assert jobs.totals().delayed == 1
    assert run("extend", "jobs", "nonsense").code == 1
    assert run("lease", "jobs", "--json").json["leases"] == []


def test_an_operator_takes_a_lease_back_and_its_worker_is_refused(run: Run, jobs: Queue) -> None:
    run("configure", "jobs", "--max-attempts=5")
    item = jobs.push(b"a", priority=1)
    lease = jobs.lease(seconds=60, worker="stuck")
    assert run("release_items", "jobs", item.id, "--json").json["items"] == 1
    assert jobs.depth() == 1
    assert run("ack", "jobs", lease.token).code == 1
    assert jobs.depth() == 1


def test_what_one_asks_of_a_state_is_in_its_table(run: Run, jobs: Queue) -> None:
    run("configure", "jobs", "--max-attempts=1")
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(days=2)
    told = run("push", "jobs", "later", "--priority=3", "--due", due.isoformat()).out
    assert f"{due:%Y-%m-%d %H:%M:%S} UTC" in told
    assert told == run("peek", "jobs", "--state=delayed").out
    assert "Due" in told
    ready = run("push", "jobs", "now", "--priority=1").out
    assert not any(word in ready for word in ("Due", "Worker", "Until", "Died", "Attempts", "Reason"))
    jobs.pop_min()
    jobs.push(b"held", priority=1)
    held = run("lease", "jobs", "--for=2d", "--worker=shell").out
    (lease,) = jobs.leased().items
    assert lease.expires_at is not None
    for out in (held, run("peek", "jobs", "--state=leased").out):
        assert "shell" in out
        assert f"{lease.expires_at:%Y-%m-%d %H:%M:%S} UTC" in out
    run("release", "jobs", held.split("Token: ")[1].strip(), "--reason", "no [bold]disk")
    head, dead = run("peek", "jobs", "--state=dead").out.splitlines()
    (item,) = jobs.dead().items
    assert [word for word in head.split() if word in ("Due", "Until")] == []
    assert dead.split()[-6:] == [f"{item.died_at:%H:%M:%S}", "UTC", "1", "no", "[bold]disk", item.id]


def test_on_a_narrow_terminal_ids_are_whole(shop: Shop, jobs: Queue) -> None:
    item = jobs.push(b"x" * 90, priority=1, delay=timedelta(days=2))
    out = io.StringIO()
    print_items(Console(file=out, width=100), [item], shop.store.now())
    assert [line.split()[-1] for line in out.getvalue().splitlines()] == ["Id", item.id]


def test_dead_items_are_retried_and_deleted(run: Run, jobs: Queue) -> None:
    run("configure", "jobs", "--max-attempts=1")
    jobs.push_many([(b"a", 1), (b"b", 2)])
    for lease in jobs.lease_many(2, seconds=60):
        jobs.release(lease, reason="no such customer")
    dead = run("peek", "jobs", "--state=dead", "-n", "9", "--json").json["items"]
    assert [(item["reason"], item["attempts"]) for item in dead] == [("no such customer", 1)] * 2
    assert run("retry_dead", "jobs", dead[0]["id"], "--json").json["items"] == 1
    deleted = run("delete_items", "jobs", dead[1]["id"], "--json").json
    assert (jobs.depth(), jobs.depth("dead")) == (1, 0)
    run("undo", deleted["trash_id"])
    assert jobs.depth("dead") == 1
    assert "no delayed items" in run("peek", "jobs", "--state=delayed").out


def test_items_get_another_place_or_value(run: Run, jobs: Queue) -> None:
    a, b, c = jobs.push_many([(b"a", 1), (b"b", 2), (b"c", 3)])
    assert run("reprioritize", "jobs", c.id, "--front").code == 0
    assert jobs.peek_min().id == c.id
    shifted = run("reprioritize", "jobs", a.id, b.id, "--shift=-10", "--json").json
    assert [item.priority for item in jobs.items().items] == [-9, -8, 1]
    run("undo", shifted["trash_id"])
    assert jobs.peek_min().id == c.id
    assert run("reprioritize", "jobs", a.id, "--priority=high").code == 1
    assert run("reprioritize", "jobs", a.id, "--priority=1", "--front").code != 0
    edited = run("edit_item", "jobs", a.id, "new", "--json").json
    assert jobs.find(a.id).value == b"new"
    run("undo", edited["trash_id"])
    assert jobs.find(a.id).value == b"a"
    assert "this value already" in run("edit_item", "jobs", a.id, "a").out
    assert run("edit_item", "jobs", "0" * 40, "x").code == 1
    missing = run("delete_items", "jobs", a.id, "0" * 40)
    assert (missing.code, jobs.depth()) == (1, 3)
    assert run("delete_items", "jobs", a.id, "0" * 40, "--skip-missing", "--json").json["skipped"] == 1


def test_a_queue_is_renamed_deleted_and_comes_back(run: Run, shop: Shop) -> None:
    shop.store.create_queue("jobs").push(b"a", priority=1)
    assert run("rename_queue", "jobs", "work", "--json").json["queue"] == "work"
    assert run("delete_queue", "work", "--confirm", "jobs").code == 1
    deleted = run("delete_queue", "work", "--confirm", "work", "--json").json
    assert run("depth", "work").code == 1
    run("undo", deleted["trash_id"])
    assert shop.store.queue("work").depth() == 1


@pytest.mark.parametrize("verb", ["pop", "lease"])
def test_a_caller_that_waits_gets_what_is_pushed_meanwhile(run: Run, jobs: Queue, verb: str) -> None:
    assert run(verb, "jobs", "--wait=0s", "--json").json["items" if verb == "pop" else "leases"] == []
    answers: list[list[str]] = []

    def wait() -> None:
        found = run(verb, "jobs", "--wait=60s", "--json").json
        answers.append([item["value"] for item in found.get("items") or found["leases"]])

    waiter = threading.Thread(target=wait)
    waiter.start()
    jobs.push(b"a", priority=1)
    waiter.join()
    assert answers == [["a"]]


@pytest.mark.parametrize("verb", ["pop", "lease"])
def test_a_caller_that_waited_in_vain_for_a_paused_queue_learns_of_the_pause(run: Run, shop: Shop, verb: str) -> None:
    jobs = shop.store.create_queue("jobs")
    jobs.push(b"kept", priority=1)
    shop.store.actions("ann").pause("jobs", reason="deploy")
    at_once, waited = run(verb, "jobs"), run(verb, "jobs", "--wait=0.1s")
    assert (at_once.code, at_once.error) == (1, "jobs is paused by ann: deploy")
    assert (waited.code, waited.error) == (1, "Nothing came within 0.1 s: jobs is paused by ann: deploy")
    assert (waited.out, jobs.depth()) == ("", 1)


@pytest.mark.parametrize("verb", ["pop", "lease"])
def test_a_caller_that_waits_through_a_pause_gets_what_is_there_when_it_ends(run: Run, shop: Shop, verb: str) -> None:
    jobs = shop.store.create_queue("jobs")
    jobs.push(b"kept", priority=1)
    shop.store.actions("ann").pause("jobs", reason="deploy")
    resuming = threading.Timer(0.1, lambda: shop.store.actions("ann").resume("jobs"))
    resuming.start()
    found = run(verb, "jobs", "--wait=60s", "--json").json
    resuming.join()
    assert [item["value"] for item in found["items" if verb == "pop" else "leases"]] == ["kept"]


@pytest.mark.parametrize("verb", ["pop", "lease"])
def test_nothing_ready_ends_a_loop_in_a_shell(run: Run, jobs: Queue, verb: str) -> None:
    """The exit code is 4, or what --exit-empty says; what was taken ends with 0, fewer than asked for too."""
    jobs.push_many([(b"a", 1), (b"b", 2)])
    assert [run(verb, "jobs").code, run(verb, "jobs", "-n", "9").code, run(verb, "jobs").code] == [0, 0, 4]
    for told in ((), ("--json",), ("--wait=0.01s",)):
        found = run(verb, "jobs", *told)
        assert (found.code, found.error, found.err) == (4, "", "")
        assert run(verb, "jobs", *told, "--exit-empty=0").code == 0
        assert run(verb, "jobs", *told, "--exit-empty", "75").code == 75
    assert run(verb, "jobs", "--json").json == {"queue": "jobs", "items" if verb == "pop" else "leases": []}
    for wrong in ("256", "-1", "none"):
        assert "exit code" in run(verb, "jobs", f"--exit-empty={wrong}").error


def test_what_is_no_span_or_time_is_refused(run: Run, shop: Shop) -> None:
    shop.store.create_queue("jobs")
    for wrong in ("--delay=soon", "--delay=-5s", "--due=tomorrow", "--delay=1h --due=2030-01-01"):
        assert run("push", "jobs", "x", "--priority=1", *wrong.split()).code != 0
    assert run("push", "jobs", "x", "--priority=1", "--delay=999999999d").code == 1
    assert shop.store.queue("jobs").totals().delayed == 0


def test_settings_are_shown_and_changed(run: Run, jobs: Queue) -> None:
    changed = run("configure", "jobs", "--note", "Ask ops", "--redact", "card*", "iban", "--max-depth=2", "--close")
    assert (changed.code, "note: Ask ops" in changed.out) == (0, True)
    settings = run("configure", "jobs", "--json").json["settings"]
    assert (settings["redact"], settings["max_depth"], settings["closed"]) == (["card*", "iban"], 2, True)
    assert run("configure", "jobs", "--preview", "customer.id", "--json").json["settings"]["preview"] == ["customer.id"]
    assert run("push", "jobs", "x", "--priority=1").code == 1
    assert run("configure", "jobs", "--open", "--max-depth=none", "--redact", "--runbook", "javascript:1").code == 1
    assert run("configure", "jobs", "--open", "--max-depth=none", "--redact").code == 0
    jobs.push(b"x", priority=1)
    assert run("configure", "jobs", "--max-attempts=0").code != 0
