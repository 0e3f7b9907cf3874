"""Answers that are made step by step, as fast as their readers take them.

Each step is one short read transaction in a thread of its own, so nothing but one step is held in memory. Only so many
run at once in a process, and fewer of one person; a reader that lost the right gets no more. What fails on the way is
told in the last line, as the status was sent long before.
"""

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.db import DatabaseError, connections
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from pqadmin.accounts.roles import signed_in
from pqadmin.accounts.scope import scope_of
from pqadmin.display import format as write
from pqadmin.display.errors import said
from pqadmin.files import export_parts
from pqadmin.files.entries import Format
from pqadmin.live import guard
from pqadmin.live.sockets import Pass
from queues.admin import LogLimit
from queues.errors import QueueError, StoreError

log = logging.getLogger(__name__)
_limited = LogLimit(log)

#: More would keep each other, and all pages, waiting.
AT_ONCE = 4
#: Of one person, so that one user does not block the rest.
AT_ONCE_EACH = 2
#: Seconds between checks of the reader's right.
LOOK_EVERY = 2.0
_RETRY_SECONDS = "10"

#: Reentrant: an answer that was not closed gives its slot back wherever its thread collects garbage.
_lock = threading.RLock()
_held: Counter[int] = Counter()


class _Slot:
    """One of the few that may stream; given back once."""

    def __init__(self, person: int) -> None:
        self._person: int | None = person

    def release(self) -> None:
        """Free the slot."""
        with _lock:
            if self._person is not None:
                _held[self._person] -= 1
                if not _held[self._person]:
                    del _held[self._person]
                self._person = None


class StreamedAnswer(StreamingHttpResponse):
    """An answer in parts that gives its caller's place back when it is closed, begun or not."""

    def __init__(self, parts: Iterator[bytes] | AsyncIterator[bytes], held: ExitStack, **about: Any) -> None:
        super().__init__(parts, **about)
        self._held = held

    def close(self) -> None:
        """End the stream."""
        super().close()
        self._held.close()


def under_way() -> int:
    """Return how many answers are being made."""
    return _held.total()


def stream(
    request: HttpRequest,
    parts: Iterator[bytes],
    *,
    name: str,
    file_format: Format,
) -> HttpResponseBase:
    """Return an answer of parts, offered as a file. Its last line says so if it is not complete."""
    user = signed_in(request)
    badge = Pass(
        scope=scope_of(user),
        session_key=request.session.session_key or "",
        user_id=user.pk,
        password=user.password,
    )
    slot = _take(badge.user_id)
    if isinstance(slot, HttpResponse):
        return slot
    told = telling(
        parts,
        partial(export_parts.failure, file_format=file_format),
        Watch(partial(_refused, badge)),
        refusal=_("You are signed out, or may read here no longer."),
        words=said,
        broken=_("this site has an error"),
    )
    told = _releasing(told, slot)
    content = _in_threads(told, slot) if isinstance(request, ASGIRequest) else told
    content_type = "text/csv; charset=utf-8" if file_format == "csv" else "application/x-ndjson"
    held = ExitStack()
    held.callback(slot.release)
    response = StreamedAnswer(content, held, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    # Django would pack every part by itself, and browsers end where the first of them ends.
    response["Content-Encoding"] = "identity"
    return response


def _take(person: int) -> _Slot | HttpResponse:
    """Return a slot, or the answer that says why there is none."""
    with _lock:
        if _held[person] >= AT_ONCE_EACH:
            status, words = 429, _("Two exports of yours are under way already. Try again when one has ended.")
        elif _held.total() >= AT_ONCE:
            words = _("%(n)s exports are under way already. Try again when one has ended.")
            status, words = 503, words % {"n": write.number(AT_ONCE)}
        else:
            _held[person] += 1
            return _Slot(person)
    response = HttpResponse(words, status=status, content_type="text/plain; charset=utf-8")
    response["Retry-After"] = _RETRY_SECONDS
    return response


class Watch:
    """Asks now and then whether the reader or writer of a stream has lost the right to it; asked in a thread."""

    def __init__(self, refused: Callable[[], bool]) -> None:
        self._refused = refused
        self._looked = time.monotonic()

    def ended(self) -> bool:
        """Return whether the right has ended; not while the database does not answer."""
        if time.monotonic() - self._looked < LOOK_EVERY:
            return False
        self._looked = time.monotonic()
        try:
            return self._refused()
        except DatabaseError as error:
            _limited.warn(type(error), "A stream goes on unchecked: the database failed: %s. It is tried again.", error)
            return False


def telling(
    parts: Iterator[bytes],
    failed: Callable[[str], bytes],
    watch: Watch,
    *,
    refusal: str,
    words: Callable[[QueueError | StoreError], str],
    broken: str,
) -> Iterator[bytes]:
    """Yield parts. The last one names what ended them early: a lost right, or an error."""
    try:
        for part in parts:
            if watch.ended():
                yield failed(refusal)
                return
            yield part
    except (QueueError, StoreError) as error:
        log.warning("an export ended early: %s: %s", type(error).__name__, error)
        yield failed(words(error))
    except Exception:
        log.exception("an export ended early")
        yield failed(broken)


def _releasing(parts: Iterator[bytes], slot: _Slot) -> Iterator[bytes]:
    try:
        yield from parts
    finally:
        slot.release()


def _refused(badge: Pass) -> bool:
    """Return whether the reader lost the right."""
    now = guard.stored({badge})[badge]
    if isinstance(now, int):
        return True
    # What the file holds was chosen by the scope of its beginning: one that may see less ends it.
    return now != badge.scope and not (now.everything and now.role.rank >= badge.scope.role.rank)


async def _in_threads(parts: Iterator[bytes], slot: _Slot) -> AsyncIterator[bytes]:
    try:
        while (part := await asyncio.to_thread(_next, parts)) is not None:
            yield part
    finally:
        slot.release()


def _next(parts: Iterator[bytes]) -> bytes | None:
    try:
        return next(parts, None)
    finally:
        connections.close_all()  # this thread's own, which nothing else closes


def file_name(*words: str, ending: str) -> str:
    """Return a file's name that every system and header takes: ASCII letters, digits and - _ . with the time."""
    made = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in "-".join(filter(None, words)))
    return f"{kept[:80].strip('.') or 'export'}-{made}.{ending}"
