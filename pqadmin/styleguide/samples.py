"""Sample items, lists, actions and bulk jobs with extreme and hostile data."""

import gzip
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from pqadmin.dashboard.items import action_definitions
from pqadmin.dashboard.items.action_previews import Preview
from pqadmin.dashboard.items.queue_page_data import Listed
from pqadmin.dashboard.items.selection import Fate, Fates
from pqadmin.dashboard.jobs.words import tell
from pqadmin.display import format as write
from pqadmin.display.redaction import Redaction
from pqadmin.display.values import Shown, show
from pqadmin.pages.error_groups import Group
from queues import Item, Job
from queues.admin import BULK_HELD_MS, STATES, Neighbors, to_ms

#: A hostile text as it is stored, and as pages show it.
RAW = "<script>alert('name')<b>\u202e\u0007"
HOSTILE = write.visible(RAW + "x" * 60)
_ID = "01a1ffe194ec2e9e1c2da1c46c2359cca5f52c64"


def sample_acts(items: Sequence[Item]) -> dict[str, Any]:
    """Return the forms, obstacles, previews and results of actions on items."""
    return {
        "picked": items[:4],
        "unlisted": 988,
        "fates": Fates(
            total=1_201,
            gone=1_200,
            changed=1,
            told=(
                Fate(item_id=_ID, text=f"{HOSTILE} moved it to orders:eu:refunds at 14:02:11 UTC.", url="#"),
                Fate(item_id=_ID, text="ada edited it at 14:02:12 UTC. It is dead now.", url=""),
            ),
        ),
        "unfit": action_definitions.unfit(
            action_definitions.ITEM_ACTS["move"], [item for item in items if item.state == "leased"], "ada"
        ),
        "previews": (
            Preview(
                lines=(
                    f"Priority 0 → {10**30}.",
                    "Between priority 4 (pushed 10:01:22 UTC) and priority 5 (pushed 2026-11-20 10:01:22 UTC).",
                    "By pop min: number about 1 204 331 of 4 200 001 now, number 1 then.",
                )
            ),
            Preview(lines=(f"No queue has this name. {HOSTILE}",), bad=True),
        ),
    }


_RULES = Redaction(["password"])
_KINDS = (
    b'{"user": "ada", "password": "never drawn", "deep": [{"PassWord": {"never": "drawn"}}]}',
    (
        b"\x84\xa4user\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xa4when\xd6\xff\x69\x20\x00\x00\xa4blob\xc4\x03\x00\xff\x10"
        b"\xa8password\xa5drawn"
    ),
    b"\x02dispatch\x00\x15\x47\x05\x01\x00\xff\xff\x00\x00",
    gzip.compress(b'{"lines": [' + b",".join(b"%d" % n for n in range(400)) + b"]}", mtime=0),
    gzip.compress(bytes(1_200_000), mtime=0),
)


def sample_values(item: Item) -> list[tuple[Shown, Item]]:
    """Return values of every kind with their items, some with hidden parts."""
    return [(show(value, rules=_RULES), replace(item, raw=value, size=len(value))) for value in _KINDS]


def sample_standings(item: Item, now: datetime) -> list[Item]:
    """Return an item in every state that has facts of its own."""
    return [
        replace(item, state="delayed", due_at=now + timedelta(minutes=12), reason=HOSTILE),
        replace(
            item,
            state="leased",
            worker=HOSTILE,
            leased_at=now - timedelta(seconds=31),
            expires_at=now + timedelta(seconds=29),
        ),
        replace(item, state="dead", died_at=now - timedelta(days=2), reason=HOSTILE, worker="render-7"),
    ]


def sample_neighbors(item: Item) -> Neighbors:
    """Return neighbors of an item at one end."""
    return Neighbors(lower=None, higher=item)


def sample_history(now: datetime) -> dict[str, Any]:
    """Return a history with hostile words in it."""
    line = {"at": now, "by": "ada", "via": "web", "what": "moved", "details": f"{HOSTILE} → done", "reason": HOSTILE}
    return {
        "lines": [line, line | {"by": "bob", "via": "cli", "what": "pushed", "details": "", "reason": ""}],
        "audited": True,
        "more": True,
    }


