"""What the killed children do: lease, acknowledge, release and sweep from many threads until they are killed."""

import random
import threading

from queues import open_store
from queues.errors import StaleLease
from tests.crash.harness import Report

#: Seconds of a lease: short, so that leases of killed children expire in the next child.
SECONDS = 0.02


def work_for_ever(report: Report, url: str, name: str, threads: str, seed: str) -> None:
    """Lease items; acknowledge most, reporting each before and after; release or forget the rest; sweep."""
    store = open_store(url)
    queue = store.queue(name)

    def work(thread: int) -> None:
        dice = random.Random(f"{seed}/{thread}")
        while True:
            for lease in queue.lease_many(dice.randint(1, 3), seconds=SECONDS):
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

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(int(threads))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
