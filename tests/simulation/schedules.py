"""One seeded schedule: clients push, pop, move, look and wait on shared queues while everything goes wrong."""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from unittest.mock import patch

from queues import Item, Queue, Store
from queues.errors import Conflict, OutcomeUnknown, StoreUnavailable, TransactionTooOld
from queues.keys.keyspace import Keyspace
from queues.kv.port import Transaction
from queues.kv.simulated import Fault, JumpingClock, Memory, Point, SeededFaults, SimulatedStore, SimulatedTransaction
from queues.serving import staging
from queues.serving.background import BackgroundThreads
from tests.conftest import Clock
from tests.full_count import check_full_count
from tests.simulation.history import History, Operation, Put, Take, Violation
from tests.simulation.scheduler import Client, Killed, Scheduler, seeded_randomness

#: By name, of which kind.
QUEUES = {"a": "priority", "b": "priority", "f": "fifo"}
CLIENTS = 3
OPERATIONS = 9
#: Seconds after which whatever was late has landed.
EVERYTHING_LANDED = 10.0

#: How likely each fault is, where a schedule has its usual amount of it.
RATES = {
    Fault.CONFLICT: 0.05,
    Fault.TOO_OLD: 0.04,
    Fault.UNKNOWN_BEFORE: 0.08,
    Fault.UNKNOWN_AFTER: 0.08,
    Fault.LATE: 0.12,
    Fault.WATCH_ERROR: 0.15,
    Fault.SPURIOUS_WAKE: 0.15,
    Fault.CLOCK_JUMP: 0.004,
}
VERBS = {"push": 9, "push_many": 4, "pop": 6, "pop_many": 2, "move": 4, "abort": 1, "look": 2, "wait": 2}

#: What says that nothing was written.
NOT_DONE = (Conflict, StoreUnavailable, TransactionTooOld)


class WithoutHeartbeats(BackgroundThreads):
    """Threads, but none that tells of consumers: it would have no place in a schedule."""

    def start(self, work: Callable[[], None], name: str) -> None:
        """Start work in a thread."""
        if name != "pq-consumers":
            super().start(work, name)


