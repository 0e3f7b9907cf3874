"""Which transactions conflict with actions, driven step by step on each engine with conflicts.

An action reads, another caller commits, the action commits. It conflicts when its own item was taken, and not with
pushes or with pops of other items.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from queues import Actions, Item, Queue, Store
from queues.background.merge_generations import merge_step
from queues.errors import ItemGoneOn
from queues.items import manual_transitions
from queues.items.generations import bring_back, purge
from queues.items.item_changes import delete
from queues.items.locate import find
from queues.operations.pop import PopRequest
from tests.conftest import Clock
from tests.full_count import check_full_count
from tests.step_by_step import begin, on_concurrent_engines
from tests.sweeps import merge_generations

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class InStep:
    """Runs what an act reads or transacts in a transaction that is committed by hand."""

    tr: Any

    def transact(self, fn: Callable[[Any], Any], *, background: bool = False) -> Any:
        return fn(self.tr)

    read = transact


def ann(store: Store, tr: Any) -> Actions:
    return Actions(replace(store.context, kv=InStep(tr)), actor="ann", via="web")


pytestmark = on_concurrent_engines


@pytest.fixture
def jobs(store: Store) -> Iterator[Queue]:
    store.create_queue("other")
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"%d" % n, n) for n in range(10)])
    yield jobs
    check_full_count(store, jobs)
    check_full_count(store, store.queue("other"))


#: Actions on a ready item.
READY: dict[str, Callable[[Actions, Item], object]] = {
    "delete_item": lambda acts, item: acts.delete_item("jobs", item.id),
    "delete_items": lambda acts, item: acts.delete_items("jobs", [item.id]),
    "move": lambda acts, item: acts.move_items("jobs", [item.id], "other"),
    "reprioritize": lambda acts, item: acts.reprioritize("jobs", [item.id], priority=99),
    "edit": lambda acts, item: acts.edit_item("jobs", item.id, b"edited", expect=item.value),
}


@pytest.mark.parametrize("name", READY)
def test_an_action_conflicts_with_a_pop_of_its_item_only(store: Store, jobs: Queue, name: str) -> None:
    mine, other = jobs.items().items[2], jobs.items().items[3]
    tr = begin(store)
    READY[name](ann(store, tr), mine)
    jobs.push(b"new", priority=-1)
    assert jobs.pop_min().value == b"new"
    jobs.remove(other.id)
    tr.commit()
    mine = jobs.items().items[1]
    tr = begin(store)
    READY[name](ann(store, tr), mine)
    assert jobs.remove(mine.id) == mine
    tr.refused()


@pytest.mark.parametrize("first", READY)
@pytest.mark.parametrize("second", ["delete_item", "move", "edit"])
def test_of_two_acts_on_one_item_one_is_done(store: Store, jobs: Queue, first: str, second: str) -> None:
    item = jobs.items().items[2]
    one, two = begin(store), begin(store)
    READY[first](ann(store, one), item)
    READY[second](ann(store, two), item)
    two.commit()
    one.refused()


def test_one_of_two_concurrent_undos_is_done(store: Store, jobs: Queue) -> None:
    acts = store.actions("ann")
    undos = [
        acts.delete_items("jobs", [jobs.items().items[0].id]).trash_id,
        acts.move_items("jobs", [jobs.items().items[0].id], "other").trash_id,
        acts.reprioritize("jobs", [jobs.items().items[0].id], priority=50).trash_id,
        acts.purge("jobs", confirm="jobs").trash_ids[0],
    ]
    for trash_id in undos[::-1]:
        one, two = begin(store), begin(store)
        ann(store, one).undo(trash_id)
        ann(store, two).undo(trash_id)
        two.commit()
        one.refused()
    assert [item.value for item in jobs.items().items] == [b"%d" % n for n in range(10)]


def test_an_undo_conflicts_with_a_pop_of_its_items(store: Store, jobs: Queue) -> None:
    item = jobs.items().items[0]
    trash_id = store.actions("ann").reprioritize("jobs", [item.id], priority=50).trash_id
    tr = begin(store)
    ann(store, tr).undo(trash_id)
    assert jobs.pop_max().id == item.id
    tr.refused()
    with pytest.raises(ItemGoneOn):
        store.actions("ann").undo(trash_id)


def test_of_two_purges_at_once_one_takes_all(store: Store, jobs: Queue) -> None:
    one, two = begin(store), begin(store)
    assert ann(store, one).purge("jobs", confirm="jobs").count == 10
    assert ann(store, two).purge("jobs", confirm="jobs").count == 10
    two.commit()
    one.refused()
    assert jobs.depth() == 0


def test_actions_on_delayed_items_conflict_with_their_promotion(store: Store, jobs: Queue, clock: Clock) -> None:
    for act in (
        lambda acts, item: acts.delete_items("jobs", [item.id]),
        lambda acts, item: acts.move_items("jobs", [item.id], "other"),
        lambda acts, item: acts.promote("jobs", [item.id]),
        lambda acts, item: acts.reschedule("jobs", [item.id], delay=2 * HOUR),
    ):
        item = jobs.push(b"later", priority=1, delay=HOUR)
        tr = begin(store)
        act(ann(store, tr), item)
        clock.advance(3600)
        assert jobs.promote() == 1
        tr.refused()


def test_releasing_by_hand_conflicts_with_the_workers_acknowledgement(store: Store, jobs: Queue) -> None:
    for act in (
        lambda acts, lease: acts.release("jobs", [lease.item.id]),
        lambda acts, lease: acts.delete_items("jobs", [lease.item.id]),
    ):
        lease = jobs.lease()
        tr = begin(store)
        act(ann(store, tr), lease)
        jobs.ack(lease)
        tr.refused()


def test_retrying_and_deleting_a_dead_item_conflict(store: Store, jobs: Queue) -> None:
    jobs.configure(max_attempts=1)
    jobs.release(jobs.lease())
    (dead,) = jobs.dead().items
    one, two = begin(store), begin(store)
    ann(store, one).retry_dead("jobs", [dead.id])
    ann(store, two).delete_items("jobs", [dead.id])
    one.commit()
    two.refused()


def test_one_of_an_acknowledgement_and_a_release_by_hand_wins(store: Store, jobs: Queue) -> None:
    for worker_first in (True, False):
        lease = jobs.lease(seconds=60)
        person, worker = begin(store), begin(store)
        found = find(person, store.context.keyspace, jobs.config, [lease.item.id], skip_missing=False).stored_items
        manual_transitions.release(person, store.context.keyspace, jobs.config, found, now_ms=0, reason="")
        jobs.ack(lease, tr=worker)
        winner, loser = (worker, person) if worker_first else (person, worker)
        winner.commit()
        loser.refused()
        assert (jobs.find(lease.item.id) is None) == worker_first
    check_full_count(store, jobs)


def test_a_pop_conflicts_with_a_delete_of_its_item(store: Store, jobs: Queue) -> None:
    tr = begin(store)
    ((taken,),) = jobs.opened.batch(PopRequest).execute(
        tr, [PopRequest(jobs.id, 1, "min", jobs.opened.context.clock.now_ms())]
    )

    def take(inner) -> None:
        found = find(inner, store.context.keyspace, jobs.config, [taken.id], skip_missing=False)
        delete(inner, store.context.keyspace, jobs.config, found.stored_items)

    store.transact(take)
    tr.refused()
    assert check_full_count(store, jobs) == 9


def test_what_is_pushed_or_popped_across_a_purge_begins_anew(store: Store, jobs: Queue) -> None:
    push, pop = begin(store), begin(store)
    jobs.push(b"late", priority=1, tr=push)
    jobs.pop_min(tr=pop)
    (trash_id,) = store.actions("ann").purge("jobs", confirm="jobs").trash_ids
    for tr in (push, pop):
        tr.refused()
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
    tr.refused()
    assert jobs.peek_min().value == b"meanwhile"


def test_a_merge_and_a_pop_conflict_on_the_same_item_only(store: Store, ann: Actions, jobs: Queue) -> None:
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


def test_a_merge_does_not_move_what_was_popped_meanwhile(store: Store, ann: Actions, jobs: Queue) -> None:
    (trash_id,) = ann.purge("jobs", confirm="jobs").trash_ids
    jobs.push(b"new", priority=5)
    ann.undo(trash_id)
    tr = begin(store)
    merge_step(tr, store.context.keyspace, jobs.id)
    assert jobs.pop_min().value == b"0"
    tr.refused()
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
    tr.refused()
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
    tr.refused()
    tr = begin(store)
    trash_id = store.actions("ann", tr=tr).delete_queue("jobs", confirm="jobs")
    busy(jobs)
    tr.commit()
    assert store.actions("ann").undo(trash_id).count == 11
    assert check_full_count(store, store.queue("jobs")) == 11
