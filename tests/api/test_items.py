"""Items over HTTP: looked at by rules of redaction, changed only as they were seen, undone."""

import json
from typing import Any

import pytest

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Role
from queues import Actions, PriorityQueue, Store
from tests.api.conftest import Program, in_thread
from tests.api.test_verbs import problem

pytestmark = pytest.mark.django_db(transaction=True)


async def test_items_are_listed_page_by_page_and_searched(program: Program, jobs: PriorityQueue) -> None:
    for n in range(5):
        jobs.push(b'{"customer": {"id": "%d"}}' % n, n)
    first = (await program.get("queues/jobs/items?limit=3")).json()
    assert [item["priority"] for item in first["items"]] == [0, 1, 2]
    rest = (await program.get("queues/jobs/items", params={"cursor": first["next"]})).json()
    assert ([item["priority"] for item in rest["items"]], rest["next"]) == ([3, 4], None)
    found = (await program.get("queues/jobs/items?field=customer.id&match=3&exact=true")).json()["items"]
    assert [item["priority"] for item in found] == [3]
    for path in ("queues/jobs/items?match=3&exact=true", "search?q=3&exact=true"):
        assert "field" in problem(await program.get(path), 422, "BadValue")["detail"]
    exact = {"action": "delete", "query": {"match": "3", "exact": True}}
    problem(await program.post("queues/jobs/bulk", json=exact), 422, "BadValue")
    bounded = (await program.get("queues/jobs/items?low=1&high=3&end=max")).json()["items"]
    assert [item["priority"] for item in bounded] == [3, 2, 1]
    cut = (await program.get("queues/jobs/items?preview=3&limit=1")).json()["items"][0]
    assert (cut["truncated"], cut["value"], cut["size"]) == (True, '{"c', 25)
    problem(await program.get("queues/jobs/items?cursor=x"), 422, "BadCursor")
    problem(await program.get("queues/jobs/items?low=x"), 422, "BadPriority")


async def test_finished_items_are_told_of_with_hidden_parts_left_out(
    program: Program, site: Store, jobs: PriorityQueue
) -> None:
    settings = (await program.patch("queues/jobs", json={"keep_finished": 60, "redact": ["iban"]})).json()["settings"]
    assert settings["keep_finished"] == 60
    short = jobs.push(b'{"iban": "s3"}', 1)
    long = jobs.push(b'{"n": 1, "iban": "s3' + b"3" * 2000 + b'"}', 2)
    await program.post("queues/jobs/pop")
    jobs.ack(jobs.lease(worker="press"))
    popped = await program.get(f"queues/jobs/finished/{short.id}")
    acknowledged = await program.get(f"queues/jobs/finished/{long.id}")
    listed = await program.get("queues/jobs/finished")
    assert "s3" not in popped.text + acknowledged.text + listed.text
    (configured, *_) = site.audit.entries(queue="jobs").entries
    assert (popped.json()["state"], popped.json()["worker"]) == ("popped", configured.actor)
    told = acknowledged.json()
    assert (told["state"], told["worker"], told["truncated"]) == ("acknowledged", "press", True)
    assert told["pushed_at"] <= told["leased_at"] <= told["finished_at"]
    assert [item["id"] for item in listed.json()["items"]] == [long.id, short.id]
    problem(await program.get("queues/jobs/finished/" + "0" * 40), 404, "ItemNotFound")
    problem(await program.get(f"queues/jobs/items/{long.id}"), 404, "ItemNotFound")
    problem(await program.patch("queues/jobs", json={"keep_finished": -1}), 422, "BadSetting")


