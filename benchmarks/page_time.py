"""How long the pages take: the overview of 1,000 queues that change, the page of a queue of 1,000,000 items.

    python -m benchmarks page_time [--queues 1000] [--items 1000000] [--requests 600] [--changes 100] [--bar 150]
                                   [--connections 4] [--busy 0] [--keep DIR | --store fdb:FILE]

The real server as a user starts it; a logged-in session; so many keep-alive connections at once from a process of their
own, gzip accepted as browsers do; another process changes queues at the set rate: any of them, or only the first
`--busy`. Times are the client's: from the first byte sent to the last byte received. With one connection that is the
time that the server takes; with four on one interpreter a request also waits for three other processes. "Server CPU" is
the server's processor time for each request, which other work on the machine does not lengthen; what the changes and
the watching cost it is in there. "Cold" is the first request of all after a start of the server, asked as soon as it
listens with a session of before; each page has a start of its own, and nothing changes meanwhile. No response cache is
asked for or used. With `--keep` the filled store stays in that folder, and the next run uses it; `--store` is filled if
it has no queues. A store that holds other queues or items than asked for is refused.
"""

import argparse
import http.client
import json
import multiprocessing
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from random import Random
from typing import TypedDict

from benchmarks.harness import report
from benchmarks.harness.running_site import RunningSite
from pqadmin.load import plan as planning
from pqadmin.load.pace import Pace
from pqadmin.load.plan import QueuePlan, plans
from pqadmin.load.run import create_queues
from queues import Store, open_store

