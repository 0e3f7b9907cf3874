"""Upgrading a store that an older release wrote, step by step, to the format of this one.

Every step is one transaction, or resumable: it ends by writing the store record with the step's format, so that a
run that was interrupted goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from queues import store_record
from queues.errors import NewerFormat, NotAStore
from queues.keyspace import Keyspace
from queues.kv import open_kv
from queues.kv.port import KeyValueStore, Transaction
from queues.store_record import FORMAT, StoreRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One format to the next."""

    format: int
    #: What it does, for a person.
    does: str
    #: Whatever has to be rewritten before the store record is; it may have run in part before.
    rewrite: Callable[[KeyValueStore, Keyspace], None] | None = None


#: In order, each to the format it names from the one before.
STEPS = (Step(format=2, does="let older releases refuse the store: they would not understand attached queues"),)


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
                f"{url} was written by a newer pqadmin (store format {before}, this release writes {FORMAT}): "
                "there is no way back to an older format. Nothing was changed."
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
