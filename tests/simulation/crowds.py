"""Seeded schedules of processes with several threads each, which take from the same queues while everything goes wrong.

What `schedules` does with one thread a process; here the threads of a process are served together, and processes that
keep conflicting take for each other. A killed process dies with all its threads, whatever they were doing.
"""

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from queues import Lease, Queue, Store
from queues.background.unclaimed_staging import KEPT_MS
from queues.errors import TransactionTooOld
from queues.kv.simulated import JumpingClock, Point, SimulatedStore
from queues.serving.background import BackgroundThreads
from tests.simulation.history import Operation, Take, Violation
from tests.simulation.scheduler import Client, Killed
from tests.simulation.schedules import Call, Process, Schedule, Weather
from tests.sweeps import sweep_unclaimed

#: Processes, threads of each, operations of each thread.
PROCESSES, THREADS, OPERATIONS = 3, 2, 4
QUEUES = {"a": "priority", "f": "fifo"}
VERBS = {"push": 5, "push_many": 3, "pop": 9, "pop_many": 4, "lease": 4, "look": 1}
#: Much contention, and nothing else goes wrong; or processes die often.
CALM, DEADLY = Weather(storms=0.0, jumps=0.0, deaths=0.0), Weather(storms=0.3, jumps=0.0, deaths=0.006)


@dataclass(slots=True)
class Life:
    """One start of a process: what its threads share."""

    dead: bool = False
    process: Process | None = None
    starting: bool = False


class Threads(BackgroundThreads):
    """Threads that the scheduler interleaves with all the rest, and its time."""

    def __init__(self, crowd: "Crowd", life: Life) -> None:
        self._crowd = crowd
        self._life = life

    def start(self, work: Callable[[], None], name: str) -> None:
        """Add a thread to the process; heartbeats of consumers have no part in these schedules."""
        if name == "pq-consumers":
            return

        def run(client: Client) -> None:
            self._crowd.enter(client, self._life)
            with suppress(Killed):
                work()

        self._crowd.spawn_now(run)

    def sleep(self, seconds: float) -> None:
        """Let other callers go first."""
        self._crowd.yield_to_others(None)

    def now(self) -> float:
        """Return the schedule's time."""
        return self._crowd.clock()


class Crowd(Schedule):
    """One schedule of several threads a process."""

    queues = QUEUES
    processes = PROCESSES
    threads = PROCESSES * THREADS
    #: Processes take for each other after the first conflict.
    conflicts = 1

    def __init__(self, seed: int, weather: Weather | None = None) -> None:
        super().__init__(seed, weather or self._weather(seed))
        self.clock = self._clock
        #: Items that vanished processes had asked for and no caller took.
        self.unclaimed = 0
        self._lives = [self._new_life() for _ in range(PROCESSES)]
        self._own = threading.local()
        #: The life that a thread lives in.
        self._life_of: dict[int, Life] = {}

    @staticmethod
    def _weather(seed: int) -> Weather:
        drawn = random.Random(seed)
        return Weather(
            storms=drawn.choice((0.0, 0.3, 1.0)),
            jumps=drawn.choice((0.0, 0.0, 1.0)),
            deaths=drawn.choice((0.0, 0.001, 0.004)),
        )

    # The end

    def _check(self, store: Store) -> None:
        """What vanished processes left comes to the trash, and nothing else is there."""
        self._clock.advance(2 * KEPT_MS / 1000)
        self.unclaimed += sweep_unclaimed(store)
        taken = {value for o in self.history.operations if o.done for take in o.takes for value in take.values or ()}
        for entry in store.trash.entries(limit=1_000).entries:
            if entry.item.value in taken:
                raise Violation(f"twice: {entry.item.value!r} was taken, and is in the trash")
        for name in self.queues:
            keys = store.queue(name).opened.keys
            left = store.read(
                lambda tr, keys=keys: (
                    tr.get_range(*keys.requests.all, limit=9).wait() + tr.get_range(*keys.results.all, limit=9).wait()
                )
            )
            assert left == [], f"left of staging: {left}"
        super()._check(store)

    # Threads

    def spawn_now(self, work: Callable[[Client], None]) -> None:
        """Add a client while the schedule runs."""
        scheduler = self._scheduler
        scheduler.spawn(work)
        scheduler.alive.append(scheduler.clients[-1])

    def enter(self, client: Client, life: Life) -> None:
        """Let the thread that runs live in this process from here."""
        self._own.client = client
        self._life_of[client.number] = life
        client.dead = life.dead

    def yield_to_others(self, point: Point | None) -> None:
        """Let another client go first, or die with the whole process."""
        client: Client = self._own.client
        life = self._life_of[client.number]
        client.dead = life.dead
        try:
            self._scheduler.at(client, point)
        except Killed:
            life.dead = True
            raise
        if life.dead:
            raise Killed

    def _work(self, client: Client) -> None:
        number = client.number % PROCESSES
        program = random.Random(self.seed * 1_000 + client.number)
        self._own.client = client
        self._life_of[client.number] = self._new_life()
        left = OPERATIONS
        while left:
            try:
                process = self._enter_process(client, number)
                left -= 1
                self._call(process, program)
            except Killed:
                client.dead = False

    def _call(self, process: Process, program: random.Random) -> None:
        CrowdCall(self, process, program).run()

    def _new_life(self) -> Life:
        return Life()

    def _enter_process(self, client: Client, number: int) -> Process:
        """Return the process as it runs now; the first thread that finds it dead starts it again."""
        while True:
            life = self._lives[number]
            if life.dead:
                life = self._lives[number] = self._new_life()
            self.enter(client, life)
            if life.process is not None:
                return life.process
            if not life.starting:
                life.starting = True
                try:
                    life.process = self._begin(client, number, life)
                finally:
                    life.starting = False
            else:
                self.yield_to_others(None)

    def _begin(self, client: Client, number: int, life: Life) -> Process:
        while True:
            try:
                kv = SimulatedStore(
                    memory=self._memory,
                    clock=self._clock,
                    sleep=lambda seconds: self.yield_to_others(None),
                    faults=self._faults[number],
                    slots=self._keyspace.slots,
                    schedule=self.yield_to_others,
                    start=Threads(self, life).start,
                )
                clock = JumpingClock(self._clock, self._faults[number])
                store = Store(
                    kv, url="memory:", keyspace=self._keyspace, clock=clock, background_threads=Threads(self, life)
                )
                return Process(client=client, store=store, queues={name: store.queue(name) for name in QUEUES})
            except TransactionTooOld:
                continue  # the clock jumped while the store was opened


class CrowdCall(Call):
    """One operation of one thread."""

    verbs = VERBS

    def _lease(self, operation: Operation, queue: Queue) -> list[Lease]:
        """A take like a pop, as far as order and other callers are concerned."""
        take = Take(queue=self._queue, end=self._end, n=self._random.randint(1, 2))
        operation.takes.append(take)
        leases = queue.lease_many(take.n, seconds=1e6, end=self._end)
        take.values = self._history.saw(self._queue, [lease.item for lease in leases])
        return leases
