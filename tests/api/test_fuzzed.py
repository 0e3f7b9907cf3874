"""Every operation with requests made from the schema, right and wrong ones, on a real server.

No answer is a failure of the server, undocumented, or unlike its schema; what the schema refuses is refused; none goes
without a token. With PQ_API_EXAMPLES, each operation gets so many requests of chance, and those of each bound besides.
"""

import json
import os
import re
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from pqadmin.api.application import api
from pqadmin.api.docs import openapi
from tests.programs import run_to_end
from tests.server.conftest import PATIENCE, ROOT, Site

SEED = "19"
EXAMPLES = os.environ.get("PQ_API_EXAMPLES", "")
FEW = "4"
#: What a schema cannot say: a name that is taken, a key that was used, a time that has passed.
_MEANT = '["2xx", "401", "403", "404", "409", "412", "413", "422", "429", "507"]'


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A server that lets a tester send as much as it likes."""
    served = Site(tmp_path, PQADMIN_REQUESTS_PER_ADDRESS="0")
    yield served
    served.stop()


def call(site: Site, token: str, path: str, body: object) -> dict[str, object]:
    """Send a write and return its answer."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{site.address}/api/v1/{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        found: dict[str, object] = json.loads(answer.read())
        return found


def config(item_id: str, spare_id: str) -> str:
    """Return the tester's configuration: names and ids that are there, and those that may go."""
    operations = "\n".join(
        f'[[operations]]\ninclude-operation-id = "{name}"\n'
        f'parameters = {{ "path.queue" = "{queue}", "path.id" = "{each}" }}'
        for name, queue, each in (
            ("rename_queue", "spare", "-"),
            ("delete_queue", "spare", "-"),
            ("attach_queue", "spare", "-"),
            ("delete_item", "jobs", spare_id),
            ("move_item", "jobs", spare_id),
            *((name, "jobs", item_id) for name in ("get_item", "change_item", "reveal_item", "promote_item")),
        )
    )
    return (
        "max-stream-events = 1\nrequest-timeout = 60\n"
        '[parameters]\n"path.queue" = "jobs"\n"query.wait" = 0\n'
        f"[checks]\npositive_data_acceptance.expected-statuses = {_MEANT}\n{operations}\n"
    )


OPERATIONS = sum(1 for _ in openapi.operations(openapi.document(api)))


@pytest.mark.slow
def test_no_request_finds_an_answer_that_the_schema_does_not_have(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "tester"
    folder.mkdir()
    assert site.address
    made = run_to_end(
        [sys.executable, str(ROOT / "manage.py"), "create_token", "tester", "--queues", "*", "--verbs", "all"],
        env={**os.environ, "PQADMIN_DATA": str(site.data), "PQADMIN_STORE": f"lmdb:{site.data / 'store'}"},
        check=True,
    )
    token = made.stdout.splitlines()[-1]
    for name in ("jobs", "spare"):
        call(site, token, "queues", {"name": name})
    items = [{"value": str(n), "priority": n} for n in range(20)]
    pushed = call(site, token, "queues/jobs/items", {"items": items})["items"]
    assert isinstance(pushed, list)
    (folder / "schemathesis.toml").write_text(config(pushed[-1]["id"], pushed[-2]["id"]), "utf-8")
    tester = Path(sys.executable).with_name("schemathesis")
    run = run_to_end(
        [
            str(tester),
            "run",
            f"{site.address}/api/v1/openapi.json",
            *("--header", f"Authorization: Bearer {token}"),
            *("--include-path-regex", ".", "--seed", SEED, "--max-examples", EXAMPLES or FEW, "--checks", "all"),
            *("--phases", "coverage,fuzzing" if EXAMPLES else "fuzzing"),
            "--no-color",
        ],
        cwd=folder,
        timeout=None,
    )
    told = "\n".join(line[:500] for line in run.stdout.splitlines())
    assert run.returncode == 0, told.partition("= WARNINGS")[0] + run.stderr
    tested = re.search(r"Tested: (\d+)", told)
    assert tested is not None, told
    assert int(tested[1]) == OPERATIONS, told
    assert not [line for line in site.complained if " ERROR " in line]
