"""The threads of the API: for views that read much or act, so that the event loop goes on meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.db import close_old_connections

from pqadmin.api.request import ApiRequest

P = ParamSpec("P")
T = TypeVar("T")

#: Commits of concurrent requests share a flush, so more threads than processors pay.
THREADS = 8
_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="pqadmin-api")


async def run(work: Callable[[], T]) -> T:
    """Run a function in one of the threads; a canceled caller leaves it to finish."""
    return await asyncio.get_running_loop().run_in_executor(_pool, partial(_run, work))


async def finish(work: Callable[[], T]) -> T:
    """Run a function in one of the threads; canceled once it runs, return what it returns.

    The cancellation comes where it never ran, or raised.
    """
    begun = _pool.submit(_run, work)
    ended = asyncio.wrap_future(begun)
    try:
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        if begun.cancel():
            raise
        await asyncio.wait([ended])
        if ended.exception() is not None:
            raise
        return ended.result()


def in_thread(
    view: Callable[Concatenate[ApiRequest, P], T],
) -> Callable[Concatenate[ApiRequest, P], Awaitable[T]]:
    """Make a view of plain functions a coroutine that runs it in a thread."""

    @wraps(view)
    async def call(request: ApiRequest, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        return await run(partial(view, request, *args, **kwargs))

    return call


def _run(work: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()
