"""Words for the codes of queues: states, outlooks, problems. Pages and scripts share them."""

from datetime import datetime

from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from pqadmin.display import format as write
from pqadmin.display.errors import said
from pqadmin.display.prefixes import prefix_text
from pqadmin.live.board.health import PROBLEMS, Outlook, Problem, State
from pqadmin.live.board.rows import Row
from pqadmin.live.board.sums import Attached
from queues import Pause
from queues.errors import display_name

#: Every word by its code. Lazy: a page looks up only the words that it shows.
_WORDS = {
    "state-ok": pgettext_lazy("state", "ok"),
    "state-empty": pgettext_lazy("state", "empty"),
    "state-growing": pgettext_lazy("state", "growing"),
    "state-stalled": pgettext_lazy("state", "stalled"),
    "state-paused": pgettext_lazy("state", "paused"),
    "state-attached": pgettext_lazy("state", "attached"),
    "state-unreadable": pgettext_lazy("state", "unreadable"),
    "attached-title": gettext_lazy("The items are written by other programs; prefix %(prefix)s"),
    "counting": gettext_lazy("counting…"),
    "counted": gettext_lazy("counted %(age)s ago"),
    "countdown-in": gettext_lazy("in %(left)s"),
    "countdown-now": gettext_lazy("now"),
    "sum-attached": gettext_lazy("%(n)s attached"),
    "sum-uncounted": gettext_lazy("%(n)s not counted yet"),
    "stalled-for": gettext_lazy("stalled · nothing taken for %(age)s"),
    "growing-by": gettext_lazy("growing by %(rate)s/s on average"),
    "paused-why": gettext_lazy("paused by %(by)s, %(age)s ago: %(reason)s"),
    "paused": gettext_lazy("paused by %(by)s, %(age)s ago"),
    "paused-for-why": gettext_lazy("paused for %(age)s: %(reason)s"),
    "paused-for": gettext_lazy("paused for %(age)s"),
    "resumes": gettext_lazy("resumes %(at)s"),
    "fifo": gettext_lazy("fifo"),
    "closed": gettext_lazy("closed for pushes"),
    "drifted": gettext_lazy("counts drifted"),
    "staging": gettext_lazy("staging: one process pops for all"),
    "enqueue": gettext_lazy("Enqueue"),
    "delayed": gettext_lazy("delayed"),
    "leased": gettext_lazy("leased"),
    "dead": gettext_lazy("dead"),
    "outlook-unknown": gettext_lazy("no traffic yet"),
    "outlook-empty": pgettext_lazy("outlook", "empty"),
    "outlook-steady": gettext_lazy("keeps up"),
    "outlook-draining": gettext_lazy("draining"),
    "outlook-growing": gettext_lazy("will not drain"),
    "outlook-stalled": gettext_lazy("stalled"),
    "outlook-paused": pgettext_lazy("outlook", "paused"),
    "outlook-attached": pgettext_lazy("outlook", "unknown (external writers)"),
    "outlook-unreadable": pgettext_lazy("outlook", "not known"),
    "clears": gettext_lazy("clears in %(age)s"),
    "grows": gettext_lazy("grows %(rate)s/s on average"),
    "problem-unreadable": gettext_lazy("%(n)s unreadable"),
    "problem-stalled": gettext_lazy("%(n)s stalled"),
    "problem-growing": gettext_lazy("%(n)s growing"),
    "problem-failing": gettext_lazy("%(n)s failing"),
    "problem-drift": gettext_lazy("%(n)s drifted"),
    "problem-old": gettext_lazy("%(n)s waiting long"),
    "problem-dead": gettext_lazy("%(n)s with dead items"),
    "problem-paused": gettext_lazy("%(n)s paused"),
    "problem-none": gettext_lazy("no queue needs attention"),
    "unreadable": gettext_lazy("unreadable: %(reason)s"),
    "fails": gettext_lazy("most taken items come back"),
    "waits": gettext_lazy("oldest waits %(age)s"),
    "dead-items": gettext_lazy("%(n)s dead"),
    "sums-age": gettext_lazy("as of %(age)s ago"),
    "worst": gettext_lazy("%(word)s: %(queue)s"),
    "moved": gettext_lazy("%(n)s queues changed places"),
    "moved-one": gettext_lazy("1 queue changed places"),
    "reorder": gettext_lazy("update"),
    "in-order": gettext_lazy("in order"),
    "gone": gettext_lazy("gone"),
    "item-gone": gettext_lazy("no longer here"),
    "ready": gettext_lazy("ready"),
    "changed": gettext_lazy("changed"),
    "list-new": gettext_lazy("%(n)s new items"),
    "list-new-one": gettext_lazy("1 new item"),
    "list-gone": gettext_lazy("%(n)s gone"),
    "list-changed": gettext_lazy("%(n)s changed"),
    "list-show": gettext_lazy("show"),
    "gone-title": gettext_lazy("This queue was deleted; these are its last numbers."),
    "fresh-live": gettext_lazy("live"),
    "fresh-live-title": gettext_lazy("What you see is the store's state now."),
    "fresh-stale": gettext_lazy("stale"),
    "fresh-stale-title": gettext_lazy("The server has not confirmed these numbers for a while."),
    "fresh-reconnecting": gettext_lazy("reconnecting"),
    "fresh-reconnecting-title": gettext_lazy("The connection is gone; these are the last numbers."),
    "fresh-store": gettext_lazy("store unreachable"),
    "fresh-internal": gettext_lazy("The server has an internal error; what is shown is old."),
    "fresh-signed-out": gettext_lazy("signed out"),
    "fresh-signed-out-title": gettext_lazy("Log in again to continue; these are the last numbers."),
    "fresh-outdated": gettext_lazy("reload the page"),
    "fresh-outdated-title": gettext_lazy("This page cannot be kept up to date; these are the last numbers."),
}
#: Longest reason of a pause among other queues, in characters; the queue's own page shows all of it.
_REASON_WIDTH = 120