async def test_hidden_parts_are_revealed_only_with_a_record(
    program: Program, site: Store, jobs, granted, token
) -> None:
    site.actions("ann").configure("jobs", redact=("iban",))
    item = jobs.push(b'{"iban": "s3", "n": "' + b"x" * 2000 + b'"}', 1)
    for path in (
        f"queues/jobs/items/{item.id}",
        "queues/jobs/items",
        "queues/jobs/items?preview=90000",
        "queues/jobs/items?preview=12",
        "queues/jobs/items?match=iban",
        "queues/jobs/peek",
        "search?q=iban",
    ):
        answer = await program.get(path)
        assert answer.status_code == 200
        assert "s3" not in answer.text
    assert (await program.get("search?q=s3")).json()["hits"] == []
    assert (await program.get("queues/jobs/items?match=s3")).json()["items"] == []
    viewer = Program(await in_thread(token, await in_thread(granted, Role.VIEWER, {})))
    problem(await viewer.post(f"queues/jobs/items/{item.id}/reveal"), 403, "Forbidden")
    blind = Program(await in_thread(token, verbs=[Verb.MANAGE]))
    problem(await blind.post(f"queues/jobs/items/{item.id}/reveal"), 403, "Forbidden")
    whole = await program.post(f"queues/jobs/items/{item.id}/reveal", json={"reason": "a complaint"})
    assert "s3" in whole.json()["value"]
    (entry,) = site.audit.entries(item=item.id).entries
    assert (entry.verb, entry.reason) == ("reveal", "a complaint")


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ({"value": "new"}, ("new", 5)),
        ({"value_base64": "AA=="}, (None, 5)),
        ({"priority": 9}, ("old", 9)),
        ({"shift": -2}, ("old", 3)),
        ({"place": "back"}, ("old", 7)),
    ],
)
async def test_an_item_is_changed_as_it_was_seen_and_changed_back(
    program: Program, jobs: PriorityQueue, change: dict[str, Any], seen: tuple[Any, ...]
) -> None:
    item = jobs.push(b"old", 5)
    jobs.push(b"other", 7)
    path = f"queues/jobs/items/{item.id}"
    etag = {"If-Match": (await program.get(path)).headers["ETag"]}
    done = await program.patch(path, json=change, headers=etag)
    assert done.json()["items"] == 1, done.text
    now = (await program.get(path)).json()
    assert (now.get("value"), now["priority"]) == seen
    problem(await program.patch(path, json={"priority": 1}, headers=etag), 412, "ItemChanged")
    problem(await program.patch(path, json={"value": "again"}, headers=etag), 412, "ItemChanged")
    problem(await program.delete(path, headers=etag), 412, "ItemChanged")
    await program.post(f"undo/{done.json()['trash_id']}")
    assert (await program.get(path)).headers["ETag"] == etag["If-Match"]


@pytest.mark.parametrize("tag", ["", " ", '"zz", "yy"', '""', "a b"])
async def test_if_match_is_one_tag(program: Program, jobs: PriorityQueue, tag: str) -> None:
    item = jobs.push(b"old", 5)
    for method in ("PATCH", "DELETE"):
        body = {"value": "new"} if method == "PATCH" else None
        refused = await program.request(method, f"queues/jobs/items/{item.id}", json=body, headers={"If-Match": tag})
        problem(refused, 422, "InvalidRequest")
    assert jobs.peek_min().value == b"old"


@pytest.mark.parametrize(
    ("path", "body", "wrong"),
    [
        ("act", {"action": "delete", "delay": 60, "priority": 3}, "delay"),
        ("act", {"action": "move", "to": "jobs", "place": "front"}, "place"),
        ("act", {"action": "retry", "to": "jobs"}, "to"),
        ("bulk", {"action": "delete", "to": "jobs"}, "to"),
        ("bulk", {"action": "reprioritize", "priority": 1, "uncover": True}, "uncover"),
    ],
)
async def test_fields_of_another_action_are_refused(
    program: Program, jobs: PriorityQueue, path: str, body: dict[str, Any], wrong: str
) -> None:
    item = jobs.push(b"old", 5)
    sent = {**body, "ids": [item.id]} if path == "act" else body
    found = problem(await program.post(f"queues/jobs/{path}", json=sent), 422, "InvalidRequest")
    assert f"{wrong} is of another action" in found["detail"]
    empty = {"to": None, "priority": None, "uncover": False}  # as generated clients send
    done = await program.post("queues/jobs/act", json={"action": "delete", "ids": [item.id], **empty})
    assert done.json()["items"] == 1


