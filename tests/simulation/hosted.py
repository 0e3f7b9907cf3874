"""Seeded schedules of processes that share an embedded store, one of which hosts it, while everything goes wrong.

Each process has the engine, the host and the connections of the embedded store. Simulated are the parts below: one
LMDB file whose write lock goes round, sockets of which any operation lets other threads go first, and one clock of the
machine. A process dies at any step and takes its descriptors with it; it is suspended while the rest go on, perhaps for
hours; sockets take parts of what is sent; commits fail.
"""

from __future__ import annotations

import errno
import logging
import random
import select
import shutil
import socket
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import lmdb

from queues import Lease, Queue, Store
from queues.errors import OutcomeUnknown, StaleLease
from queues.kv.bells import Bell
from queues.kv.embedded import host, host_client, host_election, transaction
from queues.kv.embedded.environment import Outcome
from queues.kv.embedded.space_limit import SpaceLimit
from queues.kv.embedded.store import EmbeddedStore, Engine
from queues.kv.embedded.transaction import Batch
from queues.kv.port import Count
from queues.kv.simulated import Point, ScheduledBell
from queues.serving.background import BackgroundThreads
from queues.serving.clock import StoreClock
from tests.full_count import check_full_count
from tests.simulation.crowds import Crowd, CrowdCall, Life, Threads
from tests.simulation.history import Operation, Violation
from tests.simulation.scheduler import Client, Killed, Scheduler, seeded_randomness
from tests.simulation.schedules import NOT_DONE, Process, Tally, Weather, WithoutHeartbeats

QUEUES = {"a": "priority", "f": "fifo"}
VERBS = {"push": 6, "push_many": 2, "pop": 7, "pop_many": 2, "acknowledge": 5, "move": 1, "look": 1}
OPERATIONS = 5
#: Seconds that a suspended process misses, and by which the machine's clock is ahead afterwards.
MISSED, JUMPS = (0.3, 1.5, 3.0), (0.0, 0.0, 0.0, 1_000.0, 2_000.0, 4_000.0)
MAP_BYTES = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """How likely it is that a process dies or is suspended at a step, a send is cut short, a commit fails."""

    deaths: float = 0.0
    #: After a commit, before its answers; and when a caller was waiting.
    deaths_of_hosts: float = 0.0
    suspensions_of_callers: float = 0.0
    suspensions: float = 0.0
    cuts: float = 0.0
    failures: float = 0.0
    #: Seconds of each step, about.
    step: float = 0.005


@dataclass(slots=True)
class HostedLife(Life):
    """One start of a process, and what the system knows of it."""

    sockets: weakref.WeakSet[socket.socket] = field(default_factory=weakref.WeakSet)
    #: It runs again at this time.
    suspended: float = 0.0
    #: The share of a processor that its other threads use.
    busy: float = 0.0


