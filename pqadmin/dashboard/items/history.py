"""What is known of one item besides itself: its timeline and attempts, and where it went when it is gone.

The timeline is put together from the item, the log of its attempts and the audit. What none of them tells is left out.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from pqadmin.accounts.scope import Scope
from pqadmin.dashboard.jobs.words import job_url, title
from pqadmin.display import format as write
from pqadmin.display.addresses import item_url, queue_url
from pqadmin.display.error_text import error_text, redacted
from pqadmin.display.redaction import NOTHING, Redaction
from pqadmin.display.values import masked
from pqadmin.display.words import item_state_word, verb_words
from pqadmin.pages import visibility
from pqadmin.store import get_store, store_now
from queues import Attempt, AuditEntry, Item, Job, RecordPage, TrashEntry
from queues.admin import minted_at, parse_item_id, to_ms
from queues.errors import QueueError, QueueNotFound, display_name

#: Actions on an item that its page shows, the audit has them all; and bulk jobs that are asked about it.
SHOWN = 10
#: Trash entries looked through for an item that an act took.
_TRASH = 50
#: Bulk jobs looked through for one that took an item.
_JOBS = 50
#: An act's trash entry and its audit entry are minted within a moment of each other.
_APART = timedelta(seconds=10)
#: A person's act on a lease and the attempt that it began or ended are written by one transaction.
_TOGETHER = timedelta(seconds=2)
#: Actions after which an item may be gone.
_TAKING = {
    "pop_min": gettext_lazy("%(by)s popped it from the min end, %(at)s."),
    "pop_max": gettext_lazy("%(by)s popped it from the max end, %(at)s."),
    "dequeue": gettext_lazy("%(by)s dequeued it, %(at)s."),
    "delete": gettext_lazy("%(by)s deleted it, %(at)s."),
    "ack": gettext_lazy("%(by)s said that it is done, %(at)s."),
    "purge": gettext_lazy("%(by)s purged the queue, %(at)s."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """Where an item went, as far as is known."""

    words: str
    #: Where to go on, to the item or to the queue that it was moved to; empty when there is nothing.
    label: str = ""
    link: str = ""
    #: The item was seen there.
    there: bool = False
    #: What it can be restored from; empty when it cannot.
    trash_id: str = ""
    #: Items that the restoring brings back, this one among them.
    count: int = 1
    #: The item as the trash has it, and the rules of redaction for it.
    item: Item | None = None
    redact: tuple[str, ...] = ()


#: What bulk jobs do to an item that stays in its queue.
_CHANGING = ("reprioritize", "promote", "retry", "release")


def history_of(
    item_id: str, may: Scope, item: Item | None = None, rules: Redaction = NOTHING, *, queue_id: int | None = None
) -> dict[str, Any]:
    """Return an item's timeline as far as `may` sees it, newest first, and whether the audit has more.

    `item` is the item as it is in the queue of `queue_id`, or as it was when an action took it: without it only what
    people did is known.
    """
    page = _entries(item_id, may)
    acts = [_line(entry) for entry in reversed(page.entries)]
    lines: list[dict[str, Any]] = []
    if item is not None and item.foreign is None:
        pushed = any(entry.verb in ("push", "enqueue") for entry in page.entries)
        lines += _own_lines(item, rules, pushed=pushed)
        # Of one moment, what a person did comes behind what the item tells.
        acts = [*([] if queue_id is None else _job_lines(item, queue_id, may, rules)), *acts]
        acts = [act for act in acts if not _told(act, lines)]
    lines += acts
    lines.sort(key=lambda line: line["at"])
    return {"lines": lines[::-1], "audited": bool(page.entries), "more": page.cursor is not None}


def _told(act: dict[str, Any], lines: Sequence[dict[str, Any]]) -> bool:
    """Write what a person did to a lease into the line that the item has of it; return whether it has one."""
    fit = [
        line
        for line in lines
        if line.get("verb") == act["verb"]
        and "via" not in line
        and (act["verb"] == "release" or line["by"] == act["by"])
        and (line["began"] == act["began"] if "began" in act else abs(line["at"] - act["at"]) <= _TOGETHER)
    ]
    if not fit:
        return False
    # Of one moment, the line with the same reason, or else the last.
    line = min(reversed(fit), key=lambda line: (line.get("reason") != act["reason"], abs(line["at"] - act["at"])))
    details, worker = line["details"], line["by"]
    if worker != act["by"]:
        details = _("%(attempt)s of %(worker)s") % {"attempt": details, "worker": worker}
    details = " · ".join(filter(None, [details, act["details"]]))
    line |= {**act, "at": line["at"], "what": line["what"], "details": details}
    return True


def attempts_of(item: Item, rules: Redaction, told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the attempts of an item for its page, newest first; what rules hide of their errors is redacted.

    `told` is the item's timeline, which has what a person took back from its worker.
    """
    back = {line["attempt"]: line["by"] for line in told["lines"] if "attempt" in line and "via" in line}
    return [
        {
            "number": one.number,
            "worker": write.visible(one.worker),
            "at": one.ended_at,
            "took": write.age(max(0.0, (one.ended_at - one.began_at).total_seconds())),
            "what": _end_words(one, back.get(one.number)),
            "error": error_text(one.error, rules),
            "traceback": "\n".join(map(write.visible, redacted(one.traceback, rules).rstrip().split("\n"))),
        }
        for one in reversed(item.attempt_log)
    ]


