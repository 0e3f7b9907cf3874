"""How soon what falls due in an idle site's queues is done, without any worker.

    python -m benchmarks idle_due [--items 200] [--queues 1000]

A site runs, as the README starts it, on a store with many queues that no process pops from. Delayed items and leases of
some of them fall due one after the other; another process looks on by the same watches as a screen and notes when each
is ready, after the moment that it was due at. No process has the site's pages open.
"""

import argparse
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from benchmarks.harness import report
from benchmarks.harness.running_site import RunningSite
from queues import Queue, Store, open_store

_BAR_MS = 1_000.0
_PATIENCE = 60.0
#: Seconds until the first falls due, and between two of them.
_FIRST, _APART = 3.0, 0.05


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return how late the latest was."""
    parser = argparse.ArgumentParser(prog="idle_due", description=__doc__)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--queues", type=int, default=1_000)
    options = parser.parse_args(arguments)
    report.note(f"idle_due: {options.items} items in {options.queues:,} queues")
    with (
        tempfile.TemporaryDirectory() as folder,
        RunningSite(Path(folder)) as site,
        open_store(site.store_url) as store,
    ):
        names = [f"idle:{n}" for n in range(options.queues)]
        for name in names:
            store.create_queue(name)
        late = measure(store, [store.queue(names[n % options.queues]) for n in range(options.items)])
    report.heading("What falls due in idle queues")
    print(f"{options.items} delayed items and leases in {options.queues:,} queues, no worker. Milliseconds late.\n")
    report.table(
        ("what", "p50", "p95", "most"),
        [(what, report.percentile(ms, 50), report.percentile(ms, 95), max(ms)) for what, ms in late.items()],
    )
    most = max(max(ms) for ms in late.values())
    return [report.at_most("due in an idle queue to ready", most, _BAR_MS, unit=" ms")]


def measure(store: Store, queues: list[Queue]) -> dict[str, list[float]]:
    """Return by how many milliseconds each was late; half are delayed items, half are leases."""
    late: dict[str, list[float]] = {"delayed item ready": [], "lease ended": []}
    begun = time.time()
    due: list[tuple[float, Queue, str]] = []
    for n, queue in enumerate(queues):
        seconds = begun + _FIRST + n * _APART - time.time()
        if n % 2:
            item = queue.push(b"x" * 100, priority=1, delay=timedelta(seconds=seconds))
            assert item.due_at is not None
            due.append((item.due_at.timestamp(), queue, "delayed item ready"))
        else:
            queue.push(b"x" * 100, priority=1)
            lease = queue.lease(seconds=seconds)
            due.append((lease.expires_at.timestamp(), queue, "lease ended"))
    for moment, queue, what in due:
        snapshot = store.snapshot([queue.id], preview=0)
        while not snapshot.queues[queue.id].totals.ready:
            if not store.wait_for_change(snapshot, timeout=_PATIENCE):
                raise SystemExit("something that fell due was not done")
            snapshot = store.snapshot([queue.id], preview=0, previous=snapshot)
        late[what].append(max(0.0, (time.time() - moment) * 1000))
    return late
