"""Access to a wall: for a screen by its link's cookie, or for a signed-in user with the right to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import Scope, scope_of
from pqadmin.wall import links
from pqadmin.wall.models import Link
from pqadmin.wall.specs import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """The access of a screen or user to a wall, with the visible queues."""

    scope: Scope
    #: None for a user.
    link: Link | None


def by_link(spec: Spec, cookies: Mapping[str, str]) -> Looking | None:
    """Return what a screen's cookie opens, if it opens this board."""
    link = links.find(spec.slug, cookies.get(links.COOKIE, ""))
    return None if link is None else Looking(scope=spec.scope, link=link)


def by_person(user: AbstractBaseUser | AnonymousUser) -> Looking | None:
    """Return what a signed-in user may see on any wall."""
    scope = scope_of(user)
    return Looking(scope=scope, link=None) if scope.anywhere(Right.READ) else None
