"""Worker process of the soak of two sites: a pool whose handlers take long, hold the interpreter, or fail.

    python -m tests.soak.two_sites_worker --store URL --run NAME --log FILE [--threads 4]

Each attempt appends a line when it begins and one when it ends to FILE, which lies outside of the store. The effect of
an item is a key that `Job.complete` increments in the transaction of the acknowledgement: what was done twice is 2.
A line is written by one call, so it outlives SIGKILL; nothing here cuts the power, so nothing is flushed.
"""

import argparse
import ctypes
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import fdb.tuple

from queues import Store, Transaction, open_store, workers
from queues.workers import Backoff, Job, Pool, Worker

#: Kinds of items, each a queue of its own, and the seconds of its leases.
LEASED = {"quick": 20.0, "chain": 20.0, "long": 9.0, "held": 2.0, "failing": 20.0}
#: Attempts of an item, kills included.
MAX_ATTEMPTS = 12
#: Seconds that a handler of `long` takes, of `held` holds the interpreter, and by which the next of a chain is delayed.
LONG, HELD, DELAY = 14.0, 4.0, 3.0
#: Raised by a handler that ends because its process does.
Stopped: type[BaseException] = getattr(workers, "Stopped", RuntimeError)


def boottime() -> float:
    """Return the seconds since the machine started, by the clock that all processes share."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def effect_key(run: str, name: str) -> bytes:
    """Return the key that counts how often an item was completed."""
    key: bytes = fdb.tuple.pack(("soak", run, "done", name))
    return key


def effects(store: Store, run: str) -> dict[str, int]:
    """Return how often each item was completed, read in steps."""
    found: dict[str, int] = {}
    begin, end = effect_key(run, ""), fdb.tuple.pack(("soak", run, "done~"))
    while True:
        rows = store.read(lambda tr, begin=begin: tr.get_range(begin, end, limit=500).wait())
        found |= {fdb.tuple.unpack(key)[-1]: int.from_bytes(value, "little") for key, value in rows}
        if len(rows) < 500:
            return found
        begin = rows[-1][0] + b"\0"


@dataclass(frozen=True, slots=True)
class Attempts:
    """The log of one process."""

    file: int
    process: str

    def note(self, what: str, job: Job, **more: Any) -> None:
        """Append a line."""
        line = {"what": what, "at": boottime(), "process": self.process, "item": job.item.id, "queue": job.queue}
        line |= {"attempt": job.item.attempts} | more
        os.write(self.file, json.dumps(line).encode() + b"\n")


class Handlers:
    """What is done with the items of one run."""

    def __init__(self, store: Store, run: str, log: Attempts) -> None:
        self._store = store
        self._run = run
        self._log = log

    def register(self, worker: Worker) -> None:
        """Register a handler for each kind."""
        for kind, seconds in LEASED.items():
            back_off = Backoff(first=0.2, most=2.0)
            worker.handles(f"{self._run}:{kind}", seconds=seconds, backoff=back_off)(self._handler(kind))

    def _handler(self, kind: str) -> Callable[[Job], None]:
        work: Callable[[Job, dict[str, Any]], None] = getattr(self, f"_{kind}")

        def handle(job: Job) -> None:
            value = json.loads(job.item.value)
            self._log.note("begin", job, name=value["name"], kind=kind, not_before=value.get("not_before"))
            try:
                work(job, value)
            except BaseException as error:
                self._log.note("end", job, error=type(error).__name__)
                raise
            self._log.note("done", job)

        return handle

    def _quick(self, job: Job, value: dict[str, Any]) -> None:
        self._complete(job, value)

    _chain = _quick

    def _long(self, job: Job, value: dict[str, Any]) -> None:
        ends = time.monotonic() + LONG
        pause = threading.Event()
        while time.monotonic() < ends:
            if job.stopping():
                raise Stopped("the process ends")
            pause.wait(0.1)
        self._complete(job, value)

    def _held(self, job: Job, value: dict[str, Any]) -> None:
        ctypes.PyDLL(None).usleep(int(HELD * 1_000_000))  # no other thread of this process runs meanwhile
        self._complete(job, value)

    def _failing(self, job: Job, value: dict[str, Any]) -> None:
        if value["fails"] < 0 or job.item.attempts <= value["fails"]:
            raise ValueError("as it was told")
        self._complete(job, value)

    def _complete(self, job: Job, value: dict[str, Any]) -> None:
        """Count the effect, and push what follows, in the transaction of the acknowledgement."""
        following = None
        if value.get("hops"):
            following = {"name": f"{value['name']}+", "hops": value["hops"] - 1, "not_before": boottime() + DELAY}

        def write(tr: Transaction) -> None:
            tr.add(effect_key(self._run, value["name"]), 1)
            if following is not None:
                chain = self._store.queue(f"{self._run}:chain", tr=tr)
                chain.push(json.dumps(following).encode(), priority=0, delay=timedelta(seconds=DELAY), tr=tr)

        complete = getattr(job, "complete", None)
        if complete is None:  # a release whose jobs cannot be completed in a transaction of one's own
            self._store.transact(write)
        else:
            complete(write)


def main() -> int:
    """Work until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True)
    parser.add_argument("--run", required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--grace", type=float, default=6.0)
    options = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    file = os.open(options.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with open_store(options.store) as store:
        worker = Worker()
        Handlers(store, options.run, Attempts(file, options.log.stem)).register(worker)
        names = [f"{options.run}:{kind}" for kind in LEASED]
        pool = Pool(store, worker, names, threads=options.threads)
        pool.start()
        stop.wait()
        stats = pool.stop(options.grace)
    sys.stdout.write(f"{stats}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
