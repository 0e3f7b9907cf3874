"""kill -9 in the middle of leasing and acknowledging: every item is acknowledged once, or still there."""

import os
import random
import time
from pathlib import Path

import pytest

from queues import Queue, open_store
from tests.all_items import all_items
from tests.crash.harness import kill_during
from tests.full_count import check_full_count

#: Kills; more of them by the environment.
ROUNDS = int(os.environ.get("PQ_KILLS", "5"))
THREADS = 8
ITEMS = 600 * ROUNDS


def there(queue: Queue) -> list[int]:
    """Return the numbers of all items of the queue, in whatever state."""
    return [int(item.value) for page in (queue.items, queue.leased, queue.dead) for item in all_items(page)]


@pytest.mark.crash
def test_kills_lose_nothing_that_was_not_acknowledged(tmp_path: Path) -> None:
    url = f"lmdb:{tmp_path / 'store'}"
    chance = random.Random(4)
    begun: set[int] = set()
    acknowledged: set[int] = set()
    hit = held = 0
    with open_store(url) as store:
        queue = store.create_queue("jobs")
        queue.configure(max_attempts=None)
        for first in range(0, ITEMS, 600):
            queue.push_many([(b"%d" % n, n % 7) for n in range(first, first + 600)])
    for round_number in range(ROUNDS):
        after = chance.randrange(1, ITEMS // ROUNDS // 2)
        killed = kill_during(
            "tests.crash.programs:lease",
            url,
            "jobs",
            str(THREADS),
            str(round_number),
            after=after,
            most=after + ITEMS // ROUNDS // 2,
        )
        done = {int(number) for number in killed.acknowledged}
        assert not done & acknowledged, "an item was acknowledged twice"
        begun |= {int(number) for number in killed.begun}
        acknowledged |= done
        hit += bool(killed.in_flight)
        with open_store(url) as store:
            queue = store.queue("jobs")
            check_full_count(store, queue)
            found = there(queue)
            assert len(found) == len(set(found)), "an item is there twice"
            assert not acknowledged & set(found), "an acknowledged item is there still"
            gone = set(range(ITEMS)) - set(found)
            assert gone <= begun, "an item is gone without an acknowledgement"
            held += queue.depth("leased")
            traffic = queue.totals().traffic
            assert traffic["ack"] == len(gone)
    assert hit >= 0.6 * ROUNDS, f"only {hit} of {ROUNDS} kills hit acknowledgements in flight"
    assert held, "no kill left a lease behind"
    with open_store(url, clock=lambda: time.time() + 60) as store:
        queue = store.queue("jobs")
        while queue.expire(1_000):
            pass
        assert queue.depth("leased") == 0
        tried = [item for item in all_items(queue.items) if item.attempts]
        assert tried, "no item was held by a process that was killed"
        assert all(item.attempt_log for item in tried)
        assert any(item.attempt_log[-1].expired and item.attempt_log[-1].worker for item in tried)
        assert check_full_count(store, queue) == ITEMS - queue.totals().traffic["ack"]
