"""What the killed children do: write numbered keys from many threads until they are killed."""

import threading
from itertools import count

from queues.kv import open_kv
from tests.crash.harness import Report


def write_for_ever(report: Report, url: str, threads: str, name: str) -> None:
    """Write `NAME/thread/number` and count it, in one transaction each."""
    kv = open_kv(url)

    def work(thread: int) -> None:
        for number in count():
            label = f"{name}/{thread}/{number:06d}"
            report.begin(label)
            key = label.encode()
            kv.transact(lambda tr, key=key: [tr.set(key, key * 3), tr.add(b"total", 1)])  # type: ignore[misc]
            report.acknowledge(label)

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(int(threads))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
