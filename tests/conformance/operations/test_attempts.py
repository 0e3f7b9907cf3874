"""The log of attempts: written when an attempt ends without an acknowledgement, and wherever the item goes."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from queues import Actions, AsyncPriorityQueue, Attempt, Item, Lease, Queue, Store, Transaction
from queues.errors import BadValue
from queues.items.stored_item import find as find_stored
from queues.model import records
from queues.model.attempt_log import MAX_BYTES, MAX_TRACEBACK, MOST
from queues.model.records import MAX_VALUE_SIZE
from tests.conftest import Clock
from tests.dumps import dump
from tests.full_count import check_full_count

HOUR = timedelta(hours=1)


def at(clock: Clock, seconds: float = 0) -> datetime:
    return datetime.fromtimestamp(clock.now + seconds, UTC)


def fail(jobs: Queue, error: str = "ValueError: no", traceback: str = "", worker: str = "w1") -> Item:
    """Lease the first item and release it as failed."""
    return jobs.release(jobs.lease(seconds=60, worker=worker), reason=error, traceback=traceback)


def errors(item: Item | None) -> list[tuple[int, str]]:
    return [(attempt.number, attempt.error) for attempt in item.attempt_log]


def test_a_release_is_told_with_worker_times_error_and_traceback(jobs: Queue, clock: Clock) -> None:
    item = jobs.push(b"x", priority=1)
    assert item.attempt_log == ()
    lease = jobs.lease(seconds=60, worker="host:17")
    began = at(clock)
    clock.advance(2)
    back = jobs.release(lease, reason="KeyError: 'a'", traceback="Traceback …\nKeyError: 'a'")
    told = Attempt(
        number=1,
        worker="host:17",
        began_at=began,
        ended_at=at(clock),
        expired=False,
        died=False,
        error="KeyError: 'a'",
        traceback="Traceback …\nKeyError: 'a'",
    )
    assert back.attempt_log == (told,)
    found = jobs.find(item.id)
    assert found == back
    assert found.attempt_log == jobs.peek_min().attempt_log == jobs.items().items[0].attempt_log == (told,)


def test_an_expired_lease_and_the_last_attempt_are_told_as_such(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.configure(max_attempts=2)
    item = jobs.push(b"x", priority=1)
    jobs.lease(seconds=5, worker="died")
    clock.advance(6)
    assert jobs.expire() == 1
    fail(jobs, "OSError: disk", worker="second")
    dead = jobs.find(item.id)
    assert [(one.worker, one.expired, one.died, one.error) for one in dead.attempt_log] == [
        ("died", True, False, ""),
        ("second", False, True, "OSError: disk"),
    ]
    assert dead.attempt_log[0].ended_at == at(clock)
    assert jobs.dead().items == (dead,)
    check_full_count(store, jobs)


def test_what_a_stopping_worker_returns_is_no_attempt(jobs: Queue) -> None:
    item = jobs.push(b"x", priority=1)
    fail(jobs)
    jobs.release(jobs.lease(), reason="stopping", count_attempt=False)
    assert errors(jobs.find(item.id)) == [(1, "ValueError: no")]


def test_items_without_a_failure_are_written_as_before(store: Store, jobs: Queue) -> None:
    """A push, a lease and a pop write the same bytes in a queue where other items failed."""
    other = store.create_queue("other")
    for queue in (jobs, other):
        queue.push(b"a", priority=2)
    jobs.push(b"failed", priority=3)
    fail_last = jobs.lease(end="max")
    jobs.release(fail_last, reason="no")

    def record(queue: Queue) -> set[str]:
        lease = queue.lease()
        key = store.context.keyspace.queue(queue.id).leases.key(bytes.fromhex(lease.item.id))
        return set(records.decode(store.read(lambda tr: tr.get(key).wait()))[0])

    assert record(jobs) == record(other)
    assert all(len(entry) < 60 for (_, elements), entry in dump(store, other).items() if elements[0] == "o")


def test_the_last_twenty_are_kept(jobs: Queue) -> None:
    jobs.configure(max_attempts=None)
    item = jobs.push(b"x", priority=1)
    for n in range(1, 26):
        fail(jobs, f"Error: {n}")
    assert errors(jobs.find(item.id)) == [(n, f"Error: {n}") for n in range(6, 26)]
    assert jobs.find(item.id).attempts == 25


@pytest.mark.parametrize(
    "text",
    ["x" * 1_000_000, "\x00\x1b[31m" * 200_000, "\ud800" * 1_000_000, "𝔘" * 1_000_000, "\r\n\u2028" * 100_000],
    ids=["long", "controls", "surrogates", "wide", "lines"],
)
def test_a_hostile_traceback_is_cut_to_valid_text(store: Store, jobs: Queue, text: str) -> None:
    jobs.configure(max_attempts=None)
    item = jobs.push(b"v" * MAX_VALUE_SIZE, priority=1)
    for _ in range(MOST + 5):
        fail(jobs, "é\x00" * 250, traceback=f"first {text} last", worker="字" * 200)
    (there,) = store.read(
        lambda tr: find_stored(tr, store.context.keyspace.queue(jobs.id), jobs.config, [bytes.fromhex(item.id)])
    )
    assert len(there.place) < MAX_BYTES + 500
    log = jobs.find(item.id).attempt_log
    assert log[-1].number == MOST + 5
    for attempt in log:
        attempt.traceback.encode()
        assert "\x00" not in attempt.traceback
        assert "\x1b" not in attempt.traceback
        assert len(attempt.traceback) <= 6 * MAX_TRACEBACK + 100
    jobs.configure(max_attempts=1)
    dead = fail(jobs, "last")
    assert (dead.state, dead.attempt_log[-1].died) == ("dead", True)
    assert jobs.retry_dead(item.id).attempt_log == dead.attempt_log
    check_full_count(store, jobs)


def test_the_beginning_and_the_end_of_a_traceback_are_kept(jobs: Queue) -> None:
    item = jobs.push(b"x", priority=1)
    fail(jobs, traceback="Traceback (most recent call last):\n" + "  frame\n" * 10_000 + "ValueError: the end")
    text = jobs.find(item.id).attempt_log[0].traceback
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.endswith("ValueError: the end")
    assert "characters …" in text


def test_a_traceback_is_text(jobs: Queue) -> None:
    jobs.push(b"x", priority=1)
    lease = jobs.lease()
    with pytest.raises(BadValue):
        jobs.release(lease, traceback=b"no text")
    assert jobs.depth("leased") == 1


class Unprintable(Exception):
    """An error whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "told"), [(ValueError("a\x00b"), "ValueError: a\x00b"), (Unprintable(), "Unprintable")]
)
def test_a_block_that_fails_tells_its_traceback(jobs: Queue, error: Exception, told: str) -> None:
    item = jobs.push(b"x", priority=1)
    with pytest.raises(type(error)), jobs.lease():
        raise error
    (attempt,) = jobs.find(item.id).attempt_log
    assert attempt.error == told
    assert "test_a_block_that_fails_tells_its_traceback" in attempt.traceback


