"""Remote stores whose network fails and whose site dies: each write is executed once, each item is handled."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from queues import AsyncStore, Store, open_store
from queues.workers import Job, Pool, Worker
from tests.api.test_two_sites import command
from tests.remote.proxy import proxy
from tests.server.conftest import PATIENCE, Site, serve
from tests.site.test_how_to import blocks
from tests.waiting import await_true, begin

__all__ = ["serve"]

CALLS = 200


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site that the tests share."""
    shared = Site(tmp_path_factory.mktemp("site"))
    assert shared.get("/readyz")[0] == 200
    yield shared
    shared.stop()


@pytest.fixture(scope="module")
def secret(site: Site) -> str:
    return command(site.data, "create_token", "ci", "--queues", "*", "--verbs", "all")


@pytest.fixture
def doomed(serve: Callable[..., Site]) -> Site:
    """A site of the test's own."""
    started = serve()
    assert started.get("/readyz")[0] == 200
    return started


def four_times(work: Callable[[int], list[bytes]]) -> list[bytes]:
    """Run something in four threads."""
    with ThreadPoolExecutor(4) as threads:
        return [value for values in threads.map(work, range(4)) for value in values]


def test_each_call_is_executed_once_though_connections_are_cut(site: Site, secret: str) -> None:
    with proxy(site.address) as between, open_store(between.address, token=secret, timeout=PATIENCE) as store:
        jobs = store.create_queue("cut")
        between.most = CALLS
        names = [f"{n}".encode() for n in range(CALLS)]

        def push(part: int) -> list[bytes]:
            return [jobs.push(name, 1).value for name in names[part::4]]

        assert Counter(four_times(push)) == Counter(names)
        assert jobs.depth() == CALLS

        def pop(part: int) -> list[bytes]:
            found = []
            while (item := jobs.pop_min()) is not None:
                found.append(item.value)
            return found

        between.most = 2 * CALLS
        assert Counter(four_times(pop)) == Counter(names)
        jobs.push_many([(name, 1) for name in names])

        def work(part: int) -> list[bytes]:
            found = []
            while (lease := jobs.lease(seconds=PATIENCE)) is not None:
                with lease:
                    found.append(lease.item.value)
            return found

        between.most = 3 * CALLS
        assert Counter(four_times(work)) == Counter(names)
        totals = jobs.totals()
        assert (totals.ready, totals.leased, totals.delayed, totals.dead) == (0, 0, 0, 0)
        assert between.cuts >= CALLS


@pytest.mark.crash
def test_a_worker_outlives_its_site(doomed: Site, serve: Callable[..., Site], tmp_path: Path) -> None:
    worker, handled = Worker(), []
    secret = command(tmp_path, "create_token", "ci", "--queues", "*", "--verbs", "all")

    @worker.handles("jobs")
    def note(job: Job) -> None:
        handled.append(job.item.value)

    with proxy(doomed.address) as between, open_store(between.address, token=secret, timeout=PATIENCE) as store:
        jobs = store.create_queue("jobs")
        jobs.push_many([(b"%d" % n, n) for n in range(100)])
        pool = Pool(store, worker, ["jobs"], threads=3)
        pool.start()
        await_true(lambda: len(handled) >= 30)
        doomed.signal(signal.SIGKILL)
        doomed.exit_code()
        again = serve()
        assert again.get("/readyz")[0] == 200
        between.target = again.address
        await_true(lambda: pool.stats().done == 100)
        jobs.push(b"last", 1)
        await_true(lambda: pool.stats().done == 101)
        pool.stop(PATIENCE)
        assert Counter(handled) == Counter([*(b"%d" % n for n in range(100)), b"last"])
        totals = jobs.totals()
        assert (totals.ready, totals.leased, totals.delayed, totals.dead) == (0, 0, 0, 0)


def test_waits_end_with_an_item_or_in_time(site: Site, secret: str) -> None:
    with open_store(site.address, token=secret) as store:
        jobs = store.create_queue("waits")
        assert jobs.pop_min(wait=0.01) is None
        assert not jobs.wait(0.01)
        waiting = begin(lambda: jobs.lease(wait=True))
        jobs.push(b"x", 1)
        lease = waiting.result(PATIENCE)
        jobs.ack(lease)
        jobs.pause(reason="repair")
        resumed = begin(lambda: jobs.pop_min(wait=True))
        jobs.push(b"y", 1)
        jobs.resume()
        item = resumed.result(PATIENCE)
        assert item.value == b"y"


async def test_a_coroutine_that_is_canceled_while_it_waits_loses_no_item(site: Site, secret: str) -> None:
    async with await AsyncStore.open(site.address, token=secret) as store:
        jobs = await store.create_queue("canceled")
        got = []

        async def take() -> None:
            item = await jobs.pop_min(wait=True)
            got.append(item.value)

        for n in range(40):
            taking = asyncio.create_task(take())
            pushing = asyncio.create_task(jobs.push(b"%d" % n, 1))
            if n % 2:
                await pushing
            taking.cancel()
            await asyncio.wait([taking, pushing])
        got += [item.value for item in await jobs.pop_many(100)]
        assert Counter(got) == Counter(b"%d" % n for n in range(40))


def test_the_how_to_page_runs(site: Site, secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "SHOP_TOKEN", secret)
    with open_store(site.address, token=secret) as store:
        store.create_queue("orders:eu")
    names: dict[str, Any] = {}
    exec(blocks("remote-store", "python")[0].replace("https://queues.example.org", site.address), names)
    assert names["item"].value == b"order 4711"
    assert isinstance(names["store"], Store)
