"""Authentication of requests: tokens and sessions, compared with the tables as they are then.

What was read is kept for as long as no table changes: SQLite tells that to every process by a counter. Other databases
are asked each time, once for all requests that wait meanwhile. So what is revoked in one process is refused by all
from the next request on.
"""

import asyncio
import hashlib
import logging
import secrets
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.contrib.auth import get_user
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import DatabaseError, close_old_connections
from django.db.models import Q
from django.http import HttpRequest

from pqadmin.accounts import arming
from pqadmin.accounts.caller import Caller, Verb
from pqadmin.accounts.coalesced_reads import OncePerTurn
from pqadmin.accounts.models import Token
from pqadmin.accounts.scope import scope_of, scopes_of
from pqadmin.accounts.table_changes import TableChanges
from pqadmin.store import store_now
from queues.admin import LogLimit

log = logging.getLogger(__name__)
_limited = LogLimit(log)

#: What every secret begins with, so that people and scanners take it for a token of this site.
PREFIX = "pq_"
#: The time between two records of a token's use.
USE_EVERY = timedelta(minutes=1)
#: Credentials that are kept; one more, and all are read anew.
_MOST_KEPT = 10_000


class Refusal(StrEnum):
    """Why a credential is refused; the text is the answer's."""

    MISSING = "The request has neither a token nor a session."
    UNKNOWN = "This site knows no such token."
    REVOKED = "The token is revoked."
    EXPIRED = "The token has expired."
    OWNER = "The owner of the token is deactivated."
    SIGNED_OUT = "The session has ended."


class Unauthenticated(Exception):
    """A request without a valid credential."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.value)
        self.refusal = refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """A credential as a request shows it: a token's digest, or a session's key."""

    token: str = ""
    session: str = ""


def new_secret() -> str:
    """Return the text of a new token, of 256 random bits."""
    return PREFIX + secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """Return what is stored of a token. The secret is random, so a fast hash is as safe as a slow one."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class Credentials:
    """Callers by their badges, for requests on an event loop. Thread-safe."""

    def __init__(
        self, clock: Callable[[], datetime] = store_now, *, changes: Callable[[], object] | None = None
    ) -> None:
        """`changes` returns what differs after each change of the tables, or None where that is not known."""
        self._clock = clock
        read = changes or TableChanges().number
        self._number = OncePerTurn[None, object](lambda _: read())
        #: By badge: the number of changes before it was read, and the caller.
        self._kept: dict[Badge, tuple[object, Caller]] = {}
        self._lock = threading.Lock()
        self._waiting: dict[Badge, Future[Caller | Refusal]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pqadmin-credentials")
        #: By token: when its use was recorded last by this process.
        self._recorded: dict[int, datetime] = {}

    async def caller(self, badge: Badge) -> Caller:
        """Return the caller of a badge as of now; raises `Unauthenticated`, or a DatabaseError."""
        number = self._number(None)
        kept_at, caller = self._kept.get(badge, (None, None))
        if caller is None or number is None or kept_at != number:
            # A client that leaves must not cancel what more requests wait for.
            found = await asyncio.shield(asyncio.wrap_future(self._ask(badge)))
            if isinstance(found, Refusal):
                self._kept.pop(badge, None)
                raise Unauthenticated(found)
            caller = found
            if number is not None:
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.clear()
                self._kept[badge] = number, caller
        return self._unexpired(caller)

    def caller_in_thread(self, badge: Badge) -> Caller:
        """Return the caller of a badge as of now, outside of the event loop. Raises as `caller` does."""
        found = self._ask(badge).result()
        if isinstance(found, Refusal):
            raise Unauthenticated(found)
        return self._unexpired(found)

    def _unexpired(self, caller: Caller) -> Caller:
        if caller.expires_at is not None and caller.expires_at <= self._clock():
            raise Unauthenticated(Refusal.SIGNED_OUT if caller.token_id is None else Refusal.EXPIRED)
        return caller

    def record_use(self, caller: Caller, address: str) -> None:
        """Record a token's use behind the request's back, at most once a minute."""
        if caller.token_id is None:
            return
        now = self._clock()
        last = max(filter(None, (caller.last_used_at, self._recorded.get(caller.token_id))), default=None)
        if last is None or not last <= now < last + USE_EVERY:
            self._recorded[caller.token_id] = now
            self._thread.submit(_record_use, caller.token_id, address, now)

    def _ask(self, badge: Badge) -> "Future[Caller | Refusal]":
        with self._lock:
            if badge not in self._waiting:
                self._waiting[badge] = Future()
                if len(self._waiting) == 1:
                    self._thread.submit(self._answer)
            return self._waiting[badge]

    def _answer(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        try:
            close_old_connections()
            found = _read(waiting)
        except Exception as error:  # each request answers with it
            for future in waiting.values():
                future.set_exception(error)
            return
        for badge, future in waiting.items():
            future.set_result(found.get(badge, Refusal.UNKNOWN if badge.token else Refusal.SIGNED_OUT))


def _read(badges: Collection[Badge]) -> dict[Badge, Caller | Refusal]:
    """Return the callers of the badges that the tables know."""
    found: dict[Badge, Caller | Refusal] = {}
    tokens = list(Token.objects.select_related("owner").filter(digest__in=[each.token for each in badges]))
    scopes = scopes_of({token.owner_id: token.owner for token in tokens}.values())
    for token in tokens:
        badge = Badge(token=token.digest)
        if token.revoked_at is not None:
            found[badge] = Refusal.REVOKED
        elif not token.owner.is_active:
            found[badge] = Refusal.OWNER
        else:
            found[badge] = Caller(
                name=f"token:{token.name}",
                user_id=token.owner_id,
                scope=scopes[token.owner_id].restricted_to(token.queues),
                verbs=frozenset(verb for verb in Verb if verb in token.verbs),
                token_id=token.pk,
                rate=token.rate,
                expires_at=token.expires_at,
                last_used_at=token.last_used_at,
            )
    for badge in badges:
        if badge.session and (caller := _of_session(badge.session)) is not None:
            found[badge] = caller
    return found


def _of_session(key: str) -> Caller | None:
    ends = Session.objects.filter(session_key=key).values_list("expire_date", flat=True).first()
    request = HttpRequest()
    request.session = SessionStore(key)
    user = None if ends is None else get_user(request)
    if not isinstance(user, User):
        return None
    return Caller(
        name=user.get_username(),
        user_id=user.pk,
        scope=scope_of(user),
        expires_at=ends,
        armed_until=arming.armed_until(request.session),
    )


def _record_use(token_id: int, address: str, now: datetime) -> None:
    """Write when and from where a token was used, unless another process did so within the minute."""
    long_ago = Q(last_used_at=None) | Q(last_used_at__lte=now - USE_EVERY) | Q(last_used_at__gt=now)
    try:
        close_old_connections()
        Token.objects.filter(long_ago, pk=token_id).update(last_used_at=now, last_address=address)
    except DatabaseError as error:
        _limited.warn(type(error), "The use of a token was not recorded: %s. It is tried again in a minute.", error)
