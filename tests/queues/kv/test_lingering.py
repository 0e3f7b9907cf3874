"""A batch that waits a moment for returning callers, and wake-ups: many callers, some interrupted."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from queues.kv import combining
from queues.kv.combining import Combiner
from queues.kv.combining_entry import Entry
from queues.kv.errors import OutcomeUnknown
from queues.kv.lifecycle import Lifecycle
from queues.kv.port import Ticket

#: Seconds after which a test gives up; no test depends on how soon something happens.
LONG = 120
CALLERS, CALLS = 40, 60


class Interrupt(BaseException):
    """As a signal handler raises it."""


class Echo:
    """A server that answers with what it is asked, and keeps its batches."""

    def __init__(self, *, contended: bool = True) -> None:
        self.contended = contended
        self.batches: list[list[Any]] = []
        self.before: Callable[[Sequence[Any]], None] = lambda requests: None

    def serve(self, tr: object, requests: Sequence[Any]) -> Sequence[Any]:
        raise AssertionError("no transaction is made here")

    def conduct(self, transact: object, requests: Sequence[Any]) -> Sequence[Any]:
        self.batches.append(list(requests))
        self.before(requests)
        return requests


def combiner(**options: Any) -> Combiner:
    """Return one without a store: its servers need no transactions."""
    return Combiner(lambda fn: None, Lifecycle("here"), **options)


def await_(condition: Callable[[], object]) -> None:
    """Look until it is so."""
    patience = threading.Event()
    for _ in range(LONG * 1_000):
        if condition():
            return
        patience.wait(0.001)
    raise AssertionError("it does not come")


def expect_three(waits: Combiner, server: Echo) -> None:
    """Have the next batch wait for three."""
    waits.serve(server, "warm")
    waits._paces[server].crowd = 3
    server.batches.clear()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have batches wait for those they expect, however long that takes on a busy machine."""
    monkeypatch.setattr(combining, "LONGEST_LINGER", float(LONG))


@pytest.mark.usefixtures("patient")
def test_a_batch_waits_for_as_many_as_came_last() -> None:
    server, waits = Echo(), combiner(linger=1e9)
    with ThreadPoolExecutor(8) as pool:
        expect_three(waits, server)
        early = pool.submit(waits.serve, server, "a")
        await_(lambda: server in waits._lanes and waits._lanes[server].enough)
        then = pool.submit(waits.serve, server, "b")
        await_(lambda: len(waits._lanes[server].waiting) == 2)
        assert not early.done()
        last = pool.submit(waits.serve, server, "c")
        assert [one.result(LONG) for one in (early, then, last)] == ["a", "b", "c"]
    assert [len(batch) for batch in server.batches] == [3]


def test_a_batch_does_not_wait_for_ever() -> None:
    server, waits = Echo(), combiner(linger=1e9)
    with ThreadPoolExecutor(8) as pool:
        expect_three(waits, server)
        assert pool.submit(waits.serve, server, "a").result(LONG) == "a"
    assert server.batches == [["a"]]
    assert waits._lanes == {}


class Interrupted:
    """Replaces a lane's lock: a thread that waits for it is interrupted once, just as it is released."""

    def __init__(self, lock: Any, interrupt: Callable[[], bool]) -> None:
        self._lock, self._interrupt = lock, interrupt
        self.release = lock.release

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if timeout > 0 and self._interrupt():
            await_(lambda: not self._lock.locked())
            raise Interrupt
        took: bool = self._lock.acquire(blocking, timeout)
        return took


