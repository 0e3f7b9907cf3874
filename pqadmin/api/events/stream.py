"""Server-sent events: what changes in the queues that the caller sees, resumable by Last-Event-ID."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Annotated

from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from ninja import Header, Query, Router

from pqadmin.accounts.authentication import Unauthenticated
from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import Scope
from pqadmin.api import limits, problems, threads
from pqadmin.api.answers import caller_in
from pqadmin.api.events.feed import LATE, Feed, dead_shape, dead_since
from pqadmin.api.request import ApiRequest
from pqadmin.api.request_caller import caller_now
from pqadmin.files.plain_text import json_text
from pqadmin.files.shapes import Shape, time_shape
from pqadmin.live.monitor import Monitor, get_monitor
from pqadmin.pages.streaming import StreamedAnswer
from pqadmin.store import get_store
from queues import Item, QueueStatus
from queues.admin import check_glob, name_pattern, time_of_ms, to_ms

router = Router(tags=["Events"])

#: Seconds after which a client for which there is nothing else is sent the id that it can go on from.
BEAT = 15.0
#: Seconds between two looks at the rights of the caller.
CHECK = 0.5
#: Milliseconds after which a client comes again.
_RETRY = 2_000
#: A stream that begins anew is told again the items that died so long before the id that it shows.
_OVERLAP = 3 * LATE
#: Events in one part of an answer, and dead items that are read at once.
_PART = 200
_ID = re.compile(r"([0-9a-f]{12})\.([0-9]{1,15})\.([0-9]{1,13})")

_feeds: dict[Monitor, Feed] = {}


def feed_of(monitor: Monitor) -> Feed:
    """Return the feed of the process's monitor."""
    if monitor not in _feeds:
        _feeds.clear()
        _feeds[monitor] = Feed(monitor.board)
    return _feeds[monitor]


@router.get(
    "/events",
    operation_id="events",
    summary="Follow changes",
    openapi_extra={
        "responses": {200: {"description": "Events, until the client leaves.", "content": {"text/event-stream": {}}}}
    },
)
async def events(
    request: ApiRequest,
    queues: Annotated[str, Query(max_length=300, description="A name or glob: follow only these queues.")] = "*",
    last_event_id: Annotated[
        str, Header(alias="Last-Event-ID", max_length=100, description="The id of the last event received.")
    ] = "",
) -> StreamedAnswer:
    """Follow changes of queues, of their verdicts, and items that die, as server-sent events.

    The stream begins with the names of all queues that it shows and the state of each. With `Last-Event-ID` it goes on
    behind that event if this process knows it; otherwise it begins anew and tells the items that died since.
    """
    caller = caller_in(request)
    caller.require(Verb.READ, Right.READ)
    fits = name_pattern((check_glob(queues),)).fullmatch
    held = ExitStack()
    held.enter_context(limits.waiting(caller))
    stream = _Stream(request, get_monitor(), lambda name: fits(name) is not None, last_event_id)
    kind, headers = "text/event-stream; charset=utf-8", {"X-Accel-Buffering": "no"}
    return StreamedAnswer(stream.parts(), held, content_type=kind, headers=headers)


