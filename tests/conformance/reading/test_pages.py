"""Pages: any number of items, from either end or a priority, in steps that cost the same."""

import pytest

from queues import Queue, Store, Transaction
from queues.errors import BadEnd, BadLimit, TooLarge
from tests.all_items import all_items


def walk(queue: Queue, **options: object) -> list[bytes]:
    return [item.value for item in all_items(queue.items, **options)]


@pytest.fixture
def jobs(store: Store) -> Queue:
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"%d.%d" % (n % 5, n), n % 5) for n in range(23)])
    return jobs


@pytest.mark.parametrize("limit", [1, 2, 5, 22, 23, 24, 1000])
def test_both_directions_walk_every_item_once(jobs: Queue, limit: int) -> None:
    forwards = walk(jobs, end="min", limit=limit)
    assert forwards == walk(jobs, end="max", limit=limit)[::-1]
    assert forwards == [item.value for item in jobs.pop_many(1000)]


def test_a_page_begins_at_a_priority(jobs: Queue) -> None:
    assert walk(jobs, priority=3, limit=4) == walk(jobs)[-8:]
    assert walk(jobs, end="max", priority=3, limit=4) == walk(jobs, end="max")[-19:]
    assert walk(jobs, priority=99) == []
    assert walk(jobs, end="max", priority=-1) == []


def test_peek_many_returns_what_a_pop_would_take(jobs: Queue) -> None:
    for end in ("min", "max"):
        peeked = jobs.peek_many(4, end=end)
        assert jobs.depth() in (23, 19)
        assert jobs.pop_many(4, end=end) == peeked
    assert len(jobs.peek_many(1_000)) == 15
    with pytest.raises(BadLimit):
        jobs.peek_many(0)
    with pytest.raises(BadEnd):
        jobs.peek_many(1, end="middle")


def test_peek_many_joins_a_transaction_and_refuses_more_than_a_pop_takes(store: Store) -> None:
    jobs = store.create_queue("mail", kind="fifo")

    def push_and_peek(tr: Transaction) -> list[bytes]:
        jobs.enqueue(b"1", tr=tr)
        return [item.value for item in jobs.peek_many(9, end="head", tr=tr)]

    assert store.transact(push_and_peek) == [b"1"]
    for _ in range(4):
        jobs.enqueue_many([b"x" * 90_000] * 20)
    with pytest.raises(TooLarge):
        jobs.peek_many(70)
    assert len(jobs.peek_many(50)) == 50


def test_text_priorities_with_a_common_beginning_are_told_apart(store: Store) -> None:
    jobs = store.create_queue("jobs", priority_type="str")
    for priority in ("a", "a\x00", "a\x00b", "ab", "b"):
        jobs.push(priority.encode(), priority=priority)
    assert walk(jobs, priority="a\x00") == [b"a\x00", b"a\x00b", b"ab", b"b"]
    assert walk(jobs, end="max", priority="a") == [b"a"]
    assert walk(jobs, end="max", priority="a\x00") == [b"a\x00", b"a"]


def test_a_cursor_stays_good_when_its_item_is_taken(jobs: Queue) -> None:
    page = jobs.items(limit=3)
    rest = walk(jobs)[3:]
    jobs.pop_many(5)
    assert walk(jobs) == rest[2:]
    assert [item.value for item in jobs.items(after=page.cursor, limit=100).items] == rest[2:]


def test_values_are_cut_to_a_preview(store: Store) -> None:
    jobs = store.create_queue("jobs")
    jobs.push(b"x" * 1000, priority=1)
    (item,) = jobs.items(preview=10).items
    assert (item.value, item.size, item.truncated) == (b"x" * 10, 1000, True)
    assert not jobs.items().items[0].truncated


def test_fifo_pages_begin_at_the_head_or_the_tail(store: Store) -> None:
    mail = store.create_queue("mail", kind="fifo")
    mail.enqueue_many([b"1", b"2", b"3"])
    assert walk(mail, end="head", limit=2) == [b"1", b"2", b"3"]
    assert walk(mail, end="tail", limit=2) == [b"3", b"2", b"1"]
