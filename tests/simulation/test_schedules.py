"""Seeded schedules of several clients, with every fault there is: nothing lost, nothing twice, linearizable.

`PQ_SCHEDULES=20000` runs more of them than `make test` does; `PQ_SCHEDULE_SEED=17` runs the one of that seed again,
which is what a failure asks for.
"""

import pytest

from tests.simulation.schedules import CLIENTS, OPERATIONS, Schedule, Tally, seeds


@pytest.mark.slow
def test_seeded_schedules_lose_and_double_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    for seed in seeds(60):
        Schedule(seed).run(tally)
    with capsys.disabled():
        print(f"\nsimulation: {tally}")
    assert CLIENTS >= 3
    assert tally.operations == tally.schedules * CLIENTS * OPERATIONS >= tally.schedules * 20
    if tally.schedules >= 60:
        assert tally.zeros() == []


@pytest.mark.parametrize("seed", [3, 8, 21])
def test_the_same_seed_gives_the_same_history(seed: int) -> None:
    def run() -> tuple[str, str]:
        tally, schedule = Tally(), Schedule(seed)
        schedule.run(tally)
        return str(schedule.history), str(tally)

    history, tally = run()
    assert run() == (history, tally)
