"""Counts a queue the slow way, key by key, to show that counters and indexes tell the truth."""

from bisect import bisect_right
from collections import Counter

from queues import Queue, Store
from queues.background import due_index
from queues.items.counters import total
from queues.items.stored_item import at_place, from_lease
from queues.keys.queue_keys import (
    OUTSIDE,
    QueueKeys,
    id_by_age,
    last_element,
    read_place,
    ready_elements,
    ready_since,
    timed_elements,
)
from queues.kv.port import ReadTransaction
from queues.model.config import Config

EVERYTHING = 10_000_000
LATER = 1 << 60


def check_full_count(store: Store, queue: Queue) -> int:
    """Assert that counters, indexes and bands equal the items that are there; return the number of ready ones."""
    keyspace, keys = store.context.keyspace, store.context.keyspace.queue(queue.id)

    def count(tr: ReadTransaction) -> int:
        config = Config.decode(tr.get(keyspace.configs.key(queue.id)).wait())
        ready, bands = _ready(tr, keys, config)
        there = {
            "ready": ready,
            "delayed": _delayed(tr, keys, config),
            "leased": _leased(tr, keys),
            "dead": _dead(tr, keys),
        }
        rands = [rand for places in there.values() for rand in places]
        assert len(rands) == len(set(rands)), "an item is in two states at once"
        status = queue.status(tr=tr)
        for state, places in there.items():
            index = {
                id_by_age(last_element(key), value): read_place(value)[:2]
                for index in keys.indexes(state, config.generations)
                for key, value in tr.get_range(*index, limit=EVERYTHING).wait()
            }
            assert index == places, f"the index and the items differ: {state}"
            generations = (OUTSIDE,) if state in ("leased", "dead") else config.generations
            depth = sum(
                total(tr.get(keys.generation(generation).counters.key(state, "in")).wait())
                - total(tr.get(keys.generation(generation).counters.key(state, "out")).wait())
                for generation in generations
            )
            shown = getattr(status.totals, state)
            assert depth == len(places) == shown, f"the counters and the items differ: {state}"
        if queue.kind == "priority":
            assert {n: band.depth for n, band in enumerate(status.bands) if band.depth} == dict(bands)
        assert not status.drift
        _check_finished(store, tr, queue, status.finished)
        _check_due_index(store, tr, queue.id)
        return len(ready)

    return store.read(count)


def _check_finished(store: Store, tr: ReadTransaction, queue: Queue, told: int) -> None:
    """Assert that records of finished items are counted, and that each item is found by the last one of it."""
    keyspace = store.context.keyspace
    by_time, by_id = keyspace.finished_by_time(queue.id), keyspace.finished_by_id(queue.id)
    there = [by_time.elements(key) for key, _ in tr.get_range(*by_time.all, limit=EVERYTHING).wait()]
    assert len(there) == told, "the counters and the records differ: finished"
    last = {rand: ms for ms, rand in there}
    found = tr.get_range(*by_id.all, limit=EVERYTHING).wait()
    assert {by_id.elements(key)[0]: int.from_bytes(ms, "big") for key, ms in found} == last


def _check_due_index(store: Store, tr: ReadTransaction, queue_id: int) -> None:
    """Assert that a sweeper by the due index reads a queue before anything falls due there."""
    moment_ms = due_index.begin_moments(tr, store.context.keyspace, [queue_id])()[queue_id]
    if moment_ms is not None:
        marks = [
            store.context.keyspace.due.elements(key)
            for key, _ in tr.get_range(*store.context.keyspace.due_index, limit=EVERYTHING).wait()
        ]
        seconds = [second for second, of in marks if of == queue_id]
        assert min(seconds, default=LATER) <= moment_ms // 1000, "what falls due is not in the due index"


def _ready(tr: ReadTransaction, keys: QueueKeys, config: Config) -> tuple[dict, Counter]:
    places, bands = {}, Counter()
    for generation in config.generations:
        ready = keys.generation(generation)
        for key, _ in tr.get_range(*ready.ready.all, limit=EVERYTHING).wait():
            suffix = ready.ready.suffix_of(key)
            priority, _, rand = ready_elements(suffix, fifo=config.fifo)
            assert rand not in places, "an item exists twice"
            places[rand] = (generation, suffix)
            if priority is not None:
                bands[bisect_right(config.edges, priority)] += 1
            by_id = [tr.get(found_at).wait() for found_at in keys.found_at("ready", generation, rand)]
            assert sum(entry is not None for entry in by_id) == 1, "an item has no place in the index, or two"
            (entry,) = filter(None, by_id)
            there = at_place(rand, "ready", entry)
            assert there.since_ms is not None or not (there.attempts or there.header), (
                "takers ask for no attempts there"
            )
            by_age = there.by_age(keys)
            assert by_age is None or tr.get(by_age[0]).wait() == by_age[1], "no entry by age"
        later = len(tr.get_range(*ready.later.all, limit=EVERYTHING).wait())
        by_age = tr.get_range(*keys.index("ready", generation).all, limit=EVERYTHING).wait()
        assert later == sum(ready_since(entry) is not None for _, entry in by_age), "entries by id and by age differ"
    return places, bands


def _delayed(tr: ReadTransaction, keys: QueueKeys, config: Config) -> dict:
    places = {}
    for generation in config.generations:
        delayed = keys.generation(generation)
        for key, _ in tr.get_range(*delayed.delayed.all, limit=EVERYTHING).wait():
            suffix = delayed.delayed.suffix_of(key)
            _, rand = timed_elements(suffix)
            assert rand not in places, "an item is delayed twice"
            places[rand] = (generation, suffix)
    return places


def _leased(tr: ReadTransaction, keys: QueueKeys) -> dict:
    places, expiries = {}, set()
    for key, record in tr.get_range(*keys.leases.all, limit=EVERYTHING).wait():
        rand = keys.elements(key)[-1]
        lease = from_lease(rand, record)
        places[rand] = (lease.generation, lease.suffix)
        expiries.add((lease.expires_ms, rand))
    found = [
        timed_elements(keys.expiries.suffix_of(key))
        for key, _ in tr.get_range(*keys.expiries.all, limit=EVERYTHING).wait()
    ]
    assert expiries == set(found), "leases and their expiries differ"
    assert len(found) == len(expiries)
    return places


def _dead(tr: ReadTransaction, keys: QueueKeys) -> dict:
    suffixes = [keys.dead.suffix_of(key) for key, _ in tr.get_range(*keys.dead.all, limit=EVERYTHING).wait()]
    return {timed_elements(suffix)[1]: (OUTSIDE, suffix) for suffix in suffixes}
