"""Pushing very many items as a job: in order, in chunks, stopped, gone on with, undone; and nothing left behind."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from queues import Actions, Queue, Store
from queues.background.sweeper import Sweeper
from queues.bulk import push_parts
from queues.bulk.chunk import Steps
from queues.bulk.push_parts import KEPT_MS as LAID_MS
from queues.bulk.runner import JobRunner
from queues.errors import (
    AlreadyRestored,
    BadPriority,
    Conflict,
    JobEnded,
    NotForAttached,
    OutcomeUnknown,
    QueueClosed,
    QueueFull,
    QueueNotFound,
    StoreUnavailable,
    TooLarge,
    ValueTooLarge,
    WrongKind,
)
from queues.keys.keyspace import Keyspace, first_id
from queues.kv.port import Transaction
from queues.kv.simulated import SimulatedStore
from queues.kv.simulated.schedule import Point
from queues.trash.trash import KEPT_MS
from tests.conftest import Clock
from tests.dumps import dump
from tests.full_count import check_full_count

N = 450
ITEMS = [(b"%d" % n, n % 5) for n in range(N)]


def values(queue: Queue) -> list[bytes]:
    return [item.value for item in queue.items(limit=1_000).items]


def laid_down(store: Store) -> int:
    begin, end = store.context.keyspace.incoming.before(first_id(2**48 - 1))
    return len(store.read(lambda tr: tr.get_range(begin, end, limit=1_000).wait()))


def test_all_come_in_their_order_and_go_again_without_a_trace(store: Store) -> None:
    jobs, ann = store.create_queue("jobs", bands=[2]), store.actions("ann")
    jobs.push(b"there", priority=2)
    before = dump(store, jobs)
    job = ann.begin_push("jobs", ITEMS, reason="tidy")
    assert (job.status, job.total, jobs.depth()) == ("running", N, 1)
    seen = []
    job = ann.run_bulk(job.id, progress=lambda now: seen.append((jobs.depth() - 1, now.done)) is None)
    assert (job.status, job.done, job.chunks) == ("done", N, 3)
    assert seen == [(200, 200), (400, 400), (450, 450)]
    expected = [value for value, _ in sorted([(b"there", 2), *ITEMS], key=lambda item: item[1])]
    assert values(jobs) == expected
    assert check_full_count(store, jobs) == N + 1
    assert laid_down(store) == 0
    acts = store.audit.entries(queue="jobs").entries
    assert [(entry.verb, entry.count, entry.reason) for entry in acts[:1]] == [("push", N, "tidy")]
    undone = ann.run_bulk(ann.undo(job.id).job.id)
    assert (undone.done, undone.skipped) == (N, 0)
    assert dump(store, jobs) == before


def test_what_was_taken_since_is_left_alone(store: Store, jobs: Queue, ann: Actions) -> None:
    job = ann.run_bulk(ann.begin_push("jobs", ITEMS).id)
    jobs.pop_many(3)
    ann.reprioritize("jobs", [jobs.peek_max().id], priority=77)
    undone = ann.run_bulk(ann.undo(job.id).job.id)
    assert (undone.done, undone.skipped) == (N - 4, 4)
    assert [item.priority for item in jobs.items().items] == [77]
    check_full_count(store, jobs)


def test_all_are_taken_out_again_from_the_trash(store: Store, jobs: Queue, ann: Actions) -> None:
    ann.run_bulk(ann.begin_push("jobs", ITEMS).id)
    (kept,) = store.trash.entries().entries
    assert (kept.act, kept.count) == ("push", N)
    assert ann.run_bulk(ann.undo(kept.id).job.id).done == N
    assert jobs.depth() == 0
    check_full_count(store, jobs)


def test_the_undo_of_a_push_puts_the_items_into_the_trash(store: Store, jobs: Queue, ann: Actions) -> None:
    job = ann.run_bulk(ann.begin_push("jobs", ITEMS).id)
    taken = jobs.pop_many(3)
    before = dump(store, jobs)
    undoing = ann.undo(job.id).job.id
    ann.run_bulk(undoing, progress=lambda now: False)
    ann.cancel_bulk(undoing)
    first = {entry.id: entry.count for entry in store.trash.entries(act="delete").entries}
    undone = ann.run_bulk(ann.undo(job.id).job.id)
    assert (jobs.depth(), undone.skipped) == (0, len(taken))
    second = {entry.id: entry.count for entry in store.trash.entries(act="delete", but="push").entries}
    assert sum(second.values()) == N - len(taken), "the first undo has its own entry, and the second one"
    assert len(second) == 2
    assert first.items() <= second.items()
    for undo_id in second:
        redone = ann.run_bulk(ann.undo(undo_id).job.id)
        assert (redone.done, redone.skipped) == (second[undo_id], 0)
    assert check_full_count(store, jobs) == N - len(taken)
    assert dump(store, jobs) == before
    with pytest.raises(AlreadyRestored):
        ann.undo(undo_id)
    with pytest.raises(JobEnded, match="An undo is not undone"):
        ann.undo(redone.id)


def test_another_runner_continues_where_it_was(store: Store) -> None:
    jobs, ann = store.create_queue("mail", kind="fifo"), store.actions("ann")
    begun = ann.begin_push("mail", [(value, None) for value, _ in ITEMS])
    stopped = ann.run_bulk(begun.id, progress=lambda job: False)
    assert (stopped.status, stopped.done, jobs.depth()) == ("running", 200, 200)
    assert ann.cancel_bulk(begun.id).status == "canceled"
    assert ann.run_bulk(begun.id).done == 200
    ann.resume_bulk(begun.id)
    runner = JobRunner(store.context)
    while ann.job(begun.id).running:
        runner.round()
    assert values(jobs) == [value for value, _ in ITEMS]
    with pytest.raises(JobEnded):
        ann.resume_bulk(begun.id)


def test_a_chunk_whose_answer_was_lost_comes_in_once(store: Store, jobs: Queue, ann: Actions) -> None:
    job = ann.begin_push("jobs", ITEMS)
    stale = ann.job(job.id)
    ann.run_bulk(job.id, progress=lambda job: False)
    steps = Steps(store.context, job.id)
    steps.hold()
    again = steps.take(stale)
    assert (again.done, jobs.depth()) == (400, 400)
    assert len(set(values(jobs))) == 400


def test_all_are_due_at_the_time_that_was_named(store: Store, jobs: Queue, ann: Actions, clock: Clock) -> None:
    job = ann.run_bulk(ann.begin_push("jobs", ITEMS, delay=timedelta(hours=1)).id)
    assert (job.state, jobs.depth("delayed"), jobs.depth()) == ("delayed", N, 0)
    check_full_count(store, jobs)
    clock.advance(3_601)
    Sweeper(store.context).sweep()
    assert jobs.depth() == N
    check_full_count(store, jobs)


def test_large_values_and_long_priorities_fit(store: Store, jobs: Queue, ann: Actions) -> None:
    names = store.create_queue("names", priority_type="str")
    items = [(b"x" * 90_000, 2**2_000 + n) for n in range(5)]
    assert ann.run_bulk(ann.begin_push("jobs", items).id).status == "done"
    assert [(item.value, item.priority) for item in jobs.items().items] == items
    texts = [(b"y" * 400, "é\u2028\x00" * 25 + f"{n:03d}") for n in range(300)]
    texts += [(b"z" * 10, "\x7f" + "\x01" * 196 + f"{n:03d}") for n in range(300)]
    job = ann.run_bulk(ann.begin_push("names", texts).id)
    assert job.status == "done", job.failure
    texts.sort(key=lambda item: item[1])
    assert [(item.value, item.priority) for item in names.items(limit=1_000).items] == texts


def test_what_cannot_come_in_is_refused_before_anything_is_laid_down(store: Store, ann: Actions) -> None:
    for name, kind in (("jobs", "priority"), ("mail", "fifo")):
        store.create_queue(name, kind=kind)
    ann.configure("jobs", max_depth=N - 1)
    with pytest.raises(QueueFull):
        ann.begin_push("jobs", ITEMS)
    ann.configure("jobs", max_depth=None, max_value=2)
    with pytest.raises(ValueTooLarge):
        ann.begin_push("jobs", ITEMS)
    ann.configure("jobs", max_value=None, closed=True)
    with pytest.raises(QueueClosed):
        ann.begin_push("jobs", ITEMS)
    ann.configure("jobs", closed=False)
    with pytest.raises(BadPriority) as refused:
        ann.begin_push("jobs", [*ITEMS, (b"x", None)])
    assert refused.value.index == len(ITEMS)
    with pytest.raises(WrongKind):
        ann.begin_push("mail", ITEMS)
    for items in ([], [(b"", 1)] * 100_001):
        with pytest.raises(TooLarge):
            ann.begin_push("jobs", items)
    store.attach("theirs", prefix=("theirs", 1))
    with pytest.raises(NotForAttached):
        ann.begin_push("theirs", ITEMS)
    assert laid_down(store) == 0
    assert ann.jobs() == []


def test_a_queue_that_is_full_on_the_way_stops_it_and_it_goes_on_later(jobs: Queue, ann: Actions) -> None:
    job = ann.begin_push("jobs", ITEMS)
    ann.configure("jobs", max_depth=300)
    failed = ann.run_bulk(job.id)
    assert (failed.status, failed.done) == ("failed", 200)
    assert "takes at most 300" in failed.failure
    ann.configure("jobs", max_depth=None)
    ann.resume_bulk(job.id)
    assert ann.run_bulk(job.id).status == "done"
    assert sorted(values(jobs)) == sorted(value for value, _ in ITEMS)


def test_what_was_laid_down_for_nothing_is_swept(store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create_queue("jobs")
    ann = store.actions("ann")
    kept = ann.begin_push("jobs", ITEMS)
    push_parts.lay_down(store.context.kv, store.context.keyspace, store.context.id_generator.new_id(), ITEMS)
    assert laid_down(store) == 6
    clock.advance(LAID_MS / 2_000)
    Sweeper(store.context).sweep()
    assert laid_down(store) == 6
    clock.advance(LAID_MS / 1_000)
    Sweeper(store.context).sweep()
    assert laid_down(store) == 3, "what belongs to a job stays with it"
    push_parts.clear(store.context.kv, store.context.keyspace, bytes.fromhex(kept.id))
    assert laid_down(store) == 3, "also when it began after a look that found no job"
    ann.cancel_bulk(kept.id)
    clock.advance(2 * KEPT_MS / 1_000)
    Sweeper(store.context).sweep()
    assert laid_down(store) == 0
    failing = iter([None, RuntimeError("full")])
    plain = push_parts.parts_of

    def parts(items: list[push_parts.Arrival]):
        for part in plain(items):
            yield part
            if (error := next(failing)) is not None:
                raise error

    monkeypatch.setattr(push_parts, "parts_of", parts)
    monkeypatch.setattr(push_parts, "_STEP_BYTES", 1)
    with pytest.raises(RuntimeError):
        ann.begin_push("jobs", ITEMS)
    assert laid_down(store) == 0


def test_what_was_laid_down_is_cleared_in_small_transactions(
    store: Store, jobs: Queue, ann: Actions, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_parts, "MAX_ITEMS", 10)
    kv, plain, cleared = store.context.kv, store.context.kv.transact, []

    def counted(fn: Callable[[Transaction], Any], *, background: bool = False) -> Any:
        before = laid_down(store)
        answer = plain(fn, background=background)
        cleared.append(before - laid_down(store))
        return answer

    job = ann.begin_push("jobs", ITEMS)
    ann.cancel_bulk(job.id)
    push_parts.lay_down(kv, store.context.keyspace, store.context.id_generator.new_id(), ITEMS)
    assert laid_down(store) == 90
    clock.advance(2 * KEPT_MS / 1_000)
    monkeypatch.setattr(kv, "transact", counted)
    Sweeper(store.context).sweep()
    assert (laid_down(store), max(cleared)) == (0, 10)


@pytest.mark.parametrize("error", [OutcomeUnknown("The result is unknown."), KeyboardInterrupt()])
def test_a_job_that_began_keeps_its_items_whatever_was_heard_of_it(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    jobs, ann, kv = store.create_queue("jobs"), store.actions("ann"), store.context.kv
    plain = kv.transact

    def unheard(fn: Callable[[Transaction], Any], *, background: bool = False) -> Any:
        answer = plain(fn, background=background)
        if not background:
            raise error
        return answer

    with monkeypatch.context() as patch, pytest.raises(type(error)):
        patch.setattr(kv, "transact", unheard)
        ann.begin_push("jobs", ITEMS)
    (job,) = ann.jobs()
    job = ann.run_bulk(job.id)
    assert (job.status, job.done, jobs.depth()) == ("done", N, N), job.failure
    assert laid_down(store) == 0


@pytest.mark.parametrize("error", [OutcomeUnknown("The result is unknown."), QueueFull("Full.")])
@pytest.mark.parametrize("where", ["write", "run"])
def test_what_is_heard_is_what_went_wrong_first(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch, error: Exception, where: str
) -> None:
    store.create_queue("jobs")
    ann, kv = store.actions("ann"), store.context.kv
    plain, away = kv.transact, False

    def breaks(fn: Callable[[Transaction], Any], *, background: bool = False) -> Any:
        nonlocal away
        if away:
            raise StoreUnavailable("The store is away.")
        away = fn.__name__ == where
        if fn.__name__ != "run":
            plain(fn, background=background)
        if away:
            raise error

    with monkeypatch.context() as patch, pytest.raises(type(error)):
        patch.setattr(kv, "transact", breaks)
        ann.begin_push("jobs", ITEMS)
    assert (ann.jobs(), laid_down(store)) == ([], 3)
    clock.advance(2 * LAID_MS / 1_000)
    Sweeper(store.context).sweep()
    assert laid_down(store) == 0


def test_a_job_whose_items_were_swept_before_it_began_does_not_begin(
    store: Store, jobs: Queue, ann: Actions, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = push_parts.lay_down

    def slow(*args: Any) -> None:
        plain(*args)
        clock.advance(2 * LAID_MS / 1_000)
        Sweeper(store.context).sweep()

    monkeypatch.setattr(push_parts, "lay_down", slow)
    with pytest.raises(JobEnded):
        ann.begin_push("jobs", ITEMS)
    assert (ann.jobs(), laid_down(store), jobs.depth()) == ([], 0, 0)


@pytest.mark.parametrize("lands", [Point.BEGIN, Point.COMMIT, None])
def test_a_beginning_on_its_way_lands_with_its_items_or_not_at_all(clock: Clock, lands: Point | None) -> None:
    """On a cluster it may land before, while, or after what was laid down is cleared."""
    under_way: list[Callable[[], object]] = []
    keyspace = Keyspace(("pq",))

    def others(point: Point) -> None:
        if point is lands and under_way:
            under_way.pop()()

    kv = SimulatedStore(clock=clock, schedule=others)
    store = Store(kv, url="memory:", keyspace=keyspace, clock=clock)
    jobs, ann = store.create_queue("jobs"), store.actions("ann")
    plain = kv.transact

    def interrupted(fn: Callable[[Transaction], Any], *, background: bool = False) -> Any:
        if background:
            return plain(fn, background=background)
        sent = kv.begin()
        fn(sent)
        under_way.append(sent.commit)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(kv, "transact", interrupted)
        ann.begin_push("jobs", ITEMS)
    if lands is None:
        with pytest.raises(Conflict):
            under_way.pop()()
        assert (ann.jobs(), laid_down(store)) == ([], 0)
        return
    assert not under_way
    (job,) = ann.jobs()
    assert ann.run_bulk(job.id).status == "done"
    assert jobs.depth() == N


@pytest.mark.parametrize("made", [{"kind": "fifo"}, {"priority_type": "float"}, {"codec": "json"}])
def test_another_queue_that_gets_the_name_while_items_are_laid_down_gets_none_of_them(
    store: Store, jobs: Queue, ann: Actions, monkeypatch: pytest.MonkeyPatch, made: dict[str, Any]
) -> None:
    plain = push_parts.lay_down

    def lay_down(*laid: Any) -> None:
        plain(*laid)
        ann.rename_queue("jobs", "jobs-old")
        store.create_queue("jobs", **made)

    monkeypatch.setattr(push_parts, "lay_down", lay_down)
    with pytest.raises(QueueNotFound, match="Another queue"):
        ann.begin_push("jobs", ITEMS)
    assert (laid_down(store), ann.jobs()) == (0, [])


def test_conflicts_in_the_life_of_a_push_job_do_not_stop_it(
    jobs: Queue, ann: Actions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_parts, "MAX_ITEMS", 50)
    plain, conflicts = push_parts.read_part, set[int]()

    def read_part(tr: Transaction, keyspace: Keyspace, job_id: bytes, n: int) -> Any:
        if n not in conflicts:
            conflicts.add(n)
            raise Conflict("busy")
        return plain(tr, keyspace, job_id, n)

    monkeypatch.setattr(push_parts, "read_part", read_part)
    job = ann.run_bulk(ann.begin_push("jobs", ITEMS).id)
    assert (job.status, jobs.depth(), len(conflicts)) == ("done", N, 9)
