"""Pushes numbered items from 8 threads until it is killed, writing down outside the store what it began and got.

Usage: python pusher.py STORE_URL QUEUE RECORD FIRST. Lines of RECORD: `b N` before a push, `a N` after it returned.
A pwrite of one short line to a file opened with O_APPEND survives the process, as the kernel has it.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading

from queues import open_store

THREADS = 8


def main(url: str, name: str, record: str, first: int) -> None:
    """Push until killed."""
    lines = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    numbers = itertools.count(first)
    store = open_store(url)
    queue = store.queue(name)

    def push() -> None:
        for number in numbers:
            os.write(lines, b"b %d\n" % number)
            queue.push(b"%d" % number, priority=number % 7)
            os.write(lines, b"a %d\n" % number)

    threads = [threading.Thread(target=push) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
