"""The verdict on a queue's page: its reasons, each with its next step."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy

from pqadmin.dashboard.items.queue_page_data import FAILING
from pqadmin.display import format as write
from pqadmin.display.addresses import item_url
from pqadmin.display.error_text import error_text
from pqadmin.display.redaction import rules_of
from pqadmin.live.board.rows import Row
from pqadmin.live.words import detail_words, reason_words
from queues import Attempt, Item
from queues.admin import HealthCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One reason that a queue can have; the page holds all of them, and shows those that hold."""

    code: str
    #: What to do next, and the page of it, if there is one, from the queue's own address.
    next: Any
    link: str
    level: str = ""
    #: It has ended, so there is nothing to do; row.js hides what is next too.
    over: bool = False
    words: str = ""
    detail: str = ""
    #: One of the last errors, where the reason is that attempts fail; when it came, and the page of its item.
    error: str = ""
    error_at: datetime | None = None
    error_url: str = ""


#: Characters of an error beside a reason.
_ERROR_WIDTH = 240
_WORKER = gettext_lazy("Start a worker: pqadmin work %(queue)s %(handlers)s (the Python module with your handlers)")
#: A line does not break within an option.
_HANDLERS = mark_safe('<span class="nowrap">--handlers MODULE</span>')
#: Of a page: the list of items that came back, wherever these wait.
_RETURNED = "?state={returned}#items"
#: What to do next, by reason, and where.
_NEXT: dict[HealthCode, tuple[Any, str]] = {
    HealthCode.UNREADABLE: (gettext_lazy("Run pqadmin doctor: it names the damaged records."), ""),
    HealthCode.STALE: (
        gettext_lazy("See that one process does the upkeep: a site, or pqadmin sweep. If one does, wait: it watches."),
        "",
    ),
    HealthCode.NO_CONSUMER: (_WORKER, ""),
    HealthCode.NONE_TAKEN: (
        gettext_lazy(
            "They are alive: read their logs, look at what they hold; unless jobs take this long, restart them."
        ),
        "?state=leased#items",
    ),
    HealthCode.NOTHING_DONE: (
        gettext_lazy("Open items that came back, and read the errors of their attempts."),
        _RETURNED,
    ),
    HealthCode.FULL: (gettext_lazy("Add workers, or raise the limit of items in the settings."), "settings/"),
    HealthCode.GROWING: (
        gettext_lazy("See in the history whether more comes in or less leaves; add workers if these are fine."),
        "history/",
    ),
    HealthCode.RETRIES: (gettext_lazy("Read the errors of items that wait for their next attempt."), _RETURNED),
    HealthCode.OLD: (
        gettext_lazy("Look at what waits longest; add workers if nothing is wrong with it."),
        "?state=ready#items",
    ),
    HealthCode.DEEP: (gettext_lazy("The history shows when it filled."), "history/"),
    HealthCode.WAITS: (gettext_lazy("Add workers; the history shows how long items wait."), "history/"),
    HealthCode.DEAD: (gettext_lazy("Open the dead items and read their errors."), "?state=dead#items"),
    HealthCode.DRIFT: (gettext_lazy("Run pqadmin doctor --repair: it corrects the counts."), ""),
    HealthCode.PAUSED: (gettext_lazy("Resume it when its reason is over."), ""),
    HealthCode.ATTACHED: (
        gettext_lazy("Ask the programs that take from it: this site sees its ends alone."),
        "",
    ),
    HealthCode.TARGETS: (gettext_lazy("Look at the page of targets: it names what cannot be read."), ""),
    HealthCode.QUIET: (_WORKER, ""),
}


def _html(words: object, queue: str) -> SafeString:
    """Return what to do next as HTML."""
    places = str(words) % {"queue": "{queue}", "handlers": "{handlers}"}
    return format_html(places, queue=queue, handlers=_HANDLERS)


def _error(row: Row, failed: tuple[Item, Attempt]) -> dict[str, Any]:
    """Return what a reason tells of an attempt that failed."""
    item, attempt = failed
    return {
        "error": write.shorten(error_text(attempt.error, rules_of(row.status.redact)), _ERROR_WIDTH),
        "error_at": attempt.ended_at,
        "error_url": item_url(row.status.name, item.id),
    }


def _returned(row: Row, failed: tuple[Item, Attempt] | None) -> str:
    """Return the state in which items are that came back: that of the newest failure, or the likeliest one."""
    if failed is not None:
        return failed[0].state
    totals = row.status.totals
    return next((state for state in ("delayed", "ready", "dead") if getattr(totals, state)), "leased")


def steps(row: Row, now: datetime, failed: tuple[Item, Attempt] | None = None) -> Sequence[Step]:
    """Return every reason with its next step, those of the verdict first, with their words.

    `failed` is an item and its attempt, which failed lately.
    """
    reasons = {reason.code: reason for reason in row.verdict.reasons}
    returned = _returned(row, failed)
    queue = shlex.quote(write.visible(row.status.name))
    nexts = {code: (_html(words, queue), link.format(returned=returned)) for code, (words, link) in _NEXT.items()}
    return [
        *(
            Step(
                code=code,
                next=nexts[code][0],
                link=nexts[code][1],
                level=reason.level.name.lower(),
                over=reason.until is not None,
                words=reason_words(row, reason, now, whole=True),
                detail=detail_words(reason, now),
                **(_error(row, failed) if failed and code in FAILING else {}),
            )
            for code, reason in reasons.items()
        ),
        *(Step(code=code, next=words, link=link) for code, (words, link) in nexts.items() if code not in reasons),
    ]
