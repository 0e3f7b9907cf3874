"""Streams of items over HTTP: both ways, in constant memory, once under a key."""

import json
from typing import Any

import pytest

from pqadmin.accounts.models import Token
from pqadmin.accounts.rights import Role
from pqadmin.api import streams
from pqadmin.pages import streaming
from queues import FifoQueue, PriorityQueue, Store
from tests.api.conftest import Program, in_thread
from tests.api.test_verbs import problem

pytestmark = pytest.mark.django_db(transaction=True)
NDJSON = {"Content-Type": "application/x-ndjson"}


def ndjson(n: int) -> bytes:
    return b"".join(b'{"value": "%d", "priority": %d}\n' % (each, each) for each in range(n))


async def test_what_is_exported_is_imported_as_it_was(program: Program, site: Store, jobs: PriorityQueue) -> None:
    other = site.create_queue("other")
    for n, value in enumerate((b"a", b"\xff\x00", b"=1+1", '"é",'.encode(), b"")):
        jobs.push(value, n)
    for kind in ("ndjson", "csv"):
        exported = await program.get(f"queues/jobs/items/export?format={kind}")
        assert exported.status_code == 200
        sent = {"Content-Type": exported.headers["Content-Type"]}
        answer = await program.post("queues/other/items", content=exported.content, headers=sent)
        assert (answer.status_code, answer.json()["items"], answer.json()["errors"]) == (201, 5, [])
        assert [item.raw for item in other.pop_many(10)] == [item.raw for item in jobs.peek_many(10)]


async def test_bad_lines_are_left_out_and_told_or_end_a_strict_import(program: Program, jobs: PriorityQueue) -> None:
    content = b'{"value": "a", "priority": 1}\n\n{"value": "b"}\n{"value": "c", "priority": 3}\n'
    done = (await program.post("queues/jobs/items", content=content, headers=NDJSON)).json()
    assert (done["items"], done["bad"], done["blank"], done["last_line"]) == (2, 1, 1, 4)
    assert done["errors"] == [{"line": 3, "reason": "priority is missing"}]
    strict = await program.post("queues/jobs/items?strict=true", content=content, headers=NDJSON)
    found = problem(strict, 422, "BadFormat")
    assert (found["line"], found["items"], jobs.depth()) == (3, 1, 3)
    problem(
        await program.post("queues/jobs/items", content=b"nonsense", headers={"Content-Type": "text/csv"}),
        422,
        "BadFormat",
    )


@pytest.mark.parametrize("keyed", [False, True])
async def test_an_import_of_which_every_line_is_bad_is_refused(
    program: Program, jobs: PriorityQueue, keyed: bool
) -> None:
    for content, kind in ((b"x\n\ny\n", "application/x-ndjson"), (b"value,priority\na,x\nb,y\n", "text/csv")):
        sent = {"Content-Type": kind, **({"Idempotency-Key": kind} if keyed else {})}
        for _ in range(2):
            told = problem(await program.post("queues/jobs/items", content=content, headers=sent), 422, "BadFormat")
            assert (told["items"], told["bad"], len(told["errors"])) == (0, 2, 2)
            assert told["line"] == told["errors"][0]["line"]
            assert told["errors"][0]["reason"] in told["detail"]
    empty = await program.post("queues/jobs/items", content=b"\n", headers=NDJSON)
    assert (empty.status_code, empty.json()["blank"], jobs.depth()) == (201, 1, 0)


async def test_an_import_under_a_key_goes_on_where_it_was_cut_off(
    program: Program, site: Store, jobs: PriorityQueue
) -> None:
    key = {**NDJSON, "Idempotency-Key": "k"}
    site.actions("ann").configure("jobs", max_depth=700)
    problem(await program.post("queues/jobs/items", content=ndjson(1_200), headers=key), 409, "QueueFull")
    jobs.pop_many(10)
    site.actions("ann").configure("jobs", max_depth=None)
    done = await program.post("queues/jobs/items", content=ndjson(1_200), headers=key)
    assert (done.json()["items"], done.json()["last_line"], jobs.depth()) == (1_200, 1_200, 1_190)
    assert "Idempotent-Replay" not in done.headers
    again = await program.post("queues/jobs/items", content=ndjson(1_200), headers=key)
    assert (again.status_code, again.json()) == (201, done.json())
    assert again.headers["Idempotent-Replay"] == "true"
    assert jobs.depth() == 1_190


@pytest.mark.parametrize("cut", [False, True])
async def test_another_import_under_the_same_key_is_refused(
    program: Program, site: Store, jobs: PriorityQueue, cut: bool
) -> None:
    key = {**NDJSON, "Idempotency-Key": "k"}
    site.actions("ann").configure("jobs", max_depth=3 if cut else None)
    await program.post("queues/jobs/items", content=ndjson(10), headers=key)
    depth = jobs.depth()
    for content in (ndjson(9), ndjson(11), ndjson(10).replace(b'"7"', b'"8"'), b"\n" + ndjson(10), b""):
        refused = await program.post("queues/jobs/items", content=content, headers=key)
        problem(refused, 422, "KeyReused")
    problem(await program.post("queues/jobs/items?strict=1", content=ndjson(10), headers=key), 422, "KeyReused")
    one = {"value": "x", "priority": 1}
    problem(await program.post("queues/jobs/items", json=one, headers={"Idempotency-Key": "k"}), 422, "KeyReused")
    assert jobs.depth() == depth
    for taken in ("k line 10", "k answer"):
        pushed = await program.post("queues/jobs/items", json=one, headers={"Idempotency-Key": taken})
        assert pushed.status_code == 201


