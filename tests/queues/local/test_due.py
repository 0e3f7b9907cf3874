"""Items of the in-process twin that become due later, one thread at a time."""

from datetime import datetime, timedelta

import pytest

from queues.local import Empty, PriorityQueue
from tests.conftest import Clock
from tests.queues.local.test_priority_queue import Only, drain, later


def test_an_item_is_invisible_until_it_is_due(clock: Clock) -> None:
    jobs: PriorityQueue[str] = PriorityQueue(maxsize=2, clock=clock)
    jobs.put("a", due=later(clock, 10))
    jobs.put("b")
    assert (jobs.qsize(), jobs.full(), jobs.empty(), jobs.unfinished_tasks) == (2, True, False, 2)
    assert (jobs.peek_min(), jobs.peek_max(), jobs.get()) == ("b", "b", "b")
    for look in (jobs.get_nowait, jobs.peek_min, jobs.peek_max, lambda: jobs.get_max(timeout=0)):
        with pytest.raises(Empty):
            look()
    clock.advance(9.999)
    with pytest.raises(Empty):
        jobs.peek_min()
    clock.advance(0.001)
    assert (jobs.peek_min(), jobs.peek_max(), jobs.get_nowait()) == ("a", "a", "a")


@pytest.mark.parametrize(
    ("due", "error"),
    [
        (datetime(2030, 1, 1), ValueError),
        (1_900_000_000.0, TypeError),
        ("2030-01-01", TypeError),
        (timedelta(1), TypeError),
    ],
)
def test_a_due_time_is_an_aware_datetime(due: object, error: type[Exception], clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    with pytest.raises(error, match="aware datetime"):
        jobs.put(1, due=due)
    assert (jobs.qsize(), jobs.unfinished_tasks) == (0, 0)


def test_a_delayed_item_that_does_not_compare_with_the_ready_ones_is_refused(clock: Clock) -> None:
    jobs: PriorityQueue[object] = PriorityQueue(clock=clock)
    jobs.put((1, {}))
    with pytest.raises(TypeError):
        jobs.put((1, {2: 3}), due=later(clock, 1))
    clock.advance(1)
    assert (jobs.qsize(), jobs.unfinished_tasks) == (1, 1)
    assert drain(jobs) == [(1, {})]


def test_a_delayed_item_that_does_not_compare_when_due_follows_those_in_its_way(clock: Clock) -> None:
    jobs: PriorityQueue[object] = PriorityQueue(clock=clock)
    jobs.put(Only(1, "odd"), due=later(clock, 1))
    jobs.put(Only(2, "odd"), due=later(clock, 1))
    jobs.put(Only(5), due=later(clock, 2))
    jobs.put(Only(3))
    jobs.put(Only(4))
    clock.advance(2)
    assert jobs.qsize() == 5
    assert [str(item) for item in drain(jobs)] == ["plain 3", "plain 4", "plain 5", "odd 1", "odd 2"]
    assert jobs.qsize() == 0
