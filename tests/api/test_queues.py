"""Queues over HTTP: made, changed, operated and looked at, with the rights and refusals of pages."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Role
from queues import Store
from tests.api.conftest import Program, in_thread
from tests.api.test_verbs import problem
from tests.dashboard.history.test_history import record

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_queue_is_created_configured_renamed_deleted_and_restored(program: Program, site: Store) -> None:
    made = await program.post("queues", json={"name": "jobs", "priority_type": "str", "codec": "json"})
    assert (made.status_code, made.headers["Location"]) == (201, "/api/v1/queues/jobs")
    assert made.json() == {
        "queue": "jobs",
        "id": site.queue("jobs").id,
        "kind": "priority",
        "priority_type": "str",
        "codec": "json",
        "prefix": None,
    }
    problem(await program.post("queues", json={"name": "jobs"}), 409, "QueueExists")
    problem(await program.post("queues", json={"name": "a b"}), 422, "BadName")
    seen = await program.get("queues/jobs")
    assert seen.json()["settings"]["max_attempts"] == 5
    etag = {"If-Match": seen.headers["ETag"]}
    changed = await program.patch("queues/jobs", json={"note": "mind it", "max_attempts": 3}, headers=etag)
    assert changed.json()["settings"]["note"] == "mind it"
    problem(await program.patch("queues/jobs", json={"note": "other"}, headers=etag), 412, "SettingsChanged")
    problem(await program.patch("queues/jobs", json={}), 422, "InvalidRequest")
    problem(await program.patch("queues/jobs", json={"max_depth": 1, "target_depth": 5}), 422, "BadSetting")
    assert (await program.post("queues/jobs/rename", json={"name": "work"})).json()["queue"] == "work"
    site.queue("work").push({"n": 1}, "p")
    problem(await program.delete("queues/work?confirm=jobs"), 422, "ConfirmationMismatch")
    problem(await program.delete("queues/work?confirm=work&expected=12"), 409, "DepthChanged")
    gone = await program.delete("queues/work?confirm=work&expected=0")  # within the tolerance
    assert gone.json()["trash_id"]
    problem(await program.get("queues/work"), 404, "QueueNotFound")
    back = await program.post("queues/work/restore")
    assert back.json()["queue"] == "work"
    assert site.queue("work").depth() == 1
    problem(await program.post("queues/work/restore"), 404, "TrashNotFound")
    verbs = [entry.verb for entry in site.audit.entries(queue="work").entries]
    assert verbs == ["restore_queue", "delete_queue", "rename", "configure", "create"]
    assert {entry.via for entry in site.audit.entries(queue="work").entries} == {"api"}


@pytest.mark.parametrize("meant", ["the old one", "no id"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "queues/jobs", None),
        ("PATCH", "queues/jobs", {"note": "x"}),
        ("DELETE", "queues/jobs?confirm=jobs", None),
        ("POST", "queues/jobs/rename", {"name": "work"}),
        ("POST", "queues/jobs/detach", {}),
        ("POST", "queues/jobs/pop", None),
        ("GET", "queues/jobs/look", None),
    ],
)
async def test_a_request_that_means_another_queue_of_the_name_says_so(
    program: Program, site: Store, meant: str, method: str, path: str, body: Any
) -> None:
    old = site.create_queue("jobs").id
    site.delete_queue("jobs")
    new = site.create_queue("jobs")
    site.create_queue("jobs-old")
    headers = {"PQ-Queue-ID": str(old) if meant == "the old one" else "x"}
    refused = problem(await program.request(method, path, json=body, headers=headers), 404, "QueueNotFound")
    assert (refused["detail"], refused["suggestions"]) == (
        "Another queue has the name “jobs” now; the queue that is meant was renamed or deleted.",
        [],
    )
    assert site.queue("jobs").id == new.id


async def test_a_description_by_the_id_of_a_deleted_queue_says_that_another_one_has_the_name(
    program: Program, site: Store
) -> None:
    old = site.create_queue("jobs").id
    site.delete_queue("jobs")
    path = f"queues/jobs/description?id={old}"
    assert problem(await program.get(path), 404, "QueueNotFound")["detail"] == "No queue is named “jobs”."
    site.create_queue("jobs")
    refused = problem(await program.get(path), 404, "QueueNotFound")
    assert refused["detail"] == "Another queue has the name “jobs” now; the queue that is meant was renamed or deleted."


async def test_the_list_holds_what_the_caller_sees_page_by_page(site: Store, granted, token) -> None:
    for name in ("a:1", "a:2", "a:3", "b:1"):
        site.create_queue(name).push(b"x", 5)
    theirs = Program(await in_thread(token, await in_thread(granted, Role.NONE, {"a:*": Role.VIEWER})))
    first = (await theirs.get("queues?limit=2")).json()
    assert [queue["queue"] for queue in first["queues"]] == ["a:1", "a:2"]
    assert (first["queues"][0]["ready"], first["queues"][0]["min_priority"]) == (1, 5)
    assert first["queues"][0]["verdict"]["level"] in ("ok", "unknown")
    rest = (await theirs.get(f"queues?after={first['next']}")).json()
    assert ([queue["queue"] for queue in rest["queues"]], rest["next"]) == (["a:3"], None)
    assert (await theirs.get("queues?prefix=b")).json()["queues"] == []


async def test_a_queue_is_paused_resumed_and_purged(program: Program, site: Store) -> None:
    jobs = site.create_queue("jobs")
    for n in range(3):
        jobs.push(b"x", n)
    until = (site.now() + timedelta(hours=1)).isoformat()
    assert (await program.post("queues/jobs/pause", json={"reason": "upgrade", "until": until})).status_code == 200
    assert (await program.get("queues/jobs")).json()["pause"]["reason"] == "upgrade"
    problem(
        await program.post("queues/jobs/pause", json={"reason": "x", "until": "2020-01-01T00:00:00Z"}),
        422,
        "TimePassed",
    )
    assert (await program.post("queues/jobs/resume")).status_code == 200
    problem(await program.post("queues/jobs/purge", json={"confirm": "job"}), 422, "ConfirmationMismatch")
    purged = (await program.post("queues/jobs/purge", json={"confirm": "jobs", "expected": 3})).json()
    assert (purged["items"], purged["finished"], jobs.depth()) == (3, True, 0)
    undone = await program.post(f"undo/{purged['trash_ids'][0]}")
    assert (undone.json()["items"], jobs.depth()) == (3, 3)


async def test_acts_with_a_key_are_done_once(program: Program, site: Store) -> None:
    key = {"Idempotency-Key": "k"}
    answers = [await program.post("queues", json={"name": "jobs"}, headers=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[1].headers["Idempotent-Replay"] == "true"
    assert answers[1].headers["Location"] == answers[0].headers["Location"]
    problem(await program.post("queues", json={"name": "other"}, headers=key), 422, "KeyReused")
    gone = [await program.delete("queues/jobs?confirm=jobs", headers={"Idempotency-Key": "d"}) for _ in range(2)]
    assert gone[0].json() == gone[1].json()


async def test_an_attached_queue_is_for_admins(program: Program, site: Store, granted, token) -> None:
    body = {"prefix": '("legacy", "jobs")', "kind": "fifo"}
    operator = Program(await in_thread(token, await in_thread(granted, Role.OPERATOR, {})))
    problem(await operator.post("queues/old/attach", json=body), 403, "Forbidden")
    assert (await program.post("queues/old/attach", json=body)).status_code == 201
    problem(await program.post("queues/older/attach", json=body), 409, "PrefixTaken")
    problem(await program.post("queues/older/attach", json={"prefix": "0xz"}), 422, "BadPrefix")
    problem(await program.post("queues/old/pause", json={"reason": "x"}), 409, "NotForAttached")
    site.queue("old").enqueue(b"a")
    purged = await program.post("queues/old/purge", json={"confirm": "old"})
    assert (purged.json()["items"], purged.json()["finished"]) == (1, True)
    assert (await program.post("queues/old/detach", json={"reason": "moved"})).status_code == 200
    problem(await program.get("queues/old"), 404, "QueueNotFound")


async def test_a_restricted_token_of_an_admin_attaches_no_subspace(program: Program, site: Store, token) -> None:
    restricted = Program(await in_thread(token, queues=["orders:*"]))
    body = {"prefix": '("legacy", "jobs")', "kind": "fifo"}
    problem(await restricted.post("queues/orders:x/attach", json=body), 403, "Forbidden")


async def test_a_pause_that_ends_in_the_year_10000_is_refused(program: Program, site: Store) -> None:
    site.create_queue("jobs")
    until = "9999-12-31T23:59:59-23:00"
    problem(await program.post("queues/jobs/pause", json={"reason": "r", "until": until}), 422, "BadTime")
    assert (await program.get("queues/jobs")).status_code == 200


async def test_only_an_admin_lifts_rules_of_redaction(program: Program, site: Store, granted, token) -> None:
    site.create_queue("jobs")
    operator = Program(await in_thread(token, await in_thread(granted, Role.OPERATOR, {})))
    assert (await operator.patch("queues/jobs", json={"redact": ["secret", "iban"]})).status_code == 200
    problem(await operator.patch("queues/jobs", json={"redact": ["secret"]}), 403, "Forbidden")
    problem(await operator.patch("queues/jobs", json={"redact": ["secret", "iban", "!iban"]}), 403, "Forbidden")
    assert (await program.patch("queues/jobs", json={"redact": []})).status_code == 200


async def test_rights_end_at_the_names_that_were_granted(site: Store, granted, token) -> None:
    site.create_queue("a:1")
    site.create_queue("b:1")
    theirs = Program(
        await in_thread(token, await in_thread(granted, Role.NONE, {"a:*": Role.OPERATOR, "b:1": Role.VIEWER}))
    )
    problem(await theirs.post("queues", json={"name": "c"}), 403, "Forbidden")
    problem(await theirs.post("queues/a:1/rename", json={"name": "c"}), 403, "Forbidden")
    problem(await theirs.post("queues/b:1/pause", json={"reason": "x"}), 403, "Forbidden")
    problem(await theirs.put("targets/a:*", json={"depth": 5}), 403, "Forbidden")
    assert (await theirs.post("queues", json={"name": "a:2"})).status_code == 201


async def test_targets_consumers_health_and_history_are_told(program: Program, site: Store) -> None:
    site.create_queue("jobs:a").push(b"x", 1)
    assert (await program.put("targets/jobs:*", json={"depth": 5})).json()["targets"] == {"depth": 5}
    limits = (await program.get("queues/jobs:a/targets")).json()["targets"]
    assert (limits["depth"]["limit"], limits["depth"]["from"], limits["depth"]["pattern"]) == (5, "pattern", "jobs:*")
    assert (await program.get("targets")).json()["patterns"] == [{"pattern": "jobs:*", "targets": {"depth": 5}}]
    problem(await program.put("targets/jobs:*", json={"depth": 6, "expect": {"depth": 4}}), 412, "SettingsChanged")
    changed = await program.put("targets/jobs:*", json={"depth": 6, "expect": {"depth": 5}})
    assert changed.json()["targets"] == {"depth": 6}
    assert (await program.delete("targets/jobs:*")).json()["targets"] == {}
    problem(await program.delete("targets/jobs:*"), 404, "PatternNotFound")
    assert (await program.get("queues/jobs:a/consumers")).json()["consumers"] is None
    health = (await program.get("queues/jobs:a/health")).json()
    assert health["verdict"]["level"]
    assert health["averages"] is None  # nothing was recorded
    recorder = site.recorder()
    recorder.look()
    recorder.flush()
    health = (await program.get("queues/jobs:a/health")).json()
    assert (len(health["averages"]["pushed"]), health["averages"]["taken"]) == (3, [0.0, 0.0, 0.0])
    history = (await program.get("queues/jobs:a/history?resolution=s")).json()
    assert (history["resolution"], len(history["points"])) == ("s", 1)
    problem(await program.get("queues/jobs:a/history?since=yesterday"), 422, "InvalidRequest")


async def test_a_token_without_the_verb_configures_nothing(site: Store, token: Callable[..., Any]) -> None:
    site.create_queue("jobs")
    theirs = Program(await in_thread(token, verbs=[Verb.READ, Verb.MANAGE]))
    problem(await theirs.post("queues/jobs/pause", json={"reason": "x"}), 403, "Forbidden")
    problem(await theirs.delete("queues/jobs?confirm=jobs"), 403, "Forbidden")
    trash_id = site.actions("ann").delete_queue("jobs", confirm="jobs")
    problem(await theirs.post(f"undo/{trash_id}"), 403, "Forbidden")


async def test_the_history_of_all_queues_is_for_callers_that_see_all(
    program: Program, site: Store, granted, token
) -> None:
    for name in ("a:1", "b:1"):
        site.create_queue(name).push(b"x", 1)
    record(site)
    found = (await program.get("history?resolution=s")).json()
    assert (found["resolution"], [point["ready"] for point in found["points"]]) == ("s", [2])
    theirs = Program(await in_thread(token, await in_thread(granted, Role.NONE, {"a:*": Role.VIEWER})))
    assert (await theirs.get("queues/a:1/history")).status_code == 200
    problem(await theirs.get("history"), 403, "Forbidden")


async def test_dead_items_are_counted_by_error_and_retried_by_it(program: Program, site: Store) -> None:
    jobs = site.create_queue("jobs")
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"x", n) for n in range(4)])
    reasons = ("Timeout: 1 s", "Timeout: 2 s", "KeyError: 'a'", '{"password": "hunter2"}')
    dead = [jobs.release(lease, reason=why) for lease, why in zip(jobs.lease_many(4), reasons, strict=True)]
    found = (await program.get("queues/jobs/errors")).json()
    assert (found["queue"], found["searched"], found["next"]) == ("jobs", 4, None)
    first = found["errors"][0]
    assert (first["error"], first["items"], first["sample"]) == ("Timeout: # s", 2, dead[1].id)
    assert first["first_died_at"] <= first["last_died_at"]
    assert {each["error"] for each in found["errors"][1:]} == {"KeyError: 'a'", '{"password": …}'}
    listed = (await program.get("queues/jobs/items", params={"state": "dead", "error": first["error"]})).json()
    assert {each["id"] for each in listed["items"]} == {dead[0].id, dead[1].id}
    problem(await program.get("queues/jobs/errors?cursor=x"), 422, "BadCursor")