async def test_hidden_parts_are_not_exported(program: Program, site: Store, jobs: PriorityQueue) -> None:
    site.actions("ann").configure("jobs", redact=("iban",))
    jobs.push(b'{"iban": "s3"}', 1)
    for kind in ("ndjson", "csv"):
        text = (await program.get(f"queues/jobs/items/export?format={kind}&details=true")).text
        assert "s3" not in text
        assert "redacted" in text


async def test_a_stream_ends_with_the_right_to_it_and_says_so(
    program: Program, jobs: PriorityQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "LOOK_EVERY", 0.0)
    jobs.push(b"a", 1)
    real = streams.items_export.lines

    def revoking(*given: Any, **named: Any) -> Any:
        yield from real(*given, **named)
        Token.objects.update(revoked_at="2020-01-01T00:00:00Z")
        yield b"never sent"

    monkeypatch.setattr(streams.items_export, "lines", revoking)
    lines = (await program.get("queues/jobs/items/export")).text.splitlines()
    assert json.loads(lines[0])["value"] == "a"
    assert "INCOMPLETE" in json.loads(lines[-1])["error"]
    assert "never sent" not in lines


async def test_a_fifo_queue_takes_no_priorities_and_keeps_the_order(program: Program, line: FifoQueue) -> None:
    content = b"".join(b'{"value_json": %d}\n' % n for n in range(600))
    await program.post("queues/line/items", content=content, headers=NDJSON)
    assert [item.raw for item in line.peek_many(3)] == [b"0", b"1", b"2"]
    both = ndjson(1) + b'{"value": "a"}'
    assert (await program.post("queues/line/items", content=both, headers=NDJSON)).json()["bad"] == 1


async def test_an_import_that_is_refused_on_its_way_says_how_far_it_came(
    program: Program, site: Store, jobs: PriorityQueue
) -> None:
    site.actions("ann").configure("jobs", max_depth=700)
    found = problem(await program.post("queues/jobs/items", content=ndjson(1_200), headers=NDJSON), 409, "QueueFull")
    assert (found["items"], found["last_line"], found["most"], jobs.depth()) == (500, 500, 700, 500)


@pytest.mark.parametrize(("change", "pushed"), [("revoke", 500), ("rename", 1_000)])  # a name is as last read
async def test_an_import_ends_with_the_right_to_it_and_says_how_far_it_came(
    site: Store,
    token: Any,
    granted: Any,
    jobs: PriorityQueue,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    pushed: int,
) -> None:
    monkeypatch.setattr(streaming, "LOOK_EVERY", 0.0)
    theirs = Program(await in_thread(token, await in_thread(granted, Role.NONE, {"jobs": Role.OPERATOR})))
    real = streams.formats.read

    def ending(*given: Any, **named: Any) -> Any:
        for n, outcome in enumerate(real(*given, **named)):
            if n == 700 and change == "revoke":
                Token.objects.update(revoked_at="2020-01-01T00:00:00Z")
            elif n == 700:
                site.rename_queue("jobs", "zrn")
            yield outcome

    monkeypatch.setattr(streams.formats, "read", ending)
    found = problem(await theirs.post("queues/jobs/items", content=ndjson(1_700), headers=NDJSON), 403, "Forbidden")
    assert (found["items"], found["last_line"], jobs.depth()) == (pushed, pushed, pushed)
    assert "zrn" not in str(found)


async def test_a_chunk_is_pushed_once_with_its_line_in_the_audit(
    program: Program, site: Store, jobs: PriorityQueue, line: FifoQueue
) -> None:
    chunk = {"items": [{"value": "a", "priority": 1}, {"value": "b", "priority": 2}], "source": "/f", "last_line": 3}
    answers = [
        await program.post("queues/jobs/items/chunk", json=chunk, headers={"Idempotency-Key": "k"}) for _ in range(2)
    ]
    assert [answer.json() for answer in answers] == [{"queue": "jobs", "items": 2, "last_line": 3}] * 2
    assert answers[1].headers["Idempotent-Replay"] == "true"
    await program.post("queues/line/items/chunk", json={**chunk, "items": [{"value_base64": "AA=="}]})
    assert [item.raw for queue in (jobs, line) for item in queue.peek_many(5)] == [b"a", b"b", b"\0"]
    told = [(one.verb, one.queue, one.count, one.via) for one in site.audit.entries().entries]
    assert told == [("enqueue", "line", 1, "api"), ("push", "jobs", 2, "api")]
    for wrong in ({"value": "a"}, {"value": "a", "priority": 1, "delay": 5}):
        problem(await program.post("queues/jobs/items/chunk", json={**chunk, "items": [wrong]}), 422, "InvalidRequest")
    problem(await program.post("queues/line/items/chunk", json=chunk), 409, "WrongKind")
    site.create_queue("texts", codec="text")
    chunk["items"][1] = {"value_base64": "/w==", "priority": 2}
    refused = problem(await program.post("queues/texts/items/chunk", json=chunk), 422, "BadValue")
    assert (refused["index"], "of index 1:" in refused["detail"]) == (1, True)
    assert (jobs.depth(), line.depth()) == (2, 1)
