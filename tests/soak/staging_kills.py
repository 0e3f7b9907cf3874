"""Processes that take for each other are killed at random: nothing twice, nothing lost, nobody stuck.

    PQ_TEST_CLUSTER=FILE python -m tests.soak.staging_kills [--seconds 60] [--processes 4] [--threads 4]

Each process pops with several threads and writes down what it got; one after the other is killed with SIGKILL and
started again. Afterwards nobody is killed, and the queue must run empty soon. A killed process may have held what its
threads had been given and had not written down yet: that many may be missing, and no more. Empties the database.

Prints one JSON object; exits with 1 when something is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from queues import Queue, open_store, staging
from queues.unclaimed import KEPT_MS
from tests import cluster

#: Seconds in which a queue that nobody is killed at must run empty.
SOON = 60.0


def work(url: str, ledger: str, threads: int) -> None:
    """Pop until killed, or told to end by an empty line; write down each item before the next is asked for."""
    staging.CONFLICTS = 1
    out = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    ending = threading.Event()
    with open_store(url) as store:
        jobs = store.queue("jobs")

        def pop(number: int) -> None:
            while not ending.is_set():
                item = jobs.pop_max() if number % 4 == 3 else jobs.pop_min()
                if item is None:
                    ending.wait(0.02)
                else:
                    os.write(out, item.value + b"\n")

        callers = [threading.Thread(target=pop, args=(number,)) for number in range(threads)]
        for caller in callers:
            caller.start()
        sys.stdin.readline()
        ending.set()
        for caller in callers:
            caller.join()


def run(url: str, *, seconds: float, processes: int, threads: int, seed: int) -> dict[str, object]:
    """Let processes pop and be killed; return what became of the items."""
    chance, now = random.Random(seed), [time.time()]
    staged = kills = pushed = 0
    with tempfile.TemporaryDirectory() as folder, open_store(url, clock=lambda: now[0]) as store:
        jobs = store.create_queue("jobs")
        ledgers: list[Path] = []

        def start() -> subprocess.Popen[bytes]:
            ledgers.append(Path(folder) / f"ledger-{len(ledgers)}")
            command = [sys.executable, "-m", "tests.soak.staging_kills", "--work", str(ledgers[-1]), "--url", url]
            return subprocess.Popen(
                [*command, "--threads", str(threads)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
            )

        workers = [start() for _ in range(processes)]
        ends, next_kill = time.monotonic() + seconds, time.monotonic() + 3.0
        while time.monotonic() < ends:
            if jobs.depth() < 2_000:
                jobs.push_many([(b"%d" % (pushed + n), chance.randrange(100)) for n in range(500)])
                pushed += 500
            staged += store.snapshot([jobs.id]).queues[jobs.id].staging
            if time.monotonic() > next_kill:
                next_kill = time.monotonic() + chance.uniform(0.3, 1.5)
                place = chance.randrange(processes)
                workers[place].send_signal(signal.SIGKILL)
                workers[place].communicate()
                kills += 1
                workers[place] = start()
        stuck = not _runs_empty(jobs)
        for worker in workers:
            worker.communicate(b"\n", timeout=SOON)
        now[0] += 2 * KEPT_MS / 1000
        store.sweep_unclaimed()
        taken = Counter(value for ledger in ledgers for value in _lines(ledger))
        trash = Counter(entry.item.value for entry in store.trash.entries(limit=1_000).entries if entry.item)
    twice = [value for value, n in (taken + trash).items() if n > 1]
    missing = pushed - len(taken + trash)
    return {
        "pushed": pushed,
        "taken": len(taken),
        "in the trash": len(trash),
        "held by the killed": missing,
        "at most": kills * threads,
        "twice": len(twice),
        "kills": kills,
        "looks at which it was staging": int(staged),
        "stuck": stuck,
        "well": not twice and not stuck and 0 <= missing <= kills * threads and staged > 0,
    }


def _runs_empty(jobs: Queue) -> bool:
    until = time.monotonic() + SOON
    while jobs.depth():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _lines(ledger: Path) -> list[bytes]:
    return ledger.read_bytes().splitlines() if ledger.exists() else []


def main(arguments: Sequence[str]) -> int:
    """Run, and tell."""
    parser = argparse.ArgumentParser(prog="staging_kills", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.work:
        work(options.url, options.work, options.threads)
        return 0
    told = run(
        cluster.fresh(),
        seconds=options.seconds,
        processes=options.processes,
        threads=options.threads,
        seed=options.seed,
    )
    print(json.dumps({"seed": options.seed, **told}))
    return 0 if told["well"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
