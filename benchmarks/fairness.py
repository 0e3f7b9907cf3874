"""Two processes that saturate one store: which share of the commits each gets.

    python -m benchmarks fairness [--seconds 8] [--threads 1 8]

Each process pushes from so many threads into a queue of its own. A commit's number is in the count of every item
that it pushed (2²⁰ counts a commit), so commits are counted exactly, however many pushes each carries.
"""

import argparse
import multiprocessing
import tempfile
import threading
from multiprocessing.queues import Queue as Pipe
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

from benchmarks.harness import report
from queues import open_store

_VALUE = b"x" * 100
_COUNTS_A_COMMIT = 1 << 20
_PROCESSES = 2
_BAR_PERCENT = 30


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the smaller shares."""
    parser = argparse.ArgumentParser(prog="fairness", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 8])
    options = parser.parse_args(arguments)
    rows = []
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        flush = report.flush_ms(Path(folder))
        for threads in options.threads:
            report.note(f"fairness: {threads} threads")
            results = measure(f"lmdb:{folder}/store-{threads}", threads, options.seconds)
            commits = [commit for commit, _ in results]
            shares = " : ".join(f"{100 * commit / max(1, sum(commits)):.0f} %" for commit in commits)
            least = 100 * min(commits) / max(1, sum(commits))
            what = f"smaller share of commits, two processes of {threads} threads"
            figures.append(report.at_least(what, least, _BAR_PERCENT, unit=" %"))
            rows.append((threads, shares, round(sum(commits) / options.seconds), *(pushes for _, pushes in results)))
    report.heading("Two saturating processes on one store")
    print(f"Each pushes 100-byte values into its own queue for {options.seconds:g} s, flush {flush:.2f} ms.\n")
    report.table(
        ("threads in each", "share of commits", "commits/s together", "pushes of the first", "of the second"), rows
    )
    return figures


def measure(url: str, threads: int, seconds: float) -> list[tuple[int, int]]:
    """Return (commits, pushes) of each process."""
    context = multiprocessing.get_context("spawn")
    begin, stop = context.Barrier(_PROCESSES + 1), context.Event()
    answers: Pipe[tuple[int, int, int]] = context.Queue()
    with open_store(url) as store:
        for number in range(_PROCESSES):
            store.create_queue(f"jobs:{number}")
    processes = [
        context.Process(target=saturate, args=(url, number, threads, begin, stop, answers))
        for number in range(_PROCESSES)
    ]
    for process in processes:
        process.start()
    begin.wait(60)
    stop.wait(seconds)
    stop.set()
    found = sorted(answers.get(timeout=60) for _ in processes)
    for process in processes:
        process.join(60)
    return [(commits, pushes) for _, commits, pushes in found]


def saturate(
    url: str, number: int, threads: int, begin: Barrier, stop: Event, answers: "Pipe[tuple[int, int, int]]"
) -> None:
    """Push as fast as the store takes it, and answer what was committed. The entry of a process."""
    pushed: list[list[int]] = [[] for _ in range(threads)]
    halt = threading.Event()
    with open_store(url) as store:
        queue = store.queue(f"jobs:{number}")

        def work(place: int) -> None:
            while not halt.is_set():
                pushed[place].append(queue.push(_VALUE, priority=1).count)

        workers = [threading.Thread(target=work, args=(place,)) for place in range(threads)]
        begin.wait(60)
        for worker in workers:
            worker.start()
        stop.wait()
        halt.set()
        for worker in workers:
            worker.join()
    counts = [count for each in pushed for count in each]
    answers.put((number, len({count // _COUNTS_A_COMMIT for count in counts}), len(counts)))