class _Stream:
    """One stream: its place in the feed, and what its caller sees."""

    def __init__(self, request: ApiRequest, monitor: Monitor, fits: Callable[[str], bool], last: str) -> None:
        self._request = request
        self._monitor = monitor
        self._feed = feed_of(monitor)
        self._fits = fits
        #: The number of the last event that was sent; None: the stream begins anew.
        self._number: int | None = None
        #: The time up to which dead items were told: those since are told when it begins anew.
        self._since: datetime | None = None
        if found := _ID.fullmatch(last):
            self._since = time_of_ms(int(found[3]))
            self._number = int(found[2]) if found[1] == self._feed.era else None
        self._scope: Scope | None = None
        self._trouble: tuple[float, str] | None = None

    async def parts(self) -> AsyncIterator[bytes]:
        """Return the parts of the answer, until the caller may read no more or the server ends."""
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        looks = self._feed.looks
        self._feed.join(self, lambda: _wake(loop, woken))
        self._monitor.follow(self._feed)
        spoken = loop.time()
        try:
            yield f"retry: {_RETRY}\n\n".encode()
            while not self._monitor.closed:
                woken.clear()
                self._monitor.keep_running()
                try:
                    caller = await caller_now(self._request)
                    caller.require(Verb.READ, Right.READ)
                except (Unauthenticated, PermissionDenied) as error:
                    yield _ended(error)
                    return
                except DatabaseError:  # nothing is told until the rights are known again
                    pass
                else:
                    # The board may be old until it was looked at after the stream came.
                    if self._feed.looks > looks:
                        async for part in self._news(caller.scope):
                            spoken = loop.time()
                            yield part
                    if (told := self._state_of_store()) is not None:
                        yield told
                if loop.time() - spoken >= BEAT:
                    spoken = loop.time()
                    yield self._beat()
                with suppress(TimeoutError):
                    async with asyncio.timeout(CHECK):
                        await woken.wait()
        finally:
            self._feed.leave(self)

    async def _news(self, scope: Scope) -> AsyncIterator[bytes]:
        """Return what is to be told now: events, or all of the state where it begins anew."""
        feed, looked_at = self._feed, self._feed.looked_at
        assert looked_at is not None
        found = None if self._number is None or scope != (self._scope or scope) else feed.after(self._number)
        self._scope = scope
        sees = scope.teller(Right.READ)
        if found is not None:
            shown = (each for each in found if self._fits(each.queue) and sees(each.queue))
            for part in _joined(_event(each.kind, each.text, self._id(each.number, looked_at)) for each in shown):
                yield part
            if found:
                self._number = found[-1].number
            self._since = looked_at
            return
        number, state = feed.state()
        there = [(status, text) for status, text in state if self._fits(status.name) and sees(status.name)]
        yield _event("begin", json_text({"queues": sorted(status.name for status, _ in there)}))
        for part in _joined(_event("queue", text) for _, text in there):
            yield part
        if self._since is not None:
            async for part in _died([status for status, _ in there], self._since - _OVERLAP):
                yield part
        self._number, self._since = number, looked_at
        yield _event("complete", json_text({"queues": len(there)}), self._id(number, looked_at))

    def _beat(self) -> bytes:
        """Return what a client that gets no event is sent: an id alone, or a comment before there is one."""
        looked_at = self._feed.looked_at
        if self._number is None or looked_at is None:
            return b":\n\n"
        return f"id: {self._id(self._number, looked_at)}\n\n".encode()

    def _id(self, number: int, looked_at: datetime) -> str:
        return f"{self._feed.era}.{number}.{to_ms(looked_at)}"

    def _state_of_store(self) -> bytes | None:
        """Return the event that the store cannot be read, or can be again; None: as before."""
        trouble = self._monitor.hub.trouble
        if trouble == self._trouble:
            return None
        self._trouble = trouble
        since, message = (None, None) if trouble is None else trouble
        at = None if since is None else time_shape(time_of_ms(int(since * 1000)))
        return _event("trouble", json_text({"since": at, "message": None if message is None else str(message)}))


def _wake(loop: asyncio.AbstractEventLoop, woken: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the loop was closed with a stream in it
        loop.call_soon_threadsafe(woken.set)


def _event(kind: str, text: str, event_id: str = "") -> bytes:
    """Return one event; its text is JSON, which has no line ends."""
    head = f"event: {kind}\nid: {event_id}\n" if event_id else f"event: {kind}\n"
    return f"{head}data: {text}\n\n".encode()


def _joined(events: Iterable[bytes]) -> Iterator[bytes]:
    """Return events in parts of many."""
    left = iter(events)
    while part := b"".join(islice(left, _PART)):
        yield part


async def _died(queues: Sequence[QueueStatus], since: datetime) -> AsyncIterator[bytes]:
    """Return the items of queues that died since a time, read in threads, some at a time."""
    for status in queues:
        if not status.totals.dead:
            continue
        died = await threads.run(partial(dead_since, get_store(), status.name, since))
        while found := await threads.run(partial(_next, died)):
            shapes: list[Shape] = [dead_shape(status, item) for item, _ in found]
            yield b"".join(_event("dead", json_text(shape)) for shape in shapes)


def _next(died: Iterator[tuple[Item, datetime]]) -> list[tuple[Item, datetime]]:
    return list(islice(died, _PART))


def _ended(error: Exception) -> bytes:
    """Return the last event: why the caller is told no more."""
    code = "Unauthenticated" if isinstance(error, Unauthenticated) else "Forbidden"
    return _event("end", json_text(problems.shape(code, str(error))))
