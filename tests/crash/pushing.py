"""What the killed children do: push numbered items from many threads until they are killed."""

import threading
from collections.abc import Callable
from itertools import count

from queues import Answer, Store, Transaction, open_store
from tests.crash.harness import Report


def push_for_ever(report: Report, url: str, threads: str, first: str) -> None:
    """Push the numbers from `first` on to the queue `jobs`."""
    queue = open_store(url).queue("jobs")
    work_for_ever(report, threads, first, lambda number: queue.push(b"%d" % number, priority=number % 7))


def send_for_ever(report: Report, url: str, threads: str, first: str) -> None:
    """Send requests with the numbers from `first` on as their keys."""
    store = open_store(url)
    work_for_ever(report, threads, first, lambda number: send(store, f"{number}"))


def work_for_ever(report: Report, threads: str, first: str, do: Callable[[int], object]) -> None:
    """Do something with each number in turn, in so many threads."""
    numbers = count(int(first))

    def work() -> None:
        for number in numbers:
            report.begin(f"{number}")
            do(number)
            report.acknowledge(f"{number}")

    workers = [threading.Thread(target=work) for _ in range(int(threads))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def send(store: Store, key: str) -> Answer:
    """Push the key as an item, as a request that carries the key."""

    def push(tr: Transaction) -> bytes:
        return store.priority_queue("jobs", tr=tr).push(key.encode(), priority=1, tr=tr).id.encode()

    return store.once(key, push)
