"""kill -9 in the middle of pushes: what was acknowledged is there once, the rest once or not at all."""

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from queues import Queue, open_store
from tests.all_items import all_items
from tests.crash.harness import kill_during
from tests.full_count import check_full_count

#: Kills; more of them by the environment.
ROUNDS = int(os.environ.get("PQ_KILLS", "5"))
THREADS = 8


def values(queue: Queue) -> Counter[str]:
    return Counter(item.value.decode() for item in all_items(queue.items))


@pytest.mark.crash
def test_nothing_acknowledged_is_lost_and_nothing_is_there_twice(tmp_path: Path) -> None:
    url = f"lmdb:{tmp_path / 'store'}"
    dice = random.Random(20261120)
    with open_store(url) as store:
        store.create_queue("jobs")
    begun: set[str] = set()
    acknowledged: set[str] = set()
    hit = 0
    for number in range(ROUNDS):
        killed = kill_during(
            "tests.crash.programs:push", url, f"{THREADS}", f"{number * 1_000_000}", after=dice.randint(1, 300)
        )
        begun |= killed.begun
        acknowledged |= killed.acknowledged
        hit += bool(killed.in_flight)
        with open_store(url) as store:
            queue = store.queue("jobs")
            items = check_full_count(store, queue)
            if number % 5 == 4:
                found = values(queue)
                assert max(found.values()) == 1, "an item is there twice"
                assert not acknowledged - found.keys(), "an acknowledged item is gone"
                assert not found.keys() - begun, "an item is there that was not pushed"
                assert items == len(found)
    assert hit >= 0.8 * ROUNDS, "the kills did not hit pushes in flight"
