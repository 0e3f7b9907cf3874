"""The HTTP API beside RabbitMQ's management API and a minimal application over PostgreSQL on the same Daphne.

    python -m benchmarks http [--quick] [--clients 1 16 64] [--seconds 3] [--rounds 5] [--items 1000000] [--folder DIR]

A client pushes a value of 100 bytes and pops the first, again and again, over one keep-alive connection, with a token
and JSON both ways; every answer is durable, but for the pops of RabbitMQ. All clients are coroutines of one process
with raw sockets. The three servers take turns in every round, and ratios are those of the same round. Then batches of
100 items a request, and one stream of many items imported and exported, with the memory that the server has of its own.
`--quick`: short rounds and 100,000 items.
"""

import argparse
import base64
import http.client
import json
import re
import secrets
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.harness import report
from benchmarks.harness.callers import MANY, SIZE
from benchmarks.harness.http_caller import Answered, Pair, call, request
from benchmarks.harness.rounds import STANDING
from benchmarks.harness.running_site import RunningSite
from benchmarks.peers import connect
from benchmarks.peers.peer import Missing
from benchmarks.peers.server_process import free_port, server

OURS, RABBIT, MINIMAL = "pqadmin", "RabbitMQ's management API", "ASGI over PostgreSQL"
#: Our pairs a second as a multiple of each other server's.
BARS = {RABBIT: 3.0, MINIMAL: 1.0}
#: Items a second in batches; megabytes by which the server's own memory may grow while many items stream.
_BATCH_BAR, _MEMORY_BAR = 20_000, 30
#: Clients that send batches.
_BATCHING = 4
#: Requests to push that are made beforehand.
_PUSHES = 100


class Site(NamedTuple):
    """A running server: its port, the requests of a turn, and how many items it holds."""

    port: int
    pair: Pair
    depth: Callable[[], int]


