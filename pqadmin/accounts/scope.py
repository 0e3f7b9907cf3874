"""The rights of a user: a role on all queues, and grants by glob."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User

from pqadmin.accounts.rights import GRANTABLE, GROUPS, Right, Role
from queues.admin import name_pattern

#: A glob and the role on the queues that it matches.
GrantOf = tuple[str, Role]
#: The attribute that keeps the scope on the user object of a request.
_KEPT = "pqadmin_scope"
#: Users in one SQL query.
_CHUNK = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The rights of a user as a value; users with equal rights have equal scopes. Made by `Scope.of`."""

    role: Role
    #: Sorted, each above `role`.
    grants: tuple[GrantOf, ...] = ()
    #: Globs to which role and grants are restricted; empty: to none. Then the role is one of the grants, on `*`.
    within: tuple[str, ...] = ()

    @classmethod
    def of(cls, role: Role, grants: Iterable[GrantOf] = ()) -> "Scope":
        """Return the scope in its normal form, without grants that add nothing."""
        known = [(glob, given) for glob, given in grants if given in GRANTABLE]
        base = max([role, *(given for glob, given in known if glob == "*")], key=lambda one: one.rank)
        best: dict[str, Role] = {}
        for glob, given in known:
            if given.rank > max(base.rank, best.get(glob, Role.NONE).rank):
                best[glob] = given
        return cls(role=base, grants=tuple(sorted(best.items())))

    @classmethod
    def of_globs(cls, patterns: Iterable[str]) -> "Scope":
        """Return the read-only scope of the queues that match any of the globs."""
        return cls.of(Role.NONE, [(glob, Role.VIEWER) for glob in patterns])

    def restricted_to(self, globs: Iterable[str]) -> "Scope":
        """Return these rights on those queues alone that match any of the globs by name."""
        within = tuple(sorted(set(globs)))
        if "*" in within:
            return self
        if self.within:
            raise ValueError("a scope is restricted once")
        if not within:
            return NOTHING
        base = () if self.role is Role.NONE else (("*", self.role),)
        return Scope(role=Role.NONE, grants=(*base, *self.grants), within=within)

    @property
    def everything(self) -> bool:
        """Return whether every queue is visible, future ones too."""
        return self.role.has(Right.READ)

    def sees(self, name: str) -> bool:
        """Return whether the queue of this name may be seen."""
        return self.can(Right.READ, name)

    def can(self, right: Right, name: str) -> bool:
        """Return whether the right holds on the queue of this name."""
        return self.role.has(right) or _matcher(self.grants, right, self.within)(name)

    def teller(self, right: Right) -> Callable[[str], bool]:
        """Return a function of a name that is faster than `can` for many names."""
        return (lambda name: True) if self.role.has(right) else _matcher(self.grants, right, self.within)

    def anywhere(self, right: Right) -> bool:
        """Return whether the right holds on some queue's name at least, there or not."""
        return self.role.has(right) or any(given.has(right) for _, given in self.grants)

    def role_on(self, name: str) -> Role:
        """Return the role on the queue of this name."""
        for right in (Right.ADMIN, Right.ACT, Right.READ):
            if self.can(right, name):
                return right.role
        return Role.NONE

    def of_those(self, names: Iterable[str]) -> list[str]:
        """Return the names that may be seen, in their order."""
        return list(filter(self.teller(Right.READ), names))


#: No rights.
NOTHING = Scope(role=Role.NONE)
#: All rights: those of admins, and of programs on the machine itself.
ALL = Scope(role=Role.ADMIN)


def role_given(user: User) -> Role:
    """Return the role on all queues as it was given, without grants; also of a deactivated user."""
    return Role.ADMIN if user.is_superuser else _highest(group.name for group in user.groups.all())


def scope_of(user: AbstractBaseUser | AnonymousUser) -> Scope:
    """Return the user's scope, read from the database once per user object. Anonymous users have none."""
    if not isinstance(user, User) or not user.is_active:
        return NOTHING
    if user.is_superuser:
        return ALL
    kept = vars(user)
    if _KEPT not in kept:
        kept[_KEPT] = scopes_of([user])[user.pk]
    found: Scope = kept[_KEPT]
    return found


def scopes_of(users: Collection[User]) -> dict[int, Scope]:
    """Return the scopes of many users by key, by two SQL queries for every 500."""
    from pqadmin.accounts.models import Grant

    asked = [user.pk for user in users if user.is_active and not user.is_superuser]
    groups: dict[int, list[str]] = {}
    grants: dict[int, list[GrantOf]] = {}
    for start in range(0, len(asked), _CHUNK):
        chunk = asked[start : start + _CHUNK]
        memberships = User.groups.through.objects.filter(user_id__in=chunk, group__name__in=GROUPS)
        for user_id, name in memberships.values_list("user_id", "group__name"):
            groups.setdefault(user_id, []).append(name)
        for user_id, glob, given in Grant.objects.filter(user_id__in=chunk).values_list("user_id", "glob", "role"):
            grants.setdefault(user_id, []).append((glob, Role(given)))
    found: dict[int, Scope] = {}
    for user in users:
        if not user.is_active:
            found[user.pk] = NOTHING
        elif user.is_superuser:
            found[user.pk] = ALL
        else:
            found[user.pk] = Scope.of(_highest(groups.get(user.pk, ())), grants.get(user.pk, ()))
    return found


def forget(user: User) -> None:
    """Have the next `scope_of` ask the database again."""
    vars(user).pop(_KEPT, None)


def _highest(groups: Iterable[str]) -> Role:
    """Return the highest role among groups; groups that are no roles do not count."""
    named = set(groups)
    return max((role for role in GROUPS if role in named), key=lambda role: role.rank, default=Role.NONE)


@lru_cache(maxsize=1024)
def _matcher(grants: tuple[GrantOf, ...], right: Right, within: tuple[str, ...]) -> Callable[[str], bool]:
    found = name_pattern(tuple(glob for glob, given in grants if given.has(right)))
    if not within:
        return lambda name: found.fullmatch(name) is not None
    also = name_pattern(within)
    return lambda name: found.fullmatch(name) is not None and also.fullmatch(name) is not None
