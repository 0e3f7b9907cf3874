"""The embedded store by shapes of processes and callers, against Redis and PostgreSQL; RabbitMQ for orientation.

    python -m benchmarks shapes [--quick] [--shapes 4x1 lease-4x4 …] [--peers embedded redis_aof postgres rabbitmq]
                                [--flush-ms 0 4] [--seconds 1.5] [--rounds 5] [--folder DIR]

`4x1` are four processes of one caller each. A caller pushes a value and pops the smallest, again and again (`lease`:
pushes, leases and acknowledges); each call returns after its flush. Callers are threads (`coroutines`: of one event
loop a process), and each has its own connection to a server. All of it on the disk as it is, and with each flush of
all processes slowed by 4 ms. `--quick`, 4 minutes, shortens the rounds and leaves RabbitMQ out.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

from benchmarks.harness import report, rounds
from benchmarks.harness.callers import team
from benchmarks.harness.rounds import OURS, Measured, Shape
from benchmarks.peers import open_peers
from benchmarks.peers.peer import KINDS

#: Our rate as a multiple of each peer's that a shape has to reach.
BARS = {
    Shape(1, 1): 1.0,
    Shape(1, 4): 1.0,
    Shape(1, 16): 1.5,
    Shape(1, 64): 3.0,
    Shape(1, 256, "coroutines"): 6.0,
    Shape(4, 1): 1.0,
    Shape(4, 4): 1.25,
    Shape(4, 16): 1.5,
    Shape(4, 4, "lease"): 1.0,
    Shape(4, 64, "coroutines"): 1.0,
    Shape(8, 1): 1.25,
}
_PEERS = ("redis_aof", "postgres")
_ORIENTATION = "rabbitmq"
#: Whose p99 of a push has a bar: so many flushes, and so many milliseconds more.
_LONE_CALLERS, _FLUSHES, _MORE_MS = Shape(4, 1), 3, 1.0
#: Percent of a core that an idle process may take.
_IDLE_BAR = 0.2
#: Seconds after which a process has done what its last calls left to do.
_SETTLED = 3.0


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the ratios and times with their bars."""
    parser = argparse.ArgumentParser(prog="shapes", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short rounds, without RabbitMQ")
    parser.add_argument("--shapes", nargs="+", choices=list(map(str, BARS)), default=list(map(str, BARS)))
    parser.add_argument("--peers", nargs="+", choices=(*KINDS, _ORIENTATION), default=(*KINDS, _ORIENTATION))
    parser.add_argument("--flush-ms", type=float, nargs="+", default=(0.0, 4.0), help="by which flushes are slowed")
    parser.add_argument("--seconds", type=float, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where stores are made (default: the system's for temporary files)")
    options = parser.parse_args(arguments)
    seconds = options.seconds or (0.35 if options.quick else 1.5)
    figures = []
    for flush_ms in options.flush_ms:
        plan = rounds.Plan(
            kinds=[kind for kind in options.peers if not (options.quick and kind == _ORIENTATION)],
            shapes=[shape for shape in BARS if str(shape) in options.shapes],
            rounds=options.rounds,
            seconds=seconds,
            folder=options.folder,
            flush_ms=flush_ms,
        )
        measured = rounds.measure(plan)
        if measured is not None:
            rounds.tell(plan, measured, title="Shapes of processes and callers", how="one operation a call")
            figures += judged(measured, rounds.slow_words(plan))
    if _LONE_CALLERS in plan.shapes:
        share = idle_percent(options.folder, 2 * seconds + 2)
        figures.append(report.at_most("an idle process", share, _IDLE_BAR, ".2f", " % of a core"))
    return figures


def judged(measured: Measured, how: str) -> list[report.Figure]:
    """Return the ratios to the peers and the p99 of a push, with their bars."""
    figures = []
    for shape, bar in BARS.items():
        for peer in _PEERS:
            ratios = measured.ratios(peer, shape)
            if ratios:
                what = f"{shape} against {peer}{how}"
                figures.append(report.at_least(what, statistics.median(ratios), bar, ".2f", "×"))
    tail, most = measured.p99_ms(OURS, _LONE_CALLERS), _FLUSHES * measured.slowed + _MORE_MS
    if tail is not None:
        what, bar_text = (
            f"p99 of a push, {_LONE_CALLERS}{how}",
            f"≤ {most:.2f} ms ({_FLUSHES} flushes + {_MORE_MS:g} ms)",
        )
        figures.append(report.Figure(what=what, value=f"{tail:.2f} ms", bar=bar_text, met=tail <= most))
    return figures


def idle_percent(folder: str | None, seconds: float) -> float:
    """Return the greatest share of a core that one of four processes takes, long enough after it pushed and popped.

    A second after the last commit the data file is made whole; that is work of the calls before.
    """
    report.note("an idle process")
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix="pq-bench-") as place,
        open_peers((OURS,), Path(place)) as peers,
    ):
        processes = _LONE_CALLERS.processes
        with team(peers[OURS].door, processes) as started:
            started.run("pairs", processes, seconds / 10)
            started.run("idle", processes, _SETTLED)
            return 100 * max(started.run("idle", processes, seconds).rates)
