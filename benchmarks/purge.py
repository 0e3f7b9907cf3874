"""What a purge and its undo cost, at a thousand and at a million items.

    python -m benchmarks purge [--items 1000000] [--rounds 20] [--store URL]

Each round purges the queue by a person's act, with its trash and audit records, and undoes that: two durable
transactions. Measured is the time of each call, once with nothing pushed meanwhile, and once with an item pushed
between the two, so that the undo lists two generations; what is then merged in the background is not part of it.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from benchmarks.harness import report
from queues import Actions, Queue, Store, open_store

T = TypeVar("T")
_BAR_MS = 50.0
_SMALL = 1_000
_PUSHED_AT_ONCE = 1_000


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the slowest calls on the large queue."""
    parser = argparse.ArgumentParser(prog="purge", description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--store", metavar="URL", help="an empty store (default: an embedded one)")
    options = parser.parse_args(arguments)
    sizes = (_SMALL, options.items)
    measured: dict[tuple[int, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        flush = report.flush_ms(Path(folder))
        url = options.store or f"lmdb:{folder}/store"
        with open_store(url) as store:
            queues = {size: fill(store, f"jobs:{size}", size) for size in sizes}
            for _ in range(options.rounds):
                for size, queue in queues.items():
                    for what, ms in alternate(store.actions("bench"), queue, size).items():
                        measured.setdefault((size, what), []).append(ms)
            for size, queue in queues.items():
                for what, ms in with_newcomer(store, queue, size).items():
                    measured.setdefault((size, what), []).append(ms)
    report.heading("Purge and its undo")
    print(f"{options.rounds} rounds, {url.partition(':')[0]}, 100-byte values, flush {flush:.2f} ms. Milliseconds.\n")
    report.table(
        ("items", "call", "p50", "p95", "most"),
        [
            (size, what, report.percentile(times, 50), report.percentile(times, 95), max(times))
            for (size, what), times in measured.items()
        ],
    )
    figures = []
    for what in ("purge", "undo"):
        most = max(measured[options.items, what])
        title = f"{what} of {options.items:,} items, the slowest of {options.rounds}"
        figures.append(report.at_most(title, most, _BAR_MS, ".1f", " ms"))
    return figures


def fill(store: Store, name: str, size: int) -> Queue:
    """Create a queue of so many items."""
    queue = store.create_queue(name)
    report.note(f"purge: pushing {size:,} items")
    for start in range(0, size, _PUSHED_AT_ONCE):
        queue.push_many([(b"x" * 100, n % 10) for n in range(start, min(size, start + _PUSHED_AT_ONCE))])
    return queue


def alternate(acts: Actions, queue: Queue, size: int) -> dict[str, float]:
    """Purge and undo; return the milliseconds of both."""
    purged, purge_ms = timed(lambda: acts.purge(queue.name, confirm=queue.name))
    if purged.count != size or queue.depth():
        raise SystemExit("the purge did not take everything")
    undone, undo_ms = timed(lambda: acts.undo(purged.trash_ids[0]))
    if undone.count != size or queue.depth() != size:
        raise SystemExit("the undo did not bring everything back")
    return {"purge": purge_ms, "undo": undo_ms}


def with_newcomer(store: Store, queue: Queue, size: int) -> dict[str, float]:
    """Purge, push an item, undo; return the milliseconds of the undo, and pop from both generations."""
    acts = store.actions("bench")
    purged = acts.purge(queue.name, confirm=queue.name)
    queue.push(b"new", priority=-1)
    _, undo_ms = timed(lambda: acts.undo(purged.trash_ids[0]))
    taken, pop_ms = timed(queue.pop_min)
    if taken is None or taken.value != b"new" or queue.depth() != size:
        raise SystemExit("the undo lost its place")
    return {"undo after a push": undo_ms, "pop_min of two generations": pop_ms}


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """Return what a call gave and its milliseconds."""
    began = time.perf_counter()
    answer = call()
    return answer, (time.perf_counter() - began) * 1000
