"""Seeded schedules of clients that run, cancel, resume and undo jobs during pushes and pops, with every fault.

Whatever was pushed is in one place or was popped, once. What jobs say they did is what was done: exactly once each.
"""

import random
from collections import Counter
from dataclasses import dataclass

import pytest

from queues import Job, Queue, Store
from queues.bulk import chunk
from queues.bulk.runner import JobRunner
from queues.errors import AlreadyRestored, JobEnded, OutcomeUnknown
from queues.items.scan import Query
from queues.kv.simulated import SimulatedStore
from queues.serving import staging
from tests.full_count import check_full_count
from tests.simulation.history import Violation
from tests.simulation.scheduler import Client, Killed
from tests.simulation.schedules import NOT_DONE, Process, Schedule, Tally, seeds

VERBS = {"round": 14, "pop": 4, "push": 2, "begin": 1, "cancel": 1, "resume": 2, "undo": 1}
ITEMS = 12
#: Rounds after which all jobs have ended, when no caller is in their way.
ROUNDS = 2_000


@dataclass(slots=True, kw_only=True)
class Act:
    """One call of one client."""

    verb: str
    outcome: str = "unknown"
    value: bytes = b""

    @property
    def possible(self) -> bool:
        """Say whether it may have been applied."""
        return self.outcome in ("done", "unknown", "killed")


