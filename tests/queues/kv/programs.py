"""What the processes of the tests do; each runs as `python -m tests.queues.kv.programs NAME ARGUMENTS`.

They tell each other the time by the monotonic clock, which all processes of a machine share.
"""

import itertools
import math
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from queues.kv import open_kv
from queues.kv.embedded import checkpoints
from queues.kv.errors import StoreError
from queues.kv.port import Transaction


def in_threads(number: int, work: Callable[[int], None]) -> None:
    """Do some work in so many threads, each told its number, to the end."""
    workers = [threading.Thread(target=work, args=(n,)) for n in range(number)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def saturate(url: str, threads: str, keys: str) -> None:
    """Commit `keys` writes a function with many threads, from a first line to the end.

    Each value tells how often another process came to wait for the lock while this process had it. At the end, print
    how many commits this process made, at most, during one such wait.
    """
    kv = open_kv(url)
    fairness = kv.engine.environment.fairness
    fairness.patience = math.inf  # Waiting threads may be held up by a busy machine.
    stop = threading.Event()
    ahead: dict[int, set[int]] = {}

    def write(tr: Transaction) -> None:
        for _ in range(100):  # as on a slow disk, another process comes to wait meanwhile
            if stop.is_set() or max(fairness.marks):
                break
            time.sleep(0.000_1)
        if ticket := max(fairness.marks):  # not our own, as this one has the lock
            ahead.setdefault(ticket, set()).add(tr.get_read_version())
        for n in range(int(keys)):
            tr.set(b"%d-%d" % (os.getpid(), n), b"%d" % len(ahead))

    def work(thread: int) -> None:
        while not stop.is_set():
            kv.transact(write)

    print("ready", flush=True)
    sys.stdin.readline()
    working = threading.Thread(target=in_threads, args=(int(threads), work))
    working.start()
    sys.stdin.read()
    stop.set()
    working.join()
    kv.close()
    print(max(map(len, ahead.values())), flush=True)


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

    from queues.kv.embedded.fairness import WriterFairness

    turns = WriterFairness(Path(url.partition(":")[2]) / "turns")
    turns.marks[turns.slot] = 1
    print(turns.slot, flush=True)
    if sys.stdin.readline():
        print(time.monotonic(), flush=True)
        turns.marks[turns.slot] = 0
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
            kv.transact(lambda tr, token=token: tr.set(token, token))
            os.write(1, b"ack " + token + b"\n")

    in_threads(int(threads), work)
    kv.close()


def put_and_take(url: str, name: str, threads: str, each: str) -> None:
    """Put tokens, taking some out again, and acknowledge each as it is told."""
    checkpoints.COMMITS = 3
    kv = open_kv(url)

    def put(tr: Transaction, token: bytes) -> None:
        tr.set(b"one/" + token, token * 50)
        tr.set(b"two/" + token, b"")
        if b"-0002;" in token:  # more than there is room for in a record of the log
            for part in range(11):
                tr.set(b"large/%d/" % part + token, bytes(100_000))
        tr.add(b"count", 1)

    def take(tr: Transaction, token: bytes) -> None:
        tr.clear(b"one/" + token)
        tr.clear_range(b"two/" + token, b"two/" + token + b"\0")
        tr.add(b"count", -1)

    def work(thread: int) -> None:
        for n in range(int(each)):
            token = b"token-%s-%02d-%04d;" % (name.encode(), thread, n)
            os.write(1, b"ask put " + token + b"\n")
            kv.transact(lambda tr, token=token: put(tr, token))
            os.write(1, b"ack put " + token + b"\n")
            if n % 3 == 0:
                os.write(1, b"ask take " + token + b"\n")
                kv.transact(lambda tr, token=token: take(tr, token))
                os.write(1, b"ack take " + token + b"\n")

    def work_until_it_fails(thread: int) -> None:
        with suppress(StoreError):
            work(thread)

    in_threads(int(threads), work_until_it_fails)
    kv.close()


def write_at_random(url: str, seed: str) -> None:
    """Write by every operation, in threads, some of it undone; print all that is there; end as if killed."""
    kv = open_kv(url)

    def write(tr: Transaction, chance: random.Random, fresh: Iterator[int]) -> None:
        def key() -> bytes:
            return b"%02d" % chance.randrange(40)

        for _ in range(chance.randrange(1, 12)):
            new = [b"new%08d" % next(fresh) for _ in range(3)]
            match chance.randrange(8):
                case 0 | 1:
                    tr.set(key(), chance.randbytes(chance.randrange(200)))
                case 2:
                    tr.clear(key())
                case 3:
                    tr.clear_range(*sorted((key(), key())))
                case 4:
                    tr.add(b"sum" + key(), chance.randrange(-5, 5))
                    tr.add_all({b"sum" + key(): chance.randrange(-5, 5) for _ in range(3)})
                case 5:
                    tr.max(b"sum" + key(), chance.randrange(100))
                case 6:
                    tr.set_new(new, [chance.randbytes(9) for _ in new])
                    tr.add(new[0], 1)
                    tr.set(new[1], b"again")
                    tr.clear_many([new[2]])
                case _:
                    tr.clear_many([key(), b"new%08d" % chance.randrange(1_000)])
        if chance.random() < 0.2:
            raise ValueError("undone")

    def work(thread: int) -> None:
        chance, fresh = random.Random(f"{seed} {thread}"), itertools.count(thread * 100_000)
        for _ in range(60):
            with suppress(ValueError):
                kv.transact(lambda tr: write(tr, chance, fresh))

    in_threads(4, work)
    pairs = kv.read(lambda tr: tr.get_range(b"", b"\xff", limit=10_000).wait())
    print(repr([(bytes(key), bytes(value)) for key, value in pairs]), flush=True)
    os._exit(0)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
