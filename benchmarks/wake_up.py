"""How soon a push wakes a process that waits, on the embedded store or another.

    python -m benchmarks wake_up [--rounds 1000] [--store URL]

Measured are a reader that waits for a change of the queue in another process, as the site does for its screens; and a
blocked pop, in another process and in the same one, alone and with 50 in line. The delay is from the moment when the
push was answered, durable, to the moment when the waiting ended, of a pop with its item, durably taken, by the
monotonic clock that all processes of a machine share. Between two rounds lie 20 ms without a change.
"""

import argparse
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue

from benchmarks.harness import report
from queues import Store, open_store

_BAR_MS = 10.0
_PAUSE = 0.020
_PATIENCE = 60.0
#: Waiters behind the one that is woken.
_CROWD = 50

#: Waits until the push has been noticed; and pushes, and returns when that was answered.
Wait = Callable[[], None]
Push = Callable[[], float]


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the 95th percentiles."""
    parser = argparse.ArgumentParser(prog="wake_up", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--store", metavar="URL", help="an empty store (default: an embedded one)")
    options = parser.parse_args(arguments)
    report.note(f"wake_up: {options.rounds} rounds of each kind")
    with tempfile.TemporaryDirectory() as folder:
        flush = report.flush_ms(Path(folder))
        url = options.store or f"lmdb:{folder}/store"
        with open_store(url) as store, another_process(url, store) as push_elsewhere:
            measured = [
                ("a reader in another process", measure(reading(store), push_elsewhere, options.rounds)),
                ("a blocked pop in another process", measure(popping(store), push_elsewhere, options.rounds)),
                ("a blocked pop in the same process", measure_here(store, options.rounds)),
            ]
            with crowd(store):
                kind = f"a blocked pop in another process, {_CROWD} waiters there"
                measured.append((kind, measure(noticing(store), push_elsewhere, options.rounds)))
    rows = [(what, *(report.percentile(delays, n) for n in (50, 95, 99)), max(delays)) for what, delays in measured]
    report.heading("Waking waiters")
    engine = url.partition(":")[0]
    print(
        f"{options.rounds} pushes each, {_PAUSE * 1000:.0f} ms apart, {engine}, flush {flush:.2f} ms. Milliseconds.\n"
    )
    report.table(("who", "p50", "p95", "p99", "most"), rows)
    return [report.at_most(f"wake-up of {what}, p95", p95, _BAR_MS, ".1f", " ms") for what, _, p95, _, _ in rows]


def measure(begin: Callable[[], Wait], push: Push, rounds: int) -> list[float]:
    """Return the delay of each round in milliseconds; `begin` is called before each push."""
    delays = []
    pause = threading.Event()
    for _ in range(rounds):
        pause.wait(_PAUSE)
        wait = begin()
        answered: list[float] = []
        pushing = threading.Thread(target=lambda answered=answered: answered.append(push()))
        pushing.start()
        wait()
        woken = time.monotonic()
        pushing.join(_PATIENCE)
        delays.append((woken - answered[0]) * 1000)
    return delays


def measure_here(store: Store, rounds: int) -> list[float]:
    """Return the delay of each round where a thread of this process pushes."""
    queue = store.queue("jobs")

    def push() -> float:
        threading.Event().wait(_PAUSE / 2)  # so that the pop is asleep
        queue.push(b"x" * 100, priority=1)
        return time.monotonic()

    return measure(popping(store), push, rounds)


def reading(store: Store) -> Callable[[], Wait]:
    """Wait for a change of the queue."""
    queue = store.queue("jobs")

    def begin() -> Wait:
        while queue.pop_many(100):
            pass
        snapshot = store.snapshot([queue.id], preview=0)

        def wait() -> None:
            if not store.wait_for_change(snapshot, timeout=_PATIENCE):
                raise SystemExit("a change woke no waiter")

        return wait

    return begin


def popping(store: Store) -> Callable[[], Wait]:
    """Wait for an item of the queue."""
    queue = store.queue("jobs")
    while queue.pop_many(100):
        pass

    def wait() -> None:
        if queue.pop_min(wait=_PATIENCE) is None:
            raise SystemExit("a push woke no waiter")

    return lambda: wait


@contextmanager
def crowd(store: Store) -> Iterator[None]:
    """Let many threads pop, and note when one of them has got an item."""
    queue = store.queue("jobs")

    def work() -> None:
        while (item := queue.pop_min(wait=_PATIENCE)) is not None and item.value != b"end":
            _got.put(time.monotonic())

    threads = [threading.Thread(target=work, daemon=True) for _ in range(_CROWD)]
    for thread in threads:
        thread.start()
    yield
    queue.push_many([(b"end", 1)] * _CROWD)
    for thread in threads:
        thread.join(_PATIENCE)


_got: SimpleQueue[float] = SimpleQueue()


def noticing(store: Store) -> Callable[[], Wait]:
    """Wait until one of the crowd has got an item."""

    def wait() -> None:
        _got.get(timeout=_PATIENCE)

    return lambda: wait


@contextmanager
def another_process(url: str, store: Store) -> Iterator[Push]:
    """Have another process push, whenever this is called."""
    store.create_queue("jobs", exist_ok=True)
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=push_when_told, args=(url, there), daemon=True)
    process.start()
    _receive(here)

    def push() -> float:
        threading.Event().wait(_PAUSE / 2)  # so that a process that waits is asleep
        here.send(True)
        return _receive(here)

    yield push
    here.send(False)
    process.join(_PATIENCE)


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
