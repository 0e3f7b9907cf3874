"""Sample contents of pages and of a wall, with extreme and hostile data."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from pqadmin.dashboard.palette.entries import Entry, Found, Kind
from pqadmin.dashboard.targets.fields import LABELS
from pqadmin.dashboard.targets.status import Line
from pqadmin.display.redaction import rules_of
from pqadmin.display.values import show
from pqadmin.display.words import trash_words
from pqadmin.live.board.rows import Row
from pqadmin.live.consumers_panel import panel
from pqadmin.styleguide.samples import HOSTILE, RAW
from pqadmin.wall.layout import lay_out
from pqadmin.wall.levels import worst_first
from pqadmin.wall.models import Board
from pqadmin.wall.picture import Counts
from pqadmin.wall.tiles import places, tile
from queues import AuditEntry, Consumer, Consumers, Item, TrashEntry
from queues.admin import Share, Target, TargetOrigin
from queues.errors import display_name


def sample_pages(rows: Sequence[Row], item: Item, now: datetime) -> Mapping[str, Any]:
    """Return the contents of queue pages; `rows` has some of hostile names, and of attached queues."""
    return {
        "headed": [row for row in rows if len(row.status.name) == 200 or row.status.name == RAW],
        "noted": replace(rows[0].status, note=f"{RAW}\n" + "n" * 300, runbook="https://wiki.example/" + "r" * 180),
        "attached_row": next(row for row in rows if row.status.attached),
        "empty_lists": [{"state": state} for state in ("ready", "delayed", "leased", "dead")],
        "checks": [
            {"good": True, "text": "This is JSON.", "size": "90 kB"},
            {"good": False, "text": f"Line 2, column 8 is not JSON. {HOSTILE}", "size": "0 B"},
        ],
        "palettes": [
            _found(),
            Found(entries=(), note="Only the first 10 000 queues were looked through."),
            Found(entries=()),
        ],
        "searched": {
            "state": "ready",
            "typed": {"q": HOSTILE, "low": "1e400", "id": "7d" * 20},
            "wrong": {"low": "“1e400” is not a whole number."},
        },
        "searching": {"searched": 200_000, "ended": False},
        "search_ends": [("Min first", "#", True, "min"), ("Max first", "#", False, "max")],
        "matched": {
            "glob": "*",
            "count": 10**6,
            "first": [(name, "#") for name in ("orders:eu:refunds", HOSTILE, "n" * 200)],
            "more": 10**6 - 3,
        },
        "armed_now": {"needed": True, "until": now + timedelta(minutes=9)},
        "targets": [
            sample_target(now, "warning", "0" * 12 + "9", "orders:*"),
            sample_target(now, "critical", "1 min", "x" * 200),
            sample_target(now, "off", "off", ""),
            sample_target(now, "unknown", "5", "\u202e*"),
        ],
        "targets_at": now,
        "consumed": [panel(replace(rows[0].status, consumers=each)) for each in _consumers(now)],
        "taken": {
            "entry": _trash(item, now, queue="orders:eu:new"),
            "item": item,
            "shown": show(item.raw, rules=rules_of(())),
        },
        "trash_lines": [
            {"entry": entry, "words": trash_words(entry), "queue_url": "#", "to_url": "#", "damage": HOSTILE}
            for entry in (
                replace(_trash(item, now, queue=RAW, by="\u202e" + "x" * 150), to="n" * 200),
                replace(_trash(None, now, queue=""), damage="NewerFormat"),
            )
        ],
        "trash_rows": [
            (entry, "deleted", "1")
            for entry in (
                _trash(item, now, queue="n" * 200),
                _trash(None, now, queue=RAW, count=10**12, by="\u202e" + "x" * 150),
            )
        ],
    }


def sample_target(now: datetime, state: str, shown: str, pattern: str) -> Line:
    """Return one target of a queue in a state."""
    origin = TargetOrigin.PATTERN if pattern else TargetOrigin.QUEUE
    return Line(
        limit="depth",
        label=str(LABELS["depth"]),
        target=Target(9, origin, pattern),
        shown=shown,
        value="10" * 8,
        state=state,
        since=now - timedelta(days=400) if state in ("warning", "critical") else None,
        day=Share(0.004, 0.996) if state == "warning" else Share(0.0, 1.0) if state == "unknown" else Share(0.12, 0.0),
    )


def _consumers(now: datetime) -> Sequence[Consumers]:
    """Return extreme consumers, a queue that lost its last one, and one that knows of none."""
    busy = Consumer(
        id="0" * 16,
        pid=2**31,
        host="h" * 200,
        program=RAW,
        worker="w" * 200,
        since=now - timedelta(days=400),
        last_take=now,
        takes=10**12,
        rate=10.0**6,
        waiting=10**4,
        holds=10**6,
        heard=now,
    )
    new = replace(busy, host="قائمة", program="press", worker="", last_take=None, rate=0.0, waiting=1, holds=0)
    return (Consumers(live=(busy, new)), Consumers(ended=replace(busy, end="lost")), Consumers())


def sample_audit(now: datetime) -> Sequence[AuditEntry]:
    """Return acts as the audit tells them: one that has everything, one that has nothing, one that cannot be read."""
    full = AuditEntry(
        id="0" * 40,
        at=now,
        actor="\u202e" + "x" * 150,
        via="web",
        verb="change_board",
        queue="n" * 200,
        item=None,
        count=10**12,
        reason=f"{RAW} " + "w" * 300,
        before={"name": RAW, "globs": ["orders:*", "mail:*"], "theme": "dark"},
        after={"name": "n" * 300, "globs": [], "theme": "light", "minutes": 5},
    )
    bare = replace(full, actor="ada", via="cli", verb="disarm", queue=None, count=0, reason="", before=None, after=None)
    return (full, bare, replace(bare, damage="NewerFormat"))


def _found() -> Found:
    return Found(
        entries=[
            Entry(kind=Kind.QUEUE, label="n" * 200, url="#"),
            Entry(kind=Kind.QUEUE, label="قائمة:الانتظار", url="#", detail="10 000 000 000 ready"),
            Entry(kind=Kind.ITEM, label="018f3c5a9b2e" + "7d" * 14, url="#", detail=HOSTILE),
            Entry(kind=Kind.ACT, label="Pop max", url="#", detail="orders:eu:refunds"),
            Entry(kind=Kind.ACT, label="Reschedule…", url="#", detail=f"this item in {'n' * 200}"),
            Entry(kind=Kind.ACT, label="Delete…", url="#", detail="1 000 selected items", grave=True),
            Entry(kind=Kind.PAGE, label="Audit", url="#"),
        ],
    )


def _trash(item: Item | None, now: datetime, *, queue: str, count: int = 1, by: str = "ada") -> TrashEntry:
    return TrashEntry(
        id="0" * 40,
        what="item" if item else "items",
        queue_id=1,
        queue=queue,
        item=item,
        count=count,
        by=by,
        at=now - timedelta(days=3),
        deadline=now + timedelta(days=4),
        restored=False,
        act="delete",
    )


def sample_wall(rows: Sequence[Row], now: datetime) -> dict[str, Any]:
    """Return the styleguide's wall: as many of these rows as fit, the worst first, and a tile for the rest."""
    layout = lay_out(21, density="middle", stress=True)
    counts = Counts(queues=10**6, critical=1, warning=10**6 - 1, unknown=3, unread=0, ready=0)
    spots = list(places(layout))
    shown = sorted(rows, key=worst_first)[:20]
    several = [shown[n % len(shown)] for n in range(20)]
    return {
        "wall_tiles": [tile(row, now, place) for row, place in zip(several, spots, strict=False)],
        "wall_layout": layout,
        "wall_place": spots[-1],
        "wall_rest": counts,
        "wall_part": {"name": "n" * 80},
        "wall_counts": counts,
        "wall_previews": [
            {"total": 10**6, "names": [display_name(row.status.name) for row in rows[:4]], "more": 10**6 - 4},
            {"total": 0},
            {"wrong": "[x: \u201c[\u201d stands for nothing here."},
        ],
        "themes": Board.Theme.choices,
    }
