"""A client that a generator makes from the schema: no operation is left out, and it pushes and takes on a real site."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.test_two_sites import command
from tests.programs import run_to_end
from tests.server.conftest import Site, site

__all__ = ["site"]

#: Bodies of lines and text are sent as bytes: the generator knows no other kind for them.
_CONFIG = {
    "content_type_overrides": dict.fromkeys(
        ("text/plain", "application/x-ndjson", "text/csv"), "application/octet-stream"
    ),
    "post_hooks": [],
}


@pytest.fixture
def client(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The generated client, with a token that may do everything."""
    (tmp_path / "config.json").write_text(json.dumps(_CONFIG), "utf-8")
    run = run_to_end(
        [
            *(Path(sys.executable).with_name("openapi-python-client"), "generate", "--meta", "none"),
            *("--url", f"{site.address}/api/v1/openapi.json", "--config", tmp_path / "config.json"),
            *("--output-path", tmp_path / "generated_client", "--fail-on-warning"),
        ],
    )
    assert run.returncode == 0, run.stdout + run.stderr
    monkeypatch.syspath_prepend(tmp_path)
    token = command(site.data, "create_token", "generated", "--queues", "*", "--verbs", "all")
    with part("client").AuthenticatedClient(site.address, token, raise_on_unexpected_status=True) as made:
        yield made
    for name in [name for name in sys.modules if name.partition(".")[0] == "generated_client"]:
        del sys.modules[name]


def part(name: str) -> Any:
    """Return a module of the generated client."""
    return importlib.import_module(f"generated_client.{name}")


def test_a_generated_client_creates_a_queue_pushes_takes_and_reads_problems(client: Any) -> None:
    models = part("models")
    made = part("api.queues.create_queue").sync(client=client, body=models.NewQueue(name="jobs"))
    assert made.queue == "jobs"
    push, pop = part("api.items.push"), part("api.items.pop")
    item = models.NewItem(value="resize image 7", priority=5)
    first = push.sync("jobs", client=client, body=item, idempotency_key="image-7")
    again = push.sync_detailed("jobs", client=client, body=item, idempotency_key="image-7")
    assert again.parsed == first
    assert again.headers["Idempotent-Replay"] == "true"
    push.sync("jobs", client=client, body=models.NewItems(items=[models.NewItem(value="later", priority=6)]))
    (taken,) = pop.sync("jobs", client=client, end=models.PopEnd.MIN).items
    assert (taken.id, taken.value, taken.priority) == (first.items[0].id, "resize image 7", 5)

    (held,) = part("api.items.lease").sync("jobs", client=client, seconds=60).items
    settled = part("api.items.ack").sync("jobs", client=client, body=models.Settled(leases=[held.lease]))
    assert (held.value, [result.done for result in settled.results]) == ("later", [True])
    assert pop.sync("jobs", client=client).items == []

    refused = pop.sync_detailed("job", client=client)
    assert (refused.status_code, refused.parsed.code) == (404, "QueueNotFound")
    assert refused.parsed.suggestions == ["jobs"]
