"""What the wall's suite shares: a store and a monitor of its own, people of every role, boards, and screens."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from pqadmin.accounts.roles import Role, grant
from pqadmin.live import monitor as monitors
from pqadmin.live.monitor import Monitor
from pqadmin.wall.models import Board
from queues import Store
from tests.live.conftest import looks
from tests.sites import site_store

__all__ = ["looks"]

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


@pytest.fixture
def store(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The site's store, fresh and in memory."""
    with site_store("memory:", settings, monkeypatch) as opened:
        yield opened


@pytest.fixture
def monitor(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Monitor]:
    """The process's monitor, which has seen nothing yet."""
    made = Monitor()
    monkeypatch.setattr(monitors, "_monitor", made)
    yield made
    made.shutdown()


@pytest.fixture
def client_of(db: None, monitor: Monitor) -> Callable[[Role], Client]:
    """Return the browser of a person of a role."""

    def sit(role: Role) -> Client:
        user = User.objects.create_user(f"a-{role}")
        if role is not Role.NONE:
            grant(user, role)
        client = Client()
        client.force_login(user)
        return client

    return sit


@pytest.fixture
def admin(client_of: Callable[[Role], Client]) -> Client:
    """An admin's browser."""
    return client_of(Role.ADMIN)


MakeBoard = Callable[..., Board]


@pytest.fixture
def make_board(db: None) -> MakeBoard:
    """Put a board into the tables."""

    def make(name: str = "Hall", *globs: str, **more: Any) -> Board:
        by = {"made_by": "ada", "made_at": NOW, "changed_by": "ada", "changed_at": NOW}
        return Board.objects.create(slug=name.lower(), name=name, globs=list(globs or ("*",)), **by, **more)

    return make


def minted_address(page: str) -> str:
    """Return the address, path and query, that a page shows for a new link."""
    found = re.search(r'<code id="minted">http://testserver([^<]+)</code>', page)
    assert found, page
    return found.group(1)


def new_id(admin: Client, slug: str, label: str = "the hall") -> str:
    """Mint a link through the page and return its address."""
    return minted_address(_minted(admin, slug, label))


def new_code(admin: Client, slug: str) -> str:
    """Mint a link through the page and return its short code."""
    found = re.search(r'<p class="minted code"><code>([^<]+)</code>', _minted(admin, slug, "the hall"))
    assert found
    return found.group(1)


def _minted(admin: Client, slug: str, label: str) -> str:
    page = admin.get(f"/boards/{slug}/").content.decode()
    found = re.search(rf'action="/boards/{slug}/links/".*?name="form_number" value="([^"]+)"', page, re.DOTALL)
    assert found
    answer = admin.post(f"/boards/{slug}/links/", {"label": label, "form_number": found.group(1)})
    assert answer.status_code == 200, answer.content
    page = answer.content.decode()
    assert "<svg" in page, "the address as a QR code"
    return page


def revoke(admin: Client, slug: str, key: int) -> None:
    """Revoke a link through the page of its board."""
    page, path = admin.get(f"/boards/{slug}/").content.decode(), f"/boards/{slug}/links/{key}/revoke/"
    found = re.search(rf'action="{path}".*?name="form_number" value="([^"]+)"', page, re.DOTALL)
    assert found
    assert admin.post(path, {"form_number": found.group(1)}).status_code == 303


def redeem(screen: Client, address: str, **more: Any) -> Any:
    """Open a link's address in a screen's browser and press its button."""
    page = screen.get(address, **more)
    found = re.search(r'<input type="hidden" name="token" value="([^"]+)">', page.content.decode())
    return screen.post(address.partition("?")[0], {"token": found.group(1)}, **more) if found else page


@pytest.fixture
def screen(admin: Client, make_board: MakeBoard) -> Client:
    """A screen without a login that a link has let onto the board `hall`."""
    make_board("Hall")
    fresh = Client()
    assert redeem(fresh, new_id(admin, "hall")).status_code == 303
    return fresh
