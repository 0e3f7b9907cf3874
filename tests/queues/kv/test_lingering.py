"""Many callers of one server, some of them interrupted: each gets its own answer, and no thread is left asleep."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from queues import open_store
from queues.kv.bells import Bell
from queues.kv.errors import OutcomeUnknown
from queues.kv.group_commit import Combiners
from tests.waiting import LONG

CALLERS, CALLS = 40, 60


class Interrupt(BaseException):
    """As a signal handler raises it."""


class Echo:
    """A server that answers with what it is asked, and keeps its batches."""

    contended = True
    wire = None

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.before: Callable[[Sequence[Any]], None] = lambda requests: None

    def prepare(self, requests: Sequence[Any]) -> Sequence[Any]:
        return requests

    def execute(self, tr: object, requests: Sequence[Any]) -> Sequence[Any]:
        raise AssertionError("no transaction is made here")

    def conduct(self, transact: object, requests: Sequence[Any]) -> Sequence[Any]:
        self.batches.append(list(requests))
        self.before(requests)
        return requests


class Failing(Echo):
    """Serves some of what it is asked, in its own time; now and then it fails."""

    def __init__(self, seed: int, *, interrupts: float) -> None:
        super().__init__()
        self._chance = random.Random(seed)
        self._interrupts = interrupts
        self._pause = threading.Event()

    def conduct(self, transact: object, requests: Sequence[Any]) -> Sequence[Any]:
        self._pause.wait(self._chance.random() * 0.002)
        if self._chance.random() < self._interrupts:
            raise Interrupt
        return requests[: self._chance.randint(1, len(requests))]


@pytest.mark.parametrize("interrupts", [0.0, 0.05], ids=["at peace", "interrupted"])
def test_every_thread_gets_its_own_answer(interrupts: float) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    print("seed", seed)
    server, chance = Failing(seed, interrupts=interrupts), random.Random(seed + 1)

    def bell() -> Bell:
        """Return a bell whose listener is interrupted now and then."""
        made = Bell()
        sleep = made.listen

        def listen() -> None:
            sleep()
            if chance.random() < interrupts:
                raise Interrupt

        made.listen = listen
        return made

    became: Counter[str] = Counter()
    together = Combiners(lambda fn: None, linger=0.25, pauses=(0.0, 0.005), abreast=4, bell=bell)

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


@pytest.mark.parametrize("calls", [[1] * 32, [1 + n % 10 for n in range(64)]], ids=["all once", "fewer and fewer"])
def test_threads_that_do_not_come_back_hold_up_no_other_one(tmp_path: Path, calls: list[int]) -> None:
    together = threading.Barrier(len(calls))

    def work(n: int) -> list[str]:
        together.wait(LONG)
        return [jobs.push(b"x", priority=1).id for _ in range(n)]

    with open_store(f"lmdb:{tmp_path / 'store'}") as store, ThreadPoolExecutor(len(calls)) as pool:
        jobs = store.create_queue("jobs")
        ids = [made for each in [pool.submit(work, n) for n in calls] for made in each.result(LONG)]
        assert len(set(ids)) == sum(calls) == jobs.depth()
