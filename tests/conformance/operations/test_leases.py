"""Leases: held by one worker at a time, back at their place when that one fails, dead after too many attempts."""

import math
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from queues import Item, Lease, Queue, Store, open_store
from queues.errors import (
    BadCursor,
    BadSetting,
    BadTime,
    BadToken,
    BadValue,
    NaiveTime,
    QueueNotFound,
    QueuePaused,
    StaleLease,
    StoreFull,
    TooLarge,
    WrongKind,
)
from queues.keys.keyspace import Keyspace
from tests.all_items import all_items
from tests.conftest import Clock
from tests.full_count import check_full_count
from tests.sweeps import merge_generations

MINUTE = timedelta(minutes=1)


@pytest.fixture
def jobs(store: Store) -> Iterator[Queue]:
    """A queue whose counters and items agree whatever a test did."""
    jobs = store.create_queue("jobs", bands=[0, 10])
    yield jobs
    check_full_count(store, store.queue(jobs.name))


def values(items: list[Item] | tuple[Item, ...]) -> list[bytes]:
    return [item.value for item in items]


def at(clock: Clock, seconds: float = 0) -> datetime:
    return datetime.fromtimestamp(clock.now + seconds, UTC)


def depths(queue: Queue) -> tuple[int, int, int, int]:
    ready, delayed, leased, dead = (queue.depth(state) for state in ("ready", "delayed", "leased", "dead"))
    totals = queue.totals()
    assert (totals.ready, totals.delayed, totals.leased, totals.dead) == (ready, delayed, leased, dead)
    return ready, delayed, leased, dead


def kill(jobs: Queue, times: int = 5, reason: str = "") -> Item:
    """Lease the first item and give it back until it is dead."""
    for _ in range(times):
        item = jobs.release(jobs.lease(), reason=reason)
    assert item.state == "dead"
    return item


def test_a_leased_item_is_leased_once(jobs: Queue, clock: Clock) -> None:
    pushed = jobs.push(b"x", priority=5)
    lease = jobs.lease(seconds=30, worker="w1")
    item = lease.item
    assert (item.id, item.value, item.priority, item.count) == (pushed.id, b"x", 5, pushed.count)
    assert (item.state, item.attempts, item.worker) == ("leased", 1, "w1")
    assert (item.leased_at, item.expires_at, lease.expires_at) == (at(clock), at(clock, 30), at(clock, 30))
    assert jobs.find(pushed.id) == item
    assert jobs.leased().items == (item,)
    assert jobs.pop_min() is jobs.peek_min() is jobs.oldest() is None
    assert jobs.lease() is None
    assert depths(jobs) == (0, 0, 1, 0)
    status = jobs.status()
    assert (status.totals.leased, status.next_expiry) == (1, at(clock, 30))
    assert [band.depth for band in status.bands] == [0, 0, 0]
    assert status.totals.traffic == {"push": 1, "lease": 1}


def test_leases_are_taken_in_order_from_either_end(store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(6)])
    assert [lease.item.value for lease in jobs.lease_many(2)] == [b"0", b"1"]
    assert [lease.item.value for lease in jobs.lease_many(2, end="max")] == [b"5", b"4"]
    assert [lease.item.value for lease in jobs.lease_many(1_000)] == [b"2", b"3"]
    mail = store.create_queue("mail", kind="fifo")
    mail.enqueue_many([b"1", b"2"])
    assert mail.lease(end="head").item.value == b"1"
    for end in ("max", "tail"):
        with pytest.raises(WrongKind, match="head only"):
            mail.lease(end=end)
    again = mail.release(mail.lease())
    assert (again.priority, mail.peek()) == (None, again)
    check_full_count(store, mail)


def test_what_is_acknowledged_is_gone_for_good(jobs: Queue, clock: Clock) -> None:
    jobs.push(b"x", priority=1)
    lease = jobs.lease()
    jobs.ack(lease)
    assert jobs.find(lease.item.id) is None
    assert depths(jobs) == (0, 0, 0, 0)
    clock.advance(3600)
    assert jobs.expire() == 0
    assert jobs.totals().traffic == {"push": 1, "lease": 1, "ack": 1}
    before = jobs.status()
    jobs.ack(lease)
    jobs.ack(lease.token)
    assert jobs.status() == before, "acknowledging again changes nothing"
    assert before.next_expiry is None


