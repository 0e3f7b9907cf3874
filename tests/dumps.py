"""Dumps what a store says of queues, to show that an undo leaves no trace: all keys, totals by what they come to."""

from collections import Counter
from datetime import timedelta

from queues import Queue, Store
from queues.items.counters import total
from tests.conftest import Clock

EVERYTHING = 1_000_000


def dump(store: Store, *queues: Queue) -> dict:
    """Return every key of these queues with its value, but for wake, change and traffic.

    The marks that tell takers to look for attempts are left out too: they stay. Of totals in and out only the
    difference counts.
    """
    found: dict = {}
    for queue in queues:
        keys = store.context.keyspace.queue(queue.id)
        depths: Counter = Counter()
        for key, value in store.read(lambda tr, keys=keys: tr.get_range(*keys.everything, limit=EVERYTHING).wait()):
            elements = keys.elements(key)
            if elements[0] in ("v", "w", "T") or (len(elements) == 2 and elements[1] == "d"):
                continue
            if len(elements) == 4 and elements[1] in ("n", "b"):
                depths[elements[:3]] += total(value) if elements[3] == "in" else -total(value)
            else:
                found[queue.id, elements] = value
        found |= {(queue.id, what): depth for what, depth in depths.items() if depth}
    return found


def states(store: Store, queue: Queue) -> dict[str, int]:
    """Return a queue's depths by state."""
    totals = store.queue(queue.name).totals()
    return {state: n for state in ("ready", "delayed", "leased", "dead") if (n := getattr(totals, state))}


def in_every_state(store: Store, clock: Clock) -> tuple[Queue, dict[str, list[str]]]:
    """Return a queue with two items in each state, and their ids."""
    jobs = store.create_queue("jobs", bands=[0, 10])
    jobs.configure(max_attempts=2)
    found: dict[str, list[str]] = {"ready": [], "delayed": [], "leased": [], "dead": []}
    for n in range(2):
        item = jobs.push(b"dying%d" % n, priority=1)
        for _ in range(2):
            clock.advance(0.01)
            jobs.release(jobs.lease(seconds=1), reason="no such customer")
        found["dead"].append(item.id)
    for n in range(2):
        jobs.push(b"held%d" % n, priority=2)
        found["leased"].append(jobs.lease(seconds=60, worker=f"worker-{n}").item.id)
    for n in range(2):
        found["ready"].append(jobs.push(b"ready%d" % n, priority=11).id)
        found["delayed"].append(jobs.push(b"later%d" % n, priority=12, delay=timedelta(hours=1 + n)).id)
    assert states(store, jobs) == {"ready": 2, "delayed": 2, "leased": 2, "dead": 2}
    return jobs, found
