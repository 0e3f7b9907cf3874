"""Seeded schedules of clients that lease, acknowledge, release, extend and sweep, with every fault there is.

A lease that was granted ends every earlier one of the same item; what was acknowledged never comes back; what was not
is still there. Each client has a clock of its own, which jumps.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from queues import Queue, Store
from queues.errors import OutcomeUnknown, StaleLease
from queues.items.lease_expiry import ExpiredRead
from queues.kv.simulated import SimulatedTransaction
from queues.operations import settle
from tests.full_count import check_full_count
from tests.simulation.history import Violation
from tests.simulation.scheduler import Killed
from tests.simulation.schedules import (
    CLIENTS,
    NOT_DONE,
    OPERATIONS,
    Process,
    Schedule,
    Tally,
    noticed,
    seeds,
    without_conflict,
)

#: Schedules within which every mutant must be noticed.
WITHIN = 300
VERBS = {"push": 5, "delay": 3, "lease": 8, "ack": 7, "release": 3, "extend": 2, "expire": 4, "promote": 3}


@dataclass(slots=True, kw_only=True)
class Grant:
    """A lease that a client was given."""

    token: str
    value: bytes
    attempts: int
    begun: int
    ended: int


@dataclass(slots=True, kw_only=True)
class Act:
    """One call of one client."""

    client: int
    verb: str
    begun: int
    ended: float = float("inf")
    outcome: str = "unknown"
    value: bytes = b""
    token: str = ""

    @property
    def possible(self) -> bool:
        """Say whether it may have been applied."""
        return self.outcome in ("done", "unknown", "killed")


@dataclass(slots=True)
class Log:
    """What clients did."""

    acts: list[Act] = field(default_factory=list)
    grants: list[Grant] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(map(str, [*self.acts, *self.grants]))

    def of(self, *verbs: str) -> Iterable[Act]:
        """Return the acts of these verbs."""
        return [act for act in self.acts if act.verb in verbs]


class TimeSchedule(Schedule):
    """One schedule on one queue, run and checked once."""

    #: What clients do, by how often.
    verbs = VERBS

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.log = Log()

    def _call(self, process: Process, program: random.Random) -> None:
        verb = program.choices(list(self.verbs), list(self.verbs.values()))[0]
        act = Act(client=process.client.number, verb=verb, begun=self.tick())
        self.log.acts.append(act)
        try:
            getattr(self, f"_{verb}")(act, process.queues["a"], program)
        except OutcomeUnknown:
            act.outcome = "unknown"
        except Killed:
            act.outcome = "killed"
            raise
        except StaleLease:
            act.outcome = "stale"
        except NOT_DONE:
            act.outcome = "not done"
        else:
            act.outcome = "done"
        act.ended = self.tick()

    def _push(self, act: Act, queue: Queue, dice: random.Random, delay: timedelta | None = None) -> None:
        act.value = b"%d" % len(self.log.acts)
        queue.push(act.value, priority=dice.randint(0, 2), delay=delay)

    def _delay(self, act: Act, queue: Queue, dice: random.Random) -> None:
        self._push(act, queue, dice, timedelta(milliseconds=dice.choice((1, 20, 80))))

    def _lease(self, act: Act, queue: Queue, dice: random.Random) -> None:
        leases = queue.lease_many(dice.randint(1, 2), seconds=dice.choice((0.005, 0.02, 0.1)))
        ended = self.tick()
        for lease in leases:
            self.log.grants.append(
                Grant(
                    token=lease.token,
                    value=lease.item.value,
                    attempts=lease.item.attempts,
                    begun=act.begun,
                    ended=ended,
                )
            )

    def _held(self, act: Act, dice: random.Random) -> str:
        """Return the token of one of the last leases, of any caller."""
        grants = self.log.grants[-6:]
        if grants:
            grant = dice.choice(grants)
            act.token, act.value = grant.token, grant.value
        else:
            act.token = f"{0:040x}-{0:016x}"
        return act.token

    def _ack(self, act: Act, queue: Queue, dice: random.Random) -> None:
        queue.ack(self._held(act, dice))

    def _release(self, act: Act, queue: Queue, dice: random.Random) -> None:
        delay = timedelta(milliseconds=30) if dice.random() < 0.4 else None
        queue.release(self._held(act, dice), delay=delay)

    def _extend(self, act: Act, queue: Queue, dice: random.Random) -> None:
        queue.extend(self._held(act, dice), seconds=0.05)

    def _expire(self, act: Act, queue: Queue, dice: random.Random) -> None:
        queue.expire(dice.randint(1, 3))

    def _promote(self, act: Act, queue: Queue, dice: random.Random) -> None:
        queue.promote(dice.randint(1, 3))

    @property
    def outcomes(self) -> Counter[str]:
        """How the calls ended."""
        return Counter(act.outcome for act in self.log.acts)

    # The end

    def _check(self, store: Store) -> None:
        try:
            self._check_log(store)
        except Exception as error:
            error.add_note(str(self.log))
            raise

    def _check_log(self, store: Store) -> None:
        queue = store.queue("a")
        check_full_count(store, queue)
        pages = [look(limit=1_000) for look in (queue.items, queue.delayed, queue.leased, queue.dead)]
        found = Counter(item.value for page in pages for item in page.items)
        if twice := [value for value, n in found.items() if n > 1]:
            raise Violation(f"twice: {twice}")
        pushed = {act.value for act in self.log.of("push", "delay") if act.outcome == "done"}
        perhaps = {act.value for act in self.log.of("push", "delay") if act.possible}
        if unknown := (set(found) | {grant.value for grant in self.log.grants}) - perhaps:
            raise Violation(f"from nowhere: {unknown}")
        acked = {act.value for act in self.log.of("ack") if act.outcome == "done"}
        if back := acked & set(found):
            raise Violation(f"acknowledged, and there: {back}")
        ackable = {act.value for act in self.log.of("ack") if act.possible}
        if lost := pushed - set(found) - ackable:
            raise Violation(f"lost: {lost}")
        counted = queue.totals().traffic.get("ack", 0)
        seen = pushed | {grant.value for grant in self.log.grants}
        if not len(seen - set(found)) == counted:
            raise Violation(f"{seen - set(found)} are gone, {counted} were counted as acknowledged")
        for grant in self.log.grants:
            self._check_fencing(grant)

    def _check_fencing(self, grant: Grant) -> None:
        acts = [act for act in self.log.acts if act.value == grant.value]
        for act in acts:
            if act.verb == "ack" and act.outcome == "done" and act.ended < grant.begun:
                raise Violation(f"{grant} after {act}")
        for other in self.log.grants:
            if other.value == grant.value and other.ended < grant.begun and other.attempts >= grant.attempts:
                raise Violation(f"{grant} was not counted after {other}")
        for act in acts:
            if not act.token or act.outcome != "done" or act.begun < grant.ended:
                continue
            earlier = next(other for other in self.log.grants if other.token == act.token)
            if earlier.attempts >= grant.attempts:
                continue
            done = [a for a in acts if a.verb == "ack" and a is not act and a.possible and a.begun < act.ended]
            if act.verb != "ack" or not done:
                raise Violation(f"{act} in spite of {grant}")


@pytest.mark.slow
def test_seeded_schedules_of_leases_lose_and_double_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    tally, verbs = Tally(), Counter[tuple[str, str]]()
    for seed in seeds(75):
        schedule = TimeSchedule(seed)
        schedule.run(tally)
        tally.operations += len(schedule.log.acts)
        verbs.update((act.verb, act.outcome) for act in schedule.log.acts)
    with capsys.disabled():
        print(f"\nsimulation of leases: {tally}")
    assert tally.operations == tally.schedules * CLIENTS * OPERATIONS
    if tally.schedules >= 75:
        assert all(verbs[verb, "done"] for verb in VERBS)
        assert all(tally.outcomes[outcome] for outcome in ("unknown", "killed", "not done"))
        assert all(verbs[verb, "stale"] for verb in ("ack", "release", "extend"))
        assert min(tally.kills, tally.conflicts, tally.late_applied, tally.late_refused) > 0


class AnyNonce(bytes):
    """Equals every nonce."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = bytes.__hash__


