"""Queues as requests of programs open them: with the right, for coroutines, under the name of the program."""

import re
from functools import lru_cache, partial
from typing import Annotated, Literal
from urllib.parse import unquote

from ninja import Query, Router

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.coalesced_reads import OncePerTurn
from pqadmin.accounts.rights import Right
from pqadmin.accounts.roles import SAFE
from pqadmin.api import threads
from pqadmin.api.answers import caller_in, refuse_another
from pqadmin.api.request import ApiRequest
from pqadmin.api.request_caller import caller_now
from pqadmin.store import get_store, opened_store
from queues import AnyAsyncQueue, AnyQueue
from queues.admin import Client, for_client, for_coroutines, for_taker
from queues.errors import QueueNotFound

router = Router(tags=["Items"])
#: Engines with reads that are there at once, so that the event loop may read.
_AT_ONCE = ("lmdb:", "memory:")
#: The id, number, host and name of a program that takes, percent-encoded.
_CLIENT = re.compile(r"([0-9a-f]{16}) ([0-9]{1,10}) (\S{1,2000}) (\S{1,2000})")
Returned = Annotated[
    Literal["value"] | None, Query(alias="return", description="`value`: answer whole items, with their values.")
]


async def open_queue(request: ApiRequest, name: str, verb: Verb, right: Right) -> AnyAsyncQueue:
    """Return the queue if the caller has the right on it; raise `QueueNotFound`."""
    caller_in(request).require(verb, right, name)
    try:
        found = await find_queue(name)
    except QueueNotFound:
        # Slower: it suggests names that look alike.
        found = await threads.run(lambda: get_store().queue(name))
    refuse_another(request, found)
    taken = as_taken_by(request, found) if verb is Verb.TAKE else found
    make = _for_coroutines if taken is found else for_coroutines
    return make(taken, in_loop=request.in_loop)


#: The store gives the same queue as long as what is stored of it is the same.
_for_coroutines = lru_cache(1_000)(for_coroutines)


def as_taken_by(request: ApiRequest, queue: AnyQueue) -> AnyQueue:
    """Return the queue of which takes are told as those of the program that names itself, pops else by the caller."""
    client = _client(request.META.get("HTTP_PQ_CLIENT", ""))
    if client is not None:
        return for_client(queue, client)
    return for_taker(queue, caller_in(request).name) if queue.config.keep_finished else queue


@lru_cache(maxsize=1_000)
def _client(told: str) -> Client | None:
    """Return the program that a header names: its id, number, host and name; None where it names none."""
    found = _CLIENT.fullmatch(told)
    return (
        None if found is None else Client(bytes.fromhex(found[1]), int(found[2]), unquote(found[3]), unquote(found[4]))
    )


async def may_take_now(request: ApiRequest, queue: AnyQueue, asked: str) -> None:
    """Return if the caller may take, or look at what it could take; a name that the queue got is told to no other."""
    caller = await caller_now(request)
    try:
        caller.require(Verb.TAKE, Right.ACT, queue.name, only_reads=request.method in SAFE)
    except QueueNotFound:
        raise QueueNotFound(asked) from None


async def find_queue(name: str) -> AnyQueue:
    """Return the queue of this name; raise `QueueNotFound` without suggestions."""
    store = opened_store()
    if store is not None and store.url.startswith(_AT_ONCE):
        return _find_at_once((store.url, name))
    return await threads.run(partial(_find, name))


def _find(name: str) -> AnyQueue:
    store = get_store()
    return store.read(lambda tr: store.queue(name, tr=tr))


_find_at_once = OncePerTurn[tuple[str, str], AnyQueue](lambda url_and_name: _find(url_and_name[1]))
