"""Seeded schedules of clients that send requests with the same keys again and again, with every fault.

Every key is executed once at most, all its answers are the same, and after an unknown commit the same request is just
sent again.
"""

import random
from collections import Counter

import pytest

from queues import Store, Transaction
from queues.errors import OutcomeUnknown
from tests.full_count import check_full_count
from tests.simulation.history import Violation
from tests.simulation.scheduler import Killed
from tests.simulation.schedules import NOT_DONE, Process, Schedule, Tally, seeds

KEYS = 5


class KeyedSchedule(Schedule):
    """One schedule of requests with keys, run and checked once."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.ended: list[str] = []
        self.answers: dict[str, set[bytes]] = {f"{n}": set() for n in range(KEYS)}

    def _call(self, process: Process, program: random.Random) -> None:
        key = program.choice(list(self.answers))
        try:
            self.answers[key].add(_send(process.store, key))
        except OutcomeUnknown:
            self.ended.append("unknown")
        except Killed:
            self.ended.append("killed")
            raise
        except NOT_DONE:
            self.ended.append("not done")
        else:
            self.ended.append("done")

    def _check(self, store: Store) -> None:
        for key, answers in self.answers.items():
            answers.add(_send(store, key))
            if len(answers) != 1:
                raise Violation(f"the key {key} has several answers: {answers}")
        there = sorted(item.value.decode() for item in store.queue("a").items(limit=100).items)
        if there != list(self.answers):
            raise Violation(f"each key was to be executed once: {there}")
        check_full_count(store, store.queue("a"))

    @property
    def outcomes(self) -> Counter[str]:
        """How the calls ended."""
        return Counter(self.ended)


def _send(store: Store, key: str) -> bytes:
    def push(tr: Transaction) -> bytes:
        return store.queue("a", tr=tr).push(key.encode(), priority=0, tr=tr).id.encode()

    return store.once(key, push).value


@pytest.mark.slow
def test_requests_with_keys_are_executed_once_whatever_fails(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    for seed in seeds(30):
        KeyedSchedule(seed).run(tally)
    with capsys.disabled():
        print(f"\nkeys: {tally}")
    assert tally.schedules < 30 or {"unknown", "killed", "not done", "late_applied", "late_refused"}.isdisjoint(
        tally.zeros()
    )
