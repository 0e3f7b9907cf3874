"""The packed forms of pushes, pops, leases and acknowledgements write what plain transitions write."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from queues import Lease, Queue, Store
from queues.items import state_machine
from queues.items.counters import CounterDelta
from queues.items.stored_item import StoredItem, find
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import ready_suffix
from queues.kv import open_kv
from queues.kv.port import Transaction
from queues.model.ids import IdGenerator

KEYSPACE = Keyspace(("pq",))
#: What verbs count besides: change and wake keys, traffic, waits.
COUNTED = ("v", "w", "T", "h")
values = st.lists(st.tuples(st.binary(max_size=9), st.integers(-40, 40)), min_size=1, max_size=12)
names = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=9)


def open_memory() -> Store:
    """Open a store of its own, with ids and times like those of every other."""
    kv = open_kv("memory:", slots=KEYSPACE.slots)
    ids = IdGenerator(lambda: 1_700_000_000.0, random=random.Random(1).randbytes)
    return Store(kv, url="memory:", keyspace=KEYSPACE, clock=lambda: 1_700_000_000.0, id_generator=ids)


def content(store: Store, queue: Queue) -> dict:
    """Return what the store holds of a queue, by the elements of its keys."""
    keys = KEYSPACE.queue(queue.id)
    pairs = store.read(lambda tr: tr.get_range(*keys.everything, limit=10_000).wait())
    elements = ((keys.elements(key), value) for key, value in pairs)
    return {key: value for key, value in elements if key[0] not in COUNTED}


def change_plainly(
    store: Store, queue: Queue, changes: Callable[[Transaction], Iterable[tuple[StoredItem | None, StoredItem | None]]]
) -> None:
    """Write changes, each an item before and after, one transition at a time."""
    keys = KEYSPACE.queue(queue.id)

    def write(tr: Transaction) -> None:
        delta = CounterDelta(keys, wake=True)
        for before, after in changes(tr):
            state_machine.change(tr, keys, queue.config, before, after, delta)
        delta.apply(tr)

    store.transact(write)


def push_plainly(store: Store, queue: Queue, items: Sequence[tuple[bytes, int]], rands: Sequence[bytes]) -> None:
    def changes(tr: Transaction) -> Iterator[tuple[None, StoredItem]]:
        for (value, priority), rand in zip(items, rands, strict=True):
            suffix = ready_suffix(priority, queue.config.base + tr.stamp(), rand)
            yield None, state_machine.new_ready(rand, value, queue.config, suffix)

    change_plainly(store, queue, changes)


def take_plainly(store: Store, queue: Queue, rands: Sequence[bytes]) -> None:
    keys = KEYSPACE.queue(queue.id)
    change_plainly(store, queue, lambda tr: ((there, None) for there in find(tr, keys, queue.config, rands)))


@given(values, st.data())
@settings(max_examples=60, deadline=None)
def test_packed_pushes_and_pops_write_what_plain_transitions_write(
    items: list[tuple[bytes, int]], data: st.DataObject
) -> None:
    with open_memory() as packed, open_memory() as plain:
        jobs, others = packed.create_queue("jobs"), plain.create_queue("jobs")
        pushed = jobs.push_many(items)
        push_plainly(plain, others, items, [bytes.fromhex(item.id) for item in pushed])
        assert content(packed, jobs) == content(plain, others)
        popped = jobs.pop_many(data.draw(st.integers(1, len(items))))
        take_plainly(plain, others, [bytes.fromhex(item.id) for item in popped])
        assert content(packed, jobs) == content(plain, others)


def lease_plainly(store: Store, queue: Queue, leases: Sequence[Lease]) -> None:
    keys = KEYSPACE.queue(queue.id)

    def changes(tr: Transaction) -> Iterator[tuple[StoredItem, StoredItem]]:
        for lease in leases:
            (there,) = find(tr, keys, queue.config, [bytes.fromhex(lease.item.id)])
            after = state_machine.leased_until(
                there,
                round(lease.expires_at.timestamp() * 1000),
                now_ms=1_700_000_000_000,
                worker=lease.item.worker,
                nonce=bytes.fromhex(lease.token.split("-")[1]),
            )
            yield there, after

    change_plainly(store, queue, changes)


@given(values, st.data())
@settings(max_examples=60, deadline=None)
def test_packed_leases_and_acknowledgements_write_what_plain_transitions_write(
    items: list[tuple[bytes, int]], data: st.DataObject
) -> None:
    with open_memory() as packed, open_memory() as plain:
        jobs, others = packed.create_queue("jobs"), plain.create_queue("jobs")
        rands = [bytes.fromhex(item.id) for item in jobs.push_many(items)]
        push_plainly(plain, others, items, rands)
        tried = data.draw(st.integers(0, len(items)))
        for queue in (jobs, others):  # some have a past
            for lease in sorted(queue.lease_many(tried) if tried else [], key=lambda lease: lease.item.id):
                queue.release(lease, reason="tried")
        leases = jobs.lease_many(data.draw(st.integers(1, len(items))), worker=data.draw(names))
        lease_plainly(plain, others, leases)
        assert content(packed, jobs) == content(plain, others)
        done = leases[: data.draw(st.integers(1, len(leases)))]
        jobs.ack_many(done)
        take_plainly(plain, others, [bytes.fromhex(lease.item.id) for lease in done])
        assert content(packed, jobs) == content(plain, others)
