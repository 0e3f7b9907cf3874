"""Every operation with requests made from the schema, right and wrong ones, on a real server.

No answer is a failure of the server, undocumented, or unlike its schema; none has members that the schema does not
name. What the schema refuses is refused; none goes without a token. With PQ_API_EXAMPLES, each operation gets so many
requests of chance, and those of each bound besides.
"""

import json
import os
import re
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pqadmin.api.application import api
from pqadmin.api.docs import openapi
from tests.programs import run_to_end
from tests.server.conftest import PATIENCE, ROOT, Site

SEED = "19"
EXAMPLES = os.environ.get("PQ_API_EXAMPLES", "")
FEW = "2"
#: Names that are there.
ALL = {"queue": "jobs", "name": "person", "board": "wall"}
#: What a schema cannot say: a name that is taken, a key that was used, a time that has passed.
_MEANT = '["2xx", "401", "403", "404", "409", "412", "413", "422", "429", "507"]'


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A server that lets a tester send as much as it likes."""
    served = Site(tmp_path, PQADMIN_REQUESTS_PER_ADDRESS="0")
    yield served
    served.stop()


def call(site: Site, token: str, path: str, body: object = None) -> dict[str, object]:
    """Send a request, a write with a body, and return its answer."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{site.address}/api/v1/{path}", content, headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        found: dict[str, object] = json.loads(answer.read())
        return found


class There(NamedTuple):
    """Ids of what is there, and of what may go."""

    item: object
    spare_item: object
    template: object
    spare_template: object
    link: object
    #: The tester's own is never revoked.
    spare_token: object


def config(ids: There) -> str:
    """Return the tester's configuration: names and ids that are there, and those that may go."""
    values = {
        "rename_queue": {"queue": "spare"},
        "delete_queue": {"queue": "spare"},
        "attach_queue": {"queue": "spare"},
        "delete_item": {"id": ids.spare_item},
        "move_item": {"id": ids.spare_item},
        **{name: {"id": ids.item} for name in ("get_item", "change_item", "reveal_item", "promote_item")},
        "get_template": {"id": ids.template},
        "forget_template": {"id": ids.spare_template},
        "revoke_token": {"id": ids.spare_token},
        "remove_board": {"board": "spare"},
        "revoke_link": {"id": ids.link},
    }
    operations = "\n".join(
        f'[[operations]]\ninclude-operation-id = "{operation}"\nparameters = {{ '
        + ", ".join(f'"path.{name}" = {json.dumps(value)}' for name, value in {**ALL, **own}.items())
        + " }"
        for operation, own in values.items()
    )
    return (
        "max-stream-events = 1\nrequest-timeout = 60\n"
        '[parameters]\n"query.wait" = 0\n'
        + "".join(f'"path.{name}" = "{value}"\n' for name, value in ALL.items())
        + f"[checks]\npositive_data_acceptance.expected-statuses = {_MEANT}\n{operations}\n"
    )


def token_of(site: Site, name: str, *, verbs: str) -> str:
    """Create a token of the first admin and return its secret."""
    made = run_to_end(
        [sys.executable, str(ROOT / "manage.py"), "create_token", name, "--queues", "*", "--verbs", verbs],
        env={**os.environ, "PQADMIN_DATA": str(site.data), "PQADMIN_STORE": f"lmdb:{site.data / 'store'}"},
        check=True,
    )
    return made.stdout.splitlines()[-1]


def prepared(site: Site, token: str) -> There:
    """Make what the requests are about."""
    for name in ("jobs", "spare"):
        call(site, token, "queues", {"name": name})
    items = [{"value": str(n), "priority": n} for n in range(20)]
    pushed = call(site, token, "queues/jobs/items", {"items": items})["items"]
    assert isinstance(pushed, list)
    templates = [
        call(site, token, "queues/jobs/templates", {"name": name, "value": "1", "priority": "1"})
        for name in ("kept", "spare")
    ]
    call(site, token, "people", {"name": "person", "role": "viewer"})
    for name in ("wall", "spare"):
        call(site, token, "boards", {"name": name})
    link = call(site, token, "boards/wall/links", {"label": "screen"})
    tokens = call(site, token, "tokens?q=spare")["tokens"]
    assert isinstance(tokens, list)
    (spare,) = tokens
    return There(pushed[-1]["id"], pushed[-2]["id"], templates[0]["id"], templates[1]["id"], link["id"], spare["id"])


OPERATIONS = sum(1 for _ in openapi.operations(openapi.document(api)))


def named(part: object, schemas: dict[str, Any], found: set[str]) -> set[str]:
    """Add the names of the schemas that a part of the document refers to, also by way of further ones."""
    if isinstance(part, dict):
        name = str(part.get("$ref", "")).rpartition("/")[2]
        if name and name not in found:
            found.add(name)
            named(schemas[name], schemas, found)
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        named(inner, schemas, found)
    return found


def without_more() -> dict[str, Any]:
    """Return the document in which objects of answers have no members but those that it names; problems may."""
    document: dict[str, Any] = openapi.document(api)
    schemas = document["components"]["schemas"]
    answered: set[str] = set()
    free: set[str] = set()
    for path in document["paths"].values():
        for operation in path.values():
            named(operation.get("requestBody"), schemas, free)
            for code, answer in operation["responses"].items():
                named(answer, schemas, answered if str(code) < "300" else free)
    for name in answered - free:
        if "properties" in schemas[name]:
            schemas[name].setdefault("additionalProperties", False)
    return document


@pytest.mark.slow
def test_no_request_finds_an_answer_that_the_schema_does_not_have(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "tester"
    folder.mkdir()
    assert site.address
    token = token_of(site, "tester", verbs="all,administer")
    token_of(site, "spare", verbs="read")
    (folder / "schemathesis.toml").write_text(config(prepared(site, token)), "utf-8")
    (folder / "openapi.json").write_text(json.dumps(without_more()), "utf-8")
    tester = Path(sys.executable).with_name("schemathesis")
    run = run_to_end(
        [
            str(tester),
            "run",
            *("openapi.json", "--url", site.address),
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
