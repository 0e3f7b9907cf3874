"""Ids that are taken: what callers ask for about particular items writes no record over that of another item."""

import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from queues import Queue, Store
from queues.errors import IdTaken, StoreUnavailable, TrashNotFound
from queues.items import state_machine
from queues.items.counters import CounterDelta
from queues.items.stored_item import find
from queues.keys.keyspace import Keyspace
from queues.kv import open_kv
from queues.model.ids import IdGenerator
from tests.conftest import Clock, store_url
from tests.dumps import states
from tests.full_count import check_full_count

HOUR = timedelta(hours=1)


class Twins:
    """Two stores over one key-value store, whose ids are the same."""

    def __init__(self, url: str, clock: Clock) -> None:
        keyspace = Keyspace(("pq",))
        self._kv = open_kv(url, slots=keyspace.slots)
        self.clock = clock
        self.one, self.two = (
            Store(
                self._kv,
                url=url,
                keyspace=keyspace,
                clock=clock,
                id_generator=IdGenerator(clock, random=random.Random(15).randbytes),
            )
            for _ in range(2)
        )

    def queue(self, name: str = "jobs", **settings: Any) -> tuple[Queue, Queue]:
        """Create a queue, and return it as each of the two has it."""
        self.one.create_queue(name)
        if settings:
            self.one.queue(name).configure(**settings)
        return self.one.queue(name), self.two.queue(name)

    def everything(self) -> dict[bytes, bytes]:
        """Return all that the store holds."""
        begin, end = Keyspace(("pq",)).range
        pairs = self.one.read(lambda tr: tr.get_range(begin, end, limit=100_000).wait())
        slots = Keyspace(("pq",)).all_slots
        return {key: value for key, value in pairs if not slots[0] <= key < slots[1]}

    def refused(self, act: Callable[[], Any]) -> None:
        """Assert that an act is refused, and that it changes nothing."""
        before = self.everything()
        with pytest.raises(IdTaken):
            act()
        assert self.everything() == before

    def close(self) -> None:
        self.one.close()


@pytest.fixture
def twins(engine: str, tmp_path: Path, clock: Clock) -> Iterator[Twins]:
    """Two stores with the same ids, on each engine."""
    opened = Twins(store_url(engine, tmp_path), clock)
    yield opened
    opened.close()


def values(queue: Queue) -> list[bytes]:
    """Return what a queue holds, whatever its state."""
    found = [*queue.items(limit=50).items, *queue.delayed(limit=50).items, *queue.leased(limit=50).items]
    return sorted(item.value for item in (*found, *queue.dead(limit=50).items))


def leased_and_ready(twins: Twins, **settings: Any) -> tuple[Queue, Queue, Any]:
    """Return a queue with two items of one id: the first is leased, the second ready."""
    ours, theirs = twins.queue(**settings)
    first = ours.push(b"first", priority=1)
    lease = ours.lease(seconds=60)
    second = theirs.push(b"second", priority=2)
    assert first.id == second.id == lease.item.id
    return ours, theirs, lease


def healthy(store: Store) -> bool:
    """Say whether a full count of the store finds nothing wrong; slots are of the machine's own clock."""
    return not [finding for finding in store.doctor.examine().findings if finding.kind != "slot"]


def test_a_push_never_writes_over_another_item(twins: Twins) -> None:
    ours, theirs = twins.queue()
    ours.push(b"first", priority=1)
    before = twins.everything()
    try:
        theirs.push(b"second", priority=1)
    except StoreUnavailable:
        assert twins.everything() == before
        assert values(ours) == [b"first"]
    else:
        assert values(ours) == [b"first", b"second"]


def test_a_delayed_push_is_refused_where_an_item_waits_under_its_id(twins: Twins) -> None:
    ours, theirs = twins.queue()
    ours.push(b"first", priority=1, delay=HOUR)
    twins.refused(lambda: theirs.push(b"second", priority=1, delay=HOUR))
    theirs.push(b"third", priority=1, delay=HOUR)
    assert values(ours) == [b"first", b"third"]
    assert healthy(twins.one)


