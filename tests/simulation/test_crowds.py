"""Several threads a process, served together, and processes that take for each other: nothing lost, nothing twice.

`PQ_CROWDS=2000` runs more schedules than `make test` does; `PQ_SCHEDULE_SEED=17` runs the one of that seed again.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from queues.kv.group_commit import Combiner
from queues.serving import staging
from queues.serving.staging import Staging
from tests.simulation.crowds import OPERATIONS, PROCESSES, THREADS, Crowd
from tests.simulation.schedules import Tally, seeds


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What happened: batches of several, the fulfiller, what was asked and answered, or given up."""
    counted: Counter[str] = Counter()

    def counting(owner: Any, name: str, what: str, when: Callable[[Any], bool]) -> None:
        original = getattr(owner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            answer = original(*arguments, **named)
            counted[what] += when(answer)
            return answer

        monkeypatch.setattr(owner, name, call)

    monkeypatch.setattr(staging, "CONFLICTS", 1)
    counting(Combiner, "take", "batches of several", lambda batch: len(batch) > 1)
    counting(Staging, "_engage", "took for all", bool)
    counting(Staging, "_ask", "asked and answered", bool)
    counting(Staging, "_ask", "asked in vain", lambda answers: not answers)
    counting(Staging, "_step_down", "stepped down", lambda _: True)
    return counted


@pytest.mark.slow
def test_crowds_of_processes_lose_and_double_nothing(counts: Counter[str], capsys: pytest.CaptureFixture[str]) -> None:
    tally, unclaimed = Tally(), 0
    for seed in seeds(30, "PQ_CROWDS"):
        crowd = Crowd(seed)
        crowd.run(tally)
        unclaimed += crowd.unclaimed
    with capsys.disabled():
        told = ", ".join(f"{n:,} {what}" for what, n in sorted(counts.items()))
        print(f"\ncrowds: {tally}\nstaging: {told}, {unclaimed:,} unclaimed items")
    assert PROCESSES >= 3
    assert tally.operations == tally.schedules * PROCESSES * THREADS * OPERATIONS >= tally.schedules * 20
    if tally.schedules >= 30:
        assert min(counts.values()) > 0
        assert unclaimed
        assert tally.kills
        assert tally.conflicts


@pytest.mark.parametrize("seed", [3, 8])
def test_the_same_seed_gives_the_same_history(seed: int, counts: Counter[str]) -> None:
    def run() -> str:
        crowd = Crowd(seed)
        crowd.run(Tally())
        return str(crowd.history)

    assert run() == run()
