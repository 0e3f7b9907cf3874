"""Roles and rights: what a person may be, and what a view asks for."""

from enum import StrEnum

from django.core.exceptions import PermissionDenied
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


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

    @property
    def rank(self) -> int:
        """Return a number that is greater for the role that may do more."""
        return _RANK[self]

    def has(self, right: "Right") -> bool:
        """Return whether the role has the right."""
        return _RANK[self] >= _RANK[_LEAST[right]]


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
_SAID = {
    Role.NONE: "a person without a role",
    Role.VIEWER: "a viewer",
    Role.OPERATOR: "an operator",
    Role.ADMIN: "an admin",
}
_LEAST = {Right.READ: Role.VIEWER, Right.ACT: Role.OPERATOR, Right.ADMIN: Role.ADMIN}
_RANK = {role: rank for rank, role in enumerate(Role)}

#: The roles that are Django groups.
GROUPS = (Role.VIEWER, Role.OPERATOR, Role.ADMIN)
#: The roles that can be given for some queues only.
GRANTABLE = (Role.VIEWER, Role.OPERATOR)


class RightMissing(PermissionDenied):
    """The person's role lacks a right. The 403 page names the role that has it, and the queue if it is about one."""

    def __init__(self, right: Right, role: Role, queue: str | None = None) -> None:
        where = "" if queue is None else f" on {queue}"
        super().__init__(f"needs the right to {right}{where}, which {_SAID[role]} does not have")
        self.right = right
        self.role = role
        self.queue = queue
