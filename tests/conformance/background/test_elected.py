"""One process at a time does a role: taking, renewing, giving up, dying, clocks apart, fencing."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier

import pytest

from queues import Store
from queues.background.leader import SECONDS, Candidate
from queues.errors import NotElected, StoreUnreachable
from queues.serving.leadership import Holding
from tests.conftest import Clock
from tests.step_by_step import begin, on_concurrent_engines

MINUTE = 60.0


class Count(Clock):
    """Seconds that go on by themselves in every process alike, whatever its clock says."""


@pytest.fixture
def count() -> Count:
    return Count(100.0)


@pytest.fixture
def stand(store: Store, count: Count) -> Callable[..., Candidate]:
    """Make a candidate of another process; its clock may be another one."""

    def make(name: str, *, role: str = "sweep", at: Store | None = None) -> Candidate:
        return Candidate((at or store).context, role, name=name, count=count)

    return make


def holding(store: Store, role: str = "sweep") -> Holding:
    held = Holding.decode(store.read(lambda tr: tr.get(store.context.keyspace.elected.key(role)).wait()))
    assert held is not None
    return held


def test_the_first_is_elected_and_the_rest_wait(
    store: Store, clock: Clock, count: Count, stand: Callable[..., Candidate]
) -> None:
    one, two = stand("one"), stand("two")
    assert (one.step(), two.step()) == (True, False)
    assert (one.elected, two.elected) == (True, False)
    held = holding(store)
    assert (held.name, held.term, held.expires_ms) == ("one", 1, int((clock() + SECONDS) * 1000))
    assert 0 < one.rest < SECONDS / 2, "renewed before it is over"
    assert two.rest == SECONDS
    assert stand("other", role="jobs").step(), "another role is another election"


def test_a_leader_that_renews_keeps_the_role_for_as_long_as_it_likes(
    store: Store, count: Count, stand: Callable[..., Candidate]
) -> None:
    one, two = stand("one"), stand("two")
    one.step()
    for _ in range(20):
        count.advance(one.rest)
        assert one.step()
        count.advance(min(0.1, two.rest))
        assert not two.step()
    assert holding(store).term == 1


def test_when_the_elected_one_dies_another_takes_over_within_seconds(
    store: Store, clock: Clock, count: Count, stand: Callable[..., Candidate]
) -> None:
    one, two, three = stand("one"), stand("two"), stand("three")
    one.step()
    two.step()
    count.advance(SECONDS - 0.001)
    clock.advance(SECONDS - 0.001)
    three.step()
    assert not two.step(), "too early: it may be alive"
    assert one.elected, "and it is"
    count.advance(two.rest)
    assert not one.elected, "it was not renewed, so it ends by itself before another process takes over"
    assert two.step()
    assert not three.step()
    assert (holding(store).name, holding(store).term) == ("two", 2)
    assert not one.step(), "it sees that it was taken over"
    count.advance(SECONDS / 2)
    assert two.step()


def test_a_leader_that_gives_up_is_followed_at_once(store: Store, stand: Callable[..., Candidate]) -> None:
    one, two = stand("one"), stand("two")
    one.step()
    two.step()
    known = two.known
    one.resign()
    assert not one.elected
    assert store.context.kv.watch(known, timeout=MINUTE), "waiters are woken"
    assert two.step()
    assert holding(store).term == 2
    one.resign()
    stand("nobody").resign()
    assert (two.step(), holding(store).name) == (True, "two"), "only its holder can give it up"


@pytest.mark.parametrize("skew", [-MINUTE, MINUTE])
def test_a_minute_between_clocks_elects_one_process_only(
    engine: str, store: Store, clock: Clock, count: Count, stand: Callable[..., Candidate], skew: float
) -> None:
    apart = Clock(clock() + skew)
    with ExitStack() as stack:
        two = stand("two", at=stack.enter_context(beside(store, apart)))
        one = stand("one")
        assert one.step()
        for _ in range(12):
            for each in (count, clock, apart):
                each.advance(1.0)
            assert one.step()
            assert not two.step()
        for _ in range(int(SECONDS)):
            for each in (count, clock, apart):
                each.advance(1.0)
        assert not one.elected
        assert two.step(), "and it takes no longer either"
        for _ in range(12):
            for each in (count, clock, apart):
                each.advance(1.0)
            assert two.step()
            assert not one.step()


def test_what_was_left_long_ago_is_taken_at_once(clock: Clock, stand: Callable[..., Candidate]) -> None:
    stand("one").step()
    clock.advance(SECONDS + MINUTE + 1)
    assert stand("two").step(), "as after a night: nothing waits for a process that is gone"


def test_a_clock_that_jumps_changes_nothing(clock: Clock, count: Count, stand: Callable[..., Candidate]) -> None:
    one, two = stand("one"), stand("two")
    one.step()
    two.step()
    for jump in (50.0, -100.0, 55.0):
        clock.advance(jump)
        count.advance(1.0)
        assert one.step()
        assert not two.step()


def test_nothing_of_an_earlier_term_is_written(store: Store, count: Count, stand: Callable[..., Candidate]) -> None:
    one, two = stand("one"), stand("two")
    with pytest.raises(NotElected):
        store.transact(one.check)
    one.step()
    two.step()
    store.transact(one.check)
    count.advance(SECONDS)
    assert two.step()
    jobs = store.create_queue("jobs")

    def write(tr: object) -> None:
        one.check(tr)
        jobs.push(b"late", priority=1, tr=tr)

    with pytest.raises(NotElected):
        store.transact(write)
    assert jobs.depth() == 0
    store.transact(two.check)


def test_two_that_take_at_once_are_one(store: Store, stand: Callable[..., Candidate]) -> None:
    one, two = stand("one"), stand("two")
    together = Barrier(2)

    def step(candidate: Candidate) -> bool:
        together.wait()
        return candidate.step()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(step, (one, two))) == [False, True]
    assert holding(store).term == 1


def test_trouble_ends_the_role_by_itself_and_it_goes_on_afterwards(
    store: Store, count: Count, stand: Callable[..., Candidate], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = stand("one")
    one.step()

    def away(fn: object, *, background: bool = False) -> None:
        raise StoreUnreachable("away")

    with monkeypatch.context() as trouble:
        trouble.setattr(store.context.kv, "transact", away)
        count.advance(one.rest)
        with pytest.raises(StoreUnreachable):
            one.step()
        assert one.elected
        count.advance(SECONDS)
        assert not one.elected
    assert one.step(), "no caller took it meanwhile"
    assert holding(store).term == 1


def beside(store: Store, clock: Clock) -> Store:
    """Open the same store as another process does, with another clock."""
    return Store(store.context.kv, url=store.url, keyspace=store.context.keyspace, clock=clock)


@on_concurrent_engines
def test_a_transaction_of_the_role_conflicts_with_a_takeover(store: Store, count: Count) -> None:
    one, two = (Candidate(store.context, "sweep", name=name, count=count) for name in ("one", "two"))
    jobs = store.create_queue("jobs")
    one.step()
    two.step()
    late, fine = begin(store), begin(store)
    one.check(fine)
    jobs.push(b"in time", priority=1, tr=fine)
    fine.commit()
    one.check(late)
    jobs.push(b"late", priority=1, tr=late)
    count.advance(SECONDS)
    assert two.step()
    late.refused()
    assert [item.value for item in jobs.items().items] == [b"in time"]