#: How an attempt ended.
_ENDS = {
    "released": gettext_lazy("released"),
    "expired": gettext_lazy("lost the lease: it expired"),
    "died": gettext_lazy("released; the item died"),
    "expired, died": gettext_lazy("lost the lease: it expired; the item died"),
}


def _end_words(one: Attempt, by: str | None) -> str:
    """Say how an attempt ended; `by` is the person that released it."""
    if by is None or by == write.shorten(write.visible(one.worker), 60):
        return str(_ENDS[_end_of(one)])
    words = _("taken back by %(by)s; the item died") if one.died else _("taken back by %(by)s")
    return words % {"by": by}


def _end_of(one: Attempt) -> str:
    return ("expired, died" if one.expired else "died") if one.died else "expired" if one.expired else "released"


def _own_lines(item: Item, rules: Redaction, *, pushed: bool) -> list[dict[str, Any]]:
    """Return the lines that the item itself tells; `pushed`: the audit tells of the push."""
    lines = []
    if item.pushed_at is not None and not pushed:
        lines.append(_own(item.pushed_at, verb_words("push")))
    for one in item.attempt_log:
        number = _("attempt %(n)s") % {"n": write.number(one.number)}
        lines.append(_own(one.began_at, verb_words("lease"), one.worker, number) | {"verb": "lease"})
        ended = _own(one.ended_at, str(_ENDS[_end_of(one)]), one.worker, number)
        ended |= {} if one.expired else {"verb": "release", "began": one.began_at, "attempt": one.number}
        lines.append(ended | {"reason": write.shorten(error_text(one.error, rules), 200)})
    if item.state == "leased" and item.leased_at is not None:
        number = _("attempt %(n)s") % {"n": write.number(item.attempts)}
        lines.append(_own(item.leased_at, verb_words("lease"), item.worker, number) | {"verb": "lease"})
    elif item.finished_at is not None:
        logged = [one.number for one in item.attempt_log[-1:]]  # of a lease that expired before it was acknowledged
        if item.leased_at is not None and item.attempts not in logged:
            number = _("attempt %(n)s") % {"n": write.number(item.attempts)}
            lines.append(_own(item.leased_at, verb_words("lease"), item.worker, number) | {"verb": "lease"})
        lines.append(_own(item.finished_at, item_state_word(item.state), item.worker))
    elif item.state == "delayed" and item.due_at is not None:
        lines.append(_own(item.due_at, _("due")))
    elif item.state == "dead" and item.died_at is not None and not any(one.died for one in item.attempt_log[-1:]):
        dead = _own(item.died_at, str(_ENDS["died"]), item.worker)  # as a release without a log left it
        lines.append(dead | {"reason": write.shorten(error_text(item.reason, rules), 200)})
    return lines


def _own(at: datetime, what: str, by: str = "", details: str = "") -> dict[str, Any]:
    return {"at": at, "by": write.shorten(write.visible(by), 60), "what": what, "details": details}