def test_a_lease_that_is_not_acknowledged_in_time_comes_back_to_its_place(jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"first", 1), (b"second", 1)])
    first = jobs.peek_min()
    lease = jobs.lease(seconds=10)
    clock.advance(9.999)
    assert jobs.expire() == 0
    clock.advance(0.001)
    jobs.push(b"third", priority=1)
    assert jobs.expire() == 1
    assert jobs.expire() == 0
    back = jobs.peek_min()
    assert (back.id, back.priority, back.count, back.attempts) == (first.id, 1, first.count, 1)
    assert jobs.find(first.id) == back == jobs.items().items[0]
    assert values(jobs.items().items) == [b"first", b"second", b"third"]
    assert jobs.totals().traffic == {"push": 3, "lease": 1, "expire": 1}
    for late in (jobs.release, lambda lease: jobs.extend(lease, seconds=5)):
        with pytest.raises(StaleLease):
            late(lease)
    assert depths(jobs) == (3, 0, 0, 0)
    assert jobs.pop_min() == back


def test_only_the_present_holder_can_acknowledge(jobs: Queue, clock: Clock) -> None:
    jobs.push(b"x", priority=1)
    old = jobs.lease(seconds=10)
    clock.advance(10)
    jobs.expire()
    new = jobs.lease(seconds=10)
    assert (new.item.id, new.item.attempts) == (old.item.id, 2)
    assert new.token != old.token
    for late in (jobs.ack, jobs.release, lambda lease: jobs.extend(lease, seconds=5)):
        with pytest.raises(StaleLease):
            late(old)
    assert jobs.leased().items == (new.item,)
    jobs.ack(new)
    jobs.ack(old)  # the item is nowhere: nothing is left to tell apart
    assert depths(jobs) == (0, 0, 0, 0)


def test_many_are_acknowledged_and_stale_ones_told(jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(5)])
    short, long = jobs.lease_many(2, seconds=5), jobs.lease_many(2, seconds=50)
    clock.advance(5)
    assert jobs.expire() == 2
    for lease in jobs.lease_many(2):  # the same two: the first leases are stale now
        jobs.release(lease)
    assert jobs.ack_many([*short, *long, long[0].token]) == [short[0].token, short[1].token]
    assert depths(jobs) == (3, 0, 0, 0)
    assert jobs.totals().traffic["ack"] == 2
    assert jobs.ack_many([]) == jobs.ack_many(long) == []
    lease = jobs.lease()
    with pytest.raises(BadToken, match="“xyz” is not the token of a lease"):
        jobs.ack_many([lease, "xyz"])
    with pytest.raises(BadToken):
        jobs.ack_many([lease.token[:40].upper() + lease.token[40:]])
    assert jobs.ack_many([lease, lease.token, lease]) == []
    assert depths(jobs)[2] == 0
    with pytest.raises(TooLarge):
        jobs.ack_many(f"{n:040x}-{0:016x}" for n in range(1_001))


def expired(jobs: Queue, clock: Clock) -> Lease:
    """Return a lease that has expired, its item ready at its place again."""
    lease = jobs.lease(seconds=10)
    clock.advance(10)
    assert jobs.expire() == 1
    return lease


def test_an_expired_lease_that_no_caller_took_is_acknowledged(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"a", 1), (b"b", 1), (b"c", 20)])
    lease = expired(jobs, clock)
    assert jobs.find(lease.item.id).state == "ready"
    assert [finding for finding in store.doctor.examine().findings if finding.kind != "slot"] == []
    jobs.ack(lease, must_hold=True)
    assert jobs.find(lease.item.id) is None
    assert values(jobs.items().items) == [b"b", b"c"]
    assert depths(jobs) == (2, 0, 0, 0)
    assert jobs.totals().traffic == {"push": 3, "lease": 1, "expire": 1, "ack": 1}
    jobs.ack(lease)
    with pytest.raises(StaleLease):
        jobs.ack(lease, must_hold=True)
    assert jobs.totals().traffic["ack"] == 1


def test_a_lease_that_expired_at_the_last_attempt_is_acknowledged(jobs: Queue, clock: Clock) -> None:
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"a", 1), (b"b", 2)])
    lease, other = expired(jobs, clock), expired(jobs, clock)
    assert depths(jobs) == (0, 0, 0, 2)
    assert jobs.ack_many([lease, other.token, lease.token]) == []
    assert depths(jobs) == (0, 0, 0, 0)
    assert jobs.totals().traffic["ack"] == 2