def test_a_push_that_waits_and_one_that_does_not_are_refused_together(twins: Twins) -> None:
    ours, theirs = twins.queue()
    ours.push(b"first", priority=1)
    ours.push(b"later", priority=1, delay=HOUR)
    twins.refused(lambda: theirs.push_many([(b"a", 1), (b"b", 1)], delay=HOUR))


def test_a_move_is_refused_where_an_item_of_the_id_is(twins: Twins) -> None:
    ours, theirs = twins.queue()[0], twins.queue("others")[1]
    first = ours.push(b"first", priority=1)
    assert theirs.push(b"second", priority=1).id == first.id
    acts = twins.one.actions("ann")
    twins.refused(lambda: acts.move_items("jobs", [first.id], "others"))
    twins.clock.advance(1)
    later = ours.push(b"later", priority=1, delay=HOUR)
    assert theirs.push(b"latest", priority=1, delay=HOUR).id == later.id
    twins.refused(lambda: acts.move_items("jobs", [later.id], "others"))
    job = acts.begin_bulk("move", "jobs", to="others")
    assert acts.run_bulk(job.id).status == "failed"
    assert values(ours) == [b"first", b"later"]
    assert values(theirs) == [b"latest", b"second"]


def test_what_was_taken_is_not_put_back_over_another_item(twins: Twins) -> None:
    ours, theirs = twins.queue()
    ours.push(b"first", priority=1)
    acts = twins.one.actions("ann")
    popped = acts.pop("jobs")
    assert theirs.push(b"second", priority=1).id == popped.item.id
    twins.refused(lambda: acts.undo(popped.trash_id).item)
    twins.refused(lambda: twins.one.restore(popped.trash_id))
    theirs.pop_min()
    assert acts.undo(popped.trash_id).item.value == b"first"


@pytest.mark.parametrize("many", [False, True])
def test_what_was_deleted_is_not_undone_over_another_item(twins: Twins, many: bool) -> None:
    ours, theirs = twins.queue()
    first = ours.push(b"first", priority=1, delay=HOUR)
    acts = twins.one.actions("ann")
    trash_id = (acts.delete_items("jobs", [first.id]) if many else acts.delete_item("jobs", first.id)).trash_id
    assert theirs.push(b"second", priority=1, delay=HOUR).id == first.id
    twins.refused(lambda: acts.undo(trash_id))
    if many:
        with pytest.raises(TrashNotFound):
            acts.undo(trash_id, partial=True)
    assert values(ours) == [b"second"]


def test_a_dead_item_is_not_retried_over_another_item(twins: Twins) -> None:
    ours, _, first = leased_and_ready(twins, max_attempts=1)
    ours.release(first)
    twins.refused(lambda: ours.retry_dead(first.item.id))
    assert states(twins.one, ours) == {"ready": 1, "dead": 1}


def test_an_act_is_refused_where_an_item_of_the_id_is_in_the_other_state(twins: Twins) -> None:
    ours, theirs = twins.queue()
    first = ours.push(b"first", priority=1, delay=HOUR)
    assert theirs.push(b"second", priority=2).id == first.id
    acts = twins.one.actions("ann")
    twins.refused(lambda: acts.delay("jobs", [first.id], delay=HOUR))
    assert values(ours) == [b"first", b"second"]


def test_trash_audit_and_job_records_are_not_overwritten(twins: Twins) -> None:
    ours, _ = twins.queue()
    ours.push_many([(b"%d" % n, n) for n in range(6)])
    twins.two.context.id_generator.new_ids(6)
    one, two = twins.one.actions("ann"), twins.two.actions("bob")
    one.pop_many("jobs", 2)
    twins.refused(lambda: two.pop_many("jobs", 2))
    one.pause("jobs", reason="a look")
    twins.refused(lambda: two.resume("jobs"))
    twins.refused(lambda: two.resume("jobs"))
    two.resume("jobs")
    twins.one.context.id_generator.new_id()
    job = one.begin_bulk("delete", "jobs")
    twins.refused(lambda: two.begin_bulk("delete", "jobs"))
    assert one.run_bulk(job.id).done == 4
    assert one.run_bulk(one.undo(job.id).job.id).done == 4
    assert [entry.actor for entry in twins.one.audit.entries(verb="pause").entries] == ["ann"]