class JobSchedule(Schedule):
    """One schedule of jobs between two queues, run and checked once."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.acts: list[Act] = []
        #: By process; which they keep alive, for another could have the same id.
        self._runners: dict[int, tuple[Process, JobRunner]] = {}
        self.jobs: list[Job] = []

    def _start(self, client: Client) -> Process:
        if not self.acts:
            self._prepare()
        return super()._start(client)

    def _prepare(self) -> None:
        """Bring about what is there when the clients begin."""
        kv = SimulatedStore(memory=self._memory, clock=self._clock, slots=self._keyspace.slots)
        store = self._open(kv)
        queue = store.queue("a")
        for n in range(ITEMS):
            queue.push(self._value(), priority=n % 3)
        store.actions("ann").begin_bulk("move", "a", to="b")

    def _value(self) -> bytes:
        self.acts.append(Act(verb="push", outcome="done", value=b"%d" % len(self.acts)))
        return self.acts[-1].value

    def _call(self, process: Process, program: random.Random) -> None:
        verb = program.choices(list(VERBS), list(VERBS.values()))[0]
        act = Act(verb=verb)
        self.acts.append(act)
        try:
            getattr(self, f"_{verb}")(act, process, program)
        except OutcomeUnknown:
            act.outcome = "unknown"
        except Killed:
            act.outcome = "killed"
            raise
        except (*NOT_DONE, JobEnded, AlreadyRestored):
            act.outcome = "not done"
        else:
            act.outcome = "done"

    def _round(self, act: Act, process: Process, dice: random.Random) -> None:
        if id(process) not in self._runners:
            runner = JobRunner(process.store.context, count=self._clock)
            self._runners[id(process)] = process, runner
        _, runner = self._runners[id(process)]
        self._clock.advance(0.5)
        runner.round()

    def _pop(self, act: Act, process: Process, dice: random.Random) -> None:
        queue = process.queues[dice.choice(("a", "b"))]
        item = queue.pop_min() if dice.random() < 0.5 else queue.pop_max()
        act.value = b"" if item is None else item.value

    def _push(self, act: Act, process: Process, dice: random.Random) -> None:
        act.value = b"%d" % len(self.acts)
        process.queues[dice.choice(("a", "b"))].push(act.value, priority=dice.randint(0, 2))

    def _begin(self, act: Act, process: Process, dice: random.Random) -> None:
        act_of, more = dice.choice((("reprioritize", {"shift": dice.choice((-1, 1))}), ("move", {"to": "b"})))
        process.store.actions("bob").begin_bulk(act_of, "a", query=Query(text=str(dice.randint(0, 9))), **more)

    def _cancel(self, act: Act, process: Process, dice: random.Random) -> None:
        ann = process.store.actions("ann")
        ann.cancel_bulk(dice.choice(ann.jobs()).id)

    def _resume(self, act: Act, process: Process, dice: random.Random) -> None:
        ann = process.store.actions("ann")
        ann.resume_bulk(dice.choice(ann.jobs()).id)

    def _undo(self, act: Act, process: Process, dice: random.Random) -> None:
        ann = process.store.actions("ann")
        ann.undo(dice.choice(ann.jobs()).id)

    # The end

    def _check(self, store: Store) -> None:
        runner = JobRunner(store.context, count=self._clock)
        for _ in range(ROUNDS):
            runner.round()
            self._clock.advance(1.0)
            if not runner.running:
                break
        self.jobs = store.actions("ann").jobs(100)
        if any(job.status not in ("done", "canceled") for job in self.jobs):
            raise Violation(f"a job did not end, or failed: {self.jobs}")
        there = Counter(value for name in ("a", "b") for value in _values(store.queue(name)))
        doubled = [value for value, n in there.items() if n > 1]
        if doubled:
            raise Violation(f"items are there twice: {doubled}")
        popped = {act.value for act in self.acts if act.verb == "pop" and act.outcome == "done"} - {b""}
        if popped & set(there):
            raise Violation(f"popped items are there: {popped & set(there)}")
        pushed = {act.value for act in self.acts if act.verb == "push" and act.outcome == "done"}
        maybe = sum(act.verb == "pop" and act.possible and act.outcome != "done" for act in self.acts)
        lost = pushed - set(there) - popped
        if len(lost) > maybe:
            raise Violation(f"items are lost: {lost}, {maybe} may have been popped without an answer")
        for name in ("a", "b"):
            check_full_count(store, store.queue(name))
        self._check_counts(store)

    def _check_counts(self, store: Store) -> None:
        """What jobs say they did is what was done."""
        traffic = store.queue("a").totals().traffic
        for verb in ("move", "reprioritize"):
            said = sum(job.done for job in self.jobs if job.act == verb)
            if traffic.get(verb, 0) != said:
                raise Violation(f"jobs say {verb} of {said} items, it was {traffic.get(verb, 0)}")
        said = sum(job.done for job in self.jobs if job.act == "undo")
        if traffic.get("restore", 0) != said:
            raise Violation(f"jobs say that they undid {said}, it was {traffic.get('restore', 0)}")

    def _count(self, tally: Tally) -> None:
        super()._count(tally)
        tally.operations += len(self.acts)

    @property
    def outcomes(self) -> Counter[str]:
        """How the calls ended."""
        return Counter(act.outcome for act in self.acts) + Counter({"empty": 1})

    def __str__(self) -> str:
        return "\n".join(map(str, [*self.acts, *self.jobs]))


def _values(queue: Queue) -> list[bytes]:
    return [item.value for item in queue.items(limit=1_000).items]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let jobs have many chunks; a caller that pops does so itself, so that nothing runs beside the schedule."""
    monkeypatch.setattr(staging, "CONFLICTS", 1_000_000)
    monkeypatch.setattr(chunk, "FIRST_CHUNK", 3)
    monkeypatch.setattr(chunk, "MAX_CHUNK", 3)


def run(seed: int, tally: Tally) -> None:
    schedule = JobSchedule(seed)
    try:
        schedule.run(tally)
    except Exception as error:
        error.add_note(str(schedule))
        raise


@pytest.mark.slow
def test_jobs_do_everything_once_whatever_fails(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    for seed in seeds(30):
        run(seed, tally)
    with capsys.disabled():
        print(f"\njobs: {tally}")
    # No caller watches here.
    assert tally.schedules < 30 or set(tally.zeros()) <= {"watch error", "spurious wake-up"}
