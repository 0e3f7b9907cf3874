"""Actions on all items: chunk by chunk, stopped, canceled, gone on with, undone."""

import math
from datetime import timedelta

import pytest

from queues import Actions, Query, Queue, Store
from queues.bulk.chunk import MAX_CHUNK
from queues.bulk.runner import JobRunner
from queues.errors import (
    AlreadyRestored,
    BadPriority,
    ItemLeased,
    JobNotFound,
    NotForAttached,
    QueueNotFound,
    SameQueue,
    TrashNotFound,
    WrongKind,
)
from queues.model.ids import at
from queues.trash.trash import KEPT_MS
from tests.conftest import Clock
from tests.dumps import dump
from tests.full_count import check_full_count
from tests.sweeps import sweep_trash

N = 450


def fill(store: Store, name: str = "jobs") -> Queue:
    queue = store.create_queue(name, bands=[2])
    queue.push_many([(b"%d" % n, n % 5) for n in range(N)])
    return queue


def test_all_items_move_and_come_back_without_a_trace(store: Store, ann: Actions) -> None:
    jobs, review = fill(store), store.create_queue("review")
    review.push(b"there", priority=3)
    before, seen = dump(store, jobs, review), [item.value for item in jobs.items(limit=1_000).items]
    job = ann.begin_bulk("move", "jobs", to="review", reason="tidy")
    assert (job.total, job.done, job.status) == (N, 0, "running")
    jobs.push(b"newcomer", priority=9)
    sums = []

    def progress(job) -> bool:
        sums.append((jobs.depth() + review.depth(), review.depth() - 1 - job.done))
        return True

    job = ann.run_bulk(job.id, progress=progress)
    assert (job.status, job.done) == ("done", N)
    assert set(sums) == {(N + 2, 0)}, "each item is in exactly one queue after every chunk"
    assert N / MAX_CHUNK <= job.chunks <= len(sums)
    assert [item.value for item in jobs.items().items] == [b"newcomer"]
    assert [item.value for item in review.items(limit=1_000).items if item.value != b"there"] == seen
    (entry,) = [each for each in store.audit.entries(queue="review").entries if each.verb == "move"]
    assert (entry.id, entry.count, entry.reason, entry.after["status"]) == (job.id, N, "tidy", "done")
    (kept,) = store.trash.entries(queue="jobs", act="move").entries
    assert (kept.id, kept.count, kept.job, kept.to) == (job.id, N, True, "review")
    check_full_count(store, review)
    jobs.remove(jobs.peek_min().id)
    undone = ann.run_bulk(ann.undo(job.id).job.id)
    assert (undone.done, undone.skipped, undone.queue) == (N, 0, "jobs")
    assert dump(store, jobs, review) == before
    with pytest.raises(AlreadyRestored, match="by ann"):
        ann.run_bulk(ann.undo(job.id).job.id)
    assert store.trash.entries(queue="jobs", act="move").entries == ()


