"""Redis: a sorted set, every write flushed before it is answered (appendfsync always), through redis-py."""

import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import redis
import redis.asyncio

from benchmarks.peers.peer import Door
from benchmarks.peers.server_process import free_port, program, server

_KEY, _LEASED = "jobs", "leased"
_LEASE = """
local found = redis.call('ZPOPMIN', KEYS[1])
if found[1] then redis.call('ZADD', KEYS[2], ARGV[1], found[1]) end
return found[1]
"""
#: As pqadmin's own stores: nothing but the log of writes, each flushed before its answer.
SETTINGS = ("--appendonly", "yes", "--appendfsync", "always", "--save", "", "--maxclients", "2000")


@dataclass(frozen=True, slots=True)
class Redis:
    """A running Redis."""

    door: Door
    facts: str


@contextmanager
def running(folder: Path, environment: Mapping[str, str]) -> Iterator[Redis]:
    """Start Redis in a folder."""
    binary = program("redis-server", "redis-server")
    port = free_port()
    command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), *SETTINGS]
    with server(command, log=folder / "log", ready=lambda: _answers(port), user=None, environment=environment):
        told = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
        yield Redis(
            Door("redis_aof", str(port)),
            f"Redis {told.removeprefix('v=')}, appendfsync always, redis-py {version('redis')}",
        )


def _answers(port: int) -> bool:
    try:
        with redis.Redis(port=port) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False


class RedisClient:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._redis: Any = redis.Redis(port=port, single_connection_client=True)
        self._lease: Any = self._redis.register_script(_LEASE)

    def push(self, value: bytes, priority: int) -> None:
        """Add one value."""
        self._redis.zadd(_KEY, {value: priority})

    def pop(self) -> bytes | None:
        """Take the value of the smallest score."""
        found: list[tuple[bytes, float]] = self._redis.zpopmin(_KEY)
        return found[0][0] if found else None

    def lease(self) -> bytes | None:
        """Move the value of the smallest score to those that are held, which expire in a minute."""
        found: bytes | None = self._lease((_KEY, _LEASED), (time.time() + 60,))
        return found

    def ack(self, lease: bytes) -> None:
        """Remove a held value for good."""
        self._redis.zrem(_LEASED, lease)

    def push_many(self, items: Sequence[tuple[bytes, int]]) -> None:
        """Add values as one."""
        self._redis.zadd(_KEY, dict(items))

    def pop_many(self, n: int) -> int:
        """Take so many values as one."""
        return len(self._redis.zpopmin(_KEY, n))

    def depth(self) -> int:
        """Return how many values there are."""
        return int(self._redis.zcard(_KEY))

    def close(self) -> None:
        """End the connection."""
        self._redis.close()


class AsyncRedisClient:
    """One connection of an event loop."""

    def __init__(self, port: int) -> None:
        self._redis: Any = redis.asyncio.Redis(port=port, single_connection_client=True)

    async def push(self, value: bytes, priority: int) -> None:
        """Add one value."""
        await self._redis.zadd(_KEY, {value: priority})

    async def pop(self) -> bytes | None:
        """Take the value of the smallest score."""
        found: list[tuple[bytes, float]] = await self._redis.zpopmin(_KEY)
        return found[0][0] if found else None

    async def close(self) -> None:
        """End the connection."""
        await self._redis.aclose()


class Connections:
    """The connections of one process, one for each of its threads."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._clients: list[RedisClient] = []

    def client(self) -> RedisClient:
        """Return one more connection."""
        client = RedisClient(self._port)
        self._clients.append(client)
        return client

    async def async_client(self) -> AsyncRedisClient:
        """Return a connection for one more coroutine."""
        return AsyncRedisClient(self._port)

    def close(self) -> None:
        """End them all."""
        for client in self._clients:
            client.close()


def connect(address: str) -> Connections:
    """Reach Redis on this port."""
    return Connections(int(address))
