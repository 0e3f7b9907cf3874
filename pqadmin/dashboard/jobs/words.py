"""Jobs in words: action, status, progress and time left."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from pqadmin.display import format as write
from pqadmin.display.addresses import item_url, queue_url
from pqadmin.display.errors import said
from pqadmin.display.words import item_state_word
from queues import Job, Query
from queues.admin import BULK_PUSH, time_of_ms, to_ms
from queues.errors import display_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A job as pages show it."""

    job: Job
    url: str
    queue_url: str
    to_url: str
    title: str
    #: Which items, in a few words each.
    scope: list[str]
    #: The shape beside the word: running, waiting, done, canceled or failed.
    look: str
    word: str
    #: How far: 0 to 1000, None when unknown.
    parts: int | None
    percent: str
    progress: str
    speed: str
    left: str
    took: str
    done: str
    skipped: str
    failure: str
    failed_url: str
    can_resume: bool
    can_undo: bool


def tell(job: Job, now: datetime) -> Told:
    """Put a job into words."""
    waiting = job.running and not held(job, now)
    parts = _parts(job)
    return Told(
        job=job,
        url=job_url(job.id),
        queue_url=queue_url(job.queue),
        to_url="" if job.to is None else queue_url(job.to),
        title=title(job),
        scope=_scope(job),
        look="waiting" if waiting else job.status,
        word=_status_word(job, waiting),
        parts=parts,
        percent="" if parts is None else _("%(n)s %%") % {"n": f"{parts / 10:.0f}" if parts < 1000 else "100"},
        progress=_progress(job),
        speed=_("%(rate)s/s") % {"rate": write.rate(job.speed)} if job.running and job.speed and not waiting else "",
        left=_left(job, waiting),
        took=write.age(_seconds(job, now)),
        done=write.number(job.done),
        skipped=write.number(job.skipped) if job.skipped else "",
        failure=_failure(job),
        failed_url="" if job.failed_at is None else item_url(job.queue, job.failed_at),
        can_resume=job.status in ("canceled", "failed") and job.undo is None,
        can_undo=job.of is None and job.done > 0,
    )


def job_url(job_id: str) -> str:
    """Return the address of a job's page."""
    return reverse("dashboard:job", args=[job_id])


def held(job: Job, now: datetime) -> bool:
    """Return whether a process runs it now."""
    return job.held_ms > to_ms(now)


def title(job: Job) -> str:
    """Say what a job does."""
    queue, to = (write.shorten(display_name(name), 80) for name in (job.queue, job.to or ""))
    values = {"state": item_state_word(job.state), "queue": queue, "to": to}
    match job.act:
        case "push":
            words = ngettext("Push %(n)s item to %(queue)s", "Push %(n)s items to %(queue)s", job.total or 0)
            return words % (values | {"n": write.number(job.total)})
        case "undo":
            return _("Undo in %(queue)s") % values
        case "move":
            return _("Move %(state)s items from %(queue)s to %(to)s") % values
        case "delete":
            return _("Delete %(state)s items of %(queue)s") % values
        case "promote":
            return _("Promote delayed items of %(queue)s") % values
        case "retry":
            return _("Retry dead items of %(queue)s") % values
        case "release":
            return _("Take back leased items of %(queue)s") % values
    if job.place == "front":
        return _("Bring %(state)s items of %(queue)s to the front") % values
    if job.place == "back":
        return _("Bring %(state)s items of %(queue)s to the back") % values
    if job.shift is not None:
        by = f"{job.shift:+}" if isinstance(job.shift, int | float) else str(job.shift)
        return _("Shift the priority of %(state)s items of %(queue)s by %(by)s") % (values | {"by": by})
    return _("Set the priority of %(state)s items of %(queue)s to %(priority)s") % (
        values | {"priority": write.priority_short(job.priority)}
    )


def _status_word(job: Job, waiting: bool) -> str:
    if waiting:
        return pgettext("job", "waiting for a server")
    return {
        "running": pgettext("job", "running"),
        "done": pgettext("job", "done"),
        "canceled": pgettext("job", "canceled"),
        "failed": pgettext("job", "failed"),
    }.get(job.status, job.status)


def _parts(job: Job) -> int | None:
    if job.status == "done":
        return 1000
    if not job.total:
        return None
    return min(999, job.met * 1000 // job.total)


def _progress(job: Job) -> str:
    met, total = write.number(job.met), write.number(job.total)
    if job.total is None:
        return ngettext("%(met)s item looked at", "%(met)s items looked at", job.met) % {"met": met}
    return _("%(met)s of %(total)s") % {"met": met, "total": total}


def _left(job: Job, waiting: bool) -> str:
    seconds = job.seconds_left()
    if seconds is None or waiting:
        return ""
    return _("about %(age)s") % {"age": write.age(seconds) if seconds >= 10 else f"{max(1, round(seconds))} s"}


def _failure(job: Job) -> str:
    """Say why it has failed; what a refusal says of the whole is not so of a job, which did what it did."""
    words = said(job.failure)
    for end in (_("Nothing was changed."), _("Nothing was moved.")):
        words = words.removesuffix(end).rstrip()
    return words


def _seconds(job: Job, now: datetime) -> float | None:
    if job.started_at is None:
        return None
    return max(timedelta(0), (job.ended_at or now) - job.started_at).total_seconds()


def _scope(job: Job) -> list[str]:
    if job.act != BULK_PUSH:
        return scope_words(job.wanted)
    pushed = [_("what was pasted or uploaded, in its order")]
    if job.ready_ms is not None:
        pushed.append(_("due %(at)s") % {"at": write.moment(time_of_ms(job.ready_ms))})
    return pushed


def scope_words(query: Query) -> list[str]:
    """Say in a few words each which items a query means, beyond their state."""
    found = []
    if query.text:
        found.append(_("value contains “%(text)s”") % {"text": _cut(query.text)})
    if query.item_id:
        found.append(_("id contains %(id)s") % {"id": _cut(query.item_id)})
    low, high = (None if edge is None else write.priority_short(edge) for edge in (query.low, query.high))
    if low is not None and high is not None:
        found.append(
            _("priority %(low)s") % {"low": low}
            if low == high
            else _("priority %(low)s to %(high)s") % {"low": low, "high": high}
        )
    elif low is not None:
        found.append(_("priority %(low)s or larger") % {"low": low})
    elif high is not None:
        found.append(_("priority %(high)s or smaller") % {"high": high})
    if query.since is not None:
        found.append(_("pushed since %(at)s") % {"at": write.moment(query.since)})
    if query.until is not None:
        found.append(_("pushed until %(at)s") % {"at": write.moment(query.until)})
    return found


def _cut(text: str) -> str:
    return write.shorten(write.visible(text), 80)
