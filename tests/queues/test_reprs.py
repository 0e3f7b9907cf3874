"""What public objects show of themselves in a log or at a prompt."""

import inspect

import queues.local
import queues.workers
from queues import Store
from queues.workers import Job, Pool, Worker


def test_every_public_object_says_what_it_is() -> None:
    modules = (queues, queues.workers, queues.local)
    public = [getattr(module, name) for module in modules for name in module.__all__]
    classes = [one for one in public if inspect.isclass(one) and not getattr(one, "_is_protocol", False)]
    assert len(classes) > 30
    assert [one for one in classes if one.__repr__ is object.__repr__] == []


def test_reprs_are_of_one_line_and_hold_no_token_of_a_lease(store: Store) -> None:
    shown = []
    worker = Worker()

    @worker.handles("jobs")
    def show(job: Job) -> None:
        shown.extend([repr(job), repr(job.lease), job.lease.token])

    item = store.create_queue("jobs").push(b"x", priority=1)
    pool = Pool(store, worker, ["jobs"], threads=1, once=True)
    assert repr(pool) == "<Pool of 'jobs': 1 threads, not started>"
    pool.start()
    pool.wait()
    assert repr(pool) == "<Pool of 'jobs': 1 threads, stopping>"
    assert shown[0] == f"<Job of 'jobs': item {item.id}, attempt 1>"
    assert shown[2].partition("-")[2] not in shown[1]
    assert repr(worker) == "<Worker of 'jobs'>"
    assert repr(store.actions("ann")) == "<Actions of 'ann' by web>"
    held = queues.local.PriorityQueue[int]()
    held.put(5)
    with held.mutex:
        assert repr(held) == "<PriorityQueue of 1 items>"
