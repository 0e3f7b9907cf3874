"""The verdict on a queue's page: its reasons, each with its next step."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy

from pqadmin.live.board.rows import Row
from pqadmin.live.words import detail_words, reason_words
from queues.admin import HealthCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One reason that a queue can have; the page holds all of them, and shows those that hold."""

    code: str
    #: What to do next, and the page of it, if there is one, from the queue's own address.
    next: Any
    link: str
    level: str = ""
    words: str = ""
    detail: str = ""


_WORKER = gettext_lazy("Start a worker: pqadmin work QUEUE --handlers MODULE")
#: What to do next, by reason, and where.
_NEXT: dict[HealthCode, tuple[Any, str]] = {
    HealthCode.UNREADABLE: (gettext_lazy("Run pqadmin doctor: it names the damaged records."), ""),
    HealthCode.STALE: (gettext_lazy("See that one process does the upkeep: a site, or pqadmin sweep."), ""),
    HealthCode.NO_CONSUMER: (_WORKER, ""),
    HealthCode.NONE_TAKEN: (
        gettext_lazy(
            "They are alive: read their logs, look at what they hold; unless jobs take this long, restart them."
        ),
        "?state=leased#items",
    ),
    HealthCode.NOTHING_DONE: (gettext_lazy("Look at what is leased, and at its attempts."), "?state=leased#items"),
    HealthCode.GROWING: (gettext_lazy("If its workers are fine, add more; the history shows since when."), "history/"),
    HealthCode.RETRIES: (
        gettext_lazy("Read the errors of items that wait for their next attempt."),
        "?state=delayed#items",
    ),
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


def steps(row: Row, now: datetime) -> Sequence[Step]:
    """Return every reason with its next step, those of the verdict first, with their words."""
    reasons = {reason.code: reason for reason in row.verdict.reasons}
    return [
        *(
            Step(
                code=code,
                next=_NEXT[code][0],
                link=_NEXT[code][1],
                level=reason.level.name.lower(),
                words=reason_words(row, reason, now, whole=True),
                detail=detail_words(reason, now),
            )
            for code, reason in reasons.items()
        ),
        *(Step(code=code, next=words, link=link) for code, (words, link) in _NEXT.items() if code not in reasons),
    ]
