"""Functions of the caller: coroutine and generator functions are refused, as nothing of them would run."""

import inspect
from collections.abc import Callable
from functools import partial, wraps
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, TypeVar

A = TypeVar("A")
T = TypeVar("T")

#: What a call of such a function returns, and their names.
_NOT_RUN: dict[type, str] = {
    CoroutineType: "a coroutine",
    GeneratorType: "a generator",
    AsyncGeneratorType: "an asynchronous generator",
}


def refuse_function(function: Any, what: str) -> None:
    """Raise `TypeError` for what cannot be called, and for a coroutine or generator function."""
    if not callable(function):
        raise TypeError(f"{what} is a function, not {type(function).__name__}.")
    called = function if inspect.isroutine(function) else getattr(function, "func", type(function).__call__)
    for asks, kind in (
        (inspect.iscoroutinefunction, "coroutine"),
        (inspect.isgeneratorfunction, "generator"),
        (inspect.isasyncgenfunction, "asynchronous generator"),
    ):
        if asks(called):
            raise TypeError(f"{what} is a plain function, not a {kind} function: {function!r:.100}")


def refuse_result(result: object, what: str) -> None:
    """Raise `TypeError` if a function returned a coroutine or a generator: nothing of that has run."""
    kind = _NOT_RUN.get(type(result))
    if kind is None:
        return
    if isinstance(result, CoroutineType):
        result.close()  # else it warns that it was never awaited
    raise TypeError(f"{what} is a plain function. This one returned {kind}, of which nothing has run.")


def checked(fn: Callable[[A], T], what: str) -> Callable[[A], T]:
    """Return a function that calls `fn`, named like it, and refuses its result where nothing of it has run."""

    named: Any = fn.func if isinstance(fn, partial) else fn

    @wraps(named if hasattr(named, "__qualname__") else type(named), updated=())
    def call(argument: A) -> T:
        result = fn(argument)
        refuse_result(result, what)
        return result

    return call