def test_one_act_is_one_audit_record_and_one_trash_entry(store: Store, clock: Clock) -> None:
    """However many chunks, runners, cancellations and restarts there are."""
    jobs, ann = fill(store), store.actions("ann")
    before = dump(store, jobs)
    begun = ann.begin_bulk("delete", "jobs", reason="tidy")

    def rows() -> list[tuple]:
        entries = store.audit.entries(queue="jobs").entries
        return [(each.verb, each.count, each.after["status"]) for each in entries if each.verb in ("delete", "undo")]

    assert rows() == [("delete", 0, "running")]
    assert store.trash.entries(act="delete").entries == ()
    first = ann.run_bulk(begun.id, progress=lambda job: False)
    (kept,) = store.trash.entries(act="delete").entries
    assert (rows(), kept.count) == ([("delete", first.done, "running")], first.done)
    clock.advance(5 * 24 * 3600)
    store.actions("bob").cancel_bulk(begun.id)
    assert rows() == [("delete", first.done, "canceled")]
    store.actions("bob").resume_bulk(begun.id)
    runner = JobRunner(store.context, name="another process")
    while ann.job(begun.id).running:
        runner.round()
        clock.advance(4)
    assert rows() == [("delete", N, "done")]
    (kept,) = store.trash.entries(act="delete").entries
    assert (kept.id, kept.count) == (begun.id, N)
    clock.advance(6 * 24 * 3600)
    assert sweep_trash(store) == 0, "it is kept for a week after its last chunk"
    undo = ann.undo(kept.id).job
    half = ann.run_bulk(undo.id, progress=lambda job: False)
    assert rows() == [("undo", half.done, "running"), ("delete", N, "done")]
    (kept,) = store.trash.entries(act="delete").entries
    assert kept.count == N - half.done
    done = store.actions("bob").run_bulk(undo.id)
    assert (done.done, done.skipped) == (N, 0)
    assert rows() == [("undo", N, "done"), ("delete", N, "done")]
    assert dump(store, jobs) == before
    assert store.trash.entries(act="delete").entries == ()
    clock.advance(8 * 24 * 3600)
    sweep_trash(store)
    for kept_keys in (store.context.keyspace.trash, store.context.keyspace.trash_parts):
        assert store.read(lambda tr, of=kept_keys: tr.get_range(*of.all, limit=9).wait()) == []


def test_priorities_choose_and_undo_leaves_alone_what_has_gone_on(store: Store, ann: Actions) -> None:
    jobs, review = fill(store), store.create_queue("review")
    job = ann.run_bulk(ann.begin_bulk("move", "jobs", to="review", low=1, high=2, priority=7).id)
    assert (job.total, job.done) == (None, 180)
    assert {item.priority for item in review.items(limit=1_000).items} == {7}
    assert {item.priority for item in jobs.items(limit=1_000).items} == {0, 3, 4}
    review.pop_many(3)
    undone = ann.run_bulk(ann.undo(job.id).job.id)
    assert (undone.done, undone.skipped) == (177, 3)
    assert review.depth() == 0
    assert check_full_count(store, jobs) == N - 3


@pytest.mark.parametrize("timed", [False, True])
def test_the_empty_text_is_a_bound_too(store: Store, ann: Actions, clock: Clock, *, timed: bool) -> None:
    jobs = store.create_queue("texts", priority_type="str")
    jobs.push_many([(b"x", ""), (b"x", ""), (b"y", "a"), (b"z", "b")])
    job = ann.begin_bulk("delete", "texts", query=Query(high="", since=at(0) if timed else None))
    assert job.query["high"] == ""
    assert ann.run_bulk(job.id).done == 2
    assert [item.priority for item in jobs.items().items] == ["a", "b"]


def test_the_entry_of_a_job_is_undone_by_an_action_alone(store: Store, ann: Actions) -> None:
    jobs, _ = fill(store), store.create_queue("review")
    job = ann.run_bulk(ann.begin_bulk("move", "jobs", to="review").id)
    with pytest.raises(TrashNotFound, match="A bulk job is undone as a whole"):
        store.restore(job.id)
    assert jobs.depth() == 0
    ann.run_bulk(ann.undo(job.id).job.id)
    assert jobs.depth() == N


@pytest.mark.parametrize("how", [{"shift": 3}, {"shift": -3}, {"priority": 2}])
def test_every_item_is_re_prioritized_once(store: Store, ann: Actions, how: dict) -> None:
    jobs = fill(store)
    before = dump(store, jobs)
    was = {item.id: item.priority for item in jobs.items(limit=1_000).items}
    job = ann.run_bulk(ann.begin_bulk("reprioritize", "jobs", **how).id)
    now = {item.id: item.priority for item in jobs.items(limit=1_000).items}
    assert now == {item: how.get("priority", priority + how.get("shift", 0)) for item, priority in was.items()}
    assert job.done == sum(now[item] != priority for item, priority in was.items())
    check_full_count(store, jobs)
    ann.run_bulk(ann.undo(job.id).job.id)
    assert dump(store, jobs) == before


