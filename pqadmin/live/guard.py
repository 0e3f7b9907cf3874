"""Rights of open sockets: checked again while they are open.

A session may end, a user be deactivated, a role or grant change, a wall's link be revoked, also by another process. One
look at the database serves all sockets of a loop, twice a second.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import DatabaseError
from django.utils import timezone

from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import Scope, scopes_of
from pqadmin.live.sockets import Pass, Socket, isolate
from queues.admin import LogLimit

log = logging.getLogger(__name__)
_limited = LogLimit(log)

#: Close codes: the session has ended; the right to read is gone.
SIGNED_OUT, NOT_ALLOWED = 4401, 4403

#: Returns the scopes of links; a link without one is no longer valid.
Links = Callable[[Collection[str]], Mapping[str, Scope]]
_links: Links | None = None


def links_answered_by(links: Links) -> None:
    """Check passes with a link by this function, in a thread, twice a second."""
    global _links  # set once, when the app that keeps links is ready
    _links = links


async def check(sockets: Collection[Socket]) -> None:
    """Close the sockets without rights, and update the scopes of the rest.

    When the database does not answer, all stay as they are.
    """
    badges = {socket.badge for socket in sockets}
    try:
        found = await database_sync_to_async(stored, thread_sensitive=False)(badges)
    except DatabaseError as error:
        _limited.warn(
            type(error),
            "The rights of sockets were not checked: the database failed: %s. It is tried again soon.",
            error,
        )
        return

    def settle(socket: Socket) -> None:
        badge = socket.badge
        now = found.get(badge)
        if isinstance(now, int):
            socket.end(now)
        elif now is not None and now != badge.scope:
            socket.admit(replace(badge, scope=now))

    for socket in sockets:
        isolate(socket, settle)


def stored(badges: Collection[Pass]) -> dict[Pass, Scope | int]:
    """Return for every pass its present scope, or the close code of an invalid one."""
    links = sorted({badge.link for badge in badges if badge.link})
    walls = _links(links) if links and _links is not None else {}
    people = [badge for badge in badges if not badge.link]
    # Django asks in several questions where one would be too large.
    unexpired = Session.objects.filter(expire_date__gt=timezone.now()).defer("session_data")
    alive = unexpired.in_bulk({badge.session_key for badge in people})
    users = User.objects.in_bulk({badge.user_id for badge in people})
    scopes = scopes_of(users.values())
    found: dict[Pass, Scope | int] = {badge: walls.get(badge.link, NOT_ALLOWED) for badge in badges if badge.link}
    for badge in people:
        user = users.get(badge.user_id)
        if badge.session_key not in alive or user is None or not user.is_active or user.password != badge.password:
            found[badge] = SIGNED_OUT
        else:
            scope = scopes[badge.user_id]
            found[badge] = scope if scope.anywhere(Right.READ) else NOT_ALLOWED
    return found
