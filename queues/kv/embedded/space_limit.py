"""Limit of the space of a store: how much it may still grow, by its setting and by what the disk has left."""

import os
from collections.abc import Callable

from queues.kv.embedded.failures import translate
from queues.kv.errors import StoreFull

#: Bytes that growing writes may fill when nothing else is said.
DEFAULT_MAX_BYTES = 64 << 30
#: Bytes of disk that growing writes leave alone (a sixteenth of a small disk), so that it can still be emptied:
#: a clear too writes pages before it frees any.
DISK_RESERVE = 32 << 20
#: Bytes of room below which it is looked up before every commit, and seconds for which it is known otherwise.
LITTLE = 32 << 20
KNOWN_FOR = 0.25


class SpaceLimit:
    """The room of one store. What only clears or counts needs none; the map is larger than any limit."""

    def __init__(self, path: str, max_bytes: int, usage: Callable[[], tuple[int, int]]) -> None:
        self.max_bytes = max_bytes
        self._path = path
        self._usage = usage

    def left(self) -> int:
        """Return how many bytes growing writes may still add."""
        used, file_bytes = self._usage()
        try:
            disk = os.statvfs(self._path)
        except OSError as error:
            raise translate(error, self._path) from error
        block = disk.f_frsize
        reserve = min(DISK_RESERVE, disk.f_blocks * block // 16)
        free = disk.f_bavail * block + max(0, file_bytes - used) - reserve
        return min(self.max_bytes - used, free)

    def used(self) -> int:
        """Return the bytes of pages that hold data."""
        return self._usage()[0]

    def full(self) -> StoreFull:
        """Build the error of a growing write that has no room, saying which room it is."""
        used = self.used()
        if used + LITTLE >= self.max_bytes:
            return StoreFull(
                "The store {path} holds {used:,} of {most:,} allowed bytes; nothing was written. Let "
                "workers take items, or open it with a larger limit (PQ_STORE_MAX_BYTES).",
                path=self._path,
                used=used,
                most=self.max_bytes,
            )
        return StoreFull(
            "The disk under the store {path} is almost full; nothing was written. Let workers take items, or "
            "make room on the disk.",
            path=self._path,
        )