def test_a_block_of_a_coroutine_tells_its_traceback(jobs: Queue) -> None:
    item = jobs.push(b"x", priority=1)

    queue = AsyncPriorityQueue(jobs)

    async def work() -> None:
        async with await queue.lease():
            raise ValueError("in a coroutine")

    with pytest.raises(ValueError, match="in a coroutine"):
        asyncio.run(work())
    (attempt,) = jobs.find(item.id).attempt_log
    assert (attempt.error, "in work" in attempt.traceback) == ("ValueError: in a coroutine", True)


def retry(store: Store, item: Item) -> None:
    store.actions("ann").retry_dead("jobs", [item.id])


def move(store: Store, item: Item) -> None:
    store.create_queue("other")
    store.actions("ann").move_items("jobs", [item.id], "other")


def move_and_back(store: Store, item: Item) -> None:
    move(store, item)
    store.actions("ann").move_items("other", [item.id], "jobs")


def delete_and_undo(store: Store, item: Item) -> None:
    ann = store.actions("ann")
    ann.undo(ann.delete_item("jobs", item.id).trash_id)


def delete_many_and_undo(store: Store, item: Item) -> None:
    ann = store.actions("ann")
    ann.undo(ann.delete_items("jobs", [item.id]).trash_id)


def retry_and_undo(store: Store, item: Item) -> None:
    ann = store.actions("ann")
    ann.undo(ann.retry_dead("jobs", [item.id]).trash_id)


def pop_and_undo(store: Store, item: Item) -> None:
    retry(store, item)
    ann = store.actions("ann")
    ann.undo(ann.pop("jobs").trash_id)


def purge_and_undo(store: Store, item: Item) -> None:
    retry(store, item)
    ann = store.actions("ann")
    ann.undo(ann.purge("jobs", confirm="jobs").trash_ids[0])


def delay_and_promote(store: Store, item: Item) -> None:
    retry(store, item)
    ann = store.actions("ann")
    ann.delay("jobs", [item.id], delay=HOUR)
    ann.promote("jobs", [item.id])


def lease_and_return(store: Store, item: Item) -> None:
    retry(store, item)
    jobs = store.queue("jobs")
    lease = jobs.lease(seconds=60)
    assert lease.item.attempt_log == item.attempt_log
    jobs.release(jobs.extend(lease, seconds=120), count_attempt=False)


