"""What every suite shares: a store on each engine, and a clock that tests set."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from queues import Actions, Queue, Store, open_store
from tests import cluster, prepared

# A machine at work on something else is no finding.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

ENGINES = ("embedded", "simulated", "cluster") if cluster.find().url else ("embedded", "simulated")


def pytest_report_header() -> str:
    """Say on which engines this run tests."""
    found = cluster.find()
    return f"engines: {', '.join(ENGINES)}" + (f" (no FoundationDB: {found.why_not})" if found.why_not else "")


def pytest_configure() -> None:
    """Refuse to run without a cluster when one is required."""
    found = cluster.find()
    if cluster.required() and found.why_not:
        raise pytest.UsageError(f"PQ_REQUIRE_FDB is set, but there is no FoundationDB to test on: {found.why_not}")


def pytest_unconfigure() -> None:
    """Leave the cluster as it was found: empty."""
    if cluster.find().url:
        cluster.empty()


@pytest.fixture(scope="session", autouse=True)
def programs_heed_hangups() -> None:
    """Let programs of the tests end by SIGHUP also where these tests run under nohup: no program inherits a handler."""
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda number, frame: None)


@pytest.fixture(scope="session", autouse=True)
def prepared_folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let the tables of sites be prepared in a folder that pytest removes."""
    prepared.parent = tmp_path_factory.getbasetemp()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """Put back what Django else makes anew, permission by permission, after each test that empties the tables."""
    from tests.sites import copy_permissions

    with django_db_blocker.unblock():
        copy_permissions()


class Clock:
    """Seconds since the epoch, moved only by tests."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Move the clock; negative seconds step it back."""
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    """A clock that does not move."""
    return Clock()


def store_url(engine: str, folder: Path) -> str:
    """Return the URL of a fresh store on an engine; there is only one fresh cluster at a time."""
    if engine == "cluster":
        return cluster.fresh()
    return f"lmdb:{folder / 'store'}" if engine == "embedded" else "memory:"


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of an engine."""
    name: str = request.param
    return name


@pytest.fixture
def store(engine: str, tmp_path: Path, clock: Clock) -> Iterator[Store]:
    """A fresh store on each engine."""
    with open_store(store_url(engine, tmp_path), clock=clock) as opened:
        yield opened


@pytest.fixture
def jobs(store: Store) -> Queue:
    """An empty queue of the store."""
    return store.create_queue("jobs")


@pytest.fixture
def ann(store: Store) -> Actions:
    """The actions of a person."""
    return store.actions("ann")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a store that several processes can open."""
    return f"lmdb:{tmp_path / 'store'}"
