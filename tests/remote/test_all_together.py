"""Pages, remote stores, commands and events of one site at once, while it is killed again and again.

For some seconds; `PQ_SOAK_SECONDS=600 PQ_SOAK_KILLS=10 PQ_SOAK_WRITES=1000` are ten minutes of it.
"""

import faulthandler
import http.client
import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest

from queues import AnyQueue, PriorityQueue, open_store
from queues.workers import Job, Pool, Worker
from tests.api.test_two_sites import command
from tests.commands.conftest import command as process
from tests.remote.proxy import Proxy, proxy
from tests.server.conftest import PATIENCE, Site, log_in, serve
from tests.waiting import await_true

__all__ = ["serve"]

SECONDS = float(os.environ.get("PQ_SOAK_SECONDS", "6"))
KILLS = int(os.environ.get("PQ_SOAK_KILLS", "2"))
#: Writes that are repeated, as their connections are cut; items that die; writes of commands.
WRITES = int(os.environ.get("PQ_SOAK_WRITES", "60"))
DEATHS, COMMANDS = WRITES // 3, 3 + int(SECONDS) // 10
PUSHERS = 4
T = TypeVar("T")
#: A quarter of all requests is cut.
PLAN = tuple(fate for cut in ("unsent", "sent", "answered") for fate in (cut, "pass", "pass", "pass"))


def paced(values: Sequence[T]) -> Iterator[T]:
    """Yield values evenly through the whole run, so that each kill meets load."""
    began = time.monotonic()
    for n, value in enumerate(values):
        time.sleep(max(0.0, began + n * SECONDS / len(values) - time.monotonic()))
        yield value


class Events:
    """Follows the events of a site, from the last one on whenever the connection is lost."""

    def __init__(self, address: str, secret: str, queues: str) -> None:
        self._address, self._secret, self._queues = address, secret, queues
        self._last = ""
        self.dead: set[str] = set()
        #: The newest state of each queue.
        self.queues: dict[str, Any] = {}
        self.streams = 0

    def run(self, stopped: threading.Event) -> None:
        """Follow until stopped."""
        while not stopped.is_set():
            try:
                self._follow(stopped)
            except (OSError, http.client.HTTPException):
                stopped.wait(0.05)

    def _follow(self, stopped: threading.Event) -> None:
        connection = http.client.HTTPConnection(urlsplit(self._address).netloc, timeout=20)
        headers = {"Authorization": f"Bearer {self._secret}"} | ({"Last-Event-ID": self._last} if self._last else {})
        connection.request("GET", f"/api/v1/events?queues={self._queues}", headers=headers)
        answer = connection.getresponse()
        try:
            if answer.status != 200:
                raise http.client.HTTPException
            self.streams += 1
            fields: dict[str, str] = {}
            while not stopped.is_set() and (line := answer.readline().decode()):
                if line != "\n":
                    name, _, value = line.rstrip("\n").partition(": ")
                    fields[name] = value
                    continue
                self._take(fields)
                fields = {}
        finally:
            connection.close()

    def _take(self, fields: dict[str, str]) -> None:
        if "data" in fields:
            data = json.loads(fields["data"])
            if fields["event"] == "dead":
                self.dead.add(data["id"])
            elif fields["event"] == "queue":
                self.queues[data["queue"]] = data
        self._last = fields.get("id", self._last)  # an event that was not taken is sent again


def look_at_pages(address: str, cookies: str, stopped: threading.Event, answers: Counter[str]) -> None:
    """Open pages as a browser does; a site that is being started refuses connections, and nothing else fails."""
    while not stopped.wait(0.1):
        for path in ("/", "/queues/work/", "/audit/"):
            request = urllib.request.Request(address + path, headers={"Cookie": cookies})
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE) as page:
                    answers[f"{page.status}"] += "/login" not in page.url
            except urllib.error.HTTPError as error:
                answers[f"{error.code} of {path}"] += 1
            except (OSError, http.client.HTTPException):
                answers["lost"] += 1


@contextmanager
def threads(*works: Callable[[], None]) -> Iterator[list[BaseException]]:
    """Run functions in threads, and end them with the block's; what they raised is in the list."""
    failures: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    started = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for each in started:
        each.start()
    yield failures
    for each in started:
        each.join(PATIENCE)
        assert not each.is_alive()
    assert failures == []


