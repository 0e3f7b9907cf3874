"""What waiters cost that wait for nothing: 200 blocked pops, as processor time of the process.

    python -m benchmarks idle_waiters [--waiters 200] [--seconds 10] [--store URL]

Once all on one queue, once each on a queue of its own, and once on the embedded store while another process pushes to
a queue that no process here waits for: the store then has to be looked at.
"""

import argparse
import multiprocessing
import tempfile
import threading
import time
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks.harness import report
from queues import Store, open_store

_BAR = 2.0
#: Seconds between two pushes of the other process.
_PAUSE = 0.010
_PATIENCE = 60.0


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the worst share of a core of waiters that nothing happens around."""
    parser = argparse.ArgumentParser(prog="idle_waiters", description=__doc__)
    parser.add_argument("--waiters", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--store", metavar="URL", help="an empty store (default: an embedded one)")
    options = parser.parse_args(arguments)
    report.note(f"idle_waiters: {options.waiters} waiters, {options.seconds:g} s each")
    with tempfile.TemporaryDirectory() as folder:
        url = options.store or f"lmdb:{Path(folder) / 'store'}"
        rows = [
            (what, measure(url, options.waiters, options.seconds, queues=queues, busy=busy))
            for what, queues, busy in (
                ("no waiters", 0, False),
                ("all on one queue", 1, False),
                ("each on its own queue", options.waiters, False),
                ("all on one queue, 100 pushes/s of another process", 1, True),
                ("each on its own queue, 100 pushes/s of another process", options.waiters, True),
            )
        ]
    report.heading("Idle waiters")
    print(f"{options.waiters} waiters, {options.seconds:g} s, {url.partition(':')[0]}. Percent of one core.\n")
    report.table(("waiters", "percent"), rows)
    worst = max(percent for what, percent in rows[1:3])
    return [report.at_most(f"{options.waiters} idle waiters", worst, _BAR, ".2f", " % of a core")]


def measure(url: str, waiters: int, seconds: float, *, queues: int, busy: bool) -> float:
    """Return the percent of a core that this process takes while so many pops wait on so many queues."""
    with open_store(url) as store:
        store.create_queue("elsewhere", exist_ok=True)
        names = [f"idle-{n}" for n in range(queues)]
        for name in names:
            store.create_queue(name, exist_ok=True)
        threads = [begin(store, names[n % queues]) for n in range(waiters if queues else 0)]
        rest = threading.Event()
        context = multiprocessing.get_context("spawn")
        ready, done = context.Event(), context.Event()
        other = context.Process(target=push_until, args=(url, ready, done), daemon=True)
        if busy:
            other.start()
            ready.wait(_PATIENCE)
        rest.wait(2.0)  # until all of them are asleep
        before, began = time.process_time(), time.monotonic()
        rest.wait(seconds)
        percent = 100 * (time.process_time() - before) / (time.monotonic() - began)
        if busy:
            done.set()
            other.join(_PATIENCE)
        for n in range(len(threads)):
            store.queue(names[n % queues]).push(b"end", priority=1)
        for thread in threads:
            thread.join(_PATIENCE)
        return percent


def begin(store: Store, name: str) -> threading.Thread:
    """Begin to wait for an item."""
    queue = store.queue(name)
    thread = threading.Thread(target=lambda: queue.pop_min(wait=True), daemon=True)
    thread.start()
    return thread


def push_until(url: str, ready: Event, done: Event) -> None:
    """Push to a queue without waiters until told to end. The entry of a process."""
    with open_store(url) as store:
        queue = store.queue("elsewhere")
        ready.set()
        while not done.wait(_PAUSE):
            queue.push(b"x" * 100, priority=1)