def reprioritize_and_edit(store: Store, item: Item) -> None:
    ann = store.actions("ann")
    ann.reprioritize("jobs", [item.id], priority=9)
    ann.edit_item("jobs", item.id, b"v" * MAX_VALUE_SIZE, expect=item.raw)


@pytest.mark.parametrize(
    "act",
    [
        retry,
        move,
        move_and_back,
        delete_and_undo,
        delete_many_and_undo,
        retry_and_undo,
        pop_and_undo,
        purge_and_undo,
        delay_and_promote,
        lease_and_return,
        reprioritize_and_edit,
    ],
)
def test_attempts_go_where_the_item_goes(
    store: Store, jobs: Queue, clock: Clock, act: Callable[[Store, Item], None]
) -> None:
    jobs.configure(max_attempts=2)
    jobs.push(b"x", priority=1)
    fail(jobs, "first", traceback="where")
    clock.advance(1)
    dead = fail(jobs, "second")
    assert errors(dead) == [(1, "first"), (2, "second")]
    act(store, dead)
    queue = store.queue("other" if act is move else "jobs")
    assert queue.find(dead.id).attempt_log == dead.attempt_log
    check_full_count(store, queue)


def test_a_person_that_takes_an_item_back_is_told(store: Store, jobs: Queue) -> None:
    item = jobs.push(b"x", priority=1)
    jobs.lease(worker="w1")
    store.actions("ann").release("jobs", [item.id], reason="hangs")
    (attempt,) = jobs.find(item.id).attempt_log
    assert (attempt.worker, attempt.error, attempt.expired) == ("w1", "hangs", False)


def test_a_retried_item_begins_anew_and_keeps_what_was_before(jobs: Queue) -> None:
    jobs.configure(max_attempts=1)
    item = jobs.push(b"x", priority=1)
    fail(jobs, "before")
    jobs.retry_dead(item.id)
    fail(jobs, "again")
    assert errors(jobs.find(item.id)) == [(1, "before"), (1, "again")]


def test_fields_of_a_later_build_are_kept_and_damaged_entries_left_out(store: Store, jobs: Queue) -> None:
    jobs.configure(max_attempts=1)
    item = jobs.push(b"x", priority=1)
    fail(jobs, "told")
    keys = store.context.keyspace.queue(jobs.id)

    def add(tr: object) -> None:
        (there,) = find_stored(tr, keys, jobs.config, [bytes.fromhex(item.id)])
        header, value = records.decode(there.stored)
        header["log"] = [{"damaged": True}, 7, header["log"][0] | {"newer": [1]}]
        tr.set(there.key(keys), records.encode(header, value))

    store.transact(add)
    assert errors(jobs.find(item.id)) == [(1, "told")]
    jobs.retry_dead(item.id)
    fail(jobs, "again")
    (there,) = store.read(lambda tr: find_stored(tr, keys, jobs.config, [bytes.fromhex(item.id)]))
    assert there.entries[2]["newer"] == [1]


def test_a_thousand_failed_items_are_acted_on_at_once(ann: Actions, jobs: Queue) -> None:
    """What an act writes stays within a transaction, whatever the logs hold: too much is refused before."""
    jobs.configure(max_attempts=1)
    for part in range(2):
        jobs.push_many([(b"%d" % n, part) for n in range(300)])
    for lease in jobs.lease_many(600):
        jobs.release(lease, reason="no", traceback="frame\n" * 400)
    ids = [item.id for page in (jobs.dead(limit=600),) for item in page.items]
    undo = ann.retry_dead("jobs", ids)
    assert undo.count == 600
    assert ann.undo(undo.trash_id).count == 600
    assert jobs.depth("dead") == 600


def fail_all(store: Store, jobs: Queue, times: int) -> None:
    """Lease all items and release them as failed, with long tracebacks, as often."""

    def release(tr: Transaction, leases: list[Lease]) -> None:
        for lease in leases:
            jobs.release(lease, reason="ValueError: no", traceback="T" * MAX_TRACEBACK, tr=tr)

    for _ in range(times):
        leases: list[Lease] = []
        while found := jobs.lease_many(1_000, seconds=600):
            leases += found
        assert len(leases) == jobs.depth("leased")
        for n in range(0, len(leases), 100):
            store.transact(lambda tr, some=leases[n : n + 100]: release(tr, some))


def test_large_logs_make_takes_of_many_fewer(store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"v" * 3_500, 1)] * 1_000)
    fail_all(store, jobs, 3)
    leases = jobs.lease_many(1_000)
    assert 100 < len(leases) < 1_000
    for n in range(0, len(leases), 100):
        jobs.ack_many(leases[n : n + 100])
    popped = store.actions("ana").pop_many("jobs", 1_000)
    assert 100 < len(popped) <= 1_000 - len(leases)
    assert jobs.depth() == 1_000 - len(leases) - len(popped)
    check_full_count(store, jobs)
