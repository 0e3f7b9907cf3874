"""A process of the tests that hosts a store until its input ends.

`python -m tests.queues.hosting.host URL [MUTANT]`; with `busy` another thread uses the processor all the time.
"""

import sys
import threading

from queues import PriorityQueue, open_store
from queues.kv.embedded import host
from tests.queues.hosting.mutants import MUTANTS


def use_the_processor() -> None:
    """Use one processor all the time."""
    while True:
        sum(range(1_000))


for how in sys.argv[2:]:
    if how in MUTANTS:
        MUTANTS[how]()
with open_store(sys.argv[1]) as store:
    queue = store.queue("jobs")
    assert isinstance(queue, PriorityQueue)
    assert queue.pop_min() is None
    if "busy" in sys.argv:
        host.BUSY = 0.05  # a crowded machine leaves this thread no half of a processor
        threading.Thread(target=use_the_processor, daemon=True).start()
    print("at work", flush=True)
    sys.stdin.read()
