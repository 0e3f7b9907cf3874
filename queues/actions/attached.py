"""Acts on attached queues: attach, detach, and purge, which takes chunk by chunk what others may be pushing among."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from queues.actions.actor import Acting, Note
from queues.attached_queue import AttachedQueue, Chunk, open_queue
from queues.errors import ConfirmationMismatch, Conflict, DepthChanged, NotAttached, TrashNotFound, display_name
from queues.kv.port import ReadTransaction, Transaction
from queues.model.names import canonical
from queues.queue import Queue
from queues.status.attached_counts import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """What a purge took."""

    count: int
    #: Items left where they are, because their keys are too long to be put back.
    skipped: int
    #: One entry for each chunk, for `put_back_items`.
    trash_ids: tuple[str, ...]
    #: All that was there when it began was gone through; False: it was told to stop, or failed, before.
    finished: bool = True
    #: What stopped it when some chunks were done already; what fails before the first is raised.
    failure: Exception | None = None


class AttachedActs(Acting):
    """The acts of one person on attached queues."""

    def attach(
        self,
        name: str,
        *,
        prefix: bytes | tuple[Any, ...],
        kind: str = "priority",
        priority_type: str = "int",
        reason: str = "",
    ) -> Queue:
        """Attach a subspace that others write, as a queue of this name."""

        def act(tr: Transaction, audit: Note) -> Queue:
            queue = self._catalog.attach(name, prefix=prefix, kind=kind, priority_type=priority_type, tr=tr)
            after = {"prefix": _hex(queue), "kind": kind, "priority_type": priority_type}
            audit(queue, "attach", count=0, reason=reason, after=after)
            return queue

        return self._act(act)

    def detach(self, name: str, *, expect_id: int | None = None, reason: str = "") -> None:
        """Forget an attached queue; its items stay where they are, and what was taken from it stays in the trash."""

        def act(tr: Transaction, audit: Note) -> None:
            queue = self._queue(tr, name, expect_id)
            self._catalog.detach(name, tr=tr)
            audit(queue, "detach", count=0, reason=reason, before={"prefix": _hex(queue)})

        self._act(act)

    def purge_attached(
        self,
        name: str,
        *,
        confirm: str,
        expect_depth: int | None = None,
        tolerance: int = 0,
        expect_id: int | None = None,
        reason: str = "",
        progress: Callable[[int], bool] | None = None,
    ) -> Purged:
        """Take every item that is in an attached queue now into the trash, chunk by chunk, each one transaction.

        `confirm` is the name as typed, else `ConfirmationMismatch`; a count further than `tolerance` from
        `expect_depth` raises `DepthChanged`. `progress` hears the items taken so far, 0 while they are counted, and
        says whether to go on. A failure after the first chunk is not raised but told in what is returned.
        """
        if canonical(confirm) != canonical(name):
            raise ConfirmationMismatch(
                "To purge this queue, type its name: {queue}. Nothing was taken.", queue=display_name(name)
            )
        queue = self._attached(name, expect_id)
        if expect_depth is not None:
            depth = queue.depth_unless(lambda: progress is not None and not progress(0))
            if depth is None:
                return Purged(count=0, skipped=0, trash_ids=(), finished=False)
            if abs(depth - expect_depth) > tolerance:
                raise DepthChanged(
                    "{queue} holds {depth:,} items now, not the {seen:,} you confirmed: nothing was taken.",
                    depth,
                    queue=display_name(name),
                    depth=depth,
                    seen=expect_depth,
                )
        step, after, last = Step(), None, queue.last_place()
        count, skipped, trash_ids = 0, 0, []
        finished, failure = last is None, None
        try:
            while last is not None:
                try:
                    trash_id, chunk = self._purge_chunk(queue, after, last, step.limit, reason)
                except Conflict:
                    if not step.too_much():  # others take these as fast as we do: smaller chunks meet fewer of them
                        raise
                    continue
                count, skipped = count + len(chunk.items), skipped + chunk.skipped
                if chunk.items:
                    trash_ids.append(trash_id)
                    step.took(len(chunk.items), sum(item.size for item in chunk.items))
                after = chunk.place
                finished = after is None or after >= last
                told_to_stop = progress is not None and not progress(count)
                if finished or told_to_stop:
                    break
        except Exception as error:
            if not trash_ids:
                raise
            failure = error  # what was taken is told all the same: it lies in the trash under these ids only
        return Purged(
            count=count,
            skipped=skipped,
            trash_ids=tuple(filter(None, map(self._kept, trash_ids))),
            finished=finished,
            failure=failure,
        )

    def put_back_items(self, trash_id: str) -> int:
        """Put the items that one chunk of a purge took back under their same keys, and return how many."""

        def act(tr: Transaction, audit: Note) -> int:
            if self._trash.get(trash_id, tr=tr).what != "items":
                raise TrashNotFound("This is no chunk of a purge.")
            restored = self._trash.restore(tr, trash_id)
            audit(open_queue(self._context, restored.config), "put_back", count=restored.count)
            return restored.count

        return self._act(act)

    def _attached(self, name: str, expect_id: int | None) -> AttachedQueue:
        def look(tr: ReadTransaction) -> Queue:
            return self._queue(tr, name, expect_id)

        with self._catalog.suggesting():
            queue = self._context.read(look, None)
        if not isinstance(queue, AttachedQueue):
            raise NotAttached("{queue} is this store's own queue, nothing attached.", queue=display_name(name))
        return queue

    def _purge_chunk(
        self, queue: AttachedQueue, after: bytes | None, last: bytes, limit: int, reason: str
    ) -> tuple[bytes, Chunk]:
        trash_id = self._context.id_generator.new_id()

        def act(tr: Transaction, audit: Note) -> Chunk:
            chunk = queue.take_chunk(tr, after=after, last=last, limit=limit)
            if chunk.items:
                self._trash.put_items(tr, trash_id, queue.config, chunk.items, by=self._actor)
                audit(queue, "purge", count=len(chunk.items), reason=reason)
            return chunk

        return trash_id, self._act(act)


def _hex(queue: Queue) -> str:
    assert queue.config.prefix is not None
    return queue.config.prefix.hex()
