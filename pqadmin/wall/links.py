"""Links: minted by admins, used once by a screen, revoked at any time. Of token and cookie only hashes are kept.

Both are 256 random bits, so a plain hash is enough: there is nothing to guess, and nothing to look up in the tables. A
short code can be typed in the token's place; tries of codes are throttled.
"""

import secrets
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import salted_hmac

from pqadmin.accounts.authentication import digest
from pqadmin.accounts.scope import Scope
from pqadmin.site_audit import Author, note
from pqadmin.wall import specs
from pqadmin.wall.models import Board, Link

#: The cookie of a wall; its path is the board's own address, so nothing else of the site ever gets it.
COOKIE = "pqadmin_wall"
#: Browsers keep a cookie for 400 days at most; screens renew it every day.
COOKIE_AGE = timedelta(days=400)
#: A token that no screen has used is good for so long.
UNUSED_FOR = timedelta(days=1)
#: When a screen was last seen is noted this often.
NOTED_EVERY = timedelta(minutes=1)
_BYTES = 32
#: A short code: 40 bits in letters and digits that look like no other, and what is typed for these.
_LETTERS, _CODE = "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 8
_MISREAD = str.maketrans("OoIiLl", "001111")


def mint(board: Board, label: str, *, by: Author, now: datetime) -> tuple[Link, str, str]:
    """Make a link to the board. Return it, its token and its short code: shown once, and in no table or audit."""
    token, code = secrets.token_urlsafe(_BYTES), "".join(secrets.choice(_LETTERS) for _ in range(_CODE))
    with transaction.atomic():
        link = Link.objects.create(
            board=board, label=label, token_hash=digest(token), code_hash=_code_hash(code), made_by=by.name, made_at=now
        )
        note(by, "mint_link", after=_told(link), result=link)
    return link, token, f"{code[:4]}-{code[4:]}"


def redeem(slug: str, token: str, *, address: str, now: datetime) -> str | None:
    """Return the secret of a new cookie for a token that was never used. None for any other."""
    return _redeem(_unused(now).filter(board__slug=slug, token_hash=digest(token)), address, now)


def redeem_code(typed: str, *, address: str, now: datetime) -> tuple[str, str] | None:
    """Return slug and cookie secret for a short code that was never used."""
    code = typed.translate(_MISREAD).upper()
    found = _unused(now).filter(code_hash=_code_hash("".join(filter(str.isalnum, code))))
    link = found.select_related("board").first()
    secret = None if link is None else _redeem(found, address, now)
    return None if link is None or secret is None else (link.board.slug, secret)


def _redeem(unused: QuerySet[Link], address: str, now: datetime) -> str | None:
    secret = secrets.token_urlsafe(_BYTES)
    # One statement decides between two screens that use a link at once.
    fresh = {"used_at": now, "cookie_hash": digest(secret), "seen_at": now, "seen_from": address[:64]}
    return secret if unused.update(**fresh) else None


def is_unused(slug: str, token: str, *, now: datetime) -> bool:
    """Return whether a token could be redeemed, changing nothing."""
    return _unused(now).filter(board__slug=slug, token_hash=digest(token)).exists()


def find(slug: str, secret: str) -> Link | None:
    """Return the link of a cookie, if it opens the board and is not revoked."""
    if not secret:
        return None
    return Link.objects.filter(board__slug=slug, cookie_hash=digest(secret), revoked_at=None).first()


def note_seen(link: Link, *, address: str, now: datetime) -> None:
    """Note when and from where a screen was last seen."""
    if _is_due(link, now) or link.seen_from != address[:64]:
        Link.objects.filter(pk=link.pk).update(seen_at=now, seen_from=address[:64])


def count_open(board: Board, now: datetime) -> int:
    """Return how many links open the board: those in use or waiting for a screen."""
    too_old = Q(used_at=None, made_at__lte=now - UNUSED_FOR)
    return board.links.filter(revoked_at=None).exclude(too_old).count()


def _is_due(link: Link, now: datetime) -> bool:
    """Return whether to note anew when a screen was seen. The note is old, or of a clock that was set back since."""
    return link.seen_at is None or not link.seen_at <= now < link.seen_at + NOTED_EVERY


def state_of(link: Link, now: datetime) -> str:
    """Return revoked, used, waiting for its screen, or expired."""
    if link.revoked_at is not None:
        return "revoked"
    if link.used_at is not None:
        return "used"
    return "waiting" if now - link.made_at < UNUSED_FOR else "expired"


def revoke(link: Link, *, by: Author, now: datetime) -> bool:
    """Have the link open nothing from now on; False when it was revoked before."""
    with transaction.atomic():
        if not Link.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=now, revoked_by=by.name):
            return False
        link.revoked_at, link.revoked_by = now, by.name
        note(by, "revoke_link", before=_told(link), result=link)
    return True


def _told(link: Link) -> dict[str, Any]:
    return {"board": link.board.slug, "link": link.pk, "label": link.label}


def scopes(keys: Collection[str]) -> dict[str, Scope]:
    """Return the present scopes of links by their keys, for the guard of sockets."""
    now = timezone.now()
    wanted = [int(key) for key in keys if key.isdigit()]
    alive = list(Link.objects.filter(pk__in=wanted, revoked_at=None).select_related("board"))
    late = [link.pk for link in alive if _is_due(link, now)]
    if late:
        with suppress(DatabaseError):  # it is only a note: the screens stay
            Link.objects.filter(pk__in=late).update(seen_at=now)
    boards = {link.board_id: link.board for link in alive}
    opened = {key: specs.of(board).scope for key, board in boards.items()}
    return {str(link.pk): opened[link.board_id] for link in alive}


def set_cookie(request: HttpRequest, response: HttpResponse, slug: str, secret: str) -> None:
    """Give the screen its cookie, or renew it."""
    response.set_cookie(
        COOKIE,
        secret,
        max_age=COOKIE_AGE,
        path=f"/wall/{slug}",
        secure=request.is_secure(),
        httponly=True,
        samesite="Strict",
    )


def _unused(now: datetime) -> QuerySet[Link]:
    return Link.objects.filter(used_at=None, revoked_at=None, made_at__gt=now - UNUSED_FOR)


def _code_hash(code: str) -> str:
    """Return the hash of a short code, which needs the site's key: 40 bits could be tried out."""
    return salted_hmac("pqadmin.wall.code", code, algorithm="sha256").hexdigest()
