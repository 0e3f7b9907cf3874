"""Seeded schedules of clients that delay, lease, run for election and sweep by the due index, with every fault.

At every end whatever falls due is in the due index, and a sweep by nothing else finds all of it. No term is held
by two, and nothing of an earlier term is written after a later one's. Clients die anywhere; their clocks jump. (That
the check of a term conflicts with a takeover is asserted in tests/conformance/background/test_elected.py.)
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from queues import Queue, Store
from queues.background import due_index
from queues.background.leader import Candidate
from queues.background.sweeper import Sweeper
from queues.errors import NotElected
from queues.items.counters import CounterDelta as Totals
from queues.kv.port import Transaction
from queues.kv.simulated import SimulatedTransaction
from queues.serving.leadership import Holding
from tests.simulation.history import Violation
from tests.simulation.schedules import CLIENTS, OPERATIONS, Process, Tally, noticed, seeds, without_conflict
from tests.simulation.test_time_schedules import Act, TimeSchedule

#: Schedules within which every mutant must be noticed.
WITHIN = 2_000
VERBS = {"delay": 7, "lease": 3, "ack": 2, "release": 1, "promote": 2, "sweep": 7}
#: In two of three schedules each: a push while the last mark of a queue is cleared; the holder of the role.
NARROW = {"delay": 4, "sweep": 9}
ELECTION = {"push": 1, "stand": 9, "fenced": 6, "resign": 3}
KINDS = (VERBS, NARROW, ELECTION)
#: What a role's transactions write: the terms in which they did.
FENCE = b"\x15fence"
#: Seconds of a holding, of the same size as a schedule's steps; and after all clocks' jumps.
HOLDING, FOREVER = 0.003, 1_000_000.0


class SweepingSchedule(TimeSchedule):
    """One schedule on one queue, run and checked once."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.verbs = KINDS[seed % len(KINDS)]
        self.holders: dict[int | None, set[Candidate]] = {}
        #: The terms in which something was written.
        self.written: list[int] = []
        self._offices: dict[int, tuple[Process, Candidate, Sweeper]] = {}

    def _call(self, process: Process, program: random.Random) -> None:
        if id(process) not in self._offices:
            context = process.store.context
            candidate = Candidate(context, "sweep", seconds=HOLDING, name="client", count=self._clock)
            self._offices[id(process)] = process, candidate, Sweeper(context, count=self._clock)
        self._now = self._offices[id(process)]
        super()._call(process, program)

    def _delay(self, act: Act, queue: Queue, dice: random.Random) -> None:
        self._push(act, queue, dice, timedelta(milliseconds=1 if self.verbs is NARROW else dice.choice((1, 20, 80))))

    def _stand(self, act: Act, queue: Queue, dice: random.Random) -> None:
        _, candidate, _ = self._now
        if candidate.step():
            self.holders.setdefault(candidate.term, set()).add(candidate)

    def _resign(self, act: Act, queue: Queue, dice: random.Random) -> None:
        self._now[1].resign()

    def _sweep(self, act: Act, queue: Queue, dice: random.Random) -> None:
        self._now[2].round()

    def _fenced(self, act: Act, queue: Queue, dice: random.Random) -> None:
        """Write in the role's name, if this client believes that it has it."""
        process, candidate, _ = self._now
        term = candidate.term
        if term is None:
            return

        def write(tr: Transaction) -> None:
            candidate.check(tr)
            tr.set(FENCE, bytes([term]))  # only the term keeps such writes apart

        try:
            process.store.transact(write)
        except NotElected:
            act.token = "fenced off"
        else:
            self.written.append(term)

    def _check_log(self, store: Store) -> None:
        super()._check_log(store)
        if twice := {term: ids for term, ids in self.holders.items() if len(ids) > 1}:
            raise Violation(f"two hold one term: {twice}")
        last = store.read(lambda tr: tr.get(FENCE).wait()) or b"\0"
        if last[0] < max(self.written, default=0):
            raise Violation(f"{last[0]} was written after a later term: {self.written}")
        record = store.read(lambda tr: tr.get(store.context.keyspace.elected.key("sweep")).wait())
        held = Holding.decode(record)
        if held is not None and held.term < max(self.holders, default=0):
            raise Violation("a term came back")
        self._clock.advance(FOREVER)
        Sweeper(store.context, count=self._clock).sweep()
        queue = store.queue("a")
        if left := {state: n for state in ("delayed", "leased") if (n := queue.depth(state))}:
            raise Violation(f"left by the sweep: {left}")
        if store.read(lambda tr: tr.get_key(*store.context.keyspace.due_index).wait()) is not None:
            raise Violation("the due index does not end")