def test_notices_a_lease_that_ends_by_any_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle.HeldRead, "__init__", knowing_the_nonce(settle.HeldRead.__init__))
    assert "in spite of" in noticed(TimeSchedule, range(WITHIN))


def test_notices_an_expired_lease_that_ends_by_any_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every token for the right one of an item that is ready or dead."""
    monkeypatch.setattr(ExpiredRead, "__init__", knowing_the_nonce(ExpiredRead.__init__))
    assert noticed(TimeSchedule, range(WITHIN))


def knowing_the_nonce(init: Callable[..., None]) -> Callable[..., None]:
    """Return a look for a lease that any token fits."""

    def fit(look: Any, *arguments: Any) -> None:
        *rest, nonce = arguments
        init(look, *rest, AnyNonce(nonce))

    return fit


def test_notices_a_lease_that_ends_without_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads of leases without conflicts: two end the same one."""
    get = SimulatedTransaction.get

    def careless(tr: SimulatedTransaction, key: bytes) -> Any:
        return tr.snapshot.get(key) if b"\x02l\x00\x01" in key else get(tr, key)

    monkeypatch.setattr(SimulatedTransaction, "get", careless)
    assert noticed(TimeSchedule, range(WITHIN))


def test_notices_an_item_that_is_promoted_without_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    """No conflict on the delayed key: two promote the same item."""
    monkeypatch.setattr(
        SimulatedTransaction, "add_read_conflict_key", without_conflict(lambda key: b"\x02d\x00\x1a" in key)
    )
    assert noticed(TimeSchedule, range(WITHIN))
