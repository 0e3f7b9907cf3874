"""Processes that take for each other are killed at random: nothing twice, nothing lost, none stuck.

    PQ_TEST_CLUSTER=FILE python -m tests.soak.staging_kills [--seconds 60] [--processes 4] [--threads 4]

Each process pops with several threads and writes down what it asks for and what it gets; one after the other is killed
with SIGKILL and started again, every other one stopped first until something lies there for it that it cannot take any
more. Afterwards no process is killed, and the queue must run empty soon. What then is unclaimed, and just that,
must go to the trash. Besides it only what a killed process was being given may be missing: at most one item for each
pop that was under way when it was killed. Empties the database.

Prints one JSON object; exits with 1 when something is wrong.
"""

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

from queues import Queue, Store, open_store
from queues.background.unclaimed_staging import KEPT_MS
from queues.kv.port import ReadTransaction
from queues.serving import staging, staging_records
from tests import cluster
from tests.sweeps import sweep_unclaimed

#: Seconds in which a queue that no process is killed at must run empty.
SOON = 60.0
#: Seconds for which a stopped process is given the chance to be left with something, and between two looks.
STOPPED, LOOK_EVERY = 2.0, 0.02
#: Seconds after which it ends though nothing was ever unclaimed.
LONGEST = 120.0
#: Lines of a ledger: a pop begins; it found nothing. Any other line is what it got.
ASKED, NOTHING = b"?", b"-"


def work(url: str, ledger: str, threads: int) -> None:
    """Pop until killed, or told to end by an empty line; write down each item before the next is asked for."""
    staging.CONFLICTS = 1
    out = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    ending = threading.Event()
    with open_store(url) as store:
        jobs = store.queue("jobs")

        def pop(number: int) -> None:
            while not ending.is_set():
                os.write(out, ASKED + b"\n")
                item = jobs.pop_max() if number % 4 == 3 else jobs.pop_min()
                os.write(out, (NOTHING if item is None else item.value) + b"\n")
                if item is None:
                    ending.wait(0.02)

        callers = [threading.Thread(target=pop, args=(number,)) for number in range(threads)]
        for caller in callers:
            caller.start()
        sys.stdin.readline()
        ending.set()
        for caller in callers:
            caller.join()


def run(url: str, *, seconds: float, processes: int, threads: int, seed: int) -> dict[str, object]:
    """Let processes pop and be killed for so many seconds, longer until something is left; return the counts."""
    chance, now = random.Random(seed), [time.time()]
    left_behind, lying = False, set[tuple[int, bytes]]()
    looks = kills = pushed = 0
    with tempfile.TemporaryDirectory() as folder, open_store(url, clock=lambda: now[0]) as store:
        jobs = store.create_queue("jobs")
        ledgers: list[Path] = []
        killed: list[Path] = []

        def start() -> subprocess.Popen[bytes]:
            ledgers.append(Path(folder) / f"ledger-{len(ledgers)}")
            command = [sys.executable, "-m", "tests.soak.staging_kills", "--work", str(ledgers[-1]), "--url", url]
            return subprocess.Popen(
                [*command, "--threads", str(threads)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
            )

        workers = [start() for _ in range(processes)]
        place_of = list(range(processes))
        began, next_kill = time.monotonic(), time.monotonic() + 3.0
        while (lasted := time.monotonic() - began) < seconds or (lasted < LONGEST and not left_behind):
            if jobs.depth() < 2_000:
                jobs.push_many([(b"%d" % (pushed + n), chance.randrange(100)) for n in range(500)])
                pushed += 500
            looks += store.snapshot([jobs.id]).queues[jobs.id].staging
            if time.monotonic() > next_kill:
                next_kill = time.monotonic() + chance.uniform(0.3, 1.5)
                place = chance.randrange(processes)
                # What lies there since the last stop, well after its kill, is unclaimed.
                left_behind = left_behind or bool(lying & _lying(store, jobs))
                if kills % 2:
                    workers[place].send_signal(signal.SIGSTOP)
                    lying = _await_left_behind(store, jobs)
                workers[place].send_signal(signal.SIGKILL)
                workers[place].communicate()
                kills += 1
                killed.append(ledgers[place_of[place]])
                place_of[place] = len(ledgers)
                workers[place] = start()
        stuck = not _runs_empty(jobs)
        for worker in workers:
            worker.communicate(b"\n", timeout=SOON)
        left = Counter(value for values in _left_behind(store, jobs).values() for value in values)
        now[0] = time.time() + 2 * KEPT_MS / 1000  # what was left came long after the start
        sweep_unclaimed(store)
        trash = Counter(entry.item.value for entry in store.trash.entries(limit=1_000).entries if entry.item)
        swept = not _left_behind(store, jobs)
        taken = Counter(value for ledger in ledgers for value in _got(ledger))
        under_way = sum(_under_way(ledger) for ledger in killed)
    twice = [value for value, n in (taken + trash).items() if n > 1]
    missing = pushed - len(taken + trash)
    return {
        "pushed": pushed,
        "taken": len(taken),
        "unclaimed": left.total(),
        "in the trash": trash.total(),
        "held by the killed": missing,
        "pops of theirs under way": under_way,
        "twice": len(twice),
        "kills": kills,
        "looks at which it was staging": int(looks),
        "stuck": stuck,
        "well": not twice
        and not stuck
        and trash == left
        and left.total() > 0
        and swept
        and 0 <= missing <= under_way - trash.total()
        and looks > 0,
    }


def _left_behind(store: Store, jobs: Queue) -> dict[tuple[int, bytes], list[bytes]]:
    """Return what lies there for each request that was answered: the values that were popped for it."""
    keys, config = jobs.opened.keys, jobs.config

    def look(tr: ReadTransaction) -> dict[tuple[int, bytes], list[bytes]]:
        parts: dict[tuple[int, bytes], bytes] = {}
        for key, part in tr.get_range(*keys.results.all, limit=10_000).wait():
            of = keys.results.elements(key)[:2]
            parts[of] = parts.get(of, b"") + part
        return {of: [item.value for item in staging_records.popped(record, config)] for of, record in parts.items()}

    return store.context.kv.read(look)


def _lying(store: Store, jobs: Queue) -> set[tuple[int, bytes]]:
    """Return the requests for which popped items lie there."""
    return {of for of, values in _left_behind(store, jobs).items() if values}


def _await_left_behind(store: Store, jobs: Queue) -> set[tuple[int, bytes]]:
    """Wait until something lies there that no process takes, at two looks; return the requests that it is for."""
    before: set[tuple[int, bytes]] = set()
    until = time.monotonic() + STOPPED
    while time.monotonic() < until:
        found = _lying(store, jobs)
        if still := found & before:
            return still
        before = found
        time.sleep(LOOK_EVERY)
    return set()


def _runs_empty(jobs: Queue) -> bool:
    until = time.monotonic() + SOON
    while jobs.depth():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _lines(ledger: Path) -> list[bytes]:
    return ledger.read_bytes().splitlines() if ledger.exists() else []


def _got(ledger: Path) -> list[bytes]:
    return [line for line in _lines(ledger) if line not in (ASKED, NOTHING)]


def _under_way(ledger: Path) -> int:
    """Return how many pops had begun and not ended."""
    return sum(1 if line == ASKED else -1 for line in _lines(ledger))


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
