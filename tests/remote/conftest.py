"""Remote stores: the API of a site in this process, without a network; and real sites behind a proxy."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pqadmin.api.handler import ApiHandler
from queues import Store, open_store
from queues.remote.store import open_remote
from tests.api.conftest import granted, person, token
from tests.api.test_two_sites import command
from tests.conftest import Clock, store_url
from tests.server.conftest import Site
from tests.sites import cheap_passwords, site_store

__all__ = ["cheap_passwords", "granted", "person", "token"]


@pytest.fixture(params=["embedded", "simulated"])
def engine(request: pytest.FixtureRequest) -> str:
    """The engine of the site's store."""
    name: str = request.param
    return name


@pytest.fixture
def local(engine: str, tmp_path: Path, clock: Clock, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The site's own store, by the test's clock."""
    with site_store("memory:", settings, monkeypatch), open_store(store_url(engine, tmp_path), clock=clock) as opened:
        monkeypatch.setattr("pqadmin.store._store", opened)
        yield opened


@pytest.fixture
def remote(local: Store, clock: Clock, transactional_db: None, token: Callable[..., str]) -> Iterator[Store]:
    """The same store behind the API, with a token that may do everything."""
    transport = httpx.ASGITransport(app=ApiHandler())
    with open_remote("http://localhost", token=token(), timeout=5, transport=transport, clock=clock) as opened:
        yield opened


@pytest.fixture
def store(remote: Store) -> Store:
    """What the tests of all engines use."""
    return remote


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site."""
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="session")
def site(folder: Path) -> Iterator[Site]:
    """A served site."""
    started = Site(folder)
    assert started.get("/readyz")[0] == 200
    yield started
    started.stop()


@pytest.fixture(scope="session")
def secret(site: Site, folder: Path) -> str:
    """A token of an admin of that site."""
    return command(folder, "create_token", "ops", "--queues", "*", "--verbs", "all")
