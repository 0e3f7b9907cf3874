"""PostgreSQL: a table, popped with FOR UPDATE SKIP LOCKED, every call a commit, through psycopg."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.peers.peer import Door, Missing
from benchmarks.peers.server_process import free_port, program, server

#: Where Debian puts the programs, the newest release first.
FOLDERS = tuple(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))
_TABLE = """
CREATE TABLE items (priority integer NOT NULL, id bigserial, value bytea NOT NULL, expires timestamptz,
    PRIMARY KEY (priority, id));
ALTER TABLE items SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0)
"""
PUSH = "INSERT INTO items (priority, value) VALUES (%s, %s)"
#: The ready items of the smallest priorities that no other transaction is taking.
_NEXT = """
(SELECT priority, id FROM items WHERE expires IS NULL ORDER BY priority, id LIMIT {} FOR UPDATE SKIP LOCKED) AS next
"""
_SAME = "items.priority = next.priority AND items.id = next.id"
POP, POP_MANY = (f"DELETE FROM items USING {_NEXT.format(n)} WHERE {_SAME} RETURNING value" for n in (1, "%s"))
LEASE = f"""
UPDATE items SET expires = now() + interval '1 minute' FROM {_NEXT.format(1)} WHERE {_SAME}
RETURNING items.priority, items.id, value
"""
ACK = "DELETE FROM items WHERE priority = %s AND id = %s"
_PUSH_MANY = "INSERT INTO items (priority, value) SELECT * FROM unnest(%s::int[], %s::bytea[])"


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running PostgreSQL."""

    door: Door
    facts: str


@contextmanager
def running(folder: Path, environment: Mapping[str, str]) -> Iterator[Postgres]:
    """Start PostgreSQL with an empty database."""
    initdb = program("initdb", "postgresql", *FOLDERS)
    binary = program("postgres", "postgresql", *FOLDERS)
    user = _user()
    port = free_port()
    # A folder that its own user can reach; it refuses to run as root.
    place = Path(tempfile.mkdtemp(prefix="pq-bench-", dir=folder.parent if user is None else None))
    try:
        if user is not None:
            shutil.chown(place, user)
        data = place / "data"
        subprocess.run(
            [initdb, "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C"],
            check=True,
            capture_output=True,
            user=user,
            cwd=place,
        )
        command = [binary, "-D", str(data), "-p", str(port), "-k", "", "-h", "127.0.0.1", "-c", "max_connections=600"]
        command += ["-c", "shared_buffers=1GB", "-c", "max_wal_size=8GB"]
        address = f"host=127.0.0.1 port={port} user=bench dbname=postgres"
        with server(command, log=folder / "log", ready=lambda: _answers(address), user=user, environment=environment):
            with psycopg.connect(address, autocommit=True) as database:
                database.execute(_TABLE)
                release = database.info.parameter_status("server_version")
            yield Postgres(
                Door("postgres", address),
                f"PostgreSQL {release}, fsync and synchronous_commit on, psycopg {version('psycopg')} "
                f"({psycopg.pq.__impl__})",
            )
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _user() -> str | None:
    """Return the user to run it as: no other process, unless this is root."""
    if os.geteuid():
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        raise Missing("PostgreSQL does not run as root, and there is no user postgres") from None


def _answers(address: str) -> bool:
    try:
        with psycopg.connect(address):
            return True
    except psycopg.OperationalError:
        return False


class PostgresClient:
    """One connection, its statements prepared."""

    def __init__(self, address: str) -> None:
        self._database: Any = psycopg.connect(address, autocommit=True)
        self._cursor: Any = self._database.cursor(binary=True)

    def push(self, value: bytes, priority: int) -> None:
        """Add one value."""
        self._cursor.execute(PUSH, (priority, value), prepare=True)

    def pop(self) -> bytes | None:
        """Take the value of the smallest priority that no other process is taking."""
        row = self._cursor.execute(POP, prepare=True).fetchone()
        return None if row is None else row[0]

    def lease(self) -> tuple[int, int] | None:
        """Hold the value of the smallest priority for a minute."""
        row = self._cursor.execute(LEASE, prepare=True).fetchone()
        return None if row is None else row[:2]

    def ack(self, lease: tuple[int, int]) -> None:
        """Remove a held value for good."""
        self._cursor.execute(ACK, lease, prepare=True)

    def push_many(self, items: Sequence[tuple[bytes, int]]) -> None:
        """Add values as one."""
        values, priorities = zip(*items, strict=True)
        self._cursor.execute(_PUSH_MANY, (list(priorities), list(values)), prepare=True)

    def pop_many(self, n: int) -> int:
        """Take so many values as one."""
        return len(self._cursor.execute(POP_MANY, (n,), prepare=True).fetchall())

    def depth(self) -> int:
        """Return how many values there are."""
        return int(self._cursor.execute("SELECT count(*) FROM items").fetchone()[0])

    def close(self) -> None:
        """End the connection."""
        self._database.close()


class AsyncPostgresClient:
    """One connection of an event loop, its statements prepared."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self._cursor = database.cursor(binary=True)

    async def push(self, value: bytes, priority: int) -> None:
        """Add one value."""
        await self._cursor.execute(PUSH, (priority, value), prepare=True)

    async def pop(self) -> bytes | None:
        """Take the value of the smallest priority that no other process is taking."""
        await self._cursor.execute(POP, prepare=True)
        row = await self._cursor.fetchone()
        return None if row is None else row[0]

    async def close(self) -> None:
        """End the connection."""
        await self._database.close()


class Connections:
    """The connections of one process, one for each of its threads."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._clients: list[PostgresClient] = []

    def client(self) -> PostgresClient:
        """Return one more connection."""
        client = PostgresClient(self._address)
        self._clients.append(client)
        return client

    async def async_client(self) -> AsyncPostgresClient:
        """Return a connection for one more coroutine."""
        return AsyncPostgresClient(await psycopg.AsyncConnection.connect(self._address, autocommit=True))

    def close(self) -> None:
        """End them all."""
        for client in self._clients:
            client.close()


def connect(address: str) -> Connections:
    """Reach the server at this address."""
    return Connections(address)
