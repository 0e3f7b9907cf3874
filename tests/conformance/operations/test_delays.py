"""Delays: not a moment early, in due order, listed and counted, and late ones promoted by pops."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from queues import Item, PriorityQueue, Queue, Store
from queues.errors import (
    BadTime,
    BadValue,
    QueueClosed,
    QueuePaused,
)
from tests.all_items import all_items
from tests.conftest import Clock
from tests.full_count import check_full_count

MINUTE = timedelta(minutes=1)
MILLISECOND = timedelta(milliseconds=1)


@pytest.fixture
def jobs(store: Store) -> Queue:
    return store.create_queue("jobs", bands=[0, 10])


@pytest.fixture
def mail(store: Store) -> Queue:
    return store.create_queue("mail", kind="fifo")


def now(clock: Clock) -> datetime:
    return datetime.fromtimestamp(clock.now, UTC)


def values(items: list[Item] | tuple[Item, ...]) -> list[bytes]:
    return [item.value for item in items]


def test_a_delayed_item_is_there_and_not_taken(store: Store, jobs: Queue, clock: Clock) -> None:
    pushed = jobs.push(b"later", priority=-5, delay=MINUTE)
    assert (pushed.state, pushed.due_at, pushed.count) == ("delayed", now(clock) + MINUTE, None)
    assert (pushed.priority, pushed.size, pushed.pushed_at) == (-5, 5, now(clock))
    assert jobs.find(pushed.id) == pushed
    assert jobs.delayed().items == (pushed,)
    assert jobs.pop_min() is jobs.pop_max() is jobs.peek_min() is jobs.peek_max() is None
    assert jobs.pop_many(10) == list(jobs.items().items) == []
    assert (jobs.depth(), jobs.depth("delayed")) == (0, 1)
    status = jobs.status()
    assert (status.totals.ready, status.totals.delayed, status.next_due) == (0, 1, pushed.due_at)
    assert status.totals.traffic == {"push": 1}
    check_full_count(store, jobs)


def test_nothing_is_promoted_early(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push(b"later", priority=1, delay=MINUTE)
    clock.advance(59.999)
    assert jobs.promote() == 0
    assert jobs.pop_min() is None
    clock.advance(0.001)
    assert jobs.promote() == 1
    assert jobs.promote() == 0
    assert (jobs.depth(), jobs.depth("delayed"), jobs.status().next_due) == (1, 0, None)
    assert jobs.totals().traffic == {"push": 1, "promote": 1}
    check_full_count(store, jobs)
    assert jobs.pop_min().value == b"later"


def test_parts_of_a_millisecond_are_rounded_up(jobs: Queue, clock: Clock) -> None:
    for pushed in (
        jobs.push(b"x", priority=1, delay=timedelta(microseconds=1)),
        jobs.push(b"x", priority=1, due=now(clock) + timedelta(microseconds=1)),
        jobs.push(b"x", priority=1, due=now(clock) + timedelta(microseconds=999)),
    ):
        assert pushed.due_at == now(clock) + MILLISECOND
    clock.advance(0.0005)
    assert jobs.push(b"x", priority=1, delay=MINUTE).due_at == now(clock).replace(microsecond=1000) + MINUTE


def test_promoted_items_are_behind_what_was_pushed_before(jobs: Queue, clock: Clock) -> None:
    jobs.push(b"third", priority=1, delay=2 * MINUTE)
    jobs.push(b"second", priority=1, delay=MINUTE)
    jobs.push(b"smaller", priority=0, delay=3 * MINUTE)
    jobs.push(b"first", priority=1)
    clock.advance(180)
    assert jobs.promote() == 3
    jobs.push(b"fourth", priority=1)
    assert values(jobs.pop_many(9)) == [b"smaller", b"first", b"second", b"third", b"fourth"]


def test_an_item_is_the_same_through_all_of_it(jobs: Queue, clock: Clock) -> None:
    pushed = jobs.push(b"later", priority=7, delay=MINUTE)
    clock.advance(60)
    jobs.promote()
    found = jobs.find(pushed.id)
    assert (found.state, found.due_at, found.priority, found.pushed_at) == ("ready", None, 7, pushed.pushed_at)
    assert jobs.oldest() == jobs.peek_min() == found
    assert jobs.pop_min() == found
    assert jobs.find(pushed.id) is None


@pytest.mark.parametrize(
    "when",
    [
        {"delay": timedelta(0)},
        {"delay": -MINUTE},
        {"delay": timedelta.min},
        {"due": datetime(1969, 1, 1, tzinfo=UTC)},
        {"due": datetime.min.replace(tzinfo=UTC)},
    ],
)
def test_what_is_due_is_ready_at_once(store: Store, jobs: Queue, mail: Queue, when: dict) -> None:
    assert jobs.push(b"x", priority=1, **when).state == "ready"
    assert jobs.peek_min().value == b"x"
    assert mail.enqueue(b"x", **when).state == "ready"
    assert mail.dequeue().value == b"x"
    assert jobs.status().totals.delayed == 0
    check_full_count(store, jobs)


def test_due_now_is_ready_at_once(jobs: Queue, clock: Clock) -> None:
    assert jobs.push(b"x", priority=1, due=now(clock)).state == "ready"
    assert jobs.push(b"x", priority=1, due=now(clock) + MILLISECOND).state == "delayed"


def test_a_due_time_of_any_time_zone_is_the_same_moment(jobs: Queue, clock: Clock) -> None:
    there = (now(clock) + MINUTE).astimezone(timezone(timedelta(hours=-9)))
    assert jobs.push(b"x", priority=1, due=there).due_at == there


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ({"delay": MINUTE, "due": datetime(2100, 1, 1, tzinfo=UTC)}, "not both"),
        ({"due": datetime(2100, 1, 1)}, "time zone"),
        ({"delay": "60"}, "timedelta, not '60'"),
        ({"due": 4_102_444_800.0}, "datetime, not float"),
        ({"due": "tomorrow"}, "datetime, not str"),
        ({"delay": timedelta.max}, "year 10000"),
        ({"delay": timedelta(days=365 * 9_000)}, "year 10000"),
    ],
)
def test_bad_times_are_refused_and_nothing_is_pushed(store: Store, jobs: Queue, when: dict, says: str) -> None:
    mail = store.create_queue("mail", kind="fifo")
    before = jobs.status(), mail.status()
    for push in (
        lambda: jobs.push(b"x", priority=1, **when),
        lambda: jobs.push_many([(b"x", 1)], **when),
        lambda: mail.enqueue(b"x", **when),
        lambda: mail.enqueue_many([b"x"], **when),
    ):
        with pytest.raises(BadTime, match=says) as caught:
            push()
        assert isinstance(caught.value, ValueError)
    assert (jobs.status(), mail.status()) == before


def test_many_are_delayed_together_or_each_for_itself(store: Store, jobs: Queue, clock: Clock) -> None:
    pushed = jobs.push_many(
        [
            (b"hour", 1, timedelta(hours=1)),
            (b"at once", 1, None),
            (b"minute", 1),
            (b"past", 1, now(clock) - MINUTE),
            (b"day", 1, now(clock) + timedelta(days=1)),
        ],
        delay=MINUTE,
    )
    assert [item.state for item in pushed] == ["delayed", "ready", "delayed", "ready", "delayed"]
    assert values(pushed) == [b"hour", b"at once", b"minute", b"past", b"day"]
    assert values(jobs.items().items) == [b"at once", b"past"]
    assert values(jobs.delayed().items) == [b"minute", b"hour", b"day"]
    assert jobs.delayed().items == (pushed[2], pushed[0], pushed[4])
    assert jobs.totals().traffic == {"push": 5}
    check_full_count(store, jobs)


def test_one_bad_time_stops_all_of_them(jobs: Queue) -> None:
    for bad in (b"60", "x", datetime(2100, 1, 1), True):
        with pytest.raises(BadTime):
            jobs.push_many([(b"good", 1), (b"bad", 1, bad)])
    with pytest.raises(BadTime, match="at most one"):
        jobs.push_many([(b"bad", 1, MINUTE, MINUTE)])
    with pytest.raises(BadValue):
        jobs.push_many([(b"good", 1, MINUTE), ("bad", 1, MINUTE)])
    assert (jobs.depth(), jobs.depth("delayed")) == (0, 0)


def test_fifo_items_come_to_the_tail_when_due(store: Store, mail: Queue, clock: Clock) -> None:
    mail.enqueue_many([b"3", b"4"], delay=MINUTE)
    mail.enqueue(b"2", due=now(clock) + 30 * MILLISECOND)
    mail.enqueue(b"1")
    clock.advance(60)
    assert mail.promote() == 3
    mail.enqueue(b"5")
    check_full_count(store, mail)
    assert [mail.dequeue().value for _ in range(5)] == [b"1", b"2", b"3", b"4", b"5"]


def test_promotion_goes_in_steps_by_number_and_by_size(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"%d" % n, 1) for n in range(25)], delay=MINUTE)
    clock.advance(60)
    assert [jobs.promote(10) for _ in range(4)] == [10, 10, 5, 0]
    assert values(jobs.pop_many(30)) == [b"%d" % n for n in range(25)]
    jobs.push_many([(bytes(90_000), n) for n in range(25)], delay=MINUTE)
    clock.advance(60)
    assert [jobs.promote() for _ in range(4)] == [11, 11, 3, 0]
    assert check_full_count(store, jobs) == 25


def test_pages_of_delayed_items_walk_each_once_in_due_order(jobs: Queue) -> None:
    jobs.push_many([(b"%02d" % n, 1, timedelta(seconds=100 - n // 3)) for n in range(23)])
    in_order = [b"%02d" % n for n in sorted(range(23), key=lambda n: (100 - n // 3, n))]
    for limit in (1, 2, 7, 22, 23, 1000):
        assert values(all_items(jobs.delayed, limit=limit)) == in_order
    cut = jobs.delayed(preview=1).items[0]
    assert (cut.value, cut.size, cut.truncated) == (b"2", 2, True)


def test_a_page_goes_on_behind_an_item_that_is_gone(jobs: Queue) -> None:
    pushed = jobs.push_many([(b"%d" % n, 1, timedelta(seconds=n + 1)) for n in range(6)])
    page = jobs.delayed(limit=3)
    for item in pushed[1:4]:
        jobs.promote_now(item.id)
    assert values(jobs.delayed(after=page.cursor).items) == [b"4", b"5"]


def test_promote_now_does_not_wait_for_the_due_time(store: Store, jobs: Queue) -> None:
    first, second = jobs.push_many([(b"first", 1), (b"second", 1)], delay=MINUTE)
    promoted = jobs.promote_now(second.id)
    assert (promoted.id, promoted.state, promoted.due_at) == (second.id, "ready", None)
    assert jobs.find(second.id) == promoted
    assert values(jobs.delayed().items) == [b"first"]
    assert jobs.totals().traffic == {"push": 2, "promote": 1}
    check_full_count(store, jobs)
    assert jobs.pop_min() == promoted
    for gone in (second.id, "0" * 40, "", "key-00"):
        assert jobs.promote_now(gone) is None
        assert jobs.reschedule(gone, delay=MINUTE) is None
    assert jobs.promote_now(jobs.push(b"ready", priority=1).id) is None
    assert jobs.promote_now(first.id).value == b"first"


def test_an_item_is_rescheduled_to_any_time(store: Store, jobs: Queue, clock: Clock) -> None:
    pushed = jobs.push(b"x", priority=4, delay=MINUTE)
    moved = jobs.reschedule(pushed.id, delay=timedelta(hours=1))
    assert (moved.state, moved.id, moved.priority) == ("delayed", pushed.id, 4)
    assert jobs.find(pushed.id) == moved
    assert moved.due_at == now(clock) + timedelta(hours=1) == jobs.status().next_due
    moved = jobs.reschedule(pushed.id, due=now(clock) + MINUTE)
    assert jobs.delayed().items == (moved,)
    assert jobs.reschedule(pushed.id, delay=MINUTE) == moved
    check_full_count(store, jobs)
    assert jobs.reschedule(pushed.id, delay=-MINUTE).state == "ready"
    assert jobs.totals().traffic == {"push": 1, "promote": 1}
    check_full_count(store, jobs)
    for bad in ({}, {"delay": "5"}, {"due": datetime(2100, 1, 1)}, {"delay": MINUTE, "due": now(clock)}):
        with pytest.raises(BadTime):
            jobs.reschedule(pushed.id, **bad)


POPS = [PriorityQueue.pop_min, PriorityQueue.pop_max, lambda jobs: (jobs.pop_many(1) or [None])[0]]


@pytest.mark.parametrize("pop", POPS)
def test_a_pop_brings_in_what_is_late(store: Store, jobs: Queue, clock: Clock, pop: Callable) -> None:
    jobs.push(b"late", priority=1, delay=MINUTE)
    clock.advance(60.25)
    assert pop(jobs).value == b"late"
    jobs.push(b"not very late", priority=1, delay=MINUTE)
    clock.advance(60.249)
    assert pop(jobs) is None
    check_full_count(store, jobs)


def test_a_pop_brings_in_a_few_and_the_best_of_them_leaves(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push(b"there", priority=50)
    jobs.push_many([(b"%d" % n, n) for n in range(40)], delay=MINUTE)
    clock.advance(61)
    taken = jobs.pop_min()
    promoted = jobs.totals().traffic["promote"]
    assert 1 <= promoted <= 10
    assert taken.priority < min((item.priority for item in jobs.items().items), default=99)
    left = [jobs.pop_min() for _ in range(40)]
    assert jobs.pop_min() is None
    assert sorted([taken.value, *values(left)]) == sorted([b"there", *(b"%d" % n for n in range(40))])
    assert check_full_count(store, jobs) == 0


def test_a_pop_inside_a_transaction_promotes_nothing(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push(b"late", priority=1, delay=MINUTE)
    clock.advance(100)
    assert store.transact(lambda tr: jobs.pop_min(tr=tr)) is None
    assert store.transact(lambda tr: (jobs.promote(tr=tr), jobs.pop_min(tr=tr)))[1].value == b"late"


def test_a_pause_holds_takers_and_not_the_time(jobs: Queue, clock: Clock) -> None:
    jobs.push(b"later", priority=1, delay=MINUTE)
    jobs.pause(reason="r")
    clock.advance(61)
    with pytest.raises(QueuePaused):
        jobs.pop_min()
    assert jobs.depth("delayed") == 1
    assert jobs.promote() == 1
    jobs.push(b"delayed", priority=1, delay=MINUTE)
    assert (jobs.depth(), jobs.depth("delayed")) == (1, 1)


def test_everything_joins_a_transaction(store: Store, jobs: Queue, mail: Queue, clock: Clock) -> None:
    def work(tr):
        first = jobs.push(b"first", priority=1, delay=MINUTE, tr=tr)
        second = jobs.push(b"second", priority=1, due=now(clock) + MINUTE, tr=tr)
        mail.enqueue(b"x", delay=MINUTE, tr=tr)
        assert jobs.delayed(tr=tr).items == (first, second)
        assert jobs.find(first.id, tr=tr) == first
        assert jobs.promote(tr=tr) == 0
        assert jobs.promote_now(first.id, tr=tr).state == "ready"
        assert jobs.reschedule(second.id, delay=2 * MINUTE, tr=tr).due_at == now(clock) + 2 * MINUTE
        assert jobs.depth("delayed", tr=tr) == jobs.depth(tr=tr) == 1
        if clock.now < 1_900_000_000:
            raise LookupError

    with pytest.raises(LookupError):
        store.transact(work)
    assert (jobs.depth(), jobs.depth("delayed"), mail.depth("delayed")) == (0, 0, 0)
    clock.advance(200_000_000)
    store.transact(work)
    check_full_count(store, jobs)


def test_delays_survive_renaming_deleting_and_restoring(store: Store, jobs: Queue, clock: Clock) -> None:
    pushed = jobs.push(b"later", priority=1, delay=MINUTE)
    store.rename_queue("jobs", "tasks")
    trash_id = store.delete_queue("tasks")
    clock.advance(120)
    store.restore(trash_id)
    assert jobs.find(pushed.id) == pushed
    assert jobs.promote() == 1
    assert store.queue("tasks").pop_min().value == b"later"
    check_full_count(store, jobs)


def test_a_closed_queue_takes_no_delayed_items_either(jobs: Queue, clock: Clock) -> None:
    pushed = jobs.push(b"x", priority=1, delay=MINUTE)
    jobs.configure(closed=True)
    with pytest.raises(QueueClosed):
        jobs.push(b"x", priority=1, delay=MINUTE)
    assert jobs.reschedule(pushed.id, delay=2 * MINUTE) is not None
    clock.advance(120)
    assert jobs.promote() == 1


@pytest.mark.parametrize("depth", [0, 1, 1_000])
def test_taking_costs_few_reads_more_whatever_is_delayed(store: Store, engine: str, jobs: Queue, depth: int) -> None:
    jobs.push_many([(b"", n) for n in range(4)])
    if depth:
        jobs.push_many([(b"", 1)] * depth, delay=MINUTE)

    def reads(verb: Callable) -> int:
        before = store.context.kv.reads()
        verb()
        return store.context.kv.reads() - before

    # The config, the end, and one key that tells of attempts and of the next due; takers ask for an expired lease too,
    # and where processes may take the same item, whether there is a fulfiller.
    assert reads(jobs.peek_min) == 3
    assert reads(jobs.pop_min) == reads(jobs.pop_max) == reads(jobs.lease) == (4 if engine == "embedded" else 5)
    assert reads(lambda: store.transact(lambda tr: jobs.pop_min(tr=tr))) == 3
