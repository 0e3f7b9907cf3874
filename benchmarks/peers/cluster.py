"""Ours on FoundationDB: a queue under a root of its own on PQ_TEST_CLUSTER's cluster, removed afterwards."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.peers.embedded import OpenStore
from benchmarks.peers.peer import Door, cluster_file
from queues import open_store


@dataclass(frozen=True, slots=True)
class Cluster:
    """A store on a cluster."""

    door: Door
    facts: str


@contextmanager
def running(folder: Path, environment: Mapping[str, str]) -> Iterator[Cluster]:
    """Make a store with one queue on the cluster, and remove it."""
    path = cluster_file()
    root = f"pq-bench-{os.urandom(4).hex()}"
    with open_store(f"fdb:{path}", root=(root,)) as store:
        store.create_queue("jobs")
    try:
        yield Cluster(Door("cluster", f"{root}@{path}"), f"pqadmin on FoundationDB, binding {version('foundationdb')}")
    finally:
        from benchmarks.peers.recipe import clear, database  # the binding is not needed before

        clear(database(path), (root,))


def connect(address: str) -> OpenStore:
    """Open the store under this root of this cluster."""
    root, _, path = address.partition("@")
    return OpenStore(f"fdb:{path}", root=(root,))
