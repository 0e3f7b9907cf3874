"""Rows added up: all that somebody may see, and each group of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from pqadmin.live.rows import Row, three_digits
from queues.names import display_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """The attached queues in a sum, whose depths are as of their counts."""

    queues: int = 0
    ready: int = 0
    #: When the oldest of these counts began; None when nothing was counted yet.
    counted_at: datetime | None = None
    #: Queues that were not counted yet, so that their items are in no sum.
    uncounted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Queues together: the tiles above the table, or the heading of a group."""

    queues: int
    #: Attached queues included, as far as they were counted.
    ready: int
    delayed: int
    leased: int
    dead: int
    #: None until a rate is known for any queue.
    rate_in: float | None
    rate_out: float | None
    #: When the oldest ready item of all queues was pushed, and where it lies.
    oldest: datetime | None
    oldest_queue: str | None
    #: When something falls due next, in any queue.
    next_due: datetime | None
    next_expiry: datetime | None
    #: How many queues need a look, by reason; a queue counts once for each of its reasons.
    problems: Mapping[str, int]
    #: How many queues need a look.
    problem_count: int
    #: The oldest reading among the queues that were added up.
    as_of: datetime
    #: Queues that exist and were not read yet.
    unread: int
    attached: Attached


def total_of(rows: Iterable[Row], *, queues: int, now: datetime, as_of: datetime | None = None) -> Summary:
    """Add up rows; `queues` is how many there are, read or not, `as_of` the oldest reading if not that of the rows."""
    ready = delayed = leased = dead = read = trouble = known = 0
    rate_in = rate_out = 0.0
    oldest = oldest_row = due = expiry = None
    problems: dict[str, int] = {}
    attached: list[Row] = []
    known_as_of, as_of = as_of, now
    for row in rows:
        read += 1
        status = row.status
        totals = status.totals
        ready += row.ready or 0
        delayed += totals.delayed
        leased += totals.leased
        dead += totals.dead
        if row.rate_in is not None:
            known += 1
            rate_in += row.rate_in
            rate_out += row.rate_out or 0.0
        if status.oldest is not None and (oldest is None or status.oldest < oldest):
            oldest, oldest_row = status.oldest, row
        if status.next_due is not None and (due is None or status.next_due < due):
            due = status.next_due
        if status.next_expiry is not None and (expiry is None or status.next_expiry < expiry):
            expiry = status.next_expiry
        if row.as_of < as_of:
            as_of = row.as_of
        if row.problems:
            trouble += 1
            for problem in row.problems:
                problems[problem.value] = problems.get(problem.value, 0) + 1
        if status.attached:
            attached.append(row)
    return Summary(
        queues=queues,
        ready=ready,
        delayed=delayed,
        leased=leased,
        dead=dead,
        rate_in=three_digits(rate_in) if known else None,
        rate_out=three_digits(rate_out) if known else None,
        oldest=oldest,
        oldest_queue=None if oldest_row is None else oldest_row.status.name,
        next_due=due,
        next_expiry=expiry,
        problems=problems,
        problem_count=trouble,
        as_of=known_as_of or as_of,
        unread=max(0, queues - read),
        attached=attached_of(attached),
    )


def groups_of(rows: Sequence[Row], *, now: datetime) -> dict[str, Summary]:
    """Add up each group of rows, by its label."""
    members: dict[str, list[Row]] = {}
    for row in rows:
        members.setdefault(label_of(row.status.name), []).append(row)
    return {label: total_of(them, queues=len(them), now=now) for label, them in members.items()}


@lru_cache(maxsize=32_768)
def label_of(name: str) -> str:
    """Return the group that a queue belongs to: its name, as shown, up to the last colon that leaves something."""
    shown = display_name(name)
    return shown[: shown.rstrip(":").rfind(":") + 1]


def attached_of(rows: Iterable[Row]) -> Attached:
    """Add up the attached queues among rows."""
    among = [row.status for row in rows if row.status.attached]
    counted = [status for status in among if status.counted_at is not None]
    return Attached(
        queues=len(among),
        ready=sum(status.totals.ready for status in counted),
        counted_at=min((status.counted_at for status in counted if status.counted_at is not None), default=None),
        uncounted=len(among) - len(counted),
    )
