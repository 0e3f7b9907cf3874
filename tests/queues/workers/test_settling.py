"""Leases of items that wait long for their handlers."""

import pytest

from queues import Store
from queues.workers import Worker
from queues.workers.settling import Settling, Task
from tests.conftest import Clock


@pytest.mark.parametrize("taken", [False, True])
def test_no_handler_begins_on_an_item_that_another_worker_has_taken(store: Store, clock: Clock, taken: bool) -> None:
    worker = Worker()
    worker.handles("jobs", seconds=10.0)(lambda job: None)
    jobs = store.create_queue("jobs")
    jobs.push(b"x", priority=1)
    lease = jobs.lease(seconds=10.0)
    task = Task(queue=jobs, lease=lease, handler=worker.handler("jobs"), asked_at=0.0)
    settling = Settling()
    assert settling.may_begin(task, 9.0)
    clock.now += 11.0
    if taken:
        jobs.expire()
        assert jobs.lease(seconds=10.0).item.attempts == 2
    assert settling.may_begin(task, 11.0) is not taken
    if not taken:  # it was extended
        clock.now += 9.0
        assert jobs.expire() == 0
