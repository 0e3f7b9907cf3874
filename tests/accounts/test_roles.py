"""Roles, rights and the decorator."""

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.db import connection
from django.http import HttpRequest, HttpResponse

from pqadmin.accounts.roles import Right, RightMissing, Role, grant, require, role_of


def test_the_groups_are_there_from_the_first_migration(db) -> None:
    # Once more: tests that commit empty all tables behind themselves.
    import_module("pqadmin.accounts.migrations.0001_initial").create_groups(
        apps, SimpleNamespace(connection=connection)
    )
    assert set(Group.objects.values_list("name", flat=True)) == {"viewer", "operator", "admin"}


def test_an_inactive_admin_has_no_role(person) -> None:
    user = person(Role.ADMIN)
    user.is_active = False
    assert role_of(user) is Role.NONE


def test_of_several_groups_the_highest_counts(person) -> None:
    user = person(Role.VIEWER)
    user.groups.add(Group.objects.get_or_create(name="operator")[0], Group.objects.create(name="something else"))
    assert role_of(User.objects.get(pk=user.pk)) is Role.OPERATOR


def test_a_role_taken_away_is_gone_with_the_next_request(person, client) -> None:
    user = person(Role.OPERATOR)
    client.force_login(user)
    assert client.get("/new/").status_code == 200
    grant(user, Role.VIEWER)
    assert client.get("/new/").status_code == 403


def test_grant_replaces_the_role(person) -> None:
    user = person(Role.ADMIN)
    assert user.is_superuser
    grant(user, Role.VIEWER)
    user = User.objects.get(pk=user.pk)
    assert (role_of(user), user.is_superuser, user.is_staff) == (Role.VIEWER, False, False)
    assert set(user.groups.values_list("name", flat=True)) == {"viewer"}


def test_require_names_what_is_missing(person) -> None:
    @require(Right.ACT)
    def view(request: HttpRequest, name: str) -> HttpResponse:
        return HttpResponse(name)

    request = HttpRequest()
    request.user = person(Role.VIEWER)
    with pytest.raises(RightMissing) as refused:
        view(request, name="jobs")
    assert (refused.value.right, refused.value.right.role, refused.value.role) == (
        Right.ACT,
        Role.OPERATOR,
        Role.VIEWER,
    )
    request.user = person(Role.OPERATOR)
    assert view(request, name="jobs").content == b"jobs"
