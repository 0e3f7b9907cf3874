"""Other programs and ours on the same items: each side takes what the other pushed, in order, from both ends."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from fdb import tuple as layer

from queues import Queue, Store
from queues.model.foreign_tuples import decoded_value
from tests.interop.recipe_client import RecipeClient

PREFIX = layer.pack(("P",))


def attached(store: Store, **options) -> tuple[Queue, RecipeClient]:
    """Return an attached queue and a stranger on the same subspace."""
    queue = store.attach("legacy", prefix=("P",), **options)
    return queue, RecipeClient(store.context.kv, PREFIX, fifo=queue.kind == "fifo")


def our_own(store: Store, **options) -> tuple[Queue, RecipeClient]:
    """Return a queue of our own and a stranger on its ready items."""
    queue = store.create_queue("jobs", **options)
    begin, _ = store.context.keyspace.queue(queue.id).generation(1).ready.all
    return queue, RecipeClient(store.context.kv, begin[:-1], fifo=queue.kind == "fifo")


PLACES = pytest.mark.parametrize("place", [attached, our_own])


@PLACES
def test_we_pop_from_both_ends_what_the_recipe_pushed(store: Store, place) -> None:
    queue, stranger = place(store)
    for priority, value in ((3, b"c1"), (1, b"a1"), (3, b"c2"), (-7, b"z"), (2**70, b"big"), (1, b"a2")):
        stranger.push(value, priority)
    assert [item.value for item in queue.items().items] == [b"z", b"a1", b"a2", b"c1", b"c2", b"big"]
    assert queue.peek_min().value == b"z"
    assert queue.peek_max().value == b"big"
    taken = [queue.pop_min(), queue.pop_max(), queue.pop_max(), *queue.pop_many(2), queue.pop_min(), queue.pop_min()]
    assert [item and item.value for item in taken] == [b"z", b"big", b"c2", b"a1", b"a2", b"c1", None]
    assert stranger.values() == []


@PLACES
def test_the_recipe_pops_from_both_ends_what_we_pushed(store: Store, place) -> None:
    queue, stranger = place(store)
    queue.push_many([(b"c1", 3), (b"a1", 1), (b"c2", 3), (b"z", -7)])
    queue.push(b"a2", priority=1)
    assert [stranger.pop(), stranger.pop(largest=True), stranger.pop(largest=True)] == [b"z", b"c2", b"c1"]
    assert [stranger.pop(), stranger.pop(), stranger.pop()] == [b"a1", b"a2", None]
    assert queue.pop_min() is None


@PLACES
def test_fifo_order_holds_over_both_sides(store: Store, place) -> None:
    queue, stranger = place(store, kind="fifo")
    queue.enqueue_many([b"1", b"2"])
    stranger.push(b"3")
    stranger.push(b"4")
    assert queue.peek().value == b"1"
    assert [queue.dequeue().value, stranger.pop(), queue.dequeue().value, stranger.pop()] == [b"1", b"2", b"3", b"4"]
    assert queue.dequeue() is None
    assert stranger.pop() is None


def test_equal_priorities_leave_an_attached_queue_in_the_order_of_pushes_of_any_program(store: Store) -> None:
    queue, stranger = attached(store)
    for n in range(4):
        queue.push(b"ours %d" % n, priority=5)
        stranger.push(b"theirs %d" % n, 5)
    expected = [b"%s %d" % (whose, n) for n in range(4) for whose in (b"ours", b"theirs")]
    assert [stranger.pop(), queue.pop_max().value] == [expected[0], expected[-1]]
    assert [item.value for item in queue.pop_many(10)] == expected[1:-1]


def test_our_keys_are_exactly_what_the_recipe_would_have_written(store: Store) -> None:
    queue, stranger = attached(store)
    stranger.push(b"theirs", 5)
    ours = queue.push_many([(b"x", 5), (b"y", 5), (b"z", 6)])
    assert [item.foreign.elements[:2] for item in ours] == [(5, 1), (5, 2), (6, 0)]
    assert all(isinstance(item.foreign.elements[2], bytes) and item.foreign.recipe for item in ours)
    written = store.read(lambda tr: tr.get_range(PREFIX + b"\x00", PREFIX + b"\xff", limit=10).wait())
    assert [(layer.unpack(key, len(PREFIX))[:2], value) for key, value in written] == [
        ((5, 0), b"theirs"),
        ((5, 1), b"x"),
        ((5, 2), b"y"),
        ((6, 0), b"z"),
    ]


def test_a_fifo_index_begins_where_the_recipe_begins_it(store: Store) -> None:
    queue, stranger = attached(store, kind="fifo")
    assert queue.enqueue(b"first").foreign.elements[0] == 1
    stranger.push(b"second")
    assert [item.foreign.elements[0] for item in queue.items().items] == [1, 2]


def test_a_stranger_in_our_own_queue_is_noticed_and_the_queue_goes_on(store: Store) -> None:
    jobs, stranger = our_own(store)
    jobs.push_many([(b"a", 1), (b"b", 2)])
    assert stranger.pop() == b"a"
    assert not jobs.status().drift
    assert jobs.pop_min().value == b"b"
    assert jobs.pop_min() is None
    assert jobs.status().drift
    jobs.push(b"c", priority=1)
    stranger.push(b"d", 2)
    assert [jobs.pop_min().value, jobs.pop_min().value, jobs.pop_min()] == [b"c", b"d", None]


@pytest.mark.parametrize("place", [attached, our_own])
def test_at_once_each_item_is_taken_by_one_side(store: Store, place) -> None:
    queue, stranger = place(store)
    taken: list[bytes] = []
    pushed = [b"%s %d %d" % (whose, me, n) for whose in (b"ours", b"theirs") for me in range(2) for n in range(25)]

    def work(whose: bytes, me: int) -> None:
        for n in range(25):
            value = b"%s %d %d" % (whose, me, n)
            if whose == b"ours":
                queue.push(value, priority=n % 3)
                item = queue.pop_min() if n % 2 else queue.pop_max()
                taken.append(item.value) if item else None
            else:
                stranger.push(value, n % 3)
                value = stranger.pop(largest=n % 2 == 0)
                taken.append(value) if value is not None else None

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(work, whose, me) for whose in (b"ours", b"theirs") for me in range(2)]:
            done.result()
    left = [item.value for item in queue.items(limit=1_000).items]
    assert sorted(taken + left) == sorted(pushed)


def test_values_as_the_java_recipe_packs_them_are_offered_decoded(store: Store) -> None:
    queue, stranger = attached(store)
    stranger.push(layer.pack(("hello é", 7, None)), 1)
    stranger.push(b"plain text", 2)
    first, second = queue.items().items
    assert first.value == layer.pack(("hello é", 7, None))
    assert decoded_value(first.value) == ("hello é", 7, None)
    assert decoded_value(second.value) is None
