"""Pushes and pops of many callers in one transaction: each gets what it would get alone, in the order of the calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from queues import Item, Queue, Store
from queues.errors import QueueClosed
from queues.kv.port import Refused, Transaction
from queues.serving.push_batch import Push
from queues.serving.take_request import LATE, Take
from tests.conftest import Clock


def push(queue: Queue, *values: bytes, priority: int = 0) -> Push:
    return Push([(value, priority) for value in values], queue._context.id_generator.new_ids(len(values)))


def pushed(store: Store, queue: Queue, pushes: Sequence[Push]) -> list[list[bytes] | str]:
    answers = store._kv.transact(lambda tr: queue._pushes.serve(tr, pushes))
    return [str(of.error) if isinstance(of, Refused) else [item.value for item in of] for of in answers]


def taken(store: Store, queue: Queue, takes: Sequence[Take]) -> list[list[bytes]]:
    return store._kv.transact(
        lambda tr: [[item.value for item in of or []] for of in queue._takes.serve(tr, takes)]  # type: ignore[union-attr]
    )


def test_each_push_gets_its_own_items(store: Store) -> None:
    jobs = store.create_queue("jobs")
    assert pushed(store, jobs, [push(jobs, b"a"), push(jobs, b"b"), push(jobs, b"c")]) == [[b"a"], [b"b"], [b"c"]]
    assert pushed(store, jobs, [push(jobs, b"d", b"e"), push(jobs, b"f")]) == [[b"d", b"e"], [b"f"]]
    assert [item.value for item in jobs.pop_many(9)] == [b"a", b"b", b"c", b"d", b"e", b"f"]


def test_a_refused_push_gets_no_items_of_other_calls(store: Store) -> None:
    jobs = store.create_queue("jobs")
    jobs.configure(max_value=1)
    first, second = pushed(store, jobs, [push(jobs, b"too long"), push(jobs, b"a", b"b")])
    assert "at most 1" in first
    assert second == [b"a", b"b"]
    assert jobs.depth() == 2


def test_pushes_go_in_together_as_far_as_their_number_and_size_allow(store: Store) -> None:
    jobs = store.create_queue("jobs")

    def fitting(*pushes: tuple[int, int]) -> int:
        return len(pushed(store, jobs, [push(jobs, *[b"x" * size] * n) for n, size in pushes]))

    assert fitting((400, 1), (600, 1), (1, 1), (1, 1)) == 2, "1,000 items"
    assert fitting((1_000, 1), (1, 1)) == 1
    assert fitting((1, 0), (999, 1), (1, 1)) == 2
    assert fitting((4, 80_000), (4, 80_000), (4, 80_000), (4, 80_000), (1, 1)) == 3, "1 MB"
    assert fitting((12, 90_000), (1, 1)) == 1, "one alone may be larger"
    assert fitting((10, 50_000), (10, 50_000), (1, 1)) == 2, "just as much"


def test_the_values_of_pushes_that_wait_are_not_gone_through_for_those_before(store: Store) -> None:
    jobs = store.create_queue("jobs")

    class Values(list):  # type: ignore[type-arg]
        gone_through = 0

        def __iter__(self) -> Iterator[tuple[bytes, int]]:
            self.gone_through += 1
            return super().__iter__()

    pushes = [Push(Values(values), rands) for values, rands in (push(jobs, *[b"x"] * 400) for _ in range(9))]
    assert len(pushed(store, jobs, pushes)) == 2
    assert [of.values.gone_through for of in pushes] == [1, 1, *[0] * 7]  # type: ignore[attr-defined]


def test_each_pop_gets_what_it_would_get_alone(store: Store) -> None:
    jobs = store.create_queue("jobs")

    def pops(*wanted: tuple[int, str]) -> list[list[bytes]]:
        now_ms = jobs._context.now_ms()
        return taken(store, jobs, [Take(n=n, end=end, now_ms=now_ms) for n, end in wanted])  # type: ignore[arg-type]

    jobs.push_many([(b"%d" % n, n) for n in range(12)])
    assert pops((1, "min"), (1, "min"), (1, "min")) == [[b"0"], [b"1"], [b"2"]]
    assert pops((1, "max"), (1, "max")) == [[b"11"], [b"10"]]
    assert pops((1, "min"), (1, "max"), (1, "min")) == [[b"3"], [b"9"], [b"4"]]
    assert pops((1, "min"), (2, "min")) == [[b"5"], [b"6", b"7"]]
    assert pops((1, "min"), (1, "min"), (1, "min")) == [[b"8"], [], []]
    assert pops((1, "min"), (1, "min")) == [[], []]
    totals = jobs.totals()
    assert (totals.ready, totals.traffic["pop"]) == (0, 12)


def test_pops_of_large_items_are_served_as_far_as_there_is_room(store: Store) -> None:
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"%02d" % n + b"x" * 89_000, n) for n in range(20)])
    now_ms = jobs._context.now_ms()
    got = taken(store, jobs, [Take(n=1, end="min", now_ms=now_ms) for _ in range(20)])
    assert 0 < len(got) < 20
    assert [value[:2] for (value,) in got] == [b"%02d" % n for n in range(len(got))]
    assert jobs.depth() == 20 - len(got)


def told(answers: Sequence[Any]) -> list[Any]:
    """Return values in place of items, and what refusals say."""
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


def test_pushes_of_one_get_their_ids_where_they_are_served(store: Store) -> None:
    jobs = store.create_queue("jobs")

    def push_all(*requests: Any) -> list[Any]:
        return told(store._kv.transact(lambda tr: jobs._pushes.serve(tr, requests)))

    assert push_all((b"a", 1), (b"b", 1), (b"c", 0)) == [b"a", b"b", b"c"]
    assert push_all((b"d", 2), push(jobs, b"e", b"f", priority=2), (b"g", 2)) == [b"d", [b"e", b"f"], b"g"]
    assert len(push_all(*[(b"x" * 80_000, 3)] * 14)) == 12, "1 MB"
    jobs.configure(max_value=1)
    (first, second, third) = push_all((b"too long", 9), (b"h", 9), push(jobs, b"too long"))
    assert "at most 1" in first
    assert "at most 1" in third
    assert second == b"h"
    items = jobs.pop_many(99)
    assert [item.value[:1] for item in items] == [b"c", b"a", b"b", b"d", b"e", b"f", b"g", *[b"x"] * 12, b"h"]
    assert len({item.id for item in items}) == len(items)
    jobs.configure(closed=True)
    assert isinstance(store._kv.transact(lambda tr: refusal(jobs, tr, [(b"i", 1)])), QueueClosed)


def refusal(jobs: Queue, tr: Transaction, requests: Sequence[Any]) -> Exception | None:
    try:
        jobs._pushes.serve(tr, requests)
    except QueueClosed as error:
        return error
    return None


def test_each_pop_of_one_gets_what_it_would_get_alone(store: Store, clock: Clock) -> None:
    jobs = store.create_queue("jobs")

    def pop_all(*requests: Any) -> list[Any]:
        return told(store._kv.transact(lambda tr: jobs._takes.serve(tr, requests)))

    take = Take(n=2, end="min", now_ms=jobs._context.now_ms())
    jobs.push_many([(b"%d" % n, n) for n in range(12)])
    assert pop_all("min", "min", "min") == [b"0", b"1", b"2"]
    assert pop_all("max", "max") == [b"11", b"10"]
    assert pop_all("min", "max", take, "min") == [b"3", b"9", [b"4", b"5"], b"6"]
    assert pop_all(take, "max") == [[b"7", b"8"], None]
    assert pop_all("max", "min") == [None, None]
    assert pop_all("min", "min") == [None, None]
    jobs.push_many([(b"%02d" % n + b"x" * 89_000, n) for n in range(20)])
    got = pop_all(*["min"] * 20)
    assert [value[:2] for value in got] == [b"%02d" % n for n in range(len(got))]
    assert 0 < len(got) < 20
    assert jobs.depth() == 20 - len(got)
    jobs.push(b"late", priority=0, delay=timedelta(seconds=1))
    clock.advance(10)
    assert pop_all("min", "min") == [LATE, LATE]
    assert pop_all("min", take._replace(late_ms=None), "max")[::2] == [LATE, LATE]
    jobs.pause(reason="lunch")
    assert all("lunch" in answer for answer in pop_all("min", take, "max"))
