"""Surveys: what an act on all would meet, looked at in bounded steps, without changing anything.

A survey is honest about how far it looked: what it did not look at it does not count, and says so.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from queues.items.scan import Query
from queues.kv.port import ReadTransaction
from queues.model.item import Item
from queues.queue import Queue

#: Items that a survey reads at most by default, and seconds.
SCAN, SECONDS = 100_000, 2.0
#: Items of one step.
_STEP = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What an act would meet."""

    #: Items that fit, of those that were looked at.
    matched: int
    #: Items that were looked at; None when the counters told, so that none had to be.
    searched: int | None
    #: Items of the state.
    depth: int
    #: All were looked at: `matched` is exact as of now.
    ended: bool
    #: The first ones, with values cut to a preview.
    sample: tuple[Item, ...]

    def differs(self, seen: int, tolerance: int) -> bool:
        """Say whether this is further than `tolerance` from what was seen, as far as this looked."""
        return self.matched > seen + tolerance or (self.ended and self.matched < seen - tolerance)


def survey(
    queue: Queue,
    query: Query,
    *,
    scan: int = SCAN,
    seconds: float = SECONDS,
    sample: int = 5,
    preview: int = 256,
    shown: Callable[[bytes], bytes] | None = None,
    clock: Callable[[], float] = time.monotonic,
    tr: ReadTransaction | None = None,
) -> Survey:
    """Count what fits in steps, at most `scan` items and about so many seconds. All of a state is counted at once."""
    depth = queue.depth(query.state, tr=tr)
    first = queue.search(query, limit=sample, scan=_STEP, preview=preview, shown=shown, tr=tr)
    if not query.filters:
        return Survey(matched=depth, searched=None, depth=depth, ended=True, sample=first.items)
    until = clock() + seconds
    matched, searched, cursor = len(first.items), first.searched, first.cursor
    while cursor is not None and searched < scan and clock() < until:
        step = queue.search(
            query, after=cursor, limit=1_000, scan=min(_STEP, scan - searched), preview=0, shown=shown, tr=tr
        )
        matched, searched, cursor = matched + len(step.items), searched + step.searched, step.cursor
    return Survey(matched=matched, searched=searched, depth=depth, ended=cursor is None, sample=first.items)
