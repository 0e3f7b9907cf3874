"""The simulated engine is FoundationDB: random programs read, commit and abort alike on both.

`PQ_PROGRAMS=20000` runs more of them; `PQ_PROGRAM_SEED=17` runs the one of that seed, which is what a failure asks for.
"""

import os
from collections import Counter

import pytest

from queues.kv.simulated import SimulatedStore
from tests import cluster
from tests.simulation.fidelity import Inconclusive, Program, Stepwise, generate, run

PROGRAMS = int(os.environ.get("PQ_PROGRAMS", "500"))
ONE = os.environ.get("PQ_PROGRAM_SEED")
SEEDS = range(PROGRAMS) if ONE is None else [int(ONE)]
#: Times that a program is run again when a real store was too slow for it.
TRIES = 20


def conclusive(program: Program, store: Stepwise) -> list[str]:
    """Run a program until the store says the result of it."""
    for _ in range(TRIES):
        try:
            return run(program, store)
        except Inconclusive:
            continue
    pytest.fail(f"The store was too slow {TRIES} times for {program}")


def test_programs_are_worth_running() -> None:
    """Many conflict, many do not; reads find things; every verb is there."""
    store = SimulatedStore()
    ends: Counter[str] = Counter()
    verbs: Counter[str] = Counter()
    for seed in range(500):
        program = generate(seed)
        verbs.update(step.verb for step in program.steps)
        transcript = run(program, store)
        ends.update(line.rpartition(": ")[2] for line in transcript if line[1:] in (": committed", ": conflict"))
        ends.update("found" if "(b'" in line.partition(" -> ")[2] else "other" for line in transcript if "->" in line)
    assert ends["conflict"] > 100
    assert ends["committed"] > 700
    assert ends["found"] > 150
    assert len(verbs) == 16
    assert min(verbs.values()) > 20


@pytest.mark.skipif(not cluster.find().url, reason=f"no FoundationDB to compare with: {cluster.find().why_not}")
def test_programs_do_the_same_on_foundationdb(capsys: pytest.CaptureFixture[str]) -> None:
    from queues.kv.cluster.store import open_cluster

    real = open_cluster(cluster.fresh().removeprefix("fdb:"))
    simulated = SimulatedStore()
    conflicts = 0
    try:
        for seed in SEEDS:
            program = generate(seed)
            expected = conclusive(program, real)
            found = conclusive(program, simulated)
            assert found == expected, f"Replay with PQ_PROGRAM_SEED={seed}. FoundationDB differs from {program}"
            conflicts += any(line.endswith(": conflict") for line in expected)
    finally:
        real.close()
    with capsys.disabled():
        print(f"\nfidelity: {len(SEEDS):,} programs, {conflicts:,} with a conflict, alike on both stores")
