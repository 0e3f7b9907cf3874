"""Pairs of push and pop_min a second, durable, one operation a call: the embedded store against Redis and PostgreSQL.

    python -m benchmarks pairs [--callers 1 16 64 256] [--processes 1 4] [--seconds 2] [--rounds 5] [--flush-ms MS]
                               [--peers embedded redis_aof postgres] [--folder DIR] [--pinned]

Every call returns after its flush; callers are threads. Peers and numbers of callers alternate within each round;
medians are told, and ratios of the rates of the same round.
"""

import statistics

from benchmarks.harness import report, rounds

#: Callers in one process whose ratio to each peer has a bar, and the bars: on the disk as it is, and on a slowed one.
_CALLERS = 64
_BARS = {"redis_aof": 5.0, "postgres": 5.0}
_SLOW_BARS = {"redis_aof": 1.5}
#: Milliseconds of a flush up to which the bars hold; on a slower disk the rest do.
_FAST_FLUSH = 0.1


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the ratios with their bars."""
    plan = rounds.plan_of("pairs", __doc__, arguments, callers=(1, 16, 64, 256), processes=(1, 4))
    measured = rounds.measure(plan)
    if measured is None:
        return []
    rounds.tell(
        plan,
        measured,
        title="Push and pop_min against peers, durable",
        how="one operation a call, threads",
        unit="pairs",
    )
    figures = []
    for peer, bar in (_SLOW_BARS if plan.flush_ms else _BARS).items():
        ratios = measured.ratios(peer, 1, _CALLERS)
        if ratios:
            within = plan.flush_ms or measured.flush <= _FAST_FLUSH
            figures.append(
                report.Figure(
                    what=f"embedded pairs/s against {peer}, {_CALLERS} threads{rounds.slow_words(plan)}"
                    + (", pinned" if plan.pinned else ""),
                    value=f"{statistics.median(ratios):.2f}×",
                    bar=f"≥ {bar:g}×" + ("" if within else f" (where a flush takes ≤ {_FAST_FLUSH} ms)"),
                    met=statistics.median(ratios) >= bar,
                )
            )
    return figures
