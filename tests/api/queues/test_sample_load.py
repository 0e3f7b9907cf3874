"""The sample load over HTTP."""

from collections.abc import Callable, Iterator

import pytest

from pqadmin.load.sample import PREFIX, sample_load
from queues import Store
from tests.api.conftest import Program, in_thread
from tests.api.test_verbs import problem

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.parametrize("site", ["lmdb:"], indirect=True)]


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    yield
    sample_load.stop()


async def test_it_is_started_on_a_store_of_its_own_and_stopped(
    site: Store, program: Program, token: Callable[..., str]
) -> None:
    part = Program(await in_thread(token, queues=["a*"]))
    for method in ("POST", "DELETE"):
        problem(await part.request(method, "sample-load"), 403, "Forbidden")
    site.create_queue("mine")
    assert "other queues" in problem(await program.post("sample-load"), 409, "NotPossible")["detail"]
    assert list(site.directory()) == ["mine"]
    site.actions("ann").delete_queue("mine", confirm="mine", expect_depth=0)
    assert (await program.get("sample-load")).json() == {"running": False, "ends_at": None}
    started, key = await program.post("sample-load"), {"Idempotency-Key": "stop"}
    assert started.json() == {"seconds": 300.0}
    assert all(name.startswith(PREFIX) for name in site.directory())
    assert (await program.get("sample-load")).json()["running"] is True
    assert "running already" in problem(await program.post("sample-load"), 409, "NotPossible")["detail"]
    assert (await program.delete("sample-load", headers=key)).json() == {"stopped": True}
    assert (await program.delete("sample-load", headers=key)).json() == {"stopped": True}
    assert (await program.delete("sample-load")).json() == {"stopped": False}
