"""The in-process twin among threads: nothing lost, nothing twice, every sleeper woken in time and none for nothing."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from datetime import UTC, datetime
from typing import Any

import pytest

from queues.local import Empty, Full, PriorityQueue, ShutDown
from tests.conftest import Clock

#: Seconds after which a test gives up; no test depends on how soon something happens.
LONG = 30
#: Seconds that tests do wait for: a due time by the machine's clock, a timeout that runs out.
SHORT = 0.05
HOUR = 3600


class Threads:
    """Calls, each in a thread of its own, which a test that fails may leave asleep."""

    def submit(self, call: Callable[..., Any], *arguments: object) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(call(*arguments))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future


@pytest.fixture
def pool() -> Threads:
    return Threads()


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def asleep(jobs: PriorityQueue[int]) -> int:
    """Return how many threads wait to get."""
    with jobs.mutex:
        return len(jobs._getters.asleep) + len(jobs._timekeeper.asleep)


def waiting(pool: Threads, jobs: PriorityQueue[int], call: Callable[[], int], n: int) -> list[Future[int]]:
    """Start so many calls, and return when all of them are asleep."""
    before = asleep(jobs)
    futures = [pool.submit(call) for _ in range(n)]
    await_true(lambda: asleep(jobs) == before + n)
    return futures


def await_true(seen: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not seen():
        assert time.monotonic() < end, "this does not happen"


def taken_by(futures: list[Future[int]], n: int) -> list[int]:
    """Return what so many of the calls got, in order."""
    await_true(lambda: sum(future.done() for future in futures) >= n)
    return sorted(future.result() for future in futures if future.done())


class Counting:
    """A clock that counts who looks at it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return self.clock()


def test_eight_producers_and_eight_consumers_lose_nothing_and_double_nothing(pool: Threads) -> None:
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

    consuming = [pool.submit(consume, number) for number in range(8)]
    producing = [pool.submit(produce, number) for number in range(producers)]
    for future in producing:
        future.result(LONG)
    jobs.join()
    assert (jobs.qsize(), jobs.unfinished_tasks) == (0, 0)
    jobs.shutdown()
    for future in consuming:
        future.result(LONG)
    assert Counter(item for part in taken for item in part) == Counter(range(each * producers))


def test_each_item_wakes_one_waiter(pool: Threads) -> None:
    jobs: PriorityQueue[int] = PriorityQueue()
    futures = waiting(pool, jobs, lambda: jobs.get(timeout=LONG), 10)
    futures += waiting(pool, jobs, jobs.get_max, 10)
    for n in range(20):
        jobs.put(n)
        assert asleep(jobs) == 19 - n
    assert taken_by(futures, 20) == list(range(20))


def test_an_item_put_while_others_are_delayed_wakes_one_waiter_and_the_timekeeper_last(
    pool: Threads, clock: Clock
) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    jobs.put(100, due=at(clock.now + HOUR))
    futures = waiting(pool, jobs, jobs.get, 5)
    for n in range(5):
        assert len(jobs._timekeeper.asleep) == 1
        jobs.put(n)
        assert asleep(jobs) == 4 - n
        assert len(taken_by(futures, n + 1)) == n + 1
    assert jobs.qsize() == 1


def test_waiters_are_woken_when_items_become_due_and_look_at_no_clock_in_between(pool: Threads) -> None:
    clock = Counting(time.time)
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    futures = waiting(pool, jobs, jobs.get, 10)
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


def test_no_item_is_taken_early(pool: Threads) -> None:
    jobs: PriorityQueue[int] = PriorityQueue()
    chance = random.Random(7)
    dues = {n: time.time() + chance.random() / 10 for n in range(200)}
    late: list[float] = []

    def take() -> int:
        item = jobs.get()
        late.append(time.time() - dues[item])
        return item

    futures = [pool.submit(take) for _ in dues]
    for n, due in dues.items():
        jobs.put(n, due=at(due))
    assert taken_by(futures, len(dues)) == list(dues)
    assert min(late) > -1e-6  # a datetime has whole microseconds


def test_an_earlier_newcomer_wakes_the_timekeeper(pool: Threads, clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    jobs.put(2, due=at(clock.now + HOUR))
    futures = waiting(pool, jobs, jobs.get, 2)
    jobs.put(1, due=at(clock.now + SHORT))
    clock.advance(SHORT + 1e-6)
    assert taken_by(futures, 1) == [1]
    await_true(lambda: len(jobs._timekeeper.asleep) == 1)
    jobs.put(0)
    assert taken_by(futures, 2) == [0, 1]


def test_a_later_newcomer_wakes_nobody(pool: Threads, clock: Clock) -> None:
    counting = Counting(time.monotonic)
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock, monotonic=counting)
    jobs.put(1, due=at(clock.now + HOUR))
    futures = waiting(pool, jobs, lambda: jobs.get(timeout=LONG), 3)
    looks = counting.looks
    for n in range(2, 10):
        jobs.put(n, due=at(clock.now + HOUR + n))
    assert asleep(jobs) == 3
    jobs.shutdown(immediate=True)
    wait_for(futures, LONG)
    assert counting.looks == looks
    assert all(isinstance(future.exception(), ShutDown) for future in futures)


