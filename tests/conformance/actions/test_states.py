"""Acts on the states of items: promote, reschedule, retry, release, lease, ack. Each undone without a trace."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from queues import Actions, Changed, Queue, Store
from queues.errors import (
    BadTime,
    HeadChanged,
    ItemChanged,
    ItemLeased,
    ItemNotFound,
    NotForAttached,
    StaleLease,
    WrongState,
)
from tests.conftest import Clock
from tests.dumps import dump, in_every_state
from tests.full_count import check_full_count


def reschedule(ann: Actions, *args: Any, **kwargs: Any) -> Changed:
    return ann.reschedule(*args, delay=timedelta(minutes=5), **kwargs)


def delay(ann: Actions, *args: Any, **kwargs: Any) -> Changed:
    return ann.delay(*args, delay=timedelta(minutes=5), **kwargs)


#: The act, of which state its items are, to which they come, its verb.
ACTS: list[tuple[Callable[..., Changed], str, str, str]] = [
    (Actions.promote, "delayed", "ready", "promote"),
    (reschedule, "delayed", "delayed", "reschedule"),
    (delay, "ready", "delayed", "delay"),
    (Actions.retry_dead, "dead", "ready", "retry"),
    (Actions.release, "leased", "ready", "release"),
]


@pytest.mark.parametrize(("act", "state", "to", "verb"), ACTS, ids=[verb for *_, verb in ACTS])
def test_items_change_their_state_and_undo_leaves_no_trace(
    store: Store, ann: Actions, clock: Clock, act: Callable[..., Changed], state: str, to: str, verb: str
) -> None:
    jobs, found = in_every_state(store, clock)
    before, was = dump(store, jobs), [jobs.find(item_id) for item_id in found[state]]
    changed = act(ann, "jobs", found[state], reason="by hand")
    assert (changed.count, changed.skipped) == (2, 0)
    for old in was:
        now = jobs.find(old.id)
        assert (now.state, now.value, now.priority) == (to, old.value, old.priority)
    check_full_count(store, jobs)
    entry = store.audit.entries(queue="jobs").entries[0]
    assert (entry.verb, entry.actor, entry.count, entry.reason) == (verb, "ann", 2, "by hand")
    assert store.trash.get(changed.trash_id).act == verb
    assert ann.undo(changed.trash_id).count == 2
    assert dump(store, jobs) == before
    check_full_count(store, jobs)


@pytest.mark.parametrize(("act", "state", "to", "verb"), ACTS, ids=[verb for *_, verb in ACTS])
def test_an_item_of_another_state_stops_the_act_unless_it_is_skipped(
    store: Store, ann: Actions, clock: Clock, act: Callable[..., Changed], state: str, to: str, verb: str
) -> None:
    jobs, found = in_every_state(store, clock)
    before = dump(store, jobs)
    elsewhere = "dead" if state == "ready" else "ready"
    other = found[elsewhere][0]
    with pytest.raises(WrongState, match=f"1 of the 3 items is not {state}"):
        act(ann, "jobs", [*found[state], other])
    with pytest.raises(WrongState, match=f"is {elsewhere}, not {state}"):
        act(ann, "jobs", [other])
    with pytest.raises(WrongState):
        act(ann, "jobs", [other], skip_missing=True)
    with pytest.raises(ItemNotFound):
        act(ann, "jobs", [*found[state], "00" * 20])
    assert dump(store, jobs) == before
    changed = act(ann, "jobs", [*found[state], other, "00" * 20], skip_missing=True)
    assert (changed.count, changed.skipped) == (2, 2)
    ann.undo(changed.trash_id)
    assert dump(store, jobs) == before


@pytest.mark.parametrize(("act", "state", "to", "verb"), ACTS, ids=[verb for *_, verb in ACTS])
def test_one_of_two_actions_on_the_same_seen_item_is_done(
    store: Store, clock: Clock, act: Callable[..., Changed], state: str, to: str, verb: str
) -> None:
    jobs, found = in_every_state(store, clock)
    ann, bob = store.actions("ann"), store.actions("bob")
    seen = {picked.item.id: picked.etag for picked in ann.pick("jobs", found[state]).picked}
    assert act(bob, "jobs", found[state][:1], expect=seen).count == 1
    after = dump(store, jobs)
    with pytest.raises(ItemChanged, match="1 of the 2 items is not as shown"):
        act(ann, "jobs", found[state], expect=seen)
    with pytest.raises(ItemChanged, match="The item is not as shown"):
        ann.delete_item("jobs", found[state][0], expect=seen[found[state][0]])
    assert dump(store, jobs) == after
    assert act(ann, "jobs", found[state], expect=seen, skip_missing=True).count == 1


def test_what_is_promoted_is_behind_what_was_pushed_before(store: Store, jobs: Queue) -> None:
    later = [jobs.push(b"later%d" % n, priority=5, delay=timedelta(hours=1)) for n in range(2)]
    jobs.push(b"now", priority=5)
    store.actions("ann").promote("jobs", [later[1].id, later[0].id])
    assert [item.value for item in jobs.items().items] == [b"now", b"later1", b"later0"]


def test_what_is_delayed_is_not_taken_and_comes_back_with_its_attempts(store: Store, clock: Clock) -> None:
    jobs, mail = store.create_queue("jobs"), store.create_queue("mail", kind="fifo")
    tried = jobs.push(b"tried", priority=5)
    jobs.release(jobs.lease())
    jobs.push(b"next", priority=5)
    first, _second = mail.enqueue_many([b"first", b"second"])
    ann = store.actions("ann")
    assert ann.delay("jobs", [tried.id], delay=timedelta(0)) == Changed(count=0, skipped=1, trash_id=None)
    ann.delay("jobs", [tried.id], delay=timedelta(minutes=1))
    ann.delay("mail", [first.id], due=datetime.fromtimestamp(clock.now + 60, UTC))
    assert [item.value for item in (jobs.pop_min(), mail.dequeue())] == [b"next", b"second"]
    assert (jobs.pop_min(), mail.dequeue()) == (None, None)
    clock.advance(61)
    assert (jobs.promote(), mail.promote()) == (1, 1)
    assert jobs.find(tried.id).attempts == 1
    assert [item.value for item in (jobs.pop_min(), mail.dequeue())] == [b"tried", b"first"]
    check_full_count(store, jobs)
    with pytest.raises(BadTime):
        ann.delay("jobs", [tried.id])


def test_rescheduling_to_a_moment_or_to_now(store: Store, ann: Actions, jobs: Queue, clock: Clock) -> None:
    item = jobs.push(b"later", priority=5, delay=timedelta(hours=1))
    due = datetime.fromtimestamp(clock.now + 90, UTC)
    changed = ann.reschedule("jobs", [item.id], due=due)
    assert jobs.find(item.id).due_at == due
    entry = store.audit.entries(queue="jobs").entries[0]
    assert entry.before["due"] == item.due_at.isoformat()
    assert entry.after["due"] == due.isoformat()
    assert ann.reschedule("jobs", [item.id], due=due) == Changed(count=0, skipped=1, trash_id=None)
    ann.undo(changed.trash_id)
    assert jobs.find(item.id) == item
    assert ann.reschedule("jobs", [item.id], delay=timedelta(0)).count == 1
    assert jobs.find(item.id).state == "ready"
    with pytest.raises(BadTime):
        ann.reschedule("jobs", [item.id])
    with pytest.raises(BadTime):
        ann.reschedule("jobs", [item.id], due=datetime(2030, 1, 1))


def test_a_worker_whose_lease_was_taken_back_cannot_acknowledge_until_it_is_his_again(
    store: Store, ann: Actions, jobs: Queue
) -> None:
    jobs.push(b"a", priority=1)
    lease = jobs.lease(seconds=60, worker="w1")
    changed = ann.release("jobs", [lease.item.id])
    entry = store.audit.entries(queue="jobs").entries[0]
    assert entry.before["worker"] == "w1"
    with pytest.raises(StaleLease):
        jobs.ack(lease)
    ann.undo(changed.trash_id)
    assert jobs.find(lease.item.id).worker == "w1"
    jobs.ack(lease)
    assert jobs.depth() == 0
    check_full_count(store, jobs)


def test_releasing_takes_nothing_from_the_next_worker(ann: Actions, jobs: Queue) -> None:
    jobs.push(b"a", priority=1)
    first = jobs.lease(seconds=60, worker="w1")
    seen = {first.item.id: ann.pick("jobs", [first.item.id]).picked[0].etag}
    jobs.extend(first, seconds=600)
    assert ann.pick("jobs", [first.item.id]).picked[0].etag == seen[first.item.id], "extending is no change"
    jobs.release(first)
    second = jobs.lease(seconds=60, worker="w2")
    with pytest.raises(ItemChanged):
        ann.release("jobs", [first.item.id], expect=seen)
    jobs.ack(second)


def test_releasing_the_last_attempt_leaves_a_dead_item_and_undo_the_lease(
    store: Store, ann: Actions, jobs: Queue
) -> None:
    jobs.configure(max_attempts=1)
    jobs.push(b"a", priority=1)
    lease = jobs.lease(seconds=60, worker="w1")
    before = dump(store, jobs)
    changed = ann.release("jobs", [lease.item.id], reason="hangs")
    dead = jobs.find(lease.item.id)
    assert (dead.state, dead.reason, dead.worker) == ("dead", "hangs", "w1")
    check_full_count(store, jobs)
    ann.undo(changed.trash_id)
    assert dump(store, jobs) == before


def test_leasing_and_acknowledging_by_hand(store: Store, jobs: Queue) -> None:
    items = [jobs.push(b"a", priority=1), jobs.push(b"b", priority=2)]
    ann, bob = store.actions("ann"), store.actions("bob")
    with pytest.raises(HeadChanged):
        ann.lease("jobs", seconds=60, expect=items[1].id)
    assert jobs.find(items[0].id).state == "ready"
    lease = ann.lease("jobs", seconds=60, expect=items[0].id, reason="to look at")
    assert (lease.item.worker, jobs.find(items[0].id).state) == ("ann", "leased")
    assert ann.lease("jobs", seconds=60, end="max").item.id == items[1].id
    assert ann.lease("jobs", seconds=60) is None
    with pytest.raises(HeadChanged, match="Nothing is ready"):
        ann.lease("jobs", seconds=60, expect=items[0].id)
    with pytest.raises(ItemLeased, match="Another worker"):
        bob.ack("jobs", items[0].id)
    before = dump(store, jobs)
    seen = ann.pick("jobs", [items[0].id]).picked[0].etag
    popped = ann.ack("jobs", items[0].id, expect=seen)
    assert jobs.find(items[0].id) is None
    check_full_count(store, jobs)
    assert [entry.verb for entry in store.audit.entries(queue="jobs").entries] == ["ack", "lease", "lease"]
    with pytest.raises(ItemNotFound):
        ann.ack("jobs", items[0].id)
    ann.undo(popped.trash_id)
    assert dump(store, jobs) == before
    ann.release("jobs", [items[0].id])
    with pytest.raises(WrongState):
        ann.ack("jobs", items[0].id)


def test_an_attached_queue_has_no_such_states(store: Store, ann: Actions) -> None:
    attached = store.attach("legacy", prefix=b"theirs")
    item = attached.push(b"x", priority=1)
    for act in (ann.promote, ann.retry_dead, ann.release):
        with pytest.raises(NotForAttached):
            act("legacy", [item.id])
    with pytest.raises(NotForAttached):
        ann.lease("legacy", seconds=60)
    picked = ann.pick("legacy", [item.id, "key-00", "00" * 20])
    assert [found.item for found in picked.picked] == [item]
    assert picked.missing == ("key-00", "00" * 20)
    with pytest.raises(ItemChanged):
        ann.delete_items("legacy", [item.id], expect={item.id: "another"})
    assert ann.delete_items("legacy", [item.id], expect={item.id: picked.picked[0].etag}).count == 1