async def test_a_patch_changes_one_thing(program: Program, jobs: PriorityQueue) -> None:
    item = jobs.push(b"old", 5)
    for body in ({}, {"value": "a", "priority": 1}, {"priority": None}, {"reason": "x"}, {"place": "top"}):
        problem(await program.patch(f"queues/jobs/items/{item.id}", json=body), 422, "InvalidRequest")
    assert [each.priority for each in jobs.peek_many(2)] == [5]


async def test_items_are_delayed_promoted_retried_released_and_deleted(program: Program, site: Store, jobs) -> None:
    site.actions("ann").configure("jobs", max_attempts=1)
    item = jobs.push(b"a", 5)
    path = f"queues/jobs/items/{item.id}"
    assert (await program.patch(path, json={"delay": 60})).json()["items"] == 1
    assert (await program.patch(path, json={"due_at": "2126-01-01T00:00:00Z"})).json()["items"] == 1
    assert (await program.get(path)).json()["due_at"].startswith("2126")
    assert (await program.post(f"{path}/promote")).json()["items"] == 1
    jobs.lease()
    assert (await program.post(f"{path}/release")).json()["items"] == 1
    assert (await program.get(path)).json()["state"] == "dead"
    problem(await program.post(f"{path}/promote"), 409, "WrongState")
    assert (await program.post(f"{path}/retry", json={"reason": "fixed"})).json()["items"] == 1
    gone = (await program.delete(path)).json()
    problem(await program.get(path), 404, "ItemNotFound")
    problem(await program.delete(path), 404, "ItemNotFound")
    back = (await program.post(f"undo/{gone['trash_id']}")).json()
    assert (back["item"], jobs.depth()) == (item.id, 1)
    problem(await program.post(f"undo/{gone['trash_id']}"), 409, "AlreadyRestored")
    problem(await program.post("undo/nonsense"), 404, "TrashNotFound")


async def test_items_move_where_the_caller_acts_and_nothing_hidden_is_uncovered(
    program: Program, site: Store, jobs: PriorityQueue, granted, token
) -> None:
    site.create_queue("mail")
    site.create_queue("hidden")
    site.actions("ann").configure("jobs", redact=("iban",))
    ids = [jobs.push(b"%d" % n, n).id for n in range(3)]
    move = f"queues/jobs/items/{ids[0]}/move"
    problem(await program.post(move, json={"to": "mail"}), 422, "Uncovers")
    theirs = Program(
        await in_thread(token, await in_thread(granted, Role.NONE, {"jobs": Role.OPERATOR, "mail": Role.VIEWER}))
    )
    problem(await theirs.post(move, json={"to": "mail", "uncover": True}), 403, "Forbidden")
    problem(await theirs.post(move, json={"to": "hidden", "uncover": True}), 404, "QueueNotFound")
    assert (await program.post(move, json={"to": "mail", "uncover": True})).json()["items"] == 1
    many = {"action": "move", "ids": ids[1:], "to": "mail", "uncover": True, "priority": 8}
    assert (await program.post("queues/jobs/act", json=many)).json()["items"] == 2
    assert [item.priority for item in site.queue("mail").peek_many(5)] == [0, 8, 8]
    problem(await program.post("queues/jobs/act", json=many), 404, "ItemNotFound")
    problem(await program.post("queues/jobs/act", json={**many, "to": "jobs"}), 422, "SameQueue")


async def test_several_items_are_acted_on_as_they_were_seen(program: Program, jobs: PriorityQueue) -> None:
    ids = [jobs.push(b"%d" % n, n).id for n in range(2)]
    etags = {each: (await program.get(f"queues/jobs/items/{each}")).headers["ETag"].strip('"') for each in ids}
    await program.patch(f"queues/jobs/items/{ids[0]}", json={"priority": 7})
    body = {"action": "delete", "ids": ids, "expect": etags}
    problem(await program.post("queues/jobs/act", json=body), 412, "ItemChanged")
    assert (await program.post("queues/jobs/act", json={**body, "skip_missing": True})).json()["items"] == 1
    assert [item.priority for item in jobs.peek_many(5)] == [7]


