"""Whether the people behind open sockets may still look: sessions ended, users deactivated, roles taken away.

One look at the database for all sockets of a loop, twice a second; another process may have made the change.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import DatabaseError
from django.utils import timezone

from pqadmin.accounts.roles import Right, can

#: Whoever was signed in is so no longer, or may no longer read.
SIGNED_OUT, NOT_ALLOWED = 4401, 4403
#: Keys in one SQL question.
_CHUNK = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Why a socket was let in."""

    session_key: str
    user_id: int
    #: The stored hash: a changed password ends other sessions.
    password: str


class Guarded(Protocol):
    """A socket that can be closed."""

    badge: Pass

    def end(self, code: int) -> None:
        """Close the socket with this code."""


async def check(sockets: Collection[Guarded]) -> None:
    """Close the sockets of those who may no longer look; when the database does not answer, all stay open."""
    badges = {socket.badge for socket in sockets}
    try:
        refused = await database_sync_to_async(refusals, thread_sensitive=False)(badges)
    except DatabaseError:
        return
    for socket in sockets:
        if socket.badge in refused:
            socket.end(refused[socket.badge])


def refusals(badges: Collection[Pass]) -> dict[Pass, int]:
    """Return the close code of every pass that is no longer good."""
    keys = sorted({badge.session_key for badge in badges})
    alive: set[str] = set()
    users: dict[int, User] = {}
    for start in range(0, len(keys), _CHUNK):
        chunk = keys[start : start + _CHUNK]
        sessions = Session.objects.filter(session_key__in=chunk, expire_date__gt=timezone.now())
        alive.update(sessions.values_list("session_key", flat=True))
    ids = sorted({badge.user_id for badge in badges})
    for start in range(0, len(ids), _CHUNK):
        users.update(User.objects.in_bulk(ids[start : start + _CHUNK]))
    may = {user_id: can(user, Right.READ) for user_id, user in users.items()}
    refused: dict[Pass, int] = {}
    for badge in badges:
        user = users.get(badge.user_id)
        signed_in = user is not None and user.is_active and user.password == badge.password
        if badge.session_key not in alive or not signed_in:
            refused[badge] = SIGNED_OUT
        elif not may[badge.user_id]:
            refused[badge] = NOT_ALLOWED
    return refused
