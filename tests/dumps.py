"""Dumps what a store says of queues, to show that an undo leaves no trace: all keys, totals by what they come to."""

from collections import Counter

from queues import Queue, Store
from queues.items.counters import total

EVERYTHING = 1_000_000


def dump(store: Store, *queues: Queue) -> dict:
    """Return every key of these queues with its value, but for wake, change and traffic.

    Of totals in and out only the difference counts.
    """
    found: dict = {}
    for queue in queues:
        keys = store.context.keyspace.queue(queue.id)
        depths: Counter = Counter()
        for key, value in store.read(lambda tr, keys=keys: tr.get_range(*keys.everything, limit=EVERYTHING).wait()):
            elements = keys.elements(key)
            if elements[0] in ("v", "w", "T"):
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
