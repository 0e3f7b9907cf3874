"""Items and values of every kind for the styleguide."""

from __future__ import annotations

import gzip
from dataclasses import replace
from datetime import datetime, timedelta

from pqadmin.dashboard.items.history import History, Line
from pqadmin.display import format as write
from pqadmin.display.redaction import Redaction
from pqadmin.display.values import Shown, show
from queues import Item
from queues.admin import Neighbors

_RULES = Redaction(["password"])
_HOSTILE = write.visible("<b>\u202eeve\u0007" + "x" * 60)
_VALUES = (
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
    """Return values of every kind that is decoded, some with hidden parts, and what holds them."""
    return [(show(value, rules=_RULES), replace(item, raw=value, size=len(value))) for value in _VALUES]


def sample_standings(item: Item, now: datetime) -> list[Item]:
    """Return an item in every state that has facts of its own."""
    return [
        replace(item, state="delayed", due_at=now + timedelta(minutes=12), reason=_HOSTILE),
        replace(
            item,
            state="leased",
            worker=_HOSTILE,
            leased_at=now - timedelta(seconds=31),
            expires_at=now + timedelta(seconds=29),
        ),
        replace(item, state="dead", died_at=now - timedelta(days=2), reason=_HOSTILE, worker="render-7"),
    ]


def sample_neighbors(item: Item) -> Neighbors:
    """Return neighbors of an item at one end."""
    return Neighbors(lower=None, higher=item)


def sample_history(now: datetime) -> History:
    """Return a history with hostile words in it."""
    line = Line(at=now, by="ada", via="web", what="moved", details=f"{_HOSTILE} → done", reason=_HOSTILE)
    return History(lines=(line, replace(line, by="bob", via="cli", what="pushed", details="", reason="")), more=True)
