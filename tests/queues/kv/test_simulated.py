"""FoundationDB's conflicts, step by step: which transactions may commit."""

import tracemalloc
from collections.abc import Callable

import pytest

from queues.kv.errors import Conflict, StoreClosed, TransactionEnded, TransactionTooOld
from queues.kv.port import Transaction
from queues.kv.simulated import Fault, SeededFaults, SimulatedStore, SimulatedTransaction
from tests.conftest import Clock

Step = Callable[[Transaction], object]


@pytest.fixture
def kv() -> SimulatedStore:
    store = SimulatedStore()
    store.transact(lambda tr: [tr.set(key, b"0") for key in (b"a", b"b", b"c", b"d")])
    return store


def aborts(kv: SimulatedStore, mine: Step, theirs: Step) -> bool:
    """Do mine, then let theirs commit, then commit mine."""
    one = kv.begin()
    mine(one)
    two = kv.begin()
    theirs(two)
    two.commit()
    try:
        one.commit()
    except Conflict:
        return True
    return False


def put(key: bytes) -> Step:
    return lambda tr: tr.set(key, b"new")


def both(*steps: Step) -> Step:
    return lambda tr: [step(tr) for step in steps]


OUT = put(b"out")
RANGE: Step = lambda tr: tr.get_range(b"a", b"c", limit=10)  # noqa: E731 - a table of steps
FIRST: Step = lambda tr: tr.get_range(b"a", b"z", limit=2)  # noqa: E731
LAST: Step = lambda tr: tr.get_range(b"a", b"z", limit=2, reverse=True)  # noqa: E731


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        pytest.param(put(b"a"), put(b"a"), False, id="blind writes of one key"),
        pytest.param(lambda tr: tr.add(b"n", 1), lambda tr: tr.add(b"n", 1), False, id="adds"),
        pytest.param(lambda tr: tr.max(b"n", 1), lambda tr: tr.max(b"n", 2), False, id="maxes"),
        pytest.param(lambda tr: tr.clear_range(b"a", b"z"), put(b"a"), False, id="a cleared range"),
        pytest.param(both(lambda tr: tr.get(b"a"), OUT), put(b"a"), True, id="a read key was set"),
        pytest.param(both(lambda tr: tr.get(b"a"), OUT), lambda tr: tr.clear(b"a"), True, id="a read key was cleared"),
        pytest.param(
            both(lambda tr: tr.get(b"n"), OUT), lambda tr: tr.add(b"n", 1), True, id="a read key was added to"
        ),
        pytest.param(
            both(lambda tr: tr.get(b"a"), OUT), lambda tr: tr.clear_range(b"", b"b"), True, id="a read key in a range"
        ),
        pytest.param(
            both(lambda tr: tr.get(b"none"), OUT),
            lambda tr: tr.clear_range(b"m", b"z"),
            True,
            id="an absent key in a cleared range",
        ),
        pytest.param(both(lambda tr: tr.get(b"a"), OUT), put(b"b"), False, id="another key"),
        pytest.param(lambda tr: tr.get(b"a"), put(b"a"), False, id="reads alone never conflict"),
        pytest.param(both(lambda tr: tr.snapshot.get(b"a"), OUT), put(b"a"), False, id="a snapshot read"),
        pytest.param(
            both(lambda tr: tr.snapshot.get_range(b"a", b"z", limit=9), OUT), put(b"a"), False, id="a snapshot range"
        ),
        pytest.param(
            both(lambda tr: tr.snapshot.get(b"a"), lambda tr: tr.add_read_conflict_key(b"a"), OUT),
            put(b"a"),
            True,
            id="a snapshot read with an explicit conflict",
        ),
        pytest.param(
            both(lambda tr: tr.add_read_conflict_key(b"a"), lambda tr: tr.clear(b"a")),
            lambda tr: tr.clear(b"a"),
            True,
            id="a conflict key before its write",
        ),
        pytest.param(
            both(lambda tr: tr.clear(b"a"), lambda tr: tr.add_read_conflict_key(b"a")),
            lambda tr: tr.clear(b"a"),
            False,
            id="a conflict key after its write is ignored",
        ),
        pytest.param(
            both(lambda tr: tr.add(b"n", 1), lambda tr: tr.add_read_conflict_key(b"n")),
            lambda tr: tr.add(b"n", 1),
            True,
            id="a conflict key after an add counts",
        ),
        pytest.param(
            both(lambda tr: tr.add_read_conflict_range(b"b", b"d"), OUT), put(b"c"), True, id="an explicit range"
        ),
        pytest.param(
            both(lambda tr: tr.add_read_conflict_range(b"b", b"d"), OUT), put(b"d"), False, id="its end is outside"
        ),
        pytest.param(both(RANGE, OUT), put(b"bb"), True, id="a new key in a read range"),
        pytest.param(both(RANGE, OUT), put(b"c"), False, id="a key at the end of a read range"),
        pytest.param(both(FIRST, OUT), put(b"aa"), True, id="a new key among the first two"),
        pytest.param(both(FIRST, OUT), put(b"bb"), False, id="a new key behind the first two"),
        pytest.param(both(LAST, OUT), put(b"cc"), True, id="a new key among the last two"),
        pytest.param(both(LAST, OUT), put(b"bb"), False, id="a new key before the last two"),
        pytest.param(
            both(lambda tr: tr.get_key(b"a", b"z"), OUT), put(b"a"), True, id="the first key was written again"
        ),
        pytest.param(both(lambda tr: tr.get_key(b"a", b"z"), OUT), put(b"b"), False, id="the second key was written"),
        pytest.param(both(put(b"a"), lambda tr: tr.get(b"a")), put(b"a"), False, id="reading one's own write"),
        pytest.param(
            both(lambda tr: tr.clear_range(b"a", b"c"), RANGE), put(b"b"), False, id="reading one's own cleared range"
        ),
        pytest.param(
            both(lambda tr: tr.add(b"n", 1), lambda tr: tr.get(b"n")),
            lambda tr: tr.add(b"n", 1),
            True,
            id="reading what one has added to",
        ),
    ],
)
def test_which_transactions_conflict(kv: SimulatedStore, mine: Step, theirs: Step, expected: bool) -> None:
    assert aborts(kv, mine, theirs) is expected


