"""Callers of a peer's queue: threads or coroutines of one or more processes that work with it for a while."""

import asyncio
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection as Pipe
from typing import Any, NamedTuple

from benchmarks.peers import Client, Connection, Door, connect
from benchmarks.peers.peer import AsyncClient

SIZE = 100
#: Values of a `push_many` and of a `pop_many`.
MANY = 100
#: Seconds before counting begins, at most, and as a part of those that count.
_WARM, _WARM_PART = 0.3, 0.3
_PATIENCE = 600.0


class Run(NamedTuple):
    """What callers did for a while."""

    #: What each process did a second.
    rates: list[float]
    #: The seconds of every push of `pairs` by threads.
    pushes: list[float]

    @property
    def rate(self) -> float:
        """What all did a second."""
        return sum(self.rates)


class Team:
    """The processes that call one peer; each has its share of the callers."""

    def __init__(self, door: Door, processes: int, environment: Mapping[str, str]) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._pipes: list[Pipe] = []
        self._processes = []
        with _in_environment(environment):
            for number in range(processes):
                ours, theirs = spawning.Pipe()
                process = spawning.Process(target=_work, args=(door, number, theirs), daemon=True)
                process.start()
                theirs.close()
                self._pipes.append(ours)
                self._processes.append(process)

    def run(self, work: str, callers: int, seconds: float) -> Run:
        """Let so many callers work together; return what they did."""
        share, over = divmod(callers, len(self._pipes))
        for number, pipe in enumerate(self._pipes):
            pipe.send((work, share + (number < over), seconds))
        answers = [self._answer(pipe) for pipe in self._pipes]
        return Run([rate for rate, _ in answers], [each for _, pushes in answers for each in pushes])

    def close(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join(_PATIENCE)

    @staticmethod
    def _answer(pipe: Pipe) -> tuple[float, list[float]]:
        if not pipe.poll(_PATIENCE):
            raise RuntimeError("a process of callers does not answer")
        rate, pushes, failure = pipe.recv()
        if failure:
            raise RuntimeError(failure)
        return rate, pushes


@contextmanager
def team(door: Door, processes: int, environment: Mapping[str, str] | None = None) -> Iterator[Team]:
    """Start a team and end it."""
    started = Team(door, processes, environment or {})
    try:
        yield started
    finally:
        started.close()


@contextmanager
def _in_environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _work(door: Door, number: int, pipe: Pipe) -> None:
    """Do what the pipe says until it says None."""
    connection: Connection = connect(door)
    clients: list[Client] = []
    coroutines: list[AsyncClient] = []
    with asyncio.Runner() as loop:
        while (job := pipe.recv()) is not None:
            work, callers, seconds = job
            pushes: list[float] = []
            try:
                if work == "idle":
                    rate = _idle(seconds)
                elif work == "coroutines":
                    rate = loop.run(_rate_of_coroutines(connection, coroutines, callers, seconds))
                else:
                    while len(clients) < callers:
                        clients.append(connection.client())
                    rate = _rate(_WORKS[work], clients[:callers], number, seconds, pushes)
                pipe.send((rate, pushes, ""))
            except Exception as error:
                pipe.send((0.0, [], f"{door.kind}: {error!r}"))
        for client in coroutines:
            loop.run(client.close())
    connection.close()


def _idle(seconds: float) -> float:
    """Return the share of a core that this process takes without calls."""
    used = time.process_time()
    time.sleep(seconds)
    return (time.process_time() - used) / seconds


class _Round:
    """What the threads of one round share."""

    def __init__(self, pushes: list[float]) -> None:
        self.going = True
        self.pushes = pushes


def _rate(work: Any, clients: list[Client], number: int, seconds: float, pushes: list[float]) -> float:
    """Let a thread work with each client; return what they do a second once they are warm."""
    state = _Round(pushes)
    done = [0] * len(clients)
    failed: list[BaseException] = []

    def call(place: int) -> None:
        try:
            work(clients[place], state, done, place, f"{number}:{place}:{time.monotonic_ns()}")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=call, args=(place,)) for place in range(len(clients))]
    for thread in threads:
        thread.start()
    time.sleep(min(_WARM, _WARM_PART * seconds))
    pushes.clear()
    before, start = sum(done), time.perf_counter()
    time.sleep(seconds)
    counted, seconds = sum(done) - before, time.perf_counter() - start
    state.going = False
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return counted / seconds


def _pairs(client: Client, state: _Round, done: list[int], place: int, caller: str) -> None:
    """Push one and pop one, again and again."""
    n = 0
    while state.going:
        start = time.perf_counter()
        client.push(value(caller, n), n % 1_000)
        state.pushes.append(time.perf_counter() - start)
        if client.pop() is None:
            raise RuntimeError("the queue ran empty")
        n += 1
        done[place] = n


def _leases(client: Client, state: _Round, done: list[int], place: int, caller: str) -> None:
    """Push one, lease one and acknowledge it, again and again."""
    n = 0
    while state.going:
        client.push(value(caller, n), n % 1_000)
        lease = client.lease()
        if lease is None:
            raise RuntimeError("the queue ran empty")
        client.ack(lease)
        n += 1
        done[place] = n


def _pops(client: Client, state: _Round, done: list[int], place: int, caller: str) -> None:
    """Pop again and again."""
    while state.going:
        if client.pop() is None:
            raise RuntimeError("the queue ran empty")
        done[place] += 1


def _pushes(client: Client, state: _Round, done: list[int], place: int, caller: str) -> None:
    """Push again and again."""
    while state.going:
        client.push(value(caller, done[place]), done[place] % 1_000)
        done[place] += 1


def _batches(client: Client, state: _Round, done: list[int], place: int, caller: str) -> None:
    """Push a hundred as one and pop a hundred as one; each pushed and each popped value counts."""
    n = 0
    while state.going:
        client.push_many([(value(caller, n + i), (n + i) % 1_000) for i in range(MANY)])
        done[place] += MANY
        taken = 0
        while taken < MANY:  # peers may give fewer while other processes take
            taken += client.pop_many(MANY - taken)
        n += MANY
        done[place] += taken


async def _rate_of_coroutines(
    connection: Connection, clients: list[AsyncClient], callers: int, seconds: float
) -> float:
    """Let so many coroutines push and pop pairs; return what they do a second once they are warm."""
    state = _Round([])
    done = [0] * callers
    while len(clients) < callers:
        clients.append(await connection.async_client())

    async def call(place: int) -> None:
        client, caller = clients[place], f"{place}:{time.monotonic_ns()}"
        n = 0
        while state.going:
            await client.push(value(caller, n), n % 1_000)
            if await client.pop() is None:
                raise RuntimeError("the queue ran empty")
            n += 1
            done[place] = n

    calls = [asyncio.create_task(call(place)) for place in range(callers)]
    await asyncio.sleep(min(_WARM, _WARM_PART * seconds))
    before, start = sum(done), time.perf_counter()
    await asyncio.sleep(seconds)
    rate = (sum(done) - before) / (time.perf_counter() - start)
    state.going = False
    await asyncio.gather(*calls)
    return rate


def value(caller: str, n: int) -> bytes:
    """Return a value that no other call pushes (a sorted set holds each value once)."""
    return f"{caller}:{n}:".encode().ljust(SIZE, b"x")


_WORKS = {"pairs": _pairs, "lease": _leases, "pops": _pops, "pushes": _pushes, "batches": _batches}
