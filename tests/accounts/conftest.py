"""People of every role, and a store with one queue."""

from collections.abc import Callable, Iterator, Mapping

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from pqadmin.accounts.models import Grant
from pqadmin.accounts.roles import Role, grant
from tests.sites import cheap_passwords, site_store

__all__ = ["cheap_passwords"]

PASSWORD = "correct-horse-battery"
PATIENCE = 120.0  # seconds; reached only when something hangs


@pytest.fixture
def person(db: None) -> Callable[..., User]:
    """Make a user with a role, or with none."""

    def make(role: Role, name: str = "") -> User:
        user = User.objects.create_user(name or f"a-{role}", password=PASSWORD)
        if role is not Role.NONE:
            grant(user, role)
        return user

    return make


@pytest.fixture
def granted(person: Callable[..., User]) -> Callable[..., User]:
    """Make a user with a role and grants, each a role by its glob."""

    def make(role: Role, grants: Mapping[str, Role], name: str = "g") -> User:
        user = person(role, name)
        for glob, given in grants.items():
            Grant.objects.create(user=user, glob=glob, role=given, given_by="root", given_at=timezone.now())
        return user

    return make


@pytest.fixture
def visitor(person: Callable[..., User]) -> Callable[[Role | None], Client]:
    """Return a browser in which a person of the role is logged in, or an anonymous one."""

    def visit(role: Role | None) -> Client:
        client = Client()
        if role is not None:
            client.force_login(person(role))
        return client

    return visit


@pytest.fixture
def jobs(settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store of its own with the priority queue `jobs`."""
    with site_store("memory:", settings, monkeypatch) as store:
        store.create_queue("jobs")
        yield