def test_a_loser_writes_nothing(kv: SimulatedStore) -> None:
    assert aborts(kv, both(lambda tr: tr.get(b"a"), OUT), put(b"a"))
    assert kv.read(lambda tr: tr.get(b"out").wait()) is None


def test_a_conflict_ends_with_the_transactions_that_overlapped(kv: SimulatedStore) -> None:
    kv.transact(put(b"a"))
    later = kv.begin()
    later.get(b"a")
    later.set(b"out", b"1")
    later.commit()


def test_a_transaction_reads_its_version_whatever_is_committed_meanwhile(kv: SimulatedStore) -> None:
    early = kv.begin()
    kv.transact(lambda tr: [tr.set(b"a", b"1"), tr.clear(b"b"), tr.set(b"bb", b"1"), tr.add(b"n", 1)])
    assert early.get(b"a").wait() == b"0"
    assert [key for key, _ in early.get_range(b"a", b"z", limit=10).wait()] == [b"a", b"b", b"c", b"d"]
    early.cancel()
    assert kv.read(lambda tr: tr.get(b"a").wait()) == b"1"


def test_an_add_applies_to_what_is_there_at_commit(kv: SimulatedStore) -> None:
    early = kv.begin()
    early.add(b"n", 1)
    kv.transact(lambda tr: tr.add(b"n", 10))
    early.commit()
    assert kv.read(lambda tr: tr.get(b"n").wait()) == (11).to_bytes(8, "little")


