"""A FoundationDB cluster for tests, when this machine has one.

**Tests empty the whole database.** PQ_TEST_CLUSTER names the file of a cluster that they may empty. Without it they use
FDB_CLUSTER_FILE's cluster, or that of the machine's default file, only while its database is empty, and leave it so.
PQ_REQUIRE_FDB=1 makes the absence of a cluster an error instead of fewer tests.
"""

import functools
import os
from dataclasses import dataclass
from pathlib import Path

from queues.kv.errors import StoreError

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

    ours = os.environ.get("PQ_TEST_CLUSTER", "")
    path = ours or os.environ.get("FDB_CLUSTER_FILE", "") or _DEFAULT_FILE
    if not Path(path).exists():
        return Found(why_not=f"no cluster file {path}" if path != _DEFAULT_FILE else "no cluster file")
    try:
        kv = open_kv(f"fdb:{path}")
        try:
            first = kv.read(lambda tr: tr.get_key(b"", b"\xff").wait())
        finally:
            kv.close()
    except StoreError as error:
        return Found(why_not=str(error))
    if first is not None and not ours:
        return Found(
            why_not=f"the cluster of {path} is not empty: PQ_TEST_CLUSTER={path} would let tests empty it, all of it"
        )
    return Found(url=f"fdb:{path}")


def fresh() -> str:
    """Empty the cluster and return its URL."""
    empty()
    return find().url


def empty() -> None:
    """Clear every key, past the port, which would leave a slot."""
    from queues.kv.cluster.client import open_database

    tr = open_database(find().url.removeprefix("fdb:")).create_transaction()
    tr.options.set_timeout(10_000)
    tr.clear_range(b"", b"\xff")
    tr.commit().wait()
