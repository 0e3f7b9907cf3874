"""What cannot be read, damaged or of a newer release, keeps nothing else of a store from being swept."""

import logging
from datetime import timedelta

import pytest

from queues import Actions, Queue, Store
from queues.background.sweeper import Sweeper, Swept
from queues.background.unclaimed_staging import KEPT_MS as STAGED_MS
from queues.background.unclaimed_staging import UNCLAIMED_BY
from queues.bulk.runner import JobRunner
from queues.keys.queue_keys import last_element
from queues.kv.port import Transaction
from queues.serving import staging_records
from queues.serving.leadership import Holding
from queues.trash.trash import KEPT_MS
from tests.conftest import Clock
from tests.full_count import check_full_count
from tests.sweeps import merge_generations, sweep_trash, sweep_unclaimed

WEEK = KEPT_MS / 1000


@pytest.fixture
def sweeper(store: Store) -> Sweeper:
    made = Sweeper(store.context, count=lambda: 0.0)
    made.sweep()
    return made


def make_newer(store: Store, key: bytes) -> bytes:
    """Let a record look as one that a newer release wrote, and return what it was."""
    was = store.read(lambda tr: tr.get(key).wait())
    store.transact(lambda tr: tr.set(key, b"\xff" + was[1:]))
    return was


def rounds(sweeper: Sweeper, at_most: int = 40) -> Swept:
    """Sweep until there is nothing more to do now."""
    swept = Swept()
    for _ in range(at_most):
        done = sweeper.round()
        swept += done.swept
        if done.rest:
            return swept
    raise AssertionError("it never rests")


def number_of_marks(store: Store, queue: Queue) -> int:
    pairs = store.read(lambda tr: tr.get_range(*store.context.keyspace.due_index, limit=1_000).wait())
    return sum(store.context.keyspace.due.elements(key)[1] == queue.id for key, _ in pairs)


