"""What a process does beside its callers: in a thread of its own, in its own time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class BackgroundThreads:
    """Real threads and real time; simulations bring others."""

    def start(self, work: Callable[[], None], name: str) -> None:
        """Begin to work in a thread that keeps nobody from exiting."""
        threading.Thread(target=work, name=name, daemon=True).start()

    def sleep(self, seconds: float) -> None:
        """Let others work."""
        time.sleep(seconds)

    def now(self) -> float:
        """Return seconds that only ever grow."""
        return time.monotonic()
