"""kill -9 in the middle of requests with idempotency keys: sent again, each is executed once."""

import random
from pathlib import Path

import pytest

from queues import open_store
from tests.crash.harness import kill_during
from tests.crash.programs import send
from tests.full_count import check_full_count

ROUNDS = 6
THREADS = 8


@pytest.mark.crash
def test_a_request_that_is_sent_again_after_a_kill_is_executed_once(tmp_path: Path) -> None:
    url = f"lmdb:{tmp_path / 'store'}"
    dice = random.Random(20261123)
    with open_store(url) as store:
        store.create_queue("jobs")
    begun, hit = set[str](), 0
    for number in range(ROUNDS):
        killed = kill_during(
            "tests.crash.programs:send_requests", url, f"{THREADS}", f"{number * 1_000_000}", after=dice.randint(1, 60)
        )
        begun |= killed.begun
        hit += bool(killed.in_flight)
        with open_store(url) as store:
            assert all(send(store, key).repeated for key in killed.acknowledged)
            for key in killed.in_flight:
                send(store, key)
            queue = store.priority_queue("jobs")
            assert check_full_count(store, queue) == len(begun)
            values = [item.value.decode() for item in queue.items(limit=1_000).items]
            assert len(set(values)) == len(values)
            assert set(values) <= begun
    assert hit >= 0.8 * ROUNDS, "the kills did not hit requests in flight"
