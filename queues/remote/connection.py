"""Connection to a server: sends calls of the HTTP API, and repeats those that get no answer.

One thread with an event loop sends the calls of all threads and coroutines of a store, by one pool of connections. A
call that changes something carries an idempotency key, or is one that changes nothing when repeated. So it is repeated
after lost connections, refusals of a busy server and answers of proxies, and is executed once.
"""

import asyncio
import json
import os
import random
import re
import secrets
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from datetime import datetime
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote
from urllib.request import getproxies, proxy_bypass

import httpx

from queues.consumers.consumer import MAX_NAME
from queues.consumers.presence import program
from queues.errors import (
    BadStoreURL,
    OutcomeUnknown,
    RequestRefused,
)
from queues.kv.boottime import boottime
from queues.remote.address import check_address, is_loopback
from queues.remote.call import ANSWER, LEAST, Call, parsed_url
from queues.remote.failures import UNSENT, is_final, refused_later, silent, unreachable
from queues.remote.loop_thread import LoopThread
from queues.remote.problems import decides, error_of, may_pass, retry_after

# httpcore asks for sniffio at each request; to look for it in vain took a quarter of the time of a push.
if find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment] # how Python notes that there is none

#: Seconds between two tries: at first, and at most.
FIRST_REST, LONGEST_REST = 0.05, 2.0
#: Calls under way at once that do not wait for items: sites limit those of an address. Connections that are kept.
MOST, KEPT = 32, 50
#: Seconds of a round trip beyond which the server's time in its answer is too old to be used.
_PROMPT = 1.0
#: Seconds after which a stream of events that broke, or was refused, is asked for again.
_REOPEN = 5.0
_random = random.Random()  # noqa: S311 - spreads clients, guards nothing


