"""What queues hand out: items and pages of items."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from queues.foreign import ForeignKey
from queues.priority import Priority


@dataclass(frozen=True, kw_only=True)  # no slots: see `of`
class Item:
    """One item of a queue, as it was when read or taken."""

    #: 40 hexadecimal digits, unique for ever; in an attached queue “key-” and the key in hexadecimal digits.
    id: str
    #: As normalised by the queue's type; None in a FIFO queue, and for what others wrote that is no number or text.
    priority: Priority | None
    #: Push order: larger was pushed later (exact among pushes that did not overlap); a delayed item gets it when it
    #: is promoted. None until then, and where others wrote none.
    count: int | None
    #: Raw bytes; cut when the read asked for a preview.
    value: bytes
    #: When it was pushed, UTC, by the pusher's clock; None where others wrote the item.
    pushed_at: datetime | None
    #: Bytes of the whole value.
    size: int
    #: ready, delayed, leased or dead.
    state: str = "ready"
    #: How often it was leased and not acknowledged.
    attempts: int = 0
    #: When a delayed item is due, UTC.
    due_at: datetime | None = None
    #: When a leased item was leased, and when its lease ends unless it is extended, UTC.
    leased_at: datetime | None = None
    expires_at: datetime | None = None
    #: How the part of the lease's token behind the “-” begins: enough to tell it in a log, not to end the lease.
    lease: str = ""
    #: Who leased a leased item; who did last, for a dead one.
    worker: str = ""
    #: When a dead item died, UTC.
    died_at: datetime | None = None
    #: Why a dead item died, or why a delayed one was given back; empty when nobody said.
    reason: str = ""
    #: The key of an item in an attached queue.
    foreign: ForeignKey | None = None

    @classmethod
    def of(cls, **fields: Any) -> Item:
        """Return an item with these fields, all that have no default among them, as `Item(…)` does.

        That sets its seventeen fields one by one, a quarter of what a pop costs; this sets them at once.
        """
        item = _new(cls)
        _set(item, "__dict__", fields)
        return item

    @property
    def truncated(self) -> bool:
        """Say whether `value` is only the beginning of the whole value."""
        return len(self.value) < self.size


_new, _set = object.__new__, object.__setattr__


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Items in order from one end, and where the next page begins."""

    items: tuple[Item, ...]
    #: Pass it as `after=` for the next page; None when this is the last.
    cursor: str | None
