"""Counts a queue the slow way, key by key, to show that counters and indexes tell the truth."""

from __future__ import annotations

from collections import Counter

from queues import Queue, Store
from queues.bands import band_of
from queues.config import Config
from queues.keyspace import read_place, ready_elements, total

EVERYTHING = 10_000_000


def check_full_count(store: Store, queue: Queue) -> int:
    """Assert that counters, index and bands equal the items that are there; return their number."""
    keyspace, keys = store._keyspace, store._keyspace.queue(queue.id)

    def count(tr):
        config = Config.decode(tr.get(keyspace.config(queue.id)).wait())
        by_rand, items, bands, depth = {}, 0, Counter(), 0
        for generation in config.generations:
            ready = keys.generation(generation)
            for key, _ in tr.get_range(*ready.ready_range, limit=EVERYTHING).wait():
                suffix = ready.suffix_of(key)
                priority, _, rand = ready_elements(suffix, fifo=config.fifo)
                assert rand not in by_rand, "an item stands twice"
                by_rand[rand] = (generation, suffix)
                items += 1
                if priority is not None:
                    bands[band_of(priority, config.edges)] += 1
            depth += total(tr.get(ready.counter("ready", "in")).wait())
            depth -= total(tr.get(ready.counter("ready", "out")).wait())
        index = {
            keys.rand_of_index("ready", key): read_place(value)[:2]
            for key, value in tr.get_range(*keys.by_age("ready"), limit=EVERYTHING).wait()
        }
        status = queue.status(tr=tr)
        return by_rand, index, items, depth, bands, status

    by_rand, index, items, depth, bands, status = store.read(count)
    assert index == by_rand, "the index and the items differ"
    assert depth == items == status.totals.ready, "the counters and the items differ"
    if queue.kind == "priority":
        assert {n: band.depth for n, band in enumerate(status.bands) if band.depth} == dict(bands)
    assert not status.drift
    return items
