"""Lists of items in every state with hostile and extreme data, for the styleguide."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from pqadmin.dashboard.items.list import ACT_WORDS, ACTS, Act
from pqadmin.dashboard.items.search import EMPTY, Listed
from queues import Item
from queues.admin import STATES

_HOSTILE = "<script>alert('name')<b>\u202e\u0007"


def sample_lists(now: datetime) -> list[tuple[str, Listed, list[Act]]]:
    """Return each state with a list of its items and the acts on them."""
    return [
        (
            state,
            replace(EMPTY, items=tuple(_item(n, state, now) for n in range(3))),
            [Act(name=name, label=str(ACT_WORDS[name])) for name in ACTS[state]],
        )
        for state in STATES
    ]


def _item(n: int, state: str, now: datetime) -> Item:
    values = (b'{"order": 991204, "lines": [{"sku": "A-114"}]}', (_HOSTILE * 9).encode(), b"")
    away = (timedelta(seconds=4), timedelta(hours=29), timedelta(days=40_000))[n]
    words = ("no such customer", _HOSTILE, "w" * 400)[n]
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
        worker=words if state in ("leased", "dead") else "",
        died_at=now - min(away, timedelta(days=9_000)) if state == "dead" else None,
        reason=words if state == "dead" else "",
    )
