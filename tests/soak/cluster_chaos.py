"""Threads push and pop on a cluster whose server is killed again and again, through a client that fails at random.

    python -m tests.soak.cluster_chaos [--minutes 10] [--threads 8] [--without-slots]

The client's own fault injection (`client_buggify`, every section active) and kills of the server lose answers to
commits. At the end every item whose push was acknowledged must have been popped once or be there once, nothing may
have been popped twice, and the counters must equal a full count. `--without-slots` leaves out the look into the slot
after a lost answer: the same run then loses and doubles items, which shows that it can.

Prints one JSON object; exits with 1 when an item was lost or doubled (with `--without-slots`: when none was).
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from queues import Queue, Store, open_store
from queues.errors import OutcomeUnknown, StoreError
from tests.soak.server import Server

NAME = "chaos"


@dataclass
class Ledger:
    """What one worker's callers were told."""

    pushed: list[str] = field(default_factory=list)
    maybe_pushed: list[str] = field(default_factory=list)
    popped: list[str] = field(default_factory=list)
    #: Pops whose outcome is unknown: each may have taken one item that no process got.
    maybe_popped: int = 0
    refused: int = 0


def work(url: str, seconds: float, threads: int, *, slots: bool, buggify: bool) -> None:
    """Push and pop in a process of its own; write the ledger to standard output."""
    import fdb

    fdb.api_version(730)
    if buggify:
        fdb.options.set_client_buggify_enable()
        fdb.options.set_client_buggify_section_activated_probability(100)
        fdb.options.set_client_buggify_section_fired_probability(5)
    if not slots:
        from queues.kv import exactly_once

        exactly_once._Sequence._applied = lambda self, tr: None  # noqa: SLF001 # the safeguard that is left out
    ends = time.monotonic() + seconds
    ledgers = [Ledger() for _ in range(threads)]
    with open_store(url) as store:
        queue = store.create_queue(NAME, exist_ok=True)
        workers = [
            threading.Thread(target=_worker, args=(queue, number, ledger, ends))
            for number, ledger in enumerate(ledgers)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    json.dump([ledger.__dict__ for ledger in ledgers], sys.stdout)


def _worker(queue: Queue, number: int, ledger: Ledger, ends: float) -> None:
    chance = random.Random(number)
    count = 0
    while time.monotonic() < ends:
        count += 1
        push = chance.random() < 0.5
        token = f"{number}-{count}"
        try:
            if push:
                queue.push(token.encode(), priority=chance.randrange(100))
                ledger.pushed.append(token)
            else:
                item = queue.pop_min() if chance.random() < 0.5 else queue.pop_max()
                if item is not None:
                    ledger.popped.append(item.value.decode())
        except OutcomeUnknown:
            if push:
                ledger.maybe_pushed.append(token)
            else:
                ledger.maybe_popped += 1
        except StoreError:
            ledger.refused += 1


def judge(url: str, ledgers: list[Ledger]) -> dict[str, int]:
    """Compare what callers were told with what is there; without faults from here on."""
    with open_store(url) as store:
        queue = store.queue(NAME)
        depth, exact = queue.depth(), _exact(store)
        left: list[str] = []
        while items := queue.pop_many(500):
            left += [item.value.decode() for item in items]
        exact = exact and _exact(store)
    pushed = {token for ledger in ledgers for token in ledger.pushed}
    maybe = {token for ledger in ledgers for token in ledger.maybe_pushed}
    seen = Counter(left + [token for ledger in ledgers for token in ledger.popped])
    missing = len(pushed - seen.keys())
    maybe_popped = sum(ledger.maybe_popped for ledger in ledgers)
    return {
        "acknowledged pushes": len(pushed),
        "acknowledged pops": sum(len(ledger.popped) for ledger in ledgers),
        "left at the end": depth,
        "pushes of unknown outcome": len(maybe),
        "pops of unknown outcome": maybe_popped,
        "refused, nothing written": sum(ledger.refused for ledger in ledgers),
        "lost": max(0, missing - maybe_popped),
        "doubled": sum(count - 1 for count in seen.values() if count > 1),
        "from nowhere": len(seen.keys() - pushed - maybe),
        "counts that differ from a full count": int(not exact),
    }


def _exact(store: Store) -> bool:
    """Say whether counters, index and bands equal the items that are there."""
    found = store.doctor.examine()
    for finding in found.findings:
        sys.stderr.write(f"doctor: {finding}\n")
    return found.healthy


def main() -> int:
    """Run it and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--kill-every", type=float, default=20.0, metavar="SECONDS")
    parser.add_argument("--without-slots", action="store_true")
    parser.add_argument("--without-faults", action="store_true", help="no client_buggify: the kills alone")
    parser.add_argument("--worker", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    seconds, slots, buggify = options.minutes * 60, not options.without_slots, not options.without_faults
    if options.worker:
        work(options.worker, seconds, options.threads, slots=slots, buggify=buggify)
        return 0
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder)) as server:
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.cluster_chaos", "--worker", server.url, *sys.argv[1:]],
            stdout=subprocess.PIPE,
            text=True,
        )
        kills = _kill_again_and_again(server, worker, options.kill_every)
        ledgers = [Ledger(**one) for one in json.loads(kills.output)]
        found = {"kills of the server": kills.count} | judge(server.url, ledgers)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    wrong = sum(found[what] for what in ("lost", "doubled", "from nowhere", "counts that differ from a full count"))
    return int(wrong == 0 if options.without_slots else wrong > 0)


@dataclass
class Kills:
    """How often the server was killed while a worker ran, and what the worker wrote."""

    count: int
    output: str


def _kill_again_and_again(server: Server, worker: subprocess.Popen[str], every: float) -> Kills:
    chance = random.Random(0)
    count = 0
    while True:
        try:
            output, _ = worker.communicate(timeout=every * chance.uniform(0.5, 1.5))
            return Kills(count=count, output=output)
        except subprocess.TimeoutExpired:
            server.kill()
            server.start()
            count += 1


if __name__ == "__main__":
    sys.exit(main())
