"""A schedule that pushes its own next run, while its workers are killed and suspended: it neither forks nor ends."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from queues import Queue, open_store

ROOT = Path(__file__).parents[2]
ROUNDS = 10
#: Seconds after which a schedule that has stopped is a failure.
PATIENCE = 60
#: Seconds for which a suspended worker is left so when the rest make no progress: it may hold the store's lock.
STUCK = 2.0


def begin(url: str) -> subprocess.Popen[bytes]:
    """Start a worker in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.crash.scheduling", url],
        cwd=ROOT,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
    )


def grows(log: Queue, by: int, seconds: float) -> bool:
    """Return once so many more runs were noted; False when the time is up before."""
    until, first = time.monotonic() + seconds, log.depth()
    while log.depth() < first + by:
        if time.monotonic() > until:
            return False
        threading.Event().wait(0.005)
    return True


@pytest.mark.crash
def test_a_schedule_never_forks(tmp_path: Path) -> None:
    url, dice = f"lmdb:{tmp_path / 'store'}", random.Random(15)
    with open_store(url) as store:
        schedule, log = store.create_queue("schedule"), store.create_queue("log")
        schedule.configure(max_attempts=None)
        schedule.push(b"1", priority=0)
        workers = [begin(url), begin(url)]
        try:
            for round_number in range(ROUNDS):
                assert grows(log, dice.randrange(1, 8), PATIENCE), "the schedule has stopped"
                if round_number % 2:
                    victim = workers.pop(0)
                    os.killpg(victim.pid, signal.SIGKILL)
                    victim.wait(PATIENCE)
                    workers.append(begin(url))
                else:
                    victim = dice.choice(workers)
                    os.killpg(victim.pid, signal.SIGSTOP)
                    grows(log, 3, STUCK)  # the rest take over what it holds
                    os.killpg(victim.pid, signal.SIGCONT)
            assert grows(log, 5, PATIENCE), "the schedule has stopped"
        finally:
            for victim in workers:
                os.killpg(victim.pid, signal.SIGKILL)
                victim.wait(PATIENCE)
        noted = [int(item.value) for item in log.pop_many(1_000)]
        pages = (schedule.items(), schedule.delayed(), schedule.leased(), schedule.dead())
        left = [int(item.value) for page in pages for item in page.items]
    assert noted == list(range(1, len(noted) + 1)), "every run is noted once, in order"
    assert left == [len(noted) + 1], "there is one next run"
