"""Requests with one Idempotency-Key that overlap in two processes: one is executed, and both are told how it ended.

Some pairs of each kind of request; `PQ_PAIRS=100` are more of them.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier
from typing import Any

import pytest

from tests.api.postgresql import postgresql
from tests.api.test_served import call
from tests.forks import MANAGE, run_forked_text
from tests.server.conftest import PATIENCE, Site

pytestmark = pytest.mark.slow
#: Pairs of requests of each kind.
PAIRS = int(os.environ.get("PQ_PAIRS", "5"))
#: What the first answer alone shows.
SECRETS = ("password", "address", "code")


class Twins:
    """Two sites on one store and the same tables, and a client that asks both at once."""

    def __init__(self, sites: tuple[Site, Site], secret: str) -> None:
        self.sites = sites
        self._headers = {"Authorization": f"Bearer {secret}"}
        self._threads = ThreadPoolExecutor(2)

    def ask(self, method: str, path: str, body: Any = None, *, key: str = "", site: int = 0) -> tuple[int, Any, Any]:
        headers = {**self._headers, **({"Idempotency-Key": key} if key else {})}
        return call(self.sites[site], method, path, body, **headers)

    def ask_both(self, method: str, path: str, body: Any, key: str) -> list[tuple[int, Any, Any]]:
        begin = Barrier(2)

        def ask(site: int) -> tuple[int, Any, Any]:
            begin.wait(PATIENCE)
            return self.ask(method, path, body, key=key, site=site)

        return list(self._threads.map(ask, (0, 1)))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def twins(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    folder = tmp_path_factory.mktemp(request.param)
    (data := folder / "data").mkdir()
    with ExitStack() as stack:
        variables = {}
        if request.param == "postgresql":
            variables["DATABASE_URL"] = stack.enter_context(postgresql(folder))
        first = Site(data, prepared=not variables, **variables)
        stack.callback(first.stop)
        assert first.address
        second = Site(data, prepared=False, **variables)
        stack.callback(second.stop)
        assert second.address
        words = ("create_token", "t", "--queues", "*", "--verbs", "all,administer")
        made = run_forked_text(*words, form=MANAGE, env={**os.environ, "PQADMIN_DATA": str(data), **variables})
        made.check_returncode()
        yield Twins((first, second), made.stdout.splitlines()[-1])


#: By the audit's verb, or the operation: a request with the number of the pair in braces.
REQUESTS: dict[str, tuple[str, str, Any]] = {
    "push": ("POST", "queues/jobs/items", {"value": "v", "priority": 1}),
    "pop": ("POST", "queues/filled/pop", None),
    "lease": ("POST", "queues/filled/lease?end=max&seconds=600", None),
    "create": ("POST", "queues", {"name": "made-{}"}),
    "pause": ("POST", "queues/jobs-{}/pause", {"reason": "r"}),
    "delete_queue": ("DELETE", "queues/jobs-{}?confirm=jobs-{}", None),
    "keep_template": ("POST", "queues/jobs/templates", {"name": "t{}"}),
    "create_person": ("POST", "people", {"name": "p{}", "role": "viewer"}),
    "add_grant": ("PUT", "people/person/grants/jobs-{}", {"role": "viewer"}),
    "make_board": ("POST", "boards", {"name": "b{}"}),
    "mint_link": ("POST", "boards/wall/links", {"label": "l"}),
    "remove_board": ("DELETE", "boards/wall-{}", None),
}


@pytest.fixture(scope="module")
def prepared(twins: Twins) -> Twins:
    """Make what the requests are about."""
    person = {"name": "person", "role": "viewer"}
    asked: list[tuple[str, Any]] = [("people", person), ("boards", {"name": "wall"})]
    asked += [("queues", {"name": name}) for name in ("jobs", "filled", *(f"jobs-{n}" for n in range(PAIRS)))]
    asked += [("boards", {"name": f"wall-{n}"}) for n in range(PAIRS)]
    asked.append(("queues/filled/items", {"items": [{"value": str(n), "priority": n} for n in range(3 * PAIRS)]}))
    for path, body in asked:
        status, _, found = twins.ask("POST", path, body)
        assert status == 201, (path, found)
    return twins


def filled(text: Any, n: int) -> Any:
    return text.replace("{}", str(n)) if isinstance(text, str) else text


@pytest.mark.parametrize("name", REQUESTS)
def test_one_of_two_is_executed_and_both_get_its_answer(prepared: Twins, name: str) -> None:
    method, path, body = REQUESTS[name]
    recorded = f"audit?verb={name}&limit=100"
    before = len(prepared.ask("GET", recorded)[2]["entries"])
    told = []
    for n in range(PAIRS):
        content = None if body is None else {field: filled(value, n) for field, value in body.items()}
        asked = method, filled(path, n), content
        answers = prepared.ask_both(*asked, f"{name} {n}")
        answers.append(prepared.ask(*asked, key=f"{name} {n}", site=n % 2))
        assert {status for status, _, _ in answers} <= {200, 201}, answers
        repeated = ["Idempotent-Replay" in headers for _, headers, _ in answers]
        assert repeated in ([True, False, True], [False, True, True])
        same = [{**found, **dict.fromkeys(found.keys() & set(SECRETS))} for _, _, found in answers]
        assert same[0] == same[1] == same[2]
        told.append(same[0])
    if name in {"push", "pop", "lease"}:
        assert len({one["items"][0]["id"] for one in told}) == PAIRS
    else:
        assert len(prepared.ask("GET", recorded)[2]["entries"]) == before + PAIRS
