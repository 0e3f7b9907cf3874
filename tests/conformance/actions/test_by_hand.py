"""Acts of people are counted apart: they are no traffic of consumers."""

from queues import Queue, Store
from queues.health import Observation
from queues.status.health_observation import observation_of


def seen(store: Store) -> Observation:
    return observation_of(store.queue("jobs").status(), 0.0)


def test_a_person_is_neither_producer_nor_consumer(store: Store) -> None:
    jobs, ana = store.create_queue("jobs"), store.actions("ana")
    store.create_queue("other")
    jobs.push_many([(b"x", n) for n in range(20)])
    before = seen(store)
    ana.push_many("jobs", [(b"y", 1)] * 3)
    ana.pop("jobs")
    ana.pop_many("jobs", 2)
    lease = ana.lease("jobs", seconds=60)
    ana.ack("jobs", lease.item.id)
    held = ana.lease("jobs", seconds=60)
    ana.release("jobs", [held.item.id])
    moved = ana.move_items("jobs", [item.id for item in jobs.peek_many(2)], to="other")
    ana.undo(str(moved.trash_id))
    deleted = ana.delete_items("jobs", [item.id for item in jobs.peek_many(2)])
    ana.undo(str(deleted.trash_id))
    after = seen(store)
    assert (after.pushed, after.taken, after.done, after.released) == (20, 0, 0, 0)
    assert after.hands > before.hands == 0


def test_programs_are_counted_as_they_were(store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"x", n) for n in range(5)])
    jobs.pop_many(2)
    jobs.ack(jobs.lease_many(1)[0])
    jobs.release(jobs.lease_many(1)[0])
    after = seen(store)
    assert (after.pushed, after.taken, after.done, after.released, after.hands) == (5, 4, 3, 1, 0)


def test_an_undone_move_is_an_act_in_both_queues(store: Store) -> None:
    jobs, ana = store.create_queue("jobs"), store.actions("ana")
    other = store.create_queue("other")
    jobs.push_many([(b"x", n) for n in range(5)])
    moved = ana.move_items("jobs", [item.id for item in jobs.peek_many(2)], to="other")
    before = observation_of(other.status(), 0.0)
    ana.undo(str(moved.trash_id))
    assert observation_of(other.status(), 0.0).hands > before.hands
