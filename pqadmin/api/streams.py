"""Streams of items, NDJSON and CSV, both ways: as many as there are, of which one step is in memory.

An export is made step by step, as fast as its client takes it. An import is pushed in chunks, each one transaction;
with an Idempotency-Key each chunk is pushed once, so that the same request sent again goes on where it was cut off.
Under the key itself is what the request asked for; its chunks and its answer are under keys that begin with it and a
line feed, which no key of a caller has.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import IO, Annotated, Any, Literal

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from ninja import Query, Router
from pydantic import Field, StrictInt, StrictStr

from pqadmin.accounts.authentication import Unauthenticated
from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right
from pqadmin.api import limits, problems, schemas, threads, values
from pqadmin.api.answers import answer, caller_in, content_of, key_of, once, pack, unpack
from pqadmin.api.authorization import found
from pqadmin.api.bodies import CSV, NDJSON, Body, content_type, invalid
from pqadmin.api.problems import Problem
from pqadmin.api.request import ApiRequest
from pqadmin.api.request_caller import caller_in_thread_now
from pqadmin.api.values import stored
from pqadmin.commands.import_marks import MarkedPusher
from pqadmin.commands.importer import Importer, StoppedAtBadEntry
from pqadmin.display.redaction import rules_of
from pqadmin.files import export_parts, formats, items_export
from pqadmin.files.entries import BadEntry, BadFormat, Entry, Format
from pqadmin.files.shapes import Shape
from pqadmin.pages import streaming
from pqadmin.store import get_store
from queues import AnyQueue, FifoQueue, Transaction
from queues import Query as ItemQuery
from queues.errors import QueueError, StoreError

router = Router(tags=["Items"])

#: Bad lines that an answer tells.
_TOLD = 100
_FORMATS: dict[str, Format] = {NDJSON: "ndjson", CSV: "csv"}


@router.get(
    "/queues/{queue}/items/export",
    operation_id="export_items",
    summary="Export items",
    response=schemas.Lines,
)
async def export_items(
    request: ApiRequest,
    queue: str,
    state: Annotated[
        Literal["ready", "delayed", "leased", "dead"], Query(description="Items of this state.")
    ] = "ready",
    match: Annotated[str, Query(max_length=1_000, description="A part of the value.")] = "",
    end: Annotated[Literal["min", "max"], Query(description="The end to begin at.")] = "min",
    file_format: Annotated[Literal["ndjson", "csv"], Query(alias="format", description="One item a line.")] = "ndjson",
    details: Annotated[bool, Query(description="With id, state, times, attempts and errors.")] = False,
) -> HttpResponseBase:
    """Return all items of a state as a stream, which an import reads again; none is taken.

    The queue is read step by step, so the export of a queue in use is not one snapshot. A value of which rules hide a
    part is `value_redacted`, which no import pushes. A last line with an `error` says that the stream is not complete.
    """
    there = await threads.run(partial(found, request, queue, Verb.READ, Right.READ))
    wanted = ItemQuery(state=state, text=match)
    await threads.run(lambda: there.query(wanted))
    rules = rules_of(there.config.redact)
    parts = items_export.lines(there, wanted, end=end, rules=rules, file_format=file_format, details=details)
    held = ExitStack()
    held.enter_context(limits.waiting(caller_in(request)))
    failed = partial(export_parts.failure, file_format=file_format)
    kind = f"{CSV}; charset=utf-8" if file_format == "csv" else NDJSON
    told = streaming.telling(
        parts,
        failed,
        _watch(request, there, Verb.READ, Right.READ),
        refusal="The caller may read here no longer.",
        words=str,
        broken="The server failed; its log has the details.",
    )
    return streaming.StreamedAnswer(_in_threads(told), held, content_type=kind)


async def import_items(request: ApiRequest, queue: AnyQueue, stream: Any, *, strict: bool) -> HttpResponse:
    """Push the items of a stream, and answer how many there were."""
    with limits.waiting(caller_in(request)):
        return await asyncio.to_thread(_import, request, queue, stream, strict)


class Chunk(Body):
    """A part of a file that is imported, up to a line of it."""

    items: list[values.NewItem] = Field(min_length=1, max_length=values.MOST, description="None has a due time.")
    source: StrictStr = Field(max_length=4_096, description="The file, for the audit.")
    last_line: StrictInt = Field(ge=1, description="Every line up to this one is handled.")


@router.post(
    "/queues/{queue}/items/chunk",
    operation_id="push_chunk",
    summary="Push a chunk of a file",
    response={201: schemas.ChunkPushed},
)
@threads.in_thread
def push_chunk(request: ApiRequest, queue: str, body: Chunk) -> HttpResponse:
    """Push items in one transaction, with the line that they come to in the audit: an import goes on from there."""
    store, there = get_store(), found(request, queue, Verb.PUSH, Right.ACT)

    def entry(item: values.NewItem) -> Entry:
        if there.kind == "fifo":
            values.no_priority(there, item.priority)
        elif item.priority is None:
            raise invalid([{"in": "body", "field": "priority", "message": "a priority is needed"}])
        if item.when is not None:
            field = "due_at" if item.delay is None else "delay"
            raise invalid([{"in": "body", "field": field, "message": "an item of a chunk has no due time"}])
        return Entry(value=item.bytes_for(there), priority=item.priority, line=body.last_line)

    entries = values.each(body.items, entry)
    pusher = MarkedPusher(store, there, actor=caller_in(request).name, source=body.source, via="api")
    audit_id = pusher.new_id()

    def execute(tr: Transaction) -> tuple[int, Shape]:
        pusher.write(tr, audit_id, entries, body.last_line)
        return 201, {"queue": queue, "items": len(entries), "last_line": body.last_line}

    key = key_of(request)
    if key is not None:
        return once(request, key, there, execute)
    status, shape = store.transact(execute)
    return answer(shape, status)


class _Ended(Exception):
    """The caller of a stream lost the right to it."""


def _watch(request: ApiRequest, queue: AnyQueue, verb: Verb, right: Right) -> streaming.Watch:
    """Return what looks now and then whether the caller of a stream still has the right to it."""

    def refused() -> bool:
        try:
            caller_in_thread_now(request).require(verb, right, queue.name)
        except (Unauthenticated, QueueError, PermissionDenied):
            return True
        return False

    return streaming.Watch(refused)


async def _in_threads(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the parts, each made in a thread."""
    while (part := await threads.run(partial(next, parts, None))) is not None:
        yield part


