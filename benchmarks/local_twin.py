"""The in-process twin `queues.local.PriorityQueue` against the standard library's `queue.PriorityQueue`.

    python -m benchmarks local_twin [--items 100000] [--rounds 7]

The same threads put and get the same ints in both, in alternating rounds of one process; the medians are compared.
"""

import argparse
import queue
import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from benchmarks.harness import report
from queues.local import PriorityQueue

#: The largest time that the twin may take, as a multiple of the standard library's.
_BAR = 1.5
_STANDING = 1_000

Either = queue.PriorityQueue | PriorityQueue
Work = Callable[[Either, list[int]], None]


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the ratios with their bar."""
    parser = argparse.ArgumentParser(prog="local_twin", description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args(arguments)
    chance = random.Random(1)
    items = [chance.randrange(1_000_000_000) for _ in range(options.items)]
    rows = []
    figures = []
    for what, make, work in _cases():
        ours, theirs = [], []
        for number in range(options.rounds):
            report.note(f"local_twin: {what}, round {number + 1}")
            theirs.append(_seconds(queue.PriorityQueue(), work, items))
            ours.append(_seconds(make(), work, items))
        ratio = statistics.median(ours) / statistics.median(theirs)
        each = 1e9 / len(items)
        rows.append(
            (what, round(statistics.median(theirs) * each), round(statistics.median(ours) * each), f"{ratio:.2f}")
        )
        figures.append(
            report.at_most(f"in-process twin against the standard library's: {what}", ratio, _BAR, ".2f", "× its time")
        )
    report.heading("The in-process twin against the standard library's")
    print(f"{len(items):,} random ints, each put and taken once; {options.rounds} alternating rounds, medians.\n")
    report.table(("what", "queue.PriorityQueue, ns an item", "queues.local, ns an item", "ratio"), rows)
    return figures


def _cases() -> Iterator[tuple[str, Callable[[], PriorityQueue[int]], Work]]:
    """Yield what is measured: its name, the twin it is measured on, and the work."""
    yield "1 thread, all put, then all taken", PriorityQueue, _all_then_all
    yield f"1 thread, put and get by turns, {_STANDING:,} standing", PriorityQueue, _by_turns
    yield "1 thread, by turns, one item due in an hour", _with_one_delayed, _by_turns
    yield "8 threads, each its share put, then taken", PriorityQueue, _threads(8, [_all_then_all])
    yield "8 threads, by turns", PriorityQueue, _threads(8, [_by_turns])
    yield "4 threads put, 4 take", PriorityQueue, _threads(4, [_put_all, _get_all])


def _with_one_delayed() -> PriorityQueue[int]:
    jobs: PriorityQueue[int] = PriorityQueue()
    jobs.put(0, due=datetime.now(UTC) + timedelta(hours=1))
    return jobs


def _seconds(jobs: Either, work: Work, items: list[int]) -> float:
    """Return how long the work takes."""
    start = time.perf_counter()
    work(jobs, items)
    return time.perf_counter() - start


def _put_all(jobs: Either, items: list[int]) -> None:
    for item in items:
        jobs.put(item)


def _get_all(jobs: Either, items: list[int]) -> None:
    for _ in items:
        jobs.get()


def _all_then_all(jobs: Either, items: list[int]) -> None:
    _put_all(jobs, items)
    _get_all(jobs, items)


def _by_turns(jobs: Either, items: list[int]) -> None:
    _put_all(jobs, items[:_STANDING])
    for item in items[_STANDING:]:
        jobs.put(item)
        jobs.get()
    _get_all(jobs, items[:_STANDING])


def _threads(shares: int, works: list[Work]) -> Work:
    """Return the work of a thread for each of these works on each share of the items."""

    def run(jobs: Either, items: list[int]) -> None:
        threads = [
            threading.Thread(target=work, args=(jobs, items[number::shares]))
            for number in range(shares)
            for work in works
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return run
