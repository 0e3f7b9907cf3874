"""push_many and pop_many of 100, durable: items a second, each pushed and each popped one counted.

    python -m benchmarks batches [--callers 1 16 64] [--seconds 2] [--rounds 5]

Each call is one commit's worth: all of its hundred items, or none.
"""

import argparse

from benchmarks.harness import report, rounds
from benchmarks.harness.callers import MANY
from benchmarks.peers.peer import KINDS

_BAR = 150_000


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return our best rate with its bar."""
    parser = argparse.ArgumentParser(prog="batches", description=__doc__)
    parser.add_argument("--callers", type=int, nargs="+", default=(1, 16, 64))
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    shapes = [rounds.Shape(1, callers, "batches") for callers in options.callers]
    plan = rounds.Plan(kinds=KINDS, shapes=shapes, rounds=options.rounds, seconds=options.seconds, folder=None)
    measured = rounds.measure(plan)
    if measured is None:
        return []
    rounds.tell(
        plan,
        measured,
        title=f"push_many and pop_many of {MANY} against peers",
        how=f"{MANY} items a call, threads, pushed and popped items both counted",
    )
    best = max(measured.rate(rounds.OURS, shape) or 0.0 for shape in shapes)
    return [report.at_least(f"embedded push_many and pop_many of {MANY}, items/s", best, _BAR, ",.0f")]
