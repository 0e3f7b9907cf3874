"""Verbs of a queue or a store that coroutines await while a thread runs them."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def in_thread(verb: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return the method that runs the verb of this name of `self.sync` in a thread.

    It takes no `tr`: a function that `AsyncStore.transact` runs calls the verbs of threads. A coroutine that is
    canceled leaves a thread that has begun to finish: the verb is then done and its answer is lost.
    """

    @wraps(verb)
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if "tr" in kwargs:
            raise TypeError(f"{verb.__name__}() of a coroutine takes no tr=: use the verbs of threads in transact().")
        answer: T = await asyncio.to_thread(getattr(self.sync, verb.__name__), *args, **kwargs)
        return answer

    signature = inspect.signature(verb)
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[parameter for name, parameter in signature.parameters.items() if name != "tr"]
    )
    return call
