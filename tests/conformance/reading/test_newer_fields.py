"""Fields that a later build of the same format wrote: records that are written again keep them."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from queues import Queue, Store, open_store
from queues.catalog.store_record import FORMAT, StoreRecord
from queues.errors import KeyTooLarge
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import timed_suffix
from queues.model import records
from tests.conftest import Clock, store_url

NEWER = {"newer": {"field": [1, "two"]}}
KEYS = Keyspace(("pq",))
HOUR = timedelta(hours=1)


def add_field(store: Store, key: bytes) -> None:
    """Write a record again with a field that this release does not know."""
    header, value = records.decode(store.read(lambda tr: tr.get(key).wait()))
    store.transact(lambda tr: tr.set(key, records.encode(header | NEWER, value)))


def fields(store: Store, key: bytes) -> dict:
    """Return what a record says, as far as this release does not know it."""
    header, _ = records.decode(store.read(lambda tr: tr.get(key).wait()))
    return {name: value for name, value in header.items() if name in NEWER}


def test_a_lease_that_is_extended_keeps_them(store: Store, jobs: Queue) -> None:
    jobs.push(b"a", priority=1)
    lease = jobs.lease(seconds=60)
    key = KEYS.queue(jobs.id).leases.key(bytes.fromhex(lease.item.id))
    add_field(store, key)
    jobs.extend(lease, seconds=600)
    assert fields(store, key) == NEWER
    jobs.ack(lease)


def test_a_delayed_item_that_is_rescheduled_keeps_them(store: Store, jobs: Queue) -> None:
    item = jobs.push(b"a", priority=1, delay=HOUR)
    keys = KEYS.queue(jobs.id).generation(1)

    def key(milliseconds: int) -> bytes:
        return keys.delayed.at(timed_suffix(milliseconds, bytes.fromhex(item.id)))

    due_ms = round(item.due_at.timestamp() * 1000)
    add_field(store, key(due_ms))
    jobs.reschedule(item.id, delay=2 * HOUR)
    assert fields(store, key(due_ms + 3_600_000)) == NEWER
    assert jobs.promote_now(item.id).value == b"a"


@pytest.mark.parametrize("act", ["run", "cancel", "fail"])
def test_a_job_that_goes_on_keeps_them(store: Store, jobs: Queue, act: str) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(60)])
    acts = store.actions("ann")
    job = acts.begin_bulk("delete", "jobs")
    key = KEYS.bulk.key(bytes.fromhex(job.id))
    add_field(store, key)
    does: dict[str, Callable[[], object]] = {
        "run": lambda: acts.run_bulk(job.id),
        "cancel": lambda: acts.cancel_bulk(job.id),
        "fail": lambda: (store.delete_queue("jobs"), acts.run_bulk(job.id)),
    }
    does[act]()
    assert fields(store, key) == NEWER
    assert acts.job(job.id).status == {"run": "done", "cancel": "canceled", "fail": "failed"}[act]


def test_a_store_record_keeps_them() -> None:
    record = StoreRecord(format=FORMAT, id="0" * 32, unknown=NEWER).encode()
    assert StoreRecord.decode(record).encode() == record
    assert StoreRecord.decode(record).unknown == NEWER


def test_a_root_that_leaves_no_room_for_keys_is_refused_at_once(engine: str, tmp_path, clock: Clock) -> None:
    url = store_url(engine, tmp_path)
    with pytest.raises(KeyTooLarge, match="at most 192 bytes"):
        open_store(url, root=("r" * 300,), clock=clock)
    with open_store(url, root=("r" * 190,), clock=clock) as store:
        queue = store.create_queue("é" * 150)
        queue.push(b"a", priority=-(2 ** (8 * 255) - 1))
        lease = queue.lease()
        queue.release(lease, delay=HOUR)
        popped = store.actions("p" * 500).delete_item(queue.name, lease.item.id)
        store.actions("p" * 500).undo(popped.trash_id)
        assert queue.totals().delayed == 1


def test_a_store_whose_root_is_longer_still_opens(engine: str, tmp_path, clock: Clock) -> None:
    url = store_url(engine, tmp_path)
    root = ("r" * 250,)
    with open_store(url, root=("other",), clock=clock) as store:
        store.transact(lambda tr: tr.set(Keyspace(root).store, StoreRecord(format=FORMAT, id="0" * 32).encode()))
        if engine == "embedded":
            with open_store(url, root=root, clock=clock) as older:
                older.create_queue("jobs").push(b"a", priority=1)
