"""One process of the tests: threads that push, pop, lease and acknowledge.

`python -m tests.queues.hosting.caller URL JOURNAL THREADS [MUTANT]`: it prints a line once it is at work, and ends when
its standard input does. Each answer is in the journal, even if the process is killed just afterwards: a verb, the value
and the seconds that the call took.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from queues import open_store
from queues.queue import PriorityQueue
from tests.queues.hosting.mutants import MUTANTS


def work(queue: PriorityQueue, note: Callable[[str, bytes, float], None], name: str, stop: threading.Event) -> None:
    """Push, then take by a pop or by a lease, in turn."""
    number = 0
    while not stop.is_set():
        number += 1
        value = b"%s-%d" % (name.encode(), number)
        began = time.monotonic()
        queue.push(value, number % 7)
        note("push", value, time.monotonic() - began)
        began = time.monotonic()
        if number % 2:
            item = queue.pop_min()
            if item is not None:
                note("pop", item.raw, time.monotonic() - began)
            continue
        lease = queue.lease(seconds=600.0)
        if lease is not None:
            note("lease", lease.item.raw, time.monotonic() - began)
            began = time.monotonic()
            queue.ack(lease)
            note("ack", lease.item.raw, time.monotonic() - began)


def main(url: str, journal: str, threads: str, mutant: str = "") -> None:
    """Work until standard input ends."""
    if mutant:
        MUTANTS[mutant]()
    store = open_store(url)
    queue: Any = store.queue("jobs")
    out = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(verb: str, value: bytes, took: float) -> None:
        os.write(out, b"%s %s %.6f\n" % (verb.encode(), value, took))

    stop = threading.Event()
    workers = [
        threading.Thread(target=work, args=(queue, note, f"{os.getpid()}.{n}", stop)) for n in range(int(threads))
    ]
    for worker in workers:
        worker.start()
    print("at work", flush=True)
    sys.stdin.read()
    stop.set()
    for worker in workers:
        worker.join()
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
