"""Connection to a server: sends calls of the HTTP API, and repeats those that get no answer.

One thread with an event loop sends the calls of all threads and coroutines of a store, by one pool of connections. A
call that changes something carries an idempotency key, or is one that changes nothing when repeated. So it is repeated
after lost connections, refusals of a busy server and answers of proxies, and is executed once.
"""

import asyncio
import errno
import json
import os
import random
import re
import secrets
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from queues.consumers.consumer import MAX_NAME
from queues.consumers.presence import program
from queues.errors import (
    AnswerLost,
    BadStoreURL,
    ForkedStore,
    ItemNotFound,
    JobNotFound,
    OutcomeUnknown,
    QueueNotFound,
    RequestRefused,
    ServerUnreachable,
    StoreClosed,
    TrashNotFound,
    Worded,
)
from queues.kv.boottime import boottime
from queues.remote.problems import decides, error_of, may_pass

T = TypeVar("T")

# httpcore asks for sniffio at each request; to look for it in vain took a quarter of the time of a push.
if find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment] # how Python notes that there is none

#: Seconds to connect, and to wait for an answer beside the time that the call itself may take.
CONNECT, ANSWER = 5.0, 30.0
#: Seconds that one try has at least, however little time is left.
LEAST = 1.0
#: Seconds between two tries: at first, and at most.
FIRST_REST, LONGEST_REST = 0.05, 2.0
#: Calls under way at once that do not wait for items: sites limit those of an address. Connections that are kept.
MOST, KEPT = 32, 50
#: Seconds of a round trip beyond which the server's time in its answer is too old to be used.
_PROMPT = 1.0
#: Seconds after which a stream of events that broke, or was refused, is asked for again.
_REOPEN = 5.0
#: Errors before a request was sent.
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
#: Characters of a part of a path, and parts that are resolved as folders.
_LONGEST_PART, _DOTS = 1_000, frozenset({".", ".."})
_random = random.Random()  # noqa: S311 - spreads clients, guards nothing


