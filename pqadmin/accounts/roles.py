"""Rights of users: the decorator that requires a right, and how a role is given."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, User
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from pqadmin.accounts import arming
from pqadmin.accounts.rights import GROUPS, Right, RightMissing, Role
from pqadmin.accounts.scope import forget, scope_of
from queues.admin import canonical_name
from queues.errors import QueueNotFound

__all__ = ["GROUPS", "SAFE", "Right", "RightMissing", "Role", "can", "grant", "require", "role_of"]

#: Methods that change nothing.
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
P = ParamSpec("P")
R = TypeVar("R", bound=HttpResponseBase)


def role_of(user: AbstractBaseUser | AnonymousUser) -> Role:
    """Return the role that the user has on every queue. Superusers are admins, anonymous users have none."""
    return scope_of(user).role


def can(user: AbstractBaseUser | AnonymousUser, right: Right, queue: str | None = None) -> bool:
    """Return whether the user has the right on the queue; without a queue, on some queue at least."""
    scope = scope_of(user)
    return scope.anywhere(right) if queue is None else scope.can(right, queue)


def require(
    right: Right, *, harmless: Callable[[HttpRequest], bool] | None = None
) -> Callable[[Callable[Concatenate[HttpRequest, P], R]], Callable[Concatenate[HttpRequest, P], R]]:
    """Require a right for a view; users without it get the 403 page.

    A view with the `name` of a queue is about that queue; an invisible queue answers as a missing one. A request that
    is sent to a view with more than the right to read is a write, which a read-only site refuses until it is armed;
    `harmless` returns whether a request only reads, as a preview does.
    """

    def decorate(view: Callable[Concatenate[HttpRequest, P], R]) -> Callable[Concatenate[HttpRequest, P], R]:
        @wraps(view)
        def checked(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> R:
            scope, name = scope_of(request.user), kwargs.get("name")
            if not isinstance(name, str):
                if not scope.anywhere(right):
                    raise RightMissing(right, scope.role)
            elif not scope.role.has(right) and not scope.can(right, queue := canonical_name(name)):
                if scope.sees(queue):
                    raise RightMissing(right, scope.role_on(queue), name)
                if not scope.anywhere(Right.READ):
                    raise RightMissing(Right.READ, scope.role)
                raise QueueNotFound(name)
            looks = right is Right.READ or request.method in SAFE or (harmless is not None and harmless(request))
            if not looks:
                arming.demand(request)
            return view(request, *args, **kwargs)

        return checked

    return decorate


def signed_in(request: HttpRequest) -> User:
    """Return the user of a request to a view that requires a right."""
    assert isinstance(request.user, User)
    return request.user


def grant(user: User, role: Role) -> None:
    """Give the user exactly this role on every queue; admins are also Django superusers."""
    groups: Any = Group.objects.filter(name__in=GROUPS)
    user.groups.remove(*groups)
    if role is not Role.NONE:
        user.groups.add(Group.objects.get_or_create(name=role.value)[0])
    user.is_staff = user.is_superuser = role is Role.ADMIN
    user.save(update_fields=["is_staff", "is_superuser"])
    forget(user)
