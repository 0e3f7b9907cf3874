"""The site on a FoundationDB cluster: it starts without one, says so, and recovers by itself."""

import json
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from queues import open_store
from tests import cluster
from tests.soak.server import Server, program

needs_server = pytest.mark.skipif(
    not cluster.find().url or not program("fdbserver") or not program("fdbcli"),
    reason=f"no fdbserver of one's own: {cluster.find().why_not or 'fdbserver and fdbcli are not on the PATH'}",
)
PATIENCE = 120.0  # seconds; reached only when something hangs


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A cluster of this test's own, which it may kill."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with Server(folder) as running:
        yield running


def ready(address: str) -> tuple[int, dict, str | None]:
    """Return status, body and Retry-After of /readyz."""
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=PATIENCE) as answer:
            return answer.status, json.load(answer), None
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error), error.headers["Retry-After"]


def wait_until_ready(address: str) -> None:
    ends = time.monotonic() + PATIENCE
    while ready(address)[0] != 200:
        assert time.monotonic() < ends, "the site did not recover"


@needs_server
def test_a_cluster_that_goes_away_is_a_503_until_it_is_back(serve, server: Server) -> None:
    with open_store(server.url) as store:
        store.create_queue("jobs").push(b"one", priority=1)
    site = serve(PQADMIN_STORE=server.url)
    wait_until_ready(site.address)
    server.kill()
    status, body, retry_after = ready(site.address)
    assert (status, body["checks"]["store"], retry_after) == (503, "unavailable", "5")
    began = time.monotonic()
    assert ready(site.address)[0] == 503
    assert time.monotonic() - began < 4, "the second answer waits as long as the first"
    assert site.get("/livez")[0] == 200
    server.start()
    wait_until_ready(site.address)
    site.signal(signal.SIGTERM)
    assert site.exit_code() == 0
    with open_store(server.url) as store:
        assert store.queue("jobs").depth() == 1


@needs_server
def test_the_site_starts_without_its_cluster_and_finds_it_later(serve, server: Server) -> None:
    server.kill()
    site = serve(PQADMIN_STORE=server.url)
    site.wait_for("cannot be reached yet: .* does not answer")
    assert ready(site.address)[0] == 503
    server.start()
    wait_until_ready(site.address)


@needs_server
def test_the_site_starts_without_its_cluster_file_and_finds_it_later(serve, server: Server, tmp_path: Path) -> None:
    late = tmp_path / "late.cluster"
    site = serve(PQADMIN_STORE=f"fdb:{late}")
    site.wait_for("cannot be reached yet: .*late.cluster is not there")
    assert ready(site.address)[0] == 503
    late.write_bytes(server.cluster_file.read_bytes())
    wait_until_ready(site.address)


def test_a_missing_client_library_is_said(serve, tmp_path: Path) -> None:
    """Python starts with a hook that hides the library, wherever this machine has one."""
    (tmp_path / "sitecustomize.py").write_text(
        "import ctypes\n"
        "real = ctypes.CDLL\n"
        "class CDLL(real):\n"
        "    def __init__(self, name, *rest, **more):\n"
        "        if name and 'fdb_c' in str(name): raise OSError('hidden')\n"
        "        super().__init__(name, *rest, **more)\n"
        "ctypes.CDLL = CDLL\n"
        "import ctypes.util\n"
        "ctypes.util.find_library = lambda name: None\n"
    )
    site = serve(PQADMIN_STORE="fdb:", PYTHONPATH=str(tmp_path))
    site.wait_for(r"cannot be reached yet: FoundationDB's client library \(libfdb_c\) is not installed")
    assert ready(site.address)[0] == 503
