"""Bulk jobs in words: action, status, progress and time left; and those that run on one queue now."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from pqadmin.display import format as write
from pqadmin.display.addresses import item_url, queue_url
from pqadmin.display.error_text import redacted
from pqadmin.display.errors import said
from pqadmin.display.redaction import rules_of
from pqadmin.display.words import JOB_STATUS, item_state_word
from pqadmin.pages import visibility
from pqadmin.store import get_store, store_now
from queues import Job, Query, ReadTransaction
from queues.admin import BULK_PUSH, BULK_UNDO, time_of_ms, to_ms
from queues.errors import display_name

#: Jobs that are named; more are counted.
_NAMED = 3


def tell(job: Job, now: datetime) -> dict[str, Any]:
    """Put a job into words, for the templates."""
    waiting = job.running and job.held_ms <= to_ms(now)  # no process runs it
    parts = 1000 if job.status == "done" else min(999, job.met * 1000 // job.total) if job.total else None
    took = None if job.started_at is None else max(timedelta(0), (job.ended_at or now) - job.started_at).total_seconds()
    return {
        "job": job,
        "url": job_url(job.id),
        "queue_url": queue_url(job.queue),
        "to_url": "" if job.to is None else queue_url(job.to),
        "title": title(job),
        # Which items, in a few words each.
        "scope": _scope(job),
        # The shape beside the word: running, waiting, done, canceled or failed.
        "look": "waiting" if waiting else job.status,
        "word": pgettext("job", "waiting for a server") if waiting else str(JOB_STATUS.get(job.status, job.status)),
        # How far: 0 to 1000, None when unknown.
        "parts": parts,
        "percent": "" if parts is None else write.share((parts or min(job.met, 1)) / 1000),
        "progress": _progress(job),
        "speed": _("%(rate)s/s") % {"rate": write.rate(job.speed)} if job.running and job.speed and not waiting else "",
        "left": _left(job, waiting),
        "took": write.age(took),
        "done": write.number(job.done),
        "skipped": write.number(job.skipped) if job.skipped else "",
        "failure": _failure(job),
        "failed_url": "" if job.failed_at is None else item_url(job.queue, job.failed_at),
        "can_resume": job.status in ("canceled", "failed") and job.undo is None,
        "can_undo": job.done > 0 if job.of is None else job.lifted > 0 and not job.running,
    }


def job_url(job_id: str) -> str:
    """Return the address of a job's page."""
    return reverse("dashboard:job", args=[job_id])


def title(job: Job) -> str:
    """Say what a job does."""
    queue, to = (write.shorten(display_name(name), 80) for name in (job.queue, job.to or ""))
    values = {"state": item_state_word(job.state), "queue": queue, "to": to}
    if job.act == "push":
        words = ngettext("Push %(n)s item to %(queue)s", "Push %(n)s items to %(queue)s", job.total or 0)
        return words % (values | {"n": write.number(job.total)})
    if job.act in _TITLES:
        return str(_TITLES[job.act]) % values
    if job.place is not None:
        return str(_TITLES[job.place]) % values
    if job.shift is not None:
        by = f"{job.shift:+}" if isinstance(job.shift, int | float) else str(job.shift)
        return _("Shift the priority of %(state)s items of %(queue)s by %(by)s") % (values | {"by": by})
    priority = write.priority_short(job.priority)
    words = _("Set the priority of %(state)s items of %(queue)s to %(priority)s")
    return words % (values | {"priority": priority})


#: By the act; of a change of priorities, by the place.
_TITLES = {
    "undo": gettext_lazy("Undo in %(queue)s"),
    "move": gettext_lazy("Move %(state)s items from %(queue)s to %(to)s"),
    "delete": gettext_lazy("Delete %(state)s items of %(queue)s"),
    "promote": gettext_lazy("Promote delayed items of %(queue)s"),
    "retry": gettext_lazy("Retry dead items of %(queue)s"),
    "release": gettext_lazy("Take back leased items of %(queue)s"),
    "front": gettext_lazy("Bring %(state)s items of %(queue)s to the front"),
    "back": gettext_lazy("Bring %(state)s items of %(queue)s to the back"),
}


