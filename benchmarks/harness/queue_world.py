"""One queue played on a store in memory with a given clock: producers, consumers, people, restarts.

Nothing here sleeps: hours pass in seconds. What a recorder would see is observed every few seconds.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random

from queues import Lease, Queue, Store, Transaction
from queues.consumers.consumer import sweep_consumers
from queues.consumers.presence import Presence
from queues.errors import NotForAttached, QueueUnreadable
from queues.health import Verdict, advance
from queues.history.recorder import Recorder
from queues.keys.keyspace import Keyspace
from queues.kv import open_kv
from queues.operations.pop import pop_request
from queues.serving.background import BackgroundThreads
from queues.status.health_observation import observation_of

#: Seconds between two observations, and between two things that happen.
TICK = 10
#: The first second, in the middle of a day.
_BEGIN = 1_790_000_000.0


class _Still(BackgroundThreads):
    """No threads: the player calls what they would do."""

    def start(self, work: Callable[[], None], name: str) -> None:
        """Do nothing."""


class World:
    """A store with one queue and the time of a scenario."""

    def __init__(self, seed: int, *, tells: bool = True) -> None:
        self.random = Random(seed)
        #: The seconds that have really passed, and by how much the clock is wrong.
        self.elapsed = 0
        self.skew = 0.0
        keyspace = Keyspace(("pq",))
        self.store: Store = Store(
            open_kv("memory:", slots=keyspace.slots),
            url="memory:",
            keyspace=keyspace,
            clock=lambda: _BEGIN + self.elapsed + self.skew,
            background_threads=_Still(),
        )
        self.queue: Queue = self.store.create_queue("jobs")
        self.person = self.store.actions("ana")
        #: Whether the upkeep is at work.
        self.watched = True
        #: Whether consumers tell of themselves: those of an older release do not; killed ones not any more.
        self.tells = tells
        self.killed = False
        #: The heartbeats of a second process.
        context = self.store.context
        self.other = Presence(context.kv, keyspace, context.clock, _Still())
        self._recorder: Recorder | None = None
        self._owed = 0.0
        self._held: list[tuple[int, Lease]] = []

    def close(self) -> None:
        """Give the store up."""
        self.store.close()

    # Producers

    def push(self, n: int, *, priority: int = 5) -> None:
        """Push some items at once."""
        while n > 0:
            self.queue.push_many([(b"x", priority)] * min(n, 1_000))
            n -= 1_000

    def steadily(self, rate: float) -> int:
        """Return how many items of an even stream of `rate` a second belong to this tick."""
        self._owed += rate * TICK
        whole = int(self._owed + 1e-9)
        self._owed -= whole
        return whole

    def randomly(self, rate: float) -> int:
        """Return how many items of a random stream of `rate` a second belong to this tick."""
        mean, n, left = rate * TICK, 0, self.random.expovariate(1.0)
        while left < mean:
            n += 1
            left += self.random.expovariate(1.0)
        return n

    # Consumers

    def pop(self, n: int, *, end: str = "min") -> int:
        """Pop at most so many items."""
        self.killed = False
        left = n
        while left > 0:
            got = len(self.queue.pop_many(min(left, 1_000), end=end))
            left -= got
            if not got:
                break
        return n - left

    def pop_untold(self, n: int) -> None:
        """Pop as a process of an older release does, which does not tell of itself."""
        while n > 0:
            self.queue.opened.send(pop_request(self.queue.opened, min(n, 1_000), "min", None))
            n -= 1_000

    def wait(self) -> None:
        """Let a consumer wait for items from now on."""
        self.queue.opened.consumption.attend(self, lambda: 1, None)

    def lease(self, n: int, *, seconds: float, work: int) -> None:
        """Take at most so many leases, each of which is worked on for so many seconds."""
        self.killed = False
        if n > 0:
            self._held.extend((self.elapsed + work, each) for each in self.queue.lease_many(n, seconds=seconds))

    @property
    def at_work(self) -> int:
        """The leases that are worked on."""
        return len(self._held)

    def over(self) -> list[Lease]:
        """Return the leases that were worked on for long enough, which are worked on no more."""
        over = [lease for end, lease in self._held if end <= self.elapsed]
        self._held = [(end, lease) for end, lease in self._held if end > self.elapsed]
        return over

    def finish(self) -> None:
        """Acknowledge what was worked on for long enough."""
        done = self.over()
        if done:
            self.queue.ack_many(done)

    def fail(self, *, share: float = 1.0, delay_of: Callable[[str], float | None] = lambda item_id: None) -> None:
        """Give back a share of what was worked on, each item after a delay, and acknowledge the rest."""
        failed, done = [], []
        for lease in self.over():
            if self.random.random() < share:
                failed.append((lease, delay_of(lease.item.id)))
            else:
                done.append(lease)

        def give_back(tr: Transaction) -> None:
            for lease, delay in failed:
                self.queue.release(lease, reason="it failed", count_attempt=False, delay=delay, tr=tr)

        if failed:
            self.store.transact(give_back)
        if done:
            self.queue.ack_many(done)

    def extend(self, seconds: float) -> None:
        """Extend all leases that are worked on."""
        for _, lease in self._held:
            self.queue.extend(lease, seconds=seconds)

    def die(self) -> None:
        """Let all consumers be killed, with what they hold."""
        self.killed = True
        self._held.clear()

    # Time

    def restart(self) -> None:
        """Continue the upkeep in another process, which knows nothing but what is in the store."""
        self._recorder = None

    def tick(self) -> Verdict | None:
        """Let ten seconds pass, and return the verdict; None while the upkeep is away."""
        self.elapsed += TICK
        if self.tells:
            if not self.killed:
                self.store.context.presence.beat()
            self.other.beat()
        if not self.watched:
            return None
        with suppress(NotForAttached, QueueUnreadable):
            while self.queue.promote(1_000):
                pass
            self.queue.expire(1_000)
        context = self.store.context
        sweep_consumers(context.kv, context.keyspace, now_ms=context.clock.now_ms())
        if self._recorder is None:
            self._recorder = self.store.recorder(count=lambda: float(self.elapsed))
        self._recorder.look()
        self._recorder.flush()
        status = self.store.snapshot([self.queue.id], tolerant=True).queues[self.queue.id]
        seen = observation_of(status, self.store.now().timestamp())
        targets = self.store.targets.rules().targets(status.name, status.limits)
        return advance(status.health, seen, targets).verdict

    def items(self, n: int) -> Iterable[str]:
        """Return the ids of the first items."""
        return [item.id for item in self.queue.peek_many(n)]
