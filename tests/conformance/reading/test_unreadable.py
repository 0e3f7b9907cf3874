"""A queue whose records cannot be read says so by name, and harms no other."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from queues import Lease, Queue, Store
from queues.errors import QueueUnreadable
from queues.items.scan import Query
from queues.kv.port import Transaction
from queues.model import records
from queues.operations.settle import AckRequest, ack_request
from queues.workers.dispatcher import tend
from queues.workers.rests import QueueRests
from tests.conftest import Clock

#: Of a later release, damaged, and what is no record at all.
RECORDS = [b"\x07nonsense", b"\x01\x00\x00\x02[]", b"\x01\x00\x00\x02{}", b""]
#: Stands for a record of an item with a priority that is none.
WRONG_PRIORITY = b"wrong priority"


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


def damage_ready_key(store: Store, queue: Queue, number: int) -> None:
    """Cut the key of one of the ready items in the middle of its count."""
    ready = queue.opened.keys.generation(1).ready

    def write(tr: Transaction) -> None:
        key, value = tr.get_range(*ready.all, limit=number + 1).wait()[number]
        tr.clear(key)
        tr.set(ready.prefix + key[len(ready.prefix) :][:4], value)

    store.transact(write)


@pytest.mark.parametrize("number", [5, 20])
def test_a_damaged_key_of_a_ready_item_is_told_and_nothing_is_changed(store: Store, jobs: Queue, number: int) -> None:
    ann = store.actions("ann")
    store.create_queue("other").push(b"x", priority=1)
    jobs.push_many([(b"%d" % n, n) for n in range(30)])
    damage_ready_key(store, jobs, 2)
    ways: list[Callable[[], object]] = [
        lambda: jobs.items(limit=number),
        lambda: jobs.peek_many(number),
        lambda: jobs.pop_many(number),
        lambda: jobs.lease_many(number, seconds=10),
        lambda: jobs.search(Query(state="ready")),
        lambda: jobs.search(Query(state="ready", text="2")),
        lambda: store.transact(lambda tr: jobs.pop_many(number, tr=tr)),
    ]
    for way in ways:
        with pytest.raises(QueueUnreadable, match="^The queue “jobs” cannot be read. Its bytes are damaged"):
            way()
    job = ann.run_bulk(ann.begin_bulk("move", "jobs", to="other").id)
    assert job.status == "failed"
    assert job.failure.startswith("The queue “jobs” cannot be read. ")
    assert jobs.depth() == 30
    assert jobs.depth("leased") == 0
    assert [item.value for item in jobs.pop_many(2)] == [b"0", b"1"], "what is before it is taken as ever"
    with pytest.raises(QueueUnreadable):
        ann.pop("jobs")
    assert jobs.pop_max().value == b"29"
    assert store.queue("other").pop_min().value == b"x"


def test_a_transaction_that_goes_on_after_a_refused_pop_has_taken_nothing(store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(9)])
    damage_ready_key(store, jobs, 2)
    begin, end = jobs.opened.keys.generation(1).ready.all
    before = store.read(lambda tr: tr.get_range(begin, end, limit=20).wait())

    def goes_on(tr: Transaction) -> None:
        with pytest.raises(QueueUnreadable):
            jobs.pop_many(5, tr=tr)
        jobs.push(b"new", priority=99, tr=tr)

    store.transact(goes_on)
    assert store.read(lambda tr: tr.get_range(begin, end, limit=20).wait())[:-1] == before
    assert jobs.depth() == 10


#: Damage, by name, of the header of a lease's record.
LEASES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no object": lambda header: [],
    "no end": lambda header: {name: value for name, value in header.items() if name != "expires"},
    "an end that is none": lambda header: header | {"expires": "soon"},
    "a nonce that is none": lambda header: header | {"nonce": 5},
    "a place that is none": lambda header: header | {"suffix": "zz"},
    "a generation that is none": lambda header: header | {"generation": "x"},
    "attempts that are none": lambda header: header | {"attempts": "x"},
    "a log that is none": lambda header: header | {"log": 5},
}
#: What an acknowledgement needs of a lease, where no finished items are kept.
OF_ACKS = ("no object", "no end", "an end that is none", "a nonce that is none")


def all_keys(store: Store) -> list[tuple[bytes, bytes]]:
    """Return all that a store holds."""
    return list(store.read(lambda tr: tr.get_range(b"", b"\xff", limit=1_000).wait()))


def damage_lease(store: Store, queue: Queue, lease: Lease, damage: str) -> None:
    """Write another header into the record of a lease."""
    key = queue.opened.keys.leases.key(bytes.fromhex(lease.item.id))

    def write(tr: Transaction) -> None:
        record = tr.get(key).wait()
        assert record is not None
        header, value = records.decode(record)
        head = msgspec.json.encode(LEASES[damage](header))
        tr.set(key, record[:1] + len(head).to_bytes(3, "big") + head + value)

    store.transact(write)


@pytest.mark.parametrize("keep", [0, 60])
@pytest.mark.parametrize("damage", LEASES)
def test_a_damaged_lease_is_told_and_holds_up_no_other(store: Store, jobs: Queue, damage: str, keep: int) -> None:
    jobs.configure(keep_finished=keep)
    jobs.push_many([(b"%d" % n, n) for n in range(4)])
    broken, second, third, fourth = jobs.lease_many(4, seconds=100)
    damage_lease(store, jobs, broken, damage)
    ways: list[Callable[[], object]] = [
        lambda: jobs.release(broken, reason="r"),
        lambda: jobs.release(broken, delay=5),
        lambda: jobs.release(broken, count_attempt=False),
        lambda: jobs.extend(broken, seconds=500),
    ]
    if damage in OF_ACKS or keep:
        ways += [lambda: jobs.ack(broken), lambda: jobs.ack_many([second, broken])]
    before = all_keys(store)
    for way in ways:
        with pytest.raises(QueueUnreadable, match="^The queue “jobs” cannot be read. Its bytes are damaged"):
            way()
    assert all_keys(store) == before
    requests = [ack_request(jobs.opened, [lease]) for lease in (second, broken, third)]
    batch = jobs.opened.batch(AckRequest)
    answers = store.transact(lambda tr: batch.execute(tr, batch.prepare(requests)))
    assert answers[0] == answers[2] == []
    jobs.ack(fourth)
    assert jobs.depth("leased") == (1 if damage in OF_ACKS or keep else 0)


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
    ann = store.actions("ann")
    store.create_queue("other")
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
        lambda: ann.delete_items("jobs", [item.id]),
        lambda: ann.move_items("jobs", [item.id], to="other"),
    ]
    if state == "delayed":
        ways.append(lambda: jobs.reschedule(item.id, delay=5))
    if state == "dead":
        ways += [lambda: jobs.retry_dead(item.id), lambda: jobs.delete_dead(item.id)]
    for way in ways:
        with pytest.raises(QueueUnreadable, match="^The queue “jobs” cannot be read. Its bytes are damaged"):
            way()
    for other in {"delayed", "leased", "dead"} - {state}:
        assert len(jobs.search(Query(state=other)).items) == 1


def damage_first(store: Store, jobs: Queue, state: str, number: int, record: bytes) -> list[tuple[bytes, bytes]]:
    """Damage the records of the first items of a state, and return what they were."""
    keys = jobs.opened.keys
    within = keys.generation(1).delayed.all if state == "delayed" else keys.leases.all
    was: list[tuple[bytes, bytes]] = store.read(lambda tr: tr.get_range(*within, limit=number).wait())

    def write(tr: Transaction) -> None:
        for key, _ in was:
            tr.set(key, record)

    store.transact(write)
    return was


@pytest.mark.parametrize("number", [1, 120])
@pytest.mark.parametrize("record", [*RECORDS, WRONG_PRIORITY])
@pytest.mark.parametrize("state", ["delayed", "leased"])
def test_takes_and_sweeps_go_on_past_records_that_cannot_be_read(
    store: Store, jobs: Queue, clock: Clock, state: str, record: bytes, number: int
) -> None:
    if state == "delayed":
        jobs.push_many([(b"late", 1, timedelta(seconds=n + 1)) for n in range(number)])
    else:
        jobs.push_many([(b"late", 1)] * number)
        jobs.lease_many(number, seconds=10)
    if record == WRONG_PRIORITY:
        ((_, sound),) = damage_first(store, jobs, state, 1, record)
        header, value = records.decode(sound)
        record = records.encode(header | {"priority": [], "suffix": "ff"}, value)
    was = damage_first(store, jobs, state, number, record)
    jobs.push_many([(b"ready", 2)] * 8)
    jobs.push_many([(b"due", 3, timedelta(seconds=number + 1))] * 2)
    clock.advance(2 * number + 20)
    assert jobs.pop_min().value == b"ready"
    lease = jobs.lease(seconds=5)
    assert lease is not None
    jobs.ack(lease)
    assert jobs.expire() == 0
    store.sweep()
    assert jobs.depth() == 8, "what was due beside it is there"
    assert jobs.promote() == 0
    assert jobs.pop_max().value == b"due"
    store.transact(lambda tr: [tr.set(key, each) for key, each in was])
    assert jobs.promote(limit=200) + jobs.expire(limit=200) == (number if record in RECORDS else number - 1)


@pytest.mark.parametrize("state", ["delayed", "leased"])
def test_waiting_does_not_turn_in_circles_at_a_record_that_cannot_be_read(
    store: Store, jobs: Queue, clock: Clock, state: str
) -> None:
    jobs.push_many([(b"late", 1, timedelta(seconds=5)) if state == "delayed" else (b"late", 1)])
    if state == "leased":
        jobs.lease(seconds=5)
    damage_first(store, jobs, state, 1, RECORDS[0])
    clock.advance(10)
    before = store.context.kv.reads()
    assert jobs.pop_min(wait=0.3) is None
    assert store.context.kv.reads() - before < 100
    outlooks = store.outlooks([jobs])
    assert outlooks[jobs].late
    assert not tend(outlooks, QueueRests())
    jobs.push(b"due", priority=1, delay=timedelta(seconds=1))
    clock.advance(2)
    assert tend(store.outlooks([jobs]), QueueRests())
    assert jobs.depth() == 1
