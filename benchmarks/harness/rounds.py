"""Rounds of the same work on every peer, by the same numbers of callers, alternating; and the table that tells them."""

import argparse
import math
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import report
from benchmarks.harness.callers import SIZE, Team, team, value
from benchmarks.harness.slow_flush import NoCompiler, slowed
from benchmarks.peers import Peer, connect, open_peers
from benchmarks.peers.peer import KINDS

#: Items that lie in each queue beside those that come and go.
STANDING = 1_000
OURS = "embedded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured: a work of `benchmarks.harness.callers`, and the callers and their number."""

    work: str
    kinds: tuple[str, ...]
    callers: tuple[int, ...]
    processes: tuple[int, ...]
    rounds: int
    seconds: float
    #: Milliseconds that each flush takes longer.
    flush_ms: float
    folder: str | None
    #: Whether each process of callers, of ours and of peers alike, stays on one processor.
    pinned: bool = False
    #: Other works, each of a peer by so many callers of one process, that alternate with these.
    beside: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What all rounds gave."""

    facts: tuple[str, ...]
    #: Of each round, by peer, processes and callers.
    rates: Mapping[tuple[str, int, int], Sequence[float]]
    #: Milliseconds of one flush, before it is slowed.
    flush: float

    def ratios(self, peer: str, processes: int, callers: int) -> list[float]:
        """Return our rate as a multiple of the peer's, for every round."""
        ours, theirs = (self.rates.get((kind, processes, callers), ()) for kind in (OURS, peer))
        return [our / their if their else math.inf for our, their in zip(ours, theirs, strict=False)]

    def medians(self, kind: str) -> dict[tuple[int, int], float]:
        """Return the medians of a peer by processes and callers."""
        return {key[1:]: statistics.median(of) for key, of in self.rates.items() if key[0] == kind}


def plan_of(
    work: str, doc: str | None, arguments: list[str], *, callers: Sequence[int], processes: Sequence[int]
) -> Plan:
    """Read the arguments that all such measurements have."""
    parser = argparse.ArgumentParser(prog=work, description=doc)
    parser.add_argument("--peers", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--callers", type=int, nargs="+", default=callers)
    parser.add_argument("--processes", type=int, nargs="+", default=processes)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--flush-ms", type=float, default=0.0, help="milliseconds that each flush takes longer")
    parser.add_argument("--pinned", action="store_true", help="keep each process of callers on one processor")
    parser.add_argument("--folder", help="where stores are made (default: the system's for temporary files)")
    options = parser.parse_args(arguments)
    return Plan(
        work=work,
        kinds=tuple(options.peers),
        callers=tuple(options.callers),
        processes=tuple(options.processes),
        rounds=options.rounds,
        seconds=options.seconds,
        flush_ms=options.flush_ms,
        folder=options.folder,
        pinned=options.pinned,
    )


def measure(plan: Plan) -> Measured | None:
    """Run all rounds; None where they cannot be run as asked."""
    with tempfile.TemporaryDirectory(dir=plan.folder, prefix="pq-bench-") as folder:
        Path(folder).chmod(0o755)  # the user of a server has to reach what slows its flushes
        try:
            environment = slowed(Path(folder), plan.flush_ms) if plan.flush_ms else {}
        except NoCompiler as missing:
            report.note(f"{plan.work} with slow flushes is left out: {missing}")
            return None
        return _measure(plan, Path(folder), environment)


def _measure(plan: Plan, folder: Path, environment: Mapping[str, str]) -> Measured:
    flush = report.flush_ms(folder)
    rates: dict[tuple[str, int, int], list[float]] = {}
    with ExitStack() as stack:
        peers = stack.enter_context(open_peers(plan.kinds, folder, environment))
        for peer in peers.values():
            _fill(peer)
        teams: dict[tuple[str, int], Team] = {
            (kind, processes): stack.enter_context(team(peer.door, processes, environment, pinned=plan.pinned))
            for processes in plan.processes
            for kind, peer in peers.items()
        }
        for number in range(plan.rounds):
            for callers in plan.callers:
                for (kind, processes), started in teams.items():
                    if callers < processes:
                        continue
                    report.note(f"{plan.work}: round {number + 1}, {kind}, {processes} × {callers // processes}")
                    rate = started.run(plan.work, callers, plan.seconds)
                    rates.setdefault((kind, processes, callers), []).append(rate)
            for work, kind, callers in plan.beside:
                if (kind, 1) in teams:
                    report.note(f"{plan.work}: round {number + 1}, {work} of {kind}, {callers}")
                    rate = teams[kind, 1].run(work, callers, plan.seconds)
                    rates.setdefault((f"{kind}: {work}", 1, callers), []).append(rate)
        for kind, peer in peers.items():
            _check(peer, kind)
        return Measured(facts=tuple(peer.facts for peer in peers.values()), rates=rates, flush=flush)


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


def tell(plan: Plan, measured: Measured, *, title: str, how: str, unit: str) -> None:
    """Print the table of all rounds."""
    pinned = ", each process of callers on one processor" if plan.pinned else ""
    report.heading(title + slow_words(plan) + pinned)
    print(f"{SIZE}-byte values, one queue with {STANDING:,} items standing, {how},")
    print(f"{plan.rounds} alternating rounds of {plan.seconds:g} s; a flush took {measured.flush:.2f} ms by itself.\n")
    for fact in measured.facts:
        print(f"- {fact}")
    print()
    rows: list[list[object]] = []
    for (kind, processes, callers), of in sorted(measured.rates.items(), key=lambda pair: pair[0][1:]):
        raw = " ".join(f"{rate:,.0f}" for rate in of)
        ratios = [] if kind == OURS else measured.ratios(kind, processes, callers)
        times = f"{statistics.median(ratios):.2f}×" if ratios else ""
        rows.append([f"{processes} × {callers // processes}", kind, round(statistics.median(of)), times, raw])
    report.table(("processes × callers", "peer", f"{unit}/s, median", "ours is", "each round"), rows)
