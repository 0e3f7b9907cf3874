"""People: list and look, create, give roles and grants, deactivate, new passwords."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpResponse
from ninja import Query, Router
from pydantic import Field, StrictStr

from pqadmin.accounts.caller import Caller
from pqadmin.accounts.names import findable
from pqadmin.accounts.rights import Role
from pqadmin.accounts.scope import role_given
from pqadmin.api.administration import schemas
from pqadmin.api.answers import address, answer, change
from pqadmin.api.authorization import administer, refuse_tokens
from pqadmin.api.bodies import Body
from pqadmin.api.parameters import Containing, Limit
from pqadmin.api.problems import Problem
from pqadmin.api.request import ApiRequest
from pqadmin.api.threads import in_thread
from pqadmin.files.shapes import Shape, time_shape
from pqadmin.pages.refusals import NotPossible
from pqadmin.people import person_changes, person_list
from pqadmin.site_audit import Author
from queues.admin import check_glob
from queues.errors import ConfirmationMismatch

router = Router(tags=["Administration"])

_RoleName = Literal["none", "viewer", "operator", "admin"]
_GrantedName = Literal["viewer", "operator"]


class NewGrant(Body):
    """A role on the queues that a pattern matches."""

    queues: StrictStr = Field(description="A name, or a pattern such as `orders:*`.")
    role: _GrantedName


class NewPerson(Body):
    """A person to create."""

    name: StrictStr = Field(description="To sign in with: 1 to 150 letters, digits and @ . + - _")
    role: _RoleName = Field(description="On all queues.")
    grants: list[NewGrant] = Field([], max_length=person_changes.MOST_GRANTS)


class NewRole(Body):
    """The role that a person shall have on all queues."""

    role: _RoleName
    confirm: StrictStr = Field("", description="To make an admin: the name of the person again.")


class GrantedRole(Body):
    """The role that a person shall have on the queues of a pattern."""

    role: _GrantedName


@router.get("/people", operation_id="list_people", summary="List people", response=schemas.People)
@in_thread
def list_people(
    request: ApiRequest,
    q: Containing = "",
    after: Annotated[
        str, Query(max_length=150, description="Only names behind this: the `next` of the answer before.")
    ] = "",
    limit: Limit = 50,
) -> HttpResponse:
    """Return people by name. All operations on people take an admin: a session, or a token with `administer`."""
    administer(request)
    shown, following = person_list.page(q, after=after, limit=limit)
    return answer({"people": [_shape(user) for user in shown], "next": following})


@router.get("/people/{name}", operation_id="get_person", summary="Look at a person", response=schemas.Person)
@in_thread
def get_person(request: ApiRequest, name: str) -> HttpResponse:
    """Return a person."""
    administer(request)
    return answer(_shape(_person(name)))


@router.post(
    "/people", operation_id="create_person", summary="Create a person", response={201: schemas.PersonWithPassword}
)
@in_thread
def create_person(request: ApiRequest, body: NewPerson) -> HttpResponse:
    """Create a person, with a password that the site makes up.

    A token gives no more than it has: a viewer takes the verb `read` too, an operator all verbs of queues. A token
    cannot make an admin. A program with the password can sign in as the person, and create tokens that stay valid when
    its own is revoked.
    """
    role = Role(body.role)
    grants = {check_glob(each.queues): Role(each.role) for each in body.grants}
    administer(request).require_to_give(role, *grants.values())

    def create(by: Author) -> tuple[User, Shape]:
        user, password = person_changes.create(body.name, role, grants, by=by, now=datetime.now(UTC))
        return user, {"password": password}

    return change(
        request,
        create,
        _shape,
        secrets=["password"],
        status=201,
        where=lambda made: address("people", str(made["name"])),
    )


@router.put("/people/{name}/role", operation_id="change_role", summary="Change a role", response=schemas.Person)
@in_thread
def change_role(request: ApiRequest, name: str, body: NewRole) -> HttpResponse:
    """Give a person another role on all queues. The last admin stays one. A token cannot make or change an admin."""
    role = Role(body.role)

    def give(caller: Caller, user: User, by: Author) -> Shape:
        caller.require_to_give(role)
        if role is Role.ADMIN and body.confirm != user.username:
            raise ConfirmationMismatch("An admin may do everything: `confirm` is the name of the person.")
        person_changes.change_role(user, role, by=by)
        return {}

    return _change(request, name, give)


@router.put(
    "/people/{name}/grants/{pattern}", operation_id="add_grant", summary="Grant a role", response=schemas.Person
)
@in_thread
def add_grant(request: ApiRequest, name: str, pattern: str, body: GrantedRole) -> HttpResponse:
    """Give a person a role on the queues that a pattern matches, in place of an earlier one."""
    glob, role = check_glob(pattern), Role(body.role)

    def give(caller: Caller, user: User, by: Author) -> Shape:
        caller.require_to_give(role)
        try:
            person_changes.add_grant(user, glob, role, by=by, now=datetime.now(UTC))
        except NotPossible as error:  # there are too many
            raise NotPossible(str(error), "pattern") from None
        return {}

    return _change(request, name, give)


@router.delete(
    "/people/{name}/grants/{pattern}", operation_id="remove_grant", summary="Remove a grant", response=schemas.Person
)
@in_thread
def remove_grant(request: ApiRequest, name: str, pattern: str) -> HttpResponse:
    """Take a grant away from a person."""
    glob = check_glob(pattern)

    def take(caller: Caller, user: User, by: Author) -> Shape:
        grant = user.grants.filter(glob=glob).first()
        if grant is None:
            raise Problem("NotFound", "The person has no grant of this pattern.")
        person_changes.remove_grant(user, grant.pk, by=by)
        return {}

    return _change(request, name, take)


@router.post(
    "/people/{name}/deactivate",
    operation_id="deactivate_person",
    summary="Deactivate a person",
    response=schemas.Person,
)
@in_thread
def deactivate_person(request: ApiRequest, name: str) -> HttpResponse:
    """End all sessions of a person, and refuse sign-in and all tokens of this owner."""

    def shut(caller: Caller, user: User, by: Author) -> Shape:
        person_changes.set_active(user, False, by=by)
        return {}

    return _change(request, name, shut)


@router.post(
    "/people/{name}/reactivate",
    operation_id="reactivate_person",
    summary="Reactivate a person",
    response=schemas.Person,
)
@in_thread
def reactivate_person(request: ApiRequest, name: str) -> HttpResponse:
    """Let a person sign in again, with the role and grants as they were; tokens of this owner work again."""

    def open_again(caller: Caller, user: User, by: Author) -> Shape:
        caller.require_to_give(*_roles(user))
        person_changes.set_active(user, True, by=by)
        return {}

    return _change(request, name, open_again)


@router.post(
    "/people/{name}/password",
    operation_id="reset_password",
    summary="New password",
    response=schemas.PersonWithPassword,
)
@in_thread
def reset_password(request: ApiRequest, name: str) -> HttpResponse:
    """Give a person a password that the site makes up, which ends the old one and all sessions of the person.

    This takes an admin's session: a token cannot, as it could then sign in as any person.
    """
    refuse_tokens(request, "Only an admin's session may reset a password; a token cannot.")

    def reset(caller: Caller, user: User, by: Author) -> Shape:
        return {"password": person_changes.reset_password(user, by=by)}

    return _change(request, name, reset, secrets=["password"])


def _change(
    request: ApiRequest, name: str, perform: Callable[[Caller, User, Author], Shape], secrets: Sequence[str] = ()
) -> HttpResponse:
    """Change a person, and return the person as changed with the secrets that this makes."""
    caller = administer(request)

    def once(by: Author) -> tuple[User, Shape]:
        with transaction.atomic():  # the person is checked as changed
            user = person_changes.held(_person(name))
            if role_given(user) is Role.ADMIN:
                caller.require_to_give(Role.ADMIN)
            shown = perform(caller, user, by)
            return _person(name), shown

    return change(request, once, _shape, secrets=secrets)


def _person(name: str) -> User:
    user = User.objects.filter(username=findable(name)).first()
    if user is None:
        raise Problem("NotFound", "There is no person of this name.")
    return user


def _roles(user: User) -> list[Role]:
    return [role_given(user), *(Role(grant.role) for grant in user.grants.all())]


def _shape(user: User) -> Shape:
    grants = sorted(user.grants.all(), key=lambda each: each.glob)
    return {
        "name": user.username,
        "role": role_given(user).value,
        "grants": [{"queues": grant.glob, "role": grant.role} for grant in grants],
        "active": user.is_active,
        "created_at": time_shape(user.date_joined),
        "last_sign_in": time_shape(user.last_login),
    }
