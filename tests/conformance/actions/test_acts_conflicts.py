"""Which transactions conflict among acts, asserted on each engine with conflicts: transactions driven step by step."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from queues import Queue, Store, open_store
from queues.background.merge_generations import merge_step
from queues.errors import Conflict
from queues.items import state_changes
from queues.items.edit import delete
from queues.items.generations import bring_back, purge
from queues.items.locate import find
from queues.operations.pop import PopRequest
from tests.conftest import store_url
from tests.full_count import check_full_count
from tests.step_by_step import CONCURRENT, begin
from tests.sweeps import merge_generations


@pytest.fixture(params=CONCURRENT)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with open_store(store_url(request.param, tmp_path)) as opened:
        yield opened


@pytest.fixture
def jobs(store: Store) -> Queue:
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"%d" % n, n) for n in range(10)])
    return jobs


def test_one_of_an_acknowledgement_and_a_release_by_hand_wins(store: Store, jobs: Queue) -> None:
    for worker_first in (True, False):
        lease = jobs.lease(seconds=60)
        person, worker = begin(store), begin(store)
        found = find(person, store.context.keyspace, jobs.config, [lease.item.id], skip_missing=False).stored_items
        state_changes.release(person, store.context.keyspace, jobs.config, found, now_ms=0, reason="")
        jobs.ack(lease, tr=worker)
        winner, loser = (worker, person) if worker_first else (person, worker)
        winner.commit()
        with pytest.raises(Conflict):
            loser.commit()
        assert (jobs.find(lease.item.id) is None) == worker_first
    check_full_count(store, jobs)


def test_a_pop_conflicts_with_a_delete_of_its_item(store: Store, jobs: Queue) -> None:
    tr = begin(store)
    ((taken,),) = jobs.opened.batch(PopRequest).execute(
        tr, [PopRequest(jobs.id, 1, "min", jobs.opened.context.now_ms())]
    )

    def take(inner) -> None:
        found = find(inner, store.context.keyspace, jobs.config, [taken.id], skip_missing=False)
        delete(inner, store.context.keyspace, jobs.config, found.stored_items)

    store.transact(take)
    with pytest.raises(Conflict):
        tr.commit()
    assert check_full_count(store, jobs) == 9


def test_what_is_pushed_or_popped_across_a_purge_begins_anew(store: Store, jobs: Queue) -> None:
    push, pop = begin(store), begin(store)
    jobs.push(b"late", priority=1, tr=push)
    jobs.pop_min(tr=pop)
    (trash_id,) = store.actions("ann").purge("jobs", confirm="jobs").trash_ids
    for tr in (push, pop):
        with pytest.raises(Conflict):
            tr.commit()
    store.actions("ann").undo(trash_id)
    assert check_full_count(store, jobs) == 10


def test_pushes_and_pops_do_not_abort_a_purge(store: Store, jobs: Queue) -> None:
    tr = begin(store)
    assert purge(tr, store.context.keyspace, store.queue("jobs", tr=tr).config) == {1: 10}
    jobs.push(b"meanwhile", priority=1)
    jobs.pop_min()
    tr.commit()
    assert check_full_count(store, store.queue("jobs")) == 0
    store.transact(lambda tr: bring_back(tr, store.context.keyspace, store.queue("jobs", tr=tr).config, 1))
    assert {item.value for item in jobs.items().items} >= {b"meanwhile", b"9"}
    assert check_full_count(store, jobs) == 10


def test_an_empty_generation_is_not_dropped_when_something_is_pushed_there(store: Store, jobs: Queue) -> None:
    store.actions("ann").purge("jobs", confirm="jobs")
    tr = begin(store)
    bring_back(tr, store.context.keyspace, store.queue("jobs", tr=tr).config, 1)
    jobs.push(b"meanwhile", priority=1)
    with pytest.raises(Conflict):
        tr.commit()
    assert jobs.peek_min().value == b"meanwhile"


def test_a_merge_and_a_pop_conflict_on_the_same_item_only(store: Store, jobs: Queue) -> None:
    ann = store.actions("ann")
    (trash_id,) = ann.purge("jobs", confirm="jobs").trash_ids
    jobs.push(b"new", priority=5)
    ann.undo(trash_id)
    tr = begin(store)
    assert merge_step(tr, store.context.keyspace, jobs.id) == 10
    jobs.push(b"newer", priority=-1)
    assert jobs.pop_min().value == b"newer"
    tr.commit()
    assert check_full_count(store, jobs) == 11
    tr = begin(store)
    assert merge_step(tr, store.context.keyspace, jobs.id) is None
    jobs.push(b"meanwhile", priority=1)
    tr.commit()
    assert len(store.queue("jobs").config.generations) == 1
    assert check_full_count(store, jobs) == 12


def test_a_merge_does_not_move_what_was_popped_meanwhile(store: Store, jobs: Queue) -> None:
    ann = store.actions("ann")
    (trash_id,) = ann.purge("jobs", confirm="jobs").trash_ids
    jobs.push(b"new", priority=5)
    ann.undo(trash_id)
    tr = begin(store)
    merge_step(tr, store.context.keyspace, jobs.id)
    assert jobs.pop_min().value == b"0"
    with pytest.raises(Conflict):
        tr.commit()
    assert check_full_count(store, jobs) == 10


def test_an_older_generation_is_not_dropped_when_something_is_put_back_there(store: Store, jobs: Queue) -> None:
    ann = store.actions("ann")
    item = jobs.peek_min()
    (trash_id,) = ann.purge("jobs", confirm="jobs").trash_ids
    jobs.push(b"new", priority=5)
    ann.undo(trash_id)
    deleted = ann.delete_item("jobs", item.id)
    assert store.transact(lambda tr: merge_step(tr, store.context.keyspace, jobs.id)) == 9
    tr = begin(store)
    assert merge_step(tr, store.context.keyspace, jobs.id) is None
    ann.undo(deleted.trash_id)
    with pytest.raises(Conflict):
        tr.commit()
    merge_generations(store)
    assert jobs.peek_min() == item
    assert check_full_count(store, jobs) == 11


def test_two_runners_of_one_job_do_each_chunk_once(store: Store, jobs: Queue) -> None:
    ann, bob = store.actions("ann"), store.actions("bob")
    job = ann.begin_bulk("delete", "jobs").id
    seen = []

    def meanwhile(now) -> bool:
        if not seen:
            seen.append(bob.run_bulk(job))
        return True

    ended = ann.run_bulk(job, progress=meanwhile)
    assert (ended.done, ended.status) == (10, "done")
    assert store.queue("jobs").totals().traffic["delete"] == 10


def busy(jobs: Queue) -> None:
    """Push behind the last item and before the first, and pop at both ends."""
    jobs.pop_min()
    jobs.pop_max()
    jobs.push(b"low", priority=-1)
    jobs.push(b"high", priority=99)


def test_beginning_a_bulk_job_conflicts_with_no_push_or_pop(store: Store, jobs: Queue) -> None:
    store.create_queue("review")
    tr = begin(store)
    job = store.actions("ann", tr=tr).begin_bulk("move", "jobs", to="review")
    busy(jobs)
    tr.commit()
    ann = store.actions("ann")
    assert ann.run_bulk(job.id).done == 8, "those between the ends that were seen"
    assert sorted(item.value for item in jobs.items().items) == [b"high", b"low"]


def test_deleting_a_queue_conflicts_with_a_push_only_when_its_depth_was_confirmed(store: Store, jobs: Queue) -> None:
    tr = begin(store)
    store.actions("ann", tr=tr).delete_queue("jobs", confirm="jobs", expect_depth=10)
    jobs.push(b"unseen", priority=1)
    with pytest.raises(Conflict):
        tr.commit()
    tr = begin(store)
    trash_id = store.actions("ann", tr=tr).delete_queue("jobs", confirm="jobs")
    busy(jobs)
    tr.commit()
    assert store.actions("ann").undo(trash_id).count == 11
    assert check_full_count(store, store.queue("jobs")) == 11
