"""Lifecycle of tokens: created, revoked, forgotten, each told to the audit before that commits."""

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from pqadmin.accounts.authentication import digest, new_secret
from pqadmin.accounts.caller import Verb
from pqadmin.accounts.models import Token
from pqadmin.accounts.names import findable
from pqadmin.accounts.rights import Role
from pqadmin.accounts.scope import role_given
from pqadmin.files.shapes import Shape, time_shape
from pqadmin.pages.refusals import InvalidField, NotPossible
from pqadmin.site_audit import Author, note
from queues.admin import check_glob
from queues.errors import is_invisible

#: Valid tokens of one person, and globs of one token.
MOST_TOKENS, MOST_GLOBS = 100, 50
#: Requests a second, and days.
MOST_RATE, MOST_DAYS = 100_000, 3_650
#: For how long a revoked or expired token stays in the list.
KEPT = timedelta(days=90)


def read_globs(text: str) -> list[str]:
    """Return the globs of a text, by commas or blanks; raises a QueueError."""
    return check_globs(part for part in re.split(r"[\s,]+", text) if part)


def check_globs(queues: Iterable[str]) -> list[str]:
    """Return the globs of a new token, each once; raises a QueueError."""
    globs = [check_glob(each) for each in queues]
    if not globs:
        raise InvalidField(_("Say which queues: a name, or a pattern such as orders:*."), "queues")
    if len(globs) > MOST_GLOBS:
        raise InvalidField(_("A token has at most %(n)s patterns.") % {"n": MOST_GLOBS}, "queues")
    return list(dict.fromkeys(globs))


def check_name(name: str) -> str:
    """Return the name of a new token; raises `InvalidField`."""
    if not re.fullmatch(r"[\w.@+:-]{1,100}", name) or any(map(is_invisible, name)):
        raise InvalidField(_("A token's name has 1 to 100 letters, digits and @ . + - _ : characters."), "name")
    return name


def create(
    name: str,
    owner: User,
    *,
    verbs: Collection[Verb],
    queues: Sequence[str],
    by: Author,
    now: datetime,
    days: int | None = None,
    rate: int | None = None,
) -> tuple[Token, str]:
    """Create a token and return it with its text, which is kept nowhere; raises a QueueError or StoreError."""
    check_name(name)
    if not verbs:
        raise InvalidField(_("Choose what the token may do."), "verbs")
    secret = new_secret()
    with transaction.atomic():
        owner = User.objects.select_for_update().get(pk=owner.pk)
        if Verb.ADMINISTER in verbs and not ("*" in queues and role_given(owner) is Role.ADMIN):
            words = _("Only a token of an admin, for all queues (*), can have the verb administer.")
            raise NotPossible(words, "verbs")
        valid = Token.objects.filter(revoked_at=None)
        taken = NotPossible(
            _("A token of this name is there already: revoke it first, or choose another name."), "name"
        )
        if valid.filter(name=name).exists():
            raise taken
        if valid.filter(owner=owner).count() >= MOST_TOKENS:
            raise NotPossible(_("A person has at most %(n)s tokens: revoke one first.") % {"n": MOST_TOKENS})
        token = Token(
            name=name,
            owner=owner,
            digest=digest(secret),
            verbs=[verb.value for verb in Verb if verb in verbs],
            queues=list(queues),
            rate=rate,
            created_at=now,
            expires_at=None if days is None else now + timedelta(days=days),
        )
        try:
            with transaction.atomic():
                token.save(force_insert=True)
        except IntegrityError:  # another request made one of this name since the check
            raise taken from None
        note(by, "create_token", after=_told(token), result=token)
    return token, secret


def revoke(token_id: int, *, by: Author, now: datetime, owner: User | None = None) -> Token:
    """Revoke a token at once, of one owner if given; raises `NotPossible` when it is not there, or a StoreError."""
    with transaction.atomic():
        found = Token.objects.select_for_update().filter(pk=token_id, revoked_at=None)
        token = (found if owner is None else found.filter(owner=owner)).first()
        if token is None:
            raise NotPossible(_("This token is not there any more, or revoked already."))
        token.revoked_at = now
        token.save(update_fields=["revoked_at"])
        note(by, "revoke_token", before=_told(token), result=token)
    return token


def of_owner(owner_id: int | None) -> QuerySet[Token]:
    """Return the tokens of an owner; None: those of all."""
    found = Token.objects.select_related("owner")
    return found if owner_id is None else found.filter(owner=owner_id)


def page(text: str, owner_id: int | None, *, after: str, limit: int) -> tuple[Sequence[Token], str | None]:
    """Return tokens with a text in their name or their owner's, behind a name, and the name behind which more are.

    Revoked ones are left out; with an owner's id, those of all other owners too.
    """
    found = _matching(text, owner_id).filter(revoked_at=None, name__gt=findable(after))
    some = list(found.order_by("name")[: limit + 1])
    return some[:limit], some[limit - 1].name if len(some) > limit else None


def revoked(text: str, owner_id: int | None, *, limit: int) -> Sequence[Token]:
    """Return the tokens that were revoked last, of those with a text in their name or their owner's."""
    return list(_matching(text, owner_id).exclude(revoked_at=None).order_by("-revoked_at")[:limit])


def _matching(text: str, owner_id: int | None) -> QuerySet[Token]:
    text = findable(text)
    return of_owner(owner_id).filter(Q(name__icontains=text) | Q(owner__username__icontains=text))


def token_shape(token: Token) -> Shape:
    """Describe a token."""
    return {
        "id": token.pk,
        "token": token.name,
        "owner": token.owner.get_username(),
        "verbs": list(token.verbs),
        "queues": list(token.queues),
        "rate": token.rate,
        "created_at": time_shape(token.created_at),
        "expires_at": time_shape(token.expires_at),
        "revoked_at": time_shape(token.revoked_at),
        "last_used_at": time_shape(token.last_used_at),
        "last_address": token.last_address or None,
    }


def sweep(now: datetime) -> None:
    """Forget tokens that ended long ago; the audit keeps that they were there."""
    for ended in ("revoked_at", "expires_at"):
        Token.objects.filter(**{f"{ended}__lte": now - KEPT}).delete()


def _told(token: Token) -> dict[str, object]:
    return {
        "token": token.name,
        "owner": token.owner.get_username(),
        "verbs": ", ".join(token.verbs),
        "queues": ", ".join(token.queues),
        "expires_at": None if token.expires_at is None else token.expires_at.isoformat(),
        **({} if token.rate is None else {"rate": token.rate}),
    }