def test_an_add_after_clearing_its_range_starts_from_nothing(kv: SimulatedStore) -> None:
    early = kv.begin()
    early.clear_range(b"a", b"z")
    early.add(b"n", 1)
    kv.transact(lambda tr: tr.add(b"n", 10))
    early.commit()
    assert kv.read(lambda tr: tr.get(b"n").wait()) == (1).to_bytes(8, "little")


def test_stamps_are_the_read_version_and_a_number(kv: SimulatedStore) -> None:
    one = kv.begin()
    version = one.get_read_version()
    assert [one.stamp(), one.stamp()] == [version * 4_096 + n for n in (1, 2)]
    one.set(b"a", b"1")
    one.commit()
    two = kv.begin()
    assert two.stamp() > version * 4_096 + 1_000_000
    two.cancel()


def test_an_ended_transaction_is_refused(kv: SimulatedStore) -> None:
    tr = kv.begin()
    tr.commit()
    with pytest.raises(TransactionEnded):
        tr.get(b"a")
    with pytest.raises(TransactionEnded):
        tr.commit()


def test_a_transaction_driven_by_steps_gets_too_old(clock: Clock) -> None:
    kv = SimulatedStore(clock=clock)
    tr = kv.begin()
    tr.set(b"a", b"1")
    clock.advance(5.1)
    with pytest.raises(TransactionTooOld):
        tr.commit()
    assert kv.read(lambda tr: tr.get(b"a").wait()) is None


def test_old_versions_are_forgotten(kv: SimulatedStore) -> None:
    """What no transaction can read any more takes no memory."""
    tracemalloc.start()
    for n in range(100):
        kv.transact(lambda tr, value=b"%05d" % n * 10_000: tr.set(b"a", value))
    kv.read(lambda tr: None)
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept <= most < 1_000_000, "of 5 MB that were written"


def test_transact_tries_again_and_pauses_in_between(kv: SimulatedStore) -> None:
    pauses: list[float] = []
    store = SimulatedStore(memory=kv.memory, sleep=pauses.append)
    runs = 0

    def work(tr: SimulatedTransaction) -> int:
        nonlocal runs
        runs += 1
        value = int(tr.get(b"a").wait() or b"")
        if runs <= 3:
            rival = kv.begin()
            rival.set(b"a", b"%d" % (value + 10))
            rival.commit()
        tr.set(b"a", b"%d" % (value + 1))
        return value + 1

    assert store.transact(work) == 31
    assert runs == 4
    assert len(pauses) == 3
    assert all(0 <= pause <= 0.05 for pause in pauses)


def test_transact_gives_up_in_the_end(kv: SimulatedStore) -> None:
    pauses: list[float] = []
    store = SimulatedStore(memory=kv.memory, sleep=pauses.append, faults=SeededFaults(1, {Fault.CONFLICT: 1.0}))
    with pytest.raises(Conflict, match="nothing was written"):
        store.transact(put(b"a"))
    assert len(pauses) == 199
    assert kv.read(lambda tr: tr.get(b"a").wait()) == b"0"


def test_faults_are_survived_and_replayed_from_their_seed() -> None:
    def run(seed: int) -> tuple[int, dict[Fault, int]]:
        faults = SeededFaults(seed, {Fault.CONFLICT: 0.3, Fault.TOO_OLD: 0.1})
        store = SimulatedStore(faults=faults, sleep=lambda _: None)
        for _ in range(100):
            store.transact(lambda tr: tr.add(b"n", 1))
        total = store.read(lambda tr: tr.get(b"n").wait()) or b""
        return int.from_bytes(total, "little"), dict(faults.counts)

    total, counts = run(7)
    assert total == 100
    assert counts[Fault.CONFLICT] > 10
    assert counts[Fault.TOO_OLD] > 2
    assert run(7) == (total, counts)
    assert run(8) != (total, counts)


def test_a_closed_store_begins_nothing(kv: SimulatedStore) -> None:
    kv.close()
    with pytest.raises(StoreClosed):
        kv.begin()
