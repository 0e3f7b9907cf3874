"""What the killed children do until they are killed."""

import random
import threading
import time
from collections.abc import Callable
from itertools import count

from queues import Answer, Job, Store, Transaction, open_store
from queues.background.service import Upkeep
from queues.errors import StaleLease
from queues.kv import open_kv
from tests.crash.harness import Report

#: Seconds of a lease: so short that leases of killed children expire in the next child.
LEASE_SECONDS = 0.02
#: Seconds of a holding: so soon the next child takes over from a killed one.
HOLDING_SECONDS = 0.2


def in_threads(threads: str, work: Callable[[int], None]) -> None:
    """Call `work` in so many threads, with their numbers."""
    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(int(threads))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def write(report: Report, url: str, threads: str, name: str) -> None:
    """Write `NAME/thread/number` and count it, in one transaction each."""
    kv = open_kv(url)

    def work(thread: int) -> None:
        for number in count():
            label = f"{name}/{thread}/{number:06d}"
            report.begin(label)
            key = label.encode()
            kv.transact(lambda tr, key=key: [tr.set(key, key * 3), tr.add(b"total", 1)])
            report.acknowledge(label)

    in_threads(threads, work)


def push(report: Report, url: str, threads: str, first: str) -> None:
    """Push the numbers from `first` on to the queue `jobs`."""
    queue = open_store(url).queue("jobs")
    _count(report, threads, first, lambda number: queue.push(b"%d" % number, priority=number % 7))


def send_requests(report: Report, url: str, threads: str, first: str) -> None:
    """Send requests with the numbers from `first` on as their keys."""
    store = open_store(url)
    _count(report, threads, first, lambda number: send(store, f"{number}"))


def _count(report: Report, threads: str, first: str, do: Callable[[int], object]) -> None:
    """Do something with each number in turn, in so many threads."""
    numbers = count(int(first))

    def work(thread: int) -> None:
        for number in numbers:
            report.begin(f"{number}")
            do(number)
            report.acknowledge(f"{number}")

    in_threads(threads, work)


def send(store: Store, key: str) -> Answer:
    """Push the key as an item, as a request that carries the key."""

    def push(tr: Transaction) -> bytes:
        return store.priority_queue("jobs", tr=tr).push(key.encode(), priority=1, tr=tr).id.encode()

    return store.once(key, push)


def lease(report: Report, url: str, name: str, threads: str, seed: str) -> None:
    """Lease items; acknowledge most, reporting each before and after; release or forget the rest; sweep."""
    store = open_store(url)
    queue = store.queue(name)

    def work(thread: int) -> None:
        dice = random.Random(f"{seed}/{thread}")
        while True:
            for lease in queue.lease_many(dice.randint(1, 3), seconds=LEASE_SECONDS):
                chance = dice.random()
                if chance < 0.1:
                    queue.expire()
                elif chance < 0.2:
                    continue  # forgotten: it comes back by itself
                try:
                    if chance < 0.4:
                        queue.release(lease)
                    else:
                        number = lease.item.value.decode()
                        report.begin(number)
                        queue.ack(lease)
                        report.acknowledge(number)
                except StaleLease:
                    continue
            queue.expire()

    in_threads(threads, work)


def sweep(report: Report, url: str, name: str) -> None:
    """Sweep, once elected, telling of every round that did something."""
    store, numbers = open_store(url), count()
    upkeep = Upkeep(
        store.context, seconds=HOLDING_SECONDS, name=name, tell=lambda swept: report.acknowledge(f"{next(numbers)}")
    )
    upkeep.start()
    threading.Event().wait()


def move_all(report: Report, url: str, job_id: str) -> None:
    """Run a job until it is done, telling of every chunk."""
    with open_store(url) as store:

        def progress(job: Job) -> bool:
            report.acknowledge(f"chunk {job.chunks} {job.done}")
            report.begin(f"chunk {job.chunks + 1}")
            return True

        store.actions("ann", via="cli").run_bulk(job_id, progress=progress)


def run_jobs(report: Report, url: str, minutes: str) -> None:
    """Run whatever jobs a store has, as the site does; by its clock all that other processes held has lapsed."""
    with open_store(url, clock=lambda: time.time() + int(minutes) * 60) as store:
        runner = store.job_runner()
        for number in count():
            report.begin(f"round {number}")
            runner.round()
            report.acknowledge(f"round {number}")