class OnPurpose(Exception):
    """Raised inside a transaction to see it undone."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a run of schedules did, to be printed and asserted."""

    schedules: int = 0
    operations: int = 0
    switches: int = 0
    kills: int = 0
    conflicts: int = 0
    late_applied: int = 0
    late_refused: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[Fault] = field(default_factory=Counter)

    def __str__(self) -> str:
        outcomes = ", ".join(f"{n:,} {outcome}" for outcome, n in sorted(self.outcomes.items()))
        faults = ", ".join(f"{self.faults[fault]:,} {fault.value}" for fault in Fault)
        return (
            f"{self.schedules:,} schedules, {self.operations:,} operations ({outcomes}), {self.switches:,} switches, "
            f"{self.conflicts:,} conflicts, {self.kills:,} kills\n"
            f"faults: {faults}; of the late commits {self.late_applied:,} were applied, {self.late_refused:,} refused"
        )

    def zeros(self) -> list[str]:
        """Return what never happened, and should have."""
        numbers = {name: getattr(self, name) for name in ("kills", "conflicts", "late_applied", "late_refused")}
        numbers |= {fault.value: self.faults[fault] for fault in Fault}
        numbers |= {outcome: self.outcomes[outcome] for outcome in ("done", "unknown", "killed", "not done", "empty")}
        return [name for name, number in numbers.items() if not number]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How much goes wrong in a schedule: multiples of the usual rates, and the chance to die at each point."""

    storms: float
    jumps: float
    deaths: float


STORM = Weather(storms=3.0, jumps=12.0, deaths=0.0)


class Schedule:
    """One schedule, run and checked once; its seed draws the weather, unless it is given."""

    #: By name, of which kind; threads that run; processes.
    queues: Mapping[str, str] = QUEUES
    threads = processes = CLIENTS
    #: Conflicts after which one process executes the pops of all: never, as its thread would not be the scheduler's.
    conflicts = 1_000_000

    def __init__(self, seed: int, weather: Weather | None = None) -> None:
        self.seed = seed
        self.history = History()
        self._random = random.Random(seed)
        self._clock = Clock()
        self._memory = Memory()
        self._keyspace = Keyspace(("pq",))
        weather = weather or Weather(
            storms=self._random.choice((0.0, 0.5, 1.0, 2.0)),
            jumps=self._random.choice((0.0, 1.0, 5.0)),
            deaths=self._random.choice((0.0, 0.002, 0.01)),
        )
        rates = {
            fault: rate * (weather.jumps if fault is Fault.CLOCK_JUMP else weather.storms)
            for fault, rate in RATES.items()
        }
        self._faults = [SeededFaults(self._random.getrandbits(32), rates) for _ in range(self.processes)]
        self._scheduler = Scheduler(self._random.getrandbits(32), self._clock, deadly=weather.deaths)

    def run(self, tally: Tally) -> None:
        """Run and check; a failure says the seed and the history."""
        with seeded_randomness(self.seed), patch.object(staging, "CONFLICTS", self.conflicts):
            setup = self._open(SimulatedStore(memory=self._memory, clock=self._clock, slots=self._keyspace.slots))
            self._run_clients(setup)
        self._count(tally)

    def _run_clients(self, setup: Store) -> None:
        """Create the queues, run all clients, and check."""
        for name, kind in self.queues.items():
            setup.create_queue(name, kind=kind)
        for _ in range(self.threads):
            self._scheduler.spawn(self._work)
        try:
            self._scheduler.run()
            self._check(setup)
        except Exception as error:
            error.add_note(f"Replay with PQ_SCHEDULE_SEED={self.seed}. The history:\n{self.history}")
            raise

    # Clients

    def _work(self, client: Client) -> None:
        program = random.Random(self.seed * CLIENTS + client.number)
        process: Process | None = None
        left = OPERATIONS
        while left:
            try:
                if process is None:
                    process = self._start(client)
                left -= 1
                self._call(process, program)
            except Killed:
                # Another process takes over from here: it knows nothing of this one's slots.
                client.dead = False
                process = None

    def _call(self, process: "Process", program: random.Random) -> None:
        Call(self, process, program).run()

    def _start(self, client: Client) -> "Process":
        while True:
            try:
                store = self._connect(client)
                return Process(client=client, store=store, queues={name: store.queue(name) for name in QUEUES})
            except TransactionTooOld:
                continue  # the clock jumped while the store was opened

    def _connect(self, client: Client) -> Store:
        faults = self._faults[client.number]

        def schedule(point: Point) -> None:
            self._scheduler.at(client, point)

        kv = SimulatedStore(
            memory=self._memory,
            clock=self._clock,
            sleep=lambda seconds: self._scheduler.at(client, None),
            faults=faults,
            slots=self._keyspace.slots,
            schedule=schedule,
        )
        return self._open(kv, JumpingClock(self._clock, faults))

    def _open(self, kv: SimulatedStore, clock: Callable[[], float] | None = None) -> Store:
        return Store(
            kv,
            url="memory:",
            keyspace=self._keyspace,
            clock=clock or self._clock,
            background_threads=WithoutHeartbeats(),
        )

    def tick(self) -> int:
        """Return the next moment."""
        return self._scheduler.tick()

    # The end

    def _check_history(self, store: Store) -> dict[str, list[bytes]]:
        """Check the history against what the queues hold at the end, and return that."""
        final = {name: self.history.saw(name, store.queue(name).items(limit=1_000).items) for name in self.queues}
        self.history.check(final)
        return final

    def _check(self, store: Store) -> None:
        self._clock.advance(EVERYTHING_LANDED)
        final = self._check_history(store)
        assert len(self._memory.late) == 0
        for name in self.queues:
            assert check_full_count(store, store.queue(name)) == len(final[name])
            traffic = store.queue(name).totals().traffic
            popped, unseen = self.history.expected_pops(final, name)
            counted = traffic.get("pop", 0) + traffic.get("lease", 0)
            if counted < popped or (counted > popped and not unseen):
                raise Violation(f"{popped} items of {name} were taken, {counted} were counted")

    def _count(self, tally: Tally) -> None:
        tally.schedules += 1
        tally.operations += len(self.history.operations)
        tally.switches += self._scheduler.switches
        tally.kills += self._scheduler.kills
        tally.conflicts += self._memory.history.refused
        tally.late_applied += self._memory.late.applied
        tally.late_refused += self._memory.late.refused
        for faults in self._faults:
            tally.faults += faults.counts
        tally.outcomes.update(self.outcomes)

    @property
    def outcomes(self) -> Counter[str]:
        """How the operations ended."""
        return Counter(operation.outcome for operation in self.history.operations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A client from one start to its death: its open store and its handles."""

    client: Client
    store: Store
    queues: dict[str, Queue]


