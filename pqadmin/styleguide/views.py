"""Every component in each state, with hostile and extreme data. For admins."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.audit.views import line_of
from pqadmin.dashboard.jobs.words import JobsHere
from pqadmin.dashboard.queue.verdict_steps import steps
from pqadmin.display import format as write
from pqadmin.display.redaction import rules_of
from pqadmin.display.values import show
from pqadmin.live.board.health import LEVELS
from pqadmin.live.board.row_html import COLUMNS, render_rows
from pqadmin.live.board.rows import Row, load_of, row_of
from pqadmin.live.board.sums import total_of
from pqadmin.live.words import attached_words, trend_words, words, worst_words
from pqadmin.pages.queue_context import mix
from pqadmin.pages.refusals import explain
from pqadmin.pages.toasts import Toast
from pqadmin.styleguide.forms import sample_forms
from pqadmin.styleguide.pages import sample_audit, sample_pages, sample_wall
from pqadmin.styleguide.samples import (
    RAW,
    sample_acts,
    sample_attempts,
    sample_errors,
    sample_finished,
    sample_history,
    sample_jobs,
    sample_lists,
    sample_neighbors,
    sample_standings,
    sample_values,
)
from queues import Attempt, Band, Item, Pause, Priority, QueueStatus, Totals, errors
from queues.admin import (
    HealthCode,
    HealthLevel,
    HealthReason,
    HealthTrend,
    HealthVerdict,
    attached_item,
    default_edges,
    unreadable_status,
)

_VALUES = (
    b'{"order": 991204, "big": 123456789012345678901234567890, "rate": 1.10, "<b>": ["\\u202e", null, true]}',
    "Grüße, \u202eآخر\u202c and a bell \u0007, then\n\ta second line".encode(),
    bytes(range(48)),
)


@require_safe
@require(Right.ADMIN)
def styleguide(request: HttpRequest) -> HttpResponse:
    """Show everything."""
    now = datetime.now(UTC)
    rows = _rows(now)
    sample = _item(now, _VALUES[0])
    summary = total_of(rows, queues=len(rows) + 3, as_of=now)
    status = rows[0].status
    context: dict[str, Any] = {
        "now": now,
        "rows": render_rows(rows, now=now, can_act=True, stars={1}, lines=dict.fromkeys((1,), _LINE)),
        "columns": COLUMNS + 1,
        "worst": worst_words(min(rows, key=lambda row: row.rank)),
        "moved": words()["moved"] % {"n": "3"} + " · " + words()["reorder"],
        "summary": summary,
        "attached_words": attached_words(summary.attached, now),
        "status": status,
        "row": rows[0],
        "trend": trend_words(rows[0]),
        "steps": steps(rows[4], now, (sample, _failure(now))),
        "items": [row.status.min for row in rows if row.status.min is not None],
        "foreign": rows[-3].status.min,
        "item": rows[0].status.min,
        "rules": rules_of(()),
        "decoded_values": sample_values(sample),
        "standings": sample_standings(sample, now),
        "beside": sample_neighbors(sample),
        "history": sample_history(now),
        "attempts": sample_attempts(now),
        "dead_errors": sample_errors(now),
        "jobs": sample_jobs(now),
        "here": JobsHere(told=tuple(sample_jobs(now)[:3]), more=12, unseen=True, takes=True, brings=True),
        "values": [(show(value, rules=rules_of(())), _item(now, value)) for value in (*_VALUES, b"", b"x" * 30_000)],
        "finished": sample_finished(now),
        "lists": (lists := sample_lists(now)),
        "item_acts": sample_acts([item for _state, listed, _acts in lists for item in listed.items[1:]]),
        "mix": mix(status.bands),
        "refusals": [explain(error) for error in _ERRORS],
        "toasts": _toasts(),
        "forms": sample_forms(status, now, RAW),
        "url": "#",
        "fresh": _FRESH,
        "states": [*((level, "") for level in (*LEVELS, "gone")), *_MARKS],
        "numbers": [write.number(n) for n in (0, 999, 12_408, 10**12, None)],
        "rates": [write.rate(n) for n in (0.0, 0.02, 5.14, 318.0, 1e9, None)],
        "ages": [write.age(n) for n in (-1, 0.4, 59, 2460, 10_800, 5e5, 1e9, None)],
        "sizes": [write.size(n) for n in (0, 999, 90_000, 10**12)],
        "priorities": [write.priority_short(p) for p in (0, -(10**400), 2.5, "", RAW, "2026-11-20")],
        "tokens": _TOKENS,
        "acts_told": [line_of(entry) for entry in sample_audit(now)],
        **sample_pages(rows, sample, now),
        **sample_wall(rows, now),
    }
    return render(request, "dashboard/styleguide.html", context)


#: Levels with a shape of their own.
_MARKS = (("warning", "paused"), ("ok", "empty"), ("unknown", "attached"))
_FRESH = (
    ("live", "live"),
    ("stale", "stale"),
    ("reconnecting", "reconnecting"),
    ("offline", "signed out"),
)
#: The last hour of a depth, with a gap in it.
_LINE = "M0 9h2v-3h3v-4h2v6h4M14 3h5v-3h3v7h4v-6h4"
_TOKENS = ("bg", "panel", "line", "ink", "soft", "faint", "accent", "mix", "chip", "bad", "warn", "good")
_ERRORS = (
    errors.HeadChanged("Nothing is ready here any more: nothing was taken.", None),
    errors.QueuePaused(
        "{queue} is paused by {by}: {reason}", queue="orders:eu:new", by="ops-2", reason="ledger closing"
    ),
    errors.BadPriority("“{text}” is not {noun}.", text="1e400", noun=errors.Words("a whole number")),
    errors.NotForAttached("legacy:dispatch", "it cannot be paused, as other programs would continue to take."),
    errors.StoreFull("The disk under the store {path} is full; nothing was written. Make room on it.", path="var/pq"),
    errors.OutcomeUnknown("The thread that served this request was interrupted: look before you repeat it."),
)


def _toasts() -> Sequence[Toast]:
    return (
        Toast(text=_("Pushed 139 B with priority 5."), label=_("Look at it"), link="#"),
        Toast(text=_("Deleted the queue.") + " " + write.visible(RAW) * 4, label=_("Undo"), action="#"),
        Toast(text=_("This form was already sent. Nothing was done a second time."), bad=True),
    )


def _item(now: datetime, value: bytes, priority: Priority | None = 5, age: float = 41 * 60) -> Item:
    return Item(
        id="018f3c5a9b2e" + "7d" * 14,
        priority=priority,
        count=10**30,
        raw=value,
        pushed_at=now - timedelta(seconds=age),
        size=len(value),
        attempts=12,
    )


def _rows(now: datetime) -> list[Row]:
    rtl = "\u0642\u0627\u0626\u0645\u0629:\u0627\u0644\u0627\u0646\u062a\u0638\u0627\u0631"
    pause = Pause(
        reason="ledger closing " + RAW,
        by="ops-2",
        since=now - timedelta(hours=3),
        until=now + timedelta(hours=2),
    )
    depths = (0, 3, 40, 900, 700, 320, 60, 12, 4, 0, 0, 1, 0, 0, 0, 1)
    return [
        _row(now, "orders:eu:refunds", 12_408, HealthCode.NO_CONSUMER, 5.1, 0.0, depths=depths),
        _row(now, "mail:digest", 10**12, HealthCode.GROWING, 640.0, 428.0, depths=(10**12, 10**6, 1)),
        _row(now, "orders:eu:new", 1_904, None, 318.0, 331.0, depths=depths[::-1]),
        _row(now, "reports:monthly", 77, HealthCode.PAUSED, 0.1, 0.0, pause=pause, ends=("2026-11-01", "2026-11-30")),
        _row(now, "failing", 5, HealthCode.NOTHING_DONE, 1.0, 1.0),
        _row(now, "retried", 5, HealthCode.RETRIES, 1.0, 1.0),
        _row(now, "idle", 5, HealthCode.NONE_TAKEN, 1.0, 1.0),
        _row(now, "drifted", 5, HealthCode.DRIFT, 1.0, 1.0),
        _row(now, "waiting", 5, HealthCode.OLD, 1.0, 1.0),
        _row(now, "slow", 5, HealthCode.WAITS, 1.0, 1.0),
        _row(now, "deep", 10**9, HealthCode.DEEP, 1.0, 1.0),
        _row(now, "full", 400, HealthCode.FULL, 1.0, 1.0),
        _row(now, "with:dead", 0, HealthCode.DEAD, 0.0, 0.0, states=(0, 0, 12_408)),
        row_of(unreadable_status(2, "damaged", 3, errors.Words("Its bytes are damaged ({kind}).", kind=RAW)), now),
        _row(now, "unwatched", 1, HealthCode.STALE, None, None, ends=(-(10**400), 10**400)),
        _row(now, "quiet", 1, HealthCode.QUIET, 0.0, 0.0),
        _row(now, "empty", 0, None, 0.0, 0.0),
        _row(now, "sms:outbound", 61, None, 61.0, 61.0, kind="fifo"),
        _row(now, "n" * 200, 2**63, None, 1e9, 1e9, states=(90_112, 1_022, 3)),
        _row(now, rtl, 3, None, 0.02, 0.0),
        _row(now, RAW, 3, None, 2.0, 2.0, ends=(RAW, RAW)),
        _attached(now, "legacy:dispatch", 902_331, b"\x15\x05\x15\x01\x01r\x00", b"\x02dispatch\x00\x15\x47"),
        _attached(now, "legacy:counting", None, b"\x02" + RAW.encode() + b"\x00\x14\x01r\x00", b"\x1b[31m"),
        _attached(now, "legacy:raw", 10**12, b"\xfe no tuple \x00" * 20, RAW.encode()),
    ]


def _attached(now: datetime, name: str, depth: int | None, suffix: bytes, value: bytes) -> Row:
    """Return the row of an attached queue; depth None is not counted yet."""
    item = attached_item(suffix, value, fifo=False, codec=None)
    status = replace(
        _row(now, name, depth or 2, None, None, None).status,
        bands=(),
        oldest=None,
        min=item,
        max=item,
        attached=True,
        prefix=b"\x02legacy\x00\xff<b>",
        counted_at=None if depth is None else now - timedelta(seconds=2.4),
    )
    return row_of(status, now)


def _failure(now: datetime) -> Attempt:
    return Attempt(
        number=3, worker="", began_at=now, ended_at=now, expired=False, died=False, error=RAW * 9, traceback=""
    )


def _row(
    now: datetime,
    name: str,
    ready: int,
    code: HealthCode | None,
    rate_in: float | None,
    rate_out: float | None,
    *,
    kind: str = "priority",
    depths: Sequence[int] = (1,),
    ends: tuple[Priority, Priority] = (1, 9),
    pause: Pause | None = None,
    states: tuple[int, int, int] = (0, 0, 0),
) -> Row:
    edges = default_edges("int")
    bounds = (None, *edges, None)
    padded = (*depths, *(0,) * (len(edges) + 1 - len(depths)))
    fifo = kind == "fifo"
    status = QueueStatus(
        id=1,
        name=name,
        kind="fifo" if fifo else "priority",
        priority_type="int",
        change=7,
        totals=Totals(ready=ready, delayed=states[0], leased=states[1], dead=states[2], traffic={}),
        arrived=ready,
        left=0,
        bands=()
        if fifo
        else tuple(Band(low=bounds[i], high=bounds[i + 1], depth=depth) for i, depth in enumerate(padded)),
        oldest=now - timedelta(minutes=41) if ready else None,
        min=_item(now, _VALUES[0], None if fifo else ends[0]) if ready else None,
        max=_item(now, _VALUES[1], None if fifo else ends[1], age=0.4) if ready else None,
        pause=pause,
        closed=False,
        next_due=None,
        next_expiry=None,
        drift=code is HealthCode.DRIFT,
    )
    return Row(status, now, _verdict(code, now, ready), rate_in, rate_out, load=load_of(ready))


#: The level, the number and the limit of a reason.
_REASONS: dict[HealthCode, tuple[HealthLevel, float | None, float | None]] = {
    HealthCode.NO_CONSUMER: (HealthLevel.CRITICAL, None, None),
    HealthCode.NONE_TAKEN: (HealthLevel.CRITICAL, 3.0, None),
    HealthCode.NOTHING_DONE: (HealthLevel.CRITICAL, None, None),
    HealthCode.GROWING: (HealthLevel.WARNING, 212.0, None),
    HealthCode.RETRIES: (HealthLevel.WARNING, 0.62, None),
    HealthCode.OLD: (HealthLevel.WARNING, None, 900.0),
    HealthCode.WAITS: (HealthLevel.WARNING, 95.0, 60.0),
    HealthCode.DEEP: (HealthLevel.WARNING, 1e9, 1e6),
    HealthCode.FULL: (HealthLevel.WARNING, 400.0, 400.0),
    HealthCode.DEAD: (HealthLevel.WARNING, 12_000.0, 1.0),
    HealthCode.STALE: (HealthLevel.UNKNOWN, None, None),
    HealthCode.QUIET: (HealthLevel.OK, None, None),
}
_TRENDS = {
    HealthCode.NO_CONSUMER: HealthTrend.STALLED,
    HealthCode.NONE_TAKEN: HealthTrend.STALLED,
    HealthCode.GROWING: HealthTrend.GROWING,
    HealthCode.PAUSED: HealthTrend.PAUSED,
    HealthCode.STALE: HealthTrend.UNKNOWN,
}


def _verdict(code: HealthCode | None, now: datetime, ready: int) -> HealthVerdict:
    since = now.timestamp() - 41 * 60
    if code is None:
        trend = HealthTrend.DRAINING if ready else HealthTrend.EMPTY
        return HealthVerdict(HealthLevel.OK, since, (), trend, clears_in=146.0 if ready else None)
    level, value, limit = _REASONS.get(code, (HealthLevel.WARNING, None, None))
    trend = _TRENDS.get(code, HealthTrend.STEADY)
    grows = value if trend is HealthTrend.GROWING else None
    return HealthVerdict(level, since, (HealthReason(code, level, since, value, limit),), trend, grows_by=grows)
