"""The process that hosts a store is killed during requests of other processes: nothing is lost or done twice."""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from queues import open_store
from queues.queue import PriorityQueue
from tests.queues.hosting.processes import begin, host_of

#: Kills; more of them by the environment.
KILLS = int(os.environ.get("PQ_HOST_KILLS", "8"))
PROCESSES, THREADS = 4, 2


class Callers:
    """Processes at work on one store, as many at all times."""

    def __init__(self, folder: Path) -> None:
        self.url, self.folder, self.journals = f"lmdb:{folder / 'store'}", folder, [folder / f"{n}" for n in range(999)]
        self.running: dict[int, subprocess.Popen[str]] = {}
        self.begun = self.killed = 0

    def begin(self) -> None:
        """Begin one more process."""
        journal = self.journals[self.begun]
        self.begun += 1
        process = begin("caller", self.url, str(journal), str(THREADS))
        self.running[process.pid] = process

    def kill(self, pid: int) -> None:
        """Kill a process."""
        process = self.running.pop(pid)
        process.kill()
        process.communicate()
        self.killed += 1

    def end(self) -> None:
        """Let all end."""
        for process in self.running.values():
            process.communicate()
            assert process.returncode == 0
        self.running.clear()

    def lines(self) -> Iterator[tuple[str, str, float]]:
        """Return all that was noted."""
        for journal in self.journals[: self.begun]:
            for line in journal.read_text().splitlines():
                verb, value, took = line.split()
                yield verb, value, float(took)


@pytest.mark.crash
def test_a_killed_host_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    callers, chance = Callers(tmp_path), random.Random(7)
    with open_store(callers.url) as store:
        store.create_queue("jobs")
    hosts = Counter[int]()
    try:
        for _ in range(PROCESSES):
            callers.begin()
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.05, 0.6))
            pid = host_of(callers.url)
            if pid in callers.running:
                hosts[pid] += 1
                os.kill(pid, signal.SIGKILL)
                callers.kill(pid)
                callers.begin()
        time.sleep(0.5)
        callers.end()
    finally:
        for process in callers.running.values():
            process.kill()
    noted = list(callers.lines())
    pushed = {value for verb, value, _ in noted if verb == "push"}
    taken = Counter(value for verb, value, _ in noted if verb in ("pop", "ack"))
    leased = Counter(value for verb, value, _ in noted if verb == "lease")
    with open_store(callers.url) as store:
        queue = store.queue("jobs")
        assert isinstance(queue, PriorityQueue)
        left = Counter(
            item.raw.decode() for item in (*queue.items(limit=1_000).items, *queue.leased(limit=1_000).items)
        )
    # What was taken by a process that was killed before it noted that.
    lost = pushed - taken.keys() - left.keys()
    assert hosts, "no host was ever killed"
    assert taken.most_common(1)[0][1] == 1, "an item was taken twice"
    assert leased.most_common(1)[0][1] == 1, "an item was leased twice"
    assert not taken.keys() & left.keys(), "an item was taken and is still there"
    assert not left or left.most_common(1)[0][1] == 1, "an item was pushed twice"
    assert len(lost) <= callers.killed * THREADS, f"{len(lost)} items are lost after {callers.killed} kills"
    if "PQ_HOST_KILLS" in os.environ:
        print(f"{callers.killed} kills, {len(pushed)} pushes, longest call {max(took for _, _, took in noted):.3f} s")