def _import(request: ApiRequest, queue: AnyQueue, stream: IO[bytes], strict: bool) -> HttpResponse:
    """Push the items of a stream; under a key once, and an answer that it got is given again."""
    key = key_of(request)
    if key is None:
        return answer(_pushed(request, queue, stream, strict, None), 201)
    content = content_of(request, stream, queue)
    stream.seek(0)
    get_store().once(key, lambda tr: b"", content=content)
    of_answer = f"{key}\nanswer"
    if (first := get_store().first_answer(of_answer)) is not None:
        return unpack(first.value, repeated=True)
    made = pack(201, _pushed(request, queue, stream, strict, key))
    kept = get_store().once(of_answer, lambda tr: made)
    return unpack(kept.value, repeated=kept.repeated)


def _pushed(request: ApiRequest, queue: AnyQueue, stream: IO[bytes], strict: bool, key: str | None) -> Shape:
    bad: list[Shape] = []
    watch = _watch(request, queue, Verb.PUSH, Right.ACT)

    def note(entry: BadEntry) -> None:
        if len(bad) < _TOLD:
            bad.append({"line": entry.line, "reason": str(entry.reason)})

    def push(entries: list[Entry], last_line: int) -> None:
        if watch.ended():
            raise _Ended
        _push(queue, key, entries, last_line)

    importer = Importer(push, on_commit=lambda _: None, on_bad=note, strict=strict)
    outcomes = formats.read(
        stream,
        _FORMATS[content_type(request)],
        priority_type=None if queue.kind == "fifo" else queue.priority_type,
        codec=queue.config.values,
    )
    try:
        report = importer.run(outcomes)
    except StoppedAtBadEntry as stop:
        values = {"line": stop.entry.first, "items": importer.report.items}
        raise Problem("BadFormat", f"Line {stop.entry.first}: {stop.entry.reason}.", values) from None
    except BadFormat as error:
        raise Problem("BadFormat", str(error), {"items": importer.report.items}) from None
    except _Ended:
        words = "The caller may push here no longer. What was pushed before it stays."
        raise Problem("Forbidden", words, _came(importer)) from None
    except (QueueError, StoreError) as error:
        told = {**problems.values_of(error), **_came(importer)}
        raise Problem(problems.code_of(error), f"{error} What was pushed before it stays.", told) from error
    if bad and not report.items:
        lines = "The only line is bad" if report.bad == 1 else f"All {report.bad:,} lines are bad"
        told = {**asdict(report), "line": bad[0]["line"], "errors": bad}
        raise Problem("BadFormat", f"{lines}: nothing was pushed. Line {told['line']}: {bad[0]['reason']}.", told)
    return {**asdict(report), "errors": bad}


def _came(importer: Importer) -> dict[str, Any]:
    """Return how far an import came."""
    return {"items": importer.report.items, "last_line": importer.report.last_line}


def _push(queue: AnyQueue, key: str | None, entries: list[Entry], last_line: int) -> None:
    """Push a chunk; under the key and the number of its last line once."""

    def write(tr: Transaction) -> bytes:
        if isinstance(queue, FifoQueue):
            queue.enqueue_many([stored(entry.value, queue) for entry in entries], tr=tr)
        else:
            items: Any = [(stored(entry.value, queue), entry.priority) for entry in entries]
            queue.push_many(items, tr=tr)
        return b""

    if key is None:
        get_store().transact(write)
        return
    content = repr([(entry.value, entry.priority) for entry in entries]).encode()
    get_store().once(f"{key}\nline {last_line}", write, content=content)
