"""Pushes and pops of many callers in one transaction: each gets what it would get alone, in the order of the calls."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from queues import Item, Queue, Store
from queues.kv.port import Refused
from queues.operations.open_queue import Request
from queues.operations.pop import PopRequest
from queues.operations.push import PushManyRequest, PushRequest, push_many_request
from tests.conftest import Clock


def push(queue: Queue, *values: bytes, priority: int = 0) -> PushManyRequest:
    return push_many_request(queue.opened, [(value, priority) for value in values], None)


def serve(store: Store, queue: Queue, requests: Sequence[Request]) -> list[Any]:
    """Execute requests of one family together; return values in place of items, and what refusals say."""
    batch = queue.opened.batch(type(requests[0]))
    answers = store.transact(lambda tr: batch.execute(tr, batch.prepare(requests)))
    return [
        [item.value for item in answer]
        if isinstance(answer, list)
        else answer.value
        if isinstance(answer, Item)
        else str(answer.error)
        if isinstance(answer, Refused)
        else answer
        for answer in answers
    ]


def test_each_push_gets_its_own_items(store: Store, jobs: Queue) -> None:
    assert serve(store, jobs, [push(jobs, b"a"), push(jobs, b"b"), push(jobs, b"c")]) == [[b"a"], [b"b"], [b"c"]]
    assert serve(store, jobs, [push(jobs, b"d", b"e"), push(jobs, b"f")]) == [[b"d", b"e"], [b"f"]]
    assert serve(store, jobs, [push(jobs), push(jobs, b"g"), push(jobs)]) == [[], [b"g"], []]
    assert serve(store, jobs, [push(jobs), push(jobs)]) == [[], []]
    assert [item.value for item in jobs.pop_many(9)] == [b"a", b"b", b"c", b"d", b"e", b"f", b"g"]


def test_a_refused_push_gets_no_items_of_another(store: Store, jobs: Queue) -> None:
    jobs.configure(max_value=1)
    first, second = serve(store, jobs, [push(jobs, b"too long"), push(jobs, b"a", b"b")])
    assert "at most 1" in first
    assert second == [b"a", b"b"]
    assert jobs.depth() == 2


def test_pushes_go_in_together_as_far_as_their_number_and_size_allow(store: Store, jobs: Queue) -> None:
    def fitting(*pushes: tuple[int, int]) -> int:
        return len(serve(store, jobs, [push(jobs, *[b"x" * size] * n) for n, size in pushes]))

    assert fitting((400, 1), (600, 1), (1, 1), (1, 1)) == 2, "1,000 items"
    assert fitting((1_000, 1), (1, 1)) == 1
    assert fitting((1, 0), (999, 1), (1, 1)) == 2
    assert fitting((4, 80_000), (4, 80_000), (4, 80_000), (4, 80_000), (1, 1)) == 3, "1 MB"
    assert fitting((12, 90_000), (1, 1)) == 1, "one alone may be larger"
    assert fitting((10, 50_000), (10, 50_000), (1, 1)) == 2, "just as much"


def test_pushes_of_one_and_of_many_and_delayed_ones_go_in_together(store: Store, jobs: Queue) -> None:
    soon = push_many_request(jobs.opened, [(b"now", 2), (b"soon", 2, 60)], None)
    answers = serve(
        store, jobs, [*ones(jobs, (b"d", 2)), push(jobs, b"e", b"f", priority=2), soon, *ones(jobs, (b"g", 2))]
    )
    assert answers == [b"d", [b"e", b"f"], [b"now", b"soon"], b"g"]
    assert [item.value for item in jobs.items().items] == [b"d", b"e", b"f", b"now", b"g"]
    assert jobs.depth("delayed") == 1


def ones(queue: Queue, *items: tuple[bytes, int]) -> list[PushRequest]:
    return [PushRequest(queue.id, value, priority) for value, priority in items]


def test_pushes_of_one_get_their_ids_together(store: Store, jobs: Queue) -> None:
    assert serve(store, jobs, ones(jobs, (b"a", 1), (b"b", 1), (b"c", 0))) == [b"a", b"b", b"c"]
    assert len(serve(store, jobs, ones(jobs, *[(b"x" * 80_000, 3)] * 14))) == 12, "1 MB"
    jobs.configure(max_value=1)
    first, second, third = serve(store, jobs, [*ones(jobs, (b"too long", 9), (b"h", 9)), push(jobs, b"too long")])
    assert "at most 1" in first
    assert "at most 1" in third
    assert second == b"h"
    items = jobs.pop_many(99)
    assert [item.value[:1] for item in items] == [b"c", b"a", b"b", *[b"x"] * 12, b"h"]
    assert len({item.id for item in items}) == len(items)
    jobs.configure(closed=True)
    (refusal,) = serve(store, jobs, ones(jobs, (b"i", 1)))
    assert "closed" in refusal


def pops(store: Store, queue: Queue, *wanted: tuple[int, str]) -> list[Any]:
    return serve(store, queue, [PopRequest(queue.id, n, end) for n, end in wanted])


def test_each_pop_gets_what_it_would_get_alone(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(12)])
    assert pops(store, jobs, (1, "min"), (1, "min"), (1, "min")) == [[b"0"], [b"1"], [b"2"]]
    assert pops(store, jobs, (1, "max"), (1, "max")) == [[b"11"], [b"10"]]
    assert pops(store, jobs, (1, "min"), (1, "max"), (1, "min")) == [[b"3"], [b"9"], [b"4"]]
    assert pops(store, jobs, (1, "min"), (2, "min")) == [[b"5"], [b"6", b"7"]]
    assert pops(store, jobs, (1, "min"), (1, "min"), (1, "min")) == [[b"8"], [], []]
    assert pops(store, jobs, (1, "min"), (1, "max")) == [[], []]
    jobs.push_many([(b"%d" % n, n) for n in range(5)])
    assert pops(store, jobs, (2, "max"), (2, "max"), (2, "max"), (2, "max")) == [[b"4", b"3"], [b"2", b"1"], [b"0"], []]
    totals = jobs.totals()
    assert (totals.ready, totals.traffic["pop"]) == (0, 17)
    jobs.push(b"late", priority=0, delay=timedelta(seconds=1))
    clock.advance(10)
    assert pops(store, jobs, (1, "min"), (2, "min")) == [[b"late"], []], "what is late is promoted first"


def test_pops_of_large_items_are_served_as_far_as_there_is_room(store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"%02d" % n + b"x" * 89_000, n) for n in range(40)])
    for wanted in (1, 2):
        there = jobs.depth()
        got = [value for values in pops(store, jobs, *[(wanted, "min")] * 40) for value in values]
        assert 0 < len(got) < there
        assert [value[:2] for value in got] == [b"%02d" % n for n in range(40 - there, 40 - there + len(got))]
        assert jobs.depth() == there - len(got)
