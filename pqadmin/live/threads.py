"""Threads of the live part, where the process may have as many as it is allowed to (a limit of pids)."""

import logging
import threading
from collections.abc import Callable

from queues.admin import LogLimit

log = logging.getLogger(__name__)
_limited = LogLimit(log)

#: Starts a daemon thread and returns it; raises `RuntimeError` where the process gets none.
Start = Callable[[Callable[[], None], str], threading.Thread]


def start_thread(work: Callable[[], None], name: str) -> threading.Thread:
    """Start a daemon thread and return it; raise `RuntimeError` where the process gets none."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def try_start(start: Start, work: Callable[[], None], name: str) -> threading.Thread | None:
    """Return the started thread; None, and a line in the log, where the process gets none."""
    try:
        return start(work, name)
    except RuntimeError as error:
        _limited.warn(name, "The thread %s was not started: %s. It is tried again when it is needed.", name, error)
        return None
