"""Conflicts over delays and leases, on each engine with conflicts: transactions driven step by step."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from queues import Lease, Queue, Store
from queues.errors import StaleLease
from queues.operations.lease import as_leases, lease_request
from queues.operations.lease_block import Binding
from queues.operations.pop import LeaseRequest, PopRequest
from tests.conftest import Clock
from tests.full_count import check_full_count
from tests.step_by_step import begin, on_concurrent_engines

MINUTE = timedelta(minutes=1)


pytestmark = on_concurrent_engines


@pytest.fixture
def jobs(store: Store) -> Iterator[Queue]:
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"%d" % n, n) for n in range(6)])
    yield jobs
    check_full_count(store, jobs)


def strict_lease(jobs: Queue, tr: Any, end: str = "min") -> Lease:
    request = lease_request(jobs.opened, 1, seconds=30, end=end, worker="w", tr=None)
    (entries,) = jobs.opened.batch(LeaseRequest).execute(tr, [request])
    (lease,) = as_leases(jobs.opened, entries, Binding())
    return lease


def strict_pop(jobs: Queue, tr: Any, end: str = "min") -> bytes:
    batch = jobs.opened.batch(PopRequest)
    ((item,),) = batch.execute(tr, batch.prepare([PopRequest(jobs.id, 1, end)]))
    return item.value


def both(first: Any, second: Any) -> None:
    """Commit two transactions; neither minds the other."""
    second.commit()
    first.commit()


def one(first: Any, second: Any) -> None:
    """Commit two transactions; the later one is refused."""
    first.commit()
    second.refused()


def test_two_leases_conflict_only_on_the_same_item(store: Store, jobs: Queue) -> None:
    first, second = begin(store), begin(store)
    assert strict_lease(jobs, first).item.id == strict_lease(jobs, second).item.id
    one(first, second)
    first, second = begin(store), begin(store)
    assert strict_lease(jobs, first).item.id != strict_lease(jobs, second, "max").item.id
    both(first, second)
    assert jobs.depth("leased") == 3


def test_a_lease_and_a_pop_conflict_only_on_the_same_item(store: Store, jobs: Queue) -> None:
    first, second = begin(store), begin(store)
    assert strict_lease(jobs, first).item.value == strict_pop(jobs, second)
    one(first, second)
    first, second = begin(store), begin(store)
    strict_lease(jobs, first)
    strict_pop(jobs, second, "max")
    both(first, second)


@pytest.mark.parametrize("delay", [None, MINUTE])
def test_no_push_conflicts_with_any_verb_of_leases(store: Store, jobs: Queue, clock: Clock, delay: timedelta) -> None:
    held = jobs.lease_many(4, seconds=10)
    clock.advance(10)
    verbs: list[Callable[[Any], object]] = [
        lambda tr: strict_lease(jobs, tr),
        lambda tr: jobs.ack(held[0], tr=tr),
        lambda tr: jobs.extend(held[1], seconds=60, tr=tr),
        lambda tr: jobs.release(held[2], tr=tr),
        lambda tr: jobs.expire(tr=tr),
        lambda tr: jobs.promote(tr=tr),
    ]
    for verb in verbs:
        first, second = begin(store), begin(store)
        verb(first)
        jobs.push(b"x", priority=-1, delay=delay, tr=second)
        both(first, second)


def test_two_delayed_pushes_never_conflict(store: Store, jobs: Queue) -> None:
    first, second = begin(store), begin(store)
    jobs.push(b"x", priority=1, delay=MINUTE, tr=first)
    jobs.push(b"y", priority=1, delay=MINUTE / 2, tr=second)
    both(first, second)
    assert [item.value for item in jobs.delayed().items] == [b"y", b"x"]


def test_acks_of_different_leases_never_conflict(store: Store, jobs: Queue) -> None:
    a, b, c = jobs.lease_many(3)
    first, second = begin(store), begin(store)
    jobs.ack(a, tr=first)
    jobs.ack(b, tr=second)
    both(first, second)
    first, second = begin(store), begin(store)
    jobs.ack(c, tr=first)
    strict_lease(jobs, second)
    both(first, second)


@pytest.mark.parametrize("ack_first", [True, False])
def test_of_an_ack_and_an_expiry_exactly_one_wins(store: Store, jobs: Queue, clock: Clock, ack_first: bool) -> None:
    lease = jobs.lease(seconds=10)
    clock.advance(10)
    ack, expiry = begin(store), begin(store)
    jobs.ack(lease, tr=ack)
    assert jobs.expire(tr=expiry) == 1
    one(*((ack, expiry) if ack_first else (expiry, ack)))
    # Tried again, as the store does by itself:
    if ack_first:
        assert jobs.expire() == 0
        assert jobs.find(lease.item.id) is None
    else:
        jobs.ack(lease)  # no caller took it meanwhile
        assert jobs.find(lease.item.id) is None
        assert jobs.totals().traffic == {"push": 6, "lease": 1, "expire": 1, "ack": 1}


@pytest.mark.parametrize("ack_first", [True, False])
@pytest.mark.parametrize(
    ("verb", "dead"), [("pop", False), ("lease", False), ("ack", False), ("retry", True), ("ack", True)]
)
def test_of_an_ack_of_an_expired_lease_and_anything_else_exactly_one_wins(
    store: Store, jobs: Queue, clock: Clock, verb: str, ack_first: bool, dead: bool
) -> None:
    jobs.configure(max_attempts=1 if dead else 5)
    lease = jobs.lease(seconds=10)
    clock.advance(10)
    jobs.expire()
    ack, other = begin(store), begin(store)
    jobs.ack(lease, tr=ack)
    others: dict[str, Callable[[], object]] = {
        "pop": lambda: strict_pop(jobs, other),
        "lease": lambda: strict_lease(jobs, other),
        "retry": lambda: jobs.retry_dead(lease.item.id, tr=other),
        "ack": lambda: jobs.ack(lease, tr=other),
    }
    others[verb]()
    one(*((ack, other) if ack_first else (other, ack)))
    if ack_first:
        assert jobs.find(lease.item.id) is None
    elif verb in ("pop", "ack"):
        jobs.ack(lease)
    else:
        with pytest.raises(StaleLease):
            jobs.ack(lease)
    assert jobs.totals().traffic.get("ack", 0) == (1 if ack_first or verb == "ack" else 0)


def test_no_push_conflicts_with_the_ack_of_an_expired_lease(store: Store, jobs: Queue, clock: Clock) -> None:
    lease = jobs.lease(seconds=10)
    clock.advance(10)
    jobs.expire()
    ack, push = begin(store), begin(store)
    jobs.ack(lease, tr=ack)
    jobs.push(b"x", priority=-1, tr=push)
    both(ack, push)


@pytest.mark.parametrize("extend_first", [True, False])
def test_of_an_extension_and_an_expiry_one_wins(store: Store, jobs: Queue, clock: Clock, extend_first: bool) -> None:
    lease = jobs.lease(seconds=10)
    clock.advance(10)
    extension, expiry = begin(store), begin(store)
    jobs.extend(lease, seconds=10, tr=extension)
    jobs.expire(tr=expiry)
    one(*((extension, expiry) if extend_first else (expiry, extension)))
    assert jobs.expire() == 0
    assert jobs.find(lease.item.id).state == ("leased" if extend_first else "ready")


def test_of_two_sweeps_one_does_it(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"", 1)] * 3, delay=MINUTE)
    jobs.lease_many(2, seconds=60)
    clock.advance(60)
    for verb, number in ((jobs.promote, 3), (jobs.expire, 2)):
        first, second = begin(store), begin(store)
        assert verb(tr=first) == verb(tr=second) == number
        one(first, second)
        assert verb() == 0


def test_of_a_sweep_and_an_operator_one_does_it(store: Store, jobs: Queue, clock: Clock) -> None:
    a, b = jobs.push_many([(b"a", 1), (b"b", 1)], delay=MINUTE)
    clock.advance(60)
    first, second = begin(store), begin(store)
    assert jobs.promote(limit=1, tr=first) == 1
    assert jobs.reschedule(a.id, delay=MINUTE, tr=second).state == "delayed"
    one(first, second)
    first, second = begin(store), begin(store)
    assert jobs.promote_now(b.id, tr=first).state == "ready"
    assert jobs.promote(tr=second) == 1
    one(first, second)
    assert jobs.depth() == 8


def test_sweeps_of_different_items_do_not_conflict(store: Store, jobs: Queue) -> None:
    a, b = jobs.push_many([(b"a", 1), (b"b", 1)], delay=MINUTE)
    first, second = begin(store), begin(store)
    jobs.promote_now(a.id, tr=first)
    jobs.reschedule(b.id, delay=2 * MINUTE, tr=second)
    both(first, second)


def test_of_two_retries_and_deletions_of_a_dead_item_one_does_it(store: Store, jobs: Queue) -> None:
    jobs.configure(max_attempts=1)
    lease = jobs.lease()
    dead = jobs.release(lease)
    first, second, third = begin(store), begin(store), begin(store)
    assert jobs.retry_dead(dead.id, tr=first).state == "ready"
    assert jobs.retry_dead(dead.id, tr=second).state == "ready"
    assert jobs.delete_dead(dead.id, tr=third).state == "dead"
    one(second, first)
    third.refused()
    assert jobs.depth() == 6


def test_a_change_of_the_attempts_aborts_what_began_before_it(store: Store, jobs: Queue) -> None:
    lease = jobs.lease()
    tr = begin(store)
    assert jobs.release(lease, tr=tr).state == "ready"
    jobs.configure(max_attempts=1)
    tr.refused()
    assert jobs.release(lease).state == "dead"