def _job_lines(item: Item, queue_id: int, may: Scope, rules: Redaction) -> list[dict[str, Any]]:
    """Return a line for each bulk job that moved the item here, or changed it here."""
    actions = get_store().actions("")

    def reaches(job: Job) -> bool:
        here = job.to_id if job.act == "move" else job.queue_id if job.act in _CHANGING else None
        pushed = item.pushed_at is not None and item.pushed_at <= (job.ended_at or store_now())
        return pushed and here == queue_id and visibility.sees_job(may, job)

    lines = []
    for job in actions.job_page(limit=SHOWN, visible=reaches).entries:
        changed = actions.changed_by(job, item)
        if changed or (changed is None and _fits(job, item, rules)):
            at = item.ready_at if job.act != "reprioritize" and _ready_within(job, item) else job.began_at
            details = _("by a bulk job") if changed else _("probably by a bulk job")
            link = {"job": title(job), "job_url": job_url(job.id)}
            told: dict[str, Any] = {
                "via": job.via,
                "verb": job.act,
                "reason": write.shorten(write.visible(job.reason), 200),
            } | link
            if job.act == "release":  # of the item's leases that one which the job ended
                told["began"] = actions.lease_released_by(job, item)
            lines.append(_own(at or job.began_at, verb_words(job.act), job.by, details) | told)
    return lines


def _fits(job: Job, item: Item, rules: Redaction) -> bool:
    """Say whether an item is as a job left its items, where no log tells."""
    if job.undo is not None:
        return False
    if job.act == "move":
        return _ready_within(job, item)
    shown = partial(masked, rules=rules) if rules else None
    at_priority = job.priority is not None and item.priority == job.priority
    return at_priority and item.state == job.state and job.wanted.says(item.raw, shown=shown)


def _ready_within(job: Job, item: Item) -> bool:
    """Say whether an item became ready while a job ran."""
    began, ended = job.started_at or job.began_at, job.ended_at or store_now()
    return item.ready_at is not None and began <= item.ready_at <= ended


def latest(item_id: str, may: Scope) -> AuditEntry | None:
    """Return the last act that changed something about an item, as far as `may` sees it; None when unknown."""
    return next((entry for entry in _entries(item_id, may).entries if entry.verb != "reveal"), None)


def _entries(item_id: str, may: Scope) -> RecordPage[AuditEntry]:
    return get_store().audit.entries(item=item_id, limit=SHOWN, seen=partial(visibility.seen_entry, may))


def verb_of(entry: AuditEntry) -> str:
    """Return what an act did to an item: undoing a push deletes it."""
    return "delete" if entry.verb == "undo" and (entry.before or {}).get("act") == "push" else entry.verb


#: How a program finished an item.
_FINISHED = {
    "acknowledged": gettext_lazy("%(by)s acknowledged it, %(at)s."),
    "popped": gettext_lazy("%(by)s popped it, %(at)s."),
}


def finished(queue: str, item_id: str, may: Scope) -> Item | None:
    """Return the record of a finished item; None where there is none, or where a person acted on the item later."""
    with suppress(QueueNotFound):  # deleted meanwhile
        item, last = get_store().queue(queue).find_finished(item_id), latest(item_id, may)
        if item is not None and item.finished_at is not None and (last is None or last.at <= item.finished_at):
            return item
    return None


def of_finished(item: Item, redact: tuple[str, ...]) -> Whereabouts:
    """Say what finished an item of which a record is kept."""
    assert item.finished_at is not None
    by = write.shorten(write.visible(item.worker), 60) or _("A program")
    who = {"by": by, "at": write.moment(item.finished_at)}
    return Whereabouts(words=str(_FINISHED[item.state]) % who, item=item, redact=redact)


def whereabouts(queue_id: int, item_id: str, may: Scope) -> Whereabouts | None:
    """Say where an item went that is not in its queue; None when neither the audit nor the trash knows."""
    last = latest(item_id, may)
    if last is not None and last.verb == "move":
        return _moved(last.after or {}, item_id, _who(last))
    if last is None or (verb := verb_of(last)) not in _TAKING:
        return _by_bulk_job(queue_id, item_id, may, last)
    words = str(_TAKING[verb]) % _who(last)
    kept = _in_trash(last, queue_id, item_id)
    if kept is None:
        return Whereabouts(words=words)
    words += " " + _("It is in the trash.")
    return Whereabouts(words=words, trash_id=kept.id, count=last.count, item=kept.item, redact=kept.redact)


