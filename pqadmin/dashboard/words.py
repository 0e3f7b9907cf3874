"""Codes in words: states, outlooks, problems, verbs. Codes are the monitor's and the audit's; words are translated."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from pqadmin.dashboard import format as write
from pqadmin.live.outlook import Outlook, Problem, State
from pqadmin.live.rows import Row
from queues.config import Pause


def state_word(state: State) -> str:
    """Return the word that stands beside a state's shape."""
    return {
        State.OK: pgettext("state", "ok"),
        State.EMPTY: pgettext("state", "empty"),
        State.GROWING: pgettext("state", "growing"),
        State.STALLED: pgettext("state", "stalled"),
        State.PAUSED: pgettext("state", "paused"),
    }[state]


def outlook_words(row: Row) -> str:
    """Say where the ready items are heading."""
    if row.outlook is Outlook.DRAINING and row.clears_in is not None:
        return _("clears in %(age)s") % {"age": write.age(row.clears_in)}
    if row.outlook is Outlook.GROWING and row.grows_by is not None:
        return _("grows %(rate)s/s") % {"rate": write.rate(row.grows_by)}
    return {
        Outlook.UNKNOWN: _("no flow seen"),
        Outlook.EMPTY: pgettext("outlook", "empty"),
        Outlook.STEADY: _("keeps up"),
        Outlook.DRAINING: _("draining"),
        Outlook.GROWING: _("will not drain"),
        Outlook.STALLED: _("stalled"),
        Outlook.PAUSED: pgettext("outlook", "paused"),
    }[row.outlook]


def state_words(row: Row, now: datetime) -> str:
    """Say what state a queue is in and why, in one line."""
    words = [_state_and_reason(row, now)]
    if row.status.kind == "fifo":
        words.append(_("fifo"))
    if row.status.closed:
        words.append(_("closed for pushes"))
    if row.problem is Problem.DRIFT or row.status.drift:
        words.append(_("counts drifted"))
    return " · ".join(words)


def _state_and_reason(row: Row, now: datetime) -> str:
    pause = row.status.pause
    if row.state is State.PAUSED and pause is not None:
        return pause_words(pause, now)
    if row.state is State.STALLED and row.quiet_since is not None:
        return _("stalled · nothing left for %(age)s") % {"age": write.age_since(row.quiet_since, now)}
    if row.state is State.GROWING and row.grows_by is not None:
        return _("growing by %(rate)s/s") % {"rate": write.rate(row.grows_by)}
    return state_word(row.state)


def pause_words(pause: Pause, now: datetime) -> str:
    """Say who paused a queue, when, why and until when."""
    values = {
        "by": write.visible(pause.by) or _("somebody"),
        "age": write.age_since(pause.since, now),
        "reason": write.shorten(write.visible(pause.reason), 120),
    }
    words = (
        _("paused by %(by)s, %(age)s ago: %(reason)s") % values
        if pause.reason
        else _("paused by %(by)s, %(age)s ago") % values
    )
    if pause.until is not None:
        words += " · " + _("resumes %(at)s") % {"at": write.clock(pause.until)}
    return words


def problem_words(problems: dict[str, int]) -> str:
    """Count the queues that need a look, by reason."""
    parts = []
    if n := problems.get(Problem.STALLED):
        parts.append(_("%(n)s stalled") % {"n": write.number(n)})
    if n := problems.get(Problem.GROWING):
        parts.append(_("%(n)s growing") % {"n": write.number(n)})
    if n := problems.get(Problem.DRIFT):
        parts.append(_("%(n)s drifted") % {"n": write.number(n)})
    return " · ".join(parts) or _("nothing stalled or growing")


def verb_words(verb: str) -> str:
    """Return an audited verb in words; one of a later release as it is."""
    return {
        "create": _("created the queue"),
        "push": _("pushed"),
        "enqueue": _("enqueued"),
        "pop_min": _("popped min"),
        "pop_max": _("popped max"),
        "dequeue": _("dequeued"),
        "put_back": _("put back"),
        "pause": _("paused"),
        "resume": _("resumed"),
        "rename": _("renamed"),
        "delete_queue": _("deleted the queue"),
        "restore_queue": _("restored the queue"),
        "import": _("imported"),
    }.get(verb, verb)
