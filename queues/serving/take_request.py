"""Takes: what callers ask of the ends of a queue, and how those of a batch are served one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from queues.items import leased
from queues.items.stored_item import StoredItem
from queues.kv.port import KeyValue, Transaction
from queues.model.cursor import End
from queues.model.item import Item

#: Bytes of values that one batch takes; a take alone may take more.
BATCH_BYTES = 1_000_000
#: A take first promotes and expires some of what is late by more than so many milliseconds: so late it is only where
#: nobody sweeps.
LATE_MS = 250


class Take(NamedTuple):  # made several times as fast as a dataclass, for every pop
    """At most `n` items from one end, popped or (with terms) leased."""

    n: int
    end: End
    now_ms: int
    #: None is the answer, and nothing is taken, when something was due by then.
    late_ms: int | None = None
    terms: leased.Terms | None = None


#: A pop of one item from this end; its answer is the item, None, or LATE. It is what most takes are, so it is no
#: `Take`: what is made for every call is a good part of what the call costs.
One = End


class LateAnswer:
    """What a pop of one is answered when something was due: see `Take.late_ms`."""

    def __bool__(self) -> bool:
        return False


LATE = LateAnswer()

#: Items of a pop, leases of a lease; None: see `Take.late_ms`.
Taken = list[Item] | list[StoredItem] | None


class TakeAll(Protocol):
    """Takes for each in turn, and returns what each gets; the last ones get no answer when there is no room."""

    def __call__(self, tr: Transaction, takes: Sequence[Take], *, serializable: bool) -> Sequence[Taken]:
        """Take."""


def one_each(takes: Sequence[Take]) -> End | None:
    """Return the end that each of these takes pops one item from; None when one of them wants anything else."""
    numbers, ends, _, _, terms = zip(*takes, strict=True)
    end: End = ends[0]
    return end if numbers.count(1) == ends.count(end) == terms.count(None) == len(takes) else None


def deal(takes: Sequence[Take], ends: Mapping[End, list[KeyValue]]) -> list[list[KeyValue]]:
    """Return what each take gets when one comes after the other; the last ones get nothing when there is no room."""
    if len(takes) == 1:
        (take,) = takes
        return [ends[take.end][: take.n]]
    hands: list[list[KeyValue]] = []
    at = dict.fromkeys(ends, 0)
    both = len(ends) > 1
    taken: set[bytes] = set()
    room = BATCH_BYTES
    plenty = sum(len(value) for entries in ends.values() for _, value in entries) <= room
    for take in takes:
        entries, begin = ends[take.end], at[take.end]
        hand = entries[begin : begin + take.n]
        if both:
            # Where the other end's takes have come to, nothing is left: they took all that stands behind.
            left = next((n for n, (key, _) in enumerate(hand) if key in taken), len(hand))
            hand = hand[:left]
            taken.update(key for key, _ in hand)
        if not plenty:
            room -= sum(len(value) for _, value in hand)
            if hands and room < 0:
                break
        hands.append(hand)
        at[take.end] = begin + len(hand)
    return hands
