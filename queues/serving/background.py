"""Threads and time for background work; simulations replace them."""

import threading
import time
from collections.abc import Callable


class BackgroundThreads:
    """Real threads and real time."""

    def start(self, work: Callable[[], None], name: str) -> None:
        """Start work in a daemon thread."""
        threading.Thread(target=work, name=name, daemon=True).start()

    def sleep(self, seconds: float) -> None:
        """Sleep for so many seconds."""
        time.sleep(seconds)

    def wait(self, stopped: threading.Event, seconds: float) -> bool:
        """Sleep for so many seconds, or until it is to stop; say whether it is."""
        return stopped.wait(seconds)

    def now(self) -> float:
        """Return seconds that only ever grow."""
        return time.monotonic()
