"""Wake-ups of the in-process queue: the right thread, in time, and none for nothing."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import wait as wait_for
from datetime import UTC, datetime

from queues.local import Empty, PriorityQueue, ShutDown
from tests.conftest import Clock
from tests.queues.local.test_threads import HOUR, SHORT, asleep, at, taken_by, waiting
from tests.waiting import LONG, await_true


class Counting:
    """A clock that counts its readings."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return self.clock()


def test_each_item_wakes_one_waiter() -> None:
    jobs: PriorityQueue[int] = PriorityQueue()
    futures = waiting(jobs, lambda: jobs.get(timeout=LONG), 10)
    futures += waiting(jobs, jobs.get_max, 10)
    for n in range(20):
        jobs.put(n)
        assert asleep(jobs) == 19 - n
    assert taken_by(futures, 20) == list(range(20))


def test_an_item_put_while_other_items_are_delayed_wakes_one_waiter_and_the_timekeeper_last(clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    jobs.put(100, due=at(clock.now + HOUR))
    futures = waiting(jobs, jobs.get, 5)
    for n in range(5):
        assert len(jobs.timekeeper.asleep) == 1
        jobs.put(n)
        assert asleep(jobs) == 4 - n
        assert len(taken_by(futures, n + 1)) == n + 1
    assert jobs.qsize() == 1


def test_waiters_are_woken_when_items_become_due_and_look_at_no_clock_in_between() -> None:
    clock = Counting(time.time)
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    futures = waiting(jobs, jobs.get, 10)
    start = time.time()
    dues = [start + SHORT * (n % 3 + 1) for n in range(9)]
    for n, due in enumerate(dues):
        jobs.put(n, due=at(due))
    assert taken_by(futures, 9) == list(range(9))
    assert time.time() >= max(dues)
    # A put looks at most twice; nine takers, and as many successors as timekeeper, a few times each.
    assert clock.looks < 100
    jobs.put(9)
    assert taken_by(futures, 10) == list(range(10))


def test_an_earlier_newcomer_wakes_the_timekeeper(clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    jobs.put(2, due=at(clock.now + HOUR))
    futures = waiting(jobs, jobs.get, 2)
    jobs.put(1, due=at(clock.now + SHORT))
    clock.advance(SHORT + 1e-6)
    assert taken_by(futures, 1) == [1]
    await_true(lambda: len(jobs.timekeeper.asleep) == 1)
    jobs.put(0)
    assert taken_by(futures, 2) == [0, 1]


def test_a_later_newcomer_wakes_no_thread(clock: Clock) -> None:
    counting = Counting(time.monotonic)
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock, monotonic=counting)
    jobs.put(1, due=at(clock.now + HOUR))
    futures = waiting(jobs, lambda: jobs.get(timeout=LONG), 3)
    looks = counting.looks
    for n in range(2, 10):
        jobs.put(n, due=at(clock.now + HOUR + n))
    assert asleep(jobs) == 3
    jobs.shutdown(immediate=True)
    assert not wait_for(futures, LONG).not_done
    assert counting.looks == looks
    assert all(isinstance(future.exception(), ShutDown) for future in futures)


def test_a_timekeeper_that_gives_up_leaves_its_place_to_another(clock: Clock) -> None:
    passed = Clock(0.0)
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock, monotonic=passed)
    jobs.put(1, due=at(clock.now + SHORT))
    impatient = waiting(jobs, lambda: jobs.get(timeout=HOUR), 1)
    futures = waiting(jobs, jobs.get, 2)
    passed.advance(HOUR)  # it looks at both clocks whenever what it waits for should be due
    assert isinstance(impatient[0].exception(LONG), Empty)
    await_true(lambda: len(jobs.timekeeper.asleep) == 1)
    clock.advance(1)
    assert taken_by(futures, 1) == [1]
    jobs.put(2)
    assert taken_by(futures, 2) == [1, 2]


def test_items_due_together_wake_as_many(clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    for n in range(5):
        jobs.put(n, due=at(clock.now + HOUR))
    futures = waiting(jobs, jobs.get, 7)
    clock.advance(HOUR)  # a jump, which no sleeper can know of: the next call tells them
    assert jobs.peek_max() == 4
    assert taken_by(futures, 5) == [0, 1, 2, 3, 4]
    jobs.put(5)
    jobs.put(6)
    assert taken_by(futures, 7) == list(range(7))


def test_a_taker_that_finds_many_due_wakes_other_threads_for_the_rest(clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    for n in range(3):
        jobs.put(n, due=at(clock.now + HOUR))
    futures = waiting(jobs, jobs.get, 4)
    clock.advance(HOUR)
    assert jobs.get() == 0
    assert taken_by(futures, 2) == [1, 2]
    await_true(lambda: asleep(jobs) == 2)
    jobs.shutdown()
    assert not wait_for(futures, LONG).not_done


def test_a_waiter_is_woken_for_an_item_that_was_held_by_one_in_its_way(clock: Clock) -> None:
    jobs: PriorityQueue[object] = PriorityQueue(clock=clock)
    jobs.put((1, {}), due=at(clock.now + 1))
    jobs.put((1, {2: 3}), due=at(clock.now + 2))
    futures = waiting(jobs, jobs.get, 2)  # type: ignore[arg-type]
    clock.advance(2)
    jobs.qsize()
    jobs.peek_min()
    assert [future.result(LONG) in ((1, {}), (1, {2: 3})) for future in futures] == [True, True]


def test_a_waiter_whose_clock_fails_leaves_its_item_to_another(clock: Clock) -> None:
    failing = threading.Event()

    def unsteady() -> float:
        if failing.is_set() and threading.current_thread() is not threading.main_thread():
            failing.clear()
            raise OSError("no clock")
        return clock()

    jobs: PriorityQueue[int] = PriorityQueue(clock=unsteady)
    jobs.put(2, due=at(clock.now + HOUR))
    futures = waiting(jobs, jobs.get, 3)
    failing.set()
    jobs.put(1)
    await_true(lambda: sum(future.done() for future in futures) == 2)
    assert sorted(str(future.exception() or future.result()) for future in futures if future.done()) == [
        "1",
        "no clock",
    ]
    jobs.shutdown(immediate=True)
    assert not wait_for(futures, LONG).not_done


def test_the_longest_waits_are_possible(clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    jobs.put(2, due=datetime.max.replace(tzinfo=UTC))
    futures = waiting(jobs, lambda: jobs.get(timeout=1e300), 2)
    jobs.put(1)
    assert taken_by(futures, 1) == [1]
    jobs.put(0)
    assert taken_by(futures, 2) == [0, 1]