@pytest.mark.parametrize("what", ["damaged", "newer"])
def test_a_queue_with_many_marks_that_cannot_be_swept_holds_nothing_up(
    store: Store, sweeper: Sweeper, clock: Clock, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queues.background.sweeper.QUEUES", 10)
    broken, jobs = store.create_queue("broken"), store.create_queue("jobs")
    broken.push_many([(b"x", 1, timedelta(seconds=n)) for n in range(1, 61)])
    jobs.push(b"y", priority=1, delay=timedelta(seconds=70))
    key = broken.opened.config_key
    if what == "damaged":
        key = store.read(lambda tr: tr.get_key(*broken.opened.keys.generation(1).delayed.all).wait())
    was = make_newer(store, key)
    clock.advance(100)
    beside = 59 if what == "damaged" else 0
    assert rounds(sweeper) == Swept(promoted=1 + beside)
    assert jobs.depth() == 1
    assert number_of_marks(store, broken) == 1, "the rest are not read again and again"
    jobs.push(b"z", priority=1, delay=timedelta(seconds=1))
    clock.advance(2)
    assert rounds(sweeper) == Swept(promoted=1)
    store.transact(lambda tr: tr.set(key, was))
    assert rounds(Sweeper(store.context)).promoted == 60 - beside, "its place in the due index was kept"
    check_full_count(store, broken)


def test_more_queues_than_one_look_reads_that_cannot_be_swept(
    store: Store, sweeper: Sweeper, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queues.background.sweeper.QUEUES", 10)
    for n in range(35):
        broken = store.create_queue(f"broken:{n}")
        broken.push(b"x", priority=1, delay=timedelta(seconds=1))
        make_newer(store, broken.opened.config_key)
    jobs = store.create_queue("jobs")
    jobs.push(b"y", priority=1, delay=timedelta(seconds=2))
    clock.advance(5)
    assert rounds(sweeper) == Swept(promoted=1)


def test_trash_of_a_newer_release_stays_and_the_rest_goes(
    store: Store, sweeper: Sweeper, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    jobs, ann, keyspace = store.create_queue("jobs"), store.actions("ann"), store.context.keyspace
    for n in range(5):
        ann.delete_item("jobs", jobs.push(b"%d" % n, priority=1).id)
        clock.advance(1)
    deadlines = store.read(lambda tr: tr.get_range(*keyspace.deadlines.all, limit=9).wait())
    newer = [keyspace.trash.key(last_element(deadlines[n][0])) for n in (0, 2)]
    was = [make_newer(store, key) for key in newer]
    clock.advance(WEEK)
    with caplog.at_level(logging.WARNING):
        assert rounds(sweeper).trash > 0
        rounds(sweeper)
    assert len([record for record in caplog.records if record.name != "queues.kv"]) == 2, "each is told once"
    left = store.read(lambda tr: tr.get_range(*keyspace.trash.all, limit=9).wait())
    assert [key for key, _ in left] == newer
    assert sweep_trash(store) == 0
    store.transact(lambda tr: [tr.set(key, record) for key, record in zip(newer, was, strict=True)])
    assert sweep_trash(store) > 0
    assert store.read(lambda tr: tr.get_key(*keyspace.deadlines.all).wait()) is None


def test_a_queue_of_a_newer_release_is_not_merged_and_the_rest_are(store: Store, sweeper: Sweeper) -> None:
    queues, ann = [store.create_queue(name) for name in ("a", "b", "c")], store.actions("ann")
    for queue in queues:
        queue.push(b"1", priority=1)
        purged = ann.purge(queue.name, confirm=queue.name)
        queue.push(b"2", priority=1)
        ann.undo(purged.trash_ids[0])
    first, *others = sorted(queues, key=lambda queue: queue.id)
    was = make_newer(store, first.opened.config_key)
    assert rounds(sweeper).merged == 2
    assert [len(store.queue(queue.name).config.generations) for queue in others] == [1, 1]
    assert merge_generations(store) == 0
    store.transact(lambda tr: tr.set(first.opened.config_key, was))
    assert merge_generations(store) == 1
    check_full_count(store, first)


def test_staging_of_a_newer_release_is_left_alone_and_the_rest_swept(
    store: Store, sweeper: Sweeper, clock: Clock
) -> None:
    queues = sorted((store.create_queue(name) for name in ("a", "b", "c")), key=lambda queue: queue.id)
    for queue in queues:
        queue.push(b"x", priority=1)
    first, second, third = queues
    now_ms = store.context.clock.now_ms()

    def leave(tr: object) -> None:
        tr.set(first.opened.keys.staging, b"\xff" + Holding(holder="dead", expires_ms=now_ms).encode()[1:])
        for queue in (second, third):
            (item,) = queue.pop_many(1, tr=tr)
            request = staging_records.StagedRequest(
                key=queue.opened.keys.requests.key(now_ms, b"r" * 16), id=b"r" * 16, ms=now_ms, takes=()
            )
            staging_records.answer(tr, queue.opened.keys, request, [[item]])
        tr.set(second.opened.keys.results.key(now_ms - 1, b"q" * 16, 0), b"\xffnewer")

    store.transact(leave)
    clock.advance(STAGED_MS / 1000 + 1)
    store.doctor.examine()
    assert rounds(Sweeper(store.context, count=lambda: 0.0)).unclaimed == 2
    entries = store.trash.entries().entries
    assert {(entry.queue, entry.by) for entry in entries} == {(second.name, UNCLAIMED_BY), (third.name, UNCLAIMED_BY)}
    assert sweep_unclaimed(store) == 0
    assert (
        store.read(lambda tr: tr.get(second.opened.keys.results.key(now_ms - 1, b"q" * 16, 0)).wait()) == b"\xffnewer"
    )
    assert store.read(lambda tr: tr.get(first.opened.keys.staging).wait()) is not None
    make_newer(store, first.opened.config_key)
    assert sweep_unclaimed(store) == 0


def test_the_doctor_comes_through_trash_of_a_newer_release(store: Store) -> None:
    jobs, ann, keyspace = store.create_queue("jobs"), store.actions("ann"), store.context.keyspace
    jobs.push(b"x", priority=1)
    ann.delete_queue("jobs", confirm="jobs")
    key = store.read(lambda tr: tr.get_key(*keyspace.trash.all).wait())
    was = make_newer(store, key)
    for examination in (store.doctor.examine(), store.doctor.repair()):
        (finding,) = (finding for finding in examination.findings if finding.kind != "slot")
        assert (finding.kind, finding.mendable) == ("record", False)
        assert "trash cannot be read" in finding.says
    assert store.queues() == [], "what it holds was not taken for lost, and not adopted"
    store.transact(lambda tr: tr.set(key, was))
    (entry,) = store.trash.entries().entries
    ann.undo(entry.id)
    assert check_full_count(store, store.queue("jobs")) == 1, "what a queue in the trash holds was left alone"


def unreadable_jobs(store: Store, number: int) -> None:
    """Put jobs there that a newer release began, and that have not ended."""
    keyspace, ids = store.context.keyspace, store.context.id_generator.new_ids(number)

    def write(tr: Transaction) -> None:
        for job_id in ids:
            tr.set(keyspace.bulk.key(job_id), b"\xff of a newer release")
            tr.set(keyspace.running.key(job_id), b"")

    store.transact(write)


def test_many_jobs_that_cannot_be_read_keep_no_other_from_being_done_and_forgotten(
    store: Store, jobs: Queue, ann: Actions, sweeper: Sweeper, clock: Clock
) -> None:
    jobs.push(b"x", priority=1)
    unreadable_jobs(store, 1_200)
    job = ann.begin_bulk("delete", "jobs")
    assert [found.id for found in ann.running_jobs()] == [job.id]
    runner = JobRunner(store.context)
    while ann.job(job.id).running and runner.round() < 60:
        pass
    assert (ann.job(job.id).status, jobs.depth()) == ("done", 0)
    clock.advance(2 * WEEK)
    Sweeper(store.context).sweep()
    page = ann.job_page(limit=1)
    assert (page.entries, len(page.unreadable)) == ((), 1), "those stay for a release that can read them"
