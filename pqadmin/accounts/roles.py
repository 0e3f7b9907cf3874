"""Who may do what: three roles, three rights, and the decorator that asks for one."""

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

P = ParamSpec("P")
R = TypeVar("R", bound=HttpResponseBase)


class Role(StrEnum):
    """What a person is; the value is the name of the Django group."""

    NONE = "none"
    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def label(self) -> str | Promise:
        """Return the role's name for a person to read."""
        return _LABELS[self]


class Right(StrEnum):
    """What a view asks for."""

    READ = "read"
    ACT = "act"
    ADMIN = "admin"

    @property
    def role(self) -> Role:
        """Return the least role that has this right."""
        return _LEAST[self]


_LABELS = {
    Role.NONE: _("no role"),
    Role.VIEWER: _("viewer"),
    Role.OPERATOR: _("operator"),
    Role.ADMIN: _("admin"),
}
_LEAST = {Right.READ: Role.VIEWER, Right.ACT: Role.OPERATOR, Right.ADMIN: Role.ADMIN}
_RANK = {role: rank for rank, role in enumerate(Role)}

GROUPS = (Role.VIEWER, Role.OPERATOR, Role.ADMIN)


class RightMissing(PermissionDenied):
    """The person's role lacks a right; the 403 page names the role that has it."""

    def __init__(self, right: Right, role: Role) -> None:
        super().__init__(f"needs the right to {right}, which a {role} does not have")
        self.right = right
        self.role = role


def role_of(user: AbstractBaseUser | AnonymousUser) -> Role:
    """Return the highest role among the user's groups; superusers are admins, strangers have none."""
    if not isinstance(user, User) or not user.is_active:
        return Role.NONE
    if user.is_superuser:
        return Role.ADMIN
    known: Role | None = getattr(user, "_pqadmin_role", None)
    if known is None:
        names = set(user.groups.values_list("name", flat=True))
        known = max((role for role in GROUPS if role in names), key=_RANK.__getitem__, default=Role.NONE)
        user._pqadmin_role = known  # type: ignore[attr-defined]  # noqa: SLF001 # kept for this request's object
    return known


def can(user: AbstractBaseUser | AnonymousUser, right: Right) -> bool:
    """Say whether the user has the right."""
    return _RANK[role_of(user)] >= _RANK[right.role]


def require(
    right: Right,
) -> Callable[[Callable[Concatenate[HttpRequest, P], R]], Callable[Concatenate[HttpRequest, P], R]]:
    """Let only those with the right through to the view; others get the 403 page."""

    def decorate(view: Callable[Concatenate[HttpRequest, P], R]) -> Callable[Concatenate[HttpRequest, P], R]:
        @wraps(view)
        def checked(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> R:
            if not can(request.user, right):
                raise RightMissing(right, role_of(request.user))
            return view(request, *args, **kwargs)

        checked.right = right  # type: ignore[attr-defined] # read by the test matrix
        return checked

    return decorate


def grant(user: User, role: Role) -> None:
    """Give the user exactly this role; admins are also Django superusers."""
    groups: Any = Group.objects.filter(name__in=GROUPS)
    user.groups.remove(*groups)
    user.groups.add(Group.objects.get_or_create(name=role.value)[0])
    user.is_staff = user.is_superuser = role is Role.ADMIN
    user.save(update_fields=["is_staff", "is_superuser"])
    user.__dict__.pop("_pqadmin_role", None)
