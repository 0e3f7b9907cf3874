"""Which transactions conflict, asserted on each engine with conflicts: transactions driven step by step."""

from typing import Any

import pytest

from queues import Queue, Store
from queues.operations.pop import PopRequest
from tests.step_by_step import begin, on_concurrent_engines

pytestmark = on_concurrent_engines


@pytest.fixture
def jobs(store: Store) -> Queue:
    return with_ten(store.create_queue("jobs"))


@pytest.fixture(params=["own", "attached"])
def either(request: pytest.FixtureRequest, store: Store) -> Queue:
    own = request.param == "own"
    return with_ten(store.create_queue("jobs") if own else store.attach("legacy", prefix=b"legacy"))


def with_ten(queue: Queue) -> Queue:
    queue.push_many([(b"%d" % n, n) for n in range(10)])
    return queue


def strict_pop(queue: Queue, tr: Any, end: str = "min") -> bytes:
    batch = queue.opened.batch(PopRequest)
    ((item,),) = batch.execute(tr, batch.prepare([PopRequest(queue.id, 1, end)]))
    return item.value


def test_two_pushes_never_conflict(store: Store, either: Queue) -> None:
    first, second = begin(store), begin(store)
    either.push(b"first", priority=5, tr=first)
    either.push(b"second", priority=5, tr=second)
    second.commit()
    first.commit()
    assert either.depth() == 12


@pytest.mark.parametrize("priority", [-1, 0, 5, 99])
@pytest.mark.parametrize("end", ["min", "max"])
def test_a_push_never_aborts_a_pop(store: Store, either: Queue, end: str, priority: int) -> None:
    tr = begin(store)
    taken = strict_pop(either, tr, end)
    either.push(b"meanwhile", priority=priority)
    tr.commit()
    assert taken == (b"0" if end == "min" else b"9")
    assert either.depth() == 10


def test_a_pop_never_aborts_a_push(store: Store, either: Queue) -> None:
    tr = begin(store)
    either.push(b"slow", priority=0, tr=tr)
    either.pop_min()
    tr.commit()
    assert either.depth() == 10


def test_two_pops_of_the_same_item_conflict(store: Store, either: Queue) -> None:
    first, second = begin(store), begin(store)
    assert strict_pop(either, first) == strict_pop(either, second) == b"0"
    first.commit()
    second.refused()
    assert either.depth() == 9
    assert either.pop_min().value == b"1"


def test_pops_of_different_items_do_not_conflict(store: Store, either: Queue) -> None:
    first, second = begin(store), begin(store)
    assert strict_pop(either, first, "min") != strict_pop(either, second, "max")
    first.commit()
    second.commit()
    assert either.depth() == 8


def test_a_pop_that_a_caller_decides_by_conflicts_with_a_smaller_push(store: Store, either: Queue) -> None:
    tr = begin(store)
    either.pop_min(tr=tr)
    either.push(b"smaller", priority=-1)
    tr.refused()
    assert either.depth() == 11


@pytest.mark.parametrize("verb", ["push", "pop"])
def test_a_pause_aborts_what_began_before_it(store: Store, jobs: Queue, verb: str) -> None:
    tr = begin(store)
    if verb == "push":
        jobs.push(b"x", priority=1, tr=tr)
    else:
        strict_pop(jobs, tr)
    jobs.pause(reason="r")
    tr.refused()
    assert jobs.depth() == 10


def test_deleting_a_queue_aborts_pushes_under_way(store: Store, jobs: Queue) -> None:
    tr = begin(store)
    jobs.push(b"x", priority=1, tr=tr)
    store.delete_queue("jobs")
    tr.refused()


def test_one_of_two_creations_of_a_name_wins(store: Store) -> None:
    first, second = begin(store), begin(store)
    store.create_queue("new", tr=first)
    store.create_queue("new", tr=second)
    first.commit()
    second.refused()


def test_putting_back_happens_once(store: Store, jobs: Queue) -> None:
    popped = store.actions("ann").pop("jobs")
    first, second = begin(store), begin(store)
    store.restore(popped.trash_id, tr=first)
    store.restore(popped.trash_id, tr=second)
    second.commit()
    first.refused()
    assert jobs.depth() == 10