def _progress(job: Job) -> str:
    met = write.number(job.met)
    if job.total is None:
        return ngettext("%(met)s item looked at", "%(met)s items looked at", job.met) % {"met": met}
    return _("%(met)s of %(total)s") % {"met": met, "total": write.number(job.total)}


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


def _scope(job: Job) -> list[str]:
    if job.act != BULK_PUSH:
        return scope_words(job.wanted)
    pushed = [_("what was pasted or uploaded, in its order")]
    if job.ready_ms is not None:
        pushed.append(_("due %(at)s") % {"at": write.moment(time_of_ms(job.ready_ms))})
    return pushed


def scope_words(query: Query, redact: tuple[str, ...] = ()) -> list[str]:
    """Say in a few words each which items a query means, beyond their state; rules hide values in an error."""
    found = []
    if query.field:
        words = _("%(field)s is “%(text)s”") if query.exact else _("%(field)s contains “%(text)s”")
        found.append(words % {"field": query.field, "text": _cut(query.text)})
    elif query.text:
        dead = query.state == "dead"
        words = _("value or reason contains “%(text)s”") if dead else _("value contains “%(text)s”")
        found.append(words % {"text": _cut(query.text)})
    if query.error:
        found.append(_("dead by “%(error)s”") % {"error": _cut(redacted(query.error, rules_of(redact)))})
    if query.worker:
        found.append(_("held by “%(worker)s”") % {"worker": _cut(query.worker)})
    if query.item_id:
        found.append(_("id contains %(id)s") % {"id": _cut(query.item_id)})
    low, high = (None if edge is None else write.priority_short(edge) for edge in (query.low, query.high))
    if low is not None or high is not None:
        if high is None:
            words = _("priority %(low)s or larger")
        elif low is None:
            words = _("priority %(high)s or smaller")
        else:
            words = _("priority %(low)s") if low == high else _("priority %(low)s to %(high)s")
        found.append(words % {"low": low, "high": high})
    if query.since is not None:
        found.append(_("pushed since %(at)s") % {"at": write.moment(query.since)})
    if query.until is not None:
        found.append(_("pushed until %(at)s") % {"at": write.moment(query.until)})
    return found


def _cut(text: str) -> str:
    return write.shorten(write.visible(text), 80)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsHere:
    """The running bulk jobs of one queue, as one user sees them."""

    #: The newest first.
    told: tuple[dict[str, Any], ...] = ()
    #: How many more the user sees.
    more: int = 0
    #: One reaches a queue that the user does not see: no more is shown of it.
    unseen: bool = False
    #: Some may take or change present items; some add items.
    takes: bool = False
    brings: bool = False

    def __bool__(self) -> bool:
        return bool(self.told) or self.unseen


def jobs_here(request: HttpRequest, queue_id: int, *, tr: ReadTransaction | None = None) -> JobsHere:
    """Read the running bulk jobs that take items from a queue, change them or add some."""
    may, now = visibility.scope(request), store_now()
    running = get_store().actions(request.user.get_username()).running_jobs(tr=tr)
    here = [job for job in reversed(running) if queue_id in (job.queue_id, job.to_id)]
    seen = [job for job in here if visibility.sees_job(may, job)]
    return JobsHere(
        told=tuple(tell(job, now) for job in seen[:_NAMED]),
        more=max(0, len(seen) - _NAMED),
        unseen=len(seen) < len(here),
        takes=len(seen) < len(here) or any(_takes(job, queue_id) for job in seen),
        brings=any(job.act in (BULK_UNDO, BULK_PUSH) or job.to_id == queue_id for job in seen),
    )


def _takes(job: Job, queue_id: int) -> bool:
    return job.act == BULK_UNDO or (job.act != BULK_PUSH and job.queue_id == queue_id)
