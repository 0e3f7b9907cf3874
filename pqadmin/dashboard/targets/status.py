"""Status of the targets of a queue: each one, the value now, and for how long the queue is and was beyond it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils.translation import gettext as _

from pqadmin.dashboard.targets.fields import ITEMS, LABELS, shown_limit
from pqadmin.display import format as write
from queues import QueueStatus
from queues.admin import (
    GROWTH_SEEN,
    LIMIT_OF,
    NOTHING_KNOWN,
    Health,
    HealthCode,
    HealthLevel,
    Share,
    Target,
    TargetOrigin,
    TargetRules,
    health_at,
    health_warns_after,
    silence_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One target of one queue."""

    limit: str
    label: str
    target: Target
    #: In words: the limit, and the value now.
    shown: str
    value: str
    #: off, within, warning, critical, or unknown.
    state: str
    #: Why a value beyond the limit does not count.
    note: str = ""
    #: Since when the queue is beyond it.
    since: datetime | None = None
    #: When that ended, while its level holds for a while.
    until: datetime | None = None
    #: How much of the last day it was.
    day: Share = NOTHING_KNOWN

    @property
    def beyond(self) -> bool:
        """Whether the queue is beyond the target."""
        return self.since is not None

    @property
    def unknown(self) -> bool:
        """Whether it is not known that the queue is within or beyond the target."""
        return self.state == "unknown"

    @property
    def pattern(self) -> str:
        """The pattern that sets the limit, to be shown; empty where none does."""
        return write.visible(self.target.pattern)

    @property
    def own(self) -> bool:
        """Whether the queue sets the limit itself."""
        return self.target.origin is TargetOrigin.QUEUE


def lines(status: QueueStatus, rules: TargetRules, now: datetime) -> list[Line]:
    """Return each target of a queue, with the value now and whether the queue is beyond it."""
    targets = rules.targets(status.name, status.limits)
    health = health_at(status, targets, now)
    # The health of a queue that is ok is recorded from its first items on.
    known = health is not None or not (status.attached or status.unreadable or status.totals.arrived)
    beyond = {} if health is None else health.missed
    ends = _ends(health)
    values = _values(status, health, ends, now)
    found = []
    for limit, target in rules.resolve(status.name, status.limits).items():
        value, latch = values[limit], beyond.get(limit)
        state, note = "within", ""
        if not target.limit:
            state = "off"
        elif latch is not None:
            state = HealthLevel(latch.level).name.lower()
        elif not known or (limit == "wait" and value is None):
            state = "unknown"
        elif targets.unreadable and target.origin is not TargetOrigin.QUEUE:
            state, note = "unknown", _("targets cannot be read")
        elif health is not None and limit != "growing" and value is not None and value >= target.limit:
            note = _why_not(limit, status, health, now)
        found.append(
            Line(
                limit=limit,
                label=str(LABELS[limit]),
                target=target,
                shown=shown_limit(limit, target.limit),
                value=_shown(limit, value),
                state=state,
                note=note,
                since=None if latch is None else _crossed(limit, target, latch.since, now),
                until=ends.get(limit),
                day=NOTHING_KNOWN if health is None else health.breaches.share(limit, now.timestamp()),
            )
        )
    return found


def _ends(health: Health | None) -> dict[str, datetime]:
    """Return by limit when a stall ended that is told for a while yet."""
    reasons = () if health is None else health.verdict.reasons
    return {
        LIMIT_OF[one.code]: datetime.fromtimestamp(one.until, UTC)
        for one in reasons
        if one.until and one.code in LIMIT_OF
    }


def _values(
    status: QueueStatus, health: Health | None, ends: Mapping[str, datetime], now: datetime
) -> dict[str, float | None]:
    """Return the numbers that limits are compared with; None where there is none."""
    missed = {} if health is None else {limit: latch for limit, latch in health.missed.items() if limit not in ends}
    lasts = {limit: now.timestamp() - latch.since for limit, latch in missed.items()}
    return {
        "depth": status.totals.ready,
        "oldest": None if status.oldest is None else max(0.0, (now - status.oldest).total_seconds()),
        "wait": None if health is None else health.seen.wait,
        "dead": status.totals.dead,
        "no_consumer": None if health is None else lasts.get("no_consumer", health.silent),
        "growing": None if health is None else GROWTH_SEEN + lasts["growing"] if "growing" in lasts else 0.0,
    }


def _crossed(limit: str, target: Target, since: float, now: datetime) -> datetime:
    """Return since when a queue is beyond a limit; a silence and growth begin before they last too long."""
    since += {"no_consumer": target.limit, "growing": target.limit - GROWTH_SEEN}.get(limit, 0.0)
    return datetime.fromtimestamp(min(since, now.timestamp()), UTC)


def _shown(limit: str, value: float | None) -> str:
    if value is None:
        return write.UNKNOWN
    if limit in ITEMS:
        return write.number(int(value))
    if limit == "wait":
        return _("about %(age)s") % {"age": write.age(value)}
    return _("no") if not value and limit in ("growing", "no_consumer") else write.age(value)


def _why_not(limit: str, status: QueueStatus, health: Health, now: datetime) -> str:
    """Say why a value beyond its limit does not count."""
    if status.pause is not None and status.pause.holds(int(now.timestamp() * 1_000)):
        return _("does not count during a pause")
    if HealthCode.QUIET in health.verdict.codes:
        return _("does not count yet: nothing was ever taken, in the first hour")
    if limit != "no_consumer":
        return _("counts after %(age)s beyond the limit") % {"age": write.age(health_warns_after(limit))}
    silence = silence_of(health, health.targets)
    if silence.least is None:
        return _("does not count: what is held may be worked on")
    age = write.age(silence.longest)
    if silence.seconds >= silence.longest:
        return _("counts in a few seconds, unless an item is taken")
    if silence.longest > silence.least:
        return _("counts after %(age)s, three times its usual pause") % {"age": age}
    return _("counts after %(age)s: consumers hold items") % {"age": age}
