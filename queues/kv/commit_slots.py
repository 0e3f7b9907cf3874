"""Commit slots: keys by which a process finds out whether a commit with a lost answer was applied.

A process has a pool of slots, keys of its own under the store's slot prefix: (16 random bytes of the process start,
number). One is checked out for each running `transact`, which writes a mark into it in the same transaction as its
work. A mark of its own sequence tells the process that this attempt was applied.
"""

import os
import struct
import threading
from dataclasses import dataclass
from typing import Self

from fdb import tuple as fdb_tuple

_MARK = struct.Struct(">QIQ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What an attempt leaves in its slot: which use of the slot, which try of it, and when (ms since the epoch)."""

    sequence: int
    attempt: int
    ms: int

    def encode(self) -> bytes:
        """Return the mark as the bytes of a slot."""
        return _MARK.pack(self.sequence, self.attempt, self.ms)

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Return the mark that a slot holds; ValueError when these bytes are none."""
        if len(value) != _MARK.size:
            raise ValueError(f"A slot holds {_MARK.size} bytes, not {len(value)}.")
        sequence, attempt, ms = _MARK.unpack(value)
        return cls(sequence=sequence, attempt=attempt, ms=ms)


class Slot:
    """One slot of this process; used by one `transact` at a time."""

    __slots__ = ("_sequence", "key")

    def __init__(self, key: bytes) -> None:
        self.key = key
        self._sequence = 0

    def begin(self) -> int:
        """Return the number of the use that begins now."""
        self._sequence += 1
        return self._sequence


class SlotPool:
    """The slots of one store in this process. Thread-safe."""

    def __init__(self, prefix: bytes) -> None:
        client = os.urandom(16)
        self._prefix = prefix + fdb_tuple.pack((client,))
        self._lock = threading.Lock()
        self._free: list[Slot] = []
        self._made = 0

    @property
    def used(self) -> bool:
        """Whether any slot was ever checked out."""
        return self._made > 0

    @property
    def range(self) -> tuple[bytes, bytes]:
        """The range that holds this pool's slots."""
        return self._prefix, self._prefix + b"\xff"

    def take(self) -> Slot:
        """Check out a slot; pair with `give_back`."""
        with self._lock:
            if self._free:
                return self._free.pop()
            self._made += 1
            return Slot(self._prefix + fdb_tuple.pack((self._made,)))

    def give_back(self, slot: Slot) -> None:
        """Return a slot to the pool. An attempt that may still land is harmless: the next use of the slot undoes it."""
        with self._lock:
            self._free.append(slot)
