"""Pages of records that are filtered while they are read: newest first, in bounded steps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from queues.errors import BadCursor, BadLimit
from queues.model import ids

R = TypeVar("R")
T = TypeVar("T")
#: Records of one read at most, and of one page; after a full page the next one that fits is looked for as far again.
STEP, MOST = 250, 2_000
#: Records of one page at most.
MAX_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class RecordPage(Generic[T]):
    """Records that fit, newest first; fewer than asked for, or none, if few do."""

    entries: tuple[T, ...]
    #: Pass it as `after=` for older ones; None when these are the oldest.
    cursor: str | None
    #: Records that were read for this page.
    looked: int = 0
    #: Whether the page after the cursor has an entry; else there are older ones that were not read.
    certain: bool = True
    #: The ids of jobs that cannot be read; other entries say so themselves.
    unreadable: tuple[str, ...] = ()


def before_of(cursor: str | None) -> bytes | None:
    """Return the id below which a page begins; raise `BadCursor`."""
    before = None if cursor is None else ids.parse(cursor)
    if cursor is not None and before is None:
        raise BadCursor("This page address is damaged; start again from the first page.")
    return before


def page(
    read: Callable[[bytes | None, int], tuple[Sequence[tuple[bytes, R]], bool]],
    fitting: Callable[[bytes, R], T | None],
    *,
    before: bytes | None,
    limit: int,
    rare: bool = False,
    enough: Callable[[], bool] = lambda: False,
) -> RecordPage[T]:
    """Return the records that fit among those older than `before`, at most `limit`.

    `read` returns the ids and records older than an id, so many at most, and whether there are more; `fitting` returns
    what a page has of a record, or None. `rare`: few fit. `enough` ends the page early. Raises `BadLimit`.
    """
    if type(limit) is not int:
        raise BadLimit("A page has a whole number of entries.")
    limit = max(1, min(limit, MAX_PAGE))
    step = STEP if rare else min(limit + 1, STEP)
    found: list[T] = []
    looked = full = 0
    while True:
        records, more = read(before, step)
        for record_id, record in records:
            looked += 1
            one = fitting(record_id, record)
            if one is not None and full:
                return RecordPage(entries=tuple(found), cursor=ids.above(record_id).hex(), looked=full, certain=True)
            before = record_id
            if one is not None:
                found.append(one)
            if len(found) == limit and not full:
                full = looked
        if not more:
            return RecordPage(entries=tuple(found), cursor=None, looked=full or looked, certain=True)
        if looked >= MOST + full or enough():
            assert before is not None
            return RecordPage(entries=tuple(found), cursor=before.hex(), looked=full or looked, certain=False)
        step = STEP
