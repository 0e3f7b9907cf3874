"""A FoundationDB cluster for tests, when this machine has one: found, checked to be ours, and emptied.

The cluster file is PQ_TEST_CLUSTER's, else FDB_CLUSTER_FILE's, else the machine's default. **Tests empty the whole
database**, so they only use one that was empty when they first saw it, and leave a mark in it to know it again.
PQ_REQUIRE_FDB=1 makes its absence an error instead of fewer tests.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

from fdb import tuple as fdb_tuple

from queues.kv.errors import StoreError

MARK = fdb_tuple.pack(("pqadmin tests may empty this database",))
_DEFAULT_FILE = "/etc/foundationdb/fdb.cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The cluster that tests may use, or why there is none."""

    url: str = ""
    why_not: str = ""


def required() -> bool:
    """Say whether tests must run on a cluster."""
    return os.environ.get("PQ_REQUIRE_FDB", "") not in ("", "0")


@functools.cache
def find() -> Found:
    """Look for a cluster once in this process."""
    from queues.kv import open_kv

    path = os.environ.get("PQ_TEST_CLUSTER") or os.environ.get("FDB_CLUSTER_FILE") or _DEFAULT_FILE
    if not Path(path).exists():
        return Found(why_not=f"no cluster file {path}" if path != _DEFAULT_FILE else "no cluster file")
    try:
        kv = open_kv(f"fdb:{path}")
        try:
            first = kv.read(lambda tr: tr.get_key(b"", b"\xff").wait())
            marked = kv.read(lambda tr: tr.get(MARK).wait()) is not None
        finally:
            kv.close()
    except StoreError as error:
        return Found(why_not=str(error))
    if first is not None and not marked:
        return Found(why_not=f"the cluster of {path} holds data that is not these tests': they would empty it")
    return Found(url=f"fdb:{path}")


def fresh() -> str:
    """Empty the cluster and return its URL."""
    from queues.kv import open_kv

    url = find().url
    kv = open_kv(url)
    try:

        def empty(tr):
            tr.clear_range(b"", b"\xff")
            tr.set(MARK, b"")

        kv.transact(empty)
    finally:
        kv.close()
    return url
