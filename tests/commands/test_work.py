"""`pqadmin work`: a program's handlers, run by command; as a process, stopped by signals and killed."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path

import pytest

from queues import Queue, Store, open_store
from tests.commands.conftest import PATIENCE, Run, Shop, command

HANDLERS = """
import pathlib, sys, threading
from queues.workers import Backoff, Worker

worker = Worker()
other = Worker()

@worker.handles("job*", backoff=Backoff(first=3600))
def handle(job):
    if job.item.value == b"fail":
        raise ValueError("the reason")
    if job.item.value == b"wait":
        print("begun", flush=True)
        while not job.stopping():
            threading.Event().wait(0.01)
    if job.item.value == b"hang":
        print("begun", flush=True)
        while not job.stopping():
            threading.Event().wait(0.01)
        print("stopping", flush=True)
        threading.Event().wait()
"""


@pytest.fixture
def shop_handlers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with handlers, in the current folder."""
    name = f"shop_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(HANDLERS)
    (tmp_path / f"{name}_broken.py").write_text("raise RuntimeError('no good')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


def test_once_works_until_nothing_is_left(jobs: Queue, run: Run, shop_handlers: str) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(20)])
    jobs.push(b"fail", priority=0)
    jobs.push(b"later", priority=0, delay=timedelta(hours=1))
    answer = run("work", "jobs", "--handlers", shop_handlers, "--threads", "3", "--once")
    assert (answer.code, answer.out) == (0, "20 done, 1 failed (0 of them dead), 0 stopped, 0 cut off.\n")
    failed, later = jobs.delayed().items
    assert {failed.reason, later.reason} == {"ValueError: the reason", ""}
    answer = run("work", "jobs", "--handlers", f"{shop_handlers}:worker", "--once", "--json")
    assert answer.json == {"done": 0, "failed": 0, "dead": 0, "stopped": 0, "cut_off": 0}


def test_what_cannot_be_worked_on_is_refused(shop: Shop, run: Run, shop_handlers: str) -> None:
    shop.store.create_queue("jobs")
    shop.store.create_queue("mail")
    shop.store.attach("jobs:legacy", prefix=("legacy",))
    for arguments, message in (
        (("mail", "--handlers", shop_handlers), "mail has no handler"),
        (("jobs:legacy", "--handlers", shop_handlers), "attached queue"),
        (("jbos", "--handlers", shop_handlers), "Did you mean “jobs”"),
        (("jobs", "--handlers", f"{shop_handlers}:other"), "jobs has no handler"),
        (("jobs", "--handlers", f"{shop_handlers}:missing"), "no queues.workers.Worker named missing"),
        (("jobs", "--handlers", "no.such.module"), "cannot be imported: ModuleNotFoundError"),
        (("jobs", "--handlers", f"{shop_handlers}_broken"), "cannot be imported: RuntimeError: no good"),
        (("jobs", "--handlers", shop_handlers, "--grace", "-1"), "number of seconds"),
    ):
        answer = run("work", *arguments, "--once")
        assert answer.code != 0
        assert message in answer.error


# As a process


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """The store that the command works on, open in the test as well."""
    with open_store(url) as opened:
        opened.create_queue("jobs")
        yield opened


def at_work(url: str, folder: Path, *arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """Start the command; kill it when the test leaves it running."""
    (folder / "shop.py").write_text(HANDLERS)
    return command("work", "jobs", "--store", url, "--handlers", "shop", *arguments, folder=folder, text=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_handlers_finish(store: Store, url: str, tmp_path: Path, number: signal.Signals) -> None:
    store.queue("jobs").push(b"wait", priority=1)
    with at_work(url, tmp_path) as process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "1 done, 0 failed (0 of them dead), 0 stopped, 0 cut off.\n")
    assert err == "Working on jobs with 4 threads.\n"
    assert store.queue("jobs").totals().traffic["ack"] == 1


def test_a_signal_gives_back_what_does_not_finish(store: Store, url: str, tmp_path: Path) -> None:
    jobs = store.queue("jobs")
    item = jobs.push(b"hang", priority=1)
    with at_work(url, tmp_path, "--grace", "0") as process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (1, "stopping\n0 done, 0 failed (0 of them dead), 0 stopped, 1 cut off.\n")
    assert "were returned" in err
    assert "Traceback" not in err
    assert jobs.find(item.id).state == "ready"


def test_a_second_signal_ends_the_grace(store: Store, url: str, tmp_path: Path) -> None:
    store.queue("jobs").push(b"hang", priority=1)
    with at_work(url, tmp_path, "--grace", "3600") as process:
        for line in ("begun\n", "stopping\n"):
            assert process.stdout.readline() == line
            process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (1, "0 done, 0 failed (0 of them dead), 0 stopped, 1 cut off.\n")
    assert store.queue("jobs").depth() == 1


def test_an_item_of_a_killed_worker_is_not_lost(store: Store, url: str, tmp_path: Path) -> None:
    jobs = store.queue("jobs")
    item = jobs.push(b"hang", priority=1)
    with at_work(url, tmp_path) as process:
        assert process.stdout.readline() == "begun\n"
        process.kill()
        process.wait(PATIENCE)
    (lease,) = jobs.leased().items
    assert (lease.id, lease.attempts) == (item.id, 1)
    assert lease.expires_at is not None
