"""Rounds of the same work on every peer, by the same callers, alternating; and the table that tells them."""

import math
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import report
from benchmarks.harness.callers import SIZE, Run, team, value
from benchmarks.harness.slow_flush import NoCompiler, slowed
from benchmarks.peers import Peer, connect, open_peers
from benchmarks.peers.peer import KINDS

#: Items that lie in each queue beside those that come and go.
STANDING = 1_000
OURS = KINDS[0]
#: What a peer's client offers no way to do.
_UNABLE = {("rabbitmq", "coroutines"), ("rabbitmq", "batches")}


class Shape(NamedTuple):
    """Processes, the callers of each, and their work, one of `benchmarks.harness.callers`."""

    processes: int
    callers: int
    work: str = "pairs"

    def __str__(self) -> str:
        name = f"{self.processes}x{self.callers}"
        return name if self.work == "pairs" else f"{self.work}-{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured, and how often."""

    kinds: Sequence[str]
    #: Those of as many processes are next to each other: they share these processes.
    shapes: Sequence[Shape]
    rounds: int
    seconds: float
    folder: str | None
    #: Milliseconds that each flush takes longer.
    flush_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What all rounds gave."""

    facts: Sequence[str]
    #: Of each round, by peer and shape.
    runs: Mapping[tuple[str, Shape], Sequence[Run]]
    #: Milliseconds of one flush, without and with the delay.
    flush: float
    slowed: float

    def rate(self, kind: str, shape: Shape) -> float | None:
        """Return what a peer did a second, the median; None where it was not measured."""
        runs = self.runs.get((kind, shape))
        return statistics.median(run.rate for run in runs) if runs else None

    def ratios(self, kind: str, shape: Shape) -> list[float]:
        """Return our rate as a multiple of the peer's, for every round."""
        ours, theirs = (self.runs.get((each, shape), ()) for each in (OURS, kind))
        return [our.rate / their.rate if their.rate else math.inf for our, their in zip(ours, theirs, strict=False)]

    def p99_ms(self, kind: str, shape: Shape) -> float | None:
        """Return the milliseconds that 99 % of a peer's pushes did not exceed; None where they were not timed."""
        times = [each for run in self.runs.get((kind, shape), ()) for each in run.pushes]
        return report.percentile(times, 99) * 1_000 if times else None


def measure(plan: Plan) -> Measured | None:
    """Run all rounds; None where flushes cannot be slowed."""
    with tempfile.TemporaryDirectory(dir=plan.folder, prefix="pq-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the user of a server has to reach what slows its flushes
        try:
            environment = slowed(folder, plan.flush_ms) if plan.flush_ms else {}
        except NoCompiler as missing:
            report.note(f"slow flushes are left out: {missing}")
            return None
        return _measure(plan, folder, environment)


def _measure(plan: Plan, folder: Path, environment: Mapping[str, str]) -> Measured:
    runs: dict[tuple[str, Shape], list[Run]] = {}
    flushes = []
    with open_peers(plan.kinds, folder, environment) as peers:
        for peer in peers.values():
            _fill(peer)
        # A store is open in the processes of one shape alone, as it is where it is used.
        for processes, shapes in groupby(plan.shapes, key=lambda shape: shape.processes):
            flushes.append(report.flush_ms(folder))
            with ExitStack() as stack:
                teams = {
                    kind: stack.enter_context(team(peer.door, processes, environment)) for kind, peer in peers.items()
                }
                for shape in shapes:
                    for number in range(plan.rounds):
                        report.note(f"{shape}{slow_words(plan)}: round {number + 1}")
                        for kind, started in teams.items():
                            if (kind, shape.work) not in _UNABLE:
                                run = started.run(shape.work, processes * shape.callers, plan.seconds)
                                runs.setdefault((kind, shape), []).append(run)
        for kind, peer in peers.items():
            _check(peer, kind)
        facts = [peer.facts for peer in peers.values()]
    flush = statistics.median(flushes)
    return Measured(facts=facts, runs=runs, flush=flush, slowed=flush + plan.flush_ms)


def _fill(peer: Peer) -> None:
    connection = connect(peer.door)
    connection.client().push_many([(value("standing", n), n) for n in range(STANDING)])
    connection.close()
    report.note(peer.facts)


def _check(peer: Peer, kind: str) -> None:
    """Stop when values were lost or came twice."""
    connection = connect(peer.door)
    depth = connection.client().depth()
    connection.close()
    if depth != STANDING:
        raise SystemExit(f"{kind}: the queue holds {depth} items, not {STANDING}")


def slow_words(plan: Plan) -> str:
    """Return how flushes were slowed, to be added to a title."""
    return f", each flush slowed by {plan.flush_ms:g} ms" if plan.flush_ms else ""


def tell(plan: Plan, measured: Measured, *, title: str, how: str) -> None:
    """Print the table of all rounds."""
    report.heading(title + slow_words(plan))
    print(f"{SIZE}-byte values, one queue with {STANDING:,} items standing, durable, {how},")
    print(f"{plan.rounds} alternating rounds of {plan.seconds:g} s; a flush took {measured.flush:.3f} ms by itself.")
    print("The ratios are medians of the same round, in brackets the least and the greatest.\n")
    for fact in measured.facts:
        print(f"- {fact}")
    print()
    kinds = [kind for kind in plan.kinds if any(key[0] == kind for key in measured.runs)]
    peers = [kind for kind in kinds if kind != OURS]
    rows = []
    for shape in plan.shapes:
        rates = [measured.rate(kind, shape) for kind in kinds]
        tails = [measured.p99_ms(kind, shape) for kind in kinds]
        rows.append(
            [
                str(shape),
                *("" if rate is None else round(rate) for rate in rates),
                *(_spread(measured.ratios(kind, shape)) for kind in peers),
                " / ".join("–" if tail is None else f"{tail:.2f}" for tail in tails) if any(tails) else "",
            ]
        )
    columns = ["processes × callers", *(f"{kind}/s" for kind in kinds), *(f"ours / {kind}" for kind in peers)]
    report.table([*columns, f"p99 of a push, ms: {' / '.join(kinds)}"], rows)


def _spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})" if ratios else ""
