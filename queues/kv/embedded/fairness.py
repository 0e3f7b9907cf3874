"""Fairness between processes: a process that waits for LMDB's write lock precedes the last writer.

LMDB's lock alone starves processes: a busy writer that unlocks and locks again wins nearly always. So every process
has a mark in a small shared file, set while it waits to write. A writer that sees other marks lets one of them in
first. A process that died is found by its file lock and its mark erased; one that is stopped is waited for only
now and then. A second mark says that a process has the lock.
"""

import fcntl
import mmap
import os
import time
from pathlib import Path

from queues.kv.embedded import file_permissions

#: Processes that can have a mark; more of them work, without fairness.
SLOTS = 128
#: Seconds to wait for a process to take the lock, and for which one that did not is passed over.
_PATIENCE = 0.005
_PASS_OVER = 0.05
#: Seconds between two looks while waiting.
_LOOK_EVERY = 0.000_05
#: Seconds between two looks for processes that died while they had the lock.
_LOOK_FOR_DEAD_EVERY = 1.0
NOT_WAITING = bytes(8 * SLOTS)
_NOT_HERE = bytes(2 * len(NOT_WAITING))


class WriterFairness:
    """The marks of this and all other processes. Used by the thread that executes a batch."""

    def __init__(self, path: Path, *, patience: float = _PATIENCE) -> None:
        self.patience = patience
        self._fd = file_permissions.open_file(path, size=len(_NOT_HERE))
        self.map = mmap.mmap(self._fd, len(_NOT_HERE))
        both = memoryview(self.map).cast("Q")
        self.marks, self.writing = both[:SLOTS], both[SLOTS:]
        self.ticket = 0
        self._look_for_dead_at = 0.0
        self._passed_over: dict[int, tuple[int, float]] = {}
        self.slot = next((slot for slot in range(SLOTS) if self._lock(slot)), None)
        if self.slot is not None:
            self.marks[self.slot] = self.writing[self.slot] = 0

    def another_is_here(self) -> bool:
        """Say whether another process waits for the lock or has it; to be asked while this one does neither."""
        if self.map[:] == _NOT_HERE:
            return False
        now = time.monotonic()
        if now > self._look_for_dead_at:
            self._look_for_dead_at = now + _LOOK_FOR_DEAD_EVERY
            for slot, writing in enumerate(self.writing):
                if writing:
                    self._is_dead(slot)
        return True

    def another_writes(self) -> bool:
        """Say whether another living process has the lock."""
        return any(writing and not self._is_dead(slot) for slot, writing in enumerate(self.writing))

    def give_way(self) -> None:
        """Return once no other process waits, or one that waited has the lock."""
        if self.map[: len(NOT_WAITING)] == NOT_WAITING:
            return
        now = time.monotonic()
        waiting = [
            (slot, ticket)
            for slot, ticket in enumerate(self.marks)
            if ticket and slot != self.slot and not self._is_passed_over(slot, ticket, now)
        ]
        if not waiting:
            return
        marks = self.marks
        until = now + self.patience
        while all(marks[slot] == ticket for slot, ticket in waiting):
            if time.monotonic() > until:
                for slot, ticket in waiting:
                    self.pass_over(slot, ticket)
                return
            time.sleep(_LOOK_EVERY)

    def close(self) -> None:
        """Give the mark back."""
        if self.slot is not None:
            self.marks[self.slot] = self.writing[self.slot] = 0
        self.marks.release()
        self.writing.release()
        self.map.close()
        os.close(self._fd)

    def _is_passed_over(self, slot: int, ticket: int, now: float) -> bool:
        passed, until = self._passed_over.get(slot, (0, 0.0))
        return passed == ticket and now < until

    def pass_over(self, slot: int, ticket: int) -> None:
        if not self._is_dead(slot):
            self._passed_over[slot] = (ticket, time.monotonic() + _PASS_OVER)

    def _is_dead(self, slot: int) -> bool:
        """Say whether the process of another's slot is dead; then its marks are erased."""
        # A process can lock what it has locked itself, and unlocking would give its own slot away.
        if slot == self.slot or not self._lock(slot):
            return False
        self.marks[slot] = self.writing[slot] = 0
        fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, slot)
        return True

    def _lock(self, slot: int) -> bool:
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
        except OSError:
            return False
        return True
