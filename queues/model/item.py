"""Items, and pages of items."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from itertools import repeat
from typing import Any

from queues.model.attempt_log import Attempt, Entry
from queues.model.attempt_log import read as read_log
from queues.model.codec import Codec
from queues.model.foreign_tuples import ForeignKey
from queues.model.ids import at, minted_at
from queues.model.priority import Priority
from queues.model.tuples import unpacked_row

#: What the key of a ready item tells: priority, count and id.
Row = tuple[Any, ...]
#: Of a ready item that is not as it was pushed: its attempts, their log, and when it became ready (ms).
Past = tuple[int, tuple[Entry, ...], int | None]
#: Parts of a ready item: its row, packed as it ends its key, and its past; or, without a past, the packed row alone. So
#: a batch allocates less that the garbage collector looks at.
Parts = tuple[Row | bytes, Past | None] | bytes


class _Made:
    """What an item of `ready_items` is made of: its fields are computed from it on access."""

    __slots__ = ("_parts", "value")
    _parts: Parts
    #: The value, decoded by the queue's codec when it is first read; where that is `bytes`, the same as `raw`. Raises
    #: `Undecodable`.
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(_Made):
    """One item of a queue, as it was when read or taken."""

    #: 40 hexadecimal digits, unique for ever; in an attached queue “key-” and the key in hexadecimal digits.
    id: str
    #: As normalized by the queue's type; None in a FIFO queue, and for a foreign key without a number or text.
    priority: Priority | None
    #: Push order: larger was pushed later (exact among pushes that did not overlap); a delayed item gets it when it
    #: is promoted. None until then, for a finished item, and for a foreign key without a count.
    count: int | None
    #: The bytes of the value; cut when the read asked for a preview.
    raw: bytes
    #: When it was pushed, UTC, by the store's clock; None for a foreign item.
    pushed_at: datetime | None
    #: Bytes of the whole value.
    size: int
    #: ready, delayed, leased or dead; of a record of a finished item, acknowledged or popped.
    state: str = "ready"
    #: Since when a ready item can be taken, UTC: its push, or when it last became ready. None in other states.
    ready_at: datetime | None = None
    #: How often it was leased and not acknowledged.
    attempts: int = 0
    #: The log of attempts as it is stored: see `attempt_log`.
    attempt_records: tuple[Entry, ...] = field(default=(), repr=False, hash=False)
    #: When a delayed item is due, UTC.
    due_at: datetime | None = None
    #: When a leased item was leased, and when its lease ends unless it is extended, UTC.
    leased_at: datetime | None = None
    expires_at: datetime | None = None
    #: Beginning of the secret part of the lease's token: enough to identify it in a log, not to end the lease.
    lease: str = ""
    #: The worker that leased the item; for a dead item the last one, for a finished item the one that finished it.
    worker: str = ""
    #: When a finished item was acknowledged or popped, UTC.
    finished_at: datetime | None = None
    #: When a dead item died, UTC.
    died_at: datetime | None = None
    #: Why a dead item died, or a delayed one was released; empty when no reason was given.
    reason: str = ""
    #: The key of an item in an attached queue.
    foreign: ForeignKey | None = None
    #: Whether rules of redaction hide parts of the value, and `raw` is the rest: where a remote store looked at it.
    hidden: bool = field(default=False, repr=False)
    #: What decodes `raw`; None: the value is bytes.
    codec: Codec | None = field(default=None, repr=False, compare=False)

    def __getattr__(self, name: str) -> Any:
        """Compute a field on its first access."""
        if name == "value":
            computed = self.raw if self.codec is None else self.codec.decode(self.raw, truncated=self.truncated)
        elif name == "raw":
            computed = self.value  # a whole one of `ready_items`, without a codec
        elif name == "size":
            computed = len(self.raw)
        elif name in _FROM_PARTS:
            parts = _unpacked(self._parts)
            _set_parts(self, parts)
            computed = _FROM_PARTS[name](parts)
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        object.__setattr__(self, name, computed)
        return computed

    @property
    def attempt_log(self) -> tuple[Attempt, ...]:
        """Its last attempts that ended without an acknowledgement, the oldest first; at most 20."""
        return read_log(self.attempt_records)

    @property
    def since(self) -> datetime | None:
        """When its age begins: since when a ready item can be taken, else its push. None where that is unknown."""
        return self.ready_at or self.pushed_at

    @property
    def truncated(self) -> bool:
        """Whether `raw` is only the beginning of the whole value."""
        return len(self.raw) < self.size


def ready_items(values: Sequence[bytes], parts: Iterable[Parts], codec: Codec | None) -> list[Item]:
    """Return ready items with these whole values.

    Setting all fields was a third of the cost of a pop, and few programs read more than the value. So only the
    bytes and the codec are set, in loops that run in C, and `__getattr__` computes the other fields.
    """
    items = list(map(_new, repeat(Item, len(values))))
    if codec is None:
        deque(map(_set_value, items, values), 0)
    else:
        deque(map(_set_raw, items, values), 0)
        deque(map(_set_codec, items, repeat(codec)), 0)
    deque(map(_set_parts, items, parts), 0)
    return items


def packed(items: Iterable[Item]) -> list[tuple[Row, Past | None]]:
    """Return what items of `ready_items` are made of beside their values: plain values."""
    return list(map(_unpacked, map(_get_parts, items)))


def unpacked(values: Sequence[bytes], parts: Iterable[Any], codec: Codec | None) -> list[Item]:
    """Return items with these values from what `packed` returned, with lists in place of tuples perhaps."""
    return ready_items(values, [(row, past and (past[0], tuple(past[1]), past[2])) for row, past in parts], codec)


def _unpacked(parts: Parts) -> tuple[Row, Past | None]:
    if isinstance(parts, bytes):
        return unpacked_row(parts), None
    row, past = parts
    return (unpacked_row(row) if isinstance(row, bytes) else row), past


_new: Any = object.__new__
_set_raw, _set_codec = vars(Item)["raw"].__set__, vars(Item)["codec"].__set__
_get_parts = vars(_Made)["_parts"].__get__
_set_value, _set_parts = vars(_Made)["value"].__set__, vars(_Made)["_parts"].__set__


def _default(default: Any) -> Callable[[tuple[Row, Past | None]], Any]:
    return lambda _: default


#: How each field of an item of `ready_items` is computed.
_FROM_PARTS: dict[str, Callable[[tuple[Row, Past | None]], Any]] = {
    field.name: _default(field.default) for field in fields(Item) if field.default is not MISSING
} | {
    "id": lambda parts: parts[0][2].hex(),
    "priority": lambda parts: parts[0][0],
    "count": lambda parts: parts[0][1],
    "pushed_at": lambda parts: minted_at(parts[0][2]),
    "ready_at": lambda parts: _ready_at(*parts),
    "attempts": lambda parts: 0 if parts[1] is None else parts[1][0],
    "attempt_records": lambda parts: () if parts[1] is None else parts[1][1],
}


def _ready_at(row: Row, past: Past | None) -> datetime | None:
    return minted_at(row[2]) if past is None or past[2] is None else at(past[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Items in order from one end, and the cursor of the next page."""

    items: tuple[Item, ...]
    #: Pass it as `after=` for the next page; None when this is the last.
    cursor: str | None
