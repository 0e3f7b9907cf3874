"""The audit: actor, time, verb, queue, number of items and reason of every action.

A record is written in the transaction of its action, so that neither is there without the other.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from queues.catalog import directory
from queues.context import StoreContext
from queues.errors import NaiveTime
from queues.items.equal_ids import minted_before
from queues.keys.keyspace import first_id
from queues.keys.queue_keys import last_element
from queues.kv.port import ReadTransaction, Result, Transaction
from queues.model import ids, paging, records
from queues.model.paging import RecordPage
from queues.model.records import UNREADABLE, why

#: Actors among which one is looked for by its name in another case.
_MAX_ACTORS = 1_000
#: The verb of a record that cannot be read.
UNREADABLE_VERB = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One action."""

    id: str
    #: By the store's clock, UTC.
    at: datetime
    actor: str = ""
    #: How the request came in: web, api, cli.
    via: str = ""
    verb: str
    #: The queue's name at the time; None for actions on no queue.
    queue: str | None = None
    #: The one item of the action, if it was one.
    item: str | None = None
    #: Items of the action.
    count: int = 0
    reason: str = ""
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    #: Why it cannot be read; then only its id and its time are known. Empty: it can.
    damage: str = ""


_FIELDS = ("actor", "via", "verb", "queue", "item", "count", "reason", "before", "after")


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
        """Record an action inside its transaction; `audit_id` is a new id.

        It is listed under its queue and under the queue of the id `also`; under `item`, which the record names, and
        under `items`, which it does not.
        """
        keyspace = self._context.keyspace
        if tr.get(keyspace.audit.key(audit_id)).wait() is not None:
            raise minted_before()
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
        tr.set(keyspace.audit.key(audit_id), records.encode(header))
        tr.set(keyspace.audit_by_actor(actor, audit_id), b"")
        for listed_id in (queue_id, also):
            if listed_id is not None:
                tr.set(keyspace.audit_queues.key(listed_id, audit_id), b"")
        for listed in dict.fromkeys((*items, *(() if item is None else (item,)))):
            tr.set(keyspace.audit_by_item(listed, audit_id), b"")

    def update(self, tr: Transaction, audit_id: bytes, *, count: int, after: Mapping[str, Any]) -> None:
        """Tell how far a long action has come, in its one record. A record that was swept stays away."""
        key = self._context.keyspace.audit.key(audit_id)
        record = tr.get(key).wait()
        with suppress(*UNREADABLE):
            if record is not None:
                tr.set(key, records.encode(records.decode(record)[0] | {"count": count, "after": after}))

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
    ) -> RecordPage[AuditEntry]:
        """Return a page of actions, newest first: of an item, a queue, an actor, several of these, or all.

        `queue` is a queue that exists, through all its names; `named` are actions on a queue that had this name then.
        `verb`, `since` (included) and `until` (excluded, both aware) are filters. The first of item, queue and actor is
        read by an index and the other filters are applied in bounded steps: such a page may have fewer entries than
        `limit`, even none, and a cursor. `seen` returns what the reader may see of an entry, or None to leave it out.
        After a full page the next entry that fits is looked for too; `certain` says whether one was found.
        """
        ends = [end for end in (paging.before_of(after), _first_of(until)) if end is not None]
        keyspace, first = self._context.keyspace, _first_of(since)

        def look(tr: ReadTransaction) -> RecordPage[AuditEntry]:
            queue_id = None if queue is None else directory.find_id(tr, keyspace, queue)
            wanted = {"verb": verb, "queue": named if item is None else queue or named}
            if item is not None or queue_id is not None:
                wanted["actor"] = actor  # otherwise its own index is read
            wanted = {name: value for name, value in wanted.items() if value is not None}

            def read(before: bytes | None, n: int) -> tuple[list[tuple[bytes, Result[bytes | None]]], bool]:
                begin, end = keyspace.audits(queue_id=queue_id, actor=actor, item=item, before=before, since=first)
                keys = tr.get_range(begin, end, limit=n + 1, reverse=True).wait() if begin < end else []
                audit_ids = [last_element(key) for key, _ in keys[:n]]
                return [(audit_id, tr.get(keyspace.audit.key(audit_id))) for audit_id in audit_ids], len(keys) > n

            def fitting(audit_id: bytes, record: Result[bytes | None]) -> AuditEntry | None:
                written = record.wait()
                entry = None if written is None else _entry(audit_id, written)
                if entry is not None and seen is not None:
                    entry = seen(entry)
                fits = entry is not None and all(getattr(entry, name) == value for name, value in wanted.items())
                return entry if fits else None

            return paging.page(read, fitting, before=min(ends, default=None), limit=limit, rare=bool(wanted))

        return self._context.read(look, tr)

    def actor_named(self, name: str) -> str:
        """Return the actor of this name in any letter case, as the audit has it; else `name`.

        At most 1,000 actors are looked through.
        """
        keyspace, folded = self._context.keyspace, name.casefold()

        def look(tr: ReadTransaction) -> str:
            if tr.get_key(*keyspace.audits(actor=name)).wait() is not None:
                return name
            begin, end = keyspace.audit_actors.all
            for _ in range(_MAX_ACTORS):
                key = tr.get_key(begin, end).wait()
                if key is None:
                    break
                actor: str = keyspace.audit_actors.elements(key)[0]
                if actor.casefold() == folded:
                    return actor
                begin = keyspace.behind_audit_list(key)
            return name

        return self._context.kv.read(look)

    def oldest_at(self, *, tr: ReadTransaction | None = None) -> datetime | None:
        """Return the time of the oldest action that is kept; None when there is none."""
        keyspace = self._context.keyspace
        key = self._context.read(lambda tr: tr.get_key(*keyspace.audits()).wait(), tr)
        return None if key is None else ids.at(ids.minted_ms(last_element(key)))


def _first_of(when: datetime | None) -> bytes | None:
    """Return a key element before all ids of a moment or later; raise `NaiveTime`."""
    if when is None:
        return None
    if not isinstance(when, datetime) or when.utcoffset() is None:
        raise NaiveTime("A time to read the audit from or to is a datetime with a time zone.")
    return first_id(min(-((ids.EPOCH - when) // timedelta(milliseconds=1)), ids.LAST_MS))


def _entry(audit_id: bytes, record: bytes) -> AuditEntry:
    audit_name, at = audit_id.hex(), ids.at(ids.minted_ms(audit_id))
    try:
        header = records.decode(record)[0]
        return AuditEntry(id=audit_name, at=at, **{name: header[name] for name in _FIELDS})
    except UNREADABLE as error:
        return AuditEntry(id=audit_name, at=at, verb=UNREADABLE_VERB, damage=why(error))
