"""The recipes' verbs, as every engine keeps them."""

from datetime import UTC, datetime

import pytest

from queues import Queue, Store
from queues.errors import QueueExists, QueueNotFound, TooLarge
from tests.conftest import Clock


def values(items: list) -> list[bytes]:
    return [item.value for item in items]


@pytest.mark.parametrize(("end", "order"), [("min", b"abcd"), ("max", b"dcba")])
def test_pops_take_the_end_and_among_equals_the_oldest_or_newest(jobs: Queue, end: str, order: bytes) -> None:
    for value, priority in [(b"c", 5), (b"a", -3), (b"d", 5), (b"b", 0)]:
        jobs.push(value, priority=priority)
    pop = jobs.pop_min if end == "min" else jobs.pop_max
    assert b"".join(pop().value for _ in range(4)) == order
    assert pop() is None


def test_push_returns_the_item_as_it_will_be_taken(jobs: Queue, clock: Clock) -> None:
    pushed = jobs.push(b"value", priority=7)
    assert pushed.priority == 7
    assert pushed.pushed_at == datetime.fromtimestamp(clock.now, UTC)
    assert len(pushed.id) == 40
    assert jobs.peek_min() == jobs.peek_max() == pushed
    assert jobs.find(pushed.id) == pushed
    assert jobs.pop_max() == pushed
    assert jobs.find(pushed.id) is None


def test_peek_changes_nothing(jobs: Queue) -> None:
    jobs.push_many([(b"a", 1), (b"b", 9)])
    before = jobs.status()
    assert jobs.peek_min().value == b"a"
    assert jobs.peek_max().value == b"b"
    assert jobs.status() == before


def test_counts_grow_and_never_restart_when_a_priority_empties(jobs: Queue) -> None:
    counts = []
    for _ in range(3):
        counts.append(jobs.push(b"x", priority=1).count)
        jobs.pop_min()
    assert counts == sorted(set(counts))


