"""push_many and pop_many of 100, durable: items a second, each pushed and each popped one counted.

    python -m benchmarks batches [--callers 1 16 64] [--processes 1] [--seconds 2] [--rounds 5] [--flush-ms MS]
                                 [--peers embedded redis_aof postgres] [--folder DIR]

Each call is one commit's worth: all of its hundred items, or none.
"""

from benchmarks.harness import report, rounds
from benchmarks.harness.callers import MANY

_BAR = 150_000


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return our best rate with its bar."""
    plan = rounds.plan_of("batches", __doc__, arguments, callers=(1, 16, 64), processes=(1,))
    measured = rounds.measure(plan)
    if measured is None:
        return []
    rounds.tell(
        plan,
        measured,
        title=f"push_many and pop_many of {MANY} against peers, durable",
        how=f"{MANY} items a call, threads, pushed and popped items both counted",
        unit="items",
    )
    best = max(measured.medians(rounds.OURS).values(), default=0.0)
    return [
        report.Figure(
            what=f"embedded push_many and pop_many of {MANY}, items/s",
            value=f"{best:,.0f}",
            bar=f"≥ {_BAR:,}",
            met=best >= _BAR,
        )
    ]