def test_many_expired_leases_are_acknowledged_with_live_ones(store: Store, jobs: Queue, clock: Clock) -> None:
    mail = store.create_queue("mail", kind="fifo")
    mail.enqueue_many([b"%d" % n for n in range(6)])
    short, long = mail.lease_many(2, seconds=5), mail.lease_many(2, seconds=50)
    clock.advance(5)
    mail.expire()
    again = mail.lease()
    assert again.item.id == short[0].item.id
    assert mail.ack_many([*long, *short]) == [short[0].token]
    assert values(mail.items().items) == [b"4", b"5"]
    mail.ack(again)
    check_full_count(store, mail)


def there_and_back(store: Store, item: Item) -> None:
    """Move an item to another queue and back."""
    store.create_queue("other")
    store.actions("o").move_items("jobs", [item.id], to="other")
    store.actions("o").move_items("other", [item.id], to="jobs")


OTHERWISE = {
    "leased by another worker": lambda store, jobs, item: jobs.lease(),
    "leased and given back": lambda store, jobs, item: jobs.release(jobs.lease()),
    "leased and given back uncounted": lambda store, jobs, item: jobs.release(jobs.lease(), count_attempt=False),
    "edited": lambda store, jobs, item: store.actions("o").edit_item("jobs", item.id, b"other", expect=item.value),
    "of another priority": lambda store, jobs, item: store.actions("o").reprioritize("jobs", [item.id], priority=3),
    "delayed": lambda store, jobs, item: store.actions("o").delay("jobs", [item.id], delay=MINUTE),
    "moved and moved back": lambda store, jobs, item: there_and_back(store, item),
    "brought to the front": lambda store, jobs, item: store.actions("o").reprioritize("jobs", [item.id], place="front"),
}


@pytest.mark.parametrize("how", OTHERWISE)
def test_an_expired_lease_is_stale_once_anything_else_happened(
    store: Store, jobs: Queue, clock: Clock, how: str
) -> None:
    jobs.push(b"x", priority=1)
    lease = expired(jobs, clock)
    OTHERWISE[how](store, jobs, lease.item)
    before = jobs.find(lease.item.id)
    for must_hold in (False, True):
        with pytest.raises(StaleLease):
            jobs.ack(lease, must_hold=must_hold)
    assert jobs.ack_many([lease]) == [lease.token]
    assert jobs.find(lease.item.id) == before


ACTS = {
    "deleted": lambda acts, item: acts.delete_items("jobs", [item.id]),
    "edited": lambda acts, item: acts.edit_item("jobs", item.id, b"other", expect=item.value),
    "of another priority": lambda acts, item: acts.reprioritize("jobs", [item.id], priority=3),
    "delayed": lambda acts, item: acts.delay("jobs", [item.id], delay=MINUTE),
}


@pytest.mark.parametrize("how", ACTS)
def test_an_undone_act_has_not_happened_to_an_expired_lease_either(
    store: Store, jobs: Queue, clock: Clock, how: str
) -> None:
    jobs.push(b"x", priority=1)
    lease = expired(jobs, clock)
    store.actions("o").undo(ACTS[how](store.actions("o"), lease.item).trash_id)
    jobs.ack(lease, must_hold=True)
    assert depths(jobs) == (0, 0, 0, 0)


def test_an_expired_lease_is_stale_once_the_dead_item_is_retried(jobs: Queue, clock: Clock) -> None:
    jobs.configure(max_attempts=1)
    jobs.push(b"x", priority=1)
    lease = expired(jobs, clock)
    retried = jobs.retry_dead(lease.item.id)
    with pytest.raises(StaleLease):
        jobs.ack(lease)
    assert jobs.find(lease.item.id) == retried


