"""Equal ids: two items of a queue with one id, which release 0.1 minted now and then in two processes.

No record is written over that of another item. What a store does by itself, or what a worker asks for, goes on: the
item that comes second gets another id. That is made of its own and of something that only it has, so that a transaction
that is tried again writes the same. What a caller asks for about particular items is refused.

The reads are of keys that only an item of the same id has: they conflict with no other item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from queues.errors import IdTaken
from queues.kv.port import ReadTransaction
from queues.model.ids import another


class FreeIds:
    """Reads of what stands under ids where items are to stand, issued together and not yet waited for."""

    def __init__(self, tr: ReadTransaction, key_of: Callable[[bytes], bytes], rands: Iterable[bytes]) -> None:
        self._reads = {rand: tr.get(key_of(rand)) for rand in rands}
        self._given: set[bytes] = set()

    def give(self, rand: bytes, salt: bytes) -> bytes:
        """Return the id that an item keeps, or gets where another item has its own; `salt` is of this item only."""
        if rand in self._given or self._reads[rand].wait() is not None:
            return another(rand, salt)
        self._given.add(rand)
        return rand


def refuse_taken(tr: ReadTransaction, keys: Iterable[bytes]) -> None:
    """Raise `IdTaken` when something stands under one of these keys, under which items are to stand."""
    for read in [tr.get(key) for key in keys]:
        if read.wait() is not None:
            raise taken()


def taken() -> IdTaken:
    """Build the error of an item whose id another item of its queue has."""
    return IdTaken(
        "Another item here has the same id: nothing was changed. “doctor --repair” gives one of them another id."
    )


def refuse_minted(tr: ReadTransaction, keys: Iterable[bytes]) -> None:
    """Raise `IdTaken` when a record stands under one of these keys, whose ids were just minted."""
    for read in [tr.get(key) for key in keys]:
        if read.wait() is not None:
            raise minted_before()


def minted_before() -> IdTaken:
    """Build the error of a new id that a record of the store has already."""
    return IdTaken("A record of this new id stands in the store already: nothing was changed. Try again.")
