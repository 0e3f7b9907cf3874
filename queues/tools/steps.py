"""Reading a range of any length in short transactions and little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from queues.kv.port import KeyValue, KeyValueStore, ReadTransaction
from queues.model.tuples import Range

T = TypeVar("T")
#: Runs a function in a read transaction and returns its result.
Look = Callable[[Callable[[ReadTransaction], T]], T]

#: Keys of one read, at first and at most, and about how many bytes it brings.
_FIRST_STEP, _MAX_STEP, _STEP_BYTES = 20, 500, 500_000


def in_background(kv: KeyValueStore) -> Look[Any]:
    """Return a look that reads each step in its own transaction at batch priority."""
    return lambda fn: kv.read(fn, background=True)


def pairs(look: Look[Any], within: Range) -> Iterator[KeyValue]:
    """Yield the pairs of a range, which is read in steps."""
    for step in steps(look, within, lambda tr, found: found):
        yield from step


def steps(
    look: Look[Any], within: Range, read: Callable[[ReadTransaction, list[KeyValue]], list[T]]
) -> Iterator[list[T]]:
    """Yield the results of `read` for a range, read in steps of one transaction."""
    begin, end = within
    limit = _FIRST_STEP
    while True:

        def step(tr: ReadTransaction, begin: bytes = begin, limit: int = limit) -> tuple[list[KeyValue], list[T]]:
            found = tr.get_range(begin, end, limit=limit).wait()
            return found, read(tr, found)

        found, seen = look(step)
        yield seen
        if len(found) < limit:
            return
        begin = found[-1][0] + b"\0"
        size = sum([len(key) + len(value) for key, value in found])
        limit = max(4, min(_MAX_STEP, limit * 4, _STEP_BYTES * len(found) // size))


def first_keys(look: Look[Any], within: Range, behind: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Yield the first key of every group of keys in a range. `behind` returns the end of a key's group."""
    begin, end = within
    while (key := look(lambda tr, begin=begin: tr.get_key(begin, end).wait())) is not None:  # type: ignore[misc]
        yield key
        begin = behind(key)
