"""Answers that are too large to be made before they are sent: made step by step, as fast as they are taken.

Each step is one short read transaction in a thread of its own, so nothing but one step is held in memory. Only so many
run at once in a process. What fails on the way is told in the last line, as the status was sent long before.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from pqadmin.dashboard import format as write
from queues.errors import QueueError, StoreError

log = logging.getLogger(__name__)

#: More would keep each other, and everybody's pages, waiting.
AT_ONCE = 4
_RETRY_SECONDS = "10"
_slots = threading.BoundedSemaphore(AT_ONCE)


class _Slot:
    """One of the few that may stream; given back once."""

    def __init__(self) -> None:
        self._held = True

    def release(self) -> None:
        """Let somebody else stream."""
        if self._held:
            self._held = False
            _slots.release()


def stream(
    request: HttpRequest,
    parts: Iterator[bytes],
    *,
    name: str,
    content_type: str,
    failure: Callable[[str], bytes],
) -> HttpResponseBase:
    """Return an answer of parts, offered as a file; `failure` makes the last line that says it is not complete."""
    if not _slots.acquire(blocking=False):
        words = _("%(n)s exports are under way already. Try again when one has ended.")
        response: HttpResponseBase = HttpResponse(
            words % {"n": write.number(AT_ONCE)}, status=503, content_type="text/plain; charset=utf-8"
        )
        response["Retry-After"] = _RETRY_SECONDS
        return response
    slot = _Slot()
    told = _telling(parts, failure, slot)
    content = _in_threads(told, slot) if isinstance(request, ASGIRequest) else told
    response = StreamingHttpResponse(content, content_type=content_type)
    response._resource_closers.append(slot.release)  # type: ignore[attr-defined]  # noqa: SLF001 # Django's, for all contents
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    # Django would pack every part by itself, and browsers end where the first of them ends.
    response["Content-Encoding"] = "identity"
    return response


def _telling(parts: Iterator[bytes], failure: Callable[[str], bytes], slot: _Slot) -> Iterator[bytes]:
    try:
        yield from parts
    except (QueueError, StoreError) as error:
        log.warning("an export ended early: %s: %s", type(error).__name__, error)
        yield failure(str(error))
    except Exception:
        log.exception("an export ended early")
        yield failure(_("this site has an error"))
    finally:
        slot.release()


async def _in_threads(parts: Iterator[bytes], slot: _Slot) -> AsyncIterator[bytes]:
    try:
        while (part := await asyncio.to_thread(next, parts, None)) is not None:
            yield part
    finally:
        slot.release()


def file_name(*words: str, ending: str) -> str:
    """Return a file's name that every system and header takes: ASCII letters, digits and - _ . with the time."""
    made = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in "-".join(words))
    return f"{kept[:80].strip('.') or 'export'}-{made}.{ending}"
