"""The frame of audited actions: operation, trash record, audit record and answer in one transaction."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from queues.audit.audit_log import Audit
from queues.bulk.bulk_job import Job
from queues.bulk.checks import QueueOf
from queues.catalog import directory
from queues.context import StoreContext
from queues.errors import AlreadyDone, QueueNotFound, SameQueue, display_name
from queues.keys.keyspace import Keyspace
from queues.kv.port import ReadTransaction, Transaction
from queues.model.config import MAX_REASON, Config, check_text
from queues.model.duration import Duration
from queues.model.item import Item
from queues.operations import idempotency
from queues.queue import AnyQueue, Queue, open_queue
from queues.queue_catalog import QueueCatalog
from queues.trash.trash import KEPT_MS, Trash

P = ParamSpec("P")
T = TypeVar("T")
#: Verbs that remove items: their audit records say how long the trash keeps these, if not as long as usual.
_REMOVING = frozenset({"pop_min", "pop_max", "dequeue", "delete", "purge", "ack", "delete_queue"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKey:
    """The idempotency key of a request. Its first action is executed once, and stores the answer with itself."""

    key: str
    #: What the request asks for; other content under the same key raises `KeyReused`.
    content: bytes = b""
    #: Returns the answer to store from what the action returned, inside its transaction.
    answer: Callable[[Any], bytes] = lambda result: b""


class Frame:
    """What all actions of one person share: the actor, the trash, the audit and the request's key."""

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
        self.actor = check_text(actor)
        self.via = via
        self.context = context
        self.trash = Trash(context, keep=keep)
        self.catalog = QueueCatalog(context, trash=self.trash)
        self.audit = Audit(context)
        self._tr = tr
        self._key = key

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.actor!r} by {self.via}>"

    def read(self, look: Callable[[ReadTransaction], T], tr: ReadTransaction | None = None) -> T:
        """Run `look` on one version of the store."""
        return self.context.read(look, tr or self._tr)

    def run(self, act: "Callable[[Action], T]") -> T:
        """Run an action as one transaction. Of a request with a key, the first one is run once."""

        def run(tr: Transaction) -> T:
            return act(Action(self, tr)) if self._key is None else self._once(tr, act)

        with self.catalog.suggesting(self._tr):
            result = self.context.kv.transact(run) if self._tr is None else run(self._tr)
        self._key = None  # a request is known by its first action; the rest follow from it
        return result

    def refuse_repeated(self) -> None:
        """Raise `AlreadyDone` if the request with the key was executed. Call it before reading what that changed."""
        if self._key is None:
            return
        request, keyspace = self._key, self.context.keyspace
        first = self.read(lambda tr: idempotency.first_answer(tr, keyspace, request.key, content=request.content))
        if first is not None:
            raise AlreadyDone(first.value, first.at)

    def _once(self, tr: Transaction, act: "Callable[[Action], T]") -> T:
        """Run the action and store its answer under the request's key. Raise `AlreadyDone` with the first answer."""
        request, results = self._key, list[T]()
        assert request is not None

        def execute() -> bytes:
            results.append(act(Action(self, tr)))
            return request.answer(results[0])

        first = idempotency.once(
            tr, self.context.keyspace, request.key, execute, content=request.content, now_ms=self.context.clock.now_ms()
        )
        if first.repeated:
            raise AlreadyDone(first.value, first.at)
        return results[0]


class Action:
    """One action inside its transaction."""

    def __init__(self, frame: Frame, tr: Transaction) -> None:
        self.tr = tr
        self.actor = frame.actor
        self.via = frame.via
        self.context = frame.context
        self.catalog = frame.catalog
        self.trash = frame.trash
        self._audit = frame.audit

    @property
    def keyspace(self) -> Keyspace:
        """The keys of the store."""
        return self.context.keyspace

    def new_id(self) -> bytes:
        """Return a new id, for a record of the trash or a job."""
        return self.context.id_generator.new_id()

    def queue(self, name: str, expect_id: int | None = None) -> AnyQueue:
        """Return the queue of this name; raise `QueueNotFound`, also if its id is not `expect_id`."""
        return find_queue(self.context, self.tr, name, expect_id)

    def kept(self, trash_id: bytes) -> str | None:
        """Return the id by which an action is undone; None if the trash keeps nothing."""
        return trash_id.hex() if self.trash.keeps else None

    def record_job(self, queue: Queue | Config | QueueOf, job: Job, verb: str = "") -> None:
        """Write the audit record of a bulk job under its id. Its chunks bring it up to date."""
        self._audit.write(
            self.tr,
            bytes.fromhex(job.id),
            actor=self.actor,
            via=self.via,
            verb=verb or job.act,
            queue_id=queue.id,
            queue=queue.name,
            also=job.to_id,
            count=job.done,
            reason=job.reason,
            after=job.in_audit,
        )

    def update_job(self, job: Job) -> None:
        """Bring the audit record of a bulk job up to date."""
        self._audit.update(self.tr, bytes.fromhex(job.id), count=job.done, after=job.in_audit)

    def record(
        self,
        queue: Queue | Config | QueueOf | None,
        verb: str,
        *,
        reason: str = "",
        after: Mapping[str, Any] | None = None,
        **details: Any,
    ) -> None:
        """Write the audit record, of no queue with None; `details` are those of `Audit.write`."""
        if self.trash.keep_ms != KEPT_MS and verb in _REMOVING:
            after = {**(after or {}), "kept_seconds": self.trash.keep_ms / 1000}
        self._audit.write(
            self.tr,
            self.new_id(),
            actor=self.actor,
            via=self.via,
            verb=verb,
            queue_id=None if queue is None else queue.id,
            queue=None if queue is None else queue.name,
            reason=check_text(reason, MAX_REASON),
            after=after,
            **details,
        )


def action(act: Callable[Concatenate[Action, P], T]) -> Callable[Concatenate[Frame, P], T]:
    """Make a function of one transaction a method of `Actions`, which runs it as an action."""

    @wraps(act)
    def method(frame: Frame, /, *args: P.args, **kwargs: P.kwargs) -> T:
        check_text(cast(str, kwargs.get("reason", "")))  # before anything is written in a caller's transaction
        return frame.run(lambda action: act(action, *args, **kwargs))

    return method


def find_queue(context: StoreContext, tr: ReadTransaction, name: str, expect_id: int | None = None) -> AnyQueue:
    """Return the queue of this name; raise `QueueNotFound`, also if its id is not `expect_id`."""
    config = directory.find(tr, context.keyspace, name)
    if expect_id is not None and config.id != expect_id:
        raise QueueNotFound(name, name_taken=True)
    return open_queue(context, config)


def other_queue(source: Queue, target: Queue) -> Queue:
    """Return the queue that items of another one are moved to; raise `SameQueue`."""
    if source.id == target.id:
        raise SameQueue("The items are in {queue} already: name another queue.", queue=display_name(source.name))
    return target


def shown(item: Item) -> Mapping[str, Any]:
    """Return what an audit record says of an item."""
    priority = item.priority if item.foreign is None or item.priority is not None else item.foreign.priority_text
    more = {} if item.due_at is None else {"due": item.due_at.isoformat()}
    if item.state == "leased":
        more["worker"] = item.worker
    return {"priority": priority, "size": item.size, **more}
