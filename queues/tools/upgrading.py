"""Upgrading a store that an older release wrote, step by step, to the format of this one.

Every step is one transaction, or resumable: it ends by writing the store record with the step's format, so that a
run that was interrupted goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from queues.background import due_index
from queues.bulk.bulk_job import CANCELED, RUNNING, Job, write_job
from queues.bulk.scan import just_before
from queues.catalog import store_record
from queues.catalog.store_record import FORMAT, StoreRecord
from queues.errors import NewerFormat, NotAStore
from queues.keys.keyspace import Keyspace
from queues.kv import open_kv
from queues.kv.port import KeyValue, KeyValueStore, Transaction
from queues.model import records
from queues.model.ids import minted_ms
from queues.model.tuples import Range
from queues.operations.search import Query

#: Records of one transaction.
_PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One format to the next."""

    format: int
    #: What it does, for a person.
    does: str
    #: Whatever has to be rewritten before the store record is; it may have run in part before.
    rewrite: Callable[[KeyValueStore, Keyspace], None] | None = None


def _to_3(kv: KeyValueStore, keyspace: Keyspace) -> None:
    _each(kv, keyspace.all_configs, lambda tr, pairs: _put_on_agenda(tr, keyspace, pairs))
    _each(kv, keyspace.all_bulk, lambda tr, pairs: _convert_jobs(tr, keyspace, pairs))


#: In order, each to the format it names from the one before.
STEPS = (
    Step(format=2, does="let older releases refuse the store: they would not understand attached queues"),
    Step(
        format=3,
        does="let older releases refuse the store: they would wipe settings; have every queue with delayed or leased "
        "items looked at, and cancel unfinished jobs, which can be resumed",
        rewrite=_to_3,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """What an upgrade did, or would do."""

    before: int
    after: int
    steps: tuple[Step, ...]


def upgrade(
    url: str,
    *,
    root: tuple[Any, ...] = ("pq",),
    dry_run: bool = False,
    on_step: Callable[[Step], None] = lambda step: None,
) -> Upgrade:
    """Bring the store at a URL to this release's format and tell the steps; with `dry_run` only tell them.

    Raises `NewerFormat`, `NotAStore`, `CopyUnfinished`; an upgraded store has no steps left.
    """
    keyspace = Keyspace(root)
    kv = open_kv(url, slots=keyspace.slots)
    try:
        before = store_record.require(kv, keyspace, url).format
        if before > FORMAT:
            raise NewerFormat(
                "{url} was written by a newer pqadmin (store format {format}, this release writes "
                "{reads}): there is no way back to an older format. Nothing was changed.",
                url=url,
                format=before,
                reads=FORMAT,
            )
        steps = tuple(step for step in STEPS if step.format > before)
        for step in () if dry_run else steps:
            on_step(step)
            if step.rewrite is not None:
                step.rewrite(kv, keyspace)
            _reach(kv, keyspace, step.format)
        return Upgrade(before=before, after=FORMAT, steps=steps)
    finally:
        kv.close()


def _reach(kv: KeyValueStore, keyspace: Keyspace, reached: int) -> None:
    def write(tr: Transaction) -> StoreRecord | None:
        record = store_record.find(tr, keyspace)
        if record is not None and record.format < reached:
            tr.use_reserve()
            tr.set(keyspace.store, replace(record, format=reached).encode())
        return record

    if kv.transact(write) is None:
        raise NotAStore("The store record went away while the store was upgraded.")


def _each(kv: KeyValueStore, within: Range, rewrite: Callable[[Transaction, Sequence[KeyValue]], None]) -> None:
    """Rewrite what lies in a range, some at a time, each time as it is then."""
    begin, end = within

    def some(tr: Transaction) -> bytes | None:
        pairs = tr.get_range(begin, end, limit=_PAGE).wait()
        tr.use_reserve()
        rewrite(tr, pairs)
        return pairs[-1][0] + b"\0" if len(pairs) == _PAGE else None

    while (behind := kv.transact(some)) is not None:
        begin = behind


def _put_on_agenda(tr: Transaction, keyspace: Keyspace, configs: Sequence[KeyValue]) -> None:
    """Have every queue looked at in which something falls due: format 2 marked no seconds."""
    moments = due_index.begin_moments(tr, keyspace, [keyspace.id_of_config(key) for key, _ in configs])()
    due = [queue_id for queue_id, moment_ms in moments.items() if moment_ms is not None]
    for queue_id in due:
        tr.set(keyspace.agenda_mark(0, queue_id), b"")
    if due:
        tr.add(keyspace.agenda_wake, 1)


def _convert_jobs(tr: Transaction, keyspace: Keyspace, jobs: Sequence[KeyValue]) -> None:
    for _, record in jobs:
        header, _ = records.decode(record)
        if "first" in header:  # else this release wrote it, or this step did before it was interrupted
            parts = tr.get_range(*keyspace.bulk_parts(bytes.fromhex(header["id"])), limit=1, reverse=True).wait()
            write_job(tr, keyspace, _converted(header, parts[0][1] if parts else bytes.fromhex(header["id"])))


def _converted(header: dict[str, Any], last: bytes) -> Job:
    """Return a job of format 2, which knew the places that were left; `last` is the id of the last thing it wrote."""
    first, final, backwards = bytes.fromhex(header["first"]), bytes.fromhex(header["last"]), header["backwards"]
    same = ("id", "act", "queue_id", "queue", "state", "by", "reason", "to", "to_id", "priority", "shift", "total")
    return Job(
        **{name: header[name] for name in same},
        # Nobody goes on with what may be long forgotten, unless somebody says so.
        status=CANCELED if header["status"] == RUNNING else header["status"],
        query=Query(state=header["state"]).encode(),
        met=header["done"],
        done=header["done"],
        chunks=header["chunks"],
        mark=just_before((first, final), backwards=backwards) if first else None,
        bound=first if backwards else final,
        backwards=backwards,
        started_ms=minted_ms(bytes.fromhex(header["id"])),
        ended_ms=minted_ms(last),
    )
