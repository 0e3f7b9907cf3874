"""Caller of the API: a token or the person of a session, with the rights of a request."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.core.exceptions import PermissionDenied
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from pqadmin.accounts import arming
from pqadmin.accounts.rights import Right, RightMissing, Role
from pqadmin.accounts.scope import Scope
from queues.admin import canonical_name
from queues.errors import QueueNotFound


class Verb(StrEnum):
    """A kind of request that a token may be made for."""

    READ = "read"
    PUSH = "push"
    TAKE = "take"
    MANAGE = "manage"
    CONFIGURE = "configure"
    ADMINISTER = "administer"

    @property
    def label(self) -> str | Promise:
        """Return what the verb allows, for a person to read."""
        return _LABELS[self]


_LABELS = {
    Verb.READ: _("look at queues and items"),
    Verb.PUSH: _("push items"),
    Verb.TAKE: _("pop and lease items, and settle leases"),
    Verb.MANAGE: _("edit, move, delete, promote and retry items"),
    Verb.CONFIGURE: _("create, pause, change, rename and delete queues"),
    Verb.ADMINISTER: _("change people and boards, revoke tokens"),
}
ALL_VERBS = frozenset(Verb)
#: The verbs that are about queues.
QUEUE_VERBS = tuple(verb for verb in Verb if verb is not Verb.ADMINISTER)
#: The verbs that a token needs to give a role.
_ASKED_TO_GIVE: Mapping[Role, tuple[Verb, ...]] = {Role.NONE: (), Role.VIEWER: (Verb.READ,), Role.OPERATOR: QUEUE_VERBS}


class VerbMissing(PermissionDenied):
    """The token was made without a verb that the request needs."""

    def __init__(self, verb: Verb) -> None:
        super().__init__(f"needs a token with the verb {verb}")
        self.verb = verb


class AdminNeeded(PermissionDenied):
    """A token's request that gives the rights of an admin, or changes an admin: this takes an admin's session."""

    def __init__(self) -> None:
        super().__init__("Only an admin's session may change an admin; a token cannot.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The author of a request of the API, and its rights."""

    #: As the audit writes it: a person's name, or `token:` and a token's.
    name: str
    #: The person, or the owner of the token.
    user_id: int
    scope: Scope
    verbs: frozenset[Verb] = ALL_VERBS
    token_id: int | None = None
    #: Requests a second that a token may send; None: no limit of its own.
    rate: int | None = None
    #: When the token or session ends; None: never.
    expires_at: datetime | None = None
    #: When the token was used last, as far as that is recorded.
    last_used_at: datetime | None = None
    #: The time until which the session was armed.
    armed_until: datetime | None = None

    def see(self, queue: str) -> None:
        """Return if the queue is visible, whatever the verbs; else raise `QueueNotFound`."""
        name = canonical_name(queue)
        if not self.scope.sees(name):
            raise QueueNotFound(name)

    def require(self, verb: Verb | str, right: Right, queue: str | None = None, *, only_reads: bool = False) -> None:
        """Return if the request is allowed on the queue; without a queue, on some queue at least.

        Raises `QueueNotFound` for an invisible queue, `VerbMissing`, `RightMissing`, and `NotArmed` for a write of a
        session to a read-only site. `only_reads` is true of a request that changes nothing, whatever right it needs.
        """
        name = None if queue is None else canonical_name(queue)
        if queue is not None:
            self.see(queue)
        if verb not in self.verbs:
            raise VerbMissing(Verb(verb))
        if not (self.scope.anywhere(right) if name is None else self.scope.can(right, name)):
            role = self.scope.role if name is None else self.scope.role_on(name)
            raise RightMissing(right, role, queue)
        if right is not Right.READ and not only_reads and self.token_id is None:
            arming.demand_open(self.armed_until)

    def require_to_give(self, *roles: Role) -> None:
        """Return if the caller may give these roles: a token gives no more than its verbs allow itself.

        Raises `AdminNeeded`, `VerbMissing`.
        """
        if self.token_id is None:
            return
        for role in roles:
            if role is Role.ADMIN:
                raise AdminNeeded
            for verb in _ASKED_TO_GIVE[role]:
                if verb not in self.verbs:
                    raise VerbMissing(verb)
