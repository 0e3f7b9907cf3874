"""kill -9 of the elected process, in the middle of sweeping: the next one goes on, and does each thing once."""

import random
import threading
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from queues import Queue, open_store
from queues.background.service import Upkeep
from queues.serving.leadership import UPKEEP, Holding
from tests.all_items import all_items
from tests.crash.harness import kill_during
from tests.crash.programs import HOLDING_SECONDS
from tests.full_count import check_full_count

ROUNDS = 4
#: Of each round: they fall due one after the other, until longer than a child lives.
DELAYED, LEASED = 600, 20
LONG = 120.0


def values(queue: Queue) -> Counter[bytes]:
    """Count the values of all items of the queue, in whatever state."""
    return Counter(item.value for page in (queue.items, queue.leased, queue.delayed) for item in all_items(page))


def fill(queue: Queue, number: int) -> None:
    """Push items that fall due while a child begins, sweeps and is killed, and lease some."""
    queue.push_many([(b"leased %d.%d" % (number, n), -n) for n in range(LEASED)])
    for n in range(LEASED):
        assert queue.lease(seconds=(n + 1) * 0.1)
    queue.push_many([(b"delayed %d.%d" % (number, n), n, timedelta(milliseconds=100 * n + 1)) for n in range(DELAYED)])


@pytest.mark.crash
def test_kills_of_the_elected_one_lose_nothing_and_hold_nothing_up(tmp_path: Path) -> None:
    url = f"lmdb:{tmp_path / 'store'}"
    chance = random.Random(7)
    terms = []
    with open_store(url) as store:
        store.create_queue("jobs").configure(max_attempts=None)
    for number in range(ROUNDS):
        with open_store(url) as store:
            fill(store.queue("jobs"), number)
        kill_during("tests.crash.programs:sweep", url, f"child {number}", after=chance.randrange(1, 4))
        with open_store(url) as store:
            queue = store.queue("jobs")
            check_full_count(store, queue)
            assert set(values(queue).values()) == {1}
            assert sum(values(queue).values()) == (number + 1) * (DELAYED + LEASED)
            held = Holding.decode(store.read(lambda tr: tr.get(store.context.keyspace.elected.key(UPKEEP)).wait()))
            assert held.name == f"child {number}"
            terms.append(held.term)
    assert terms == list(range(1, ROUNDS + 1)), "each took over from the one that was killed before"
    with open_store(url, clock=lambda: time.time() + 120) as store:
        queue = store.queue("jobs")
        changed = threading.Event()
        upkeep = Upkeep(store.context, seconds=HOLDING_SECONDS, tell=lambda swept: changed.set())
        upkeep.start()
        deadline = time.monotonic() + LONG
        while queue.depth("delayed") or queue.depth("leased"):
            assert time.monotonic() < deadline, "something that fell due was not done"
            changed.wait(0.05)
            changed.clear()
        upkeep.stop()
        assert check_full_count(store, queue) == ROUNDS * (DELAYED + LEASED)
        traffic = queue.totals().traffic
        assert traffic["lease"] == traffic["expire"]
        assert traffic["promote"] == ROUNDS * DELAYED, "each once"