async def test_a_bulk_job_begins_on_what_was_seen_and_tells_its_progress(program: Program, site: Store, jobs) -> None:
    for n in range(40):
        jobs.push(b"red" if n % 2 else b"blue", n)
    preview = (await program.post("queues/jobs/bulk/preview", json={"match": "red"})).json()
    assert (preview["matched"], preview["ended"], len(preview["sample"])) == (20, True, 5)
    body = {"action": "delete", "query": {"match": "red"}}
    problem(await program.post("queues/jobs/bulk", json={**body, "expected": 40}), 409, "DepthChanged")
    begun = await program.post("queues/jobs/bulk", json={**body, "expected": 25})
    assert begun.status_code == 202, begun.text
    job = begun.json()["job"]
    assert begun.headers["Location"] == f"/api/v1/jobs/{job}"
    await in_thread(site.actions("ann").run_bulk, job)
    ended = (await program.get(f"jobs/{job}")).json()
    assert (ended["status"], ended["items"], jobs.depth()) == ("done", 20, 20)
    assert [each["job"] for each in (await program.get("jobs")).json()["jobs"]] == [job]
    assert (await program.delete(f"jobs/{job}")).json()["status"] == "done"
    problem(await program.post(f"jobs/{job}/resume"), 409, "JobEnded")
    undone = (await program.post(f"undo/{job}")).json()
    await in_thread(site.actions("ann").run_bulk, undone["job"]["job"])
    assert jobs.depth() == 40
    problem(await program.get("jobs/" + "0" * 40), 404, "JobNotFound")


async def test_the_audit_and_the_trash_tell_what_the_caller_may_see(
    program: Program, site: Store, jobs, granted, token
) -> None:
    site.create_queue("mail")
    ids = [jobs.push(b"x", n).id for n in range(2)]
    await program.delete(f"queues/jobs/items/{ids[0]}?reason=broken")
    await program.post(f"queues/jobs/items/{ids[1]}/move", json={"to": "mail"})
    trash = (await program.get("trash")).json()["entries"]
    assert [(entry["action"], entry["queue"], entry["to"]) for entry in trash] == [
        ("move", "jobs", "mail"),
        ("delete", "jobs", None),
    ]
    acts = (await program.get("audit?verb=delete")).json()["entries"]
    assert [(entry["reason"], entry["item"], entry["via"]) for entry in acts] == [("broken", ids[0], "api")]
    theirs = Program(await in_thread(token, await in_thread(granted, Role.NONE, {"jobs": Role.VIEWER})))
    assert [entry["to"] for entry in (await theirs.get("trash?action=move")).json()["entries"]] == [None]
    assert "mail" not in (await theirs.get("audit")).text
    problem(await theirs.get("audit?queue=mail"), 404, "QueueNotFound")
    problem(await theirs.post(f"undo/{trash[1]['id']}"), 403, "Forbidden")


async def test_a_search_goes_through_all_queues_step_by_step(program: Program, site: Store, granted, token) -> None:
    for name in ("a", "b", "c"):
        site.create_queue(name).push(b"needle in " + name.encode(), 1)
    first = (await program.get("search?q=NEEDLE&limit=2")).json()
    assert [hit["queue"] for hit in first["hits"]] == ["a", "b"]
    rest = (await program.get("search", params={"q": "needle", "cursor": first["next"]})).json()
    assert ([hit["queue"] for hit in rest["hits"]], rest["next"]) == (["c"], None)
    assert [hit["queue"] for hit in (await program.get("search?q=needle&queue=b*")).json()["hits"]] == ["b"]
    theirs = Program(await in_thread(token, await in_thread(granted, Role.NONE, {"c": Role.VIEWER})))
    assert [hit["queue"] for hit in (await theirs.get("search?q=needle")).json()["hits"]] == ["c"]
    problem(await program.get("search?cursor=e30="), 422, "BadCursor")


