"""What every act is made of: one transaction for the verb and the note about it in the audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from queues.audit.audit import Audit
from queues.context import StoreContext
from queues.errors import AlreadyDone, QueueNotFound
from queues.kv.port import ReadTransaction, Transaction
from queues.model.config import MAX_REASON, check_text
from queues.model.duration import Duration
from queues.model.item import Item
from queues.operations import idempotency
from queues.queue import Queue
from queues.queue_catalog import QueueCatalog
from queues.trash.trash import KEPT_MS, Trash

T = TypeVar("T")
#: Verbs that take items away, for whose audit it matters how long they can be put back.
_TAKING = frozenset({"pop_min", "pop_max", "dequeue", "delete", "purge", "ack"})
#: Called with a queue, a verb and the details of an audit record.
Note = Callable[..., None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Popped:
    """An item that a person took, and where it can be put back from."""

    item: Item
    #: None where the act kept nothing.
    trash_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """Items that a person pushed, and what undoes that."""

    items: list[Item]
    trash_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKey:
    """The idempotency key of a request: its first action is executed once, and stores the answer with itself."""

    key: str
    #: What the request asks for; other content under the same key raises `KeyReused`.
    content: bytes = b""
    #: Returns the answer to store from what the action returned, inside its transaction.
    answer: Callable[[Any], bytes] = lambda result: b""


class Acting:
    """One person at work, come in by one way (web, api, cli)."""

    def __init__(
        self,
        context: StoreContext,
        *,
        actor: str,
        via: str,
        keep: Duration | None = None,
        tr: Transaction | None = None,
        key: RequestKey | None = None,
    ) -> None:
        self._catalog = QueueCatalog(context)
        self._audit = Audit(context)
        self._context = context
        self._actor = check_text(actor)
        self._via = via
        self._tr = tr
        self._key = key
        self._trash = Trash(context, keep=keep)

    def _kept(self, trash_id: bytes) -> str | None:
        """Return the id by which what an act took is put back; None when it kept nothing."""
        return trash_id.hex() if self._trash.keeps else None

    def _queue(self, tr: ReadTransaction, name: str, expect_id: int | None) -> Queue:
        """Return the queue of this name; `QueueNotFound` when the name stands for another than `expect_id` now."""
        queue = self._catalog.queue(name, tr=tr)
        if expect_id is not None and queue.id != expect_id:
            raise QueueNotFound(name)
        return queue

    def _act(self, act: Callable[[Transaction, Note], T]) -> T:
        """Run an act and the note about it in one transaction."""
        audit_id = self._context.id_generator.new_id()

        def run(tr: Transaction) -> T:
            def note(queue: Queue, verb: str, *, reason: str = "", **details: Any) -> None:
                if self._trash.keep_ms != KEPT_MS and verb in _TAKING:
                    details["after"] = {**(details.get("after") or {}), "kept_seconds": self._trash.keep_ms / 1000}
                self._audit.write(
                    tr,
                    audit_id,
                    actor=self._actor,
                    via=self._via,
                    verb=verb,
                    queue_id=queue.id,
                    queue=queue.name,
                    reason=check_text(reason, MAX_REASON),
                    **details,
                )

            return act(tr, note)

        with self._catalog.suggesting(self._tr):
            if self._key is None:
                return self._context.transact(run, self._tr)
            result = self._context.transact(lambda tr: self._once(tr, run), self._tr)
            self._key = None  # a request is known by its first action; the others follow from it
            return result

    def _once(self, tr: Transaction, run: Callable[[Transaction], T]) -> T:
        """Run the action and store its answer under the request's key; raise `AlreadyDone` with the first answer."""
        assert self._key is not None
        results: list[T] = []

        def execute(answer: Callable[[Any], bytes] = self._key.answer) -> bytes:
            results.append(run(tr))
            return answer(results[0])

        first = idempotency.once(
            tr,
            self._context.keyspace,
            self._key.key,
            execute,
            content=self._key.content,
            now_ms=self._context.now_ms(),
        )
        if first.repeated:
            raise AlreadyDone(first.value, first.at)
        return results[0]


def shown(item: Item) -> Mapping[str, Any]:
    """Return what an audit record says of an item."""
    priority = item.priority if item.foreign is None or item.priority is not None else item.foreign.priority_text
    more = {} if item.due_at is None else {"due": item.due_at.isoformat()}
    if item.state == "leased":
        more["worker"] = item.worker
    return {"priority": priority, "size": item.size, **more}
