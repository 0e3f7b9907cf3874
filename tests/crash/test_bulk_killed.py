"""kill -9 in the middle of an act on all items: another process goes on, and nothing is lost or there twice."""

import random
from collections import Counter
from pathlib import Path

import pytest

from queues import Queue, Store, open_store
from queues.items.scan import Query
from tests.all_items import all_items
from tests.crash.harness import kill_during
from tests.dumps import dump
from tests.full_count import check_full_count

ITEMS = 4_000
ROUNDS = 3


def values(queue: Queue) -> list[bytes]:
    return [item.value for item in all_items(queue.items)]


def check(store: Store, queues: list[Queue]) -> list[list[bytes]]:
    found = [values(queue) for queue in queues]
    counted = Counter(value for part in found for value in part)
    assert len(counted) == ITEMS, "an item is lost"
    assert max(counted.values()) == 1, "an item is there twice"
    for queue, part in zip(queues, found, strict=True):
        assert check_full_count(store, queue) == len(part)
    return found


@pytest.mark.crash
def test_a_killed_move_of_all_goes_on_where_it_was_and_is_undone(tmp_path: Path) -> None:
    url = f"lmdb:{tmp_path}/store"
    with open_store(url) as store:
        queues = [store.create_queue(name) for name in ("jobs", "review")]
        for first in range(0, ITEMS, 1_000):
            queues[0].push_many([(b"%d" % n, n % 9) for n in range(first, first + 1_000)])
        before, order = dump(store, *queues), values(queues[0])
        ann = store.actions("ann")
        job = ann.begin_bulk("move", "jobs", to="review")
        moved = 0
        for _ in range(ROUNDS):
            killed = kill_during("tests.crash.programs:move_all", url, job.id, after=4, most=6)
            assert len(killed.acknowledged) >= 4
            job = ann.job(job.id)
            assert job.status == "running", "the kill came too late to show anything"
            assert job.done > moved
            told = max(int(label.split()[2]) for label in killed.acknowledged)
            assert job.done >= told, "a chunk that was acknowledged is not done"
            moved = job.done
            assert len(check(store, queues)[1]) == moved
        job = ann.run_bulk(job.id)
        assert (job.status, job.done) == ("done", ITEMS)
        assert check(store, queues)[1] == order
        assert ann.run_bulk(ann.undo(job.id).job.id).done == ITEMS
        assert dump(store, *queues) == before


@pytest.mark.crash
def test_killed_runners_lose_nothing_of_two_jobs_nor_of_undoing_them(tmp_path: Path) -> None:
    """Two jobs on one queue; each killed runner is followed by another one, and so are those that undo."""
    url, chance = f"lmdb:{tmp_path}/store", random.Random(5)
    with open_store(url) as store:
        queues = [store.create_queue(name) for name in ("jobs", "review")]
        for first in range(0, ITEMS, 1_000):
            queues[0].push_many([(b"%d" % n, n % 9) for n in range(first, first + 1_000)])
        before, ann, minutes = dump(store, *queues), store.actions("ann"), 0
        moved = ann.begin_bulk("move", "jobs", query=Query(text="7"), to="review")
        shifted = ann.begin_bulk("reprioritize", "jobs", shift=10)
        # What shifting passed is not met by the move any more: each runs behind the other's back, none in its way.
        for begin in (lambda: [moved, shifted], lambda: [ann.undo(job.id).job for job in (shifted, moved)]):
            jobs = begin()
            for _ in range(ROUNDS):
                minutes += 1
                done = sum(ann.job(job.id).done for job in jobs)
                rounds = chance.randrange(3, 8)
                killed = kill_during("tests.crash.programs:run_jobs", url, str(minutes), after=rounds, most=rounds + 2)
                now = [ann.job(job.id) for job in jobs]
                assert sum(job.done for job in now) > done, "nothing was done between two kills"
                assert any(job.running for job in now), "the kill came too late to show anything"
                assert len(killed.acknowledged) >= 3
                check(store, queues)
            for job in jobs:
                assert ann.run_bulk(job.id).status == "done"
            check(store, queues)
        assert dump(store, *queues) == before
