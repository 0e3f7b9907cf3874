"""What the processes of the tests do; each runs as `python -m tests.kv.programs NAME ARGUMENTS`.

They tell each other the time by the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from queues.kv import open_kv
from queues.kv.port import Transaction


def saturate(url: str, threads: str, keys: str) -> None:
    """Commit `keys` writes a function with many threads, from a first line to the end; print the commits."""
    kv = open_kv(url)
    stop = threading.Event()
    commits: set[int] = set()

    def write(tr: Transaction) -> int:
        for n in range(int(keys)):
            tr.set(b"%d-%d" % (os.getpid(), n), b"")
        return tr.get_read_version()

    def work() -> None:
        while not stop.is_set():
            commits.add(kv.transact(write))

    print("ready", flush=True)
    sys.stdin.readline()
    workers = [threading.Thread(target=work) for _ in range(int(threads))]
    for worker in workers:
        worker.start()
    sys.stdin.read()
    stop.set()
    for worker in workers:
        worker.join()
    kv.close()
    print(*sorted(commits), flush=True)


def push_on_demand(url: str) -> None:
    """For each line: change the watched key, and print when that was acknowledged."""
    kv = open_kv(url)
    print("ready", flush=True)
    for _ in sys.stdin:
        kv.transact(lambda tr: tr.add(b"watched", 1))
        print(time.monotonic(), flush=True)
    kv.close()


def wait_for_a_turn(url: str) -> None:
    """Leave a mark that this process waits for its turn; take it away at the first line, telling when; stay."""
    from pathlib import Path

    from queues.kv.embedded.turns import Turns

    turns = Turns(Path(url.partition(":")[2]) / "turns")
    turns.ask()
    print(turns.slot, flush=True)
    if sys.stdin.readline():
        print(time.monotonic(), flush=True)
        turns.got()
        sys.stdin.read()


def hold_the_lock(url: str) -> None:
    """At the first line, begin a write; tell when it has begun, and commit at the next line."""
    kv = open_kv(url)
    print("ready", flush=True)

    def hold(tr: Transaction) -> None:
        tr.set(b"held", b"")
        print("has it", flush=True)
        sys.stdin.readline()

    sys.stdin.readline()
    kv.transact(hold)
    print("done", flush=True)
    kv.close()


def acknowledge(url: str, threads: str, each: str) -> None:
    """Write tokens, and acknowledge each on standard output only after its commit."""
    kv = open_kv(url)

    def work(thread: int) -> None:
        for n in range(int(each)):
            token = b"token-%02d-%04d;" % (thread, n)
            kv.transact(lambda tr, token=token: tr.set(token, token))  # type: ignore[misc]
            os.write(1, b"ack " + token + b"\n")

    workers = [threading.Thread(target=work, args=(n,)) for n in range(int(threads))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    kv.close()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