class Disk:
    """The LMDB file of all processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = lmdb.open(str(folder), map_size=MAP_BYTES, max_readers=1_024, sync=False, metasync=False)
        self._writing: lmdb.Transaction[bytes] | None = None

    def begin_write(self, wait: Callable[[], None]) -> lmdb.Transaction[bytes]:
        """Begin the write transaction once the last one has ended."""
        while self._writing is not None and not _is_over(self._writing):
            wait()
        self._writing = self.env.begin(write=True)
        return self._writing


def _is_over(txn: lmdb.Transaction[bytes]) -> bool:
    try:
        txn.id()
    except lmdb.Error:
        return True
    return False


class HostedEnvironment:
    """What one process has of the file: see `Environment`."""

    def __init__(self, schedule: Hosted, disk: Disk) -> None:
        self._schedule, self._disk = schedule, disk
        self.folder, self.path = disk.folder, str(disk.folder)
        self.room = 1 << 40
        self.space = SpaceLimit(self.path, 1 << 40, lambda: (0, 0))
        self._outcome = Outcome.NOT_DONE

    def begin_read(self) -> lmdb.Transaction[bytes]:
        """Begin a read transaction."""
        self._schedule.point(Point.READ)
        return self._disk.env.begin()

    def end_read(self, txn: lmdb.Transaction[bytes]) -> None:
        """End it."""
        txn.abort()

    def last_txnid(self) -> int:
        """Return the number of the last commit."""
        return self._disk.env.info()["last_txnid"]

    def check_file(self) -> None:
        """Do nothing: the file stays where it is."""

    def begin_write(self) -> lmdb.Transaction[bytes]:
        """Begin the write transaction; then a step, with the write lock held."""
        self._schedule.point(Point.BEGIN)
        txn = self._disk.begin_write(lambda: self._schedule.point(None))
        try:
            self._schedule.point(Point.BEGIN)
        except BaseException:
            txn.abort()
            raise
        return txn

    def end_write(self) -> None:
        """Do nothing: the lock is free."""

    def seal(self, batch: Batch) -> None:
        """Write what is left to be written."""
        batch.flush_all()

    def others_write(self) -> bool:
        """Say that another process may have the write lock."""
        return True

    def commit(self, batch: Batch) -> None:
        """Commit, or fail: before or after it was done, known or not."""
        schedule = self._schedule
        schedule.point(Point.COMMIT)
        failed = schedule.happens("a commit fails", schedule.trouble.failures)
        if failed:
            self._outcome = schedule.chance.choice(tuple(Outcome))
        if (
            not failed
            or self._outcome is Outcome.DONE
            or schedule.chance.random() < 0.5 * (self._outcome is Outcome.UNKNOWN)
        ):
            batch.txn.commit()
            schedule.point(Point.ANSWER)
        if failed:
            raise lmdb.Error("the disk failed")

    def settle(self, error: BaseException, batch: Batch) -> Outcome:
        """Return the outcome of a commit that failed."""
        if isinstance(error, Killed):
            raise error
        batch.txn.abort()
        return self._outcome

    def close(self) -> None:
        """Do nothing."""


class HostedSocket(socket.socket):
    """A socket of a simulated process; each operation is a step."""

    schedule: Hosted

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.schedule.life.sockets.add(self)

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection."""
        accepted, address = super().accept()
        return HostedSocket(fileno=accepted.detach()), address

    def connect(self, address: Any) -> None:
        """Connect."""
        self.schedule.point(Point.WAIT)
        super().connect(address)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send, in two parts; what its reader does not take in time is not sent."""
        schedule, half = self.schedule, len(data) // 2
        schedule.point(Point.WAIT)
        super().sendall(data[:half])
        schedule.point(Point.WAIT)
        if schedule.happens("a message is cut off", schedule.trouble.cuts / 4):
            raise BlockingIOError(errno.EAGAIN, "it would block")
        super().sendall(data[half:])

    def send(self, data: Any, flags: int = 0) -> int:
        """Send as much as is taken now."""
        schedule = self.schedule
        schedule.point(Point.WAIT)
        if schedule.happens("a reply is cut short", schedule.trouble.cuts):
            if not (size := schedule.chance.randrange(len(data) + 1)):
                raise BlockingIOError(errno.EAGAIN, "it would block")
            data = data[:size]
        return super().send(data)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Take what has come, something at least: it was waited for."""
        self.schedule.point(Point.WAIT)
        return super().recv(size, socket.MSG_DONTWAIT)

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0) -> int:
        """Take what has come."""
        self.schedule.point(Point.WAIT)
        return super().recv_into(buffer)


class HostedPoll:
    """What a caller sleeps on until its host replies, by the machine's clock."""

    schedule: Hosted

    def __init__(self) -> None:
        self._poll = select.poll()
        self.register = self._poll.register

    def poll(self, milliseconds: float) -> list[tuple[int, int]]:
        """Return what has happened; let other threads go first, for so long at most."""
        schedule = self.schedule
        schedule.point(Point.WAIT)
        until = schedule.clock() + milliseconds / 1_000
        try:
            while not (happened := self._poll.poll(0)) and milliseconds:
                if schedule.clock() > until:
                    schedule.seen["a caller waits in vain"] += 1
                    break
                schedule.point(None)
            return happened
        finally:
            schedule.point(Point.WATCH)


