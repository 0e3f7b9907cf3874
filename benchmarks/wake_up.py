"""How soon a change wakes a reader in another process, on the embedded store.

    python -m benchmarks wake_up [--rounds 1000]

One process pushes to a queue when it is told to; this one waits for a change of the queue, as the site does for its
screens. The delay is from the moment when the push was answered, durable, to the moment when the waiting ended, by
the monotonic clock that all processes of a machine share. Between two rounds lie 20 ms without a change.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks import report
from queues import Store, open_store

_BAR_MS = 10.0
_PAUSE = 0.020
_PATIENCE = 60.0


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the 95th percentile."""
    parser = argparse.ArgumentParser(prog="wake_up", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1_000)
    options = parser.parse_args(arguments)
    report.note(f"wake_up: {options.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        flush = report.flush_ms(Path(folder))
        url = f"lmdb:{folder}/store"
        with open_store(url) as store:
            store.create_queue("jobs")
            delays = measure(url, store, options.rounds)
    p50, p95, p99 = (report.percentile(delays, percent) for percent in (50, 95, 99))
    report.heading("Waking a reader in another process")
    print(f"{options.rounds} pushes, {_PAUSE * 1000:.0f} ms apart, flush {flush:.2f} ms. Milliseconds.\n")
    report.table(("p50", "p95", "p99", "most"), [(p50, p95, p99, max(delays))])
    return [
        report.Figure(
            what="wake-up in another process, p95",
            value=f"{p95:.1f} ms",
            bar=f"≤ {_BAR_MS:.0f} ms",
            met=p95 <= _BAR_MS,
        )
    ]


def measure(url: str, store: Store, rounds: int) -> list[float]:
    """Return the delay of each round in milliseconds."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=push_when_told, args=(url, there), daemon=True)
    process.start()
    queue = store.queue("jobs")
    delays = []
    pause = threading.Event()
    _receive(here)
    for _ in range(rounds):
        pause.wait(_PAUSE)
        snapshot = store.snapshot([queue.id], preview=0)
        here.send(True)
        if not store.wait_for_change(snapshot, timeout=_PATIENCE):
            raise SystemExit("a change woke nobody")
        woken = time.monotonic()
        delays.append((woken - _receive(here)) * 1000)
    here.send(False)
    process.join(_PATIENCE)
    return delays


def push_when_told(url: str, told: Connection) -> None:
    """Push once for every message, and answer when that was durable. The entry of a process."""
    with open_store(url) as store:
        queue = store.queue("jobs")
        told.send(time.monotonic())
        while told.recv():
            queue.push(b"x" * 100, priority=1)
            told.send(time.monotonic())


def _receive(connection: Connection) -> float:
    if not connection.poll(_PATIENCE):
        raise SystemExit("the other process does not answer")
    moment: float = connection.recv()
    return moment
