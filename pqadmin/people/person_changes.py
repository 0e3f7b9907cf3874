"""Changes of people: each in one transaction of the site's tables, and told to the audit before that commits.

The audit is in the queue store, people are not: when the audit cannot be written, nothing is changed; a crash in
between leaves an audited change that was not made, never one that was made and not audited.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core import signing
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from pqadmin.accounts.models import Grant
from pqadmin.accounts.passwords import new_password
from pqadmin.accounts.rights import Role
from pqadmin.accounts.roles import grant as give_role
from pqadmin.accounts.scope import role_given
from pqadmin.pages.refusals import InvalidField, NotPossible
from pqadmin.site_audit import Author, note

#: Grants of one person.
MOST_GRANTS = 100


def create(name: str, role: Role, grants: Mapping[str, Role], *, by: Author, now: datetime) -> tuple[User, str]:
    """Create a person with a password that the site makes up, and return both. Raise `NotPossible`."""
    password = new_password()
    with transaction.atomic():
        user = User(username=name)
        user.set_password(password)
        try:
            user.full_clean()
        except ValidationError as error:
            taken = any(each.code == "unique" for errors in error.error_dict.values() for each in errors)
            refusal = NotPossible if taken else InvalidField
            raise refusal(" ".join(error.messages), "name") from None
        try:
            with transaction.atomic():
                user.save(force_insert=True)
        except IntegrityError:  # another request made one of this name since the check
            words = user.unique_error_message(User, ("username",))
            raise NotPossible(" ".join(words.messages), "name") from None
        give_role(user, role)
        for glob, given in grants.items():
            _grant(user, glob, given, by, now)
        granted = {glob: given.value for glob, given in grants.items()}
        note(by, "create_person", after={"person": name, "role": role.value, "grants": granted}, result=user)
    return user, password


def change_role(user: User, role: Role, *, by: Author) -> bool:
    """Give a person a role on all queues; False when it is the person's already.

    Raises `NotPossible` if no admin would be left.
    """
    with transaction.atomic():
        user = held(user)
        before = role_given(user)
        if before is role:
            return False
        if before is Role.ADMIN and user.is_active:
            _another_admin(user, "role")
        give_role(user, role)
        note(by, "change_role", before=_of(user, role=before.value), after=_of(user, role=role.value), result=user)
    return True


def add_grant(user: User, glob: str, role: Role, *, by: Author, now: datetime) -> bool:
    """Give a person a role on the queues that a glob matches, in place of the earlier one; False when it is there."""
    with transaction.atomic():
        user = held(user)
        before = Grant.objects.filter(user=user, glob=glob).first()
        if before is not None and before.role == role.value:
            return False
        if before is None and user.grants.count() >= MOST_GRANTS:
            raise NotPossible(_("A person has at most %(n)s grants: take one away first.") % {"n": MOST_GRANTS}, "glob")
        _grant(user, glob, role, by, now)
        was = None if before is None else _of(user, queues=glob, role=before.role)
        note(by, "add_grant", before=was, after=_of(user, queues=glob, role=role.value), result=user)
    return True


def remove_grant(user: User, key: int, *, by: Author) -> str:
    """Take a grant away and return its glob; raise `NotPossible` when it is not there."""
    with transaction.atomic():
        found = Grant.objects.filter(user=user, pk=key).first()
        if found is None:
            raise NotPossible(_("This grant is not there any more."))
        found.delete()
        note(by, "remove_grant", before=_of(user, queues=found.glob, role=found.role), result=user)
        return found.glob


def set_active(user: User, active: bool, *, by: Author) -> bool:
    """Let a person sign in, or no longer; False when it is so already. Sessions of before a deactivation end for good.

    Raises `NotPossible` if no admin would be left.
    """
    with transaction.atomic():
        user = held(user)
        if user.is_active is active:
            return False
        if not active and role_given(user) is Role.ADMIN:
            _another_admin(user)
        user.is_active = active
        user.save(update_fields=["is_active"])
        if active:
            end_sessions(user)
        note(by, "reactivate_person" if active else "deactivate_person", after=_of(user), result=user)
    return True


def reset_password(user: User, *, by: Author) -> str:
    """Give a person a password that the site makes up, which ends the old one and all sessions; return it."""
    password = new_password()
    with transaction.atomic():
        user = held(user)
        user.set_password(password)
        user.save(update_fields=["password"])
        note(by, "reset_password", after=_of(user), result=user)
    return password


def end_sessions(user: User) -> None:
    """End all sessions of a person that is reactivated. No session is good, or begins, while a person is inactive."""
    sessions = Session.objects.values_list("session_key", "session_data").iterator()
    Session.objects.filter(pk__in=[key for key, data in sessions if _user_of(data) == str(user.pk)]).delete()


def _user_of(session_data: str) -> str | None:
    """Return the id of a session's user, without a look at the signature.

    Other changes of the tables wait while all sessions are read, and the signature takes most of that time.
    """
    payload = session_data.partition(":")[0]
    try:
        text = signing.b64_decode(payload.removeprefix(".").encode())
        found: dict[str, str] = json.loads(zlib.decompress(text) if payload.startswith(".") else text)
    except (ValueError, zlib.error):  # no session for Django either
        return None
    return found.get(SESSION_KEY)


def held(user: User) -> User:
    """Return the person as of now; changes of the same person and of admins wait for this one."""
    _hold_admins(user)
    try:
        return User.objects.get(pk=user.pk)
    except User.DoesNotExist:
        raise NotPossible(_("This person is not there any more.")) from None


def has_admin_besides(people: Iterable[User]) -> bool:
    """Return whether there is an active admin besides these people, until the transaction ends."""
    _hold_admins()
    return _is_admin_besides(people)


def _hold_admins(*people: User) -> None:
    """Have changes of the active admins and of these people wait; in one order, so that no two wait for each other."""
    keys = Q(pk__in=_admins().values("pk")) | Q(pk__in=[user.pk for user in people])
    list(User.objects.select_for_update().filter(keys).order_by("pk").values_list("pk"))


def _admins() -> QuerySet[User]:
    in_group = User.groups.through.objects.filter(group__name=Role.ADMIN.value).values("user_id")
    return User.objects.filter(Q(is_superuser=True) | Q(pk__in=in_group), is_active=True)


def _is_admin_besides(people: Iterable[User]) -> bool:
    return _admins().exclude(pk__in=[user.pk for user in people]).exists()


def _another_admin(user: User, field: str = "") -> None:
    if not _is_admin_besides([user]):
        raise NotPossible(
            _("%(name)s is the last admin: without one no user could get a role. Make another one first.")
            % {"name": user.username},
            field,
        )


def _grant(user: User, glob: str, role: Role, by: Author, now: datetime) -> None:
    Grant.objects.update_or_create(
        user=user, glob=glob, defaults={"role": role.value, "given_by": by.name[:150], "given_at": now}
    )


def _of(user: User, **details: str) -> dict[str, str]:
    return {"person": user.username, **details}
