"""A queue whose records cannot be read says so by name, and harms no other."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from queues import Queue, Store
from queues.errors import QueueUnreadable
from queues.items.scan import Query

#: Of a later release, damaged, and what is no record at all.
RECORDS = [b"\x07nonsense", b"\x01\x00\x00\x02[]", b"\x01\x00\x00\x02{}", b""]


def damage(store: Store, queue: Queue, record: bytes) -> None:
    def write(tr):
        tr.set(store.context.keyspace.configs.key(queue.id), record)
        tr.add(store.context.keyspace.queue(queue.id).change, 1)

    store.transact(write)


@pytest.mark.parametrize("record", RECORDS)
def test_every_way_to_a_queue_that_cannot_be_read_names_it(store: Store, record: bytes) -> None:
    good, bad = store.create_queue("good"), store.create_queue("bad")
    damage(store, bad, record)
    ways: list[Callable[[], object]] = [
        lambda: store.queue("bad"),
        lambda: store.queues(),
        lambda: store.delete_queue("bad"),
        lambda: store.rename_queue("bad", "new"),
        lambda: store.actions("ann").pause("bad", reason="r"),
        lambda: bad.push(b"x", priority=1),
        bad.pop_min,
        bad.status,
    ]
    for way in ways:
        with pytest.raises(QueueUnreadable, match="^The queue “bad” cannot be read. ") as caught:
            way()
        assert caught.value.queue == "bad"
    good.push(b"x", priority=1)
    assert good.pop_min().value == b"x"


def test_a_damaged_item_at_an_end_makes_its_queue_unreadable(store: Store, jobs: Queue) -> None:
    jobs.push(b"x", priority=5)
    store.transact(lambda tr: tr.set(store.context.keyspace.queue(jobs.id).generation(1).ready.at(b"\x15\x01"), b""))
    with pytest.raises(QueueUnreadable, match="^The queue “jobs” cannot be read. Its bytes are damaged"):
        jobs.status()


@pytest.mark.parametrize("record", RECORDS)
def test_a_job_of_a_queue_that_cannot_be_read_is_canceled_resumed_and_undone(store: Store, record: bytes) -> None:
    bad = store.create_queue("bad")
    bad.push_many([(b"%d" % n, n) for n in range(3)])
    ann = store.actions("ann")
    done, running = ann.run_bulk(ann.begin_bulk("delete", "bad", high=0).id), ann.begin_bulk("delete", "bad")
    damage(store, bad, record)
    assert ann.cancel_bulk(running.id).status == "canceled"
    assert ann.resume_bulk(running.id).running
    for failed in (ann.run_bulk(running.id), ann.run_bulk(ann.undo(done.id).job.id)):
        assert failed.status == "failed"
        assert failed.failure.startswith("The queue “bad” cannot be read. ")
    told = {entry.verb: entry.queue for entry in store.audit.entries(limit=9).entries}
    assert {told[verb] for verb in ("cancel_job", "resume_job", "undo")} == {"bad"}


@pytest.mark.parametrize("state", ["delayed", "leased", "dead"])
def test_a_damaged_record_of_an_item_is_told_by_whatever_reads_it(store: Store, jobs: Queue, state: str) -> None:
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"a", 1), (b"b", 2)])
    jobs.release(jobs.lease(seconds=600))
    jobs.lease(seconds=600)
    jobs.push(b"later", priority=1, delay=timedelta(hours=1))
    (item,) = jobs.search(Query(state=state)).items
    keys = jobs.opened.keys
    begin, end = {"delayed": keys.generation(1).delayed.all, "leased": keys.leases.all, "dead": keys.dead.all}[state]
    ((key, _),) = store.read(lambda tr: tr.get_range(begin, end, limit=2).wait())
    store.transact(lambda tr: tr.set(key, b"\x01\x00\x00\x02[]"))
    since = datetime.now(UTC) - timedelta(days=400)
    ways: list[Callable[[], object]] = [
        lambda: jobs.search(Query(state=state)),
        lambda: jobs.search(Query(state=state, since=since)),
        lambda: jobs.find(item.id),
    ]
    for way in ways:
        with pytest.raises(QueueUnreadable, match="^The queue “jobs” cannot be read. Its bytes are damaged"):
            way()
    for other in {"delayed", "leased", "dead"} - {state}:
        assert len(jobs.search(Query(state=other)).items) == 1
