"""The examples of the API run as they are, in curl, JavaScript and Go, against a real site."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from queues import Store, open_store
from tests.api.test_two_sites import command
from tests.programs import run_to_end
from tests.server.conftest import Site, site

__all__ = ["site"]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def token(site: Site) -> str:
    assert site.address
    return command(site.data, "create_token", "examples", "--queues", "try-*", "--verbs", "read,push,take")


@pytest.fixture
def store(site: Site) -> Iterator[Store]:
    with open_store(f"lmdb:{site.data}/store") as opened:
        yield opened


@pytest.mark.parametrize(
    ("program", "example"),
    [(["bash"], "curl.sh"), (["node"], "client.mjs"), (["go", "run"], "client.go")],
    ids=["curl", "javascript", "go"],
)
def test_an_example_does_what_it_says(
    program: list[str], example: str, site: Site, store: Store, token: str, tmp_path: Path
) -> None:
    needed = "curl" if example == "curl.sh" else program[0]
    if shutil.which(needed) is None:
        pytest.skip(f"{needed} is not installed")
    name = f"try-{program[0]}"
    queue = store.create_queue(name)
    run = run_to_end(
        [*program, str(EXAMPLES / example), name],
        env={
            **{key: value for key, value in os.environ.items() if not key.startswith("PQADMIN_")},
            "PQADMIN_SERVER": site.address,
            "PQADMIN_TOKEN": token,
            "GOCACHE": str(tmp_path),
        },
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "resize image 8" in run.stdout + run.stderr
    assert "resize image 7" in run.stdout
    *_, last = run.stdout.splitlines()
    assert json.loads(last[last.index("{") :])["queue"] == name
    assert (queue.depth(), queue.depth("leased")) == (0, 0)
    assert dict(queue.totals().traffic) == {"push": 2, "pop": 1, "lease": 1, "ack": 1}