async def test_items_are_popped_as_by_a_person_into_the_trash(program: Program, site: Store, jobs) -> None:
    jobs.push_many([(b"a", 1), (b"b", 2), (b"c", 3)])
    key = {"Idempotency-Key": "k"}
    sent = {"end": "max", "n": 2, "keep": 60, "reason": "spam"}
    first, again = [await program.post("queues/jobs/act/pop", json=sent, headers=key) for _ in range(2)]
    assert first.json() == again.json()
    assert [(item["value"], item["priority"]) for item in first.json()["items"]] == [("c", 3), ("b", 2)]
    (entry,) = site.audit.entries(queue="jobs").entries
    assert (entry.verb, entry.count, entry.reason, entry.after) == ("pop_max", 2, "spam", {"kept_seconds": 60.0})
    await program.post(f"undo/{first.json()['items'][1]['trash_id']}")
    assert [item.value for item in jobs.peek_many(5)] == [b"a", b"b"]
    gone = (await program.post("queues/jobs/act/pop", json={"keep": 0})).json()["items"]
    assert [(item["value"], item["trash_id"]) for item in gone] == [("a", None)]
    problem(await program.post("queues/jobs/act/pop", json={"keep": 8 * 86_400}), 422, "BadTime")
    problem(await program.post("queues/jobs/act/pop", json={"n": 0}), 422, "InvalidRequest")
    body = {"action": "promote", "ids": ["x"], "keep": 5}
    problem(await program.post("queues/jobs/act", json=body), 422, "InvalidRequest")
    assert jobs.depth() == 1


async def test_jobs_that_run_are_told_to_those_that_see_their_queues(
    program: Program, site: Store, jobs, granted, token
) -> None:
    jobs.push(b"x", 1)
    site.create_queue("mail").push(b"y", 1)
    begun = [site.actions("ann").begin_bulk("delete", name, rate=1).id for name in ("jobs", "mail")]
    assert [job["job"] for job in (await program.get("jobs?running=true")).json()["jobs"]] == begun
    theirs = Program(await in_thread(token, await in_thread(granted, Role.NONE, {"jobs": Role.VIEWER})))
    assert [job["job"] for job in (await theirs.get("jobs?running=true")).json()["jobs"]] == begun[:1]
    site.actions("ann").cancel_bulk(begun[0])
    assert (await theirs.get("jobs?running=true")).json() == {"jobs": [], "next": None}


async def test_a_bulk_job_that_the_same_request_began_meanwhile_is_told(
    program: Program, site: Store, jobs: PriorityQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.push_many([(b'"red"', n) for n in range(20)])
    body = {"action": "delete", "query": {"match": "red"}, "expected": 20}
    key = {"Idempotency-Key": "again"}
    begun = (await program.post("queues/jobs/bulk", json=body, headers=key)).json()
    await in_thread(site.actions("ann").run_bulk, begun["job"])
    look, looks = Actions.refuse_repeated, list[Actions]()

    def late(actions: Actions) -> None:
        """Look for the first answer, which is not there yet at the first look."""
        looks.append(actions)
        if len(looks) > 1:
            look(actions)

    monkeypatch.setattr(Actions, "refuse_repeated", late)
    again = await program.post("queues/jobs/bulk", json=body, headers=key)
    assert (again.status_code, again.json()["job"]) == (202, begun["job"])


async def test_a_queue_is_looked_at_again_when_it_changed(program: Program, site: Store, jobs) -> None:
    jobs.configure(redact=("card",))
    jobs.push(b'{"card": "4711"}', 1)
    first = (await program.get("queues/jobs/look")).json()
    assert (first["traffic"]["push"], first["whole"], len(first["items"])) == (1, True, 1)
    assert "4711" not in json.dumps(first)
    same = (await program.get("queues/jobs/look", params={"change": first["change"]})).json()
    assert (same["change"], same["items"]) == (first["change"], None)
    jobs.pop_min()
    now = (await program.get("queues/jobs/look", params={"change": first["change"]})).json()
    assert (now["items"], now["traffic"]["pop"]) == ([], 1)