def test_an_expired_lease_of_a_purged_item_is_over(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push(b"x", priority=1)
    lease = expired(jobs, clock)
    (trash_id,) = store.actions("o").purge("jobs", confirm="jobs").trash_ids
    with pytest.raises(StaleLease):
        jobs.ack(lease, must_hold=True)
    jobs.ack(lease)  # nowhere in the queue, as after any deletion
    assert "ack" not in jobs.totals().traffic
    jobs.push(b"y", priority=2)
    store.actions("o").undo(trash_id)
    assert values(jobs.items().items) == [b"x", b"y"]
    while merge_generations(store):
        pass
    jobs.ack(lease, must_hold=True)  # nothing has happened to it
    assert values(jobs.items().items) == [b"y"]


def test_a_released_item_is_back_at_once(jobs: Queue) -> None:
    pushed = jobs.push(b"x", priority=1)
    jobs.push(b"y", priority=1)
    item = jobs.release(jobs.lease(), reason="not mine")
    assert (item.state, item.id, item.count, item.attempts) == ("ready", pushed.id, pushed.count, 1)
    assert jobs.peek_min() == item
    assert jobs.lease().item.attempts == 2
    assert jobs.totals().traffic == {"push": 2, "lease": 2, "release": 1}


def test_a_release_may_count_no_attempt(jobs: Queue) -> None:
    jobs.configure(max_attempts=2)
    pushed = jobs.push(b"x", priority=1)
    for _ in range(5):
        item = jobs.release(jobs.lease(), count_attempt=False)
        assert (item.state, item.id, item.count, item.attempts) == ("ready", pushed.id, pushed.count, 0)
    jobs.release(jobs.lease())
    item = jobs.release(jobs.lease(), count_attempt=False, reason="the process stops")
    assert (item.state, item.attempts) == ("ready", 1), "not dead at the last attempt"
    assert jobs.peek_min() == item
    item = jobs.release(jobs.lease(), count_attempt=False, delay=MINUTE)
    assert (item.state, item.attempts) == ("delayed", 1)
    jobs.promote_now(item.id)
    last = jobs.lease()
    jobs.configure(max_attempts=1)
    assert jobs.release(last, count_attempt=False).state == "ready", "not dead by a lower limit"
    assert jobs.release(jobs.lease()).state == "dead"
    assert "expire" not in jobs.totals().traffic


def test_a_released_item_may_come_back_later(jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"x", 3), (b"y", 3)])
    item = jobs.release(jobs.lease(), delay=MINUTE, reason="try later")
    assert (item.state, item.due_at, item.attempts, item.reason) == ("delayed", at(clock, 60), 1, "try later")
    assert jobs.find(item.id) == item == jobs.delayed().items[0]
    assert depths(jobs) == (1, 1, 0, 0)
    clock.advance(60)
    assert jobs.promote() == 1
    assert [(lease.item.value, lease.item.attempts) for lease in jobs.lease_many(2)] == [(b"y", 1), (b"x", 2)]
    with pytest.raises(BadTime):
        jobs.release(f"{item.id}-{0:016x}", delay="60")


def test_a_lease_is_extended_and_keeps_its_token(jobs: Queue, clock: Clock) -> None:
    jobs.push(b"x", priority=1)
    lease = jobs.lease(seconds=10)
    clock.advance(8)
    longer = jobs.extend(lease, seconds=10)
    assert (longer.token, longer.expires_at) == (lease.token, at(clock, 10))
    assert jobs.find(lease.item.id).expires_at == jobs.status().next_expiry == at(clock, 10)
    clock.advance(5)
    assert jobs.expire() == 0
    clock.advance(6)
    assert jobs.extend(lease.token, seconds=1).item.value == b"x", "time alone does not end a lease"
    shorter = jobs.extend(lease, seconds=0.5)
    assert shorter.expires_at == at(clock, 0.5)
    clock.advance(0.5)
    assert jobs.expire() == 1
    assert jobs.totals().traffic == {"push": 1, "lease": 1, "extend": 3, "expire": 1}


def test_an_item_is_dead_after_its_last_attempt(jobs: Queue, clock: Clock) -> None:
    pushed = jobs.push(b"x", priority=12)
    for attempt in range(1, 6):
        lease = jobs.lease(seconds=1, worker=f"w{attempt}")
        assert lease.item.attempts == attempt
        clock.advance(1)
        assert jobs.expire() == 1
    dead = jobs.find(pushed.id)
    assert (dead.state, dead.attempts, dead.died_at, dead.worker) == ("dead", 5, at(clock), "w5")
    assert (dead.priority, dead.count, dead.value) == (12, pushed.count, b"x")
    assert "expired" in dead.reason
    assert jobs.dead().items == (dead,)
    assert depths(jobs) == (0, 0, 0, 1)
    assert jobs.totals().traffic == {"push": 1, "lease": 5, "expire": 5, "dead": 1}
    assert jobs.lease() is jobs.pop_min() is None


