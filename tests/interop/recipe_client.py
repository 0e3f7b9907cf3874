"""A client of FoundationDB's two queue recipes that knows nothing of pqadmin: what other programs run on the same keys.

Written from the documented layout: a priority queue's item is (priority, count, random) = value, a queue's is
(index, random) = value; a new count or index is the last one plus 1, found by a snapshot read from the end.
"""

import os

from fdb import tuple as layer


class RecipeClient:
    """One queue of a recipe, under any prefix."""

    def __init__(self, kv, prefix: bytes, *, fifo: bool = False) -> None:
        self.kv = kv
        self.prefix = prefix
        self.fifo = fifo

    def push_in(self, tr, value: bytes, priority=None) -> None:
        prefix = self.prefix if self.fifo else self.prefix + layer.pack((priority,))
        last = tr.snapshot.get_range(prefix + b"\x00", prefix + b"\xff", limit=1, reverse=True).wait()
        number = layer.unpack(last[0][0], len(prefix))[0] + 1 if last else int(self.fifo)
        tr.set(prefix + layer.pack((number, os.urandom(20))), value)

    def pop_in(self, tr, *, largest: bool = False) -> bytes | None:
        found = tr.get_range(self.prefix + b"\x00", self.prefix + b"\xff", limit=1, reverse=largest).wait()
        for key, value in found:
            tr.clear(key)
            return value
        return None

    def push(self, value: bytes, priority=None) -> None:
        self.kv.transact(lambda tr: self.push_in(tr, value, priority))

    def pop(self, *, largest: bool = False) -> bytes | None:
        return self.kv.transact(lambda tr: self.pop_in(tr, largest=largest))

    def values(self) -> list[bytes]:
        begin, end = self.prefix + b"\x00", self.prefix + b"\xff"
        return [value for _, value in self.kv.read(lambda tr: tr.get_range(begin, end, limit=10_000).wait())]
