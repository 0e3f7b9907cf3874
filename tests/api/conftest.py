"""The API without a server: programs with tokens, and a store of the site's own."""

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from pqadmin.accounts.authentication import digest, new_secret
from pqadmin.accounts.caller import Verb
from pqadmin.accounts.models import Token
from pqadmin.accounts.rights import Role
from pqadmin.api.handler import ApiHandler
from queues import FifoQueue, PriorityQueue, Store
from tests.accounts.conftest import granted, person
from tests.api.streams import PATIENCE
from tests.sites import cheap_passwords, site_store

__all__ = ["cheap_passwords", "granted", "person"]


@pytest.fixture(params=["memory:", "lmdb:"])
def site(request: pytest.FixtureRequest, tmp_path: Path, settings: Any, monkeypatch: Any) -> Iterator[Store]:
    """The site's store, on each engine."""
    url = request.param if request.param == "memory:" else f"lmdb:{tmp_path / 'store'}"
    with site_store(url, settings, monkeypatch) as store:
        yield store


@pytest.fixture
def jobs(site: Store) -> PriorityQueue:
    return site.create_queue("jobs")


@pytest.fixture
def line(site: Store) -> FifoQueue:
    return site.create_queue("line", kind="fifo")


@pytest.fixture
def token(person: Callable[..., User]) -> Callable[..., str]:
    """Make a token of a user, by default of a new admin, and return its secret."""

    def make(owner: User | None = None, *, verbs: Sequence[Verb] = tuple(Verb), queues: Sequence[str] = ("*",)) -> str:
        secret, name = new_secret(), secrets.token_hex(4)
        Token.objects.create(
            name=name,
            owner=owner or person(Role.ADMIN, f"owner-{name}"),
            digest=digest(secret),
            verbs=list(verbs),
            queues=list(queues),
            created_at=timezone.now(),
        )
        return secret

    return make


async def in_thread(do: Callable[..., Any], *values: Any, **named: Any) -> Any:
    """Run what uses the tables beside the event loop of a test."""
    return await sync_to_async(do, thread_sensitive=True)(*values, **named)


class Program(httpx.AsyncClient):
    """A program that calls the API, with a token or without."""

    def __init__(self, secret: str | None) -> None:
        super().__init__(
            transport=httpx.ASGITransport(app=ApiHandler(), raise_app_exceptions=True),
            base_url="http://localhost/api/v1/",
            headers={} if secret is None else {"Authorization": f"Bearer {secret}"},
        )


class Browser(Program):
    """A signed-in person's browser, whose session calls the API with the token of forms."""

    def __init__(self, user: User) -> None:
        super().__init__(None)
        signed_in = Client()
        signed_in.force_login(user)
        self.cookies.update({name: cookie.value for name, cookie in signed_in.cookies.items()})
        self.cookies["pqadmin_csrf"] = self.headers["X-CSRFToken"] = secrets.token_hex(16)


@pytest.fixture
def program(site: Store, token: Callable[..., str]) -> Program:
    """A program that may do everything."""
    return Program(token())


async def in_wait(queue: Any) -> None:
    """Return when a request waits for an item of a queue that none waited for."""
    async with asyncio.timeout(PATIENCE):
        while queue.opened.context.wait_queues.of(queue.id).lookout is None:
            await asyncio.sleep(0.001)
