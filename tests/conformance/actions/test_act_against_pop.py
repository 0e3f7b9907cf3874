"""Whole actions, audit and trash included, against concurrent pops of the same item, on each engine with conflicts.

Each action is driven step by step: it reads, another caller commits, it commits. It conflicts when its own item was
taken, and not with pushes or with pops of other items.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from queues import Actions, Item, Queue, Store, open_store
from queues.errors import Conflict, ItemGoneOn
from tests.conftest import Clock, store_url
from tests.full_count import check_full_count
from tests.step_by_step import CONCURRENT, begin

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class InStep:
    """Runs what an act gives to `transact` in a transaction that is committed by hand."""

    tr: Any

    def transact(self, fn: Callable[[Any], Any], *, background: bool = False) -> Any:
        return fn(self.tr)


def ann(store: Store, tr: Any) -> Actions:
    return Actions(replace(store.context, kv=InStep(tr)), actor="ann", via="web")


@pytest.fixture(params=CONCURRENT)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Store]:
    with open_store(store_url(request.param, tmp_path), clock=clock) as opened:
        yield opened


@pytest.fixture
def jobs(store: Store) -> Iterator[Queue]:
    store.create_queue("other")
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"%d" % n, n) for n in range(6)])
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
    with pytest.raises(Conflict):
        tr.commit()


@pytest.mark.parametrize("first", READY)
@pytest.mark.parametrize("second", ["delete_item", "move", "edit"])
def test_of_two_acts_on_one_item_one_is_done(store: Store, jobs: Queue, first: str, second: str) -> None:
    item = jobs.items().items[2]
    one, two = begin(store), begin(store)
    READY[first](ann(store, one), item)
    READY[second](ann(store, two), item)
    two.commit()
    with pytest.raises(Conflict):
        one.commit()


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
        with pytest.raises(Conflict):
            one.commit()
    assert [item.value for item in jobs.items().items] == [b"%d" % n for n in range(6)]


def test_an_undo_conflicts_with_a_pop_of_its_items(store: Store, jobs: Queue) -> None:
    item = jobs.items().items[0]
    trash_id = store.actions("ann").reprioritize("jobs", [item.id], priority=50).trash_id
    tr = begin(store)
    ann(store, tr).undo(trash_id)
    assert jobs.pop_max().id == item.id
    with pytest.raises(Conflict):
        tr.commit()
    with pytest.raises(ItemGoneOn):
        store.actions("ann").undo(trash_id)


def test_of_two_purges_at_once_one_takes_all(store: Store, jobs: Queue) -> None:
    one, two = begin(store), begin(store)
    assert ann(store, one).purge("jobs", confirm="jobs").count == 6
    assert ann(store, two).purge("jobs", confirm="jobs").count == 6
    two.commit()
    with pytest.raises(Conflict):
        one.commit()
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
        with pytest.raises(Conflict):
            tr.commit()


def test_releasing_by_hand_conflicts_with_the_workers_acknowledgement(store: Store, jobs: Queue) -> None:
    for act in (
        lambda acts, lease: acts.release("jobs", [lease.item.id]),
        lambda acts, lease: acts.delete_items("jobs", [lease.item.id]),
    ):
        lease = jobs.lease()
        tr = begin(store)
        act(ann(store, tr), lease)
        jobs.ack(lease)
        with pytest.raises(Conflict):
            tr.commit()


def test_retrying_and_deleting_a_dead_item_conflict(store: Store, jobs: Queue) -> None:
    jobs.configure(max_attempts=1)
    jobs.release(jobs.lease())
    (dead,) = jobs.dead().items
    one, two = begin(store), begin(store)
    ann(store, one).retry_dead("jobs", [dead.id])
    ann(store, two).delete_items("jobs", [dead.id])
    one.commit()
    with pytest.raises(Conflict):
        two.commit()
