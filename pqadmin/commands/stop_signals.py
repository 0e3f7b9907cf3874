"""Stop signals (SIGINT, SIGTERM, SIGHUP). Commands that write in chunks finish a chunk, or never begin it."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: The stop signals that came to this process.
_came: list[int] = []


def stop_signals() -> set[signal.Signals]:
    """Return the signals that ask a process to stop. Under nohup a hangup is none."""
    ignored = {signal.SIGHUP} if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else set()
    return {*SIGNALS} - ignored


class Interrupted(KeyboardInterrupt):
    """A user or the service manager asked to stop."""


def heed(number: int, frame: FrameType | None) -> NoReturn:
    """Handle a stop signal outside of an `Interruption`: end the command, its store closed."""
    _came.append(number)
    raise Interrupted


def end_at_next() -> None:
    """Let a further stop signal end the process at once: what is left to write may never be read."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)


def only_sigint() -> bool:
    """Return whether stop signals came, and all of them were SIGINT, as of Ctrl-C."""
    return {*_came} == {signal.SIGINT}


class Interruption:
    """A context in which a stop signal raises `Interrupted`; inside `held()` it does so at the end.

    `on_held` is called at once with the number of a signal that comes inside `held()`.
    """

    def __init__(self, on_held: Callable[[int], object] = lambda number: None) -> None:
        self._on_held = on_held
        self.requested = False
        self._held = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            for number in stop_signals():
                self._previous[number] = signal.signal(number, self._stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let the block finish; raise `Interrupted` after it if a stop was asked for."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self.requested:
            raise Interrupted

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let a stop signal end the block, inside `held()`."""
        self._held = False
        try:
            if self.requested:
                raise Interrupted
            yield
        finally:
            self._held = True

    def finish(self, last: Callable[[], object]) -> None:
        """Run the last step of a command; later stop signals do nothing."""
        self._held = True
        last()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        _came.append(number)
        self.requested = True
        if not self._held:
            raise Interrupted
        self._on_held(number)