@dataclass(slots=True, kw_only=True)
class Call:
    """One call of the API."""

    method: str
    #: Parts of the path behind `/api/v1`.
    path: Sequence[str]
    query: Mapping[str, Any] = field(default_factory=dict)
    #: A body in JSON.
    body: Any = None
    #: A body of bytes.
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Idempotency key; empty where a repetition changes nothing.
    key: str = ""
    #: Seconds for which the server may wait for an item.
    wait: float = 0.0

    @classmethod
    def writing(cls, method: str, *path: str, **rest: Any) -> "Call":
        """Return a call that changes something, with a new key."""
        return cls(method=method, path=path, key=secrets.token_hex(16), **rest)


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
        parts = urlsplit(url)
        if not parts.hostname or parts.query or parts.fragment or parts.username is not None:
            raise BadStoreURL("{url} is no address of a site: write https://HOST.", url=repr(url))
        if token is not None and parts.scheme == "http" and not _loopback(parts.hostname):
            raise BadStoreURL(
                "A token is not sent to {url} in the clear: write https://. Plain http is for this machine alone.",
                url=repr(url),
            )
        if token is not None and not _TOKEN.fullmatch(token):
            raise BadStoreURL("What is given as the token is none: a token is one word of ASCII, such as pq_….")
        #: The server, as errors name it.
        self.host = parts.netloc
        self._base = url.rstrip("/") + "/api/v1/"
        self._timeout = timeout
        self._pid = os.getpid()
        self._closed = False
        #: Held while a call begins, so that none begins behind the end.
        self._beginning = threading.Lock()
        self._elapsed = elapsed
        #: The store's time less the elapsed time of this machine; None until the server told the time.
        self._offset: float | None = None
        self._waiting: set[asyncio.Task[Any]] = set()
        self._room = asyncio.Semaphore(MOST)
        try:
            self._headers = _own_headers(token)
            httpx.Headers(self._headers)  # all can be sent
            # No client of httpx around it: that would look for cookies, redirects and logins in each answer.
            self._transport = transport or httpx.AsyncHTTPTransport(
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=KEPT),
                proxy=_proxy(parts.scheme, parts.hostname),
            )
            _url(self._base)
        except ValueError as error:
            raise BadStoreURL("{url} cannot be used: {error}", url=repr(url), error=str(error)) from None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pq-remote", daemon=True)
        self._thread.start()

    def clock(self) -> float:
        """Return the store's time in seconds since the epoch, as its server told it last."""
        return time.time() if self._offset is None else self._elapsed() + self._offset

    def call(self, call: Call, *, timeout: float | None = None) -> Any:
        """Return the JSON of an answer; a thread waits for it. Raises the error that was answered."""
        return self.run(self.send(call, timeout=timeout))

    def get(self, *path: str, **query: Any) -> Any:
        """Return the JSON at a path; a thread waits for it."""
        return self.call(Call(method="GET", path=path, query=query))

    def write(self, method: str, *path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Change something once, and return the answer's JSON; a thread waits for it."""
        return self.call(Call.writing(method, *path, body=body, query=query or {}))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of this connection. A thread waits for it, and an interrupted one ends it."""
        future = self.begin(work)
        try:
            return future.result()
        except CancelledError:
            raise StoreClosed("The store is closed.") from None
        except BaseException:
            future.cancel()
            raise

    def begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin a coroutine of this connection."""
        if self._pid != os.getpid():  # its lock may be held for ever
            work.close()
            if self._closed:
                raise StoreClosed("The store is closed.")
            raise ForkedStore("This store was opened before a fork: open a new one in the child process.")
        with self._beginning:
            if not self._closed:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        raise StoreClosed("The store is closed.")

    def soon(self, do: Callable[..., object], *values: Any) -> None:
        """Call a function in the thread of the connection."""
        with suppress(RuntimeError):  # it is closed
            self._loop.call_soon_threadsafe(do, *values)

    async def send(self, call: Call, *, timeout: float | None = None) -> Any:
        """Return the JSON of an answer, repeating the call while there is none. Raise the error that was answered."""
        timeout = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + timeout + call.wait
        polled = time.monotonic() + call.wait
        # `lost`: whether the call may have been executed by a try without an answer.
        rest, lost, writes = FIRST_REST, False, bool(call.key) or call.method != "GET"
        request = self._request(call)
        while True:
            wait = max(0.0, polled - time.monotonic()) if call.wait else 0.0
            asked = 0.0
            try:
                answer = await self._exchange(request(wait, deadline - time.monotonic()), wait)
                if answer.is_success:
                    return _json(answer, self.host)
                error = error_of(answer, self.host)
                lost = lost or (writes and (answer.status_code in (502, 504) or isinstance(error, OutcomeUnknown)))
                if lost and call.key and not decides(answer):
                    error = self._lost(error)
                if not may_pass(answer):
                    raise error
                asked = _retry_after(answer)
            except _UNSENT as failure:
                error = self._unreachable(failure, lost=lost)
                if _hopeless(failure):
                    raise error from failure
            except httpx.ReadTimeout:
                lost = writes
                error = self._silent(max(LEAST, timeout + call.wait), lost=lost)
            except httpx.TransportError as failure:
                lost = writes
                error = self._unreachable(failure, lost=lost)
            pause = max(asked, _random.uniform(0.5, 1.0) * rest)
            if time.monotonic() + pause > deadline:
                raise error
            await asyncio.sleep(pause)
            rest = min(LONGEST_REST, rest * 2)

    async def interruptibly(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """Return what a coroutine function returns; None after `interrupt`."""
        task = asyncio.ensure_future(work())
        self._waiting.add(task)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            task.cancel()
            if caller is None or caller.cancelling():
                raise
            return None
        finally:
            self._waiting.discard(task)

    async def follow(self, told: Callable[[], object]) -> None:
        """Follow the events of the site until canceled: `told` is called for what comes. A broken stream is renewed."""
        while True:
            with suppress(httpx.HTTPError):
                request = self._request(Call(method="GET", path=("events",)))(0.0, ANSWER)
                answer = await self._transport.handle_async_request(request)
                try:
                    async for _ in answer.aiter_raw():
                        told()
                finally:
                    await answer.aclose()
            await asyncio.sleep(_REOPEN)

    def interrupt(self) -> None:
        """End all that `interruptibly` waits for."""

        def end() -> None:
            for task in tuple(self._waiting):
                task.cancel()

        self.soon(end)

    def close(self) -> None:
        """End all calls and close the connections. Idempotent."""
        if self._closed or self._pid != os.getpid():
            self._closed = True
            return
        with self._beginning:
            if self._closed:
                return
            self._closed = True

        async def end() -> None:
            await _cancel_others()
            await self._transport.aclose()
            await _cancel_others()  # what those that ended began

        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _request(self, call: Call) -> Callable[[float, float], httpx.Request]:
        """Return what builds the request of a call, which is to wait so long and to be answered within seconds."""
        headers, content = {**self._headers, **call.headers}, call.content
        if call.body is not None:
            content = json.dumps(call.body).encode()
            headers["Content-Type"] = "application/json"
        if call.key:
            headers["Idempotency-Key"] = call.key
        address = self._base + "/".join(map(_segment, call.path, ("", *call.path)))

        def build(wait: float, left: float) -> httpx.Request:
            query = {**call.query, "wait": f"{wait:.3f}"} if call.wait else dict(call.query)
            query = {name: value for name, value in query.items() if value is not None}
            left = max(LEAST, left)
            least = min(ANSWER, left)
            timeout = {"connect": min(CONNECT, left), "read": min(ANSWER + wait, left), "write": least, "pool": None}
            try:
                return httpx.Request(
                    call.method,
                    _url(address),
                    params=query or None,
                    headers=headers,
                    content=content,
                    extensions={"timeout": timeout},
                )
            except (UnicodeEncodeError, httpx.InvalidURL) as error:  # a text of the caller's
                raise RequestRefused(
                    "This cannot be sent to {host}: {reason}", host=self.host, reason=str(error)
                ) from None

        return build

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

    def _unreachable(self, failure: httpx.TransportError, *, lost: bool) -> Worded:
        reason = _reason(failure)
        if lost:
            return AnswerLost(
                "{host} did not answer: {reason}. The request may have been executed.", host=self.host, reason=reason
            )
        return ServerUnreachable("{host} cannot be reached: {reason}.", host=self.host, reason=reason)

    def _silent(self, seconds: float, *, lost: bool) -> Worded:
        values = {"host": self.host, "seconds": f"{seconds:g}"}
        if lost:
            return AnswerLost("{host} did not answer within {seconds} s. The request may have been executed.", **values)
        return ServerUnreachable("{host} did not answer within {seconds} s.", **values)

    def _lost(self, error: Worded) -> AnswerLost:
        lost = AnswerLost(
            "{host} gave no answer first, and then this: {words} The request may have been executed.",
            host=self.host,
            words=error.words,
        )
        lost.__cause__ = error
        return lost


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
    return None if _loopback(host) or proxy_bypass(host) else proxies.get(scheme, proxies.get("all"))


@lru_cache(maxsize=1_000)
def _url(address: str) -> httpx.URL:
    return httpx.URL(address)


def _loopback(host: str) -> bool:
    """Say whether what is sent to a host stays on this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _cancel_others() -> None:
    """End all other tasks of this event loop."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in others:
            task.cancel()
        await asyncio.wait(others)


def _reason(failure: httpx.TransportError) -> str:
    """Return why there was no answer, in a few words."""
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not valid ({cause.verify_message})"
        if isinstance(cause, httpx.ConnectTimeout):
            return os.strerror(errno.ETIMEDOUT)
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
        cause = cause.__cause__ or cause.__context__
    return str(failure).rstrip(".") or type(failure).__name__


def _hopeless(failure: BaseException) -> bool:
    """Say whether the same failure comes again at once: of a certificate, above all."""
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError | httpx.UnsupportedProtocol):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _retry_after(answer: httpx.Response) -> float:
    """Return the seconds after which the server wants to be asked again."""
    try:
        return max(0.0, float(answer.headers.get("Retry-After", "0")))
    except ValueError:
        return 0.0


def _json(answer: httpx.Response, host: str) -> Any:
    try:
        return json.loads(answer.content)
    except ValueError:
        raise RequestRefused("{host} is no pqadmin site: its answer is no JSON.", host=host) from None


def _segment(part: str, before: str) -> str:
    """Return a part of a path as it is sent. Raise what a server answers for a name that no address has."""
    if 0 < len(part) <= _LONGEST_PART and part not in _DOTS and "/" not in part:
        with suppress(UnicodeEncodeError):
            return quote(part, safe="")
    if before == "queues":
        raise QueueNotFound(part)
    if before in ("items", "finished"):
        raise ItemNotFound("The item is not in the queue: it was taken, or was never there.")
    if before == "jobs":
        raise JobNotFound("No bulk job has this id; its time may have run out.")
    if before == "undo":
        raise TrashNotFound("This is no id of anything in the trash.")
    raise RequestRefused("No address holds {part}.", part=f"{part!r:.80}")