class Call:
    """One operation of one client."""

    verbs: Mapping[str, int] = VERBS

    def __init__(self, schedule: Schedule, process: Process, program: random.Random) -> None:
        self._schedule = schedule
        self._history = schedule.history
        self._process = process
        self._store = process.store
        self._random = program
        self._verb = program.choices(list(self.verbs), list(self.verbs.values()))[0]
        self._queue = program.choice(list(schedule.queues))
        self._end = program.choice(("min", "max")) if schedule.queues[self._queue] == "priority" else "min"

    def run(self) -> None:
        """Do it, and note how it ended."""
        handle = self._process.queues[self._queue]
        operation = self._history.add(self._process.client.number, self._verb, self._schedule.tick())
        try:
            getattr(self, f"_{self._verb}")(operation, handle)
        except OutcomeUnknown:
            operation.outcome = "unknown"
        except Killed:
            operation.outcome = "killed"
            raise
        except (*NOT_DONE, OnPurpose):
            operation.done = None
            operation.outcome = "not done"
        else:
            operation.done = True
            operation.ended = self._schedule.tick()
            empty = operation.takes and not any(take.values for take in operation.takes)
            operation.outcome = "empty" if empty else "done"

    def _value(self, operation: Operation, at: int) -> tuple[bytes, int]:
        """Return an item to push, its value unlike any other and telling its priority."""
        priority = self._random.randint(-2, 2)
        value = b"%d.%d:%d" % (operation.number, at, priority)
        operation.puts.append(Put(queue=self._queue, value=value))
        return value, priority

    def _push(self, operation: Operation, queue: Queue) -> None:
        value, priority = self._value(operation, 0)
        pushed = queue.enqueue(value) if queue.kind == "fifo" else queue.push(value, priority=priority)
        self._history.saw(self._queue, [pushed])

    def _push_many(self, operation: Operation, queue: Queue) -> None:
        entries = [self._value(operation, at) for at in range(self._random.randint(2, 3))]
        self._history.saw(self._queue, _put(queue, entries))

    def _pop(self, operation: Operation, queue: Queue) -> None:
        take = Take(queue=self._queue, end=self._end)
        operation.takes.append(take)
        one = queue.dequeue if queue.kind == "fifo" else queue.pop_min if self._end == "min" else queue.pop_max
        item = one()
        take.values = self._history.saw(self._queue, [item] if item else [])

    def _pop_many(self, operation: Operation, queue: Queue) -> None:
        take = Take(queue=self._queue, end=self._end, n=self._random.randint(2, 3))
        operation.takes.append(take)
        take.values = self._history.saw(self._queue, _take(queue, take.n, self._end))

    def _move(self, operation: Operation, queue: Queue) -> None:
        """Take from one queue and push to another, in one transaction."""
        target_name = self._random.choice([name for name in self._schedule.queues if name != self._queue])
        target = self._process.queues[target_name]
        priority = self._random.randint(-2, 2)
        take = Take(queue=self._queue, end=self._end)
        operation.takes.append(take)
        tried: set[bytes] = set()

        def work(tr: Transaction) -> tuple[list[Item], list[Item]]:
            taken = _take(queue, 1, self._end, tr)
            self._history.saw(self._queue, taken)  # it was there, whatever happens to this try
            values = [item.value + b">%d" % operation.number for item in taken]
            tried.update(values)
            return taken, _put(target, [(value, priority) for value in values], tr)

        try:
            taken, pushed = self._store.transact(work)
        except BaseException:
            # Any of the tries may be the one that was applied; at most one of these values is ever seen.
            operation.puts = [Put(queue=target_name, value=value) for value in sorted(tried)]
            raise
        take.values = self._history.saw(self._queue, taken)
        operation.puts = [Put(queue=target_name, value=item.value) for item in pushed]
        self._history.saw(target_name, pushed)

    def _abort(self, operation: Operation, queue: Queue) -> None:
        """Take everything and push something, and change one's mind."""

        def work(tr: Transaction) -> None:
            _take(queue, 100, self._end, tr)
            _put(queue, [(b"undone", 0)], tr)
            raise OnPurpose

        self._store.transact(work)

    def _look(self, operation: Operation, queue: Queue) -> None:
        """Whatever is read at one version agrees."""
        page, status, depth = self._store.read(
            lambda tr: (queue.items(limit=1_000, tr=tr), queue.status(tr=tr), queue.depth(tr=tr))
        )
        values = [item.value for item in page.items]
        ends = [status.min and status.min.value, status.max and status.max.value]
        assert depth == status.totals.ready == len(values) == len(set(values)), f"{depth} at {status}: {values}"
        assert ends == ([values[0], values[-1]] if values else [None, None]), f"{ends} at {status}: {values}"
        assert not status.drift, f"the counters drift at {status}"

    def _wait(self, operation: Operation, queue: Queue) -> None:
        """No wake-up is lost: when the time is up, nothing has changed."""
        snapshot = self._store.snapshot([queue.id])
        if not self._store.wait_for_change(snapshot, timeout=self._random.choice((0.01, 0.2))):
            kv = self._store.context.kv
            assert isinstance(kv, SimulatedStore)
            newest = kv.memory.history.latest(self._store.context.keyspace.queue(queue.id).change)
            assert int.from_bytes(newest or b"", "little") == snapshot.changes[queue.id], "a wake-up was lost"


