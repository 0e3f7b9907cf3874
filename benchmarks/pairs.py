"""Pairs of push and pop_min a second, durable, one operation a call: the embedded store against Redis and PostgreSQL.

    python -m benchmarks pairs [--callers 1 16 64 256] [--processes 1 4] [--seconds 2] [--rounds 5] [--flush-ms MS]

Every call returns after its flush. Peers and numbers of callers alternate within each round; medians are told, and
ratios of the rates of the same round. With `--flush-ms` every flush of everybody takes so much longer.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks import report
from benchmarks.callers import SIZE, Team, team, value
from benchmarks.peers import Peer, connect, open_peers
from benchmarks.peers.peer import KINDS
from benchmarks.slow_flush import NoCompiler, slowed

#: Items that lie in each queue beside those of the pairs.
STANDING = 1_000
OURS = "embedded"
#: Callers in one process whose ratio to each peer has a bar, and the bars: as fast a disk as it is, or a slow one.
_CALLERS = 64
_BARS = {"redis_aof": 5.0, "postgres": 5.0}
_SLOW_BARS = {"redis_aof": 1.5}
#: Milliseconds: a disk that is slower by itself has other bars.
_FAST_FLUSH = 0.1

#: What every round gave, by peer, processes and callers.
Rates = dict[tuple[str, int, int], list[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured."""

    kinds: tuple[str, ...]
    callers: tuple[int, ...]
    processes: tuple[int, ...]
    rounds: int
    seconds: float
    flush_ms: float
    work: str = "pairs"


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the ratios with their bars."""
    parser = argparse.ArgumentParser(prog="pairs", description=__doc__)
    parser.add_argument("--peers", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--flush-ms", type=float, default=0.0, help="milliseconds that each flush takes longer")
    parser.add_argument("--folder", help="where stores are made (default: the system's for temporary files)")
    options = parser.parse_args(arguments)
    plan = Plan(
        kinds=tuple(options.peers),
        callers=tuple(options.callers),
        processes=tuple(options.processes),
        rounds=options.rounds,
        seconds=options.seconds,
        flush_ms=options.flush_ms,
    )
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        Path(folder).chmod(0o755)  # the user of a server has to reach what slows its flushes
        try:
            facts, rates, flush = measure(plan, Path(folder))
        except NoCompiler as missing:
            report.note(f"pairs with slow flushes are left out: {missing}")
            return []
    return _tell(plan, facts, rates, flush)


def measure(plan: Plan, folder: Path) -> tuple[list[str], Rates, float]:
    """Run all rounds; return what the peers are, the rates, and the milliseconds of one flush."""
    environment = slowed(folder, plan.flush_ms) if plan.flush_ms else {}
    flush = report.flush_ms(folder)
    rates: Rates = {}
    with ExitStack() as stack:
        peers = stack.enter_context(open_peers(plan.kinds, folder, environment))
        teams = _teams(stack, peers, plan, environment)
        for kind, peer in peers.items():
            _fill(peer, kind)
        for number in range(plan.rounds):
            for callers in plan.callers:
                for (kind, processes), started in teams.items():
                    if callers < processes:
                        continue
                    report.note(f"{plan.work}: round {number + 1}, {kind}, {processes} × {callers // processes}")
                    rate = started.run(plan.work, callers, plan.seconds)
                    rates.setdefault((kind, processes, callers), []).append(rate)
        for kind, peer in peers.items():
            _check(peer, kind)
        return [peer.facts for peer in peers.values()], rates, flush


def _teams(
    stack: ExitStack, peers: Mapping[str, Peer], plan: Plan, environment: Mapping[str, str]
) -> dict[tuple[str, int], Team]:
    """Start the callers, those of all peers alternating."""
    return {
        (kind, processes): stack.enter_context(team(peer.door, processes, environment))
        for processes in plan.processes
        for kind, peer in peers.items()
    }


def _fill(peer: Peer, kind: str) -> None:
    connection = connect(peer.door)
    connection.client().push_many([(value(999_999, n), n) for n in range(STANDING)])
    connection.close()
    report.note(f"{kind}: {peer.facts}")


def _check(peer: Peer, kind: str) -> None:
    """Stop when values were lost or came twice."""
    connection = connect(peer.door)
    depth = connection.client().depth()
    connection.close()
    if depth != STANDING:
        raise SystemExit(f"{kind}: the queue holds {depth} items, not {STANDING}")


def ratios(rates: Rates, peer: str, processes: int, callers: int) -> list[float]:
    """Return our rate as a multiple of the peer's, for every round."""
    ours, theirs = (rates.get((kind, processes, callers), []) for kind in (OURS, peer))
    return [our / their for our, their in zip(ours, theirs, strict=False)]


def _tell(plan: Plan, facts: list[str], rates: Rates, flush: float) -> list[report.Figure]:
    slow = f" slowed by {plan.flush_ms:g} ms each" if plan.flush_ms else ""
    report.heading(f"Push and pop_min against peers, durable{slow and ', flushes' + slow}")
    print(f"{SIZE}-byte values, one queue with {STANDING:,} items standing, one operation a call,")
    print(
        f"{plan.rounds} alternating rounds of {plan.seconds:g} s; a flush took {flush:.2f} ms{slow and ' before that'}.\n"
    )
    for fact in facts:
        print(f"- {fact}")
    print()
    peers = [kind for kind in plan.kinds if kind != OURS and any(key[0] == kind for key in rates)]
    rows: list[list[object]] = []
    figures = []
    bars = _SLOW_BARS if plan.flush_ms else _BARS
    for (kind, processes, callers), of in sorted(rates.items(), key=lambda pair: (pair[0][1], pair[0][2])):
        raw = " ".join(f"{rate:,.0f}" for rate in of)
        ratio = [] if kind == OURS else ratios(rates, kind, processes, callers)
        told = f"{statistics.median(ratio):.2f}×" if ratio else ""
        rows.append([f"{processes} × {callers // processes}", kind, round(statistics.median(of)), told, raw])
    report.table(("processes × callers", "peer", "pairs/s, median", "ours is", "each round"), rows)
    for peer in peers:
        if peer in bars and (ratio := ratios(rates, peer, 1, _CALLERS)):
            median, bar = statistics.median(ratio), bars[peer]
            figures.append(
                report.Figure(
                    what=f"embedded pairs/s against {peer}, {_CALLERS} threads{slow and ', flushes' + slow}",
                    value=f"{median:.2f}×",
                    bar=f"≥ {bar:g}×" + ("" if plan.flush_ms or flush <= _FAST_FLUSH else " (for flushes ≤ 0.1 ms)"),
                    met=median >= bar,
                )
            )
    return figures
