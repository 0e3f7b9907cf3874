"""What an act on items would do, told beside its form while it is filled in; nothing is changed."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pqadmin.dashboard.items.action_forms import MoveForm, ReprioritizeForm, RescheduleForm
from pqadmin.display import format as write
from pqadmin.pages import exposed_values, visibility
from pqadmin.pages.refusals import NoTarget, explain
from pqadmin.store import get_store, store_now
from queues import Item, QueueStatus
from queues.admin import Position, ReprioritizePreview
from queues.errors import BadPriority, QueueError, QueueNotFound, StoreError, display_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What would happen, or why it would not."""

    lines: tuple[str, ...]
    bad: bool = False


def preview_of(
    form: forms.Form, status: QueueStatus, items: list[Item], request: HttpRequest, *, asked: str
) -> Preview | None:
    """Return what an act with this form would do; None for acts that have nothing to choose.

    `asked` is “auto” when no button was pressed: what is not typed yet is no mistake then.
    """
    if not items or (asked == "auto" and not _typed(form)):
        return None
    wrong = [str(error) for name, errors in form.errors.items() if name != "reason" for error in errors]
    if wrong:
        return Preview(lines=tuple(wrong), bad=True)
    acts = get_store().actions(request.user.get_username())
    ids = [item.id for item in items]
    try:
        if isinstance(form, MoveForm):
            return Preview(lines=_move(request, status, form, items, ids))
        if isinstance(form, ReprioritizeForm):
            foreseen = acts.preview_reprioritize(status.name, ids, expect_id=status.id, **form.change)
            return Preview(lines=_reprioritize(foreseen, items, fifo=status.kind == "fifo"))
        if isinstance(form, RescheduleForm):
            ready = all(item.state == "ready" for item in items)
            return Preview(lines=_reschedule(form.arguments, store_now(), ready=ready))
    except (QueueError, StoreError) as error:
        refusal = explain(NoTarget(error.words) if isinstance(error, QueueNotFound) else error)
        return Preview(lines=(f"{refusal.title}. {refusal.text}",), bad=True)
    return None


def _typed(form: forms.Form) -> bool:
    """Say whether the field that the chosen way needs has something in it."""
    if isinstance(form, MoveForm):
        needed = "to"
    elif isinstance(form, ReprioritizeForm):
        needed = {"shift": "shift", "front": "", "back": ""}.get(str(form["how"].value() or ""), "priority")
    else:
        needed = "at" if form["when"].value() == "at" else "amount"
    return not needed or needed not in form.fields or bool(form[needed].value())


def _move(
    request: HttpRequest, status: QueueStatus, form: MoveForm, items: list[Item], ids: list[str]
) -> tuple[str, ...]:
    to = form.cleaned_data["to"]
    target, acts = visibility.target(visibility.scope(request), to), get_store().actions(request.user.get_username())
    priority = form.priority_for(target)
    there = target.status(preview=0)
    values = {
        "queue": write.shorten(display_name(to), 80),
        "n": write.number(there.totals.ready),
        "type": there.priority_type,
    }
    try:
        arrival = acts.preview_move(status.name, ids, to, priority=priority, expect_id=status.id)
    except BadPriority:
        if priority is not None:
            raise
        words = _("The priorities of %(queue)s are %(type)s, these are not: say which one they get there.")
        raise BadPriority(words % values) from None
    if there.attached:
        lines = [_("%(queue)s is attached: other programs take its items.") % values]
    elif target.kind == "fifo":
        lines = [_("%(queue)s is a fifo queue with %(n)s ready.") % values]
    else:
        lines = [_("%(queue)s holds %(n)s ready; its priorities are %(type)s.") % values]
    if there.closed:
        lines.append(_("It is closed for pushes: nothing can be moved there."))
    elif there.pause is not None:
        lines.append(_("It is paused: what comes in waits there."))
    if warning := exposed_values.warning(get_store().queue(status.name), target):
        lines.append(warning)
    if arrival.priorities and None not in arrival.priorities:
        kept = priority is None and arrival.priorities == tuple(item.priority for item in items)
        words = _("Each keeps its priority.") if kept else _("All have priority %(priority)s there.")
        if len(items) == 1:
            words = _("The item has priority %(priority)s there.")
        lines.append(words % {"priority": write.priority_short(arrival.priorities[0])})
    if any(item.state == "delayed" for item in items):
        lines.append(_("What is delayed stays delayed."))
    if any(item.state == "dead" for item in items):
        lines.append(_("What was dead is ready there, with all its attempts before it."))
    return tuple(lines)