def test_items_of_a_push_job_are_not_overwritten(twins: Twins) -> None:
    twins.queue()
    one, two = twins.one.actions("ann"), twins.two.actions("bob")
    job = one.begin_push("jobs", [(b"%d" % n, n) for n in range(3)])
    twins.refused(lambda: two.begin_push("jobs", [(b"other", 1)]))
    assert one.run_bulk(job.id).done == 3
    assert values(twins.one.queue("jobs")) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("what", ["purge", "delete_queue"])
def test_what_is_for_a_whole_queue_is_not_overwritten(twins: Twins, what: str) -> None:
    for name in ("jobs", "others"):
        queue, _ = twins.queue(name)
        queue.push(name.encode(), priority=1)
    twins.two.context.id_generator.new_ids(2)
    getattr(twins.one.actions("ann"), what)("jobs", confirm="jobs")
    twins.refused(lambda: getattr(twins.two.actions("bob"), what)("others", confirm="others"))


def ready_twice(twins: Twins) -> Queue:
    ours, _, first = leased_and_ready(twins)
    twins.one.transact(lambda tr: give_back_over(twins, ours, first, tr))
    return ours


def ready_and_leased(twins: Twins) -> Queue:
    return leased_and_ready(twins)[0]


def ready_and_delayed(twins: Twins) -> Queue:
    ours, _, first = leased_and_ready(twins)
    ours.release(first, delay=HOUR)
    return ours


def ready_and_dead(twins: Twins) -> Queue:
    ours, _, first = leased_and_ready(twins, max_attempts=1)
    ours.release(first)
    return ours


def leased_and_dead(twins: Twins) -> Queue:
    ours, theirs, first = leased_and_ready(twins, max_attempts=1)
    ours.release(first)
    theirs.lease(seconds=60)
    return ours


def delayed_and_leased(twins: Twins) -> Queue:
    ours, theirs = twins.queue()
    ours.push(b"first", priority=1)
    ours.lease(seconds=60)
    theirs.push(b"second", priority=1, delay=HOUR)
    return ours


@pytest.mark.parametrize(
    "equal", [ready_twice, ready_and_leased, ready_and_delayed, ready_and_dead, leased_and_dead, delayed_and_leased]
)
def test_doctor_finds_items_of_one_id_and_gives_them_new_ids(twins: Twins, equal: Callable[[Twins], Queue]) -> None:
    jobs = equal(twins)
    before = states(twins.one, jobs)
    leases = {item.id for item in jobs.leased(limit=50).items}
    (found,) = [finding for finding in twins.one.doctor.examine().findings if finding.kind != "slot"]
    assert (found.kind, found.queue, found.mendable) == ("id", "jobs", True)
    assert found.says == "1 item with the id of another item here: --repair gives other ids."
    mended = twins.two.doctor.repair().mended
    assert "jobs: 1 item with the id of another item got an id of its own." in mended
    assert healthy(twins.one)
    assert states(twins.one, jobs) == before
    assert values(jobs) == [b"first", b"second"]
    assert leases <= {item.id for item in jobs.leased(limit=50).items}
    check_full_count(twins.one, jobs)


def give_back_over(twins: Twins, queue: Queue, lease: Any, tr: Any) -> None:
    """Give a leased item back to its place though another ready item has its id."""
    keys = Keyspace(("pq",)).queue(queue.id)
    (there,) = find(tr, keys, queue.config, [bytes.fromhex(lease.item.id)], ["leased"])
    delta = CounterDelta(keys, wake=True)
    after = state_machine.given_back(there, queue.config, now_ms=0)
    state_machine.change(tr, keys, queue.config, there, after, delta)
    delta.apply(tr)