@pytest.mark.usefixtures("patient")
def test_a_leader_interrupted_as_it_is_told_leaves_no_other_thread_an_error() -> None:
    """That enough are there was told to it alone: the next thread that waits for enough must not find it."""
    server, waits = Echo(), combiner(linger=1e9)
    with ThreadPoolExecutor(8) as pool:
        expect_three(waits, server)
        armed = [True]
        open_lane = waits._open_lane

        def open_with_lock(server: Any) -> Any:
            lane = open_lane(server)
            lane.gathered = Interrupted(lane.gathered, lambda: bool(armed) and armed.pop())  # type: ignore[assignment]
            return lane

        waits._open_lane = open_with_lock  # type: ignore[method-assign]
        gone = pool.submit(waits.serve, server, "gone")
        await_(lambda: server in waits._lanes and waits._lanes[server].enough)
        lane = waits._lanes[server]
        go = threading.Event()
        server.before = lambda requests: None if go.wait(LONG) else pytest.fail("it was not let go on")
        others = [pool.submit(waits.serve, server, name) for name in ("a", "b")]
        assert isinstance(gone.exception(LONG), Interrupt)
        # Two are there of three: the leader waits for one more.
        await_(lambda: lane.enough)
        others.append(pool.submit(waits.serve, server, "c"))
        await_(lambda: len(server.batches) == 1)
        go.set()
        assert [one.result(LONG) for one in others] == ["a", "b", "c"]
    assert sorted(server.batches[0]) == ["a", "b", "c"]
    assert waits._lanes == {}


class Failing(Echo):
    """Serves some of what it is asked, in its own time; now and then its thread is interrupted."""

    def __init__(self, seed: int, *, contended: bool, interrupts: float) -> None:
        super().__init__(contended=contended)
        self._chance = random.Random(seed)
        self._interrupts = interrupts
        self._pause = threading.Event()

    def conduct(self, transact: object, requests: Sequence[Any]) -> Sequence[Any]:
        self._pause.wait(self._chance.random() * 0.002)
        if self._chance.random() < self._interrupts:
            raise Interrupt
        return requests[: self._chance.randint(1, len(requests))]


@pytest.mark.parametrize("contended", [True, False], ids=["one after the other", "two abreast"])
@pytest.mark.parametrize("interrupts", [0.0, 0.05], ids=["at peace", "interrupted"])
def test_every_thread_gets_its_own_answer(contended: bool, interrupts: float) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    print("seed", seed)
    server, chance = Failing(seed, contended=contended, interrupts=interrupts), random.Random(seed + 1)

    def sleep(entry: Entry, timeout: float) -> None:
        entry.heed(timeout)
        if timeout < 0 and chance.random() < interrupts:
            raise Interrupt

    became: Counter[str] = Counter()
    together = combiner(linger=0.25, wake=4, sleep=sleep)

    def call(number: int) -> None:
        for n in range(CALLS):
            try:
                became["right" if together.serve(server, (number, n)) == (number, n) else "another's"] += 1
            except (Interrupt, OutcomeUnknown) as error:
                became[type(error).__name__] += 1

    with ThreadPoolExecutor(CALLERS) as pool:
        callers = [pool.submit(call, number) for number in range(CALLERS)]
        for caller in callers:
            caller.result(LONG)
    assert became["another's"] == 0
    assert sum(became.values()) == CALLERS * CALLS
    assert bool(became["Interrupt"]) == bool(interrupts)
    assert together._lanes == {}


class Desk:
    """A landing that counts."""

    def __init__(self) -> None:
        self.landed: list[Ticket] = []
        self.came = threading.Semaphore(0)

    def land(self, tickets: Sequence[Ticket]) -> None:
        self.landed += tickets
        self.came.release(len(tickets))


def test_a_thread_of_our_own_that_is_interrupted_leaves_the_next_ticket_to_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended_by: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda told: ended_by.append(told.exc_type))
    server, desk, go = Echo(), Desk(), threading.Event()
    lifecycle = Lifecycle("here")
    together = Combiner(lambda fn: None, lifecycle, linger=0.25)
    serving: list[threading.Thread] = []

    def interrupt_first(requests: Sequence[Any]) -> None:
        serving.append(threading.current_thread())
        if requests == ["first"]:
            assert go.wait(LONG)
            raise Interrupt

    server.before = interrupt_first
    for name in ("first", "next"):
        lifecycle.enter()
        together.submit(Ticket(server, name, desk))
        await_(lambda: server.batches == [["first"]])
    go.set()
    for _ in range(2):
        assert desk.came.acquire(timeout=LONG)
    assert [type(ticket.error) for ticket in desk.landed] == [OutcomeUnknown, type(None)]
    assert desk.landed[1].answer == "next"
    assert [thread.name for thread in serving] == ["pq-combining"] * 2
    assert serving[0] is not serving[1]
    for thread in serving:
        thread.join(LONG)
    assert ended_by == [Interrupt]
    assert together._lanes == {}