def _reprioritize(foreseen: ReprioritizePreview, items: list[Item], *, fifo: bool) -> tuple[str, ...]:
    n = len(foreseen.changes)
    ready = sum(then.state == "ready" for _now, then in foreseen.changes)
    if not n:
        return (_("Nothing would change: everything is as asked already."),)
    lines = []
    if n == 1 and not fifo:
        now, then = foreseen.changes[0]
        if now.priority != then.priority:
            values = {"now": write.priority_short(now.priority), "then": write.priority_short(then.priority)}
            lines.append(_("Priority %(now)s → %(then)s.") % values)
    if foreseen.first is None:
        lines.append(_("They are not ready: the priority counts once they are."))
    else:
        first = _between(foreseen.first, fifo=fifo)
        if n == 1:
            lines.append(first[:1].upper() + first[1:])
        else:
            lines.append(_("The first of them: %(where)s") % {"where": first})
            lines.append(_("The last of them: %(where)s") % {"where": _between(foreseen.last, fifo=fifo)})
        lines.append(_place(foreseen.was, foreseen.first, ready))
    if n < len(items):
        same = len(items) - n
        words = ngettext("%(n)s is as asked already.", "%(n)s are as asked already.", same)
        lines.append(words % {"n": write.number(same)})
    return tuple(filter(None, lines))


def _between(position: Position | None, *, fifo: bool) -> str:
    if position is None:
        return ""
    lower, higher = (
        None if item is None else _named(item, fifo=fifo)
        for item in (position.neighbors.lower, position.neighbors.higher)
    )
    if lower is None and higher is None:
        return _("the only one that is ready.")
    if lower is None:
        return _("first of all, before %(item)s.") % {"item": higher}
    if higher is None:
        return _("last of all, behind %(item)s.") % {"item": lower}
    return _("between %(lower)s and %(higher)s.") % {"lower": lower, "higher": higher}


def _named(item: Item, *, fifo: bool) -> str:
    """Name a neighbor by what every page of the queue shows."""
    words = _("the one pushed %(at)s") if fifo else _("priority %(priority)s (pushed %(at)s)")
    return words % {"priority": write.priority_short(item.priority), "at": write.clock(item.pushed_at)}


def _place(was: Position | None, will: Position, moving: int) -> str:
    values: dict[str, Any] = {"place": _nth(will), "of": write.number(will.of + moving)}
    if was is None:
        return _("By pop min it is number %(place)s of %(of)s.") % values
    return _("By pop min: number %(was)s of %(of)s now, number %(place)s then.") % (values | {"was": _nth(was)})


def _nth(position: Position) -> str:
    n = write.number(position.before + 1)
    return n if position.exact else _("about %(n)s") % {"n": n}


def _reschedule(arguments: dict[str, Any], now: datetime, *, ready: bool) -> tuple[str, ...]:
    due = arguments["due"] if "due" in arguments else now + arguments["delay"]
    if due <= now:
        passed = _("That moment has passed: nothing changes.")
        return (passed if ready else _("That moment has passed: it becomes ready at once."),)
    left = write.countdown((due - now).total_seconds())
    return (_("Due %(at)s, in %(left)s.") % {"at": write.moment_with_utc(due), "left": left},)
