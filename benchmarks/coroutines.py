"""Pairs of push and pop_min a second from coroutines of one event loop: ours against redis-py's and psycopg's.

    python -m benchmarks coroutines [--callers 64 256] [--seconds 2] [--rounds 5] [--peers embedded redis_aof postgres]
                                    [--folder DIR]

The same work as `pairs`; each peer is called through its own asyncio client. The bar compares with the faster of
Redis's two: by coroutines here, or by 64 threads, which are measured in the same rounds.
"""

import statistics
from dataclasses import replace

from benchmarks.harness import report, rounds

_CALLERS, _THREADS = 256, 64
_BAR = 10.0


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the ratio with its bar."""
    plan = rounds.plan_of("coroutines", __doc__, arguments, callers=(64, 256), processes=(1,))
    plan = replace(plan, beside=(("pairs", "redis_aof", _THREADS),))
    measured = rounds.measure(plan)
    if measured is None:
        return []
    rounds.tell(
        plan,
        measured,
        title="Push and pop_min by coroutines, durable",
        how="one event loop; “pairs” are by threads",
        unit="pairs",
    )
    ours = measured.rates.get((rounds.OURS, 1, _CALLERS))
    asked = (("redis_aof", 1, _CALLERS), ("redis_aof: pairs", 1, _THREADS))
    theirs = [statistics.median(measured.rates[key]) for key in asked if key in measured.rates]
    if not ours or not theirs:
        return []
    ratio = statistics.median(ours) / max(theirs)
    return [
        report.Figure(
            what=f"embedded pairs/s, {_CALLERS} coroutines, against Redis by as many or by {_THREADS} threads",
            value=f"{ratio:.2f}×",
            bar=f"≥ {_BAR:g}×",
            met=ratio >= _BAR,
        )
    ]
