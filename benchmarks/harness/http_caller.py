"""Clients of an HTTP server in a process of their own: keep-alive connections that push and pop by turns.

    python -m benchmarks.harness.http_caller < PLAN

Raw sockets and requests made beforehand, so that the clients take little of the processors that the server needs.
"""

import asyncio
import base64
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

_ROOT = Path(__file__).resolve().parents[2]
#: Seconds of warming up, as a part of those that count.
_WARM_PART = 0.25
_PATIENCE = 30.0


class Pair(NamedTuple):
    """The requests of one turn of a client: a push and a pop, with an answer that holds the text `sign`."""

    push: Sequence[bytes]
    pop: bytes
    sign: bytes


class Answered(NamedTuple):
    """What clients were answered while it counted: pairs a second, and the milliseconds of each request, sorted."""

    rate: float
    pushes: list[float]
    pops: list[float]


def call(port: int, pair: Pair, *, clients: int, seconds: float) -> Answered:
    """Let so many clients push and pop for a while; exit when a request is refused."""
    encoded = [[base64.b64encode(each).decode() for each in pair.push]]
    encoded += [[base64.b64encode(each).decode()] for each in pair[1:]]
    plan = {"port": port, "clients": clients, "seconds": seconds, "pair": encoded}
    command = [sys.executable, "-m", "benchmarks.harness.http_caller"]
    done = subprocess.run(command, cwd=_ROOT, input=json.dumps(plan), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return Answered(*json.loads(done.stdout))


def request(
    method: str, path: str, body: object = None, *, host: str, content_type: str = "application/json", **headers: str
) -> bytes:
    """Return the bytes of a request."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    lines = {"Host": host, "Content-Type": content_type, "Content-Length": str(len(content)), **headers}
    head = "".join(f"{name}: {text}\r\n" for name, text in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content


class _Clients:
    """All clients, and what they were answered."""

    def __init__(self, pair: Pair, seconds: float) -> None:
        now = time.perf_counter()
        self.pair = pair
        self.pushes: Iterator[bytes] = cycle(pair.push)
        self.begin = now + seconds * _WARM_PART
        self.end = self.begin + seconds
        #: Milliseconds of pushes and of pops that ended while it counted.
        self.times: tuple[list[float], list[float]] = ([], [])
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.under_way = 0

    def fail(self, words: str) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(words))

    def left(self) -> None:
        self.under_way -= 1
        if not self.under_way and not self.done.done():
            self.done.set_result(None)


class _Client(asyncio.Protocol):
    """One connection: it sends a push, a pop, and so on, each after the answer to the one before."""

    def __init__(self, clients: _Clients) -> None:
        self._clients = clients
        self._answer = b""
        self._pops = True
        self._began = 0.0
        self._transport: Any = None
        clients.under_way += 1

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._next()

    def _next(self) -> None:
        self._pops = not self._pops
        self._answer = b""
        self._began = time.perf_counter()
        self._transport.write(self._clients.pair.pop if self._pops else next(self._clients.pushes))

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if not _complete(self._answer):
            return
        now, clients = time.perf_counter(), self._clients
        if self._answer[9:10] != b"2" or (self._pops and clients.pair.sign not in self._answer):
            clients.fail(f"answered with {self._answer[:2_000]!r}")
        if clients.begin <= now < clients.end:
            clients.times[self._pops].append(1_000 * (now - self._began))
        if self._pops and now >= clients.end:  # what was pushed is popped
            self._pops = False
            self._transport.close()
        else:
            self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if self._pops or error is not None:
            self._clients.fail(f"the server ended a connection: {error}")
        self._clients.left()


def _complete(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    lines = head.lower().split(b"\r\n")
    length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), None)
    return body.endswith(b"0\r\n\r\n") if length is None else len(body) >= length


async def _run(port: int, pair: Pair, clients: int, seconds: float) -> Answered:
    all_of_them = _Clients(pair, seconds)
    loop = asyncio.get_running_loop()
    for _ in range(clients):
        await loop.create_connection(lambda: _Client(all_of_them), "127.0.0.1", port)
    async with asyncio.timeout(seconds * (1 + _WARM_PART) + _PATIENCE):
        await all_of_them.done
    pushes, pops = map(sorted, all_of_them.times)
    return Answered((len(pushes) + len(pops)) / 2 / seconds, pushes, pops)


def main() -> None:
    """Do what the plan says and print what was answered."""
    plan = json.load(sys.stdin)
    push, pop, sign = ([base64.b64decode(text) for text in texts] for texts in plan["pair"])
    print(json.dumps(asyncio.run(_run(plan["port"], Pair(push, pop[0], sign[0]), plan["clients"], plan["seconds"]))))


if __name__ == "__main__":
    main()
