"""Rate limit of log lines about lasting errors: one of each kind a minute."""

import logging
import threading
import time
from collections.abc import Callable

#: Seconds between two lines of one kind; number of kinds that are remembered.
EVERY, _KINDS = 60.0, 1_000


class LogLimit:
    """Writes warnings of one logger, and counts the suppressed ones. Thread-safe."""

    def __init__(self, log: logging.Logger, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._monotonic = monotonic
        self._lock = threading.Lock()
        #: By kind: when its last line was written, and how many were suppressed since.
        self._told: dict[object, tuple[float, int]] = {}

    def warn(self, kind: object, message: str, *values: object, exc_info: bool = False) -> None:
        """Log a warning, unless one of this kind was logged within the last minute."""
        suppressed = self.turn(kind)
        if suppressed is not None:
            more = f" ({suppressed} more like this since the last line)" if suppressed else ""
            self._log.warning(message + more, *values, exc_info=exc_info)

    def turn(self, kind: object) -> int | None:
        """Return how many lines of a kind were suppressed since the last one; None: this one is to be, too."""
        now = self._monotonic()
        with self._lock:
            last, suppressed = self._told.get(kind, (-EVERY, 0))
            if now - last < EVERY and kind in self._told:
                self._told[kind] = last, suppressed + 1
                return None
            if kind not in self._told and len(self._told) >= _KINDS:
                self._told.pop(next(iter(self._told)))
            self._told[kind] = now, 0
            return suppressed

    def forget(self, kind: object) -> None:
        """Log the next warning of a kind at once, after a success."""
        with self._lock:
            self._told.pop(kind, None)
