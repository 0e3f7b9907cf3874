"""A PostgreSQL server for the tables of a test's sites."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Run PostgreSQL; give the address of a database, or skip the test where there is none."""
    pytest.importorskip("psycopg", reason="PostgreSQL's driver is not installed")
    from benchmarks.peers import postgres
    from benchmarks.peers.peer import Missing

    try:
        with postgres.running(folder, {}) as server:
            port = dict(part.split("=") for part in server.door.address.split())["port"]
            yield f"postgres://bench@127.0.0.1:{port}/postgres"
    except Missing as missing:
        pytest.skip(str(missing))
