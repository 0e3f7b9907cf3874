"""The health that the elected recorder keeps in the store: the same in every process, also just after a restart."""

import pytest

from queues import Store
from queues.health import Code, Level
from queues.status.health_observation import health_at
from tests.conftest import Clock


def judged(store: Store, clock: Clock, looks: int) -> None:
    """Let a recorder of a new process look every ten seconds."""
    recorder = store.recorder(count=clock)
    for _ in range(looks):
        clock.advance(10)
        recorder.look()
    recorder.flush()


def stalled(store: Store) -> int:
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"x", n) for n in range(9)])
    jobs.pop_min()
    return jobs.id


def level(store: Store, queue_id: int) -> Level | None:
    health = store.snapshot([queue_id]).queues[queue_id].health
    return None if health is None else health.verdict.level


def test_a_verdict_survives_a_restart(store: Store, clock: Clock) -> None:
    queue_id = stalled(store)
    judged(store, clock, 12)
    assert level(store, queue_id) is Level.CRITICAL
    clock.advance(1_800)
    judged(store, clock, 1)
    assert level(store, queue_id) is Level.CRITICAL


def test_the_time_in_breach_survives_a_restart_and_is_unknown_where_the_queue_changed_unrecorded(
    store: Store, clock: Clock
) -> None:
    queue_id = stalled(store)
    judged(store, clock, 366)
    clock.advance(7_200)  # nothing records, and nothing changes
    judged(store, clock, 6)

    def hours() -> tuple[float, float]:
        status = store.snapshot([queue_id]).queues[queue_id]
        health = health_at(status, store.targets.rules().targets("jobs", status.limits), store.now())
        share = health.breaches.share("no_consumer", store.now().timestamp())
        return round(24 * share.beyond, 1), round(24 * share.unknown, 1)

    assert hours() == (3.0, 21.0)
    clock.advance(7_200)
    store.queue("jobs").pop_min()
    judged(store, clock, 6)
    beyond, unknown = hours()
    assert 0.5 <= beyond <= 3.1, "what was written before is kept"
    assert beyond + unknown == pytest.approx(24.0, abs=0.1)


def test_a_new_verdict_changes_the_queue_so_that_screens_read_it(store: Store, clock: Clock) -> None:
    queue_id = stalled(store)
    recorder = store.recorder(count=clock)
    recorder.look()
    screen = store.snapshot([queue_id])
    for _ in range(12):
        clock.advance(10)
        recorder.look()
    again = store.snapshot([queue_id], previous=screen)
    health = again.queues[queue_id].health
    assert (health.verdict.level, health.verdict.codes) == (Level.CRITICAL, (Code.NO_CONSUMER,))


def test_acts_of_people_leave_a_stalled_queue_stalled(store: Store, clock: Clock) -> None:
    queue_id, ana = stalled(store), store.actions("ana")
    judged(store, clock, 12)
    ana.pop("jobs")
    judged(store, clock, 6)
    assert level(store, queue_id) is Level.CRITICAL


def test_limits_are_those_of_the_store(store: Store, clock: Clock) -> None:
    queue_id = stalled(store)
    store.targets.set("jobs", no_consumer=600, growing=0)
    judged(store, clock, 12)
    assert level(store, queue_id) is Level.OK


def test_health_that_cannot_be_read_hides_nothing(store: Store, clock: Clock) -> None:
    queue_id = stalled(store)
    judged(store, clock, 12)
    key = store.context.keyspace.queue(queue_id).health
    for record in (b"", b"\x09", b"\x01\xff\x00"):
        store.transact(lambda tr, record=record: tr.set(key, record))
        fresh = store.queue("jobs").status()
        assert (fresh.unreadable, fresh.totals.ready, fresh.health) == ("", 8, None)
