"""The in-process twin among threads: nothing lost, nothing twice, nothing early, timeouts kept."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from datetime import UTC, datetime

import pytest

from queues.local import Empty, Full, PriorityQueue, ShutDown
from tests.conftest import Clock
from tests.waiting import LONG, await_true, begin

#: Seconds that tests do wait for: a due time by the machine's clock, a timeout that runs out.
SHORT = 0.05
HOUR = 3600


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def asleep(jobs: PriorityQueue[int]) -> int:
    """Return how many threads wait to get."""
    with jobs.mutex:
        return len(jobs.not_empty.asleep)


def waiting(jobs: PriorityQueue[int], call: Callable[[], int], n: int) -> list[Future[int]]:
    """Start so many calls, and return when all of them are asleep."""
    before = asleep(jobs)
    futures = [begin(call) for _ in range(n)]
    await_true(lambda: asleep(jobs) == before + n)
    return futures


def taken_by(futures: list[Future[int]], n: int) -> list[int]:
    """Return what so many of the calls got, in order."""
    await_true(lambda: sum(future.done() for future in futures) >= n)
    return sorted(future.result() for future in futures if future.done())


def test_eight_producers_and_eight_consumers_lose_nothing_and_double_nothing() -> None:
    jobs: PriorityQueue[int] = PriorityQueue(maxsize=50)
    each, producers = 1_000, 8
    taken: list[list[int]] = [[] for _ in range(8)]

    def produce(number: int) -> None:
        chance = random.Random(number)
        for n in range(each):
            item = n * producers + number
            due = at(time.time() + chance.random() / 500) if chance.random() < 0.2 else None
            if chance.random() < 0.5:
                jobs.put(item, due=due)
            else:
                while True:
                    try:
                        jobs.put(item, timeout=chance.random() / 500, due=due)
                        break
                    except Full:
                        continue

    def consume(number: int) -> None:
        chance = random.Random(number)
        while True:
            try:
                take = jobs.get if number % 2 else jobs.get_max
                taken[number].append(take(timeout=chance.random() / 500 if chance.random() < 0.5 else None))
                jobs.task_done()
            except Empty:
                continue
            except ShutDown:
                return

    consuming = [begin(consume, number) for number in range(8)]
    producing = [begin(produce, number) for number in range(producers)]
    for future in producing:
        future.result(LONG)
    jobs.join()
    assert (jobs.qsize(), jobs.unfinished_tasks) == (0, 0)
    jobs.shutdown()
    for future in consuming:
        future.result(LONG)
    assert Counter(item for part in taken for item in part) == Counter(range(each * producers))


def test_no_item_is_taken_early() -> None:
    jobs: PriorityQueue[int] = PriorityQueue()
    chance = random.Random(7)
    dues = {n: time.time() + chance.random() / 10 for n in range(200)}
    late: list[float] = []

    def take() -> int:
        item = jobs.get()
        late.append(time.time() - dues[item])
        return item

    futures = [begin(take) for _ in dues]
    for n, due in dues.items():
        jobs.put(n, due=at(due))
    assert taken_by(futures, len(dues)) == list(dues)
    assert min(late) > -1e-6  # a datetime has whole microseconds


@pytest.mark.parametrize("delayed", [False, True])
def test_timeouts_are_kept(delayed: bool, clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(1, clock=clock)
    if delayed:
        jobs.put(1, due=at(clock.now + HOUR))
    start = time.monotonic()
    with pytest.raises(Empty):
        jobs.get(timeout=SHORT)
    with pytest.raises(Empty):
        jobs.get_max(timeout=SHORT)
    if not delayed:
        jobs.put(1)
    with pytest.raises(Full):
        jobs.put(2, timeout=SHORT)
    assert 3 * SHORT <= time.monotonic() - start < LONG


def test_a_taker_makes_room_for_one_putter(clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(1, clock=clock)
    jobs.put(0, due=at(clock.now + HOUR))
    putting = [begin(jobs.put, n) for n in (1, 2, 3)]
    await_true(lambda: len(jobs.not_full.asleep) == 3)
    clock.advance(HOUR)
    assert jobs.get() == 0
    assert len(jobs.not_full.asleep) == 2
    assert sorted(jobs.get(timeout=LONG) for _ in putting) == [1, 2, 3]
    assert not wait_for(putting, LONG).not_done


def test_a_putter_whose_item_is_refused_leaves_its_room_to_another() -> None:
    jobs: PriorityQueue[object] = PriorityQueue(2)
    jobs.put(0)
    jobs.put(1)
    refused = begin(jobs.put, "text")
    await_true(lambda: len(jobs.not_full.asleep) == 1)
    putting = begin(jobs.put, 2)
    await_true(lambda: len(jobs.not_full.asleep) == 2)
    assert jobs.get() == 0
    assert isinstance(refused.exception(LONG), TypeError)
    putting.result(LONG)
    assert [jobs.get(), jobs.get()] == [1, 2]


def test_join_waits_for_delayed_items_too(clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    jobs.put(1, due=at(clock.now + HOUR))
    jobs.put(2)
    joining = [begin(jobs.join) for _ in range(2)]
    await_true(lambda: len(jobs.all_tasks_done.asleep) == 2)
    assert jobs.get() == 2
    jobs.task_done()
    assert len(jobs.all_tasks_done.asleep) == 2
    clock.advance(HOUR)
    assert jobs.get() == 1
    assert len(jobs.all_tasks_done.asleep) == 2
    jobs.task_done()
    for future in joining:
        future.result(LONG)


def test_a_shutdown_ends_all_waiting() -> None:
    jobs: PriorityQueue[int] = PriorityQueue(1)
    getting = waiting(jobs, jobs.get, 3)
    jobs.shutdown()
    assert all(isinstance(future.exception(LONG), ShutDown) for future in getting)
    full: PriorityQueue[int] = PriorityQueue(1)
    full.put(1)
    putting = [begin(full.put, 2) for _ in range(3)]
    joining = begin(full.join)
    await_true(lambda: len(full.not_full.asleep) == 3 and len(full.all_tasks_done.asleep) == 1)
    full.shutdown(immediate=True)
    assert all(isinstance(future.exception(LONG), ShutDown) for future in putting)
    joining.result(LONG)


def test_after_a_shutdown_waiters_wait_for_what_is_delayed_and_no_longer(clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    jobs.put(1, due=at(clock.now + SHORT))
    getting = waiting(jobs, jobs.get, 3)
    jobs.shutdown()
    clock.advance(1)
    assert not wait_for(getting, LONG).not_done
    results = sorted(repr(future.exception() or future.result()) for future in getting)
    assert results == ["1", "ShutDown()", "ShutDown()"]


def test_after_a_shutdown_a_thread_that_takes_the_last_item_ends_the_waiting_of_all_the_rest(clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    jobs.put(1, due=at(clock.now + HOUR))
    jobs.shutdown()
    getting = waiting(jobs, jobs.get, 3)
    clock.advance(HOUR)
    assert jobs.get() == 1
    assert all(isinstance(future.exception(LONG), ShutDown) for future in getting)


def test_each_item_wakes_one_waiter() -> None:
    jobs: PriorityQueue[int] = PriorityQueue()
    futures = waiting(jobs, lambda: jobs.get(timeout=LONG), 10)
    futures += waiting(jobs, jobs.get_max, 10)
    for n in range(20):
        jobs.put(n)
        assert asleep(jobs) == 19 - n
    assert taken_by(futures, 20) == list(range(20))


def test_an_earlier_newcomer_is_taken_when_it_is_due(clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    jobs.put(2, due=at(clock.now + HOUR))
    futures = waiting(jobs, jobs.get, 2)
    jobs.put(1, due=at(clock.now + SHORT))
    clock.advance(SHORT + 1e-6)
    assert taken_by(futures, 1) == [1]
    jobs.put(0)
    assert taken_by(futures, 2) == [0, 1]


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
    futures = waiting(jobs, jobs.get, 2)
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
