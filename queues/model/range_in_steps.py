"""Steps: a range of any length is read in short transactions and little memory."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from queues.kv.errors import TransactionTooOld
from queues.kv.port import KeyValue, KeyValueStore, ReadTransaction
from queues.model.tuples import Range

T = TypeVar("T")
#: Runs a function in a read transaction and returns its result.
Look = Callable[[Callable[[ReadTransaction], T]], T]


class StepSize:
    """Adapts the number of keys or items of a step to their size."""

    def __init__(self, first: int = 20, most: int = 500, size: int = 500_000) -> None:
        self.limit = first
        self._most, self._size = most, size

    def took(self, number: int, size: int) -> None:
        """Record the number and the bytes of a step."""
        self.limit = max(1, min(self._size * number // max(size, 1), self.limit * 4, self._most))

    def too_much(self) -> bool:
        """Take less after a step that failed; return False when it was one item."""
        smaller = self.limit > 1
        self.limit = max(1, self.limit // 4)
        return smaller


def in_background(kv: KeyValueStore) -> Look[Any]:
    """Return a look that reads each step in its own transaction at batch priority."""
    return lambda fn: kv.read(fn, background=True)


def pairs(look: Look[Any], within: Range) -> Iterator[KeyValue]:
    """Yield the pairs of a range, which is read in steps."""
    for step in steps(look, within, lambda tr, found: found):
        yield from step


def steps(
    look: Look[Any],
    within: Range,
    read: Callable[[ReadTransaction, list[KeyValue]], list[T]],
    size: StepSize | None = None,
) -> Iterator[list[T]]:
    """Yield the results of `read` for a range, read in steps of one transaction."""
    begin, end = within
    size = size or StepSize()
    while True:
        limit = size.limit

        def step(tr: ReadTransaction, begin: bytes = begin, limit: int = limit) -> tuple[list[KeyValue], list[T]]:
            found = tr.get_range(begin, end, limit=limit).wait()
            return found, read(tr, found)

        try:
            found, seen = look(step)
        except TransactionTooOld:
            if not size.too_much():
                raise
            continue
        yield seen
        if len(found) < limit:
            return
        begin = found[-1][0] + b"\0"
        size.took(len(found), sum([len(key) + len(value) for key, value in found]))


def first_keys(look: Look[Any], within: Range, behind: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Yield the first key of every group of keys in a range. `behind` returns the end of a key's group."""
    begin, end = within

    def first_from(begin: bytes) -> bytes | None:
        found: bytes | None = look(lambda tr: tr.get_key(begin, end).wait())
        return found

    while (key := first_from(begin)) is not None:
        yield key
        begin = behind(key)