def test_a_timekeeper_that_gives_up_leaves_its_place_to_another(pool: Threads, clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    jobs.put(1, due=at(clock.now + 2 * SHORT))
    impatient = waiting(pool, jobs, lambda: jobs.get(timeout=SHORT), 1)
    futures = waiting(pool, jobs, jobs.get, 2)
    assert isinstance(impatient[0].exception(LONG), Empty)
    await_true(lambda: len(jobs._timekeeper.asleep) == 1)
    clock.advance(1)
    assert taken_by(futures, 1) == [1]
    jobs.put(2)
    assert taken_by(futures, 2) == [1, 2]


def test_items_due_together_wake_as_many(pool: Threads, clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    for n in range(5):
        jobs.put(n, due=at(clock.now + HOUR))
    futures = waiting(pool, jobs, jobs.get, 7)
    clock.advance(HOUR)  # a jump, which no sleeper can know of: the next call tells them
    assert jobs.peek_max() == 4
    assert taken_by(futures, 5) == [0, 1, 2, 3, 4]
    jobs.put(5)
    jobs.put(6)
    assert taken_by(futures, 7) == list(range(7))


def test_a_taker_that_finds_many_due_wakes_others_for_the_rest(pool: Threads, clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    for n in range(3):
        jobs.put(n, due=at(clock.now + HOUR))
    futures = waiting(pool, jobs, jobs.get, 4)
    clock.advance(HOUR)
    assert jobs.get() == 0
    assert taken_by(futures, 2) == [1, 2]
    await_true(lambda: asleep(jobs) == 2)
    jobs.shutdown()
    wait_for(futures, LONG)


def test_a_waiter_is_woken_for_an_item_that_was_held_by_one_in_its_way(pool: Threads, clock: Clock) -> None:
    jobs: PriorityQueue[object] = PriorityQueue(clock=clock)
    jobs.put((1, {}), due=at(clock.now + 1))
    jobs.put((1, {2: 3}), due=at(clock.now + 2))
    futures = waiting(pool, jobs, jobs.get, 2)  # type: ignore[arg-type]
    clock.advance(2)
    jobs.qsize()
    jobs.peek_min()
    assert [future.result(LONG) in ((1, {}), (1, {2: 3})) for future in futures] == [True, True]


def test_a_waiter_whose_clock_fails_leaves_its_item_to_another(pool: Threads, clock: Clock) -> None:
    failing = threading.Event()

    def unsteady() -> float:
        if failing.is_set() and threading.current_thread() is not threading.main_thread():
            failing.clear()
            raise OSError("no clock")
        return clock()

    jobs: PriorityQueue[int] = PriorityQueue(clock=unsteady)
    jobs.put(2, due=at(clock.now + HOUR))
    futures = waiting(pool, jobs, jobs.get, 3)
    failing.set()
    jobs.put(1)
    await_true(lambda: sum(future.done() for future in futures) == 2)
    assert sorted(str(future.exception() or future.result()) for future in futures if future.done()) == [
        "1",
        "no clock",
    ]
    jobs.shutdown(immediate=True)
    wait_for(futures, LONG)


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


def test_a_taker_makes_room_for_one_putter(pool: Threads, clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(1, clock=clock)
    jobs.put(0, due=at(clock.now + HOUR))
    putting = [pool.submit(jobs.put, n) for n in (1, 2, 3)]
    await_true(lambda: len(jobs._putters.asleep) == 3)
    clock.advance(HOUR)
    assert jobs.get() == 0
    assert len(jobs._putters.asleep) == 2
    assert sorted(jobs.get(timeout=LONG) for _ in putting) == [1, 2, 3]
    wait_for(putting, LONG)


def test_a_putter_whose_item_is_refused_leaves_its_room_to_another(pool: Threads) -> None:
    jobs: PriorityQueue[object] = PriorityQueue(2)
    jobs.put(0)
    jobs.put(1)
    refused = pool.submit(jobs.put, "text")
    await_true(lambda: len(jobs._putters.asleep) == 1)
    putting = pool.submit(jobs.put, 2)
    await_true(lambda: len(jobs._putters.asleep) == 2)
    assert jobs.get() == 0
    assert isinstance(refused.exception(LONG), TypeError)
    putting.result(LONG)
    assert [jobs.get(), jobs.get()] == [1, 2]


def test_join_waits_for_delayed_items_too(pool: Threads, clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    jobs.put(1, due=at(clock.now + HOUR))
    jobs.put(2)
    joining = [pool.submit(jobs.join) for _ in range(2)]
    await_true(lambda: len(jobs._joiners.asleep) == 2)
    assert jobs.get() == 2
    jobs.task_done()
    assert len(jobs._joiners.asleep) == 2
    clock.advance(HOUR)
    assert jobs.get() == 1
    assert len(jobs._joiners.asleep) == 2
    jobs.task_done()
    for future in joining:
        future.result(LONG)


def test_a_shutdown_ends_all_waiting(pool: Threads) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(1)
    getting = waiting(pool, jobs, jobs.get, 3)
    jobs.shutdown()
    assert all(isinstance(future.exception(LONG), ShutDown) for future in getting)
    full: PriorityQueue[int] = PriorityQueue(1)
    full.put(1)
    putting = [pool.submit(full.put, 2) for _ in range(3)]
    joining = pool.submit(full.join)
    await_true(lambda: len(full._putters.asleep) == 3 and len(full._joiners.asleep) == 1)
    full.shutdown(immediate=True)
    assert all(isinstance(future.exception(LONG), ShutDown) for future in putting)
    joining.result(LONG)


def test_after_a_shutdown_waiters_wait_for_what_is_delayed_and_no_longer(pool: Threads, clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    jobs.put(1, due=at(clock.now + SHORT))
    getting = waiting(pool, jobs, jobs.get, 3)
    jobs.shutdown()
    clock.advance(1)
    wait_for(getting, LONG)
    results = sorted(repr(future.exception() or future.result()) for future in getting)
    assert results == ["1", "ShutDown()", "ShutDown()"]
