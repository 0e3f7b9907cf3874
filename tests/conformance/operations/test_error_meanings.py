"""Errors say what they mean, and are caught by the classes that older programs name."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from queues import Query, Queue, Store
from queues.errors import (
    BadEnd,
    BadLimit,
    BadQueueKind,
    BadState,
    BadTime,
    BadValue,
    NaiveTime,
    QueueError,
    TimePassed,
    TooLarge,
)

NAIVE = datetime(2100, 1, 1)


@pytest.fixture
def jobs(store: Store) -> Queue:
    jobs = store.create_queue("jobs")
    jobs.push(b"x", 1)
    return jobs


MISTAKES: list[tuple[type[QueueError], type[QueueError], Callable[[Store, Queue], object]]] = [
    (NaiveTime, BadValue, lambda store, jobs: jobs.pause(reason="r", until=NAIVE)),
    (NaiveTime, BadTime, lambda store, jobs: jobs.push(b"x", 1, due=NAIVE)),
    (NaiveTime, BadTime, lambda store, jobs: jobs.push_many([(b"x", 1, NAIVE)])),
    (NaiveTime, BadTime, lambda store, jobs: jobs.search(Query(since=NAIVE))),
    (TimePassed, BadQueueKind, lambda store, jobs: jobs.pause(reason="r", until=store.now() - timedelta(seconds=1))),
    (BadEnd, BadQueueKind, lambda store, jobs: jobs.pop_many(1, end="middle")),
    (BadEnd, BadQueueKind, lambda store, jobs: jobs.lease(end="middle")),
    (BadEnd, BadQueueKind, lambda store, jobs: jobs.search(Query(), end="middle")),
    (BadState, BadQueueKind, lambda store, jobs: jobs.depth("taken")),
    (BadState, BadQueueKind, lambda store, jobs: jobs.search(Query(state="taken"))),
    (BadLimit, TooLarge, lambda store, jobs: jobs.pop_many(0)),
    (BadLimit, TooLarge, lambda store, jobs: jobs.lease_many(0)),
    (BadLimit, TooLarge, lambda store, jobs: jobs.lease_many(1_001)),
    (BadLimit, TooLarge, lambda store, jobs: jobs.items(limit=0)),
    (BadLimit, TooLarge, lambda store, jobs: jobs.items(limit=True)),
    (BadLimit, TooLarge, lambda store, jobs: jobs.items(limit="5")),
    (BadLimit, TooLarge, lambda store, jobs: store.queues(limit=0)),
    (BadLimit, TooLarge, lambda store, jobs: store.queues(limit=1.5)),
    (BadLimit, TooLarge, lambda store, jobs: store.actions("ops").delete_items("jobs", [])),
]


@pytest.mark.parametrize("mistake", range(len(MISTAKES)))
def test_a_mistake_has_an_error_of_its_own_and_changes_nothing(store: Store, jobs: Queue, mistake: int) -> None:
    error, before, act = MISTAKES[mistake]
    status = jobs.status()
    with pytest.raises(error) as caught:
        act(store, jobs)
    assert isinstance(caught.value, before)
    assert jobs.status() == status
