"""What a person does on a remote store: the site records it under the name of the token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from queues.actions.actions import Actions
from queues.actions.items import Changed
from queues.actions.purge import Purged
from queues.actions.take import Popped
from queues.actions.undo import Undone
from queues.context import StoreContext
from queues.errors import LocalStoreOnly
from queues.model.codec import Raw
from queues.model.item import Item
from queues.model.moment import either
from queues.queue import AnyQueue, FifoQueue
from queues.queue_catalog import QueueCatalog
from queues.remote.connection import Call, Connection


@dataclass(frozen=True, slots=True)
class Means:
    """What actions of a remote store go by."""

    connection: Connection
    catalog: QueueCatalog


class RemoteActions(Actions):
    """The actions of the token's owner. Those that the HTTP API has; the rest raise `LocalStoreOnly`.

    So do conditions that the API does not compare: `expect` of settings and ends, and `expect_id`, except of a pause.
    `expect_depth` is compared with the tolerance of pages: 10 items, or a tenth.
    """

    def __init__(self, context: StoreContext, means: Means, *, actor: str, via: str, keep: Any = None) -> None:
        super().__init__(context, actor=actor, via=via)
        if keep is not None:
            raise LocalStoreOnly("A server keeps what is removed for as long as its trash does.")
        self._means = means

    # Queues

    def create_queue(self, name: str, **options: Any) -> AnyQueue:
        """Create a queue."""
        made: AnyQueue = self._means.catalog.create_queue(name, **options)
        return made

    def attach(self, name: str, *, reason: str = "", **options: Any) -> AnyQueue:
        """Attach a subspace as a queue."""
        return self._means.catalog.attach(name, **options)

    def detach(self, name: str, *, expect_id: int | None = None, reason: str = "") -> None:
        """Forget an attached queue."""
        _refuse_condition(expect_id)
        self._post(name, "detach", reason=reason)

    def pause(self, name: str, *, reason: str, until: datetime | None = None, expect_id: int | None = None) -> None:
        """Stop taking from a queue."""
        self._post(name, "pause", reason=reason, until=_time(until), queue_id=expect_id)

    def resume(self, name: str, *, reason: str = "", expect_id: int | None = None) -> None:
        """Let items be taken again."""
        self._post(name, "resume", reason=reason, queue_id=expect_id)

    def rename_queue(self, old: str, new: str, *, expect_id: int | None = None) -> AnyQueue:
        """Give a queue another name."""
        _refuse_condition(expect_id)
        return self._means.catalog.rename_queue(old, new)

    def configure(  # type: ignore[override]
        self,
        name: str,
        *,
        reason: str = "",
        expect: Mapping[str, Any] | None = None,
        expect_id: int | None = None,
        **changes: Any,
    ) -> AnyQueue:
        """Change settings of a queue."""
        _refuse_condition(expect, expect_id)
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in changes.items()}
        self._send("PATCH", "queues", name, body={**plain, "reason": reason})
        return self._means.catalog.queue(name)

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
        _refuse_condition(expect_id)
        query = {"confirm": confirm, "expected": expect_depth, "reason": reason}
        return str(self._send("DELETE", "queues", name, query=query)["trash_id"])

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
        _refuse_condition(expect_id)
        found = self._post(name, "purge", confirm=confirm, expected=expect_depth, reason=reason)
        return Purged(
            count=found["items"],
            skipped=found["skipped"],
            trash_ids=tuple(found["trash_ids"]),
            finished=found["finished"],
        )

    # Items

    def push(
        self,
        name: str,
        value: Any,
        *,
        priority: Any = None,
        delay: Any = None,
        due: datetime | None = None,
        expect_id: int | None = None,
        reason: str = "",
    ) -> Item:
        """Push one item, as programs do."""
        _refuse_condition(expect_id)
        queue = self._means.catalog.queue(name)
        value = Raw(value) if isinstance(value, bytes) and queue.codec != "bytes" else value
        if isinstance(queue, FifoQueue):
            return queue.enqueue(value, delay=delay, due=due)
        return queue.push(value, priority, delay=delay, due=due)

    def pop_many(
        self, name: str, n: int, *, end: str = "min", reason: str = "", expect: str | None = None
    ) -> list[Popped]:
        """Take items for good, as programs do: a server keeps none of them in its trash."""
        _refuse_condition(expect)
        queue = self._means.catalog.queue(name)
        items = queue.dequeue_many(n) if isinstance(queue, FifoQueue) else queue.pop_many(n, end=end)
        return [Popped(item=item, trash_id=None) for item in items]

    def delete_items(self, name: str, ids: Sequence[str], **options: Any) -> Changed:  # type: ignore[override]
        """Put items into the trash."""
        return self._act("delete", name, ids, **options)

    def move_items(self, name: str, ids: Sequence[str], to: str, **options: Any) -> Changed:  # type: ignore[override]
        """Move items to another queue."""
        return self._act("move", name, ids, to=to, **options)

    def reprioritize(self, name: str, ids: Sequence[str], **options: Any) -> Changed:  # type: ignore[override]
        """Give items another priority or place."""
        return self._act("reprioritize", name, ids, **options)

    def promote(self, name: str, ids: Sequence[str], **options: Any) -> Changed:  # type: ignore[override]
        """Make delayed items ready now."""
        return self._act("promote", name, ids, **options)

    def reschedule(self, name: str, ids: Sequence[str], **options: Any) -> Changed:  # type: ignore[override]
        """Give delayed items another due time."""
        return self._act("reschedule", name, ids, **options)

    def retry_dead(self, name: str, ids: Sequence[str], **options: Any) -> Changed:  # type: ignore[override]
        """Return dead items to their places."""
        return self._act("retry", name, ids, **options)

    def release(self, name: str, ids: Sequence[str], **options: Any) -> Changed:  # type: ignore[override]
        """Take leased items back from their workers."""
        return self._act("release", name, ids, **options)

    def undo(self, action_id: str, *, partial: bool = False, reason: str = "") -> Undone:
        """Undo an action; a bulk job is undone by a job of the site."""
        found = self._send("POST", "undo", action_id, body={"partial": partial, "reason": reason})
        return Undone(queue=found["queue"], count=found["items"], skipped=found["skipped"], trash_id=found["trash_id"])

    # Inside

    def _act(self, verb: str, name: str, ids: Sequence[str], **options: Any) -> Changed:
        _refuse_condition(options.pop("expect_id", None))
        moment = either(options.pop("delay", None), options.pop("due", None))
        body = {key: value for key, value in options.items() if value not in (None, "")}
        if isinstance(moment, timedelta):
            body["delay"] = moment.total_seconds()
        elif moment is not None:
            body["due_at"] = _time(moment)
        found = self._post(name, "act", action=verb, ids=list(ids), **body)
        return Changed(count=found["items"], skipped=found["skipped"], trash_id=found["trash_id"])

    def _post(self, name: str, what: str, **body: Any) -> Any:
        return self._send("POST", "queues", name, what, body=body)

    def _send(self, method: str, *path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        return self._means.connection.call(Call.writing(method, *path, body=body, query=query or {}))


def _refuse_condition(*conditions: object) -> None:
    """Raise `LocalStoreOnly` for a condition that the HTTP API would not compare."""
    if any(condition is not None for condition in conditions):
        raise LocalStoreOnly("This condition needs the store itself: a server does not compare it.")


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="milliseconds")
