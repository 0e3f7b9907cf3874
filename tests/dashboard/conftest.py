"""A site on a store of its own, and operators that read pages and fill in forms.

Every page that a test opens is also held to what all pages promise: nothing inline, every field labeled, every
table captioned, nothing hostile unescaped.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation

from pqadmin.accounts.roles import Role, grant
from queues import Store
from tests.conftest import ENGINES, store_url
from tests.dashboard.screen import Screen
from tests.sites import cheap_passwords, site_store

__all__ = ["cheap_passwords"]


@pytest.fixture(params=[name for name in ENGINES if name != "embedded"])
def store(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> Iterator[Store]:
    """The site's store, fresh, in memory and on a cluster if there is one."""
    with site_store(store_url(request.param, tmp_path), settings, monkeypatch) as opened:
        yield opened


class Desk:
    """A person in front of a browser without JavaScript."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def open(self, path: str, **headers: str) -> Screen:
        """Open a page, following redirects."""
        return Screen(self.client.get(path, follow=True, headers=headers))

    def send(self, screen: Screen, to: str, /, **typed: str) -> Screen:
        """Fill in the form of a page that goes to the address ending in `to`, send it, and read the answer."""
        return self.post(*screen.form(to), **typed)

    def post(self, action: str, fields: dict[str, str], /, **typed: str) -> Screen:
        """Send fields to an address and read the answer."""
        return Screen(self.client.post(action, {**fields, **typed}, follow=True))


@pytest.fixture
def desk(db: None, store: Store) -> Callable[..., Desk]:
    """Seat a person of a role."""

    def sit(role: Role = Role.OPERATOR, name: str = "") -> Desk:
        user = User.objects.create_user(name or f"a-{role}")
        grant(user, role)
        client = Client()
        client.force_login(user)
        return Desk(client)

    return sit


@pytest.fixture
def english_again() -> Iterator[None]:
    """Give the tests after this one their language back: a request leaves its own behind in its thread."""
    yield
    translation.deactivate()


@pytest.fixture
def chinese_admin(desk: Callable[..., Desk], english_again: None) -> Desk:
    """An admin that reads Chinese."""
    admin = desk(Role.ADMIN, "管")
    admin.client.cookies[settings.LANGUAGE_COOKIE_NAME] = "zh-hans"
    return admin


@pytest.fixture
def operator(desk: Callable[..., Desk]) -> Desk:
    """An operator."""
    return desk(Role.OPERATOR, "ada")


@pytest.fixture
def viewer(desk: Callable[..., Desk]) -> Desk:
    """A viewer."""
    return desk(Role.VIEWER)
