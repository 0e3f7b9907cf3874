"""What a person does on a remote store: the site records it under the name of the token."""

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from queues.actions.actions import Actions
from queues.actions.item_actions import Changed
from queues.actions.purge import Purged
from queues.actions.take import Popped
from queues.actions.undo import Undone
from queues.bulk.bulk_job import Job
from queues.context import StoreContext
from queues.errors import ItemNotFound, LocalStoreOnly, QueueError, QueueNotFound, StoreError, ValueChanged
from queues.items.locate import Picked, Selection
from queues.items.scan import Query
from queues.items.stored_item import digest
from queues.model.codec import Raw, encoded_by_person
from queues.model.config import Config
from queues.model.duration import Duration
from queues.model.item import Item
from queues.model.moment import either
from queues.model.names import canonical
from queues.model.priority import Priority
from queues.queue import AnyQueue, FifoQueue
from queues.queue_catalog import QueueCatalog
from queues.remote.call import Call
from queues.remote.connection import FIRST_REST, Connection
from queues.remote.settings import changed
from queues.remote.shapes import item_of, job_of, shape_of_query, text_of


class RemoteActions(Actions):
    """The actions of the token's owner. Those that the HTTP API has; the rest raise `LocalStoreOnly`.

    So does the condition `expect` of settings, ends and targets, which the API does not compare.
    `expect_depth` is compared with the tolerance of pages: 10 items, or a tenth.
    """

    def __init__(
        self,
        context: StoreContext,
        connection: Connection,
        catalog: QueueCatalog,
        *,
        actor: str,
        via: str,
        keep: Duration | None,
    ) -> None:
        super().__init__(context, actor=actor, via=via, keep=keep)
        self.catalog = catalog
        self._connection = connection
        #: Seconds for which the trash keeps what is removed; None: as long as usual.
        self._keep = None if keep is None else self.trash.keep_ms / 1000

    # Queues

    def create_queue(self, name: str, **options: Any) -> AnyQueue:
        """Create a queue."""
        made: AnyQueue = self.catalog.create_queue(name, **options)
        return made

    def attach(self, name: str, *, reason: str = "", **options: Any) -> AnyQueue:
        """Attach a subspace as a queue."""
        return self.catalog.attach(name, **{**options, "reason": reason})

    def detach(self, name: str, *, expect_id: int | None = None, reason: str = "") -> None:
        """Forget an attached queue."""
        self._post(name, "detach", expect_id=expect_id, reason=reason)

    def pause(
        self, queue_name: str, *, reason: str, until: datetime | None = None, expect_id: int | None = None
    ) -> None:
        """Stop taking from a queue."""
        self._post(queue_name, "pause", expect_id=expect_id, reason=reason, until=text_of(until))

    def resume(self, queue_name: str, *, reason: str = "", expect_id: int | None = None) -> None:
        """Let items be taken again."""
        self._post(queue_name, "resume", expect_id=expect_id, reason=reason)

    def rename_queue(self, old: str, new: str, *, expect_id: int | None = None) -> AnyQueue:
        """Give a queue another name."""
        queue = self.catalog.queue(canonical(old))
        renamed = self._write_to(queue, expect_id, "POST", "rename", body={"name": new})
        return _with_config(queue, replace(queue.config, name=renamed["queue"]))

    def configure(
        self,
        queue_name: str,
        *,
        reason: str = "",
        expect: Mapping[str, Any] | None = None,
        expect_id: int | None = None,
        **changes: Any,
    ) -> AnyQueue:
        """Change settings of a queue."""
        _refuse_condition(expect)
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in changes.items()}
        queue = self.catalog.queue(queue_name)
        answer = self._write_to(queue, expect_id, "PATCH", body={**plain, "reason": reason})
        return _with_config(queue, changed(queue.config, answer))

    def delete_queue(
        self,
        name: str,
        *,
        confirm: str,
        expect_depth: int | None = None,
        tolerance: int = 0,
        expect_id: int | None = None,
        reason: str = "",
    ) -> str:
        """Put a queue into the trash."""
        query = {"confirm": confirm, "expected": expect_depth, "keep": self._keep, "reason": reason}
        return str(self._write("DELETE", name, expect_id=expect_id, query=query)["trash_id"])

    def purge(
        self,
        name: str,
        *,
        confirm: str,
        expect_depth: int | None = None,
        tolerance: int = 0,
        expect_id: int | None = None,
        reason: str = "",
    ) -> Purged:
        """Put every ready and delayed item into the trash."""
        body = {"confirm": confirm, "expected": expect_depth, "keep": self._keep, "reason": reason}
        found = self._post(name, "purge", expect_id=expect_id, **body)
        return Purged(
            count=found["items"],
            skipped=found["skipped"],
            trash_ids=tuple(found["trash_ids"]),
            finished=found["finished"],
        )

    # Items

    def push(
        self,
        queue_name: str,
        value: Any,
        *,
        priority: Any = None,
        delay: Any = None,
        due: datetime | None = None,
        expect_id: int | None = None,
        reason: str = "",
    ) -> Item:
        """Push one item, as programs do."""
        queue = self.catalog.queue(queue_name)
        if expect_id not in (None, queue.id):
            raise QueueNotFound(queue_name, name_taken=True)
        value = Raw(value) if isinstance(value, bytes) and queue.codec != "bytes" else value
        if isinstance(queue, FifoQueue):
            return queue.enqueue(value, delay=delay, due=due)
        return queue.push(value, priority, delay=delay, due=due)

    def pop_many(
        self,
        queue_name: str,
        n: int,
        *,
        end: str = "min",
        reason: str = "",
        expect: str | None = None,
        expect_id: int | None = None,
    ) -> list[Popped]:
        """Take items into the trash."""
        _refuse_condition(expect)
        body = {"end": end, "n": n, "keep": self._keep, "reason": reason}
        queue = self.catalog.queue(queue_name)
        found = self._write_to(queue, expect_id, "POST", "act", "pop", body=body)["items"]
        return [Popped(item=item_of(shape, queue.config), trash_id=shape["trash_id"]) for shape in found]

    def pick(self, queue_name: str, item_ids: Sequence[str], *, expect_id: int | None = None, **_: Any) -> Selection:
        """Return items of any state with their etags."""
        config, picked, missing = self.catalog.queue(queue_name).config, list[Picked](), list[str]()
        for item_id in item_ids:
            path = ("queues", queue_name, "items", item_id)
            try:
                shape = self._connection.call(Call(method="GET", path=path, headers=_meant(expect_id)))
            except ItemNotFound:
                missing.append(item_id)
            else:
                picked.append(Picked(item=item_of(shape, config), etag=shape["etag"]))
        return Selection(picked=tuple(picked), missing=tuple(missing))

    def edit_item(
        self,
        queue_name: str,
        item_id: str,
        value: Any,
        *,
        expect: bytes | str,
        etag: str | None = None,
        reason: str = "",
        expect_id: int | None = None,
    ) -> Changed:
        """Give an item another value. An etag is of what was seen; rules of redaction may have hidden its value."""
        encoded = encoded_by_person(value, self.catalog.queue(queue_name).config.values)
        if etag is None:
            etag = self._unless_changed(queue_name, item_id, expect, expect_id)
        body = {"value_base64": base64.b64encode(encoded).decode(), "reason": reason}
        matching = {"If-Match": f'"{etag}"'}
        return _changed(
            self._write("PATCH", queue_name, "items", item_id, expect_id=expect_id, body=body, headers=matching)
        )

    def delete_items(self, queue_name: str, item_ids: Sequence[str], **options: Any) -> Changed:
        """Put items into the trash."""
        return self._act("delete", queue_name, item_ids, **options)

    def move_items(self, queue_name: str, item_ids: Sequence[str], to: str, **options: Any) -> Changed:
        """Move items to another queue."""
        return self._act("move", queue_name, item_ids, to=to, **options)

    def reprioritize(self, queue_name: str, item_ids: Sequence[str], **options: Any) -> Changed:
        """Give items another priority or place."""
        return self._act("reprioritize", queue_name, item_ids, **options)

    def promote(self, queue_name: str, item_ids: Sequence[str], **options: Any) -> Changed:
        """Make delayed items ready now."""
        return self._act("promote", queue_name, item_ids, **options)

    def reschedule(self, queue_name: str, item_ids: Sequence[str], **options: Any) -> Changed:
        """Give delayed items another due time."""
        return self._act("reschedule", queue_name, item_ids, **options)

    def retry_dead(self, queue_name: str, item_ids: Sequence[str], **options: Any) -> Changed:
        """Return dead items to their places."""
        return self._act("retry", queue_name, item_ids, **options)

    def release(self, queue_name: str, item_ids: Sequence[str], **options: Any) -> Changed:
        """Take leased items back from their workers."""
        return self._act("release", queue_name, item_ids, **options)

    # Targets

    def set_targets(
        self, pattern: str, *, expect: Mapping[str, float] | None = None, reason: str = "", **limits: float | None
    ) -> str:
        """Set the limits of a pattern."""
        body = {**limits, "expect": expect, "reason": reason}
        return str(self._connection.write("PUT", "targets", pattern, body=body)["pattern"])

    def remove_targets(self, pattern: str, *, expect: Mapping[str, float] | None = None, reason: str = "") -> None:
        """Remove a pattern with its limits."""
        _refuse_condition(expect)
        self._connection.write("DELETE", "targets", pattern, query={"reason": reason})

    # Bulk jobs: the site runs them

    def begin_bulk(
        self,
        act: str,
        queue_name: str,
        *,
        query: Query | None = None,
        state: str = "ready",
        low: Priority | None = None,
        high: Priority | None = None,
        total: int | None = None,
        concerned: int | None = None,
        expect_depth: int | None = None,
        tolerance: int = 0,
        reason: str = "",
        expect_id: int | None = None,
        **how: Any,
    ) -> Job:
        """Begin a bulk job on all items that match a query, or of a state; the site counts them and runs it."""
        asked = {name: value for name, value in how.items() if value is not None}
        body = {
            "action": act,
            "query": shape_of_query(query or Query(state=state, low=low, high=high)),
            "expected": expect_depth,
            "reason": reason,
            **asked,
        }
        return job_of(self._post(queue_name, "bulk", expect_id=expect_id, **body))

    def run_bulk(self, job_id: str, *, progress: Callable[[Job], bool] | None = None, **_: Any) -> Job:
        """Wait until the site has done the rest of a job; `progress` is called now and then: False stops waiting."""
        rest = FIRST_REST
        while (job := self.job(job_id)).running and (progress is None or progress(job)):
            time.sleep(rest)
            rest = min(1.0, rest * 2)
        return job

    def cancel_bulk(self, job_id: str, *, reason: str = "") -> Job:
        """End a job after the chunk that is being done."""
        return job_of(self._connection.write("DELETE", "jobs", job_id, query={"reason": reason}))

    def resume_bulk(self, job_id: str, *, reason: str = "") -> Job:
        """Let a job go on that was canceled or has failed."""
        return job_of(self._connection.write("POST", "jobs", job_id, "resume", body={"reason": reason}))

    def job(self, job_id: str, **_: Any) -> Job:
        """Return a job as it is now."""
        return job_of(self._connection.get("jobs", job_id))

    def jobs(self, limit: int = 50, **_: Any) -> list[Job]:
        """Return jobs, the newest first."""
        return [job_of(shape) for shape in self._connection.get("jobs", limit=limit)["jobs"]]

    def running_jobs(self, **_: Any) -> list[Job]:
        """Return the jobs that have not ended, the oldest first."""
        return [job_of(shape) for shape in self._connection.get("jobs", running="true")["jobs"]]

    def undo(self, action_id: str, *, partial: bool = False, reason: str = "") -> Undone:
        """Undo an action; a bulk job is undone by a job of the site."""
        found = self._connection.write("POST", "undo", action_id, body={"partial": partial, "reason": reason})
        return Undone(
            queue=found["queue"],
            count=found["items"],
            skipped=found["skipped"],
            item=self._back(found["queue"], found["item"]),
            trash_id=found["trash_id"],
            job=None if found["job"] is None else job_of(found["job"]),
        )

    # Inside

    def _back(self, name: str, item_id: str | None) -> Item | None:
        """Return the item that is back. None where it cannot be read: the undo is done."""
        with suppress(QueueError, StoreError):
            return None if item_id is None else self.catalog.queue(name).find(item_id)
        return None

    def _unless_changed(self, name: str, item_id: str, expect: bytes | str, expect_id: int | None) -> str:
        """Return the etag of an item that has the value that was seen, or that of this digest."""
        picked = self.pick(name, [item_id], expect_id=expect_id).picked
        if not picked:
            raise ItemNotFound("The item is not in the queue: it was taken, or was never there.")
        item = picked[0].item
        if (digest(item.raw) if isinstance(expect, str) else item.raw) != expect:
            raise ValueChanged("The item has another value now than the one you saw: nothing was changed.", item)
        return picked[0].etag

    def _act(self, verb: str, queue_name: str, item_ids: Sequence[str], **options: Any) -> Changed:
        expect_id = options.pop("expect_id", None)
        moment = either(options.pop("delay", None), options.pop("due", None))
        body = {key: value for key, value in options.items() if value is not None}
        if isinstance(moment, timedelta):
            body["delay"] = moment.total_seconds()
        elif moment is not None:
            body["due_at"] = text_of(moment)
        if verb == "delete":
            body["keep"] = self._keep
        return _changed(self._post(queue_name, "act", expect_id=expect_id, action=verb, ids=list(item_ids), **body))

    def _post(self, name: str, *what: str, expect_id: int | None = None, **body: Any) -> Any:
        return self._write("POST", name, *what, expect_id=expect_id, body=body)

    def _write_to(self, queue: AnyQueue, expect_id: int | None, method: str, *what: str, **rest: Any) -> Any:
        """Change something of a queue that was read first, as a read after the change may fail."""
        expect_id = queue.id if expect_id is None else expect_id
        return self._write(method, queue.name, *what, expect_id=expect_id, **rest)

    def _write(
        self,
        method: str,
        name: str,
        *what: str,
        expect_id: int | None = None,
        headers: Mapping[str, str] | None = None,
        **rest: Any,
    ) -> Any:
        """Change something of a queue once; if another one has the name by now, raise `QueueNotFound`."""
        headers = {**(headers or {}), **_meant(expect_id)}
        return self._connection.call(Call.writing(method, "queues", name, *what, headers=headers, **rest))


def _meant(expect_id: int | None) -> dict[str, str]:
    """Return the header that says which queue of the name is meant."""
    return {} if expect_id is None else {"PQ-Queue-ID": str(expect_id)}


def _with_config(queue: AnyQueue, config: Config) -> AnyQueue:
    """Return a queue with the config that it has now."""
    queue.opened.settle(config.encode())
    return queue


def _changed(found: Mapping[str, Any]) -> Changed:
    return Changed(count=found["items"], skipped=found["skipped"], trash_id=found["trash_id"])


def _refuse_condition(*conditions: object) -> None:
    """Raise `LocalStoreOnly` for a condition that the HTTP API would not compare."""
    if any(condition is not None for condition in conditions):
        raise LocalStoreOnly("This condition needs the store itself: a server does not compare it.")
