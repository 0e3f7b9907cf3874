"""Applied exactly once, whatever happens to a commit and its answer.

What breaks which test (each was broken by hand to see it; `tests/simulation/test_mutants.py` breaks them always):
- without reading the slot once in doubt (`_Sequence._applied` always None): `test_a_lost_answer_...[committed]`,
  `test_a_late_commit_is_applied_once_...[others0-0]` (lands before the next try) and `[others0-1]` (during it),
  `test_the_result_is_the_applied_attempts`;
- without the slot's own read conflict in every attempt: `test_a_late_commit_is_applied_once_...[others0-2]` and later
  ones (lands after the next try was committed), `test_a_late_commit_is_refused_by_the_next_use_of_its_slot`;
- without a fence before an error is raised in doubt: `test_a_function_that_fails_in_doubt_...`,
  `test_a_clock_that_jumps_in_doubt_...`, `test_what_is_too_large_in_doubt_...`.
"""

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from queues.kv.errors import OutcomeUnknown, StoreUnavailable, TransactionTooLarge, TransactionTooOld
from queues.kv.port import Transaction
from queues.kv.simulated import Fault, Lateness, Memory, SeededFaults, SimulatedStore
from tests.conftest import Clock

NEVER = 10_000
SLOTS = b"slots"


class Script:
    """Faults in a given order; then none, or the last one forever."""

    def __init__(self, *fates: Fault | Lateness | None, forever: bool = False) -> None:
        self._fates = list(fates)
        self._forever = forever
        self._lateness = Lateness(seconds=0, operations=0)

    def at_commit(self) -> Fault | None:
        if not self._fates:
            return None
        fate = self._fates[0] if self._forever and len(self._fates) == 1 else self._fates.pop(0)
        if isinstance(fate, Lateness):
            self._lateness = fate
            return Fault.LATE
        return fate

    def lateness(self) -> Lateness:
        return self._lateness

    def at_watch(self) -> Fault | None:
        return None

    def clock_jump(self) -> float:
        return 0.0


def after(operations: int, *, seconds: float = NEVER) -> Lateness:
    return Lateness(seconds=seconds, operations=operations)


class World:
    """One memory with a client whose commits fail by a script, and an onlooker that never fails."""

    def __init__(self, clock: Clock, faults: Script, pause: float = 0.0) -> None:
        self.memory = Memory()
        self.clock = clock
        self.pause = pause
        self.client = SimulatedStore(memory=self.memory, clock=clock, sleep=self._sleep, faults=faults, slots=SLOTS)
        self.onlooker = SimulatedStore(memory=self.memory, clock=clock)
        self.runs = 0

    def _sleep(self, seconds: float) -> None:
        self.clock.advance(self.pause)

    def bump(self, tr: Transaction) -> int:
        """Add 1 and return which run this is."""
        self.runs += 1
        tr.add(b"n", 1)
        return self.runs

    def land_everything(self) -> int:
        """Wait until nothing is on its way; return the counter."""
        self.clock.advance(NEVER)
        value = self.onlooker.read(lambda tr: tr.get(b"n").wait())
        assert len(self.memory.late) == 0
        return int.from_bytes(value or b"", "little")


@pytest.mark.parametrize("fault", [Fault.CONFLICT, Fault.TOO_OLD])
def test_what_was_not_committed_is_tried_again(clock: Clock, fault: Fault) -> None:
    world = World(clock, Script(fault, fault))
    assert world.client.transact(world.bump) == 3
    assert world.land_everything() == 1


@pytest.mark.parametrize(
    ("fates", "applied"),
    [
        pytest.param((Fault.UNKNOWN_BEFORE,), 2, id="not committed"),
        pytest.param((Fault.UNKNOWN_AFTER,), 1, id="committed"),
        pytest.param((Fault.UNKNOWN_BEFORE, Fault.UNKNOWN_AFTER), 2, id="the second try was committed"),
        pytest.param((Fault.UNKNOWN_BEFORE, Fault.CONFLICT, Fault.UNKNOWN_BEFORE), 4, id="the fourth try works"),
    ],
)
def test_a_lost_answer_is_looked_up_and_the_function_applied_once(
    clock: Clock, fates: Iterable[Fault], applied: int
) -> None:
    world = World(clock, Script(*fates))
    assert world.client.transact(world.bump) == applied
    assert world.land_everything() == 1


@pytest.mark.parametrize("operations", range(7))
@pytest.mark.parametrize("others", [(), (Fault.CONFLICT,), (Fault.UNKNOWN_AFTER,), (Fault.UNKNOWN_BEFORE,)])
def test_a_late_commit_is_applied_once_whenever_it_lands(clock: Clock, operations: int, others: tuple) -> None:
    """0: before the next try begins; 1: while it runs; from 2 on after it was committed, which refuses it."""
    world = World(clock, Script(after(operations), *others))
    world.client.transact(world.bump)
    assert world.land_everything() == 1
    assert world.memory.late.applied + world.memory.late.refused == 1