def _by_bulk_job(queue_id: int, item_id: str, may: Scope, last: AuditEntry | None) -> Whereabouts | None:
    """Say which bulk job may have taken an item, and which has where it is in the queue that the job moved to.

    What ended before the last act on the item in the queue of the job has not taken it.
    """
    visible = None if may.everything else partial(visibility.sees_job, may)
    rand = parse_item_id(item_id)
    minted = None if rand is None else minted_at(rand)
    maybe: Whereabouts | None = None
    for job in get_store().actions("").job_page(limit=_JOBS, visible=visible).entries:
        if job.queue_id != queue_id or job.undo or minted is None or minted > (job.ended_at or store_now()):
            continue
        if last is not None and last.queue == job.queue and job.ended_at is not None and job.ended_at <= last.at:
            continue
        who = {"by": write.shorten(write.visible(job.by), 60), "at": write.moment(job.began_at)}
        if job.act == "move" and (moved := _moved({"to": job.to}, item_id, who)).there:
            return moved
        if job.act in ("move", "delete") and job.done and maybe is None:
            words = _("An act of %(by)s on many items, begun %(at)s, may have taken it.") % who
            maybe = Whereabouts(words=words, label=_("To the bulk job"), link=job_url(job.id))
    return maybe


def _moved(after: Mapping[str, Any], item_id: str, who: Mapping[str, str]) -> Whereabouts:
    to = after.get("to")
    if to is None:
        return Whereabouts(words=_("%(by)s moved it to a queue that you may not see, %(at)s.") % who)
    values = {**who, "to": write.shorten(display_name(to), 80)}
    words = _("%(by)s moved it to %(to)s, %(at)s.") % values
    with suppress(QueueError):
        if get_store().queue(to).find(item_id) is not None:
            return Whereabouts(words=words, label=_("To the item"), link=item_url(to, item_id), there=True)
    return Whereabouts(words=words, label=_("To that queue"), link=queue_url(to))


def _in_trash(entry: AuditEntry, queue_id: int, item_id: str) -> TrashEntry | None:
    """Return the trash entry of what this act took; None when it cannot be restored any more."""
    after = to_ms(entry.at + _APART).to_bytes(6, "big").hex() + "f" * 28
    for kept in get_store().trash.entries(limit=_TRASH, after=after).entries:
        if kept.at < entry.at - _APART:
            break
        if kept.queue_id != queue_id or kept.by != entry.actor or kept.count != entry.count:
            continue
        if kept.item.id == item_id if kept.item is not None else kept.act == verb_of(entry):
            return kept
    return None


def _line(entry: AuditEntry) -> dict[str, Any]:
    return {
        "at": entry.at,
        "by": write.shorten(write.visible(entry.actor), 60),
        "via": entry.via,
        "verb": entry.verb,
        "what": verb_words(entry.verb),
        "details": " · ".join(_details(entry)),
        "reason": write.shorten(write.visible(entry.reason), 200),
    }


def _details(entry: AuditEntry) -> Sequence[str]:
    before, after, parts = entry.before or {}, entry.after or {}, []
    if entry.queue is not None and "to" in after:
        source, to = (write.shorten(display_name(name), 40) for name in (entry.queue, after["to"]))
        parts.append(_("%(source)s → %(to)s") % {"source": source, "to": to})
    for name, words, write_it in (
        ("priority", _("priority %(old)s → %(new)s"), write.priority_short),
        ("size", _("%(old)s → %(new)s"), write.size),
    ):
        old, new = before.get(name), after.get(name)
        if new is not None and old is not None and old != new:
            parts.append(words % {"old": write_it(old), "new": write_it(new)})
    if entry.count > 1:
        others = ngettext("with %(n)s other item", "with %(n)s other items", entry.count - 1)
        parts.append(others % {"n": write.number(entry.count - 1)})
    return parts


def _who(entry: AuditEntry) -> dict[str, str]:
    return {"by": write.shorten(write.visible(entry.actor), 60), "at": write.moment(entry.at)}
