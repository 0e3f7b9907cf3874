"""What a person's scope leaves of lists and acts: other people's queues are not there, by name, count or suggestion."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from pqadmin.accounts.rights import Right, RightMissing
from pqadmin.accounts.scope import Scope, scope_of
from pqadmin.display import format as write
from pqadmin.store import get_store
from queues import AuditEntry, Job, Queue, TrashEntry
from queues.admin import canonical_name
from queues.errors import JobNotFound, QueueError, QueueNotFound, TrashNotFound, display_name

#: Actions on people and on how the site guards itself: for admins.
PEOPLE_VERBS = frozenset(
    {
        "create_person",
        "change_role",
        "add_grant",
        "remove_grant",
        "deactivate_person",
        "reactivate_person",
        "reset_password",
        "change_person",
        "delete_person",
        "create_token",
        "revoke_token",
        "create_group",
        "change_group",
        "delete_group",
    }
)
#: The share of a confirmed depth, and the number of items, by which it may differ when an act begins.
_TOLERATED_SHARE, _TOLERATED = 10, 10
#: Where a record names other queues than its own.
_NAMED = ("to", "name")


class NotThere(QueueError):
    """Items cannot be brought to a queue, as the person may only look at it."""


class NotYours(QueueError):
    """A queue cannot get a name that its maker may not act on."""


def tolerated(depth: int) -> int:
    """Return by how many items a queue may differ from the depth that was confirmed."""
    return max(_TOLERATED, depth // _TOLERATED_SHARE)


def scope(request: HttpRequest) -> Scope:
    """Return what the user of a request may do."""
    return scope_of(request.user)


def names(request: HttpRequest, right: Right, *, but: str = "", limit: int = 300) -> list[str]:
    """Return names of queues on which the person has the right, by name."""
    may = scope(request)
    return list(islice((name for name in get_store().directory() if name != but and may.can(right, name)), limit))


def target(may: Scope, name: str) -> Queue:
    """Return the queue that items shall be brought to; raise `QueueNotFound`, `NotThere`."""
    name = canonical_name(name)
    if not may.sees(name):
        raise QueueNotFound(name)
    try:
        queue = get_store().queue(name)
    except QueueNotFound as missing:
        raise QueueNotFound(name, tuple(may.of_those(missing.suggestions))) from None
    if not may.can(Right.ACT, name):
        words = _("You may look at %(queue)s, but not act on it. An admin can grant you the role operator there.")
        raise NotThere(words % {"queue": write.shorten(display_name(name), 80)})
    return queue


def may_name(may: Scope, name: str) -> bool:
    """Say whether a queue may be given this name: its maker acts on it afterwards."""
    return may.can(Right.ACT, canonical_name(name))


def granted(may: Scope, right: Right) -> str:
    """Return the globs of the queues on which the person was granted the right, to be read."""
    return write.shorten(", ".join(glob for glob, role in may.grants if role.has(right)), 300)


def new_name(may: Scope, name: str) -> None:
    """Raise `NotYours` unless the person may act on a queue of this name, whether there is one or not."""
    if not may_name(may, name):
        words = _("You may act on queues with these names: %(globs)s. An admin can grant you more.")
        raise NotYours(words % {"globs": granted(may, Right.ACT)})


def seen_entry(may: Scope, entry: AuditEntry, *, administers: bool = True) -> AuditEntry | None:
    """Return what the person sees of an act: nothing of other people's queues, not even their names.

    `administers` is false of a token that may not see people and tokens, whatever its owner may.
    """
    if entry.verb in PEOPLE_VERBS:
        return entry if administers and may.can(Right.ADMIN, "") else None
    if may.everything:
        return entry
    if entry.queue is None:
        return None
    others = {str(named[key]) for named in (entry.before or {}, entry.after or {}) for key in _NAMED if key in named}
    if not any(may.sees(name) for name in {entry.queue, *others}):
        return None
    return replace(
        entry,
        queue=entry.queue if may.sees(entry.queue) else None,
        before=_seen_names(may, entry.before),
        after=_seen_names(may, entry.after),
    )


def seen_entries(may: Scope, entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """Return what the person sees of acts, in their order."""
    return [seen for entry in entries if (seen := seen_entry(may, entry)) is not None]


def seen_trash(may: Scope, entry: TrashEntry) -> TrashEntry:
    """Return what the person sees of something in the trash of a queue that is seen."""
    return entry if entry.to is None or may.sees(entry.to) else replace(entry, to=None)


def known_to(may: Scope) -> Mapping[int, str]:
    """Return the names that queues have now by their numbers, to ask many entries of. None where none are asked."""
    if may.role.has(Right.ACT):
        return {}
    return {queue_id: name for name, queue_id in get_store().directory().items()}


def may_undo(may: Scope, entry: TrashEntry, known: Mapping[int, str]) -> bool:
    """Say whether the person may undo what an entry of the trash holds: that acts on all of its queues.

    `known` is what `known_to` returns.
    """
    queues = ((entry.queue_id, entry.queue), (None, entry.to), *((number, None) for number in entry.reaches))
    return _acts_on(may, queues, known)


def undoable(may: Scope, trash_id: str) -> TrashEntry:
    """Return an entry of the trash that the person may undo; raise `TrashNotFound`, `RightMissing`."""
    gone = _("Nothing of this id is in the trash; its time may have run out.")
    try:
        entry = get_store().trash.get(trash_id)
    except TrashNotFound:
        raise TrashNotFound(gone) from None  # in the same words as of what is hidden
    if not may.sees(entry.queue):
        raise TrashNotFound(gone)
    if not may_undo(may, entry, known_to(may)):
        raise RightMissing(Right.ACT, may.role_on(entry.queue), entry.queue)
    return entry


def sees_job(may: Scope, job: Job) -> bool:
    """Return whether the person sees all queues of a job."""
    return all(may.sees(name) for name in (job.queue, job.to) if name is not None)


def job(may: Scope, job_id: str) -> Job:
    """Return a job that the person sees; raise `JobNotFound`."""
    gone = _("No bulk job has this id; its time may have run out.")
    try:
        found = get_store().actions("").job(job_id)
    except JobNotFound:
        raise JobNotFound(gone) from None
    if not sees_job(may, found):
        raise JobNotFound(gone)
    return found


def steerable(may: Scope, job_id: str) -> Job:
    """Return a job that the person may cancel, resume or undo; raise `JobNotFound`, `RightMissing`."""
    found = job(may, job_id)
    if not may_steer(may, found):
        raise RightMissing(Right.ACT, may.role_on(found.queue), found.queue)
    return found


def may_steer(may: Scope, job: Job) -> bool:
    """Say whether the person may cancel, resume or undo a job."""
    return _acts_on(may, ((job.queue_id, job.queue), (job.to_id, job.to)), known_to(may))


def _acts_on(may: Scope, queues: Sequence[tuple[int | None, str | None]], known: Mapping[int, str]) -> bool:
    """Say whether the person may act on the queues, by their names then and by those now."""
    if may.role.has(Right.ACT):
        return True
    asked = {name for _, name in queues if name is not None}
    asked |= {known[queue_id] for queue_id, _ in queues if queue_id is not None and queue_id in known}
    return all(may.can(Right.ACT, name) for name in asked)


def _seen_names(may: Scope, details: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if details is None:
        return None
    return {key: value for key, value in details.items() if key not in _NAMED or may.sees(str(value))}
