"""What queues hand out: items and pages of items."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from itertools import repeat
from operator import itemgetter
from typing import Any

from queues.model.foreign_tuples import ForeignKey
from queues.model.ids import minted_at
from queues.model.priority import Priority
from queues.model.tuples import unpack

#: What a ready item is made of: priority, count and id as they are packed in its key, attempts.
Parts = tuple[Priority | None, bytes, int]


class _Made:
    """What an item made by `ready_items` is made of, until its fields are asked for."""

    __slots__ = ("_parts",)
    _parts: Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(_Made):
    """One item of a queue, as it was when read or taken."""

    #: 40 hexadecimal digits, unique for ever; in an attached queue “key-” and the key in hexadecimal digits.
    id: str
    #: As normalized by the queue's type; None in a FIFO queue, and for what others wrote that is no number or text.
    priority: Priority | None
    #: Push order: larger was pushed later (exact among pushes that did not overlap); a delayed item gets it when it
    #: is promoted. None until then, and where others wrote none.
    count: int | None
    #: Raw bytes; cut when the read asked for a preview.
    value: bytes
    #: When it was pushed, UTC, by the store's clock; None where others wrote the item.
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

    def __getattr__(self, name: str) -> Any:
        """Work out a field that was not asked for before: called only for what is not set."""
        if name == "size":
            worked_out = len(self.value)
        elif name in _FROM_PARTS:
            worked_out = _FROM_PARTS[name](self._parts)
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        object.__setattr__(self, name, worked_out)
        return worked_out

    @property
    def truncated(self) -> bool:
        """Say whether `value` is only the beginning of the whole value."""
        return len(self.value) < self.size


def ready_items(values: Sequence[bytes], parts: Iterable[Parts]) -> list[Item]:
    """Return ready items with these whole values.

    To set sixteen fields was a third of what a pop costs, and hardly anybody reads more than the value: so that alone
    is set, for all items in loops that the interpreter does not see, and `__getattr__` works out the others.
    """
    items = list(map(_new, repeat(Item, len(values))))
    deque(map(_set_value, items, values), 0)
    deque(map(_set_parts, items, parts), 0)
    return items


_new: Any = object.__new__
_set_value, _set_parts = vars(Item)["value"].__set__, vars(_Made)["_parts"].__set__


def _default(default: Any) -> Callable[[Parts], Any]:
    return lambda _: default


#: How each field of an item made by `ready_items` is worked out.
_FROM_PARTS: dict[str, Callable[[Parts], Any]] = {
    field.name: _default(field.default) for field in fields(Item) if field.default is not MISSING
} | {
    "id": lambda parts: unpack(parts[1])[1].hex(),
    "priority": itemgetter(0),
    "count": lambda parts: unpack(parts[1])[0],
    "pushed_at": lambda parts: minted_at(unpack(parts[1])[1]),
    "attempts": itemgetter(2),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Items in order from one end, and where the next page begins."""

    items: tuple[Item, ...]
    #: Pass it as `after=` for the next page; None when this is the last.
    cursor: str | None