def kill_again_and_again(site: Site, serve: Callable[..., Site], between: Proxy, stopped: threading.Event) -> Site:
    """Kill the site and start it anew, some times; return the last one."""
    for _ in range(KILLS):
        stopped.wait(SECONDS / (KILLS + 1))
        site.signal(signal.SIGKILL)
        site.exit_code()
        site = serve(PQADMIN_REQUESTS_PER_ADDRESS="0")
        assert site.get("/readyz")[0] == 200
        between.target = site.address
    stopped.wait(SECONDS / (KILLS + 1))
    return site


@pytest.mark.crash
@pytest.mark.slow
def test_nothing_is_lost_or_done_twice_while_the_site_is_killed(serve: Callable[..., Site], tmp_path: Path) -> None:
    faulthandler.dump_traceback_later(SECONDS + 600, exit=True, file=sys.__stderr__)  # pytest's own is ten minutes
    site = serve(PQADMIN_REQUESTS_PER_ADDRESS="0")
    assert site.get("/readyz")[0] == 200
    cookies = log_in(site)
    secret = command(tmp_path, "create_token", "ci", "--queues", "*", "--verbs", "all")
    ended, pages, handled = threading.Event(), Counter[str](), Counter[bytes]()
    worker = Worker()

    @worker.handles("work")
    def handle(job: Job) -> None:
        handled[job.item.value] += 1

    with (
        proxy(site.address, PLAN) as between,
        open_store(between.address, token=secret, timeout=PATIENCE) as store,
        open_store(f"lmdb:{tmp_path / 'store'}") as local,
    ):
        work, dying = store.create_queue("work"), store.create_queue("dying")
        dying.configure(max_attempts=1)
        between.most = 10**9
        names = [b"%d" % n for n in range(WRITES)]
        died: list[str] = []

        def push(part: int) -> None:
            for name in paced(names[part::PUSHERS]):
                work.push(name, 1)

        def die() -> None:
            for n in paced(range(DEATHS)):
                dying.push(b"x", n)
                lease = dying.lease(wait=True)
                assert dying.release(lease, reason=f"failed {n}").state == "dead"
                died.append(lease.item.id)

        def use_commands() -> None:
            variables = {"PQADMIN_STORE": between.address, "PQADMIN_TOKEN": secret, "PQADMIN_DATA": str(tmp_path)}
            for n in paced(range(COMMANDS)):
                told = "cannot be reached"
                while told:  # a command waits some seconds only for a site that is being started
                    assert "cannot be reached" in told
                    with process("push", "work", f"command {n}", "--priority=1", text=True, **variables) as pushing:
                        told = pushing.communicate(timeout=PATIENCE)[1]

        events, only = Events(between.address, secret, "*"), Events(between.address, secret, "d*")
        pool = Pool(store, worker, ["work"], threads=4)
        pool.start()
        with threads(
            lambda: events.run(ended),
            lambda: only.run(ended),
            lambda: look_at_pages(between.address, cookies, ended, pages),
        ) as followed:
            pushes = [lambda part=part: push(part) for part in range(PUSHERS)]
            with threads(*pushes, die, use_commands):
                site = kill_again_and_again(site, serve, between, ended)
            everything = Counter([*names, *(b"command %d" % n for n in range(COMMANDS))])
            await_true(lambda: pool.stats().done == everything.total() or followed)
            pool.stop(PATIENCE)
            await_true(lambda: events.dead & only.dead >= set(died) or followed)
            await_true(lambda: told(events, "dying", "dead") == DEATHS or followed)
            await_true(lambda: told(events, "work", "ready") == told(events, "work", "leased") == 0 or followed)
            ended.set()
        assert handled == everything
        assert (between.cuts >= WRITES // 2, min(events.streams, only.streams) > KILLS) == (True, True)
        assert all_of(local.priority_queue("work")) == (everything.total(), everything.total(), 0)
        assert (
            {item.id for item in local.queue("dying").dead(limit=1_000).items} == set(died) == events.dead == only.dead
        )
        assert pages["200"]
        assert [what for what in pages if what not in ("200", "lost") and not what.startswith("503")] == []
        assert not local.doctor.examine().findings


def told(events: Events, queue: str, what: str) -> Any:
    return events.queues.get(queue, {}).get(what)


def all_of(queue: PriorityQueue | AnyQueue) -> tuple[int, int, int]:
    """Return how many items were pushed, how many acknowledged, and how many are there."""
    totals = queue.totals()
    there = totals.ready + totals.delayed + totals.leased + totals.dead
    return totals.traffic["push"], totals.traffic["ack"], there