@pytest.mark.slow
def test_seeded_schedules_of_sweeping_lose_and_double_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    tally, verbs, fenced, terms = Tally(), Counter[tuple[str, str]](), 0, 0
    for seed in seeds(50):
        schedule = SweepingSchedule(seed)
        schedule.run(tally)
        tally.operations += len(schedule.log.acts)
        verbs.update((act.verb, act.outcome) for act in schedule.log.acts)
        fenced += sum(act.token == "fenced off" for act in schedule.log.acts)
        terms += len(schedule.holders)
    with capsys.disabled():
        print(f"\nsimulation of sweeping: {tally}; {terms} terms, {fenced} fenced off")
    assert tally.operations == tally.schedules * CLIENTS * OPERATIONS
    if tally.schedules >= 50:
        assert all(verbs[verb, "done"] for verb in VERBS | NARROW | ELECTION)
        assert all(tally.outcomes[outcome] for outcome in ("unknown", "killed", "not done"))
        assert min(tally.kills, tally.conflicts, tally.late_applied, tally.late_refused, fenced) > 0
        assert terms > tally.schedules / len(KINDS), "roles change hands"


def unsafe(verbs: dict[str, int]) -> str:
    """Return what the first of the schedules of these verbs that fails says."""
    return noticed(SweepingSchedule, range(KINDS.index(verbs), WITHIN, len(KINDS)))


def test_notices_a_mark_that_is_cleared_without_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        SimulatedTransaction, "add_read_conflict_key", without_conflict(lambda key: b"\x02due\x00" in key)
    )
    assert "not in the due index" in unsafe(NARROW)


def test_notices_marks_that_are_cleared_by_an_older_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_what_was_seen(tr: Transaction, keyspace: Any, queues: Any) -> None:
        for queue in queues:
            for second in queue.seconds:
                tr.clear(keyspace.due.key(second, queue.queue_id))

    monkeypatch.setattr(due_index, "settle", by_what_was_seen)
    assert "not in the due index" in unsafe(VERBS)


def test_notices_a_due_item_without_a_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Totals, "falls_due", lambda self, ms, now_ms=None: self.wake())
    assert "not in the due index" in unsafe(VERBS)


def careless(name: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(Candidate, name, broken)
    return unsafe(ELECTION)


def test_notices_a_write_of_an_earlier_term(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "after a later term" in careless("check", lambda self, tr: None, monkeypatch)


def test_notices_a_role_that_is_taken_though_another_caller_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taking a role that another caller has taken since."""

    def take(self: Candidate, seen: bytes | None) -> None:
        holding = self._leadership.taken(Holding.decode(seen))
        self._context.transact(lambda tr: tr.set(self._key, holding.encode()), None)
        self.term, self._until = holding.term, self._count() + self._leadership.seconds

    assert careless("_take", take, monkeypatch)


def test_notices_a_role_that_is_renewed_after_another_took_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def renew(self: Candidate, term: int) -> bool:
        holding = replace(self._leadership.taken(None), term=term)
        self._context.transact(lambda tr: tr.set(self._key, holding.encode()), None)
        self._until = self._count() + self._leadership.seconds
        return True

    assert careless("_renew", renew, monkeypatch)