#: Requests that are sent before measuring: templates are compiled by then, as they are in a server that runs.
_WARM_UP = 40
#: Items that every queue of the overview holds at first.
_STANDING = 10
_BIG = "archive:events"
_PAGES = {
    "overview": "/",
    "queue of many items": f"/queues/{_BIG}/",
    "queue of many items, from max": f"/queues/{_BIG}/?end=max",
    "item": f"/queues/{_BIG}/items/{{}}/",
}
SEED = 1


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the p95 of every page."""
    parser = argparse.ArgumentParser(prog="page_time", description=__doc__)
    parser.add_argument("--queues", type=int, default=1_000)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=600)
    parser.add_argument("--changes", type=float, default=100.0)
    parser.add_argument("--bar", type=float, default=150.0, help="ms, for p95")
    parser.add_argument("--connections", type=int, nargs="+", default=[4])
    parser.add_argument("--busy", type=int, default=0, help="how many queues change; 0: all")
    parser.add_argument("--pages", nargs="+", default=list(_PAGES), choices=list(_PAGES))
    parser.add_argument("--keep", help="a folder in which the filled store stays")
    parser.add_argument("--fill", action="store_true", help="fill what --keep or --store names, and measure nothing")
    parser.add_argument("--store", default="", help="a store URL; empty: an embedded one")
    parser.add_argument("--client", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.client is not None:
        host, port, path, requests, connections, cookie = options.client
        json.dump(request_many(host, int(port), path, int(requests), int(connections), cookie), sys.stdout)
        return []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = options.store or f"lmdb:{options.keep or folder}/store"
        planned = plans(options.queues - 1, prefix="", seed=SEED)
        with open_store(url) as store:
            prepare(store, planned, options.items, url=url)
            big = store.queue(_BIG)
            if (depth := big.depth()) != options.items:
                raise SystemExit(f"{url} has {depth:,} items in {_BIG}, not --items {options.items:,}")
            big_id = big.items(priority=50_000, limit=1).items[0].id
        if options.fill:
            return []
        flush = report.flush_ms(folder)
        pages = {title: _PAGES[title].format(big_id) for title in options.pages}
        with RunningSite(folder, store_url=url) as site:
            cookie = site.log_in()
        cold = {}
        for title, path in pages.items():
            with RunningSite(folder, store_url=url) as site:
                cold[title] = 1000 * max(request_many(site.host, site.port, path, 1, 1, cookie)["times"])
        with RunningSite(folder, store_url=url) as site:
            results = measure(site, planned, pages, cookie, cold, options)
    report.heading("Page times through the server")
    print(
        f"{options.queues:,} queues, {options.changes:g} changes a second asked for and {results.changes:.0f} made "
        f"in {options.busy or 'all'} of them, one queue of {options.items:,} items, logged in as operator, "
        f"{report.versions('django', 'channels', 'daphne', 'twisted')}, {url.partition(':')[0]}, "
        f"flush {flush:.2f} ms. Milliseconds.\n"
    )
    report.table(
        ("page", "at once", "requests", "cold", "p50", "p95", "p99", "most", "server CPU", "kB gzip", "requests/s"),
        results.rows,
    )
    return [
        report.at_most(f"page time p95, {row[0]}, {row[1]} at once", float(str(row[5])), options.bar, "g", " ms")
        for row in results.rows
    ]


class Results:
    """The rows of the table, and how many changes a second were really made."""

    def __init__(self) -> None:
        self.rows: list[tuple[object, ...]] = []
        self.changes = 0.0


def measure(
    site: RunningSite,
    planned: list[QueuePlan],
    pages: dict[str, str],
    cookie: str,
    cold: dict[str, float],
    options: argparse.Namespace,
) -> Results:
    """Request every page in turn while queues change; `cold` is what the first request for each took, in ms."""
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    made = context.Value("q", 0)
    changing = planned[: options.busy or None]
    changer = context.Process(target=change, args=(site.store_url, changing, options.changes, made, stop), daemon=True)
    changer.start()
    results = Results()
    try:
        while not made.value and options.changes:
            if not changer.is_alive():
                raise SystemExit("the process that changes queues has ended before it changed any")
            time.sleep(0.05)
        request_many(site.host, site.port, "/", _WARM_UP, 4, cookie)
        before, start = made.value, time.monotonic()
        for title, path in pages.items():
            for connections in options.connections:
                report.note(f"page_time: {title}, {connections} at once")
                request_many(site.host, site.port, path, _WARM_UP, connections, cookie)
                used = site.cpu_seconds()
                client = (site.host, str(site.port), path, str(options.requests), str(connections))
                answer = subprocess.run(
                    [sys.executable, "-m", "benchmarks", "page_time", "--client", *client, cookie],
                    check=True,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                found = json.loads(answer.stdout)
                times = [1000 * seconds for seconds in found["times"]]
                results.rows.append(
                    (
                        title,
                        connections,
                        len(times),
                        round(cold[title]),
                        *(round(report.percentile(times, percent), 1) for percent in (50, 95, 99, 100)),
                        round(1000 * (site.cpu_seconds() - used) / len(times), 1),
                        round(found["bytes"] / 1000, 1),
                        round(len(times) / found["seconds"]),
                    )
                )
        results.changes = (made.value - before) / (time.monotonic() - start)
    finally:
        stop.set()
        changer.join(30)
    return results


class Answers(TypedDict):
    """What requests for one page came to: seconds of each, and together; the size of the largest answer."""

    times: list[float]
    bytes: int
    seconds: float


def request_many(host: str, port: int, path: str, requests: int, connections: int, cookie: str) -> Answers:
    """Request one page so often over so many connections; exit when one is not answered, or not with 200."""
    times: list[float] = []
    sizes: list[int] = []
    failed: list[str] = []
    left = iter(range(requests))
    lock = threading.Lock()

    def work() -> None:
        connection = http.client.HTTPConnection(host, port, timeout=60)
        try:
            ask(connection)
        except (OSError, http.client.HTTPException) as error:
            failed.append(f"{path} was not answered: {error!r}")
        finally:
            connection.close()

    def ask(connection: http.client.HTTPConnection) -> None:
        connection.connect()
        while not failed:
            with lock:
                if next(left, None) is None:
                    break
            start = time.perf_counter()
            connection.request("GET", path, headers={"Cookie": cookie, "Accept-Encoding": "gzip"})
            answer = connection.getresponse()
            body = answer.read()
            times.append(time.perf_counter() - start)
            sizes.append(len(body))
            if answer.status != 200:
                failed.append(f"{path} was answered with {answer.status}")

    start = time.perf_counter()
    workers = [threading.Thread(target=work) for _ in range(connections)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failed:
        raise SystemExit(failed[0])
    return {"times": times, "bytes": max(sizes), "seconds": time.perf_counter() - start}


def prepare(store: Store, planned: list[QueuePlan], items: int, *, url: str) -> None:
    """Fill a store without queues; refuse one of other queues than `fill` makes."""
    there = set(store.directory())
    if not there:
        report.note(f"filling {url}")
        fill(store, planned, items)
    elif there != {_BIG, *(plan.name for plan in planned)}:
        raise SystemExit(
            f"{url} has {len(there):,} queues, which are not the {len(planned) + 1:,} that are filled for --queues "
            f"{len(planned) + 1}: name another folder or store, or the number that it was filled with"
        )


def fill(store: Store, planned: list[QueuePlan], items: int) -> None:
    """Create and fill the queues."""
    create_queues(store, planned)
    random = Random(SEED)
    for plan in planned:
        planning.push(store.queue(plan.name), plan, random, _STANDING)
    big = store.create_queue(_BIG)
    value = json.dumps({"event": "order.created", "customer": 4711, "note": "x" * 50}).encode()
    for first in range(0, items, 1_000):
        numbers = range(first, min(first + 1_000, items))
        big.push_many([(value, number * 7919 % 100_003) for number in numbers])


def change(url: str, planned: list[QueuePlan], rate: float, made: "Synchronized[int]", stop: Event) -> None:
    """Push to and pop from queues in turn at the rate, until told to stop. The entry of a process."""
    random = Random(SEED)
    pace = Pace(rate=rate)
    with open_store(url) as store:
        queues = {plan.name: store.queue(plan.name) for plan in planned}
        start, done = time.monotonic(), 0
        while not stop.is_set():
            if pace.due(time.monotonic() - start) <= done:
                stop.wait(max(0.001, pace.moment(done + 1) - (time.monotonic() - start)))
                continue
            plan = random.choice(planned)
            queue = queues[plan.name]
            if done % 2 == 0:
                planning.push(queue, plan, random, 1)
            elif plan.kind == "fifo":
                queue.dequeue()
            else:
                queue.pop_many(1, end=plan.end)
            done += 1
            made.value = done