@dataclass(frozen=True, slots=True)
class Api:
    """Our API, called by a token."""

    site: RunningSite
    token: str

    def ask(self, method: str, path: str, body: object = None, *, content_type: str = "application/json") -> bytes:
        """Send one request; exit when it is refused."""
        connection = http.client.HTTPConnection(self.site.host, self.site.port, timeout=600)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        connection.request(method, f"/api/v1/{path}", body if hasattr(body, "read") else json.dumps(body), headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {content.decode()}")
        return content

    def depth(self, queue: str) -> int:
        """Return how many items are ready."""
        return int(json.loads(self.ask("GET", f"queues/{queue}"))["ready"])

    def request(self, path: str, body: object = None) -> bytes:
        """Return the bytes of a POST."""
        headers = {"host": self.site.host, "Authorization": f"Bearer {self.token}"}
        return request("POST", f"/api/v1/queues/{path}", body, **headers)


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the ratios, rates and memory with their bars."""
    parser = argparse.ArgumentParser(prog="http", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short rounds, 100,000 items")
    parser.add_argument("--clients", type=int, nargs="+", default=(1, 16, 64))
    parser.add_argument("--seconds", type=float, help="of one measurement")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--items", type=int, help="of the streams; 0: none")
    parser.add_argument("--folder", help="where stores are made (default: the system's for temporary files)")
    options = parser.parse_args(arguments)
    seconds = options.seconds or (1.0 if options.quick else 3.0)
    rounds = options.rounds or (3 if options.quick else 5)
    items = (100_000 if options.quick else 1_000_000) if options.items is None else options.items
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder, prefix="pq-bench-")))
        flush = report.flush_ms(folder)
        site = stack.enter_context(RunningSite(folder, settings={"PQADMIN_MAX_UPLOAD": str(10**9)}))
        api = Api(site, site.token())
        facts, servers = [], {OURS: _ours(api)}
        for number, (title, start) in enumerate({RABBIT: _rabbit, MINIMAL: _minimal}.items()):
            (place := folder / f"peer-{number}").mkdir()
            try:
                fact, servers[title] = stack.enter_context(start(place))
                facts.append(fact)
            except Missing as missing:
                facts.append(f"{title} is left out: {missing}")
                report.note(facts[-1])
            except ModuleNotFoundError as missing:
                facts.append(f"{title} is left out: pip install {missing.name} (or the extra pqadmin[bench])")
                report.note(facts[-1])
        runs = _pairs(servers, options.clients, rounds, seconds)
        batches = [_batches(api, seconds) for _ in range(rounds)]
        streams = _streams(api, items, folder) if items else []
    report.heading("The HTTP API")
    print(
        f"Pairs of a push and a pop of {SIZE} bytes over keep-alive connections, {STANDING:,} items standing, medians "
        f"of {rounds} alternating rounds of {seconds:g} s, {report.versions('daphne', 'twisted', 'django-ninja')}; a "
        f"flush takes {flush:.2f} ms.\n"
    )
    print("".join(f"- {fact}\n" for fact in facts))
    _tell(runs, options.clients)
    return [
        *judged(runs),
        report.at_least(
            f"items/s over HTTP, batches of {MANY}, {_BATCHING} clients",
            statistics.median(batches),
            _BATCH_BAR,
            ",.0f",
        ),
        *streams,
    ]


Runs = Mapping[tuple[str, int], list[Answered]]


def _pairs(servers: Mapping[str, Site], clients: list[int], rounds: int, seconds: float) -> Runs:
    runs: dict[tuple[str, int], list[Answered]] = {}
    for number in clients:
        for one in range(rounds):
            for title, there in servers.items():
                run = call(there.port, there.pair, clients=number, seconds=seconds)
                runs.setdefault((title, number), []).append(run)
                report.note(f"http: {number} clients, round {one + 1}, {title}: {2 * run.rate:.0f} requests/s")
    for title, there in servers.items():
        if (depth := there.depth()) != STANDING:
            raise SystemExit(f"{title}: the queue holds {depth} items, not {STANDING}")
    return runs


def _tell(runs: Runs, clients: list[int]) -> None:
    titles = list(dict.fromkeys(title for title, _ in runs))
    rows = []
    for number in clients:
        row: list[object] = [number]
        for title in titles:
            there = runs[title, number]
            tails = (
                statistics.median(report.percentile(times, 95) for times in which)
                for which in ([run.pushes for run in there], [run.pops for run in there])
            )
            row += [
                round(statistics.median(2 * run.rate for run in there)),
                " / ".join(f"{tail:.1f}" for tail in tails),
            ]
        rows.append(row)
    heads = (head for title in titles for head in (f"{title}: requests/s", "p95 of a push / pop, ms"))
    report.table(("clients", *heads), rows)


def judged(runs: Runs) -> list[report.Figure]:
    """Return the ratios to the other servers with their bars."""
    figures = []
    for (title, clients), theirs in runs.items():
        if title == OURS:
            continue
        ratios = [ours.rate / their.rate for ours, their in zip(runs[OURS, clients], theirs, strict=True)]
        what, spread = f"HTTP, {clients} clients, against {title}", f" ({min(ratios):.2f}–{max(ratios):.2f})"
        figures.append(report.at_least(what, statistics.median(ratios), BARS[title], ".2f", "×", more=spread))
    return figures


# Servers


def _values() -> Iterator[tuple[str, int]]:
    """Return values of the size, each beginning with the same word, and their priorities."""
    random = Random(1)
    for _ in range(_PUSHES):
        yield "value-" + random.randbytes(SIZE).hex()[: SIZE - 6], random.randrange(10)


def _ours(api: Api) -> Site:
    api.ask("POST", "queues", {"name": "jobs"})
    api.ask("POST", "queues/jobs/items", {"items": [{"value": "value-" + "s" * 94, "priority": 5}] * STANDING})
    pushes = [api.request("jobs/items", {"value": text, "priority": priority}) for text, priority in _values()]
    return Site(api.site.port, Pair(pushes, api.request("jobs/pop"), b"value-"), lambda: api.depth("jobs"))


@contextmanager
def _rabbit(folder: Path) -> Iterator[tuple[str, Site]]:
    from benchmarks.peers import rabbitmq

    authorization = "Basic " + base64.b64encode(b"guest:guest").decode()

    def post(path: str, body: object) -> bytes:
        return request("POST", f"/api/{path}", body, host="127.0.0.1", Authorization=authorization)

    def push(value: str, priority: int) -> bytes:
        properties = {"delivery_mode": rabbitmq.PERSISTENT, "priority": rabbitmq.PRIORITIES - 1 - priority}
        payload = {"payload": value, "payload_encoding": "string"}
        return post(
            "exchanges/%2F/amq.default/publish", {"properties": properties, "routing_key": rabbitmq.QUEUE, **payload}
        )

    with rabbitmq.running(folder, {}, management=True) as peer:
        connection = connect(peer.door)
        client = connection.client()
        client.push_many([(b"value-" + b"s" * 94, 5)] * STANDING)
        pop = post(f"queues/%2F/{rabbitmq.QUEUE}/get", {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"})
        pair = Pair([push(*each) for each in _values()], pop, b"value-")
        yield peer.facts, Site(peer.management, pair, client.depth)
        connection.close()


@contextmanager
def _minimal(folder: Path) -> Iterator[tuple[str, Site]]:
    import psycopg_pool  # noqa: F401 # told here when it is not installed

    from benchmarks.peers import postgres

    port, token = free_port(), secrets.token_urlsafe(32)

    def post(path: str, body: object = None) -> bytes:
        return request("POST", path, body, host="127.0.0.1", Authorization=f"Bearer {token}")

    with postgres.running(folder, {}) as peer:
        connection = connect(peer.door)
        client = connection.client()
        client.push_many([(b"value-" + b"s" * 94, 5)] * STANDING)
        command = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "-v", "0"]
        environment = {
            "APP_DATABASE": peer.door.address,
            "APP_TOKEN": token,
            "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
        }
        with server(
            [*command, "benchmarks.harness.postgres_app:application"],
            log=folder / "app-log",
            ready=lambda: _listens(port),
            user=None,
            environment=environment,
        ):
            pushes = [post("/push", {"value": text, "priority": priority}) for text, priority in _values()]
            yield peer.facts, Site(port, Pair(pushes, post("/pop"), b"value-"), client.depth)
        connection.close()


def _listens(port: int) -> bool:
    try:
        http.client.HTTPConnection("127.0.0.1", port, timeout=5).connect()
    except OSError:
        return False
    return True


# Many items


def _batches(api: Api, seconds: float) -> float:
    """Return the items a second of clients that push and pop many in a request, both counted."""
    items = [{"value": text, "priority": priority} for text, priority in _values()]
    pair = Pair([api.request("jobs/items", {"items": items[:MANY]})], api.request(f"jobs/pop?n={MANY}"), b"value-")
    rate = 2 * MANY * call(api.site.port, pair, clients=_BATCHING, seconds=seconds).rate
    report.note(f"http: batches of {MANY}: {rate:,.0f} items/s")
    return rate


def _streams(api: Api, items: int, folder: Path) -> list[report.Figure]:
    """Import and export so many items in one stream each; return the rates, and how much more memory that took."""
    api.ask("POST", "queues", {"name": "many"})
    path = folder / "items.ndjson"
    with path.open("w") as lines:
        for n in range(items):
            lines.write(f'{{"value": "value-{n:0{SIZE - 6}}", "priority": {n * 7919 % 100_003}}}\n')
    figures = []
    for what, stream in {"imported": _import, "exported": _export}.items():
        with _memory(api.site.pid) as grown:
            began = time.monotonic()
            if (count := stream(api, path)) != items:
                raise SystemExit(f"{count:,} items were {what}, not {items:,}")
            rate = items / (time.monotonic() - began)
        figures.append(
            report.at_most(
                f"{items:,} items {what} in one request: memory; items/s",
                grown(),
                _MEMORY_BAR,
                "+.1f",
                " MB",
                more=f"; {rate:,.0f}",
            )
        )
        report.note(f"http: {figures[-1].what}: {figures[-1].value}")
    return figures


def _import(api: Api, path: Path) -> int:
    with path.open("rb") as lines:
        answer = json.loads(api.ask("POST", "queues/many/items", lines, content_type="application/x-ndjson"))
    return int(answer["items"])


def _export(api: Api, path: Path) -> int:
    connection = http.client.HTTPConnection(api.site.host, api.site.port, timeout=600)
    headers = {"Authorization": f"Bearer {api.token}"}
    connection.request("GET", "/api/v1/queues/many/items/export", headers=headers)
    answer, lines = connection.getresponse(), 0
    while part := answer.read(1 << 20):
        lines += part.count(b"\n")
    connection.close()
    return lines


@contextmanager
def _memory(pid: int) -> Iterator[Callable[[], float]]:
    """Watch the memory that a process has of its own; give by how many megabytes it grew at most."""
    before = most = _anonymous_mb(pid)
    over = threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.wait(0.1):
            most = max(most, _anonymous_mb(pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield lambda: most - before
    finally:
        over.set()
        watcher.join()


def _anonymous_mb(pid: int) -> float:
    found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text("ascii"))
    assert found is not None
    return int(found[1]) / 1024
