"""The window for writes: with PQADMIN_ARM_MINUTES, a site is read-only until the user arms it.

It is kept in the session: it belongs to one browser, ends with a sign-out, and is checked at every write.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
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


def window(request: HttpRequest) -> Window:
    """Return the state of this browser's window."""
    if not minutes():
        return Window(needed=False)
    session = getattr(request, "session", None)
    return Window(needed=True, until=None if session is None else _still_open(armed_until(session), store_now()))


def armed_until(session: SessionBase) -> datetime | None:
    """Return the time until which a session was armed, past or not."""
    stored = session.get(_KEY)
    return datetime.fromtimestamp(stored, UTC) if isinstance(stored, int) else None


def _still_open(until: datetime | None, now: datetime) -> datetime | None:
    # Shortened settings hold for windows that are open already.
    shut = until is None or not now < until <= now + timedelta(minutes=minutes())
    return None if shut else until


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
    session = getattr(request, "session", None)
    demand_open(None if session is None else armed_until(session))


def demand_open(until: datetime | None) -> None:
    """Raise `NotArmed` on a read-only site, unless the window is open until this time."""
    if minutes() and _still_open(until, store_now()) is None:
        raise NotArmed("writes need an open window")
