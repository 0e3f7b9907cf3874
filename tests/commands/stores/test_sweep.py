"""`pqadmin sweep`: one round by command, and staying as a process until it is stopped."""

import json
import signal
import subprocess
from datetime import timedelta

import pytest

from queues import Queue, open_store
from tests.commands.conftest import PATIENCE, Run, Shop, command
from tests.conftest import Clock
from tests.waiting import await_true

LONG_AGO = 1_000_000.0


def test_one_round_does_what_is_due_and_says_so(shop: Shop, run: Run) -> None:
    with open_store(shop.url, clock=Clock(LONG_AGO)) as long_ago:
        jobs = long_ago.create_queue("jobs")
        jobs.push_many([(b"1", 1), (b"2", 2)], delay=timedelta(seconds=1))
        jobs.push(b"leased", priority=3)
        jobs.lease(seconds=1)
        long_ago.create_queue("old")
        long_ago.delete_queue("old")
    shop.store.queue("jobs").push(b"later", priority=1, delay=timedelta(hours=1))
    answer = run("sweep")
    said = answer.out.strip()
    assert said.startswith("2 delayed items made ready, 1 lease ended, ")
    assert "keys of old trash cleared" in said
    jobs = shop.store.queue("jobs")
    assert (jobs.depth(), jobs.depth("delayed"), jobs.depth("leased")) == (3, 1, 0)
    assert run("sweep").out.strip() == "Nothing was due."


def test_one_round_is_told_as_json(shop: Shop, run: Run) -> None:
    with open_store(shop.url, clock=Clock(LONG_AGO)) as long_ago:
        long_ago.create_queue("jobs").push(b"1", priority=1, delay=timedelta(seconds=1))
    done = run("sweep", "--json").json
    assert done.pop("slots") >= 0
    nothing = dict.fromkeys(("expired", "merged", "trash", "unclaimed", "audit", "answers", "consumers", "finished"), 0)
    assert done == {"promoted": 1, **nothing}


@pytest.mark.parametrize(("days", "left"), [(400, 0), (0, 1)])
def test_old_acts_are_forgotten_as_the_setting_says(shop: Shop, run: Run, settings, days: int, left: int) -> None:
    settings.PQADMIN_AUDIT_DAYS = days
    with open_store(shop.url, clock=Clock(LONG_AGO)) as long_ago:
        long_ago.actions("ann").create_queue("jobs")
    assert run("sweep", "--json").json["audit"] == 1 - left
    assert len(shop.store.audit.entries().entries) == left


def line(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline().strip()


def error_line(process: subprocess.Popen[str]) -> str:
    return process.stderr.readline().strip()


@pytest.mark.parametrize("engine", ["embedded"])
def test_watching_processes_take_turns_when_they_are_stopped(shop: Shop, jobs: Queue) -> None:
    soon = timedelta(milliseconds=20)
    with command("sweep", "--watch", "--store", shop.url, text=True) as first:
        assert error_line(first) == f"Offering to sweep {shop.url}; stop with Ctrl-C."
        assert error_line(first) == "Sweeping."
        jobs.push(b"1", priority=1, delay=soon)
        assert line(first) == "1 delayed item made ready."
        with command("sweep", "--watch", "--store", shop.url, "--json", text=True) as second:
            assert error_line(second).startswith("Offering")
            first.send_signal(signal.SIGTERM)
            assert line(first) == "Ended. 1 delayed item made ready."
            assert first.wait(PATIENCE) == 0
            assert error_line(second) == "Sweeping."
            jobs.push(b"2", priority=1, delay=soon)
            assert json.loads(line(second))["promoted"] == 1
            second.send_signal(signal.SIGINT)
            assert second.wait(PATIENCE) == 0
    assert jobs.depth() == 2


@pytest.mark.parametrize("engine", ["embedded"])
def test_a_watching_process_ends_when_its_output_is_not_read_any_more(shop: Shop, jobs: Queue) -> None:
    with command("sweep", "--watch", "--store", shop.url, text=True) as process:
        assert error_line(process) == f"Offering to sweep {shop.url}; stop with Ctrl-C."
        assert error_line(process) == "Sweeping."
        process.stdout.close()
        jobs.push(b"1", priority=1, delay=timedelta(milliseconds=20))
        assert process.wait(PATIENCE) == 141
        assert process.stderr.read() == ""
    await_true(lambda: jobs.depth() == 1)
