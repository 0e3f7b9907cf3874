"""Strict pops and pushes on FoundationDB a second: ours against the published recipe, on the same cluster.

    PQ_TEST_CLUSTER=FILE python -m benchmarks recipes [--seconds 3] [--rounds 5]

By 4, 16 and 64 consumers of one process, by 4 processes of 16, and pushes by 64 threads. Queues are filled up before
every round. What is written lies under prefixes of its own, and is removed.
"""

import argparse
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.harness import report
from benchmarks.harness.callers import SIZE, Team, team, value
from benchmarks.peers import Peer, connect, open_peers

OURS, THEIRS = "cluster", "recipe"
#: What is measured: the work, processes and callers together; and the bars of our rate as a multiple of the recipe's.
_CASES = {
    ("pops", 1, 4): None,
    ("pops", 1, 16): None,
    ("pops", 1, 64): 15.0,
    ("pops", 4, 64): 10.0,
    ("pushes", 1, 64): 3.0,
}
#: Our rate of many consumers as a multiple of that of few.
_SCALING_BAR = 3.0
#: Items a second that a queue may lose; each holds as many for every second, before each round.
_FILL = {OURS: 25_000, THEIRS: 4_000}
_AT_ONCE = 200

Rates = dict[tuple[str, str, int, int], list[float]]


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the ratios with their bars."""
    parser = argparse.ArgumentParser(prog="recipes", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    rates: Rates = {}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pq-bench-"))
        peers = stack.enter_context(open_peers((OURS, THEIRS), Path(folder)))
        if len(peers) < 2:
            report.note("recipes is left out: it needs a cluster that may be written to (PQ_TEST_CLUSTER=FILE)")
            return []
        facts = [peer.facts for peer in peers.values()]
        teams: dict[tuple[str, int], Team] = {
            (kind, processes): stack.enter_context(team(peer.door, processes))
            for kind, peer in peers.items()
            for processes in (1, 4)
        }
        for number in range(options.rounds):
            for work, processes, callers in _CASES:
                for kind, peer in peers.items():
                    if work == "pops":
                        _fill(peer, round(_FILL[kind] * (options.seconds + 1)))
                    report.note(f"recipes: round {number + 1}, {work}, {kind}, {processes} × {callers // processes}")
                    run = teams[kind, processes].run(work, callers, options.seconds)
                    rates.setdefault((kind, work, processes, callers), []).append(run.rate)
    return _tell(rates, facts, options)


def _fill(peer: Peer, items: int) -> None:
    connection = connect(peer.door)
    client = connection.client()
    for done in range(client.depth(), items, _AT_ONCE):
        client.push_many([(value("standing", done + n), (done + n) * 7_919 % 1_000) for n in range(_AT_ONCE)])
    connection.close()


def _tell(rates: Rates, facts: list[str], options: argparse.Namespace) -> list[report.Figure]:
    report.heading("On FoundationDB, against the published recipe")
    print(f"{SIZE}-byte values, one queue, one operation a call, {options.rounds} alternating rounds of", end=" ")
    print(f"{options.seconds:g} s.\n")
    for fact in facts:
        print(f"- {fact}")
    print()
    rows: list[list[object]] = []
    figures = []
    for (work, processes, callers), bar in _CASES.items():
        ours, theirs = (rates[kind, work, processes, callers] for kind in (OURS, THEIRS))
        ratio = statistics.median(our / their for our, their in zip(ours, theirs, strict=True))
        raw = " / ".join(" ".join(f"{rate:,.0f}" for rate in of) for of in (ours, theirs))
        shape = f"{processes} × {callers // processes}"
        rows.append(
            [work, shape, round(statistics.median(ours)), round(statistics.median(theirs)), f"{ratio:.1f}×", raw]
        )
        if bar is not None:
            figures.append(_figure(f"strict {work} on FoundationDB against the recipe, {shape}", ratio, bar))
    report.table(("what", "processes × callers", "ours/s", "recipe/s", "ratio", "each round, ours / recipe"), rows)
    few, many = (statistics.median(rates[OURS, "pops", 1, callers]) for callers in (4, 64))
    figures.append(_figure("pops on FoundationDB by 64 consumers against 4", many / few, _SCALING_BAR))
    return figures


def _figure(what: str, ratio: float, bar: float) -> report.Figure:
    return report.at_least(what, ratio, bar, ".1f", "×")
