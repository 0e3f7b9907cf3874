"""A cluster that does not answer: calls are told soon, but for one patient try now and then."""

import threading
from collections.abc import Callable

#: Seconds that a call is tried while the cluster is silent: threads do not pile up on it.
PATIENCE_WHEN_SILENT = 1.0
#: Seconds from the end of a patient try to the next one, while the cluster is silent; and how long one takes at most.
BETWEEN_PATIENT_TRIES, LONGEST_PATIENT_TRY = 10.0, 10.0


class Silence:
    """Whether the cluster is silent, and how long a call is tried. Thread-safe."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: When the cluster answered last.
        self.answered_at = clock()
        #: When the next patient try may begin, of callers and of background work; None while the cluster answers.
        self._next: dict[bool, float] | None = None

    def __bool__(self) -> bool:
        return self._next is not None

    def begins(self, since: float) -> None:
        """Note that a call got no answer that began at `since`; the cluster is silent if no other call got one."""
        with self._lock:
            if self._next is None and self.answered_at <= since:
                self._next = dict.fromkeys((False, True), self._clock() + BETWEEN_PATIENT_TRIES)

    def ends(self) -> None:
        """Note that the cluster answered."""
        with self._lock:
            self.answered_at = self._clock()
            self._next = None

    def patience(self, usual: float, *, background: bool) -> float:
        """Return for how many seconds a call is tried: the usual ones, or fewer while the cluster is silent.

        Callers and background work have patient tries of their own: a busy cluster may answer callers alone.
        """
        with self._lock:
            if self._next is None:
                return usual
            now, most = self._clock(), min(usual, LONGEST_PATIENT_TRY)
            if now < self._next[background]:
                return min(usual, PATIENCE_WHEN_SILENT)
            self._next[background] = now + most + BETWEEN_PATIENT_TRIES
            return most