class HostedEpoll:
    """What the thread of a host sleeps on: it lets other threads go first."""

    schedule: Hosted

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.register, self.modify, self.unregister = self._epoll.register, self._epoll.modify, self._epoll.unregister

    def __enter__(self) -> HostedEpoll:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def poll(self, seconds: float) -> list[tuple[int, int]]:
        """Return what has happened, after one step of another thread."""
        self.schedule.point(None)
        if events := self._epoll.poll(0):
            self.schedule.point(Point.WAIT)
        return events

    def close(self) -> None:
        """Close."""
        self._epoll.close()


class HostedThreads(Threads):
    """Threads of a process: a dead one starts none, whatever waits for them."""

    def __init__(self, schedule: Hosted, life: Life) -> None:
        super().__init__(schedule, life)
        self._dead = lambda: life.dead

    def start(self, work: Callable[[], None], name: str) -> None:
        """Start work in a thread."""
        if self._dead():
            raise Killed
        super().start(work, name)


class Hosted(Crowd):
    """One schedule of processes that share a store."""

    queues = QUEUES

    def __init__(self, seed: int, trouble: Trouble | None = None) -> None:
        drawn = random.Random(seed)
        self.trouble = trouble or Trouble(
            deaths=drawn.choice((0.0, 0.002, 0.008)),
            deaths_of_hosts=drawn.choice((0.0, 0.1)),
            suspensions_of_callers=drawn.choice((0.0, 0.1)),
            suspensions=drawn.choice((0.0, 0.002, 0.008)),
            cuts=drawn.choice((0.0, 0.5, 0.9)),
            failures=drawn.choice((0.0, 0.0, 0.1)),
            step=drawn.choice((0.002, 0.02)),
        )
        self.chance = random.Random(drawn.getrandbits(32))
        super().__init__(seed, Weather(storms=0.0, jumps=0.0, deaths=self.trouble.deaths))
        self._scheduler = Scheduler(
            drawn.getrandbits(32), self.clock, deadly=self.trouble.deaths, step=self.trouble.step
        )
        #: What happened, and how often.
        self.seen: Counter[str] = Counter()
        #: Values of items that were acknowledged.
        self.acknowledged: set[bytes] = set()
        self._working = self.threads
        self._setup = HostedLife()

    @property
    def life(self) -> HostedLife:
        """The process that the calling thread is of."""
        life = self._life_of[self._own.client.number] if self._running() else self._setup
        assert isinstance(life, HostedLife)
        return life

    def happens(self, what: str, rate: float) -> bool:
        """Draw whether something goes wrong now."""
        if not (self._running() and self.chance.random() < rate):
            return False
        self.seen[what] += 1
        return True

    def point(self, point: Point | None) -> None:
        """Let other threads go first; the process may die here, or be suspended."""
        if not self._running():
            return
        life = self.life
        if life.dead:
            raise Killed
        trouble = self.trouble
        if point is Point.ANSWER and self.happens("a process dies after a commit", trouble.deaths_of_hosts):
            self._scheduler.kills += 1
            life.dead = True
        rate = trouble.suspensions_of_callers if point is Point.WATCH else trouble.suspensions
        if point is not None and self.happens("a process is suspended", rate):
            jump = self.chance.choice(JUMPS)
            self.seen["the machine's clock jumps"] += bool(jump)
            self.clock.advance(jump)
            life.suspended = self.clock() + self.chance.choice(MISSED)
        try:
            self.yield_to_others(point)
            while life.suspended > self.clock() and self._working:
                self.yield_to_others(None)
        except Killed:
            for each in tuple(life.sockets):  # as the system does
                each.close()
            raise

    def run(self, tally: Tally) -> None:
        """Run and check; a failure says the seed and the history."""
        folder = Path(tempfile.mkdtemp())
        disk = Disk(folder)
        try:
            with seeded_randomness(self.seed), self._system():
                self._disk = disk
                self._run_clients(self._store(WithoutHeartbeats()))
        finally:
            disk.env.close()
            shutil.rmtree(folder)
        self._count(tally)

    @contextmanager
    def _system(self) -> Iterator[None]:
        """Replace what the modules of hosting use of the system."""
        clock = SimpleNamespace(
            monotonic=self.clock,
            process_time=lambda: self.life.busy * (self.clock() - 1_800_000_000.0),
            thread_time=lambda: 0.0,
            sleep=lambda seconds: self.point(None),
        )
        HostedSocket.schedule = HostedEpoll.schedule = HostedPoll.schedule = self
        sockets = SimpleNamespace(**{**vars(socket), "socket": HostedSocket})
        sleeping = SimpleNamespace(**{**vars(select), "epoll": HostedEpoll, "poll": HostedPoll})
        with ExitStack() as replaced:
            replaced.callback(logging.disable, logging.root.manager.disable)
            logging.disable(logging.CRITICAL)  # of what a dying process sees
            for module in (host, host_client, host_election):
                replaced.enter_context(patch.object(module, "time", clock))
            for module in (host, host_client):
                replaced.enter_context(patch.object(module, "socket", sockets))
                replaced.enter_context(patch.object(module, "boottime", self.clock))
                replaced.enter_context(patch.object(module, "select", sleeping))
            # By the real clock, it would depend on the machine which functions share a commit.
            replaced.enter_context(patch.object(transaction, "MAX_SECONDS", 1e9))
            yield

    def _running(self) -> bool:
        return getattr(self._own, "client", None) is not None

    def _store(self, threads: BackgroundThreads) -> Store:
        """Open the store in a process."""
        environment: Any = HostedEnvironment(self, self._disk)
        engine = Engine(
            environment,
            clock=lambda: 0.0,
            start=threads.start,
            bell=partial(ScheduledBell, self.point) if self._running() else Bell,
        )
        engine.openers += 1
        kv = EmbeddedStore(engine, "lmdb:")
        clock = StoreClock(
            kv,
            self._keyspace,
            wall=lambda: 1_800_000_000.0,
            count=lambda: Count(epoch="simulated", micros=0),
            elapsed=lambda: 0.0,
            background_threads=threads,
        )
        return Store(kv, url="lmdb:", keyspace=self._keyspace, clock=clock, background_threads=threads)

    # Processes

    def _new_life(self) -> HostedLife:
        return HostedLife(busy=self.chance.choice((0.0, 0.0, 1.0)))

    def _begin(self, client: Client, number: int, life: Life) -> Process:
        store = self._store(HostedThreads(self, life))
        return Process(client=client, store=store, queues={name: store.queue(name) for name in self.queues})

    def _work(self, client: Client) -> None:
        try:
            super()._work(client)
        finally:
            self._working -= 1
            if not self._working:  # the machine is switched off
                for life in self._lives:
                    life.dead = True

    def _call(self, process: Process, program: random.Random) -> None:
        HostedCall(self, process, program).run()

    def _check(self, store: Store) -> None:
        """Nothing is lost, doubled, or leased that was acknowledged; the history is linearizable."""
        self._check_history(store)
        for name in self.queues:
            for item in store.queue(name).leased(limit=1_000).items:
                if item.raw in self.acknowledged:
                    raise Violation(f"{item.raw!r} was acknowledged, and is leased")
            check_full_count(store, store.queue(name))


class HostedCall(CrowdCall):
    """One operation of one thread."""

    verbs = VERBS

    def __init__(self, schedule: Hosted, process: Process, program: random.Random) -> None:
        super().__init__(schedule, process, program)
        self._hosted = schedule
        self._leases: list[Lease] = []

    def run(self) -> None:
        """Do it, and acknowledge what was leased."""
        super().run()
        for lease in self._leases:
            try:
                self._process.queues[self._queue].ack(lease)
            except StaleLease as error:
                raise Violation(f"{lease.item.raw!r} was acknowledged twice, or its lease is lost") from error
            except (*NOT_DONE, OutcomeUnknown):
                continue
            self._hosted.acknowledged.add(lease.item.raw)

    def _acknowledge(self, operation: Operation, queue: Queue) -> None:
        """Take by leases: to the rest, that is a pop."""
        self._leases = self._lease(operation, queue)
