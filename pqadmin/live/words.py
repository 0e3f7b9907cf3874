"""The words that the browser needs to put codes into the reader's language."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy

from pqadmin.display import format as write
from pqadmin.display.errors import said
from pqadmin.display.prefixes import prefix_text
from pqadmin.live.board.health import Outlook, Problem, State
from pqadmin.live.board.rows import Row
from pqadmin.live.board.sums import Attached
from queues import Pause


def words() -> dict[str, str]:
    """Return every word by its code; the same messages as `pqadmin.display.words` says."""
    return {
        "state-ok": pgettext("state", "ok"),
        "state-empty": pgettext("state", "empty"),
        "state-growing": pgettext("state", "growing"),
        "state-stalled": pgettext("state", "stalled"),
        "state-paused": pgettext("state", "paused"),
        "state-attached": pgettext("state", "attached"),
        "state-unreadable": pgettext("state", "unreadable"),
        "attached-title": _("The items are written by other programs; prefix %(prefix)s"),
        "counting": _("counting…"),
        "counted": _("counted %(age)s ago"),
        "countdown-in": _("in %(left)s"),
        "countdown-now": _("now"),
        "sum-attached": _("%(n)s attached"),
        "sum-uncounted": _("%(n)s not counted yet"),
        "stalled-for": _("stalled · nothing taken for %(age)s"),
        "growing-by": _("growing by %(rate)s/s"),
        "paused-why": _("paused by %(by)s, %(age)s ago: %(reason)s"),
        "paused": _("paused by %(by)s, %(age)s ago"),
        "paused-for-why": _("paused for %(age)s: %(reason)s"),
        "paused-for": _("paused for %(age)s"),
        "resumes": _("resumes %(at)s"),
        "fifo": _("fifo"),
        "closed": _("closed for pushes"),
        "drifted": _("counts drifted"),
        "staging": _("staging: one process takes for all"),
        "enqueue": _("Enqueue"),
        "delayed": _("delayed"),
        "leased": _("leased"),
        "dead": _("dead"),
        "outlook-unknown": _("no flow seen"),
        "outlook-empty": pgettext("outlook", "empty"),
        "outlook-steady": _("keeps up"),
        "outlook-draining": _("draining"),
        "outlook-growing": _("will not drain"),
        "outlook-stalled": _("stalled"),
        "outlook-paused": pgettext("outlook", "paused"),
        "outlook-attached": pgettext("outlook", "not ours to say"),
        "outlook-unreadable": pgettext("outlook", "not known"),
        "clears": _("clears in %(age)s"),
        "grows": _("grows %(rate)s/s"),
        "problem-unreadable": _("%(n)s unreadable"),
        "problem-stalled": _("%(n)s stalled"),
        "problem-growing": _("%(n)s growing"),
        "problem-drift": _("%(n)s drifted"),
        "problem-old": _("%(n)s waiting long"),
        "problem-dead": _("%(n)s with dead items"),
        "problem-paused": _("%(n)s paused"),
        "problem-none": _("no queue needs a look"),
        "unreadable": _("unreadable: %(reason)s"),
        "waits": _("oldest waits %(age)s"),
        "dead-items": _("%(n)s dead"),
        "sums-age": _("as of %(age)s ago"),
        "gone": _("gone"),
        "item-gone": _("no longer here"),
        "gone-title": _("This queue was deleted; these are its last numbers."),
        "fresh-live": _("live"),
        "fresh-live-title": _("What you see is the store's state now."),
        "fresh-stale": _("stale"),
        "fresh-stale-title": _("The server has not vouched for these numbers for a while."),
        "fresh-reconnecting": _("reconnecting"),
        "fresh-reconnecting-title": _("The connection is gone; these are the last numbers."),
        "fresh-store": _("store unreachable"),
        "fresh-internal": _("The server has an internal error; what is shown is old."),
        "fresh-signed-out": _("signed out"),
        "fresh-signed-out-title": _("Log in again to go on; these are the last numbers."),
        "fresh-outdated": _("reload the page"),
        "fresh-outdated-title": _("This page cannot be kept up to date; these are the last numbers."),
    }


#: Longest reason of a pause among other queues, in characters; the queue's own page tells all of it.
_REASON_WIDTH = 120

# Lazy: a page of a hundred rows looks up the words that it shows and no others.
_STATES = {
    State.OK: pgettext_lazy("state", "ok"),
    State.EMPTY: pgettext_lazy("state", "empty"),
    State.GROWING: pgettext_lazy("state", "growing"),
    State.STALLED: pgettext_lazy("state", "stalled"),
    State.PAUSED: pgettext_lazy("state", "paused"),
    State.ATTACHED: pgettext_lazy("state", "attached"),
    State.UNREADABLE: pgettext_lazy("state", "unreadable"),
}

_OUTLOOKS = {
    Outlook.UNKNOWN: gettext_lazy("no flow seen"),
    Outlook.EMPTY: pgettext_lazy("outlook", "empty"),
    Outlook.STEADY: gettext_lazy("keeps up"),
    Outlook.DRAINING: gettext_lazy("draining"),
    Outlook.GROWING: gettext_lazy("will not drain"),
    Outlook.STALLED: gettext_lazy("stalled"),
    Outlook.PAUSED: pgettext_lazy("outlook", "paused"),
    Outlook.ATTACHED: pgettext_lazy("outlook", "not ours to say"),
    Outlook.UNREADABLE: pgettext_lazy("outlook", "not known"),
}


def state_word(state: State) -> str:
    """Return the word that stands beside a state's shape."""
    return str(_STATES[state])