def words() -> dict[str, str]:
    """Return every word by its code, in the reader's language."""
    return {code: str(text) for code, text in _WORDS.items()}


def _say(code: str, **values: str) -> str:
    text = str(_WORDS[code])
    return text % values if values else text


def state_word(state: State) -> str:
    """Return the word beside a state's shape."""
    return _say(f"state-{state}")


def outlook_words(row: Row) -> str:
    """Describe the trend of the ready items."""
    if row.outlook is Outlook.DRAINING and row.clears_in is not None:
        return _say("clears", age=write.age(row.clears_in))
    if row.outlook is Outlook.GROWING and row.grows_by is not None:
        return _say("grows", rate=write.rate(row.grows_by))
    return _say(f"outlook-{row.outlook}")


def state_words(row: Row, now: datetime, *, whole: bool = False) -> str:
    """Describe the state of a queue and its reason in one line; a long reason is cut unless `whole`."""
    words = [_state_and_reason(row, now, whole=whole)]
    if row.problem is Problem.DRIFT or row.status.drift:
        words.append(_say("drifted"))
    if Problem.FAILING in row.problems:
        words.append(_say("fails"))
    if Problem.OLD in row.problems and row.status.oldest is not None:
        words.append(_say("waits", age=write.age_since(row.status.oldest, now)))
    if Problem.DEAD in row.problems:
        words.append(_say("dead-items", n=write.number(row.status.totals.dead)))
    flags = {"fifo": row.status.kind == "fifo", "closed": row.status.closed, "staging": row.status.staging}
    words += [_say(code) for code, holds in flags.items() if holds]
    return " · ".join(words)


def _state_and_reason(row: Row, now: datetime, *, whole: bool) -> str:
    pause = row.status.pause
    if row.state is State.PAUSED and pause is not None:
        return pause_words(pause, now, whole=whole)
    if row.state is State.UNREADABLE:
        return _say("unreadable", reason=said(row.status.unreadable))
    if row.state is State.STALLED and row.quiet_since is not None:
        return _say("stalled-for", age=write.age_since(row.quiet_since, now))
    if row.state is State.GROWING and row.grows_by is not None:
        return _say("growing-by", rate=write.rate(row.grows_by))
    return state_word(row.state)


def worst_words(row: Row) -> str:
    """Describe the queue of a group that needs attention most: its name, but for one that needs none."""
    word = state_word(row.state)
    return _say("worst", word=word, queue=display_name(row.status.name)) if row.problem else word


def counted_words(counted_at: datetime | None, now: datetime) -> str:
    """Describe the age of an attached queue's depth."""
    return _say("counting") if counted_at is None else _say("counted", age=write.age_since(counted_at, now))


def countdown_words(at: datetime, now: datetime) -> str:
    """Describe the time left until a moment."""
    left = (at - now).total_seconds()
    return _say("countdown-in", left=write.countdown(left)) if left > 0 else _say("countdown-now")


def attached_title(prefix: bytes | None) -> str:
    """Describe the mark of an attached queue."""
    return _say("attached-title", prefix=prefix_text(prefix))


def attached_words(attached: Attached, now: datetime) -> str:
    """Describe the attached queues in a sum and the age of their counts; empty when there are none."""
    if not attached.queues:
        return ""
    words = ngettext("%(n)s attached", "%(n)s attached", attached.queues) % {"n": write.number(attached.queues)}
    if attached.counted_at is not None:
        words += ", " + counted_words(attached.counted_at, now)
    if attached.uncounted:
        words += ", " + _say("sum-uncounted", n=write.number(attached.uncounted))
    return words


def attached_note(attached: Attached) -> str:
    """Describe the attached queues in a sum without a time, for static pages."""
    if not attached.queues:
        return ""
    return ngettext("%(n)s attached, as last counted", "%(n)s attached, as last counted", attached.queues) % {
        "n": write.number(attached.queues)
    }


def pause_words(pause: Pause, now: datetime, *, whole: bool = False) -> str:
    """Describe a pause: actor, time, reason and end; a long reason is cut unless `whole`."""
    reason = write.visible(pause.reason)
    code = ("paused" if pause.by else "paused-for") + ("-why" if pause.reason else "")
    words = _say(
        code,
        by=write.visible(pause.by),
        age=write.age_since(pause.since, now),
        reason=reason if whole else write.shorten(reason, _REASON_WIDTH),
    )
    if pause.until is not None:
        words += " · " + _say("resumes", at=write.clock(pause.until, now))
    return words


def problem_words(problems: dict[str, int]) -> str:
    """Count the queues that need attention, by reason; a line breaks between reasons, not within one."""
    parts = [
        _say(f"problem-{problem}", n=write.number(problems[problem])).replace(" ", "\u00a0")
        for problem in PROBLEMS
        if problems.get(problem)
    ]
    return "\u00a0· ".join(parts) or _say("problem-none")
