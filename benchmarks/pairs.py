"""Pairs of push and pop_min a second on the embedded store, durable: one operation a call, at 1 and at 64 threads.

    python -m benchmarks pairs [--seconds 3] [--rounds 5] [--threads 1 64] [--folder DIR]

Every call returns after its commit is flushed. Rounds of the thread counts alternate; the median is told.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from pathlib import Path

from benchmarks import report
from queues import Queue, open_store

_VALUE = b"x" * 100
#: Items that lie in the queue beside those of the pairs.
_STANDING = 1_000


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the medians."""
    parser = argparse.ArgumentParser(prog="pairs", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--folder", help="where the store is made (default: the system's for temporary files)")
    options = parser.parse_args(arguments)
    rates: dict[int, list[float]] = {count: [] for count in options.threads}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, open_store(f"lmdb:{folder}/store") as store:
        queue = store.create_queue("jobs")
        queue.push_many([(_VALUE, n) for n in range(_STANDING)])
        flush = report.flush_ms(Path(folder))
        for number in range(options.rounds):
            for count in rates:
                report.note(f"pairs: round {number + 1}, {count} threads")
                rates[count].append(pairs_a_second(queue, count, options.seconds))
        if queue.depth() != _STANDING:
            raise SystemExit(f"the queue holds {queue.depth()} items, not {_STANDING}")
    report.heading("Push and pop_min, embedded, durable")
    print(
        f"100-byte values, one queue, one operation a call, {options.rounds} rounds of {options.seconds:g} s, "
        f"flush {flush:.2f} ms.\n"
    )
    report.table(
        ("threads", "pairs/s, median", "lowest", "highest"),
        [(count, round(statistics.median(of)), round(min(of)), round(max(of))) for count, of in rates.items()],
    )
    return [
        report.Figure(what=f"pairs/s embedded, durable, {count} threads", value=f"{statistics.median(of):,.0f}")
        for count, of in rates.items()
    ]


def pairs_a_second(queue: Queue, threads: int, seconds: float) -> float:
    """Let so many threads push and pop for so long; return their pairs a second together."""
    stop = threading.Event()
    begin = threading.Barrier(threads + 1)
    done = [0] * threads
    failed: list[BaseException] = []

    def work(place: int) -> None:
        begin.wait()
        try:
            while not stop.is_set():
                queue.push(_VALUE, priority=done[place] % 1000)
                if queue.pop_min() is None:
                    raise RuntimeError("the queue ran empty")
                done[place] += 1
        except BaseException as error:
            failed.append(error)
            raise

    workers = [threading.Thread(target=work, args=(place,)) for place in range(threads)]
    for worker in workers:
        worker.start()
    begin.wait()
    start = time.perf_counter()
    stop.wait(seconds)
    stop.set()
    for worker in workers:
        worker.join()
    if failed:
        raise failed[0]
    return sum(done) / (time.perf_counter() - start)
