"""The process that hosts a store is killed, or ends, during requests of the rest: nothing is lost or done twice."""

import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queues import open_store
from queues.queue import PriorityQueue
from tests.queues.hosting.processes import begin, host_of

#: Kills; more of them by the environment.
KILLS = int(os.environ.get("PQ_HOST_KILLS", "3"))
PROCESSES, THREADS = 4, 2


class Callers:
    """Processes at work on one store, as many at all times."""

    def __init__(self, folder: Path, mutant: str = "") -> None:
        self.url, self.folder, self.journals = f"lmdb:{folder / 'store'}", folder, [folder / f"{n}" for n in range(999)]
        self.running: dict[int, subprocess.Popen[str]] = {}
        self.begun = self.killed = self.left = 0
        self.how = [mutant] if mutant else []

    def begin(self) -> None:
        """Begin one more process."""
        journal = self.journals[self.begun]
        self.begun += 1
        process = begin("caller", self.url, str(journal), str(THREADS), *self.how)
        self.running[process.pid] = process

    def kill(self, pid: int) -> None:
        """Kill a process."""
        process = self.running.pop(pid)
        process.kill()
        process.communicate()
        self.killed += 1

    def leave(self, pid: int) -> None:
        """Let a process end: it closes the store, while the rest send it requests."""
        process = self.running.pop(pid)
        process.communicate()
        assert process.returncode == 0
        self.left += 1

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
    callers = Callers(tmp_path)
    kill_hosts(callers, KILLS)
    assert fault(callers) == ""
    if "PQ_HOST_KILLS" in os.environ:
        took = [seconds for _, _, seconds in callers.lines()]
        print(f"{callers.killed} kills, {len(took)} calls, the longest {max(took):.3f} s")


@pytest.mark.crash
def test_a_host_that_ends_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    callers = Callers(tmp_path)
    kill_hosts(callers, KILLS, how=callers.leave)
    assert fault(callers) == ""


@pytest.mark.crash
def test_without_stored_answers_something_is_done_twice(tmp_path: Path) -> None:
    callers = Callers(tmp_path, "answers are not stored")
    kill_hosts(callers, 100, until=lambda: twice(callers))
    assert twice(callers)


def kill_hosts(
    callers: Callers, kills: int, *, until: Callable[[], object] = bool, how: Callable[[int], None] | None = None
) -> None:
    """Have processes at work, and kill the host among them again and again, until something is seen."""
    chance = random.Random(7)
    with open_store(callers.url) as store:
        store.create_queue("jobs")
    try:
        for _ in range(PROCESSES):
            callers.begin()
        for _ in range(kills):
            if until():
                break
            time.sleep(chance.uniform(0.02, 0.25))
            pid = host_of(callers.url)
            if pid in callers.running:
                (how or callers.kill)(pid)
                callers.begin()
        time.sleep(0.1)
        callers.end()
    finally:
        for process in callers.running.values():
            process.kill()
    assert callers.killed + callers.left, "no host was ever killed"


def twice(callers: Callers) -> str:
    """Return what was taken or leased twice, in words."""
    noted = list(callers.lines())
    for what, verbs in (("taken", ("pop", "ack")), ("leased", ("lease",))):
        times = Counter(value for verb, value, _ in noted if verb in verbs)
        if times and times.most_common(1)[0][1] > 1:
            return f"{times.most_common(1)[0][0]} was {what} twice"
    return ""


def fault(callers: Callers) -> str:
    """Return what was lost or done twice, in words; nothing where all is well."""
    noted = list(callers.lines())
    pushed = {value for verb, value, _ in noted if verb == "push"}
    taken = {value for verb, value, _ in noted if verb in ("pop", "ack")}
    with open_store(callers.url) as store:
        queue = store.queue("jobs")
        assert isinstance(queue, PriorityQueue)
        left = Counter(
            item.raw.decode() for item in (*queue.items(limit=1_000).items, *queue.leased(limit=1_000).items)
        )
    # What was taken by a process that was killed before it noted that.
    lost = pushed - taken - left.keys()
    if taken & left.keys():
        return "an item was taken and is still there"
    if left and left.most_common(1)[0][1] > 1:
        return "an item was pushed twice"
    return f"{len(lost)} items are lost" if len(lost) > callers.killed * THREADS else twice(callers)
