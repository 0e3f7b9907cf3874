"""Handlers: functions that process items, found by the name of the queue, and the delay after a failure."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

from queues.errors import display_name
from queues.model import name_patterns
from queues.model.duration import BACKOFF, LEASE, Duration, seconds_of
from queues.model.names import canonical
from queues.operations.peek import check_end
from queues.operations.plain_functions import refuse_function
from queues.workers.job import Job

Function = Callable[[Job], object]
F = TypeVar("F", bound=Function)

#: A handler in errors about it.
HANDLER = "A handler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential backoff with jitter: first · factor^(attempts − 1) seconds, at most `most`.

    `jitter` is the largest part that is taken off at random, so that items that failed together do not return together.
    """

    first: Duration = 1.0
    factor: float = 2.0
    most: Duration = 600.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        """Refuse numbers that make no backoff."""
        for name in ("first", "most"):
            object.__setattr__(self, name, seconds_of(getattr(self, name), BACKOFF))  # it is frozen
        if not (math.isfinite(self.factor) and self.factor >= 1 and 0 <= self.jitter <= 1):
            raise ValueError("A back-off has factor ≥ 1 and jitter from 0 to 1.")

    def delay(self, attempts: int, *, dice: Callable[[], float] = random.random) -> timedelta:
        """Return the delay of an item after this number of attempts."""
        most = seconds_of(self.most, BACKOFF)
        try:
            whole = min(most, seconds_of(self.first, BACKOFF) * self.factor ** (max(attempts, 1) - 1))
        except OverflowError:
            whole = most
        return timedelta(seconds=whole * (1 - self.jitter * dice()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A function with its options."""

    function: Function
    #: Seconds of a lease, which is extended while the function runs.
    seconds: float
    #: The end that items are taken from.
    end: str
    backoff: Backoff = field(default_factory=Backoff)


class Worker:
    """The handlers of a program, registered by decorator."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def __repr__(self) -> str:
        return f"<Worker of {', '.join(map(repr, self._handlers)) or 'no queues'}>"

    def handles(
        self, queue: str, *, seconds: Duration = 60.0, end: str = "min", backoff: Backoff | None = None
    ) -> Callable[[F], F]:
        """Register the decorated function for a queue, or a pattern such as `mail:*`.

        It is called with a `Job`. When it returns, the item is acknowledged; when it raises, the item is released,
        with the error as the reason, and returns after `backoff`, or is dead after the queue's last attempt; when it
        raises `Stopped` because the pool stops, the item returns at once and no attempt is counted. A lease is held
        for `seconds` and extended while the function runs. Raises `BadEnd`, `BadTime`, `ValueError` for a queue that
        has a handler, and `TypeError` for a coroutine or generator function. A handler that returns a coroutine or a
        generator has failed: nothing of that has run.
        """
        held = seconds_of(seconds, LEASE, above_zero=True)
        check_end(end)
        if backoff is not None and not isinstance(backoff, Backoff):
            raise TypeError(f"A back-off is a Backoff, not {type(backoff).__name__}.")
        if canonical(queue) in self._handlers:
            raise ValueError(f"{queue!r} has a handler already.")

        def register(function: F) -> F:
            refuse_function(function, HANDLER)
            self._handlers[canonical(queue)] = Handler(
                function=function, seconds=held, end=end, backoff=backoff or Backoff()
            )
            return function

        return register

    def around(self, wrap: Callable[[Function], Function]) -> "Worker":
        """Return a worker with the same handlers, each function wrapped by `wrap`."""
        wrapped = Worker()
        for pattern, handler in self._handlers.items():
            wrapped._handlers[pattern] = replace(handler, function=wrap(handler.function))
        return wrapped

    def handler(self, queue: str) -> Handler:
        """Return the handler of a queue's name, else of the first pattern that matches. Raise `LookupError`."""
        found = self._handlers.get(queue)
        if found is not None:
            return found
        for pattern, handler in self._handlers.items():
            if name_patterns.pattern((canonical(pattern),)).fullmatch(queue):
                return handler
        raise LookupError(f"{display_name(queue)} has no handler.")
