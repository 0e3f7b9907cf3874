"""Purges: all items of a queue into the trash, in one transaction, or chunk by chunk from an attached queue."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from queues.actions.audited_action import Action, Frame, find_queue
from queues.errors import ConfirmationMismatch, Conflict, DepthChanged, NotAttached, display_name
from queues.items import generations
from queues.items.state_machine import Change
from queues.items.stored_item import attached as stored_attached
from queues.keys.queue_keys import IN_GENERATIONS
from queues.model.config import check_text
from queues.model.names import canonical
from queues.model.range_in_steps import StepSize
from queues.operations import attached
from queues.operations.attached import Chunk
from queues.queue import AnyQueue
from queues.trash.entries import suffix_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """What a purge removed."""

    count: int
    #: Items left where they are, because their keys are too long to be returned.
    skipped: int
    #: The entries of the trash, each for `undo`: one for each chunk of an attached queue.
    trash_ids: tuple[str, ...]
    #: False: the purge was stopped, or failed, before it had gone through all items that were there when it began.
    finished: bool = True
    #: The error that stopped it after the first chunk; an earlier one is raised.
    failure: Exception | None = None


def purge(
    frame: Frame,
    name: str,
    *,
    confirm: str,
    expect_depth: int | None = None,
    tolerance: int = 0,
    expect_id: int | None = None,
    reason: str = "",
) -> Purged:
    """Move every ready and delayed item of a queue into the trash. Leased and dead ones stay.

    Costs the same at any depth, and so does `undo` of its trash entry: there is one entry, or two while the items of an
    earlier undo are being merged. `confirm` is the name as typed, else `ConfirmationMismatch`; a depth (ready and
    delayed) that differs by more than `tolerance` from `expect_depth` raises `DepthChanged`. The depth is of the moment
    when the action began: an item that is pushed while it commits either stays or is in the trash as well.
    """
    _confirm(name, confirm)
    check_text(reason)
    frame.refuse_repeated()
    if _found(frame, name, expect_id).attached:
        options: dict[str, Any] = {"expect_depth": expect_depth, "tolerance": tolerance, "expect_id": expect_id}
        return purge_attached(frame, name, confirm=confirm, reason=reason, **options)

    def act(action: Action) -> Purged:
        queue = action.queue(name, expect_id)
        if expect_depth is not None:
            now = sum(queue.depth(state, tr=action.tr.snapshot) for state in IN_GENERATIONS)
            _refuse_depth(name, now, expect_depth, tolerance)
        taken = generations.purge(action.tr, action.keyspace, queue.config)
        depth = sum(taken.values())
        trash_ids = action.context.id_generator.new_ids(len(taken)) if taken else []
        for trash_id, (generation, items) in zip(trash_ids, taken.items(), strict=True):
            action.trash.put_generation(action.tr, trash_id, queue.config, generation, depth=items, by=action.actor)
        if taken:
            action.record(queue, "purge", count=depth, reason=reason, before={"depth": depth})
        return Purged(count=depth, skipped=0, trash_ids=tuple(filter(None, map(action.kept, trash_ids))))

    return frame.run(act)


def purge_attached(
    frame: Frame,
    name: str,
    *,
    confirm: str,
    expect_depth: int | None = None,
    tolerance: int = 0,
    expect_id: int | None = None,
    reason: str = "",
    progress: Callable[[int], bool] | None = None,
) -> Purged:
    """Move all items that an attached queue has now into the trash, chunk by chunk. Each chunk is a transaction.

    `confirm` is the name as typed, else `ConfirmationMismatch`; a count that differs by more than `tolerance` from
    `expect_depth` raises `DepthChanged`. `progress` is called with the number of items so far, 0 while they are
    counted, and says whether to go on. A failure after the first chunk is returned, not raised.
    """
    _confirm(name, confirm)
    check_text(reason)
    frame.refuse_repeated()
    queue = _found(frame, name, expect_id)
    if not queue.attached:
        raise NotAttached("{queue} is this store's own queue, nothing attached.", queue=display_name(name))
    if expect_depth is not None:
        depth = attached.count_unless(queue.opened, lambda: progress is not None and not progress(0))
        if depth is None:
            return Purged(count=0, skipped=0, trash_ids=(), finished=False)
        _refuse_depth(name, depth, expect_depth, tolerance)
    step, after = StepSize(100, 1_000, 1_000_000), None
    last = frame.read(lambda tr: attached.last_place(tr, queue.opened))
    count, skipped, trash_ids = 0, 0, list[str | None]()
    finished, failure = last is None, None
    try:
        while last is not None:
            try:
                trash_id, chunk = _purge_chunk(frame, queue, after, last, step.limit, reason)
            except Conflict:
                if not step.too_much():  # other programs take these items as fast: smaller chunks conflict less
                    raise
                continue
            count, skipped = count + len(chunk.items), skipped + chunk.skipped
            if chunk.items:
                trash_ids.append(trash_id)
                step.took(len(chunk.items), sum(item.size for item in chunk.items))
            after = chunk.place
            finished = after is None or after >= last
            stopped = progress is not None and not progress(count)
            if finished or stopped:
                break
    except Exception as error:
        if not trash_ids:
            raise
        failure = error  # the result names the trash entries of the chunks that were done
    kept = tuple(filter(None, trash_ids))
    return Purged(count=count, skipped=skipped, trash_ids=kept, finished=finished, failure=failure)


def _purge_chunk(
    frame: Frame, queue: AnyQueue, after: bytes | None, last: bytes, limit: int, reason: str
) -> tuple[str | None, Chunk]:
    def act(action: Action) -> tuple[str | None, Chunk]:
        trash_id = action.new_id()
        chunk = attached.take_chunk(action.tr, queue.opened, after=after, last=last, limit=limit)
        if chunk.items:
            changes = [Change(stored_attached(suffix_of(item.id), item.raw), None) for item in chunk.items]
            action.trash.put_changes(action.tr, trash_id, queue.config, changes, by=action.actor, act="purge")
            action.record(queue, "purge", count=len(chunk.items), reason=reason)
        return action.kept(trash_id), chunk

    return frame.run(act)


def _found(frame: Frame, name: str, expect_id: int | None) -> AnyQueue:
    with frame.catalog.suggesting():
        return frame.read(lambda tr: find_queue(frame.context, tr, name, expect_id))


def _confirm(name: str, typed: str) -> None:
    if canonical(typed) != canonical(name):
        raise ConfirmationMismatch(
            "To purge this queue, type its name: {queue}. Nothing was taken.", queue=display_name(name)
        )


def _refuse_depth(name: str, depth: int, expect: int | None, tolerance: int) -> None:
    if expect is not None and abs(depth - expect) > tolerance:
        raise DepthChanged(
            "{queue} holds {depth:,} items now, not the {seen:,} you confirmed: nothing was taken.",
            depth,
            queue=display_name(name),
            depth=depth,
            seen=expect,
        )
