"""Pairs of push and pop_min a second from coroutines of one event loop: ours against redis-py's and psycopg's.

    python -m benchmarks coroutines [--callers 64 256] [--seconds 2] [--rounds 5] [--peers embedded redis_aof postgres]
                                    [--folder DIR]

The same work as `pairs`; each peer is called through its own asyncio client. The bar compares with the faster of
Redis's two: by coroutines here, or by 64 threads, which are measured in the same rounds.
"""

from __future__ import annotations

import statistics
from dataclasses import replace

from benchmarks import report, rounds

_CALLERS, _THREADS = 256, 64
_BAR = 10.0


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the ratio with its bar."""
    plan = rounds.plan_of("coroutines", __doc__, arguments, callers=(64, 256), processes=(1,))
    measured = rounds.measure(plan)
    threads = rounds.measure(replace(plan, work="pairs", kinds=("redis_aof",), callers=(_THREADS,), rounds=plan.rounds))
    if measured is None or threads is None:
        return []
    rounds.tell(
        plan, measured, title="Push and pop_min by coroutines against peers, durable", how="one loop", unit="pairs"
    )
    ours = measured.rates.get((rounds.OURS, 1, _CALLERS))
    theirs = [
        statistics.median(of)
        for of in (measured.rates.get(("redis_aof", 1, _CALLERS)), threads.rates.get(("redis_aof", 1, _THREADS)))
        if of
    ]
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
