"""The window for writes: with PQADMIN_ARM_MINUTES, a site is read-only until the user arms it.

It is kept in the session: it belongs to one browser, ends with a sign-out, and is checked at every write.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from pqadmin.store import store_now

_KEY = "armed_until"


class NotArmed(PermissionDenied):
    """A write outside of the window; the 403 page offers to open it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The state of a browser's window."""

    #: Whether the site is read-only outside of windows.
    needed: bool
    #: The time until which it is open; None: it is shut.
    until: datetime | None = None


def minutes() -> int:
    """Return how many minutes a window is open; 0: writes need none."""
    return int(settings.PQADMIN_ARM_MINUTES)


def window(request: HttpRequest, now: datetime | None = None) -> Window:
    """Return the state of this browser's window."""
    if not minutes():
        return Window(needed=False)
    session = getattr(request, "session", None)
    stored = None if session is None else session.get(_KEY)
    until = datetime.fromtimestamp(stored, UTC) if isinstance(stored, int) else None
    now = now or store_now()
    # Shortened settings hold for windows that are open already.
    shut = until is None or not now < until <= now + timedelta(minutes=minutes())
    return Window(needed=True, until=None if shut else until)


def arm(request: HttpRequest, now: datetime) -> datetime:
    """Open the window and return until when."""
    until = now + timedelta(minutes=minutes())
    request.session[_KEY] = int(until.timestamp())
    return until


def disarm(request: HttpRequest) -> None:
    """Shut the window."""
    request.session.pop(_KEY, None)


def demand(request: HttpRequest) -> None:
    """Raise `NotArmed` for a write outside of the window."""
    found = window(request)
    if found.needed and found.until is None:
        raise NotArmed("writes need an open window")