def test_a_release_of_the_last_attempt_says_why_it_is_dead(jobs: Queue) -> None:
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"x", 1), (b"y", 2)])
    item = jobs.release(jobs.lease(worker="w"), delay=MINUTE, reason="no such customer")
    assert (item.state, item.reason, item.worker) == ("dead", "no such customer", "w")
    assert jobs.release(jobs.lease()).reason == "released at attempt 1"
    assert depths(jobs) == (0, 0, 0, 2)
    assert len(kill_long_reason(jobs).reason) == 500


def kill_long_reason(jobs: Queue) -> Item:
    jobs.push(b"z", priority=1)
    return kill(jobs, times=1, reason="é" * 10_000)


def test_attempts_may_be_any_number_or_none(store: Store, jobs: Queue) -> None:
    jobs.configure(max_attempts=2)
    assert store.queue("jobs").config.max_attempts == 2
    jobs.push(b"x", priority=1)
    kill(jobs, times=2)
    jobs.configure(max_attempts=None)
    jobs.push(b"y", priority=1)
    for attempt in range(1, 12):
        assert jobs.release(jobs.lease()).attempts == attempt
    jobs.configure(max_attempts=11)
    assert jobs.release(jobs.lease()).state == "dead"
    store.rename_queue("jobs", "tasks")
    trash_id = store.delete_queue("tasks")
    assert store.restore(trash_id).config.max_attempts == 11
    jobs.configure(max_attempts=5)
    for bad in (0, -1, True, 1.5, "5", 1_000_001, 10**400):
        with pytest.raises(BadSetting):
            jobs.configure(max_attempts=bad)
    assert jobs.config.max_attempts == 5


def test_a_dead_item_is_retried_with_all_its_attempts(jobs: Queue) -> None:
    pushed = jobs.push(b"x", priority=1)
    kill(jobs)
    jobs.push(b"y", priority=1)
    retried = jobs.retry_dead(pushed.id)
    assert (retried.state, retried.attempts, retried.count) == ("ready", 0, pushed.count)
    assert jobs.peek_min() == jobs.find(pushed.id) == retried
    assert depths(jobs) == (2, 0, 0, 0)
    assert jobs.totals().traffic["retry"] == 1
    assert jobs.retry_dead(pushed.id) is jobs.delete_dead(pushed.id) is None
    assert jobs.lease().item.attempts == 1


def test_a_dead_item_is_deleted(jobs: Queue) -> None:
    pushed = jobs.push(b"x", priority=1)
    dead = kill(jobs, reason="r")
    assert jobs.delete_dead(pushed.id) == dead
    for gone in (pushed.id, "0" * 40, "", "key-00"):
        assert jobs.find(gone) is jobs.delete_dead(gone) is jobs.retry_dead(gone) is None
    assert depths(jobs) == (0, 0, 0, 0)
    assert jobs.totals().traffic["delete"] == 1


def walk(page: Callable, limit: int) -> list[bytes]:
    return values(all_items(page, limit=limit, preview=2))


