"""The audit: who did what, when, to which queue, how many items, and why.

A record is written in the transaction of the act that it records, so neither is ever there without the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from queues import directory, ids, records
from queues.backing import Backing
from queues.errors import BadCursor
from queues.kv.port import ReadTransaction, Transaction

MAX_PAGE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One act."""

    id: str
    #: By the clock of the process that acted, UTC.
    at: datetime
    actor: str
    #: How the act came in: web, api, cli.
    via: str
    verb: str
    #: The queue's name at the time; None for acts on no queue.
    queue: str | None
    #: The one item that was acted on, if it was one.
    item: str | None
    #: Items concerned.
    count: int
    reason: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """Audit entries, newest first."""

    entries: tuple[AuditEntry, ...]
    #: Pass it as `after=` for older entries; None when these are the oldest.
    cursor: str | None


class Audit:
    """The audit of one store."""

    def __init__(self, backing: Backing) -> None:
        self._backing = backing

    def write(
        self,
        tr: Transaction,
        audit_id: bytes,
        *,
        actor: str,
        via: str,
        verb: str,
        queue_id: int | None = None,
        queue: str | None = None,
        also: int | None = None,
        item: str | None = None,
        items: Sequence[str] = (),
        count: int = 1,
        reason: str = "",
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        """Record an act inside the transaction that does it; `audit_id` was minted outside.

        It is listed under its queue, and under the one of the id `also`, which it concerned too; under `item`, which
        the record names, and under `items`, which it does not.
        """
        keyspace = self._backing.keyspace
        header = {
            "actor": actor,
            "via": via,
            "verb": verb,
            "queue_id": queue_id,
            "queue": queue,
            "item": item,
            "count": count,
            "reason": reason,
            "before": before,
            "after": after,
        }
        tr.set(keyspace.audit(audit_id), records.encode(header))
        tr.set(keyspace.audit_by_actor(actor, audit_id), b"")
        for concerned in (queue_id, also):
            if concerned is not None:
                tr.set(keyspace.audit_by_queue(concerned, audit_id), b"")
        for listed in dict.fromkeys((*items, *(() if item is None else (item,)))):
            tr.set(keyspace.audit_by_item(listed, audit_id), b"")

    def entries(
        self,
        *,
        queue: str | None = None,
        actor: str | None = None,
        item: str | None = None,
        limit: int = 50,
        after: str | None = None,
        tr: ReadTransaction | None = None,
    ) -> AuditPage:
        """Return a page of acts, newest first: of one item, of one queue, of one actor, of several of these, or all.

        With several filters the acts of the first of these are read and those that fit the others kept, so a page may
        hold fewer than `limit`. Acts of releases that did not list them by item are not found by it.
        """
        before = None if after is None else ids.parse(after)
        if after is not None and before is None:
            raise BadCursor("This page address is damaged; start again from the first page.")
        limit = max(1, min(limit, MAX_PAGE))
        keyspace = self._backing.keyspace

        def look(tr: ReadTransaction) -> AuditPage:
            queue_id = None if queue is None else directory.find_id(tr, keyspace, queue)
            begin, end = keyspace.audits(queue_id=queue_id, actor=actor, item=item, before=before)
            keys = tr.get_range(begin, end, limit=limit + 1, reverse=True).wait()
            wanted = [keyspace.last_id(key) for key, _ in keys[:limit]]
            reads = [(audit_id, tr.get(keyspace.audit(audit_id))) for audit_id in wanted]
            entries = tuple(_entry(audit_id, record) for audit_id, read in reads if (record := read.wait()) is not None)
            if actor is not None and (queue is not None or item is not None):
                entries = tuple(entry for entry in entries if entry.actor == actor)
            if queue is not None and item is not None:
                entries = tuple(entry for entry in entries if entry.queue == queue)
            return AuditPage(entries=entries, cursor=wanted[-1].hex() if len(keys) > limit else None)

        return self._backing.read(look, tr)


def _entry(audit_id: bytes, record: bytes) -> AuditEntry:
    header, _ = records.decode(record)
    return AuditEntry(
        id=audit_id.hex(),
        at=ids.at(ids.minted_ms(audit_id)),
        actor=header["actor"],
        via=header["via"],
        verb=header["verb"],
        queue=header["queue"],
        item=header["item"],
        count=header["count"],
        reason=header["reason"],
        before=header["before"],
        after=header["after"],
    )