def sample_attempts(now: datetime) -> list[dict[str, Any]]:
    """Return attempts of an item with hostile words in them."""
    one = {"number": 12, "worker": HOSTILE, "at": now, "took": "9 s", "what": "released", "error": HOSTILE}
    return [
        one | {"traceback": f"Traceback (most recent call last):\n  {HOSTILE}\n" + "w" * 400},
        one | {"number": 10**6, "worker": "", "error": "", "traceback": ""},
    ]


def sample_errors(now: datetime) -> dict[str, Any]:
    """Return groups of dead items by error."""
    links = dict.fromkeys(("items", "sample", "retry", "delete"), "#")
    groups = [
        Group(error=error, count=count, first=now - timedelta(days=9), last=now, sample="0")
        for error, count in ((HOSTILE, 10**12), ("KeyError: 'customer'", 7), ("w" * 200, 1))
    ]
    rows = [(group, links) for group in groups]
    return {"rows": rows, "more": 12, "at": now, "begin": 1, "end": 10_000, "next_url": "#"}


def sample_lists(now: datetime) -> list[tuple[str, Listed, list[dict[str, str]]]]:
    """Return each state with a list of its items and the acts on them."""
    return [
        (
            state,
            Listed(items=tuple(_listed(n, state, now) for n in range(3))),
            [{"name": act.verb, "label": act.label} for act in action_definitions.acts_in(state)],
        )
        for state in STATES
    ]


def sample_finished(now: datetime) -> Listed:
    """Return a list of finished items."""
    return Listed(items=tuple(_listed(n, ("acknowledged", "popped")[n % 2], now) for n in range(3)))


def _listed(n: int, state: str, now: datetime) -> Item:
    values = (b'{"order": 991204, "lines": [{"sku": "A-114"}]}', (RAW * 9).encode(), b"")
    away = (timedelta(seconds=4), timedelta(hours=29), timedelta(days=40_000))[n]
    words = ("no such customer", RAW, "w" * 400)[n]
    return Item(
        id=f"{n}18f3c5a9b2e" + "7d" * 14,
        priority=(0, -(10**400), 10**9)[n],
        count=None if state == "delayed" else 10**30,
        raw=values[n],
        pushed_at=now - min(away, timedelta(days=9_000)),
        size=len(values[n]) or 0,
        state=state,
        attempts=(0, 12, 10**6)[n],
        due_at=now + away if state == "delayed" else None,
        leased_at=now - timedelta(seconds=9) if state == "leased" else None,
        expires_at=now + away if state == "leased" else None,
        worker="" if state in ("ready", "delayed") else words,
        finished_at=now - min(away, timedelta(days=9_000)) if state in ("acknowledged", "popped") else None,
        died_at=now - min(away, timedelta(days=9_000)) if state == "dead" else None,
        reason=words if state == "dead" else "",
    )


def sample_jobs(now: datetime) -> list[dict[str, Any]]:
    """Return jobs as pages show them."""
    ms = to_ms(now)
    running = Job(
        id=(ms - 90_000).to_bytes(6, "big").hex() + "0" * 28,
        act="move",
        queue_id=1,
        queue="orders:eu:refunds",
        state="ready",
        status="running",
        by="ada",
        reason="",
        query={"state": "ready", "text": "<script>alert(1)</script>"},
        to="review",
        total=4_200_000,
        met=1_234_567,
        done=1_234_000,
        skipped=567,
        held_ms=ms + BULK_HELD_MS,
        started_ms=ms - 90_000,
        seen=((ms - 10_000, 1_100_000),) * 2,
    )
    jobs = [
        running,
        replace(running, act="delete", to=None, held_ms=0, by="\u202eevil"),
        replace(running, act="retry", state="dead", total=None, queue="<b>" + "x" * 190),
        replace(running, act="reprioritize", priority=10**30, total=10**12, met=0, done=0, skipped=0, seen=()),
        replace(running, status="done", ended_ms=ms, met=4_200_000),
        replace(running, status="canceled", ended_ms=ms - int(timedelta(days=2) / timedelta(milliseconds=1))),
        replace(running, status="failed", ended_ms=ms, failure="no float holds it", failed_at="0" * 40),
    ]
    return [tell(job, now) for job in jobs]
