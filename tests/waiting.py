"""Calls in threads of their own, and waits for what they bring about."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

#: Seconds after which a test gives up; no test depends on how soon something happens.
LONG = 120.0


def begin(work: Callable[..., T], *arguments: Any) -> Future[T]:
    """Begin to work in a thread of its own, which a test that fails may leave waiting."""
    working: Future[T] = Future()

    def run() -> None:
        try:
            working.set_result(work(*arguments))
        except BaseException as error:
            working.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return working


def await_true(seen: Callable[[], object], *, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Return when a condition holds: soon after that, and later by a tenth of the wait at most."""
    begun = time.monotonic()
    while not seen():
        waited = time.monotonic() - begun
        assert waited < LONG, "it does not come to that"
        meanwhile()
        time.sleep(min(max(0.001, waited / 10), 0.02))
