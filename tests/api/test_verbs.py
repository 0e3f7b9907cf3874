"""Push, pop, peek, lease and settling over HTTP: what programs send and get, on each engine."""

import asyncio
import base64
import gc
import gzip
import json
import logging
import threading
import warnings
from io import BytesIO
from typing import Any

import httpx
import pytest

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Role
from pqadmin.api import long_polls, problems, values
from pqadmin.api.handler import ApiHandler
from pqadmin.api.verbs import take as takes
from pqadmin.limits.body_size import BODY
from queues import Store
from queues.errors import ERRORS
from tests.api.conftest import Browser, Program, in_thread, in_wait

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 60.0


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Check that an answer is this problem and return its members."""
    found: dict[str, Any] = answer.json()
    assert (answer.status_code, found["code"]) == (status, code), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert found["status"] == status
    assert found["type"] == f"/api/v1/problems/{problems.slug_of(code)}"
    assert found["title"]
    assert found["detail"]
    return found


async def test_items_are_pushed_as_text_base64_or_json_and_popped_from_both_ends(program: Program, jobs) -> None:
    one = await program.post("queues/jobs/items", json={"value": "a", "priority": 5})
    assert one.status_code == 201
    (item,) = one.json()["items"]
    assert (item["priority"], item["state"]) == (5, "ready")
    assert "value" not in item
    many = [
        {"value_base64": base64.b64encode(b"\xff\x00").decode(), "priority": 7},
        {"value_json": {"b": [1, None]}, "priority": 2**70},
    ]
    both = await program.post("queues/jobs/items?return=value", json={"items": many})
    assert [each.get("value") for each in both.json()["items"]] == [None, '{"b":[1,null]}']
    popped = (await program.post("queues/jobs/pop?end=max")).json()["items"]
    assert [(each["priority"], each["value"]) for each in popped] == [(2**70, '{"b":[1,null]}')]
    rest = (await program.post("queues/jobs/pop?n=10")).json()["items"]
    assert [(each["priority"], each.get("value"), each.get("value_base64")) for each in rest] == [
        (5, "a", None),
        (7, None, "/wA="),
    ]
    assert (await program.post("queues/jobs/pop")).json() == {"items": []}


async def test_a_push_of_many_that_is_refused_tells_which_item_is_at_fault(
    program: Program, site: Store, jobs, line
) -> None:
    site.create_queue("texts", codec="text")
    good, hour = {"value": "a", "priority": 1}, {"value": "a", "delay": 3_600}
    for key in ({}, {"Idempotency-Key": "k"}):
        for queue, items, code, index in [
            ("jobs", [good, good, {"value": "b", "priority": 1.5}], "BadPriority", 2),
            ("jobs", [good, {"value": "b"}], "BadPriority", 1),
            ("line", [hour, {"value": "b", "priority": 1}], "WrongKind", 1),
            ("texts", [good, {"value_base64": "/w==", "priority": 1}], "BadValue", 1),
            ("line", [hour, {"value": "b"}, {"value": "c" * 3_000_000}], "ValueTooLarge", 2),
        ]:
            answer = await program.post(f"queues/{queue}/items", json={"items": items}, headers=key)
            refused = problem(answer, 413 if code == "ValueTooLarge" else 422 if code != "WrongKind" else 409, code)
            assert refused["index"] == index
            assert f"index {index}:" in refused["detail"]
    items = [good, {"value_base64": "?", "priority": 1}]
    told = problem(await program.post("queues/jobs/items", json={"items": items}), 422, "InvalidRequest")
    assert told["errors"][0]["field"] == "items.1.value_base64"
    assert (jobs.depth(), line.depth(), line.depth("delayed")) == (0, 0, 0)


async def test_a_worker_that_is_no_line_of_text_is_refused(program: Program, jobs) -> None:
    jobs.push(b"a", 1)
    problem(await program.post("queues/jobs/lease?worker=a%0Ab"), 422, "BadText")
    problem(await program.post("queues/jobs/lease?worker=%FF"), 400, "BadRequest")
    assert jobs.depth() == 1


async def test_one_value_travels_raw_with_the_rest_in_headers(program: Program, site: Store) -> None:
    site.create_queue("names", priority_type="str")
    pushed = await program.post(
        "queues/names/items",
        content=b"\x00raw",
        headers={"Content-Type": "application/octet-stream", "PQ-Priority": "%C3%A9 a"},
    )
    assert pushed.json()["items"][0]["priority"] == "é a"
    raw = {"Accept": "application/octet-stream"}
    got = await program.post("queues/names/pop", headers=raw)
    assert (got.content, got.headers["PQ-Id"]) == (b"\x00raw", pushed.json()["items"][0]["id"])
    assert got.headers["PQ-Priority"] == "%C3%A9%20a"
    assert (await program.post("queues/names/pop", headers=raw)).status_code == 204
    problem(await program.post("queues/names/pop?n=2", headers=raw), 422, "InvalidRequest")
    problem(await program.post("queues/names/pop", headers={"Accept": "image/png"}), 406, "NotAcceptable")
    for no_text in (b"%FF", "é".encode()):  # curl sends a header in UTF-8, fetch in Latin-1
        headers = {"Content-Type": b"application/octet-stream", "PQ-Priority": no_text}
        problem(await program.post("queues/names/items", content=b"x", headers=headers), 400, "BadRequest")


@pytest.mark.parametrize(
    ("charset", "status"),
    [("UTF-8", 201), ("utf8", 201), ('"us-ascii"', 201), ("iso-8859-1", 415), ("utf-16", 415), ("nonsense", 415)],
)
async def test_plain_text_in_another_charset_is_not_stored_as_if_it_were_utf_8(
    program: Program, jobs, charset: str, status: int
) -> None:
    headers = {"Content-Type": f"text/plain; charset={charset}", "PQ-Priority": "1"}
    answer = await program.post("queues/jobs/items", content=b"a", headers=headers)
    assert (answer.status_code, jobs.depth()) == (status, status == 201)
    if status != 201:
        assert charset in problem(answer, 415, "UnsupportedMediaType")["detail"]


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "application/json"),
        ("APPLICATION/JSON", "application/json"),
        ("application/*", "application/json"),
        ("text/html, */*;q=0.1", "application/json"),
        ("application/json; charset=utf-8", "application/json"),
        ("Text/Plain", "text/plain; charset=utf-8"),
        ("text/plain; charset=utf-8", "text/plain; charset=utf-8"),
        ("text/plain, application/json;q=0.5", "text/plain; charset=utf-8"),
        ("application/octet-stream, */*;q=0.1", "application/octet-stream"),
    ],
)
async def test_an_answer_is_of_the_type_that_is_preferred(program: Program, jobs, accept: str, form: str) -> None:
    jobs.push(b"a", 1)
    answer = await program.post("queues/jobs/pop", headers={"Accept": accept})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, form)


@pytest.mark.parametrize("header", ["PQ-Priority", "PQ-Delay", "PQ-Due"])
@pytest.mark.parametrize("form", ["application/json", "application/x-ndjson", "text/csv"])
async def test_headers_of_raw_values_are_refused_elsewhere(program: Program, jobs, form: str, header: str) -> None:
    content = b'{"value": "a", "priority": 1}'
    sent = {"Content-Type": form, header: "5"}
    found = problem(await program.post("queues/jobs/items", content=content, headers=sent), 422, "InvalidRequest")
    assert found["errors"][0]["field"] == header
    assert jobs.depth() == 0


async def test_compressed_bodies_are_refused(program: Program, jobs) -> None:
    sent = {"Content-Type": "text/plain", "PQ-Priority": "1", "Content-Encoding": "gzip"}
    refused = await program.post("queues/jobs/items", content=gzip.compress(b"a"), headers=sent)
    assert "compressed" in problem(refused, 415, "UnsupportedMediaType")["detail"]
    assert refused.headers["Accept-Encoding"] == "identity"
    plain = await program.post("queues/jobs/items", content=b"a", headers={**sent, "Content-Encoding": "identity"})
    assert plain.status_code == 201


async def test_large_bodies_are_parsed_beside_the_event_loop(
    program: Program, jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, real = list[bool](), values.arrival

    def arrival(*given: Any) -> Any:
        seen.append(threading.current_thread() is threading.main_thread())
        return real(*given)

    monkeypatch.setattr(values, "arrival", arrival)
    for size in (10, 70_000):
        await program.post("queues/jobs/items", json={"value": "x" * size, "priority": 1})
    assert seen == [True, False]
    assert jobs.depth() == 2


async def test_values_of_codecs_are_json_and_what_does_not_decode_is_refused(program: Program, site: Store) -> None:
    queue = site.create_queue("packed", codec="msgpack", kind="fifo")
    await program.post("queues/packed/items", json={"value_json": {"n": 1}})
    (item,) = queue.peek_many(1)
    assert item.value == {"n": 1}
    (seen,) = (await program.get("queues/packed/peek")).json()["items"]
    assert seen["value_json"] == {"n": 1}
    problem(await program.post("queues/packed/items", json={"value": "no msgpack"}), 422, "BadValue")
    assert queue.depth() == 1


@pytest.mark.parametrize("deep", [201, 955, 960, 965, 40_000])
async def test_a_value_that_is_nested_too_deeply_hinders_no_other(program: Program, site: Store, deep: int) -> None:
    site.create_queue("docs", codec="json")
    text = "[" * deep + "]" * deep
    plain = {"Content-Type": "text/plain", "PQ-Priority": "1"}
    refused = problem(await program.post("queues/docs/items", content=text, headers=plain), 422, "BadValue")
    assert refused["most"] == 200
    line = json.dumps({"value": text, "priority": 1}) + "\n" + json.dumps({"value": "[1]", "priority": 2})
    sent = {"Content-Type": "application/x-ndjson"}
    done = (await program.post("queues/docs/items", content=line, headers=sent)).json()
    assert (done["items"], done["bad"]) == (1, 1)
    # A store may hold one: by a move, or from an earlier release.
    site.actions("ann").configure("docs", redact=("iban",))
    item = site.create_queue("old").push(text.encode(), 1)
    site.actions("ann").move_items("old", [item.id], to="docs")
    for path in ("peek?n=2", "items", f"items/{item.id}", "items?field=iban&match=1", "items/export", "items?match=]"):
        assert (await program.get(f"queues/docs/{path}")).status_code == 200, path
    assert (await program.get("search?q=]&field=a")).status_code == 200
    held = (await program.post("queues/docs/lease")).json()["items"][0]
    assert (held["value"], "value_json" in held) == (text, False)
    given = await program.post("queues/docs/release?return=value", json={"leases": [held["lease"]]})
    assert given.json()["results"][0]["item"]["value"] == text
    taken = (await program.post("queues/docs/pop?n=5")).json()["items"]
    assert [each["value"] for each in taken] == [text, "[1]"]


async def test_values_that_json_does_not_have_are_given_as_bytes_alone(program: Program, site: Store) -> None:
    queue = site.create_queue("packed", codec="msgpack", kind="fifo")
    queue.enqueue_many([[float("nan")], {"a": float("inf")}, {1: 2, "1": 3}, {"n": [None, {1: "null"}]}])
    taken = (await program.post("queues/packed/pop?n=4")).json()["items"]
    assert [each.get("value_json", "none") for each in taken] == ["none"] * 3 + [{"n": [None, {"1": "null"}]}]
    assert all(each["value_base64"] for each in taken)


async def test_delayed_items_wait_and_a_fifo_queue_takes_different_times_at_once(program: Program, line) -> None:
    many = [{"value": "a", "delay": 60}, {"value": "b"}, {"value": "c", "due_at": "2126-01-01T00:00:00Z"}]
    pushed = (await program.post("queues/line/items", json={"items": many})).json()["items"]
    assert [item["state"] for item in pushed] == ["delayed", "ready", "delayed"]
    assert pushed[2]["due_at"] == "2126-01-01T00:00:00.000+00:00"
    assert (line.depth("delayed"), line.depth()) == (2, 1)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"value": "a"},
        {"value": "a", "priority": "5"},
        {"value": "a", "priority": True},
        {"value": "a", "value_json": 1, "priority": 5},
        {"value": None, "priority": 5},
        {"value": "a", "priority": 5, "colour": "red"},
        {"value": "a", "priority": 5, "delay": -1},
        {"value": "a", "priority": 5, "due_at": 1700000000},
        {"value": "a", "priority": 5, "due_at": "2026-01-01T00:00:00"},
        {"value": "a", "priority": 5, "due_at": "2126-01-01T00:00:00Z", "delay": 1},
        {"value_base64": "?", "priority": 5},
        {"items": []},
        {"items": [{"value": "a", "priority": 5}, {"value": "b"}]},
        [1],
    ],
)
async def test_a_push_that_is_wrong_anywhere_pushes_nothing(program: Program, jobs, body: Any) -> None:
    answer = await program.post("queues/jobs/items", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] in ("InvalidRequest", "BadPriority", "BadValue")
    assert jobs.depth() == 0


@pytest.mark.parametrize(
    ("path", "body", "field", "message"),
    [
        ("ack", {"leases": []}, "leases", "should have at least 1, not 0"),
        ("ack", {"leases": ["a"], "prio": 1}, "prio", "is not known here"),
        ("ack", {}, "leases", "is needed"),
        ("ack", [], "", "should be an object"),
        ("release", {"leases": ["a"], "delay": -1}, "delay", "should be at least 0"),
        ("items", {"value": "a", "prio": 1}, "prio", "is not known here"),
        ("items", {"value": 1, "priority": 1}, "value", "should be text"),
        ("items", [], "", "should be an object"),
        ("items", {"value": "a", "priority": True}, "priority", "should be a number or text"),
        ("act", {"action": "move", "ids": ["a"]}, "", "to is needed: the name of the other queue"),
        ("bulk", {"action": "move"}, "", "to is needed: the name of the other queue"),
        (
            "items",
            {"items": [{"priority": 1}]},
            "items.0",
            "exactly one of value, value_base64 and value_json is needed",
        ),
        ("pop?n=x", None, "n", "should be a whole number"),
        ("pop?n=1&n=2", None, "n", "is given twice"),
        ("release?return=all", {"leases": ["a"]}, "return", "should be 'value'"),
    ],
)
async def test_what_is_wrong_is_told_in_plain_words(
    program: Program, jobs, path: str, body: Any, field: str, message: str
) -> None:
    found = problem(await program.post(f"queues/jobs/{path}", json=body), 422, "InvalidRequest")
    place = "query" if "?" in path else "body"
    assert found["errors"] == [{"in": place, "field": field, "message": message}]
    assert found["detail"] == f"The request is not valid. {field or place}: {message}."


@pytest.mark.parametrize("more", [{}, {"delay": 1}])
@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "k"}])
async def test_a_missing_priority_of_one_item_is_asked_for(program: Program, jobs, more: dict, key: dict) -> None:
    answer = await program.post("queues/jobs/items", json={"value": "a", **more}, headers=key)
    found = problem(answer, 422, "BadPriority")
    assert found["detail"] == "A priority is needed: a whole number."
    assert "index" not in found


async def test_a_body_that_is_nested_too_deeply_is_not_called_no_json(program: Program, jobs) -> None:
    deep = b'{"value_json": ' + b"[" * 300 + b"]" * 300 + b', "priority": 1}'
    answer = await program.post("queues/jobs/items", content=deep, headers={"Content-Type": "application/json"})
    assert problem(answer, 400, "BadRequest")["detail"] == "The body is nested too deeply."


@pytest.mark.parametrize("path", ["pop?wiat=1", "pop?n=1&wiat=1&_=2", "ack?x", "lease?wait=1&Wait=2"])
async def test_an_unknown_query_parameter_is_refused(program: Program, jobs, path: str) -> None:
    jobs.push(b"a", 1)
    found = problem(await program.post(f"queues/jobs/{path}", json={"leases": ["a"]}), 422, "InvalidRequest")
    assert found["errors"][0]["in"] == "query"
    assert "is not known here" in found["detail"]
    assert ("wiat: is not known here; did you mean wait?" in found["detail"]) == ("wiat" in path)
    assert jobs.depth() == 1
    assert (await Program(None).post(f"queues/jobs/{path}")).status_code == 401


@pytest.mark.parametrize("path", ["pop", "lease?n=1"])
async def test_parameters_in_the_body_of_an_address_that_takes_none_are_refused(program: Program, jobs, path) -> None:
    jobs.push(b"a", 1)
    found = problem(await program.post(f"queues/jobs/{path}", json={"seconds": 300}), 422, "InvalidRequest")
    message = "is not taken here: the parameters of this address are in its query"
    assert found["errors"] == [{"in": "body", "field": "", "message": message}]
    assert jobs.depth() == 1
    assert (await program.post(f"queues/jobs/{path}", json={})).status_code == 200
    assert (await program.post(f"queues/jobs/{path}", content="null")).status_code == 200


@pytest.mark.parametrize(
    ("body", "twice"),
    [
        ('{"value": "a", "priority": 1, "priority" : 2}', "priority"),
        ('{"items": [{"value": "a", "value": "b", "priority": 1}]}', "value"),
        ('{"value_json": {"a": [{"b": 1, "b": 2}]}, "priority": 1}', "b"),
        ('{"value": "\\"a\\": \\\\", "priority": 1}', ""),
        ('{"value": "\\\\\\\\", "value_json": 1, "value_json": 2, "priority": 1}', "value_json"),
        ('{"value_json": {"\\\\": {"\\"": 1, "": "\\":"}}, "priority": 1}', ""),
    ],
)
async def test_a_name_twice_in_one_object_is_refused(program: Program, jobs, body: str, twice: str) -> None:
    answer = await program.post("queues/jobs/items", content=body, headers={"Content-Type": "application/json"})
    if twice:
        told = f'The body cannot be read: the name "{twice}" is given twice in one object.'
        assert problem(answer, 400, "BadRequest")["detail"] == told
    else:
        assert answer.status_code == 201, answer.text
    assert jobs.depth() == (0 if twice else 1)


async def test_bodies_that_cannot_be_read_are_refused(program: Program, jobs) -> None:
    post = program.post
    json_type = {"Content-Type": "application/json"}
    problem(await post("queues/jobs/items", content=b"{", headers=json_type), 400, "BadRequest")
    problem(await post("queues/jobs/items", content=b'{"value":"\\ud800"}', headers=json_type), 400, "BadRequest")
    problem(await post("queues/jobs/items", content=b"[NaN]", headers=json_type), 400, "BadRequest")
    problem(await post("queues/jobs/items", data={"value": "a"}), 415, "UnsupportedMediaType")
    problem(await post("queues/jobs/items", files={"value": b"a"}), 415, "UnsupportedMediaType")
    large = json.dumps({"value": "x" * 10_000_001, "priority": 1}).encode()
    assert problem(await post("queues/jobs/items", content=large, headers=json_type), 413, "BodyTooLarge")["most"]
    too_long = json.dumps({"value": "x" * 90_001, "priority": 1}).encode()
    found = problem(await post("queues/jobs/items", content=too_long, headers=json_type), 413, "ValueTooLarge")
    assert found["most"] == 90_000
    assert jobs.depth() == 0


async def test_the_limits_of_a_queue_are_told_with_the_refusal(program: Program, jobs) -> None:
    await in_thread(jobs.configure, max_depth=1, max_value=3)
    long, first, second = ({"value": value, "priority": 1} for value in ("long", "a", "b"))
    found = problem(await program.post("queues/jobs/items", json=long), 413, "ValueTooLarge")
    assert found["most"] == 3
    assert (await program.post("queues/jobs/items", json=first)).status_code == 201
    found = problem(await program.post("queues/jobs/items", json=second), 409, "QueueFull")
    assert found["most"] == 1


async def test_errors_of_the_core_are_problems_and_hidden_queues_are_not_there(
    site: Store, granted, token, program: Program, jobs
) -> None:
    near = problem(await program.post("queues/jobz/pop"), 404, "QueueNotFound")
    assert near["suggestions"] == ["jobs"]
    site.actions("ann").pause("jobs", reason="upgrade")
    assert "upgrade" in problem(await program.post("queues/jobs/pop"), 409, "QueuePaused")["detail"]
    site.create_queue("jobz-of-mail")
    mail = await in_thread(granted, Role.NONE, {"jobz-*": Role.OPERATOR})
    theirs = Program(await in_thread(token, mail))
    hidden = problem(await theirs.post("queues/jobs/pop"), 404, "QueueNotFound")
    missing = problem(await theirs.post("queues/joby/pop"), 404, "QueueNotFound")
    assert hidden["detail"].replace("jobs", "joby") == missing["detail"]
    assert problem(await theirs.post("queues/jobz-of-mai/pop"), 404, "QueueNotFound")["suggestions"] == ["jobz-of-mail"]


async def test_a_token_does_what_its_verbs_allow(site: Store, token, jobs) -> None:
    pusher = Program(await in_thread(token, verbs=[Verb.PUSH]))
    assert (await pusher.post("queues/jobs/items", json={"value": "a", "priority": 1})).status_code == 201
    problem(await pusher.post("queues/jobs/pop"), 403, "Forbidden")
    problem(await pusher.get("queues/jobs/peek"), 403, "Forbidden")
    anonymous = await Program(None).post("queues/jobs/pop")
    problem(anonymous, 401, "Unauthenticated")
    assert anonymous.headers["WWW-Authenticate"].startswith("Bearer")
    assert jobs.depth() == 1


async def test_values_that_are_looked_at_are_redacted_and_those_that_are_taken_are_whole(
    program: Program, site: Store, jobs
) -> None:
    site.actions("ann").configure("jobs", redact=("secret",))
    await program.post("queues/jobs/items", json={"value_json": {"secret": "s3", "n": 1}, "priority": 1})
    (seen,) = (await program.get("queues/jobs/peek")).json()["items"]
    assert "s3" not in json.dumps(seen)
    assert "redacted" in seen["value_redacted"]
    (taken,) = (await program.post("queues/jobs/pop")).json()["items"]
    assert "s3" in taken["value"]


async def test_leases_are_acknowledged_released_and_extended_each_with_its_result(program: Program, jobs) -> None:
    await program.post("queues/jobs/items", json={"items": [{"value": str(n), "priority": n} for n in range(4)]})
    held = (await program.post("queues/jobs/lease?n=4&seconds=60&worker=w1")).json()["items"]
    assert {each["worker"] for each in held} == {"w1"}
    tokens = [each["lease"] for each in held]
    longer = (await program.post("queues/jobs/extend", json={"leases": tokens[:1], "seconds": 600})).json()["results"]
    assert longer[0]["done"]
    assert longer[0]["expires_at"] > held[0]["expires_at"]
    done = await program.post("queues/jobs/ack", json={"leases": tokens[:2]})
    assert done.json() == {"results": [{"lease": each, "done": True} for each in tokens[:2]]}
    back = await program.post("queues/jobs/release", json={"leases": tokens[2:], "delay": 60, "reason": "busy"})
    assert [each["item"]["state"] for each in back.json()["results"]] == ["delayed", "delayed"]
    assert (jobs.depth("leased"), jobs.depth("delayed"), jobs.depth()) == (0, 2, 0)
    late = (await program.post("queues/jobs/release", json={"leases": tokens[2:]})).json()["results"]
    assert [(each["done"], each["problem"]["code"]) for each in late] == [(False, "StaleLease")] * 2
    stale = (await program.post("queues/jobs/ack", json={"leases": tokens[2:3]})).json()["results"]
    assert stale[0]["problem"]["code"] == "StaleLease"
    strict = (await program.post("queues/jobs/ack", json={"leases": tokens[:1], "must_hold": True})).json()["results"]
    assert strict[0]["problem"]["status"] == 409
    problem(await program.post("queues/jobs/ack", json={"leases": ["nonsense"]}), 422, "BadToken")


@pytest.mark.parametrize(
    ("verb", "more"), [("ack", {}), ("ack", {"must_hold": True}), ("release", {}), ("extend", {"seconds": 500})]
)
async def test_a_token_that_is_none_among_leases_settles_none_of_them(program: Program, jobs, verb, more) -> None:
    jobs.push(b"a", 1)
    held = jobs.lease(seconds=60)
    body = {"leases": [held.token, "nonsense"], **more}
    problem(await program.post(f"queues/jobs/{verb}", json=body), 422, "BadToken")
    assert [lease.expires_at for lease in jobs.leased().items] == [held.expires_at]


@pytest.mark.parametrize(
    ("path", "other_path", "body"),
    [
        ("items", "items?return=value", {"value": "new", "priority": 9}),
        ("pop?n=2", "pop?n=3", None),
        ("lease?n=2", "lease?n=3", None),
    ],
)
async def test_a_request_with_a_key_is_executed_once_and_answered_the_same(
    program: Program, site: Store, jobs, path: str, other_path: str, body: Any
) -> None:
    for n in range(4):
        jobs.push(str(n).encode(), n)
    key = {"Idempotency-Key": "k1"}
    first = await program.post(f"queues/jobs/{path}", json=body, headers=key)
    depth = jobs.depth()
    second = await program.post(f"queues/jobs/{path}", json=body, headers=key)
    assert (second.status_code, second.json()) == (first.status_code, first.json())
    assert ("Idempotent-Replay" in first.headers, second.headers["Idempotent-Replay"]) == (False, "true")
    assert jobs.depth() == depth
    other = await program.post(f"queues/jobs/{other_path}", json=body, headers=key)
    problem(other, 422, "KeyReused")
    problem(await program.post("queues/jobs/pop", headers={"Idempotency-Key": "k" * 201}), 422, "InvalidRequest")
    assert jobs.depth() == depth


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("items", {"value": "new", "priority": 9}),
        ("items/chunk", {"items": [{"value": "new", "priority": 9}], "source": "a", "last_line": 1}),
        ("pop", None),
        ("act/pop", None),
        ("purge", {"confirm": "jobs"}),
        ("pause", {"reason": "repair"}),
    ],
)
async def test_a_key_is_of_the_queue_that_had_the_name(
    program: Program, site: Store, jobs, path: str, body: Any
) -> None:
    jobs.push(b"a", 1)
    key = {"Idempotency-Key": "k1"}
    first = await program.post(f"queues/jobs/{path}", json=body, headers=key)
    assert first.is_success
    site.rename_queue("jobs", "old")
    problem(await program.post(f"queues/jobs/{path}", json=body, headers=key), 404, "QueueNotFound")
    if "confirm" not in (body or {}):  # its body names the queue too
        again = await program.post(f"queues/old/{path}", json=body, headers=key)
        assert (again.json(), again.headers["Idempotent-Replay"]) == (first.json(), "true")
    there = site.create_queue("jobs")
    there.push(b"b", 1)
    problem(await program.post(f"queues/jobs/{path}", json=body, headers=key), 422, "KeyReused")
    assert (there.depth(), there.pause_state) == (1, None)


async def test_a_queue_is_made_renamed_and_deleted_once_under_keys(program: Program, site: Store) -> None:
    async def twice(method: str, path: str, **sent: Any) -> None:
        first, again = [
            await program.request(method, path, headers={"Idempotency-Key": f"{method} {path}"}, **sent)
            for _ in range(2)
        ]
        assert (again.json(), again.headers["Idempotent-Replay"]) == (first.json(), "true"), first.text

    await twice("POST", "queues", json={"name": "a"})
    await twice("POST", "queues/a/rename", json={"name": "b"})
    await twice("DELETE", "queues/b?confirm=b")
    assert site.directory() == {}


async def test_leases_are_settled_once_under_a_key(program: Program, jobs) -> None:
    for n in range(3):
        jobs.push(str(n).encode(), n)
    tokens = [lease.token for lease in jobs.lease_many(3)]
    bodies = {"ack": {"must_hold": True}, "release": {"reason": "busy"}, "extend": {"seconds": 5}}
    for (verb, more), lease in zip(bodies.items(), tokens, strict=True):
        body = {"leases": [lease], **more}
        answers = [
            (await program.post(f"queues/jobs/{verb}", json=body, headers={"Idempotency-Key": verb})).json()
            for _ in range(2)
        ]
        assert answers[0] == answers[1]
        assert answers[0]["results"][0]["done"] is True
    assert (jobs.depth("leased"), jobs.depth()) == (1, 1)


async def test_a_pop_with_a_key_that_found_nothing_is_not_kept(program: Program, jobs) -> None:
    key = {"Idempotency-Key": "k1"}
    assert (await program.post("queues/jobs/pop", headers=key)).json() == {"items": []}
    jobs.push(b"a", 1)
    assert len((await program.post("queues/jobs/pop", headers=key)).json()["items"]) == 1


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k1"}])
async def test_a_request_waits_for_an_item_and_gets_it(program: Program, jobs, headers: dict[str, str]) -> None:
    waiting = asyncio.create_task(program.post("queues/jobs/pop?wait=60", headers=headers, timeout=PATIENCE))
    await in_wait(jobs)
    await program.post("queues/jobs/items", json={"value": "a", "priority": 1})
    assert [item["value"] for item in (await waiting).json()["items"]] == ["a"]
    nothing = await program.post("queues/jobs/lease?wait=0.01")
    assert nothing.json() == {"items": []}
    problem(await program.post("queues/jobs/pop?wait=61"), 422, "InvalidRequest")


async def test_a_session_looks_for_items_on_a_read_only_site(site, person, settings) -> None:
    settings.PQADMIN_ARM_MINUTES = 15
    await in_thread(site.create_queue, "arn")
    user = await in_thread(person, Role.OPERATOR, "ann")
    async with await in_thread(Browser, user) as browser:
        problem(await browser.post("queues/arn/pop"), 403, "NotArmed")
        arn = {"queue": "arn", "id": site.queue("arn").id}
        assert (await browser.get("outlook?queue=arn")).json() == {"queues": [{**arn, "ready": 0}]}
        waiting = asyncio.create_task(browser.get("outlook?queue=arn&wait=60"))
        await in_wait(site.queue("arn"))
        await in_thread(lambda: site.queue("arn").push(b"x", 1))
        async with asyncio.timeout(PATIENCE):
            assert (await waiting).json() == {"queues": [{**arn, "ready": 1}]}
        problem(await browser.get(f"outlook?queue=arn&queue=b&id={arn['id']}"), 422, "InvalidRequest")


@pytest.mark.parametrize("path", ["POST queues/arn/pop?wait=60", "GET outlook?queue=arn&wait=60"])
async def test_a_poll_tells_no_name_that_its_queue_got_meanwhile(
    program: Program, site: Store, granted, token, path: str
) -> None:
    arn = site.create_queue("arn")
    theirs = Program(await in_thread(token, await in_thread(granted, Role.NONE, {"a*": Role.OPERATOR})))
    waiting = asyncio.create_task(theirs.request(*path.split(), timeout=PATIENCE))
    await in_wait(arn)
    site.rename_queue("arn", "zrn")
    await program.post("queues/zrn/items", json={"value": "a", "priority": 1})
    assert problem(await waiting, 404, "QueueNotFound")["name"] == "arn"
    assert arn.depth() == 1


@pytest.mark.parametrize("verb", ["pop", "lease"])
async def test_a_site_that_stops_answers_what_a_request_with_a_key_took(
    program: Program, jobs, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    committed, go_on, real = asyncio.Event(), threading.Event(), takes.once
    loop = asyncio.get_running_loop()

    def commit(*given: Any) -> Any:
        try:
            return real(*given)
        finally:
            loop.call_soon_threadsafe(committed.set)
            assert go_on.wait(PATIENCE)

    monkeypatch.setattr(takes, "once", commit)
    jobs.push(b"a", 1)
    for item, key in (("a", "k1"), (None, "k2")):
        committed.clear()
        go_on.clear()
        taking = asyncio.create_task(program.post(f"queues/jobs/{verb}?wait=60", headers={"Idempotency-Key": key}))
        await committed.wait()
        long_polls.stop()
        for _ in range(5):
            await asyncio.sleep(0)
        go_on.set()
        answer = await taking
        assert [each["value"] for each in answer.json()["items"]] == ([] if item is None else [item])
    again = await program.post(f"queues/jobs/{verb}?wait=60", headers={"Idempotency-Key": "k1"})
    assert again.headers["Idempotent-Replay"] == "true"


async def test_unknown_addresses_and_methods_are_problems(program: Program, jobs) -> None:
    problem(await program.get("nonsense"), 404, "NotFound")
    wrong = await program.get("queues/jobs/pop")
    problem(wrong, 405, "MethodNotAllowed")
    assert wrong.headers["Allow"] == "POST"


async def test_if_match_is_refused_where_it_would_be_ignored(program: Program, jobs) -> None:
    tag = {"If-Match": (await program.get("queues/jobs")).headers["ETag"]}
    item = {"value": "a", "priority": 1}
    for path, body in [("items", item), ("pop", None), ("pause", {"reason": "r"})]:
        told = problem(await program.post(f"queues/jobs/{path}", json=body, headers=tag), 422, "InvalidRequest")
        assert told["errors"][0]["field"] == "If-Match"
    assert (jobs.depth(), jobs.status().pause) == (0, None)
    assert (await program.get("queues/jobs", headers=tag)).status_code == 200
    assert (await program.patch("queues/jobs", json={"note": "n"}, headers=tag)).status_code == 200


async def test_head_is_answered_as_get_without_the_content(program: Program, jobs) -> None:
    jobs.push(b"a", 1)
    for path in ("queues/jobs", "queues/jobs/items", "queues/jobs/items/export", "nonsense"):
        got, head = await program.get(path), await program.request("HEAD", path)
        assert (head.status_code, head.content) == (got.status_code, b"")
        assert head.headers["Content-Type"] == got.headers["Content-Type"]
        assert head.headers.get("Content-Length") == got.headers.get("Content-Length")
    assert (await program.request("HEAD", "queues/jobs/pop")).status_code == 405
    assert jobs.depth() == 1


def test_every_error_of_the_core_has_a_status_and_a_meaning() -> None:
    assert set(problems.STATUSES) == set(ERRORS)
    assert not set(problems.OWN) & set(ERRORS)
    assert len(problems.every()) == len(ERRORS) + len(problems.OWN)
    assert all(problems.meaning_of(code).endswith(".") for code in problems.every().values())


@pytest.mark.parametrize("number", ["1e400", "-1E+400", "9" * 400 + ".0", "NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("codec", ["bytes", "json", "msgpack"])
async def test_a_number_that_json_has_not_is_refused(program: Program, site: Store, codec: Any, number: str) -> None:
    """Stored, it would be null."""
    queue = await in_thread(site.create_queue, "numbers", codec=codec, priority_type="float")
    sent = {"Content-Type": "application/json"}
    for body in ('{"value_json": {"a": [%s]}, "priority": 1}', '{"value_json": 1, "priority": %s}'):
        refused = await program.post("queues/numbers/items", content=body % number, headers=sent)
        problem(refused, 400, "BadRequest")
    assert await in_thread(queue.depth) == 0
    huge = await program.post("queues/numbers/items", json={"value_json": 2**70, "priority": 1})
    if codec != "msgpack":  # JSON has no such limit
        assert (await program.post("queues/numbers/pop")).json()["items"][0]["value"] == str(2**70)
    else:
        problem(huge, 422, "BadValue")


@pytest.mark.parametrize("form", ["application/json", "application/x-ndjson"])
async def test_a_client_that_leaves_before_its_body_is_read_is_no_failure_of_the_site(
    site: Store, token, jobs, caplog, form: str
) -> None:
    secret, body = await in_thread(token), BytesIO(b'{"value": "a", "priority": 1}')
    body.close()  # as the server does when the connection ends

    async def unread(message: dict[str, Any]) -> None:
        """Take a message that reaches no client."""

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/v1/queues/jobs/items",
        "query_string": b"",
        "headers": [
            (b"host", b"localhost"),
            (b"authorization", f"Bearer {secret}".encode()),
            (b"content-type", form.encode()),
        ],
        "extensions": {BODY: body},
    }
    await ApiHandler()(scope, asyncio.Event().wait, unread)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert jobs.depth() == 0


async def test_a_client_that_leaves_while_it_waits_takes_nothing(site: Store, token, jobs) -> None:
    """The item that comes afterwards stays."""
    secret, gone = await in_thread(token), asyncio.Event()
    asked = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if not asked.is_set():
            asked.set()
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        raise AssertionError(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/v1/queues/jobs/pop",
        "query_string": b"wait=60",
        "headers": [(b"host", b"localhost"), (b"authorization", f"Bearer {secret}".encode())],
    }
    serving = asyncio.create_task(ApiHandler()(scope, receive, send))
    async with asyncio.timeout(PATIENCE):
        while jobs.opened.context.wait_queues.of(jobs.id).lookout is None:  # it does not wait yet
            await asyncio.sleep(0.001)
        gone.set()
        await serving
    jobs.push(b"a", 1)
    assert jobs.depth() == 1


async def test_a_request_that_is_canceled_while_its_body_comes_leaves_no_file_open() -> None:
    """By another server than ours, which would have the body already."""
    parts = iter([{"type": "http.request", "body": b"x", "more_body": True}])
    waits = asyncio.Event()

    async def receive() -> dict[str, Any]:
        for part in parts:
            return part
        waits.set()
        return await asyncio.get_running_loop().create_future()

    scope = {"type": "http", "method": "POST", "path": "/api/v1/queues/jobs/push", "query_string": b"", "headers": []}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        serving = asyncio.create_task(ApiHandler()(scope, receive, asyncio.Queue[Any]().put))
        await waits.wait()
        serving.cancel()
        await asyncio.wait([serving])
        assert serving.cancelled()
        del serving
        gc.collect()
    assert [str(each.message) for each in told if each.category is ResourceWarning] == []