@pytest.mark.parametrize("limit", [1, 3, 9, 10, 1_000])
def test_pages_walk_each_item_once_in_order(jobs: Queue, clock: Clock, limit: int) -> None:
    jobs.push_many([(b"%d." % n, n) for n in range(10)])
    for n in range(10):
        jobs.lease(seconds=100 - n // 2)
    in_order = [b"%d." % n for n in sorted(range(10), key=lambda n: (100 - n // 2, n))]
    assert walk(jobs.leased, limit) == in_order
    jobs.configure(max_attempts=1)
    for seconds in range(94, 101):
        clock.now = 1_800_000_000.0 + seconds
        jobs.expire()
    assert walk(jobs.leased, limit) == []
    assert walk(jobs.dead, limit) == in_order


def test_cursors_of_different_lists_are_told_apart(jobs: Queue) -> None:
    jobs.push_many([(b"", 1)] * 4)
    jobs.configure(max_attempts=1)
    for lease in jobs.lease_many(2):
        jobs.release(lease)
    jobs.lease_many(2)
    leased, dead = jobs.leased(limit=1).cursor, jobs.dead(limit=1).cursor
    for page, cursor in ((jobs.leased, dead), (jobs.dead, leased), (jobs.delayed, dead), (jobs.items, leased)):
        with pytest.raises(BadCursor, match="another list"):
            page(after=cursor)
    for page in (jobs.leased, jobs.dead):
        for limit in (0, 1_001):
            with pytest.raises(TooLarge):
                page(limit=limit)


@pytest.mark.parametrize(
    "token",
    ["", "x", "-", "0" * 40, "0" * 40 + "-", "0" * 40 + "-" + "0" * 15, "z" * 40 + "-" + "0" * 16, b"x", 5, None],
)
def test_what_is_no_token_is_refused(jobs: Queue, token: object) -> None:
    for verb in (jobs.ack, jobs.release, lambda token: jobs.extend(token, seconds=1), lambda t: jobs.ack_many([t])):
        with pytest.raises(BadToken):
            verb(token)


def test_a_lease_that_never_was_is_stale_or_done(jobs: Queue) -> None:
    token = f"{0:040x}-{0:016x}"
    jobs.ack(token)
    for verb in (jobs.release, lambda token: jobs.extend(token, seconds=1)):
        with pytest.raises(StaleLease):
            verb(token)


def test_bad_times_numbers_and_names_are_refused(jobs: Queue) -> None:
    jobs.push(b"x", priority=1)
    for seconds in (0, -1, math.nan, math.inf, True, "60", None, -MINUTE, 1e300, 1.7e308):
        with pytest.raises(BadTime):
            jobs.lease(seconds=seconds)
    for n in (0, -1, 1_001, True, 1.0):
        with pytest.raises(TooLarge):
            jobs.lease_many(n)
    for limit in (0, 1_001):
        with pytest.raises(TooLarge):
            jobs.expire(limit)
    with pytest.raises(BadValue, match="name"):
        jobs.lease(worker=5)
    assert depths(jobs) == (1, 0, 0, 0)
    lease = jobs.lease(worker="w" * 1_000)
    assert len(lease.item.worker) == 200
    for seconds in (0, math.nan):
        with pytest.raises(BadTime):
            jobs.extend(lease, seconds=seconds)
    with pytest.raises(BadValue, match="reason"):
        jobs.release(lease, reason=None)
    assert jobs.release(lease).state == "ready"


def test_a_worker_is_named_after_its_process(jobs: Queue) -> None:
    jobs.push(b"x", priority=1)
    assert jobs.lease().item.worker.endswith(f":{os.getpid()}")


def test_popping_says_how_often_an_item_was_tried(store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"x", 1), (b"y", 2)])
    jobs.release(jobs.lease())
    assert [item.attempts for item in jobs.items().items] == [1, 0]
    assert jobs.oldest().attempts == 1
    popped = store.actions("ann").pop("jobs")
    assert popped.item.attempts == 1
    store.actions("ann").undo(popped.trash_id)
    assert jobs.lease().item.attempts == 2
    assert jobs.pop_max().attempts == 0


def test_a_pause_stops_leasing_and_nothing_else(jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(4)])
    a, b, c = jobs.lease_many(3, seconds=10)
    jobs.pause(reason="r")
    with pytest.raises(QueuePaused):
        jobs.lease()
    jobs.ack(a)
    jobs.release(b)
    jobs.extend(c, seconds=20)
    clock.advance(20)
    assert jobs.expire() == 1
    assert depths(jobs) == (3, 0, 0, 0)


def test_leases_survive_renaming_deleting_and_restoring(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(4)])
    a, b, c, d = jobs.lease_many(4, seconds=60)
    store.rename_queue("jobs", "tasks")
    jobs.ack(a)
    trash_id = store.delete_queue("tasks")
    for verb in (jobs.ack, jobs.release, lambda lease: jobs.extend(lease, seconds=5)):
        with pytest.raises(QueueNotFound):
            verb(b)
    with pytest.raises(QueueNotFound):
        jobs.expire()
    clock.advance(120)
    store.restore(trash_id)
    jobs.ack(b)
    jobs.extend(c, seconds=60)
    assert jobs.expire() == 1
    jobs.ack(d)
    assert depths(jobs) == (0, 0, 1, 0)