def test_other_states_are_acted_on_too(store: Store, ann: Actions, clock: Clock) -> None:
    jobs, review = store.create_queue("jobs"), store.create_queue("review")
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"dead", 1)] * 30)
    jobs.lease_many(30, seconds=1)
    clock.advance(2)
    assert jobs.expire() == 30
    jobs.push_many([(b"held", 1)] * 30)
    leases = jobs.lease_many(30, seconds=60)
    jobs.push_many([(b"later", n) for n in range(30)], delay=timedelta(hours=1))
    before = dump(store, jobs, review)
    with pytest.raises(ItemLeased):
        ann.begin_bulk("move", "jobs", state="leased", to="review")
    done = [
        ann.run_bulk(ann.begin_bulk("move", "jobs", state="dead", to="review").id),
        ann.run_bulk(ann.begin_bulk("move", "jobs", state="delayed", to="review").id),
        ann.run_bulk(ann.begin_bulk("delete", "jobs", state="leased").id),
    ]
    assert [job.done for job in done] == [30, 30, 30]
    assert (review.depth(), review.depth("delayed")) == (30, 30)
    check_full_count(store, review)
    check_full_count(store, jobs)
    for job in done:
        assert ann.run_bulk(ann.undo(job.id).job.id).done == 30
    assert dump(store, jobs, review) == before
    jobs.ack(leases[0])


def test_all_of_two_generations_are_met(store: Store, ann: Actions) -> None:
    jobs, review = fill(store), store.create_queue("review")
    (purged,) = ann.purge("jobs", confirm="jobs").trash_ids
    jobs.push_many([(b"new", n % 5) for n in range(100)])
    ann.undo(purged)
    order = [item.id for item in jobs.items(limit=1_000).items]
    job = ann.run_bulk(ann.begin_bulk("move", "jobs", to="review").id)
    assert job.done == N + 100
    assert [item.id for item in review.items(limit=1_000).items] == order
    assert check_full_count(store, jobs) == 0


def test_what_cannot_be_begun_is_refused(store: Store, ann: Actions) -> None:
    fill(store)
    ann.create_queue("mail", kind="fifo")
    ann.attach("legacy", prefix=b"\x15old\x00")
    for error, act in (
        (SameQueue, lambda: ann.begin_bulk("move", "jobs", to="jobs")),
        (QueueNotFound, lambda: ann.begin_bulk("move", "jobs", to="nowhere")),
        (BadPriority, lambda: ann.begin_bulk("reprioritize", "jobs")),
        (BadPriority, lambda: ann.begin_bulk("reprioritize", "jobs", priority=math.nan)),
        (BadPriority, lambda: ann.begin_bulk("reprioritize", "jobs", shift=math.inf)),
        (BadPriority, lambda: ann.begin_bulk("delete", "jobs", low="high")),
        (WrongKind, lambda: ann.begin_bulk("delete", "jobs", state="dead", low=1)),
        (WrongKind, lambda: ann.begin_bulk("reprioritize", "mail", priority=1)),
        (NotForAttached, lambda: ann.begin_bulk("delete", "legacy")),
        (JobNotFound, lambda: ann.run_bulk("00" * 20)),
    ):
        with pytest.raises(error):
            act()
    assert ann.jobs() == []
    assert ann.run_bulk(ann.begin_bulk("delete", "mail").id).status == "done"


def test_jobs_are_forgotten_with_what_they_left_in_the_trash(store: Store, ann: Actions, clock: Clock) -> None:
    fill(store)
    job = ann.run_bulk(ann.begin_bulk("delete", "jobs").id)
    running = ann.begin_bulk("delete", "jobs").id
    clock.advance(KEPT_MS / 1000 - 1)
    sweep_trash(store)
    assert ann.run_bulk(ann.undo(job.id).job.id).done == N
    job = ann.run_bulk(ann.begin_bulk("delete", "jobs").id)
    clock.advance(KEPT_MS / 1000 + 1)
    sweep_trash(store)
    assert ann.jobs() == []
    with pytest.raises(JobNotFound):
        ann.job(running)