def _put(queue: Queue, entries: list[tuple[bytes, int]], tr: Transaction | None = None) -> list[Item]:
    if queue.kind == "fifo":
        return queue.enqueue_many([value for value, _ in entries], tr=tr)
    return queue.push_many(entries, tr=tr)


def _take(queue: Queue, n: int, end: str, tr: Transaction | None = None) -> list[Item]:
    return queue.dequeue_many(n, tr=tr) if queue.kind == "fifo" else queue.pop_many(n, end=end, tr=tr)


def seeds(schedules: int, variable: str = "PQ_SCHEDULES") -> Iterable[int]:
    """Return the seeds of so many schedules, unless the environment says how many, or names the one of a failure."""
    one = os.environ.get("PQ_SCHEDULE_SEED")
    return range(int(os.environ.get(variable, schedules))) if one is None else [int(one)]


def noticed(schedule: Callable[[int], Schedule], within: Iterable[int], *, says: str = "") -> str:
    """Run schedules of these seeds until one fails, saying this; return what it said."""
    for seed in within:
        try:
            schedule(seed).run(Tally())
        except (AssertionError, ValueError, KeyError, AttributeError) as error:
            if says in str(error):
                return f"seed {seed}: {error}"
    return ""


def without_conflict(dropped: Callable[[bytes], bool]) -> Callable[[SimulatedTransaction, bytes], None]:
    """Return an `add_read_conflict_key` that forgets some keys."""
    add = SimulatedTransaction.add_read_conflict_key

    def forget(tr: SimulatedTransaction, key: bytes) -> None:
        if not dropped(key):
            add(tr, key)

    return forget
