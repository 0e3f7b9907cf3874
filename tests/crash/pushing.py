"""What the killed children do: push numbered items from many threads until they are killed."""

from __future__ import annotations

import threading
from itertools import count

from queues import Answer, Store, Transaction, open_store
from tests.crash.harness import Report


def push_for_ever(report: Report, url: str, threads: str, first: str) -> None:
    """Push the numbers from `first` on to the queue `jobs`."""
    numbers = count(int(first))
    queue = open_store(url).queue("jobs")

    def work() -> None:
        for number in numbers:
            report.begin(f"{number}")
            queue.push(b"%d" % number, priority=number % 7)
            report.acknowledge(f"{number}")

    workers = [threading.Thread(target=work) for _ in range(int(threads))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def send_for_ever(report: Report, url: str, threads: str, first: str) -> None:
    """Send requests with the numbers from `first` on as their keys."""
    numbers = count(int(first))
    store = open_store(url)

    def work() -> None:
        for number in numbers:
            report.begin(f"{number}")
            send(store, f"{number}")
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
