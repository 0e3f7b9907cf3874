"""What depth costs: pop_min, pop_max and peek of a queue of 10,000,000 items against one of 1,000; and its memory.

    python -m benchmarks depths [--items 10000000] [--calls 300] [--rounds 5] [--popped 200000] [--keep DIR]

Both queues lie in one store. The deep one is filled once: with `--keep` it stays in that folder and the next run uses
it again. It is filled in the order of priorities, so that neighbors by key are neighbors by id too: an easier load
than items that came at random. Calls of both depths alternate; every pop is a commit of its own, and is pushed back,
uncounted, so that the depths stay. Then a fresh process takes so many items off the deep queue in batches: its
anonymous memory (what the process itself holds; the store's file is the system's cache) may grow by 200 MB at most.
"""

import argparse
import multiprocessing
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from benchmarks.harness import report
from queues import PriorityQueue, Queue, Store, open_store
from queues.errors import QueueNotFound, TransactionTooOld

_SHALLOW = 1_000
_VALUE = b"x" * 100
_AT_ONCE = 1_000
_PRIORITIES = 1_000_000
_BAR = 1.3
_MEMORY_BAR_MB = 200.0


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the ratios and the memory with their bars."""
    parser = argparse.ArgumentParser(prog="depths", description=__doc__)
    parser.add_argument("--items", type=int, default=10_000_000)
    parser.add_argument("--calls", type=int, default=300, help="of each verb, depth and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--popped", type=int, default=200_000)
    parser.add_argument("--keep", help="a folder in which the filled store stays")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        folder = options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="pq-bench-"))
        url = f"lmdb:{folder}/depths-{options.items}"
        with open_store(url) as store:
            shallow, deep = _filled(store, "shallow", _SHALLOW), _filled(store, "deep", options.items)
            times = _alternate(shallow, deep, options.rounds, options.calls)
        grown = _memory(url, options.popped)
        flush = report.flush_ms(Path(folder))
    return _tell(times, options.items, options.popped, grown, flush)


def _filled(store: Store, name: str, items: int) -> Queue:
    """Return the queue of this name with so many items, their priorities spread evenly.

    They come in order: at random each of ten million would write a page of its own. So neighbors by priority are
    neighbors by id too, which they are not in a queue that was filled at random.
    """
    try:
        queue = store.queue(name)
    except QueueNotFound:
        queue = store.create_queue(name)
    there = queue.depth()
    for first in range(there, items, _AT_ONCE):
        if (first - there) % 500_000 == 0:
            report.note(f"depths: {name} holds {first:,} of {items:,}")
        _push(queue, [(_VALUE, at * _PRIORITIES // items) for at in range(first, min(first + _AT_ONCE, items))])
    return queue


def _push(queue: Queue, items: list[tuple[bytes, int]]) -> None:
    """Push these, in two parts where a busy machine or disk does not get through all of them in time."""
    try:
        queue.push_many(items)
    except TransactionTooOld:  # nothing of it was written
        if len(items) == 1:
            raise
        report.note(f"depths: {len(items):,} items took too long, half of them follow")
        half = len(items) // 2
        _push(queue, items[:half])
        _push(queue, items[half:])


Times = dict[str, dict[str, list[float]]]


def _alternate(shallow: Queue, deep: Queue, rounds: int, calls: int) -> Times:
    """Return the medians of every round, by verb and depth, in microseconds."""
    verbs: dict[str, Callable[[Queue], object]] = {
        "pop_min": PriorityQueue.pop_min,
        "pop_max": PriorityQueue.pop_max,
        "peek_min": PriorityQueue.peek_min,
        "peek_max": PriorityQueue.peek_max,
    }
    times: Times = {verb: {"shallow": [], "deep": []} for verb in verbs}
    for number in range(rounds):
        report.note(f"depths: round {number + 1}")
        for verb, call in verbs.items():
            both: dict[str, list[float]] = {"shallow": [], "deep": []}
            for _ in range(calls):
                for depth, queue in (("shallow", shallow), ("deep", deep)):
                    start = time.perf_counter()
                    item = call(queue)
                    both[depth].append(time.perf_counter() - start)
                    if verb.startswith("pop"):
                        queue.push(_VALUE, priority=item.priority)
            for depth, of in both.items():
                times[verb][depth].append(statistics.median(of) * 1e6)
    return times


def _memory(url: str, popped: int) -> float:
    """Let a fresh process pop so many items; return by how many MB its anonymous memory grew at most."""
    spawning = multiprocessing.get_context("spawn")
    ours, theirs = spawning.Pipe(duplex=False)
    process = spawning.Process(target=_pop_all, args=(url, popped, theirs))
    process.start()
    theirs.close()
    grown: float = ours.recv()
    process.join()
    return grown


def _pop_all(url: str, popped: int, pipe: Pipe) -> None:
    with open_store(url) as store:
        queue = store.queue("deep")
        queue.push(queue.pop_min().value, priority=0)
        before = most = _anonymous_mb()
        left, taken = popped, []
        while left > 0 and (items := queue.pop_many(min(_AT_ONCE, left))):
            left -= len(items)
            taken += [item.priority for item in items]
            most = max(most, _anonymous_mb())
        pipe.send(most - before)
        for done in range(0, len(taken), _AT_ONCE):  # for the next run
            queue.push_many([(_VALUE, priority) for priority in taken[done : done + _AT_ONCE] if priority is not None])


def _anonymous_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def _tell(times: Times, items: int, popped: int, grown: float, flush: float) -> list[report.Figure]:
    report.heading(f"What depth costs: {items:,} items against {_SHALLOW:,}")
    print(
        f"One caller, every pop a flushed commit (a flush takes {flush:.2f} ms), alternating calls, medians in µs. "
        "Filled in the order of priorities, an easier load than at random.\n"
    )
    rows: list[list[object]] = []
    figures = []
    for verb, of in times.items():
        ratio = statistics.median(deep / shallow for shallow, deep in zip(of["shallow"], of["deep"], strict=True))
        shallow, deep = (statistics.median(of[depth]) for depth in ("shallow", "deep"))
        rows.append([verb, round(shallow), round(deep), f"{ratio:.2f}"])
        figures.append(report.at_most(f"{verb} at {items:,} items against {_SHALLOW:,}", ratio, _BAR, ".2f", "×"))
    report.table(("verb", f"{_SHALLOW:,} items", f"{items:,} items", "ratio"), rows)
    print(f"Taking {popped:,} items in batches of {_AT_ONCE:,} let anonymous memory grow by {grown:.1f} MB at most.\n")
    return [
        *figures,
        report.at_most(
            f"anonymous memory grown by popping {popped:,} of {items:,} items", grown, _MEMORY_BAR_MB, unit=" MB"
        ),
    ]
