"""Words for the codes of queues: levels, reasons, trends. Pages and scripts share them."""

from collections.abc import Mapping
from datetime import UTC, datetime

from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy
from msgspec.structs import replace

from pqadmin.display import format as write
from pqadmin.display.errors import said
from pqadmin.display.prefixes import prefix_text
from pqadmin.live.board.health import LEVELS
from pqadmin.live.board.rows import Row
from pqadmin.live.board.sums import Attached
from queues import Pause
from queues.admin import TOLD_AT_LEAST, HealthCode, HealthReason
from queues.errors import display_name

#: Every word by its code. Lazy: a page looks up only the words that it shows.
_WORDS = {
    "level-critical": pgettext_lazy("level", "critical"),
    "level-warning": pgettext_lazy("level", "warning"),
    "level-unknown": pgettext_lazy("level", "unknown"),
    "level-ok": pgettext_lazy("level", "ok"),
    "since": gettext_lazy("since %(at)s"),
    "from": gettext_lazy("from %(at)s"),
    "until": gettext_lazy("%(reason)s, until %(at)s"),
    "first": gettext_lazy("seen first at %(at)s"),
    "target": gettext_lazy("target %(limit)s"),
    "above": gettext_lazy("above the target of %(limit)s since %(at)s"),
    "attached-title": gettext_lazy("The items are written by other programs; prefix %(prefix)s"),
    "counting": gettext_lazy("counting…"),
    "counted": gettext_lazy("counted %(age)s ago"),
    "countdown-in": gettext_lazy("in %(left)s"),
    "countdown-now": gettext_lazy("now"),
    "sum-attached": gettext_lazy("%(n)s attached"),
    "sum-uncounted": gettext_lazy("%(n)s not counted yet"),
    "paused-why": gettext_lazy("paused by %(by)s, %(age)s ago: %(reason)s"),
    "paused": gettext_lazy("paused by %(by)s, %(age)s ago"),
    "paused-for-why": gettext_lazy("paused for %(age)s: %(reason)s"),
    "paused-for": gettext_lazy("paused for %(age)s"),
    "resumes": gettext_lazy("resumes %(at)s"),
    "fifo": gettext_lazy("fifo"),
    "closed": gettext_lazy("closed for pushes"),
    "staging": gettext_lazy("staging: one process pops for all"),
    "enqueue": gettext_lazy("Enqueue"),
    "pause": gettext_lazy("Pause…"),
    "resume": gettext_lazy("Resume…"),
    "delayed": gettext_lazy("delayed"),
    "leased": gettext_lazy("leased"),
    "dead": gettext_lazy("dead"),
    "trend-unknown": gettext_lazy("not known yet"),
    "trend-empty": pgettext_lazy("trend", "empty"),
    "trend-steady": gettext_lazy("keeps up"),
    "trend-draining": gettext_lazy("draining"),
    "trend-growing": gettext_lazy("will not drain"),
    "trend-stalled": gettext_lazy("stalled"),
    "trend-paused": pgettext_lazy("trend", "paused"),
    "trend-attached": gettext_lazy("unknown (external writers)"),
    "trend-unreadable": gettext_lazy("not known"),
    "clears": gettext_lazy("clears in %(age)s"),
    "n-critical": gettext_lazy("%(n)s critical"),
    "n-warning": gettext_lazy("%(n)s warning"),
    "n-unknown": gettext_lazy("%(n)s unknown"),
    "all-ok": gettext_lazy("all ok"),
    "reason-unreadable": gettext_lazy("unreadable: %(reason)s"),
    "reason-stale": gettext_lazy("nothing recorded for %(age)s"),
    "reason-stale-watched": gettext_lazy("watched for %(age)s of %(wait)s only"),
    "reason-unrecorded": gettext_lazy("nothing recorded yet"),
    "reason-no-consumer": gettext_lazy("no consumer for %(age)s"),
    "reason-none-taken": gettext_lazy("%(n)s consumers, none took for %(age)s"),
    "reason-none-taken-one": gettext_lazy("1 consumer, took nothing for %(age)s"),
    "reason-none-taken-held": gettext_lazy("nothing finished for %(age)s, %(n)s consumers hold %(held)s items"),
    "reason-none-taken-held-one": gettext_lazy("nothing finished for %(age)s, 1 consumer holds %(held)s items"),
    "reason-none-taken-held-item": gettext_lazy("nothing finished for %(age)s, %(n)s consumers hold 1 item"),
    "reason-none-taken-held-item-one": gettext_lazy("nothing finished for %(age)s, 1 consumer holds 1 item"),
    "reason-nothing-done": gettext_lazy("nothing finished for %(age)s, every attempt fails"),
    "reason-full": gettext_lazy("reached its limit of %(limit)s: pushes beyond it are refused"),
    "reason-full-near": gettext_lazy("near its limit of %(limit)s"),
    "reason-growing": gettext_lazy("grows about %(rate)s/s"),
    "reason-grew": gettext_lazy("grew about %(rate)s/s, until %(at)s"),
    "reason-growing-unmeasured": gettext_lazy("grows"),
    "reason-grew-unmeasured": gettext_lazy("grew, until %(at)s"),
    "reason-retries": gettext_lazy("%(percent)s of ended attempts fail"),
    "reason-old": gettext_lazy("oldest waits %(age)s"),
    "reason-deep": gettext_lazy("%(n)s ready, target %(limit)s"),
    "reason-waits": gettext_lazy("some wait about %(wait)s, target %(limit)s"),
    "reason-dead": gettext_lazy("%(n)s dead"),
    "reason-dead-least": gettext_lazy("at least %(n)s dead"),
    "reason-drift": gettext_lazy("counts drifted"),
    "reason-attached": gettext_lazy("attached, traffic not seen"),
    "reason-targets": gettext_lazy("targets cannot be read"),
    "reason-quiet": gettext_lazy("nothing taken yet"),
    "in-queues": gettext_lazy("in %(n)s queues"),
    "in-queues-one": gettext_lazy("in 1 queue"),
    "sums-age": gettext_lazy("as of %(age)s ago"),
    "worst": gettext_lazy("%(word)s: %(queue)s"),
    "moved": gettext_lazy("%(n)s queues changed places"),
    "moved-one": gettext_lazy("1 queue changed places"),
    "worse": gettext_lazy("%(n)s worse queues are further down"),
    "worse-one": gettext_lazy("1 worse queue is further down"),
    "behind": gettext_lazy("%(n)s queues further down belong here"),
    "behind-one": gettext_lazy("1 queue further down belongs here"),
    "left": gettext_lazy("%(n)s queues match no more"),
    "left-one": gettext_lazy("1 queue matches no more"),
    "others": gettext_lazy("other queues belong here now"),
    "shown-of": gettext_lazy("%(shown)s shown of %(matching)s that match; %(all)s queues in all"),
    "hides": gettext_lazy("There are %(n)s queues; the filter hides all of them."),
    "hides-one": gettext_lazy("There is 1 queue; the filter hides it."),
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
    "list-uncounted": gettext_lazy("the queue changed"),
    "list-show": gettext_lazy("show"),
    "list-again": gettext_lazy("search again"),
    "form-failed": gettext_lazy("The server did not answer. Send this again: it is not done a second time."),
    "sheet-failed": gettext_lazy("The server did not answer, and nothing was changed. Try again."),
    "form-signed-out": gettext_lazy(
        "Nothing was changed: you are not logged in any more. Send this again after the login."
    ),
    "find-signed-out": gettext_lazy("You are not logged in any more."),
    "form-login": gettext_lazy("Log in in a new tab"),
    "other-name": gettext_lazy("This queue has another name now:"),
    "other-queue": gettext_lazy("Another queue has this name now:"),
    "other-acts": gettext_lazy("This page shows its last numbers, and acts on nothing any more."),
    "gone-title": gettext_lazy("This queue was deleted; these are its last numbers."),
    "fresh-live": gettext_lazy("live"),
    "fresh-live-title": gettext_lazy("What you see is the store's state now."),
    "fresh-stale": gettext_lazy("stale"),
    "fresh-stale-title": gettext_lazy("The server has not confirmed these numbers for a while."),
    "fresh-reconnecting": gettext_lazy("reconnecting"),
    "fresh-reconnecting-title": gettext_lazy("The connection is gone; these are the last numbers."),
    "fresh-unopened": gettext_lazy("not live"),
    "fresh-unopened-title": gettext_lazy(
        "The server answers, but no live connection opens: too many pages are open, or a proxy does not pass "
        "websockets, or changes their host or scheme."
    ),
    "fresh-store": gettext_lazy("store unreachable"),
    "fresh-internal": gettext_lazy("The server has an internal error; what is shown is old."),
    "fresh-signed-out": gettext_lazy("signed out"),
    "fresh-signed-out-title": gettext_lazy("Log in again to continue; these are the last numbers."),
    "fresh-not-allowed": gettext_lazy("no access"),
    "fresh-not-allowed-title": gettext_lazy("You may not look at this any more; these are the last numbers."),
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


def level_word(level: str) -> str:
    """Return the word beside a level's shape."""
    return _say(f"level-{level}")


def trend_words(row: Row) -> str:
    """Describe where the ready items are heading. The rate of growth is in the reasons."""
    if row.verdict.clears_in is not None:
        return _say("clears", age=write.age(row.verdict.clears_in))
    return _say(f"trend-{row.trend}")


def verdict_words(row: Row, now: datetime, *, whole: bool = False) -> str:
    """Describe the level of a queue and all reasons in one line. A long reason is cut unless `whole`."""
    words = [level_word(row.level), *(reason_words(row, reason, now, whole=whole) for reason in row.verdict.reasons)]
    return " · ".join([*words, *filter(None, (flag_words(row),))])


def flag_words(row: Row) -> str:
    """Describe what is special about a queue, well or not."""
    flags = {"fifo": row.status.kind == "fifo", "closed": row.status.closed, "staging": row.status.staging}
    return " · ".join([_say(code) for code, holds in flags.items() if holds])


#: Reasons with an age in their words, which goes on while nothing changes.
_AGING = frozenset(
    {
        HealthCode.STALE,
        HealthCode.NO_CONSUMER,
        HealthCode.NONE_TAKEN,
        HealthCode.NOTHING_DONE,
        HealthCode.OLD,
        HealthCode.PAUSED,
    }
)
#: Counts from which on a verdict tells them rounded.
_ROUGHLY = 100
#: Seconds from which on it is told how long nothing was recorded.
_LONG = 60.0


def tells_time(row: Row) -> bool:
    """Return whether the words of a row's verdict hold an age."""
    return any(reason.code in _AGING for reason in row.verdict.reasons)


def reason_words(row: Row, reason: HealthReason, now: datetime, *, whole: bool = False) -> str:
    """Describe one reason of a queue's verdict in a short phrase; `whole` with the exact numbers of now.

    A number of now that is within its target explains no trouble: then what was told stays. A stall or growth that has
    ended is told as it was at its end.
    """
    if reason.until is not None:
        ended = datetime.fromtimestamp(reason.until, UTC)
        if reason.code is HealthCode.GROWING:
            return _say(f"reason-grew{_unmeasured(reason)}", rate=write.rate(reason.value), at=write.clock(ended, now))
        words = reason_words(row, replace(reason, until=None), ended, whole=whole)
        return _say("until", reason=words, at=write.clock(ended, now))
    code, value, totals = reason.code, reason.value or 0.0, row.status.totals
    if code is HealthCode.PAUSED and row.status.pause is not None:
        return pause_words(row.status.pause, now, whole=whole)
    if code is HealthCode.UNREADABLE:
        return _say("reason-unreadable", reason=said(row.status.unreadable))
    since = now.timestamp() - reason.since
    if code is HealthCode.STALE and since < _LONG:
        return _say("reason-unrecorded")
    kind = "-watched" if code is HealthCode.STALE and reason.value else ""
    if code is HealthCode.FULL and reason.value is None:
        kind = "-near"
    if code is HealthCode.GROWING:
        kind = _unmeasured(reason)
    if code is HealthCode.NONE_TAKEN:
        kind = "-held-item" if totals.leased == 1 else "-held" if totals.leased else ""
        kind += "-one" if value == 1 else ""
    if code is HealthCode.OLD and row.status.oldest is not None:
        since = (now - row.status.oldest).total_seconds()
    counted = {HealthCode.DEAD: totals.dead, HealthCode.DEEP: totals.ready}.get(code)
    current = counted if whole and counted is not None and counted >= (reason.limit or 0) else None
    roughly = TOLD_AT_LEAST if code is HealthCode.DEAD else _ROUGHLY
    exact = counted is None or current is not None or value < roughly
    if code is HealthCode.DEAD and not exact:
        kind = "-least"
    n = write.number(int(value) if current is None else current)
    waits = code is HealthCode.WAITS
    return _say(
        f"reason-{code}{kind}",
        age=write.age(since) if whole else write.about(since),
        n=n if exact or code is HealthCode.DEAD else f"~{n}",
        held=write.number(totals.leased),
        rate=write.rate(value),
        percent=write.share(value),
        wait=write.age(value),
        limit=write.age(reason.limit) if waits else write.number(int(reason.limit or 0)),
    )


def _unmeasured(reason: HealthReason) -> str:
    """Return the end of the code of growth: its rate may be unknown, as while another reason hid it."""
    return "-unmeasured" if reason.value is None else ""


def detail_words(reason: HealthReason, now: datetime) -> str:
    """Say since when a reason holds, and the target of an age or of dead items, which come one after the other."""
    code, limit, at = reason.code, reason.limit or 0.0, write.clock(datetime.fromtimestamp(reason.since, UTC), now)
    if code is HealthCode.OLD:  # its own words tell the age, which began before
        return _say("above", limit=write.age(limit), at=at)
    one = code is HealthCode.DEAD and limit <= 1
    words = _say("first" if one else "since" if reason.until is None else "from", at=at)
    if one or code is not HealthCode.DEAD:
        return words
    return words + " · " + _say("target", limit=write.number(int(limit)))


def worst_words(row: Row) -> str:
    """Describe the queue of a group that needs attention most: its name, but for one that is well."""
    word = level_word(row.level)
    return word if row.level == "ok" else _say("worst", word=word, queue=display_name(row.status.name))


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
    """Describe the attached queues in a sum and the age of their counts. Empty when there are none."""
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


def pause_words(pause: Pause, now: datetime, *, whole: bool) -> str:
    """Describe a pause: actor, time, reason and end; a long reason is cut unless `whole`."""
    reason = write.visible(pause.reason)
    code = ("paused" if pause.by else "paused-for") + ("-why" if pause.reason else "")
    words = _say(
        code,
        by=write.visible(pause.by),
        age=(write.age if whole else write.about)((now - pause.since).total_seconds()),
        reason=reason if whole else write.shorten(reason, _REASON_WIDTH),
    )
    if pause.until is not None:
        words += " · " + _say("resumes", at=write.clock(pause.until, now))
    return words


def levels_words(levels: Mapping[str, int]) -> str:
    """Count the queues by level, those that are well left out. A line breaks between levels, not within one."""
    parts = [
        _say(f"n-{level}", n=write.number(levels[level])).replace(" ", "\u00a0")
        for level in LEVELS[:-1]
        if levels[level]
    ]
    return "\u00a0· ".join(parts) or _say("all-ok")


def standing_words(row: Row) -> str:
    """Return the level and the depth of one queue, for the title of its page's tab."""
    depth = write.counted(row.ready) if row.status.attached else write.number(row.ready)
    return f"{level_word(row.level)} ({depth})"


def tab_words(level: str, queues: int) -> str:
    """Return the worst level and how many queues have it, for the title of a tab."""
    return level_word(level) if level == LEVELS[-1] else _say(f"n-{level}", n=write.number(queues))
