"""Callers that do not read a large reply make no later commit larger, and find their answers once."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from queues import Store, open_store
from queues.errors import OutcomeUnknown
from queues.kv.boottime import boottime
from queues.kv.embedded import host as hosts
from queues.kv.embedded import host_client
from queues.operations.pop import pop_request
from queues.operations.push import push_request
from tests.queues.hosting.processes import host_of, hosting, suspend
from tests.queues.hosting.sent import Sent
from tests.waiting import await_true

#: What the callers pop: more than a socket takes.
VALUES, ITEMS = (b"1" * 1_000, b"2" * 1_000), 400
PUSHES = 20


class Unread(NamedTuple):
    """A store that another process hosts, and two callers that have not read the replies to their pops."""

    url: str
    store: Store
    jobs: Any
    host: subprocess.Popen[str]
    callers: list[Sent]

    def push(self) -> int:
        """Push some items through the host; return the bytes that it wrote to its files."""
        before = _written(self.host)
        for _ in range(PUSHES):
            self.jobs.push(b"later", 9)
        return _written(self.host) - before

    def replace_host(self) -> None:
        """Kill the host; this process takes over."""
        self.host.kill()
        self.host.wait()
        for _ in range(3):
            self.jobs.push(b"later", 9)
        assert host_of(self.url) == os.getpid()

    def answers(self) -> list[int]:
        """Let the callers look; return how many of its own items each gets."""
        return [
            sum(item.raw == value for item in caller.answer())
            for caller, value in zip(self.callers, VALUES, strict=True)
        ]

    def large_records(self) -> int:
        """Return how many stored records hold answers to a pop."""
        environment = self.store.context.kv.engine.environment
        txn = environment.begin_read()
        try:
            cursor = txn.cursor()
            cursor.set_range(hosts.ANSWERS)
            return sum(key.startswith(hosts.ANSWERS) and len(record) > len(VALUES[0]) * ITEMS for key, record in cursor)
        finally:
            environment.end_read(txn)


def _written(process: subprocess.Popen[str]) -> int:
    """Return how many bytes a process has written to files."""
    lines = Path(f"/proc/{process.pid}/io").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("wchar")))


@pytest.fixture
def without() -> str:
    """The safeguard that the host is without."""
    return ""


@pytest.fixture
def unread(tmp_path: Path, without: str) -> Iterator[Unread]:
    """Two callers with unread replies."""
    url = f"lmdb:{tmp_path / 'store'}"
    with open_store(url) as store:
        store.create_queue("jobs")
    with hosting(url, without) as host, open_store(url) as store:
        jobs: Any = store.queue("jobs")
        callers = []
        for value in VALUES:
            jobs.push_many([(value, 1)] * ITEMS)
            callers.append(Sent(store, jobs, pop_request(jobs.opened, ITEMS, "min", None)))
        yield Unread(url, store, jobs, host, callers)
        for caller in callers:
            caller.leave()


def test_a_reply_that_is_not_read_is_stored_once_until_its_caller_leaves(unread: Unread) -> None:
    unread.push()
    assert unread.large_records() == 2
    assert unread.push() < PUSHES * len(VALUES[0]) * ITEMS / 2, "each commit writes a reply again"
    unread.callers[0].leave()
    await_true(lambda: unread.large_records() == 1, meanwhile=unread.push)
    unread.callers[1].leave()
    await_true(lambda: unread.large_records() == 0, meanwhile=unread.push)
    assert host_of(unread.url) == unread.host.pid


def test_answers_are_found_once_when_the_host_was_killed_and_replaced(unread: Unread) -> None:
    unread.push()
    unread.replace_host()
    assert unread.answers() == [ITEMS, ITEMS]
    assert {item.raw for item in unread.jobs.pop_many(1_000)} == {b"later"}


@pytest.mark.parametrize("without", ["answers that no socket took are not stored again"])
def test_answers_that_are_stored_with_one_commit_only_are_lost(unread: Unread) -> None:
    """What storing them by themselves is for."""
    unread.push()
    unread.replace_host()
    assert unread.answers() == [0, 0]


def test_answers_are_found_once_when_the_host_is_late(unread: Unread) -> None:
    unread.push()
    unread.store.transact(lambda tr: suspend(unread.host))  # while it does not write
    assert unread.answers() == [ITEMS, ITEMS]
    unread.host.send_signal(signal.SIGCONT)
    unread.host.communicate()
    assert unread.host.returncode == 0
    assert {item.raw for item in unread.jobs.pop_many(1_000)} == {b"later"}


def test_answers_of_a_host_that_died_are_removed_after_an_hour(unread: Unread, monkeypatch: pytest.MonkeyPatch) -> None:
    unread.push()
    unread.replace_host()
    assert unread.large_records() == 2
    an_hour_later = boottime() + 3_601
    for module in (hosts, host_client):
        monkeypatch.setattr(module, "boottime", lambda: an_hour_later)
    await_true(lambda: unread.large_records() == 0, meanwhile=lambda: unread.jobs.push(b"later", 9))
    with pytest.raises(OutcomeUnknown):
        unread.answers()


def test_the_answer_of_a_caller_that_left_before_is_not_kept(tmp_path: Path) -> None:
    with open_store(f"lmdb:{tmp_path / 'store'}") as store:
        jobs: Any = store.create_queue("jobs")
        jobs.push(b"own", 1)
        host = store.context.kv.engine.election.host
        stays = Sent(store, jobs, push_request(jobs.opened, b"of a caller", 1))

        def leave(tr: Any) -> bool:
            """Send a request and leave, while this transaction keeps the host from executing it."""
            if threading.current_thread() is not threading.main_thread():
                return False  # the host's own thread executes this, and meanwhile accepts no connection
            caller = Sent(store, jobs, push_request(jobs.opened, b"of another", 1), await_reply=False)
            await_true(lambda: len(host.connections) == 2)
            caller.leave()
            await_true(lambda: len(host.connections) == 1)
            return True

        await_true(lambda: store.transact(leave))
        await_true(lambda: jobs.depth() == 3)
        await_true(lambda: not host.unsent)
        stays.leave()