def test_many_are_pushed_and_taken_in_order(jobs: Queue) -> None:
    jobs.push_many([(b"%d" % n, n // 10) for n in range(100)])
    assert values(jobs.pop_many(30)) == [b"%d" % n for n in range(30)]
    assert values(jobs.pop_many(5, end="max")) == [b"99", b"98", b"97", b"96", b"95"]
    assert jobs.depth() == 65
    assert len(jobs.pop_many(1000)) == 65
    assert jobs.pop_many(10) == []


def test_fifo_keeps_the_order_of_arrival(store: Store) -> None:
    mail = store.create_queue("mail", kind="fifo")
    mail.enqueue(b"1")
    mail.enqueue_many([b"2", b"3"])
    assert mail.peek().value == b"1"
    assert [mail.dequeue().value for _ in range(3)] == [b"1", b"2", b"3"]
    assert mail.dequeue() is None
    assert mail.peek() is None


@pytest.mark.parametrize(
    ("priority_type", "ordered"),
    [
        ("int", [-(10**299), -256, -255, -1, 0, 1, 255, 256, 2**64, 10**299]),
        ("float", [-1e308, -1.5, -0.5, 0.0, 5e-324, 0.5, 1.0, 1e308]),
        ("str", ["", "\x00", "A", "a", "aa", "b", "é", "日本", "😀"]),
    ],
)
def test_priorities_of_each_type_are_kept_in_order(store: Store, priority_type: str, ordered: list) -> None:
    jobs = store.create_queue("jobs", priority_type=priority_type)
    for priority in reversed(ordered):
        jobs.push(b"", priority=priority)
    assert [item.priority for item in jobs.items().items] == ordered
    assert [jobs.pop_min().priority for _ in ordered] == ordered


def test_minus_zero_is_zero(store: Store) -> None:
    jobs = store.create_queue("jobs", priority_type="float")
    jobs.push(b"first", priority=0.0)
    jobs.push(b"second", priority=-0.0)
    assert str(jobs.peek_max().priority) == "0.0"
    assert jobs.pop_min().value == b"first"


@pytest.mark.parametrize("size", [0, 1, 90_000])
def test_values_come_back_byte_for_byte(jobs: Queue, size: int) -> None:
    value = bytes(range(256)) * (size // 256 + 1)
    jobs.push(value[:size], priority=1)
    assert jobs.pop_min().value == value[:size]


def test_depth_totals_and_oldest_come_from_counters(jobs: Queue, clock: Clock) -> None:
    assert jobs.depth() == 0
    assert jobs.oldest() is None
    first = jobs.push(b"first", priority=9)
    clock.advance(5)
    jobs.push_many([(b"a", 1), (b"b", 2)])
    assert jobs.depth() == 3
    assert jobs.oldest() == first
    jobs.pop_min()
    totals = jobs.totals()
    assert (totals.ready, totals.delayed, totals.leased, totals.dead) == (2, 0, 0, 0)
    assert totals.traffic == {"push": 3, "pop": 1}
    jobs.pop_max()
    assert jobs.oldest().value == b"b"


def test_queues_are_listed_by_name_and_prefix(store: Store) -> None:
    for name in ["b", "a", "orders:eu:new", "orders:us", "orders", "ordersx", "日本"]:
        store.create_queue(name)
    assert [queue.name for queue in store.queues()] == [
        "a",
        "b",
        "orders",
        "orders:eu:new",
        "orders:us",
        "ordersx",
        "日本",
    ]
    assert [queue.name for queue in store.queues("orders:")] == ["orders:eu:new", "orders:us"]
    assert [queue.name for queue in store.queues(limit=2)] == ["a", "b"]
    assert [queue.name for queue in store.queues(after="b", limit=2)] == ["orders", "orders:eu:new"]
    assert [queue.name for queue in store.queues("orders", after="orders:us")] == ["ordersx"]
    assert list(store.directory()) == [queue.name for queue in store.queues()]


def test_a_queue_is_created_once(store: Store) -> None:
    jobs = store.create_queue("jobs", priority_type="float")
    jobs.push(b"kept", priority=1)
    with pytest.raises(QueueExists, match="jobs"):
        store.create_queue("jobs", priority_type="float")
    same = store.create_queue("jobs", priority_type="float", exist_ok=True)
    assert same.id == jobs.id
    assert same.depth() == 1
    for other in ({"priority_type": "int"}, {"kind": "fifo"}, {"priority_type": "float", "bands": [1.0]}):
        with pytest.raises(QueueExists, match="another kind"):
            store.create_queue("jobs", exist_ok=True, **other)


def test_an_unknown_queue_names_near_misses(store: Store) -> None:
    store.create_queue("orders:eu:new")
    with pytest.raises(QueueNotFound, match="orders:eu:new") as caught:
        store.queue("order:eu:new")
    assert caught.value.suggestions == ("orders:eu:new",)
    for name in ("", "x" * 10_000, "\ud800", "a/b"):
        with pytest.raises(QueueNotFound):
            store.queue(name)


def test_one_transaction_has_a_limit(jobs: Queue) -> None:
    with pytest.raises(TooLarge, match="1,000 items"):
        jobs.push_many([(b"", 1)] * 1001)
    with pytest.raises(TooLarge, match="5 MB"):
        jobs.push_many([(bytes(90_000), 1)] * 56)
    assert jobs.depth() == 0
    for n in (0, -1, 1001, True, 1.0):
        with pytest.raises(TooLarge):
            jobs.pop_many(n)
    for _ in range(2):
        jobs.push_many([(bytes(90_000), 1)] * 55)
    with pytest.raises(TooLarge, match="fewer"):
        jobs.pop_many(110)
    assert jobs.depth() == 110
    assert len(jobs.pop_many(55)) == 55


def test_a_handle_survives_a_rename(store: Store, jobs: Queue) -> None:
    jobs.push(b"kept", priority=1)
    store.rename_queue("jobs", "tasks")
    assert jobs.pop_min().value == b"kept"
    assert jobs.name == "tasks"
    with pytest.raises(QueueNotFound):
        store.queue("jobs")
    store.create_queue("jobs")
    with pytest.raises(QueueExists):
        store.rename_queue("jobs", "tasks")
    assert store.rename_queue("tasks", "tasks").id == jobs.id
