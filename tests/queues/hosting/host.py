"""A process of the tests that hosts a store: `python -m tests.queues.hosting.host URL` until its input ends."""

import sys

from queues import PriorityQueue, open_store

with open_store(sys.argv[1]) as store:
    queue = store.queue("jobs")
    assert isinstance(queue, PriorityQueue)
    assert queue.pop_min() is None
    print("at work", flush=True)
    sys.stdin.read()
