"""Limits of callers: requests a second of a token, and long polls and streams under way at once.

They hold in each process of a site by itself.
"""

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from pqadmin.accounts.caller import Caller
from pqadmin.api.problems import Problem
from pqadmin.api.request import ApiRequest
from pqadmin.limits.concurrency import Places
from pqadmin.limits.token_bucket import Allowance

#: The key in a request's scope for the headers of its answer.
HEADERS = "pqadmin.rate"
#: Tokens with counted rates; one more, and all begin anew.
_MOST_COUNTED = 10_000

_tokens: dict[tuple[int, int], Allowance] = {}
_of_tokens = Places(settings.PQADMIN_WAITS_PER_TOKEN)
_of_people = Places(settings.PQADMIN_WAITS_PER_PERSON)


def count(request: ApiRequest, caller: Caller) -> None:
    """Count a request of a token with a rate; raises the problem of one too many, with the time to wait."""
    if caller.token_id is None or caller.rate is None:
        return
    now, key = asyncio.get_running_loop().time(), (caller.token_id, caller.rate)
    if key not in _tokens and len(_tokens) >= _MOST_COUNTED:
        _tokens.clear()
    allowance = _tokens.setdefault(key, Allowance(rate=caller.rate, burst=caller.rate, now=now))
    allowed = allowance.take(now)
    seconds = max(1, math.ceil(allowance.wait))
    headers = {
        "RateLimit-Policy": f'"token";q={caller.rate};w=1',
        "RateLimit": f'"token";r={allowance.left};t={seconds}',
    }
    getattr(request, "scope", {})[HEADERS] = headers
    if not allowed:
        words = f"The token may send {caller.rate:,} requests a second."
        raise Problem("TooManyRequests", words, {"rate": caller.rate}, {"Retry-After": str(seconds)})


@contextmanager
def waiting(caller: Caller) -> Iterator[None]:
    """Hold a place for a long poll or a stream; raises the problem of one too many."""
    wanted = [(_of_people, caller.user_id)]
    if caller.token_id is not None:
        wanted.append((_of_tokens, caller.token_id))
    taken = [(places, key) for places, key in wanted if places.take(key)]
    try:
        if len(taken) < len(wanted):
            words = "Too many long polls and streams of this caller are under way."
            raise Problem("TooManyRequests", words, headers={"Retry-After": "5"})
        yield
    finally:
        for places, key in taken:
            places.give_back(key)
