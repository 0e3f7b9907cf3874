"""The audit: who did what, when, to which queue, how many items, and why.

A record is written in the transaction of the act that it records, so neither is ever there without the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from queues.catalog import directory
from queues.context import StoreContext
from queues.errors import BadCursor
from queues.items.equal_ids import refuse_minted
from queues.keys.keyspace import Keyspace
from queues.kv.port import ReadTransaction, Transaction
from queues.model import ids, records
from queues.model.records import UNREADABLE, why

MAX_PAGE = 1_000
#: Stands for what was done where a record cannot be read.
UNREADABLE_VERB = "unreadable"
#: Entries that one page looks at, at most or a step more, when only some of them are wanted; and those of a step.
#: What follows a full page is looked for as far again, as a page may become full only at the end of that.
MAX_LOOK, _STEP = 2_000, 250


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One act."""

    id: str
    #: By the store's clock, UTC.
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
    #: Why it cannot be read; then no more is known of it than its id and its time. Empty: it can.
    damage: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """Audit entries, newest first."""

    entries: tuple[AuditEntry, ...]
    #: Pass it as `after=` for older entries; None when these are the oldest.
    cursor: str | None
    #: Entries that were looked at for this page.
    looked: int = 0
    #: Whether the page after the cursor holds something; else there are older acts, and nobody has looked at them.
    certain: bool = True


class Audit:
    """The audit of one store."""

    def __init__(self, context: StoreContext) -> None:
        self._context = context

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
        keyspace = self._context.keyspace
        refuse_minted(tr, [keyspace.audit(audit_id)])
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
        named: str | None = None,
        actor: str | None = None,
        item: str | None = None,
        verb: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        after: str | None = None,
        seen: Callable[[AuditEntry], AuditEntry | None] | None = None,
        tr: ReadTransaction | None = None,
    ) -> AuditPage:
        """Return a page of acts, newest first: of one item, of one queue, of one actor, of several of these, or all.

        `queue` is a queue that is there, through all its names; `named` are acts on whatever had this name then.
        `verb`, `since` (included) and `until` (excluded, both aware) keep some of them. The acts of the first of item,
        queue and actor are read by an index, and those that fit the other filters kept, in bounded steps: such a page
        may hold fewer than `limit`, even none, and have a cursor. Acts of releases that did not list them by item are
        not found by it. `seen` gives what is to be seen of an act, or None to leave it out. After a full page the next
        act that fits is looked for too, so that its cursor leads to something; `certain` says whether that was found.
        """
        before = None if after is None else ids.parse(after)
        if after is not None and before is None:
            raise BadCursor("This page address is damaged; start again from the first page.")
        limit = max(1, min(limit, MAX_PAGE))
        ends = [end for end in (before, _first_of(until)) if end is not None]
        walk = _Walk(
            keyspace=self._context.keyspace,
            actor=actor,
            item=item,
            since=_first_of(since),
            filters={"actor": actor, "verb": verb, "queue": named},
            seen=seen,
        )

        def look(tr: ReadTransaction) -> AuditPage:
            queue_id = None if queue is None else directory.find_id(tr, self._context.keyspace, queue)
            return walk.page(tr, queue_id=queue_id, queue=queue, before=min(ends, default=None), limit=limit)

        return self._context.read(look, tr)

    def oldest_at(self, *, tr: ReadTransaction | None = None) -> datetime | None:
        """Return the time of the oldest act that is kept; None when there is none."""
        keyspace = self._context.keyspace
        key = self._context.read(lambda tr: tr.get_key(*keyspace.audits()).wait(), tr)
        return None if key is None else ids.at(ids.minted_ms(keyspace.last_id(key)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """A walk through the audit from newer to older acts, by the narrowest index."""

    keyspace: Keyspace
    actor: str | None
    item: str | None
    #: The first id that is late enough.
    since: bytes | None
    #: What an entry's fields are, where it matters.
    filters: Mapping[str, str | None]
    #: What is to be seen of an act.
    seen: Callable[[AuditEntry], AuditEntry | None] | None

    def page(
        self, tr: ReadTransaction, *, queue_id: int | None, queue: str | None, before: bytes | None, limit: int
    ) -> AuditPage:
        """Return what fits among the next acts, at most `limit`."""
        wanted = {name: value for name, value in self.filters.items() if value is not None}
        if self.item is not None and queue is not None:
            wanted["queue"] = queue
        if self.item is None and queue_id is None:
            wanted.pop("actor", None)  # read by the actor's own index
        picky = bool(wanted) or self.seen is not None
        # Most are seen by who may look at all: one more than the page tells whether another follows.
        step = _STEP if wanted else min(limit + 1, _STEP) if picky else limit
        found: list[AuditEntry] = []
        at, looked, full_at = before, 0, None
        while True:
            begin, end = self.keyspace.audits(
                queue_id=queue_id, actor=self.actor, item=self.item, before=at, since=self.since
            )
            keys = tr.get_range(begin, end, limit=step + 1, reverse=True).wait() if begin < end else []
            more = len(keys) > step
            reads = [
                (audit_id, tr.get(self.keyspace.audit(audit_id)))
                for audit_id in (self.keyspace.last_id(key) for key, _ in keys[:step])
            ]
            for n, (audit_id, read) in enumerate(reads):
                record = read.wait()
                looked += 1
                entry = None if record is None else _entry(audit_id, record)
                if entry is not None and self.seen is not None:
                    entry = self.seen(entry)
                fits = entry is not None and all(getattr(entry, name) == value for name, value in wanted.items())
                if fits and full_at is not None:
                    return AuditPage(entries=tuple(found), cursor=ids.above(audit_id).hex(), looked=full_at)
                at = audit_id
                if fits and entry is not None:
                    found.append(entry)
                if len(found) == limit and full_at is None:
                    full_at = looked
                    if not picky:
                        more = more or n + 1 < len(reads)
                        break
            if not more or (full_at is not None and not picky) or looked >= MAX_LOOK + (full_at or 0):
                cursor = at.hex() if more and at is not None else None
                return AuditPage(
                    entries=tuple(found),
                    cursor=cursor,
                    looked=looked if full_at is None else full_at,
                    certain=cursor is None or not picky,
                )
            step = _STEP if picky else limit


def _first_of(when: datetime | None) -> bytes | None:
    """Return the smallest id of a moment."""
    if when is None:
        return None
    ms = max(0, min(-((ids.EPOCH - when) // timedelta(milliseconds=1)), ids.LAST_MS))
    return ms.to_bytes(6, "big").ljust(ids.SIZE, b"\x00")


def _entry(audit_id: bytes, record: bytes) -> AuditEntry:
    at = ids.at(ids.minted_ms(audit_id))
    try:
        return _read(audit_id, at, records.decode(record)[0])
    except UNREADABLE as error:
        return AuditEntry(
            id=audit_id.hex(),
            at=at,
            actor="",
            via="",
            verb=UNREADABLE_VERB,
            queue=None,
            item=None,
            count=0,
            reason="",
            before=None,
            after=None,
            damage=why(error),
        )


def _read(audit_id: bytes, at: datetime, header: dict[str, Any]) -> AuditEntry:
    return AuditEntry(
        id=audit_id.hex(),
        at=at,
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
