"""Actions on a queue as a whole: create, attach, pause, rename, configure, delete."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from queues.actions.audited_action import Action, action
from queues.errors import ConfirmationMismatch, DepthChanged, NotForAttached, SettingsChanged, display_name
from queues.model.codec import CodecName
from queues.model.names import canonical
from queues.model.priority import Priority
from queues.model.settings import Settings, check_settings, plain, settings_of
from queues.queue import AnyQueue, Queue


@action
def create_queue(
    action: Action,
    name: str,
    *,
    kind: str = "priority",
    priority_type: str = "int",
    bands: Sequence[Priority] | None = None,
    codec: CodecName = "bytes",
) -> AnyQueue:
    """Create a queue; raise `QueueExists`."""
    queue = action.catalog.create_queue(
        name, kind=kind, priority_type=priority_type, bands=bands, codec=codec, tr=action.tr
    )
    action.record(queue, "create", count=0, after=_made_of(queue))
    return queue


@action
def attach(
    action: Action,
    name: str,
    *,
    prefix: bytes | tuple[Any, ...],
    kind: str = "priority",
    priority_type: str = "int",
    codec: CodecName = "bytes",
    reason: str = "",
) -> AnyQueue:
    """Attach a subspace that other programs write, as a queue of this name."""
    queue = action.catalog.attach(
        name, prefix=prefix, kind=kind, priority_type=priority_type, codec=codec, tr=action.tr
    )
    action.record(
        queue, "attach", count=0, reason=reason, after={"prefix": queue.config.attached_prefix.hex(), **_made_of(queue)}
    )
    return queue


@action
def detach(action: Action, name: str, *, expect_id: int | None = None, reason: str = "") -> None:
    """Forget an attached queue. Its items stay where they are, and the trash keeps those that were removed."""
    queue = action.queue(name, expect_id)
    action.catalog.detach(name, tr=action.tr)
    action.record(queue, "detach", count=0, reason=reason, before={"prefix": queue.config.attached_prefix.hex()})


@action
def pause(
    action: Action,
    queue_name: str,
    *,
    reason: str,
    until: datetime | None = None,
    expect_id: int | None = None,
) -> None:
    """Stop taking from a queue, for a reason; `until` is when it resumes by itself."""
    queue = action.queue(queue_name, expect_id)
    queue.pause(reason=reason, until=until, by=action.actor, tr=action.tr)
    after = None if until is None else {"until": until.isoformat()}
    action.record(queue, "pause", count=0, reason=reason, after=after)


@action
def resume(action: Action, queue_name: str, *, reason: str = "", expect_id: int | None = None) -> None:
    """Let items of a paused queue be taken again; of another queue, do nothing."""
    queue = action.queue(queue_name, expect_id)
    pause = queue.config.pause
    if pause is not None:
        queue.resume(tr=action.tr)
        action.record(queue, "resume", count=0, reason=reason, before={"paused_by": pause.by, "reason": pause.reason})


@action
def rename_queue(action: Action, old: str, new: str, *, expect_id: int | None = None) -> AnyQueue:
    """Give a queue another name; with its own name, do nothing."""
    before = action.queue(old, expect_id)
    queue = action.catalog.rename_queue(old, new, tr=action.tr)
    if queue.name != before.name:
        action.record(queue, "rename", count=0, before={"name": before.name}, after={"name": queue.name})
    return queue


@action
def configure(
    action: Action,
    queue_name: str,
    *,
    expect: Mapping[str, Any] | None = None,
    expect_id: int | None = None,
    reason: str = "",
    **changes: Unpack[Settings],
) -> AnyQueue:
    """Change settings of a queue; the rest stay.

    `expect` holds settings as they were shown: if another person has changed one of these, `SettingsChanged` says
    which, and nothing is changed. Raises `BadSetting`, `NotForAttached`.
    """
    queue = action.queue(queue_name, expect_id)
    now = settings_of(queue.config)
    _compare(queue.name, {} if expect is None else check_settings(queue.config, expect), now)
    wanted = check_settings(queue.config, changes)
    changed = {name: value for name, value in wanted.items() if value != now[name]}
    if changed:
        queue.configure(tr=action.tr, **changed)
        before = {name: now[name] for name in changed}
        action.record(queue, "configure", count=0, reason=reason, before=plain(before), after=plain(changed))
    return action.queue(queue_name)


@action
def delete_queue(
    action: Action,
    name: str,
    *,
    confirm: str,
    expect_depth: int | None = None,
    tolerance: int = 0,
    expect_id: int | None = None,
    reason: str = "",
) -> str:
    """Move a queue with all its items into the trash and return the trash id.

    `confirm` is the name as typed, else `ConfirmationMismatch`; a depth that differs by more than `tolerance` from
    `expect_depth` raises `DepthChanged`.
    """
    queue = action.queue(name, expect_id)
    if canonical(confirm) != canonical(name):
        raise ConfirmationMismatch(
            "To delete this queue, type its name: {queue}. Nothing was deleted.", queue=display_name(name)
        )
    if queue.attached:
        raise NotForAttached(queue.name, "detach it instead, its items stay where they are.")
    # Without a confirmed depth it is only recorded: concurrent pushes and pops do not conflict.
    depth = queue.depth(tr=action.tr.snapshot if expect_depth is None else action.tr)
    if expect_depth is not None and abs(depth - expect_depth) > tolerance:
        raise DepthChanged(
            "{queue} holds {depth:,} items now, not the {seen:,} you confirmed: nothing was deleted.",
            depth,
            queue=display_name(name),
            depth=depth,
            seen=expect_depth,
        )
    trash_id = action.catalog.delete_queue(name, by=action.actor, tr=action.tr)
    action.record(queue, "delete_queue", count=depth, reason=reason, before={"depth": depth})
    return trash_id


def _compare(queue_name: str, seen: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    changed = {name: (value, now[name]) for name, value in seen.items() if value != now[name]}
    if changed:
        raise SettingsChanged(
            "Settings of {queue} were changed since you saw them: {names}. Nothing was changed now.",
            changed,
            queue=display_name(queue_name),
            names=", ".join(sorted(changed)),
        )


def _made_of(queue: Queue) -> dict[str, str]:
    """Return what an audit record says of a new queue."""
    codec = {} if queue.codec == "bytes" else {"codec": queue.codec}
    of_priorities = {} if queue.kind == "fifo" else {"priority_type": queue.priority_type}
    return {"kind": queue.kind, **of_priorities, **codec}
