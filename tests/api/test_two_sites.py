"""Tokens and event streams of two sites on one store: what one does holds for the other, a death in between too."""

import http.client
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from queues import Queue, open_store
from tests.api.test_served import call
from tests.programs import run_to_end
from tests.server.conftest import PATIENCE, ROOT, Site, serve

__all__ = ["serve"]

pytestmark = pytest.mark.crash


def command(data: Path, *arguments: str) -> str:
    """Run a command on the data of the sites; return its last line."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PQADMIN_")}
    run = run_to_end(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        env=environment | {"PQADMIN_DATA": str(data), "PYTHONPATH": str(ROOT)},
        check=True,
    )
    return run.stdout.splitlines()[-1]


class Following:
    """A client of a site's event stream."""

    def __init__(self, answer: http.client.HTTPResponse, last: str) -> None:
        self._answer = answer
        self.status, self.last = answer.status, last

    def until(self, kind: str, fits: Callable[[Any], bool] = lambda data: True) -> list[tuple[str, Any]]:
        """Return the events up to the next one of a kind that fits, with it."""
        found: list[tuple[str, Any]] = []
        fields: dict[str, str] = {}
        while True:
            line = self._answer.readline().decode()
            assert line, f"the stream ended before {kind}: {found}"
            if line != "\n":
                name, _, value = line.rstrip("\n").partition(": ")
                fields[name] = value
                continue
            self.last = fields.get("id", self.last)
            if "event" in fields:
                found.append((fields["event"], json.loads(fields["data"])))
                if found[-1][0] == kind and fits(found[-1][1]):
                    return found
            fields = {}

    def ended(self) -> bool:
        """Return whether the server has ended the stream, after nothing more but comments."""
        return not self._answer.read().strip(b":\n")


@contextmanager
def follow(site: Site, secret: str, last: str = "") -> Iterator[Following]:
    connection = http.client.HTTPConnection(urlsplit(site.address).netloc, timeout=PATIENCE)
    headers = {"Authorization": f"Bearer {secret}", **({"Last-Event-ID": last} if last else {})}
    connection.request("GET", "/api/v1/events", headers=headers)
    try:
        yield Following(connection.getresponse(), last)
    finally:
        connection.close()


def die(queue: Queue) -> str:
    item = queue.push(b"x", priority=1)
    lease = queue.lease()
    queue.release(lease, reason="failed")
    return item.id


def test_a_stream_survives_its_site_and_ends_with_its_token(serve: Callable[..., Site], tmp_path: Path) -> None:
    first, second = serve(), serve()
    assert {first.get("/readyz")[0], second.get("/readyz")[0]} == {200}
    secret = command(tmp_path, "create_token", "ci", "--queues", "*", "--verbs", "all")
    authorized = {"Authorization": f"Bearer {secret}"}
    with open_store(f"lmdb:{tmp_path / 'store'}") as store:
        queue = store.create_queue("jobs")
        queue.configure(max_attempts=1)
        with follow(first, secret) as stream:
            stream.until("complete")
            status, _, _ = call(second, "POST", "queues/jobs/items", {"value": "x", "priority": 5}, **authorized)
            assert status == 201
            stream.until("queue", lambda data: data["ready"] == 1)
            seen = die(queue)
            assert stream.until("dead")[-1][1]["id"] == seen
            first.signal(signal.SIGKILL)
            assert first.exit_code() == -signal.SIGKILL
        missed = die(queue)
        third = serve()
        assert third.get("/readyz")[0] == 200
        for site in (second, third):
            with follow(site, secret, stream.last) as again:
                found = again.until("complete")
                assert found[0] == ("begin", {"queues": ["jobs"]})
                assert missed in [data["id"] for kind, data in found if kind == "dead"]
                assert next(data for kind, data in found if kind == "queue")["dead"] == 2
        with follow(second, secret) as one, follow(third, secret) as another:
            one.until("complete")
            another.until("complete")
            assert command(tmp_path, "revoke_token", "ci") == "Revoked the token ci."
            for site in (second, third):
                assert call(site, "POST", "queues/jobs/pop", **authorized)[0] == 401
            for stream in (one, another):
                assert stream.until("end")[-1][1]["detail"] == "The token is revoked."
                assert stream.ended()
        assert queue.depth() == 1
    second.signal(signal.SIGTERM)
    assert second.exit_code() == 0


def test_a_site_that_stops_ends_its_streams(serve: Callable[..., Site], tmp_path: Path) -> None:
    site = serve()
    assert site.get("/readyz")[0] == 200
    secret = command(tmp_path, "create_token", "ci", "--queues", "*", "--verbs", "read")
    with follow(site, secret) as stream:
        stream.until("complete")
        site.signal(signal.SIGTERM)
        assert stream.ended()
    assert site.exit_code() == 0