def outlook_words(row: Row) -> str:
    """Say where the ready items are heading."""
    if row.outlook is Outlook.DRAINING and row.clears_in is not None:
        return _("clears in %(age)s") % {"age": write.age(row.clears_in)}
    if row.outlook is Outlook.GROWING and row.grows_by is not None:
        return _("grows %(rate)s/s") % {"rate": write.rate(row.grows_by)}
    return str(_OUTLOOKS[row.outlook])


def state_words(row: Row, now: datetime, *, whole: bool = False) -> str:
    """Say what state a queue is in and why, in one line; a long reason is cut unless `whole`."""
    words = [_state_and_reason(row, now, whole=whole)]
    if row.problem is Problem.DRIFT or row.status.drift:
        words.append(_("counts drifted"))
    if Problem.OLD in row.problems and row.status.oldest is not None:
        words.append(_("oldest waits %(age)s") % {"age": write.age_since(row.status.oldest, now)})
    if Problem.DEAD in row.problems:
        words.append(_("%(n)s dead") % {"n": write.number(row.status.totals.dead)})
    if row.status.kind == "fifo":
        words.append(_("fifo"))
    if row.status.closed:
        words.append(_("closed for pushes"))
    if row.status.staging:
        words.append(_("staging: one process takes for all"))
    return " · ".join(words)


def _state_and_reason(row: Row, now: datetime, *, whole: bool) -> str:
    pause = row.status.pause
    if row.state is State.PAUSED and pause is not None:
        return pause_words(pause, now, whole=whole)
    if row.state is State.UNREADABLE:
        return _("unreadable: %(reason)s") % {"reason": said(row.status.unreadable)}
    if row.state is State.STALLED and row.quiet_since is not None:
        return _("stalled · nothing taken for %(age)s") % {"age": write.age_since(row.quiet_since, now)}
    if row.state is State.GROWING and row.grows_by is not None:
        return _("growing by %(rate)s/s") % {"rate": write.rate(row.grows_by)}
    return state_word(row.state)


def counted_words(counted_at: datetime | None, now: datetime) -> str:
    """Say how old the depth of an attached queue is."""
    if counted_at is None:
        return _("counting…")
    return _("counted %(age)s ago") % {"age": write.age_since(counted_at, now)}


def countdown_words(at: datetime, now: datetime) -> str:
    """Say how long it is until a moment, or that it has come."""
    left = (at - now).total_seconds()
    return _("in %(left)s") % {"left": write.countdown(left)} if left > 0 else _("now")


def attached_title(prefix: bytes | None) -> str:
    """Say what the mark of an attached queue means."""
    return _("The items are written by other programs; prefix %(prefix)s") % {"prefix": prefix_text(prefix)}


def attached_words(attached: Attached, now: datetime) -> str:
    """Say what of a sum is of attached queues, and as of when; empty when there are none."""
    if not attached.queues:
        return ""
    words = ngettext("%(n)s attached", "%(n)s attached", attached.queues) % {"n": write.number(attached.queues)}
    if attached.counted_at is not None:
        words += ", " + counted_words(attached.counted_at, now)
    if attached.uncounted:
        words += ", " + _("%(n)s not counted yet") % {"n": write.number(attached.uncounted)}
    return words


def attached_note(attached: Attached) -> str:
    """Say how many queues of a sum are attached, without a time, where none is kept current."""
    if not attached.queues:
        return ""
    return ngettext("%(n)s attached, as last counted", "%(n)s attached, as last counted", attached.queues) % {
        "n": write.number(attached.queues)
    }


def pause_words(pause: Pause, now: datetime, *, whole: bool = False) -> str:
    """Say who paused a queue, when, why and until when; a long reason is cut unless `whole`."""
    reason = write.visible(pause.reason)
    values = {
        "by": write.visible(pause.by),
        "age": write.age_since(pause.since, now),
        "reason": reason if whole else write.shorten(reason, _REASON_WIDTH),
    }
    if pause.by:
        pattern = _("paused by %(by)s, %(age)s ago: %(reason)s") if pause.reason else _("paused by %(by)s, %(age)s ago")
    else:
        pattern = _("paused for %(age)s: %(reason)s") if pause.reason else _("paused for %(age)s")
    words = pattern % values
    if pause.until is not None:
        words += " · " + _("resumes %(at)s") % {"at": write.clock(pause.until, now)}
    return words


def problem_words(problems: dict[str, int]) -> str:
    """Count the queues that need a look, by reason; a line ends between the reasons, not within one."""
    parts = [
        (words % {"n": write.number(problems[problem])}).replace(" ", "\u00a0")
        for problem, words in _PROBLEMS.items()
        if problems.get(problem)
    ]
    return "\u00a0· ".join(parts) or _("no queue needs a look")


_PROBLEMS = {
    Problem.UNREADABLE: gettext_lazy("%(n)s unreadable"),
    Problem.STALLED: gettext_lazy("%(n)s stalled"),
    Problem.GROWING: gettext_lazy("%(n)s growing"),
    Problem.DRIFT: gettext_lazy("%(n)s drifted"),
    Problem.OLD: gettext_lazy("%(n)s waiting long"),
    Problem.DEAD: gettext_lazy("%(n)s with dead items"),
    Problem.PAUSED: gettext_lazy("%(n)s paused"),
}
