"""A queue whose records can not be read says so by name, and harms no other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from queues import Queue, Store
from queues.errors import QueueUnreadable

#: Of a later release, damaged, and what is no record at all.
RECORDS = [b"\x07nonsense", b"\x01\x00\x00\x02[]", b"\x01\x00\x00\x02{}", b""]


def damage(store: Store, queue: Queue, record: bytes) -> None:
    def write(tr):
        tr.set(store._keyspace.config(queue.id), record)
        tr.add(store._keyspace.queue(queue.id).change, 1)

    store.transact(write)


@pytest.mark.parametrize("record", RECORDS)
def test_every_way_to_a_queue_that_can_not_be_read_names_it(store: Store, record: bytes) -> None:
    good, bad = store.create_queue("good"), store.create_queue("bad")
    damage(store, bad, record)
    ways: list[Callable[[], object]] = [
        lambda: store.queue("bad"),
        lambda: store.queues(),
        lambda: store.delete_queue("bad"),
        lambda: store.rename_queue("bad", "new"),
        lambda: store.acts("ann").pause("bad", reason="r"),
        lambda: bad.push(b"x", priority=1),
        bad.pop_min,
        bad.status,
    ]
    for way in ways:
        with pytest.raises(QueueUnreadable, match="^The queue “bad” can not be read. ") as caught:
            way()
        assert caught.value.queue == "bad"
    good.push(b"x", priority=1)
    assert good.pop_min().value == b"x"


def test_a_damaged_item_at_an_end_makes_its_queue_unreadable(store: Store) -> None:
    jobs = store.create_queue("jobs")
    jobs.push(b"x", priority=5)
    store.transact(lambda tr: tr.set(store._keyspace.queue(jobs.id).generation(1).ready(b"\x15\x01"), b""))
    with pytest.raises(QueueUnreadable, match="^The queue “jobs” can not be read. Its bytes are damaged"):
        jobs.status()
