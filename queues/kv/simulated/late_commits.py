"""Commits on their way without an answer. They land later, if nothing conflicts by then."""

import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """How late a commit lands: after so many seconds, or so many other begins and commits, whichever is first."""

    seconds: float
    operations: int


@dataclass(slots=True, kw_only=True)
class _Commit:
    apply: Callable[[], bool]
    due: float
    operations: int


class LateCommits:
    """The commits on their way to one memory. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: list[_Commit] = []
        #: How many landed and were applied, and how many conflicted when they landed.
        self.applied = 0
        self.refused = 0

    def __len__(self) -> int:
        return len(self._sent)

    def send(self, apply: Callable[[], bool], now: float, lateness: Lateness) -> None:
        """Have `apply` called later; it tells whether the commit was applied."""
        with self._lock:
            self._sent.append(_Commit(apply=apply, due=now + lateness.seconds, operations=lateness.operations))

    def land(self, now: float) -> None:
        """Land what has come far enough. Called before each begin and each commit of any client."""
        if not self._sent:
            return
        with self._lock:
            landing = [one for one in self._sent if one.operations <= 0 or one.due <= now]
            self._sent = [one for one in self._sent if one not in landing]
            for one in self._sent:
                one.operations -= 1
        for one in landing:
            if one.apply():
                self.applied += 1
            else:
                self.refused += 1