def test_what_a_bulk_job_removes_is_kept_all_the_same(store: Store, jobs: Queue) -> None:
    jobs.push(b"x", priority=1)
    program = store.actions("cron", keep=0)
    job = program.run_bulk(program.begin_bulk("delete", "jobs").id)
    assert program.run_bulk(program.undo(job.id).job.id).done == jobs.depth() == 1


def test_an_undo_of_a_job_that_was_forgotten_meanwhile_leaves_the_rest_alone(
    store: Store, jobs: Queue, ann: Actions, clock: Clock
) -> None:
    jobs.push_many([(b"x", n) for n in range(2 * MAX_CHUNK)])
    job = ann.run_bulk(ann.begin_bulk("delete", "jobs").id)
    clock.advance(KEPT_MS / 1000 - 1)
    undoing = ann.undo(job.id).job.id
    begun = ann.run_bulk(undoing, progress=lambda now: False)
    clock.advance(2)
    sweep_trash(store)
    undone = ann.run_bulk(undoing)
    assert (undone.status, undone.met, undone.done) == ("done", job.done, begun.done)
    assert undone.skipped == job.done - begun.done > 0
    assert check_full_count(store, jobs) == begun.done


def test_one_sweep_forgets_all_old_jobs(store: Store, jobs: Queue, ann: Actions, clock: Clock) -> None:
    running = [ann.begin_push("jobs", [(b"x", 1)]).id for _ in range(4)]
    for _ in range(250):
        ann.begin_bulk("delete", "jobs")  # there is nothing to delete: it has ended
    clock.advance(2 * KEPT_MS / 1000)
    young = ann.begin_bulk("delete", "jobs").id
    store.sweep()
    assert {job.id for job in ann.jobs()} == {young, *running}


def test_of_two_sweepers_one_finds_that_a_job_was_forgotten(
    store: Store, jobs: Queue, ann: Actions, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        ann.begin_bulk("delete", "jobs")
    clock.advance(2 * KEPT_MS / 1000)
    transact = store.context.kv.transact

    def other_first(fn, *, background=False):
        if background:
            monkeypatch.undo()
            sweep_trash(store)
        return transact(fn, background=background)

    monkeypatch.setattr(store.context.kv, "transact", other_first)
    sweep_trash(store)
    assert ann.jobs() == []


def test_a_job_that_meets_an_item_that_does_not_fit_has_failed(store: Store, ann: Actions, clock: Clock) -> None:
    jobs, scores = fill(store), store.create_queue("scores", priority_type="float")
    unfit = jobs.push(b"no float holds it", priority=2**53 + 1)
    before = dump(store, jobs, scores)
    begun = ann.begin_bulk("move", "jobs", to="scores")
    job = ann.run_bulk(begun.id)
    assert (job.status, job.done, job.failed_at) == ("failed", scores.depth(), unfit.id)
    assert "no float holds exactly" in job.failure
    assert job.done == N, "all before the one that does not fit"
    assert job == ann.job(begun.id)
    assert jobs.depth() + scores.depth() == N + 1
    assert jobs.find(unfit.id) == unfit
    check_full_count(store, jobs)
    check_full_count(store, scores)
    assert ann.run_bulk(begun.id) == job, "it is not resumed by itself"
    assert ann.cancel_bulk(begun.id) == job
    assert ann.run_bulk(ann.undo(begun.id).job.id).done == job.done
    assert dump(store, jobs, scores) == before
    clock.advance(KEPT_MS / 1000 + 1)
    sweep_trash(store)
    assert ann.jobs() == []


def test_a_job_whose_items_have_a_priority_too_many_has_failed(store: Store, ann: Actions) -> None:
    jobs, mail = fill(store), store.create_queue("mail", kind="fifo")
    begun = ann.begin_bulk("move", "jobs", to="mail", priority=1)
    job = ann.run_bulk(begun.id)
    assert (job.status, job.done, jobs.depth(), mail.depth()) == ("failed", 0, N, 0)
    assert "fifo" in job.failure
