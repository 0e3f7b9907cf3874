"""Groups of queues over HTTP: paused and resumed in one transaction, as far as the caller may."""

from collections.abc import Callable

import pytest

from pqadmin.accounts.models import Token
from queues import Store
from tests.api.conftest import Program, in_thread
from tests.api.test_verbs import problem

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.parametrize("site", ["lmdb:"], indirect=True)]


def paused(site: Store) -> list[str]:
    return [name for name in site.directory() if site.queue(name).status().pause is not None]


async def test_a_group_is_paused_and_resumed(site: Store, program: Program) -> None:
    for name in ("a:1", "a:2", "a:3", "a:b:1", "b:1"):
        site.create_queue(name)
    site.actions("ann").pause("a:2", reason="hers")
    key = {"Idempotency-Key": "pause"}
    first = await program.post("groups/pause", json={"group": "a:", "reason": "maintenance"}, headers=key)
    assert first.json() == {"group": "a:", "queues": ["a:1", "a:3"]}
    assert paused(site) == ["a:1", "a:2", "a:3"]
    name = (await Token.objects.aget()).name
    (entry,) = (each for each in site.audit.entries(queue="a:3").entries if each.verb == "pause")
    assert (entry.actor, entry.via, entry.reason) == (f"token:{name}", "api", "maintenance")
    seen = site.directory()
    resumed = await program.post("groups/resume", json={"group": "a:", "queue_ids": [seen["a:1"], seen["b:1"]]})
    assert resumed.json()["queues"] == ["a:1"]
    again = await program.post("groups/pause", json={"group": "a:", "reason": "maintenance"}, headers=key)
    assert (again.json(), again.headers["Idempotent-Replay"]) == (first.json(), "true")
    assert paused(site) == ["a:2", "a:3"]
    problem(await program.post("groups/pause", json={"group": "c:", "reason": "x"}), 404, "NotFound")


async def test_a_request_with_a_key_that_found_nothing_to_pause_stays_done(site: Store, program: Program) -> None:
    site.create_queue("a:1")
    key = {"Idempotency-Key": "resume"}
    first = await program.post("groups/resume", json={"group": "a:"}, headers=key)
    assert first.json() == {"group": "a:", "queues": []}
    site.actions("ann").pause("a:1", reason="since")
    assert (await program.post("groups/resume", json={"group": "a:"}, headers=key)).json() == first.json()
    assert paused(site) == ["a:1"]


async def test_queues_of_other_people_stay_as_they_are(site: Store, token: Callable[..., str]) -> None:
    for name in ("a:1", "a:2"):
        site.create_queue(name)
    part = Program(await in_thread(token, queues=["a:1"]))
    assert (await part.post("groups/pause", json={"group": "a:", "reason": "x"})).json()["queues"] == ["a:1"]
    assert paused(site) == ["a:1"]
    none = Program(await in_thread(token, queues=["z"]))
    problem(await none.post("groups/resume", json={"group": "a:"}), 404, "NotFound")