def test_everything_joins_a_transaction(store: Store, jobs: Queue) -> None:
    done = store.create_queue("done")
    jobs.push_many([(b"%d" % n, n) for n in range(4)])

    def work(tr):
        a, b, c, d = jobs.lease_many(4, seconds=60, tr=tr)
        assert jobs.depth("leased", tr=tr) == 4
        assert jobs.leased(tr=tr).items == (a.item, b.item, c.item, d.item)
        jobs.ack(a, tr=tr)
        jobs.ack(a, tr=tr)
        done.push(a.item.value, priority=1, tr=tr)
        jobs.extend(b, seconds=90, tr=tr)
        jobs.release(c, tr=tr)
        with pytest.raises(StaleLease):
            jobs.release(c, tr=tr)
        assert jobs.expire(tr=tr) == 0
        jobs.configure(max_attempts=1, tr=tr)
        dead = jobs.release(d, tr=tr)
        assert jobs.dead(tr=tr).items == (dead,)
        assert jobs.retry_dead(dead.id, tr=tr).state == "ready"

    def fail(tr):
        work(tr)
        raise LookupError

    before = store.snapshot([jobs.id, done.id]).queues
    with pytest.raises(LookupError):
        store.transact(fail)
    assert store.snapshot([jobs.id, done.id]).queues == before
    store.transact(work)
    assert depths(jobs) == (2, 0, 1, 0)
    assert done.depth() == 1


@pytest.mark.parametrize("verb", ["lease", "pop_min", "pop_max", "pop_many"])
def test_a_poll_gets_what_a_dead_worker_held(jobs: Queue, clock: Clock, verb: str) -> None:
    pushed = jobs.push(b"x", priority=1)
    jobs.lease(seconds=10)
    take = {"lease": jobs.lease, "pop_min": jobs.pop_min, "pop_max": jobs.pop_max, "pop_many": lambda: jobs.pop_many(5)}
    clock.advance(10.2)
    assert not take[verb](), "the sweeper is not late yet"
    clock.advance(0.1)
    taken = take[verb]()
    item = taken.item if verb == "lease" else taken[0] if verb == "pop_many" else taken
    assert (item.id, item.count, item.attempts) == (pushed.id, pushed.count, 2 if verb == "lease" else 1)
    assert jobs.totals().traffic["expire"] == 1


def test_taking_ends_a_few_leases_and_leaves_the_rest_to_later_calls(jobs: Queue, clock: Clock) -> None:
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"", n) for n in range(20)])
    jobs.lease_many(20, seconds=1)
    jobs.push(b"late", priority=1, delay=timedelta(seconds=1))
    clock.advance(2)
    assert jobs.pop_min().value == b"late"
    assert depths(jobs) == (0, 0, 12, 8)
    assert {item.died_at for item in jobs.dead().items} == {at(clock)}
    assert jobs.lease() is None
    assert depths(jobs) == (0, 0, 4, 16)


def test_dead_items_are_read_from_the_time_of_their_death_on(jobs: Queue, clock: Clock) -> None:
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"%d" % n, n) for n in range(6)])
    for _ in range(3):
        for lease in jobs.lease_many(2):
            jobs.release(lease, reason="failed")
        clock.advance(0.001)
    died = [item.died_at for item in jobs.dead().items]
    page = jobs.dead(since=died[2], limit=3)
    assert [item.value for item in page.items] == [b"2", b"3", b"4"]
    assert [item.value for item in jobs.dead(since=died[2], after=page.cursor).items] == [b"5"]
    assert jobs.dead(since=died[5] + timedelta(milliseconds=1)).items == ()
    assert [item.value for item in jobs.dead(since=died[0] - timedelta(days=1)).items][:1] == [b"0"]
    with pytest.raises(NaiveTime):
        jobs.dead(since=datetime(2026, 1, 1))


def test_taking_in_a_transaction_or_while_paused_ends_no_lease(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push(b"x", priority=1)
    jobs.lease(seconds=1)
    clock.advance(60)
    assert store.transact(lambda tr: (jobs.pop_min(tr=tr), jobs.lease(tr=tr))) == (None, None)
    jobs.pause(reason="r")
    with pytest.raises(QueuePaused):
        jobs.pop_min()
    assert depths(jobs) == (0, 0, 1, 0)


def test_sweeping_goes_in_steps_by_number_and_by_size(jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"", n) for n in range(25)])
    jobs.lease_many(25, seconds=1)
    clock.advance(1)
    assert [jobs.expire(10) for _ in range(4)] == [10, 10, 5, 0]
    jobs.pop_many(25)
    jobs.push_many([(bytes(90_000), n) for n in range(25)])
    jobs.lease_many(25, seconds=1)
    clock.advance(1)
    assert [jobs.expire() for _ in range(4)] == [11, 11, 3, 0]


