"""Interleaves clients on one thread at a time, by a seed: the same seed gives the same history.

Each client runs in a thread of its own, and only the one that holds the baton runs. At every point where a simulated
store lets other callers go first the seed chooses the next client, or the client that holds the baton dies.
"""

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from queues.kv.simulated import Point
from tests.conftest import Clock


class Killed(BaseException):
    """The client's process died here; nothing that it does while this unwinds reaches the store."""


class Client:
    """One client's thread, and whether its process is alive."""

    def __init__(self, number: int, work: "Callable[[Client], None]") -> None:
        self.number = number
        self.dead = False
        self.failure: BaseException | None = None
        self._work = work
        self.baton = threading.Semaphore(0)
        self.thread = threading.Thread(target=self._run, name=f"client-{number}", daemon=True)
        self.finished: Callable[[Client], None] = lambda client: None

    def _run(self) -> None:
        self.baton.acquire()
        try:
            self._work(self)
        except BaseException as error:
            self.failure = error
        finally:
            self.finished(self)


class Scheduler:
    """Hands the baton round."""

    def __init__(self, seed: int, clock: Clock, *, deadly: float = 0.0, step: float = 0.005) -> None:
        self.clock = clock
        self.now = 0
        self.kills = 0
        self.switches = 0
        self._random = random.Random(seed)
        self._deadly = deadly
        self._step = step
        self.clients: list[Client] = []
        self._done = threading.Semaphore(0)

    def spawn(self, work: Callable[[Client], None]) -> None:
        """Add a client that does `work` once the schedule runs."""
        client = Client(len(self.clients), work)
        client.finished = self._finished
        self.clients.append(client)
        client.thread.start()

    def run(self) -> None:
        """Run every client to its end; raise the first failure."""
        alive = list(self.clients)
        self.alive = alive
        self._random.choice(alive).baton.release()
        self._done.acquire()
        for client in self.clients:
            client.thread.join()
        for client in self.clients:
            if client.failure is not None:
                raise client.failure

    def at(self, client: Client, point: Point | None) -> None:
        """Let another client go first, or die; `point` is None in a pause between two tries."""
        if client.dead:
            raise Killed
        self.clock.advance(self._random.random() * 2 * self._step)
        if point is not None and self._random.random() < self._deadly:
            client.dead = True
            self.kills += 1
            raise Killed
        chosen = self._random.choice(self.alive)
        if chosen is not client:
            self.switches += 1
            chosen.baton.release()
            client.baton.acquire()

    def tick(self) -> int:
        """Return the next moment of the history."""
        self.now += 1
        return self.now

    def _finished(self, client: Client) -> None:
        self.alive.remove(client)
        if self.alive:
            self._random.choice(self.alive).baton.release()
        else:
            self._done.release()


@contextmanager
def seeded_randomness(seed: int) -> Iterator[None]:
    """Draw what the operating system is asked for (ids, slots) from a seed, so that ties break alike."""
    drawn = random.Random(seed)
    urandom, original = drawn.randbytes, os.urandom
    os.urandom = urandom
    random._urandom = urandom  # noqa: SLF001 # the module's name for os.urandom  # its own name for the function
    try:
        yield
    finally:
        os.urandom = original
        random._urandom = original  # noqa: SLF001 # as above
