"""What every peer offers: a queue of 100-byte values for many callers, durable at every answer."""

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.harness import report

#: The modules beside this one, ours first.
KINDS = ("embedded", "redis_aof", "postgres")


class Missing(Exception):
    """A peer is not installed; the message says what to install."""


@dataclass(frozen=True, slots=True)
class Door:
    """How a process reaches a running peer's queue: its module and an address of that module's making."""

    kind: str
    address: str


class Client(Protocol):
    """One caller's connection. Each call returns once what it did is on the disk."""

    def push(self, value: bytes, priority: int) -> None:
        """Add one value."""

    def pop(self) -> bytes | None:
        """Take the value of the smallest priority."""

    def lease(self) -> object | None:
        """Hold the value of the smallest priority; return what `ack` takes."""

    def ack(self, lease: Any) -> None:
        """Remove a held value for good."""

    def push_many(self, items: Sequence[tuple[bytes, int]]) -> None:
        """Add values as one."""

    def pop_many(self, n: int) -> int:
        """Take so many values as one; return how many there were."""

    def depth(self) -> int:
        """Return how many values there are."""


class AsyncClient(Protocol):
    """One coroutine's connection, used by one event loop."""

    async def push(self, value: bytes, priority: int) -> None:
        """Add one value."""

    async def pop(self) -> bytes | None:
        """Take the value of the smallest priority."""

    async def close(self) -> None:
        """End the connection."""


class Connection(Protocol):
    """One process's way to a peer."""

    async def async_client(self) -> AsyncClient:
        """Return a client for one more coroutine of the running loop."""

    def client(self) -> Client:
        """Return a client for one more thread."""

    def close(self) -> None:
        """Let go of all clients."""


class Peer(Protocol):
    """A running peer."""

    @property
    def door(self) -> Door:
        """How to reach it."""

    @property
    def facts(self) -> str:
        """Its version and the settings that decide how durable it is."""


def connect(door: Door) -> Connection:
    """Reach a peer from this process."""
    connection: Connection = importlib.import_module(f"benchmarks.peers.{door.kind}").connect(door.address)
    return connection


@contextmanager
def open_peers(
    kinds: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[dict[str, Peer]]:
    """Start the peers of these kinds that are installed, each with a folder of its own; say which are not."""
    with ExitStack() as stack:
        peers: dict[str, Peer] = {}
        for kind in kinds:
            place = folder / kind
            place.mkdir(parents=True)
            try:
                module = importlib.import_module(f"benchmarks.peers.{kind}")
                peers[kind] = stack.enter_context(module.running(place, dict(environment or {})))
            except Missing as missing:
                report.note(f"{kind} is left out: {missing}")
            except ModuleNotFoundError as missing:
                report.note(f"{kind} is left out: pip install {missing.name} (or the extra pqadmin[bench])")
        yield peers


#: Names the file of a cluster that tests and measurements may write to.
VARIABLE = "PQ_TEST_CLUSTER"


def cluster_file() -> str:
    """Return the cluster file to use; raise `Missing` when there is none."""
    path = os.environ.get(VARIABLE, "")
    if not Path(path).is_file():
        raise Missing(f"{VARIABLE} names no cluster file")
    return path
