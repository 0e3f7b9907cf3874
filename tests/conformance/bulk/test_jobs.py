"""Jobs on what a query finds: exactly that, at a rate, canceled, gone on with, undone, by one runner at a time."""

import threading
from datetime import timedelta
from itertools import pairwise

import pytest

from queues import Actions, Job, Queue, Store
from queues.background import empty_trash
from queues.bulk import chunk
from queues.bulk.bulk_job import HELD_MS
from queues.bulk.runner import AT_ONCE, JobRunner
from queues.errors import (
    AlreadyRestored,
    BadSetting,
    DepthChanged,
    ItemLeased,
    JobEnded,
    WrongKind,
)
from queues.items.scan import Query
from queues.trash.trash import KEPT_MS
from tests.conftest import Clock
from tests.dumps import dump
from tests.full_count import check_full_count

N = 60


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let jobs have many chunks."""
    monkeypatch.setattr(chunk, "FIRST_CHUNK", 7)
    monkeypatch.setattr(chunk, "MAX_CHUNK", 7)


def fill(store: Store, clock: Clock, name: str = "jobs") -> Queue:
    """Return a queue with items of several priorities, ages and values."""
    queue = store.create_queue(name, bands=[2])
    for n in range(0, N, 10):
        queue.push_many([(b"Alpha %d" % m if m % 3 else b"beta %d" % m, m % 5) for m in range(n, n + 10)])
        clock.advance(60)
    return queue


def values(queue: Queue) -> list[bytes]:
    return [item.value for item in queue.items(limit=1_000).items]


def runner(store: Store, count: Clock) -> JobRunner:
    return JobRunner(store.context, count=count)


@pytest.mark.parametrize(
    "query",
    [
        Query(text="ALPHA"),
        Query(text="alpha 1", low=1, high=3),
        Query(item_id="00"),
        Query(low=4),
        Query(text="nowhere"),
    ],
    ids=["text", "text and priorities", "part of an id", "priorities", "nothing"],
)
def test_a_job_meets_exactly_what_the_search_finds(store: Store, ann: Actions, clock: Clock, query: Query) -> None:
    jobs, review = fill(store, clock), store.create_queue("review")
    found = [item.id for item in jobs.search(query, limit=1_000).items]
    before = dump(store, jobs, review)
    job = ann.run_bulk(ann.begin_bulk("move", "jobs", query=query, to="review").id)
    assert (job.status, job.done, job.skipped) == ("done", len(found), 0)
    assert [item.id for item in review.items(limit=1_000).items] == found
    assert jobs.depth() == N - len(found)
    assert check_full_count(store, review) == len(found)
    undone = ann.run_bulk(ann.undo(job.id).job.id)
    assert (undone.done, undone.skipped) == (len(found), 0)
    assert dump(store, jobs, review) == before


def test_ages_are_bounds_too(store: Store, ann: Actions, clock: Clock) -> None:
    jobs = fill(store, clock)
    ages = sorted(item.pushed_at for item in jobs.items(limit=1_000).items if item.pushed_at)
    query = Query(since=ages[10], until=ages[29])
    found = {item.id for item in jobs.search(query, limit=1_000).items}
    assert len(found) == 20
    before = dump(store, jobs)
    job = ann.run_bulk(ann.begin_bulk("reprioritize", "jobs", query=query, shift=10).id)
    assert (job.done, job.met) == (20, 20), "only those are looked at"
    assert {item.id for item in jobs.items(limit=1_000).items if item.priority >= 10} == found
    ann.run_bulk(ann.undo(job.id).job.id)
    assert dump(store, jobs) == before


def test_the_trash_keeps_a_job_from_its_first_chunk_on(store: Store, ann: Actions, jobs: Queue, clock: Clock) -> None:
    jobs.push(b"one chunk", 1)
    job = ann.begin_bulk("delete", "jobs")
    clock.advance(86_400)  # no runner was there
    ran_at = store.now()
    ann.run_bulk(job.id)
    (entry,) = store.trash.entries().entries
    assert entry.deadline - ran_at == timedelta(milliseconds=KEPT_MS)


@pytest.mark.parametrize(("limit", "size"), [(1, 1), (65, 21_000)])
def test_the_trash_keeps_what_a_job_does_that_is_resumed_while_its_entry_is_cleared(
    store: Store, ann: Actions, jobs: Queue, clock: Clock, limit: int, size: int
) -> None:
    number = 3 * N
    for n in range(number):
        jobs.push(b"x" * size, n)
    job = ann.begin_bulk("delete", "jobs")
    ann.run_bulk(job.id, progress=lambda job: job.chunks < 20)
    early = ann.cancel_bulk(job.id).done
    clock.advance(KEPT_MS / 1000 + 1)
    now_ms = store.context.clock.now_ms()
    cleared = empty_trash.sweep_trash(store.context.kv, store.context.keyspace, now_ms=now_ms, limit=limit)
    assert 0 < cleared < 2 * early, "the sweep has some way to go: each item has two keys"
    ann.resume_bulk(job.id)
    job = ann.run_bulk(job.id)
    assert (job.status, job.done, jobs.depth()) == ("done", number, 0)
    store.sweep()
    assert [entry.id for entry in store.trash.entries().entries] == [job.id]
    undone = ann.run_bulk(ann.undo(job.id).job.id)
    assert (undone.status, undone.done) == ("done", number - (cleared + 1) // 2)
    assert undone.done + undone.skipped == number, "what the trash has nothing of any more is told"
    assert check_full_count(store, jobs) == undone.done


def test_items_come_to_other_states_and_back(store: Store, ann: Actions, jobs: Queue, clock: Clock) -> None:
    jobs.configure(max_attempts=2)
    jobs.push_many([(b"%d" % n, n % 3) for n in range(20)], delay=timedelta(hours=1))
    jobs.push_many([(b"dead %d" % n, n % 3) for n in range(20)])
    for _ in range(2):
        jobs.lease_many(20, seconds=1)
        clock.advance(2)
        assert jobs.expire() == 20
    jobs.push_many([(b"held %d" % n, n % 3) for n in range(20)])
    leases = jobs.lease_many(20, seconds=3_600, worker="w")
    before = dump(store, jobs)
    for act, state in (("promote", "delayed"), ("retry", "dead"), ("release", "leased")):
        depth = jobs.depth()
        job = ann.run_bulk(ann.begin_bulk(act, "jobs", state=state).id)
        assert (job.status, job.done, job.total) == ("done", 20, 20)
        assert (jobs.depth(), jobs.depth(state)) == (depth + 20, 0)
        assert check_full_count(store, jobs) == depth + 20
        assert ann.run_bulk(ann.undo(job.id).job.id).done == 20
        assert dump(store, jobs) == before
    assert all(jobs.extend(lease, seconds=7_200) for lease in leases), "the leases are the same workers' again"
    for act, state, error in (
        ("promote", "ready", WrongKind),
        ("retry", "delayed", WrongKind),
        ("move", "leased", ItemLeased),
    ):
        with pytest.raises(error):
            ann.begin_bulk(act, "jobs", state=state, to="jobs")


@pytest.mark.parametrize("shift", [5, -5])
@pytest.mark.parametrize("state", ["ready", "delayed"])
def test_an_item_is_shifted_once_wherever_it_is_put_meanwhile(store: Store, state: str, shift: int) -> None:
    jobs, ann = store.create_queue("jobs"), store.actions("ann")
    delays = [timedelta(hours=n + 1) if state == "delayed" else None for n in range(20)]
    items = [jobs.push(b"%d" % n, priority=100 + n, delay=delay) for n, delay in enumerate(delays)]
    job = ann.begin_bulk("reprioritize", "jobs", query=Query(state=state), shift=shift)
    ann.run_bulk(job.id, progress=lambda job: False)

    def priorities() -> dict[str, object]:
        page = jobs.items(limit=100) if state == "ready" else jobs.delayed(limit=100)
        return {item.id: item.priority for item in page.items}

    expected = {item.id: 100 + n + shift for n, item in enumerate(items)}
    shifted = [item.id for n, item in enumerate(items) if priorities()[item.id] != 100 + n]
    assert len(shifted) == 7
    # To the other end of what is left: the place of an item says nothing about whether it was met.
    if state == "delayed":
        ann.reschedule("jobs", shifted, delay=timedelta(hours=1.5 if shift > 0 else 19.5))
    else:
        ann.reprioritize("jobs", shifted, priority=101 if shift > 0 else 118)
        expected |= dict.fromkeys(shifted, 101 if shift > 0 else 118)
    job = ann.run_bulk(job.id)
    assert priorities() == expected
    assert (job.status, job.met, job.done) == ("done", 20, 20)


def test_a_range_gets_a_priority_of_its_own_without_a_look_at_the_rest(store: Store, clock: Clock) -> None:
    jobs, ann = fill(store, clock), store.actions("ann")
    jobs.push_many([(b"x", 9)] * 200)
    job = ann.run_bulk(ann.begin_bulk("reprioritize", "jobs", query=Query(low=1, high=3), priority=2).id)
    assert (job.status, job.done) == ("done", 24)
    assert job.met < 200
    assert [sum(item.priority == n for item in jobs.items(limit=1_000).items) for n in range(5)] == [12, 0, 36, 0, 12]


def test_a_shift_of_a_range_tells_how_many_it_will_meet(store: Store, clock: Clock) -> None:
    jobs, ann = fill(store, clock), store.actions("ann")
    job = ann.begin_bulk("reprioritize", "jobs", query=Query(low=1, high=2), shift=1, total=24)
    job = ann.run_bulk(job.id)
    assert (job.total, job.met, job.done) == (N, N, 24)
    assert [sum(item.priority == n for item in jobs.items(limit=1_000).items) for n in range(5)] == [12, 0, 12, 24, 12]


@pytest.mark.parametrize(
    ("query", "to", "left_alone"),
    [(Query(), 2, 12), (Query(low=1, high=2), 4, 0), (Query(), 9, 0), (Query(), -1, 0)],
)
def test_an_item_that_gets_a_priority_ahead_of_the_walk_is_met_once(
    store: Store, clock: Clock, query: Query, to: int, left_alone: int
) -> None:
    jobs, ann = fill(store, clock), store.actions("ann")
    found = [item.id for item in jobs.search(query, limit=1_000).items]
    before = dump(store, jobs)
    job = ann.begin_bulk("reprioritize", "jobs", query=query, priority=to)
    job = ann.run_bulk(job.id)
    assert (job.status, job.done, job.skipped) == ("done", len(found) - left_alone, left_alone)
    assert job.total is None or job.met == job.total
    assert {item.id for item in jobs.items(limit=1_000).items if item.priority == to} >= set(found)
    ann.run_bulk(ann.undo(job.id).job.id)
    assert dump(store, jobs) == before


@pytest.mark.parametrize("kind", ["priority", "fifo"])
@pytest.mark.parametrize("place", ["front", "back"])
def test_many_are_brought_to_an_end_in_their_order_while_other_callers_take(
    store: Store, place: str, kind: str
) -> None:
    jobs = store.create_queue("jobs", kind=kind)
    for n in range(N):
        value = b"yes %d" % n if n % 3 else b"no %d" % n
        jobs.enqueue(value) if kind == "fifo" else jobs.push(value, priority=n % 4)
    ann, order, taken = store.actions("ann"), values(jobs), []
    before = dump(store, jobs)
    chosen = [value for value in order if value.startswith(b"yes")]
    rest = [value for value in order if value not in chosen]

    def take(job: Job) -> bool:
        item = jobs.dequeue() if kind == "fifo" else jobs.pop_min()
        taken.append(item.value)
        return True

    job = ann.begin_bulk("reprioritize", "jobs", query=Query(text="yes"), place=place)
    quiet = ann.run_bulk(job.id)
    assert (quiet.status, quiet.done) == ("done", len(chosen))
    assert values(jobs) == (chosen + rest if place == "front" else rest + chosen)
    ann.run_bulk(ann.undo(job.id).job.id)
    assert dump(store, jobs) == before
    job = ann.run_bulk(ann.begin_bulk("reprioritize", "jobs", query=Query(text="yes"), place=place).id, progress=take)
    assert job.status == "done"
    assert job.done + job.skipped <= len(chosen), "nothing is met twice"
    left = values(jobs)
    assert sorted(left + taken) == sorted(order)
    brought = [value for value in left if value in chosen]
    assert brought == [value for value in chosen if value in brought]


def test_a_rate_is_kept_and_the_time_left_is_told(store: Store, clock: Clock) -> None:
    jobs = fill(store, clock)
    ann, began = store.actions("ann"), clock.now
    waits, told = [], []

    def progress(job: Job) -> bool:
        told.append(job.seconds_left())
        return True

    def pause(seconds: float) -> None:
        waits.append(seconds)
        clock.advance(seconds)

    begun = ann.begin_bulk("delete", "jobs", rate=20)
    job = ann.run_bulk(begun.id, progress=progress, pause=pause)
    assert (job.status, jobs.depth()) == ("done", 0)
    assert 2.0 <= clock.now - began <= 3.1, "60 items at 20 a second"
    assert max(waits) <= HELD_MS / 3000
    assert 0.3 < next(seconds for seconds in told if seconds is not None) < 3.0
    for rate in (0, 0.5, 10**7, float("nan")):
        with pytest.raises(BadSetting):
            ann.begin_bulk("delete", "jobs", rate=rate)


def test_the_speed_of_a_job_with_a_rate_is_never_above_it(store: Store, clock: Clock) -> None:
    fill(store, clock)
    ann, told = store.actions("ann"), []

    def progress(job: Job) -> bool:
        told.append(job.speed)
        return True

    ann.run_bulk(ann.begin_bulk("delete", "jobs", rate=7).id, progress=progress, pause=clock.advance)
    speeds = [speed for speed in told if speed is not None]
    assert len(speeds) >= 5
    assert max(speeds) == pytest.approx(7)
    assert min(speeds) == pytest.approx(7)


def test_what_is_passed_over_does_not_hasten_a_forecast(ann: Actions, jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"other", 1)] * 300 + [(b"meant", 2)] * 60)
    told = []

    def progress(job: Job) -> bool:
        told.append((clock.now, job.seconds_left()))
        return True

    begun = ann.begin_bulk("delete", "jobs", query=Query(text="meant"), rate=6, concerned=60)
    ann.run_bulk(begun.id, progress=progress, pause=clock.advance)
    for at, seconds in told:
        assert seconds is None or 0.9 * (clock.now - at) - 2 <= seconds <= 1.5 * (clock.now - at) + 2, told
    assert any(seconds is not None and seconds > 6 for _, seconds in told)


def test_a_job_is_canceled_gone_on_with_and_not_after_it_is_undone(store: Store, clock: Clock) -> None:
    jobs = fill(store, clock)
    before = dump(store, jobs)
    ann, bob = store.actions("ann"), store.actions("bob")
    begun = ann.begin_bulk("delete", "jobs")
    ann.run_bulk(begun.id, progress=lambda job: job.chunks < 2)
    stopped = bob.cancel_bulk(begun.id, reason="wait")
    assert (stopped.status, stopped.done, jobs.depth()) == ("canceled", 14, N - 14)
    assert stopped.ended_at is not None
    assert ann.run_bulk(begun.id) == stopped, "a canceled one is not run"
    resumed = bob.resume_bulk(begun.id)
    assert (resumed.status, resumed.ended_at) == ("running", None)
    ann.run_bulk(begun.id, progress=lambda job: job.chunks < 4)
    undo = ann.undo(begun.id).job
    assert ann.undo(begun.id).job.id == undo.id, "there is one undo of it at a time"
    assert ann.job(begun.id).status == "canceled"
    with pytest.raises(JobEnded):
        ann.resume_bulk(begun.id)
    with pytest.raises(JobEnded):
        ann.undo(undo.id)
    half = ann.run_bulk(undo.id, progress=lambda job: job.done < 14)
    assert (half.total, half.done, jobs.depth()) == (28, 14, N - 14)
    assert bob.cancel_bulk(undo.id).status == "canceled"
    assert bob.resume_bulk(undo.id).running
    done = bob.run_bulk(undo.id)
    assert (done.status, done.done, done.skipped) == ("done", 28, 0)
    assert dump(store, jobs) == before
    with pytest.raises(JobEnded):
        ann.resume_bulk(undo.id)
    with pytest.raises(AlreadyRestored, match="by ann at "):
        bob.undo(begun.id)
    verbs = [entry.verb for entry in store.audit.entries(queue="jobs", limit=100).entries if entry.verb != "push"]
    assert verbs == ["resume_job", "cancel_job", "undo", "resume_job", "cancel_job", "delete"]


def test_a_job_that_failed_goes_on_when_what_was_wrong_is_mended(store: Store, ann: Actions, clock: Clock) -> None:
    jobs, scores = fill(store, clock), store.create_queue("scores", priority_type="float")
    unfit = jobs.push(b"Alpha unfit", priority=2**53 + 1)
    behind = jobs.push(b"Alpha behind", priority=2**53 + 2)
    begun = ann.begin_bulk("move", "jobs", to="scores")
    failed = ann.run_bulk(begun.id)
    assert (failed.status, failed.failed_at, failed.done) == ("failed", unfit.id, N)
    ann.delete_item("jobs", unfit.id)
    done = ann.run_bulk(ann.resume_bulk(begun.id).id)
    assert (done.status, done.done, done.failure, done.failed_at) == ("done", N + 1, "", None)
    assert scores.find(behind.id) is not None
    assert jobs.depth() == 0


def test_a_job_fails_with_words_when_a_queue_goes_or_closes(store: Store, ann: Actions, clock: Clock) -> None:
    jobs, review = fill(store, clock), store.create_queue("review")
    begun = ann.begin_bulk("move", "jobs", to="review")
    ann.run_bulk(begun.id, progress=lambda job: False)
    review.configure(closed=True)
    closed = ann.run_bulk(begun.id)
    assert (closed.status, closed.failed_at, closed.done) == ("failed", None, 7)
    assert "closed" in closed.failure
    review.configure(closed=False)
    trash_id = ann.delete_queue("review", confirm="review")
    gone = ann.run_bulk(ann.resume_bulk(begun.id).id)
    assert (gone.status, "review" in gone.failure) == ("failed", True)
    ann.undo(trash_id)
    assert ann.run_bulk(ann.resume_bulk(begun.id).id).done == N
    assert (jobs.depth(), review.depth()) == (0, N)
    ann.delete_queue("jobs", confirm="jobs")
    assert ann.run_bulk(ann.undo(begun.id).job.id).status == "failed"
    assert review.depth() == N


def test_what_was_confirmed_is_compared_when_it_begins(store: Store, ann: Actions, clock: Clock) -> None:
    fill(store, clock)
    with pytest.raises(DepthChanged) as caught:
        ann.begin_bulk("delete", "jobs", expect_depth=N - 6, tolerance=5)
    assert caught.value.depth == N
    assert ann.jobs() == []
    assert ann.begin_bulk("delete", "jobs", expect_depth=N - 5, tolerance=5).total == N


def test_one_of_two_runners_runs_a_job_and_the_other_goes_on_when_it_dies(store: Store, clock: Clock) -> None:
    jobs = fill(store, clock)
    ann, count = store.actions("ann"), Clock(0.0)
    one, two = runner(store, count), runner(store, count)
    begun = ann.begin_bulk("delete", "jobs")
    one.round()
    assert [job.id for job in one.running or ()] == [begun.id]
    name = ann.job(begun.id).runner
    count.advance(1)
    two.round()
    assert [job.id for job in two.running or ()] == [begun.id]
    assert (ann.job(begun.id).runner, ann.job(begun.id).done) == (name, 7)
    # The clock does not move, as that of a machine that is behind: two counts for itself.
    count.advance(HELD_MS / 1000 - 1)
    two.round()
    assert ann.job(begun.id).runner == name, "it held the job again since two saw it first"
    count.advance(HELD_MS / 1000)
    two.round()
    assert ann.job(begun.id).runner != name
    assert ann.job(begun.id).done == 14
    one.round()
    assert ann.job(begun.id).done == 14, "a runner that lost a job leaves it alone"
    while two.round() < 1:
        count.advance(1)
    done = ann.job(begun.id)
    assert (done.status, done.done, jobs.depth()) == ("done", N, 0)
    count.advance(60)
    assert (one.round(), one.running) == (30.0, ())


def test_a_runner_that_ends_lets_go_and_one_that_comes_takes_over_at_once(store: Store, clock: Clock) -> None:
    jobs = fill(store, clock)
    ann, count = store.actions("ann"), Clock(0.0)
    begun = ann.begin_bulk("delete", "jobs")
    ended = threading.Event()
    one = runner(store, count)
    one.round()
    ended.set()
    one.run(ended)  # ends at once, and lets go
    assert ann.job(begun.id).done == 7
    two = runner(store, count)
    two.round()
    assert ann.job(begun.id).done == 14
    by_hand = ann.run_bulk(begun.id)
    assert (by_hand.status, by_hand.done) == ("done", N)
    assert jobs.depth() == 0


def test_jobs_take_turns_also_on_one_queue(store: Store, ann: Actions, clock: Clock) -> None:
    jobs, review, count = fill(store, clock), store.create_queue("review"), Clock(0.0)
    before = sorted(values(jobs))
    moved = ann.begin_bulk("move", "jobs", query=Query(text="alpha"), to="review")
    shifted = ann.begin_bulk("reprioritize", "jobs", query=Query(text="beta"), priority=2)
    slow = ann.begin_bulk("move", "jobs", query=Query(text="beta"), to="review", rate=1)
    one = runner(store, count)
    one.round()
    done = [ann.job(job.id).done for job in (moved, shifted, slow)]
    assert done == [7, 6, 1], "of the first seven one has that priority"
    for _ in range(40):
        one.round()
        count.advance(1)
        clock.advance(0.5)
        assert sorted(values(jobs) + values(review)) == before
    assert [ann.job(job.id).status for job in (moved, shifted)] == ["done", "done"]
    assert ann.job(moved.id).done == 40
    slowly = ann.job(slow.id)
    assert 18 <= slowly.done <= 20, "one a second"
    check_full_count(store, jobs)
    check_full_count(store, review)


def test_a_page_of_jobs_goes_on_where_the_last_one_ended(store: Store, ann: Actions, clock: Clock) -> None:
    fill(store, clock)
    begun = [ann.begin_bulk("delete", "jobs", low=99).id for _ in range(5)]
    page = ann.job_page(limit=3)
    assert [job.id for job in page.entries] == begun[:1:-1]
    older = ann.job_page(limit=3, after=page.cursor)
    assert ([job.id for job in older.entries], older.cursor) == (begun[1::-1], None)
    assert ann.running_jobs() == []


def test_jobs_behind_a_full_page_are_not_counted_to_those_looked_at_for_it(store: Store, clock: Clock) -> None:
    fill(store, clock)
    ann = store.actions("ann")
    begun = [ann.begin_bulk("delete", "jobs", low=99).id for _ in range(6)]
    page = ann.job_page(limit=1, visible=lambda job: job.id in (begun[0], begun[4]))
    assert ([job.id for job in page.entries], page.looked, page.certain) == ([begun[4]], 2, True)


def fail_all(jobs: Queue, **options: object) -> None:
    """Let a worker fail at each item that is ready."""
    for lease in jobs.lease_many(100, seconds=30):
        jobs.release(lease, **options)


def test_a_promoted_item_that_is_delayed_again_is_not_met_again(
    store: Store, ann: Actions, jobs: Queue, clock: Clock
) -> None:
    jobs.configure(max_attempts=3)
    first = jobs.push(b"fails", 1, delay=60)
    jobs.push_many([(b"%d" % n, 5, timedelta(minutes=n + 2)) for n in range(N)])
    job = ann.begin_bulk("promote", "jobs", state="delayed")

    def fail(job: Job) -> bool:
        clock.advance(1)
        fail_all(jobs, delay=timedelta(minutes=job.done + 5), reason="down")
        return True

    job = ann.run_bulk(job.id, progress=fail)
    assert (job.status, job.total, job.met, job.done) == ("done", N + 1, N + 1, N + 1)
    found = jobs.find(first.id)
    assert (found.state, found.attempts) == ("delayed", 1)
    assert check_full_count(store, jobs) == 0


def test_a_retried_item_that_dies_again_is_not_met_again_after_a_clock_was_set_back(
    store: Store, ann: Actions, jobs: Queue, clock: Clock
) -> None:
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"%d" % n, n) for n in range(20)])
    for _ in range(20):
        clock.advance(60)
        jobs.release(jobs.lease(seconds=30))
    clock.advance(-600)
    job = ann.begin_bulk("retry", "jobs", state="dead")

    def fail(job: Job) -> bool:
        clock.advance(1)
        fail_all(jobs)
        return True

    job = ann.run_bulk(job.id, progress=fail)
    assert (job.status, job.total, job.met, job.done) == ("done", 20, 20, 20)


def test_an_item_is_shifted_once_after_a_clock_was_set_back(
    store: Store, ann: Actions, jobs: Queue, clock: Clock
) -> None:
    taken = jobs.push(b"old", 5)
    clock.advance(10)
    jobs.push_many([(b"%d" % n, 50) for n in range(20)])
    clock.advance(3600)
    ahead = jobs.push(b"last", 50)
    clock.advance(60 - 3600)
    job = ann.begin_bulk("reprioritize", "jobs", shift=10)
    shifted: list[object] = []

    def take(job: Job) -> bool:
        clock.advance(1)
        if not shifted:
            lease = jobs.lease(seconds=30)
            shifted.append(lease.item.priority)
            jobs.release(lease)
        return True

    job = ann.run_bulk(job.id, progress=take)
    assert shifted == [15]
    assert (jobs.find(taken.id).priority, jobs.find(ahead.id).priority) == (15, 60)
    assert (job.status, job.total, job.met, job.done) == ("done", 22, 22, 22)


def test_jobs_that_rest_for_their_rates_let_the_rest_begin(store: Store, ann: Actions, clock: Clock) -> None:
    slow, fast = fill(store, clock), fill(store, clock, "fast")
    for n in range(AT_ONCE):
        ann.begin_bulk("reprioritize", "jobs", priority=10 + n, rate=1)
    ninth = ann.begin_bulk("delete", "fast")
    count = Clock(0.0)
    one = runner(store, count)
    for _ in range(12):
        one.round()
        count.advance(1)
        clock.advance(1)
    assert (ann.job(ninth.id).status, fast.depth()) == ("done", 0)
    assert all(0 < job.done <= 13 for job in ann.jobs() if job.rate), "one a second"
    assert slow.depth() == N


def test_a_job_that_finds_nothing_looks_at_as_much_as_the_time_of_a_chunk_allows(
    ann: Actions, jobs: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.push_many([(b"other", 1)] * 900)
    spent, plain = [0.0], chunk.scan.read_places

    def slow(tr, keys, config, state, found, **options):
        spent[0] += 0.001 * len(found)
        return plain(tr, keys, config, state, found, **options)

    monkeypatch.setattr(chunk.scan, "read_places", slow)
    monkeypatch.setattr(chunk.time, "thread_time", lambda: spent[0])
    seen = [0]
    job = ann.begin_bulk("delete", "jobs", query=Query(text="nowhere"))
    job = ann.run_bulk(job.id, progress=lambda job: seen.append(job.met) is None)
    met = [after - before for before, after in pairwise(seen)]
    assert (job.status, job.met) == ("done", 900)
    assert met[0] <= 200
    assert 15 <= max(met[1:]) <= 20, "each takes 20 ms"
