"""The in-process twin, one thread at a time: the standard library's interface, both ends, odd items."""

import gc
import inspect
import queue as stdlib
import random
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from queues.local import Empty, Full, PriorityQueue, ShutDown
from tests.conftest import Clock

#: Enough for several chunks, so that items move between them.
MANY = 5_000


@dataclass(order=True, frozen=True)
class Job:
    """An item whose equals can be told apart."""

    priority: int
    name: str = field(compare=False, default="")


class Only:
    """An item that has nothing but `<`, and raises it against an item of another kind."""

    def __init__(self, rank: int, kind: str = "plain") -> None:
        self.rank = rank
        self.kind = kind

    def __lt__(self, other: "Only") -> bool:
        if self.kind != other.kind:
            raise TypeError(f"{self.kind} against {other.kind}")
        return self.rank < other.rank

    def __repr__(self) -> str:
        return f"{self.kind} {self.rank}"


def drain(jobs: PriorityQueue[object], take: Callable[[], object] | None = None) -> list[object]:
    """Take all that is due, from the lower end or with `take`."""
    taken = []
    while True:
        try:
            taken.append((take or jobs.get_nowait)())
        except Empty:
            return taken


def later(clock: Clock, seconds: float) -> datetime:
    return datetime.fromtimestamp(clock.now + seconds, UTC)


@pytest.mark.parametrize("name", ["__init__", *(name for name in vars(stdlib.Queue) if not name.startswith("_"))])
def test_the_standard_librarys_calls_are_understood(name: str) -> None:
    theirs = list(inspect.signature(getattr(stdlib.Queue, name)).parameters.values())
    ours = list(inspect.signature(getattr(PriorityQueue, name)).parameters.values())
    assert [(p.name, p.default) for p in ours[: len(theirs)]] == [(p.name, p.default) for p in theirs]
    assert all(p.default is not p.empty for p in ours[len(theirs) :])


def test_the_errors_are_the_standard_librarys() -> None:
    assert Empty is stdlib.Empty
    assert Full is stdlib.Full
    assert ShutDown is getattr(stdlib, "ShutDown", ShutDown)
    jobs: PriorityQueue[int] = PriorityQueue(1)
    for take in (jobs.get_nowait, jobs.peek_min, jobs.peek_max, lambda: jobs.get(False), lambda: jobs.get_max(False)):
        with pytest.raises(stdlib.Empty):
            take()
    jobs.put(1)
    with pytest.raises(stdlib.Full):
        jobs.put_nowait(2)
    with pytest.raises(stdlib.Full):
        jobs.put(2, timeout=0)
    assert jobs.get() == 1


def test_items_need_nothing_but_less_than() -> None:
    items = [Only(n % 3) for n in range(MANY)]
    jobs: PriorityQueue[object] = PriorityQueue()
    for item in items:
        jobs.put(item)
    assert drain(jobs) == sorted(items, key=lambda item: item.rank)


def test_an_item_that_does_not_compare_is_refused_and_nothing_changes() -> None:
    jobs: PriorityQueue[object] = PriorityQueue(maxsize=MANY + 1)
    numbers = list(range(MANY))
    random.Random(1).shuffle(numbers)
    for number in numbers:
        jobs.put((number, {}))
    for odd in ("text", (4_000, {1: 2}), (0, None), (MANY - 1, {1: 2})):
        with pytest.raises(TypeError):
            jobs.put(odd)
    assert (jobs.qsize(), jobs.unfinished_tasks) == (MANY, MANY)
    jobs.put((MANY, {}))
    assert drain(jobs) == [(number, {}) for number in range(MANY + 1)]


def test_no_taker_meets_a_comparison() -> None:
    jobs: PriorityQueue[object] = PriorityQueue()
    items = [Only(n) for n in range(MANY)]
    for item in items:
        jobs.put(item)
    for item in items:
        item.kind = f"alone {item.rank}"
    assert drain(jobs) == items


def test_items_that_were_taken_are_not_kept() -> None:
    jobs: PriorityQueue[Only] = PriorityQueue()
    items = [Only(n) for n in range(MANY)]
    alive = [weakref.ref(item) for item in items]
    for item in items:
        jobs.put(item)
    items.clear()
    del item
    for _ in range(MANY // 2 - 1):
        jobs.get()
        jobs.get_max()
    gc.collect()
    assert sum(ref() is not None for ref in alive) == jobs.qsize() == 2


def test_a_negative_timeout_is_refused_where_the_standard_library_refuses_it() -> None:
    for make in (PriorityQueue, stdlib.PriorityQueue):
        jobs = make(2)
        jobs.put(1)
        for call in (lambda: jobs.get(timeout=-1), lambda: jobs.put(1, timeout=-1)):  # noqa: B023
            with pytest.raises(ValueError, match="'timeout' must be a non-negative number"):
                call()
        jobs.put(2, block=False, timeout=-1)
        assert jobs.get(block=False, timeout=-1) == 1
        make().put(1, timeout=-1)


def test_more_tasks_done_than_put_is_an_error(clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    with pytest.raises(ValueError, match="too many times"):
        jobs.task_done()
    jobs.put(1)
    jobs.get()
    jobs.task_done()
    jobs.join()
    with pytest.raises(ValueError, match="too many times"):
        jobs.task_done()
    assert jobs.unfinished_tasks == 0


def test_after_shutdown_the_rest_is_taken_and_nothing_put(clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    jobs.put(2)
    jobs.put(1, due=later(clock, 5))
    jobs.shutdown()
    with pytest.raises(ShutDown):
        jobs.put(3)
    with pytest.raises(ShutDown):
        jobs.put_nowait(3)
    assert jobs.get() == 2
    with pytest.raises(Empty):
        jobs.get_nowait()
    clock.advance(5)
    assert jobs.get() == 1
    for take in (jobs.get, jobs.get_nowait, jobs.get_max, lambda: jobs.get(timeout=1)):
        with pytest.raises(ShutDown):
            take()
    assert jobs.unfinished_tasks == 2


def test_an_immediate_shutdown_drops_everything(clock: Clock) -> None:
    jobs: PriorityQueue[int] = PriorityQueue(clock=clock)
    for number in range(3):
        jobs.put(number)
    jobs.put(9, due=later(clock, 5))
    jobs.get()
    jobs.shutdown(immediate=True)
    assert (jobs.qsize(), jobs.unfinished_tasks) == (0, 1)
    with pytest.raises(ShutDown):
        jobs.get()
    jobs.task_done()
    jobs.join()


def test_what_a_dropped_item_does_when_it_goes_may_use_the_queue() -> None:
    jobs: PriorityQueue[object] = PriorityQueue()
    sizes: list[int] = []

    class Leaving:
        def __del__(self) -> None:
            sizes.append(jobs.qsize())

    jobs.put(Leaving())
    jobs.shutdown(immediate=True)
    gc.collect()
    assert sizes == [0]


def test_it_is_generic_at_run_time_too() -> None:
    assert isinstance(PriorityQueue[int](3), PriorityQueue)