def test_a_late_commit_lands_by_the_stores_clock(clock: Clock) -> None:
    world = World(clock, Script(after(NEVER, seconds=4.9)), pause=5.0)
    assert world.client.transact(world.bump) == 1
    assert world.memory.late.applied == 1
    assert world.land_everything() == 1


@pytest.mark.parametrize("operations", range(8))
def test_several_late_commits_of_one_sequence_are_applied_once(clock: Clock, operations: int) -> None:
    world = World(clock, Script(after(operations), after(operations // 2), after(0)))
    world.client.transact(world.bump)
    assert world.land_everything() == 1


def test_the_result_is_the_applied_attempts(clock: Clock) -> None:
    """What it read then, not what it reads when the answer is looked up."""
    world = World(clock, Script(after(1), after(0)))
    world.onlooker.transact(lambda tr: tr.set(b"head", b"first"))

    def take(tr: Transaction) -> bytes | None:
        head = tr.get(b"head").wait()
        tr.set(b"head", b"second")
        return head

    assert world.client.transact(take) == b"first"
    assert world.client.transact(take) == b"second"


def test_a_function_that_only_reads_leaves_no_mark(clock: Clock) -> None:
    world = World(clock, Script(Fault.UNKNOWN_AFTER, forever=True))
    version = world.memory.history.version
    assert world.client.transact(lambda tr: tr.get(b"n").wait()) is None
    assert world.memory.history.version == version


def test_a_function_in_doubt_is_fenced_even_if_its_next_run_writes_nothing(clock: Clock) -> None:
    """A pop that found something and whose answer was lost finds nothing the next time: that must be true."""
    world = World(clock, Script(after(4)))
    world.onlooker.transact(lambda tr: tr.set(b"item", b"1"))
    rival = world.onlooker

    def take(tr: Transaction) -> bytes | None:
        world.runs += 1
        if world.runs == 2:
            rival_tr = rival.begin()
            rival_tr.clear(b"item")
            rival_tr.commit()
        item = tr.get(b"item").wait()
        if item is not None:
            tr.clear(b"item")
            tr.add(b"n", 1)
        return item

    world.client.transact(take)
    rival.transact(lambda tr: tr.set(b"item", b"2"))
    world.land_everything()
    assert world.onlooker.read(lambda tr: tr.get(b"item").wait()) == b"2"


class OnPurpose(Exception):
    """Raised by a function."""


@pytest.mark.parametrize("operations", [0, 1, 2, 3, 4, 5, 6, NEVER])
@pytest.mark.parametrize("fence", [(), (Fault.UNKNOWN_AFTER,), (Fault.UNKNOWN_BEFORE,), (Fault.CONFLICT,)])
def test_a_function_that_fails_in_doubt_was_applied_or_never_is(clock: Clock, operations: int, fence: tuple) -> None:
    world = World(clock, Script(after(operations), *fence))

    def fails_at_the_second_run(tr: Transaction) -> int:
        if world.bump(tr) == 2:
            raise OnPurpose
        return world.runs

    try:
        answer: int | None = world.client.transact(fails_at_the_second_run)
    except OnPurpose:
        answer = None
    assert world.land_everything() == (0 if answer is None else 1)


@pytest.mark.parametrize("operations", [0, 1, 2, 3, 4, 5, 6, NEVER])
def test_a_clock_that_jumps_in_doubt_never_makes_a_late_commit_a_refused_one(clock: Clock, operations: int) -> None:
    """The second run takes longer than a transaction may: "nothing was written" must be true of the first as well."""
    world = World(clock, Script(after(operations)))

    def stays_too_long(tr: Transaction) -> int:
        if world.bump(tr) == 2:
            clock.advance(6)
        return world.runs

    try:
        answer: int | None = world.client.transact(stays_too_long)
    except TransactionTooOld:
        answer = None
    assert world.land_everything() == (0 if answer is None else 1)


def test_what_is_too_large_in_doubt_was_applied_or_never_is(clock: Clock) -> None:
    world = World(clock, Script(after(3)))

    def grows(tr: Transaction) -> int:
        if world.bump(tr) == 2:
            try:
                for n in range(101):
                    tr.set(b"%d" % n, b"x" * 100_000)
            except TransactionTooLarge:
                pass  # the commit says it again
        return world.runs

    with pytest.raises(TransactionTooLarge):
        world.client.transact(grows)
    assert world.land_everything() == 0


@pytest.mark.parametrize("fault", [Fault.UNKNOWN_BEFORE, after(NEVER, seconds=35.0)])
def test_what_cannot_be_settled_in_time_is_unknown(clock: Clock, fault: Fault | Lateness) -> None:
    world = World(clock, Script(fault, Fault.UNKNOWN_BEFORE, forever=True), pause=1.0)
    began = clock.now
    with pytest.raises(OutcomeUnknown, match="look before you repeat it"):
        world.client.transact(world.bump)
    assert 30 <= clock.now - began <= 32
    assert world.land_everything() == (1 if isinstance(fault, Lateness) else 0)


def test_patience_that_ends_in_doubt_is_settled_by_a_fence(clock: Clock) -> None:
    """The store answers again after patience but within the time for settling: the answer is "nothing written"."""
    world = World(clock, Script(after(NEVER, seconds=25.0), *[Fault.UNKNOWN_BEFORE] * 14), pause=1.0)
    with pytest.raises(StoreUnavailable, match="nothing was written"):
        world.client.transact(world.bump)
    assert world.runs == 12
    assert world.land_everything() == 0
    assert world.memory.late.refused == 1


def test_a_machine_that_was_suspended_in_doubt_does_not_run_again(clock: Clock) -> None:
    """Its slot may have been swept meanwhile, so an empty slot would prove nothing."""
    world = World(clock, Script(Fault.UNKNOWN_BEFORE), pause=4_000.0)
    with pytest.raises(OutcomeUnknown):
        world.client.transact(world.bump)
    assert world.runs == 1
    assert world.land_everything() == 0


def test_a_machine_that_was_suspended_still_believes_a_mark(clock: Clock) -> None:
    world = World(clock, Script(Fault.UNKNOWN_AFTER), pause=4_000.0)
    assert world.client.transact(world.bump) == 1
    assert world.land_everything() == 1


def test_a_late_commit_is_refused_by_the_next_use_of_its_slot(clock: Clock) -> None:
    world = World(clock, Script(after(NEVER, seconds=50.0), *[Fault.UNKNOWN_BEFORE] * 31), pause=1.0)
    with pytest.raises(OutcomeUnknown):
        world.client.transact(world.bump)
    world.client.transact(lambda tr: tr.set(b"other", b""))
    assert world.land_everything() == 0
    assert world.memory.late.refused == 1


def test_a_late_commit_during_the_next_use_of_its_slot_is_no_answer_to_it(clock: Clock) -> None:
    world = World(clock, Script(after(NEVER, seconds=31.5), *[Fault.UNKNOWN_BEFORE] * 31), pause=1.0)
    with pytest.raises(OutcomeUnknown):
        world.client.transact(world.bump)
    runs = count(1)

    def other(tr: Transaction) -> int:
        clock.advance(1)  # the late commit lands between this run's reads and its commit
        tr.set(b"other", b"")
        return next(runs)

    assert world.client.transact(other) == 2
    assert world.memory.late.applied == 1
    assert world.onlooker.read(lambda tr: tr.get(b"other").wait()) is not None
    assert world.land_everything() == 1


def test_without_slots_a_lost_answer_stays_unknown(clock: Clock) -> None:
    memory = Memory()
    client = SimulatedStore(memory=memory, clock=clock, faults=Script(Fault.UNKNOWN_AFTER))
    with pytest.raises(OutcomeUnknown):
        client.transact(lambda tr: tr.add(b"n", 1))
    assert client.read(lambda tr: tr.get(b"n").wait()) == (1).to_bytes(8, "little")


def test_a_thousand_faults_and_every_sum_is_right(clock: Clock) -> None:
    rates = dict.fromkeys((Fault.CONFLICT, Fault.TOO_OLD, Fault.UNKNOWN_BEFORE, Fault.UNKNOWN_AFTER, Fault.LATE), 0.15)
    faults = SeededFaults(5, rates)
    memory = Memory()
    client = SimulatedStore(memory=memory, clock=clock, sleep=lambda _: clock.advance(0.01), faults=faults, slots=SLOTS)
    work: Callable[[Transaction], None] = lambda tr: tr.add(b"n", 1)  # noqa: E731
    for _ in range(1_000):
        client.transact(work)
    clock.advance(10)
    onlooker = SimulatedStore(memory=memory, clock=clock)
    assert int.from_bytes(onlooker.read(lambda tr: tr.get(b"n").wait()) or b"", "little") == 1_000
    assert all(faults.counts[fault] > 100 for fault in rates)
    assert memory.late.applied > 50
    assert memory.late.refused > 50


def test_threads_with_faults_lose_and_double_nothing() -> None:
    """As above, with threads that interleave as they like."""
    rates = dict.fromkeys((Fault.CONFLICT, Fault.UNKNOWN_BEFORE, Fault.UNKNOWN_AFTER, Fault.LATE), 0.15)
    memory = Memory()
    faults = [SeededFaults(seed, rates) for seed in range(8)]

    def work(faults: SeededFaults) -> int:
        client = SimulatedStore(memory=memory, faults=faults, slots=SLOTS)
        return sum(client.transact(take) for _ in range(100))

    def take(tr: Transaction) -> bool:
        found = tr.snapshot.get_key(b"item", b"iten").wait()
        if found is None:
            return False
        tr.add_read_conflict_key(found)
        tr.clear(found)
        tr.add(b"taken", 1)
        return True

    onlooker = SimulatedStore(memory=memory)
    onlooker.transact(lambda tr: [tr.set(b"item%03d" % n, b"") for n in range(500)])
    with ThreadPoolExecutor(8) as pool:
        taken = sum(pool.map(work, faults))
    memory.late.land(math.inf)
    left = onlooker.read(lambda tr: tr.get_range(b"item", b"iten", limit=1_000).wait())
    counted = onlooker.read(lambda tr: tr.get(b"taken").wait())
    assert taken == int.from_bytes(counted or b"", "little") == 500 - len(left) == 500