class Connection:
    """Sends calls to one server. Thread-safe."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None,
        timeout: float,
        transport: httpx.AsyncBaseTransport | None = None,
        elapsed: Callable[[], float] = boottime,
    ) -> None:
        self._timeout = timeout
        self._elapsed = elapsed
        #: The store's time less the elapsed time of this machine; None until the server told the time.
        self._offset: float | None = None
        self._room = asyncio.Semaphore(MOST)
        try:
            parts = check_address(url, with_token=token is not None)
            assert parts.hostname
            if token is not None and not (isinstance(token, str) and _TOKEN.fullmatch(token)):
                raise BadStoreURL("What is given as the token is none: a token is one word of ASCII, such as pq_….")
            #: The server, as errors name it.
            self.host = parts.netloc
            self._base = url.rstrip("/") + "/api/v1/"
            self._headers = _own_headers(token)
            httpx.Headers(self._headers)  # all can be sent
            # No client of httpx around it: that would look for cookies, redirects and logins in each answer.
            self._transport = transport or httpx.AsyncHTTPTransport(
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=KEPT),
                proxy=_proxy(parts.scheme, parts.hostname),
            )
            parsed_url(self._base)
        except ValueError as error:
            raise BadStoreURL("{url} cannot be used: {error}", url=repr(url), error=str(error)) from None
        #: Sends all calls.
        self.thread = LoopThread("pq-remote")

    def clock(self) -> float:
        """Return the store's time in seconds since the epoch, as its server told it last."""
        return time.time() if self._offset is None else self._elapsed() + self._offset

    def call(self, call: Call, *, timeout: float | None = None) -> Any:
        """Return the JSON of an answer; a thread waits for it. Raises the error that was answered."""
        return self.thread.run(self.send(call, timeout=timeout))

    def get(self, *path: str, **query: Any) -> Any:
        """Return the JSON at a path; a thread waits for it."""
        return self.call(Call(method="GET", path=path, query=query))

    def write(self, method: str, *path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Change something once, and return the answer's JSON; a thread waits for it."""
        return self.call(Call.writing(method, *path, body=body, query=query or {}))

    async def send(self, call: Call, *, timeout: float | None = None) -> Any:
        """Return the JSON of an answer, repeating the call while there is none. Raise the error that was answered."""
        timeout = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + timeout + call.wait
        polled = time.monotonic() + call.wait
        # `lost`: whether the call may have been executed by a try without an answer.
        rest, lost, writes = FIRST_REST, False, bool(call.key) or call.method != "GET"
        while True:
            wait = max(0.0, polled - time.monotonic()) if call.wait else 0.0
            asked = 0.0
            try:
                answer = await self._exchange(self._request(call, wait, deadline - time.monotonic()), wait)
                if answer.is_success:
                    return _json(answer, self.host)
                error = error_of(answer, self.host)
                lost = lost or (writes and (answer.status_code in (502, 504) or isinstance(error, OutcomeUnknown)))
                if lost and call.key and not decides(answer):
                    error = refused_later(error, self.host)
                if not may_pass(answer):
                    raise error
                asked = retry_after(answer)
            except UNSENT as failure:
                error = unreachable(failure, self.host, lost=lost)
                if is_final(failure):
                    raise error from failure
            except httpx.ReadTimeout:
                lost = writes
                error = silent(max(LEAST, timeout + call.wait), self.host, lost=lost)
            except httpx.TransportError as failure:
                lost = writes
                error = unreachable(failure, self.host, lost=lost)
            pause = max(asked, _random.uniform(0.5, 1.0) * rest)
            if time.monotonic() + pause > deadline:
                raise error
            await asyncio.sleep(pause)
            rest = min(LONGEST_REST, rest * 2)

    async def follow(self, told: Callable[[], object]) -> None:
        """Follow the events of the site until canceled: `told` is called for what comes. A broken stream is renewed."""
        while True:
            with suppress(httpx.HTTPError):
                request = self._request(Call(method="GET", path=("events",)), 0.0, ANSWER)
                answer = await self._transport.handle_async_request(request)
                try:
                    async for _ in answer.aiter_raw():
                        told()
                finally:
                    await answer.aclose()
            await asyncio.sleep(_REOPEN)

    def close(self) -> None:
        """End all calls and close the connections. Idempotent."""
        self.thread.close(self._transport.aclose)

    def _request(self, call: Call, wait: float, left: float) -> httpx.Request:
        try:
            return call.request(self._base, self._headers, wait, left)
        except (UnicodeEncodeError, httpx.InvalidURL) as error:  # a text of the caller's
            raise RequestRefused("This cannot be sent to {host}: {reason}", host=self.host, reason=str(error)) from None

    async def _exchange(self, request: httpx.Request, wait: float) -> httpx.Response:
        async with nullcontext() if wait else self._room:
            begun = self._elapsed()
            answer = await self._transport.handle_async_request(request)
            answer.request = request
            await answer.aread()
        ended = self._elapsed()
        told = answer.headers.get("PQ-Time")
        if told is not None and (self._offset is None or ended - begun < _PROMPT) and not wait:
            with suppress(ValueError):
                self._offset = datetime.fromisoformat(told).timestamp() - (begun + ended) / 2
        return answer


#: What a header takes as a token.
_TOKEN = re.compile(r"[!-~]+")


def _own_headers(token: str | None) -> dict[str, str]:
    """Return what every request carries, such as which program this is, for the consumers of queues."""
    names = " ".join(quote(name[:MAX_NAME], safe="") or "-" for name in (socket.gethostname(), program()))
    own = {
        "User-Agent": "pqadmin",
        "Accept": "*/*",
        "Accept-Encoding": "gzip, deflate",
        "PQ-Client": f"{secrets.token_hex(8)} {os.getpid()} {names}",
    }
    return own if token is None else {**own, "Authorization": f"Bearer {token}"}


def _proxy(scheme: str, host: str) -> str | None:
    """Return the proxy that the environment names for a host; for this machine there is none."""
    proxies = getproxies()
    return None if is_loopback(host) or proxy_bypass(host) else proxies.get(scheme, proxies.get("all"))


def _json(answer: httpx.Response, host: str) -> Any:
    try:
        return json.loads(answer.content)
    except ValueError:
        raise RequestRefused("{host} is no pqadmin site: its answer is no JSON.", host=host) from None