def test_the_largest_item_goes_through_all_states(store: Store, clock: Clock) -> None:
    texts = store.create_queue("texts", priority_type="str")
    value = bytes(range(256)) * 351 + bytes(144)
    pushed = texts.push(value, priority="\x00" * 200)
    texts.configure(max_attempts=2)
    lease = texts.lease(worker="字" * 300)
    texts.extend(lease, seconds=5)
    assert texts.release(lease, delay=MINUTE, reason="\x00" * 900).value == value
    clock.advance(60)
    assert texts.promote() == 1
    texts.lease(seconds=1, worker="é" * 300)
    clock.advance(1)
    assert texts.expire() == 1
    assert texts.dead().items[0].value == value
    assert texts.retry_dead(pushed.id).value == value
    check_full_count(store, texts)


def test_a_minute_of_clock_skew_harms_only_punctuality(store: Store, clock: Clock) -> None:
    """Two stores on the same data, one of them a minute ahead: leases are never in doubt."""
    ahead_clock = Clock(clock.now + 60)
    ahead = Store(store.context.kv, url=store.url, keyspace=Keyspace(("pq",)), clock=ahead_clock)
    here, there = store.create_queue("jobs"), ahead.queue("jobs")

    here.push_many([(b"%d" % n, n) for n in range(3)])
    lease = here.lease(seconds=30)
    assert there.expire() == 1, "too early by our clock"
    stolen = there.lease(seconds=30)
    assert (stolen.item.id, stolen.item.attempts) == (lease.item.id, 2)
    for late in (here.ack, here.release, lambda lease: here.extend(lease, seconds=5)):
        with pytest.raises(StaleLease):
            late(lease)
    clock.advance(80)
    assert here.expire() == 0, "too late by theirs"
    there.ack(stolen)
    assert here.find(lease.item.id) is None

    here.push(b"later", priority=-1, delay=MINUTE)
    assert there.promote() == 0
    ahead_clock.advance(80)
    assert there.promote() == 1
    assert here.pop_min().value == b"later"
    mine = here.lease(seconds=30)
    there.ack(mine)
    here.ack(mine)
    assert depths(here) == depths(there) == (1, 0, 0, 0)
    check_full_count(store, here)


def test_a_full_store_still_leases_and_acknowledges(tmp_path: Path, clock: Clock) -> None:
    with open_store(f"lmdb:{tmp_path / 'full'}", clock=clock, max_bytes=3_000_000) as store:
        jobs = store.create_queue("jobs")
        pushed = 0
        with pytest.raises(StoreFull):
            while True:
                pushed += len(jobs.push_many([(bytes(10_000), 1)] * 10))
        leases = [lease for _ in range(4) for lease in jobs.lease_many(10, seconds=10)]
        jobs.extend(leases[0], seconds=10)
        jobs.configure(max_attempts=1)
        dead = jobs.release(leases[1])
        jobs.configure(max_attempts=5)
        jobs.release(leases[2])
        jobs.release(leases[3], delay=MINUTE)
        jobs.ack_many(leases[4:20])
        clock.advance(60)
        assert jobs.expire() + jobs.expire() == 21
        assert jobs.promote() == 1
        assert jobs.delete_dead(dead.id) == dead
        assert check_full_count(store, jobs) == jobs.depth() == pushed - 17


def test_a_lease_of_another_queue_is_refused(store: Store, jobs: Queue) -> None:
    other = store.create_queue("other")
    jobs.push(b"x", priority=1)
    lease = jobs.lease()
    for settle in (other.ack, other.release, lambda lease: other.extend(lease, seconds=60)):
        with pytest.raises(BadToken, match="another queue"):
            settle(lease)
    with pytest.raises(BadToken, match="another queue"):
        other.ack_many([lease])
    assert jobs.depth("leased") == 1
    jobs.ack(lease)
    assert jobs.totals().traffic["ack"] == 1
