"""`pop` and `lease` with --exec and --raw: the program's exit code decides, whatever ends it."""

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from queues import PriorityQueue, Store
from tests.commands.conftest import PATIENCE, command
from tests.forks import run_forked
from tests.waiting import await_true


def run(url: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end."""
    return run_forked(*arguments, "--store", url)


@pytest.mark.parametrize("verb", ["pop", "lease"])
def test_a_program_gets_the_value_and_its_success_acknowledges_the_item(
    url: str, store: Store, jobs: PriorityQueue, verb: str
) -> None:
    value = b"\x00\xff" * 45_000  # more than a pipe holds
    item = jobs.push(value, priority=-5)
    line = """sh -c 'cat; echo "$PQ_QUEUE $PQ_ID $PQ_PRIORITY $PQ_ATTEMPT" >&2'"""
    done = run(url, verb, "jobs", "--exec", line)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (0, value, f"jobs {item.id} -5 1\n")
    assert jobs.find(item.id) is None
    assert list(store.trash.entries().entries) == []
    empty = run(url, verb, "jobs", "--exec", line)
    assert (empty.returncode, empty.stdout, empty.stderr) == (4, b"", b"jobs has nothing ready.\n")


@pytest.mark.parametrize("verb", ["pop", "lease"])
def test_a_program_that_fails_has_its_item_released_with_what_it_said_last(
    url: str, jobs: PriorityQueue, verb: str
) -> None:
    first, second = jobs.push_many([(b"1", 1), (b"2", 2)])
    done = run(url, verb, "jobs", "-n", "9", "--exec", "sh -c 'echo begun >&2; echo no such address >&2; exit 3'")
    assert (done.returncode, done.stdout) == (5, b"")
    assert done.stderr.decode().splitlines() == [
        "begun",
        "no such address",
        f"jobs: sh ended with exit code 3; the item {first.id} is ready.",
    ]
    back = jobs.find(first.id)
    assert (back.state, back.attempts) == ("ready", 1)
    (attempt,) = back.attempt_log
    assert (attempt.error, attempt.traceback) == (
        "sh ended with exit code 3: no such address",
        "begun\nno such address",
    )
    assert jobs.find(second.id).attempts == 0


def test_an_item_comes_back_after_a_delay_and_is_dead_after_its_last_attempt(
    url: str, store: Store, jobs: PriorityQueue
) -> None:
    store.actions("ada").configure("jobs", max_attempts=2)
    item = jobs.push(b"1", priority=1)
    done = run(url, "lease", "jobs", "--exec", "false", "--delay", "1h", "--json")
    (shape,) = json.loads(done.stdout)["items"]
    assert (shape["exit_code"], shape["acknowledged"], shape["state"]) == (1, False, "delayed")
    assert json.loads(done.stderr)["error"]["message"].endswith("is delayed.")
    jobs.promote_now(item.id)
    dead = run(url, "lease", "jobs", "--exec", "false")
    assert (dead.returncode, dead.stderr.decode()) == (
        5,
        f"jobs: false ended with exit code 1; the item {item.id} is dead.\n",
    )


def test_several_are_handled_one_after_the_other_until_nothing_is_ready(url: str, jobs: PriorityQueue) -> None:
    jobs.push_many([(b"a\n", 1), (b"b\n", 2), (b"c\n", 3)])
    done = run(url, "pop", "jobs", "-n", "9", "--end=max", "--exec", "cat", "--jsonl")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["value"], one["exit_code"], one["acknowledged"]) for one in told] == [
        ("c\n", 0, True),
        ("b\n", 0, True),
        ("a\n", 0, True),
    ]
    assert (done.returncode, done.stderr, jobs.depth()) == (0, b"c\nb\na\n", 0)


def test_a_program_that_is_killed_is_a_failure_told_by_its_signal(url: str, jobs: PriorityQueue) -> None:
    item = jobs.push(b"1", priority=1)
    done = run(url, "lease", "jobs", "--exec", "sh -c 'kill -9 $$'")
    assert done.returncode == 5
    assert jobs.find(item.id).attempt_log[-1].error == "sh was killed by SIGKILL"


@pytest.mark.parametrize("line", ["no-such-program-at-all --x", "", "sh 'unclosed"])
def test_what_cannot_be_run_is_refused_before_anything_is_leased(url: str, jobs: PriorityQueue, line: str) -> None:
    item = jobs.push(b"1", priority=1)
    done = run(url, "lease", "jobs", f"--exec={line}")
    assert (done.returncode, done.stderr.startswith(b"--exec: "), done.stderr.count(b"\n")) == (1, True, 1)
    assert jobs.find(item.id).attempts == 0


def started(jobs: PriorityQueue, folder: Path) -> None:
    """Wait until the program of a lease has begun."""
    await_true((folder / "begun").exists)
    assert jobs.depth("leased") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_is_passed_on_and_the_item_returns_without_an_attempt(
    url: str, jobs: PriorityQueue, tmp_path: Path, number: signal.Signals
) -> None:
    item = jobs.push(b"1", priority=1)
    line = f"sh -c 'touch {tmp_path}/begun; sleep 600'"
    with command("lease", "jobs", "-n", "5", "--exec", line, "--store", url) as process:
        started(jobs, tmp_path)
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (-number if number == signal.SIGINT else 130, b"Interrupted.\n")
    back = jobs.find(item.id)
    assert (back.state, back.attempts) == ("ready", 0)


def test_a_program_that_ends_well_after_a_stop_has_its_item_acknowledged(
    url: str, jobs: PriorityQueue, tmp_path: Path
) -> None:
    first, second = jobs.push_many([(b"1", 1), (b"2", 2)])
    line = f"sh -c 'trap \"exit 0\" TERM; touch {tmp_path}/begun; while :; do sleep 0.05; done'"
    with command("lease", "jobs", "-n", "5", "--exec", line, "--store", url) as process:
        started(jobs, tmp_path)
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert (jobs.find(first.id), jobs.find(second.id).attempts) == (None, 0)


@pytest.mark.parametrize("how", ["grace", "again"])
def test_a_program_that_does_not_stop_is_killed_with_all_it_started(
    url: str, jobs: PriorityQueue, tmp_path: Path, how: str
) -> None:
    item = jobs.push(b"1", priority=1)
    grace = "0.1" if how == "grace" else "3600"
    (tmp_path / "stubborn").write_text(
        f'trap "touch {tmp_path}/asked" TERM; echo $$ > {tmp_path}/pid; touch {tmp_path}/begun\n'
        "while :; do sleep 0.05; done\n"
    )
    line = f"sh {tmp_path}/stubborn"
    with command("lease", "jobs", "--exec", line, "--grace", grace, "--store", url) as process:
        started(jobs, tmp_path)
        process.terminate()
        if how == "again":
            await_true((tmp_path / "asked").exists)
            process.terminate()
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert jobs.find(item.id).attempts == 0


def test_a_program_is_stopped_when_the_command_itself_is_killed(url: str, jobs: PriorityQueue, tmp_path: Path) -> None:
    item = jobs.push(b"1", priority=1)
    (tmp_path / "handler").write_text(
        f'trap "touch {tmp_path}/asked; exit" TERM; echo begun >&2\n'
        "exec 2> /dev/null\n"  # the reader of its errors is gone then
        "while :; do sleep 0.05; done\n"
    )
    with command("lease", "jobs", "--for=3s", "--exec", f"sh {tmp_path}/handler", "--store", url) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"begun\n"  # the command passes it on once its guard knows the program
        process.kill()
        await_true((tmp_path / "asked").exists)
    assert process.returncode == -signal.SIGKILL
    again = jobs.lease(seconds=60, wait=PATIENCE)
    assert (again.item.id, again.item.attempts) == (item.id, 2)


@pytest.mark.parametrize("how", ["stopped", "killed", "lease lost"])
def test_a_program_that_makes_a_process_group_of_its_own_is_stopped_too(
    url: str, store: Store, jobs: PriorityQueue, tmp_path: Path, how: str
) -> None:
    item = jobs.push(b"1", priority=1)
    line = f"timeout 600 sh -c 'echo $$ > {tmp_path}/pid; touch {tmp_path}/begun; echo begun >&2; sleep 600'"
    with command("lease", "jobs", "--for=3s", "--exec", line, "--store", url) as process:
        started(jobs, tmp_path)
        assert process.stderr is not None
        assert process.stderr.readline() == b"begun\n"  # the command passes it on once its guard knows the program
        if how == "stopped":
            process.terminate()
        elif how == "killed":
            process.kill()
        else:
            store.actions("ada").release("jobs", [item.id], reason="stuck")
        process.wait(timeout=PATIENCE)
    await_ended(tmp_path / "pid")


#: The command, which is killed as soon as it has started its program: it cannot tell of that any more.
KILLED_AT_ONCE = """
import os, signal, subprocess, sys

class Popen(subprocess.Popen):
    def __init__(self, arguments, **named):
        super().__init__(arguments, **named)
        if arguments[-1].endswith("/handler"):
            with open(arguments[-1] + ".pid", "w") as file:
                file.write(str(self.pid))
            os.kill(os.getpid(), signal.SIGKILL)

subprocess.Popen = Popen
from pqadmin.cli import main
main()
"""


def test_a_program_is_stopped_when_the_command_was_killed_while_it_started_it(
    url: str, jobs: PriorityQueue, tmp_path: Path
) -> None:
    jobs.push(b"1", priority=1)
    (tmp_path / "handler").write_text("while :; do sleep 0.05; done\n")
    asked = ["lease", "jobs", "--exec", f"sh {tmp_path}/handler", "--store", url]
    ended = run_forked(*asked, source=KILLED_AT_ONCE)
    assert ended.returncode == -signal.SIGKILL
    await_ended(tmp_path / "handler.pid")


#: The command on a machine without a shell.
WITHOUT_A_SHELL = """
import subprocess

class Popen(subprocess.Popen):
    def __init__(self, arguments, **named):
        if arguments[0] == "/bin/sh":
            raise FileNotFoundError(2, "No such file or directory")
        super().__init__(arguments, **named)

subprocess.Popen = Popen
from pqadmin.cli import main
main()
"""


def test_a_program_is_run_without_a_guard_where_there_is_no_shell(
    url: str, jobs: PriorityQueue, tmp_path: Path
) -> None:
    item = jobs.push(b"1", priority=1)
    asked = ["lease", "jobs", "--exec", f"sh -c 'touch {tmp_path}/begun; sleep 600'", "--store", url]
    with command(*asked, program=("-c", WITHOUT_A_SHELL)) as process:
        started(jobs, tmp_path)
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert jobs.find(item.id).attempts == 0


def await_ended(pid: Path) -> None:
    """Wait until the program has ended of which a file has the number."""
    program = Path("/proc") / pid.read_text().strip()
    await_true(lambda: not (program / "cmdline").exists() or not (program / "cmdline").read_bytes())


def test_a_program_that_ignores_stops_ends_with_a_killed_command(url: str, jobs: PriorityQueue, tmp_path: Path) -> None:
    jobs.push(b"1", priority=1)
    (tmp_path / "stubborn").write_text(
        f'trap "touch {tmp_path}/asked" TERM; echo $$ > {tmp_path}/pid; echo begun >&2\n'
        "exec 2> /dev/null\n"  # the reader of its errors is gone then
        "while :; do sleep 0.05; done\n"
    )
    line = f"sh {tmp_path}/stubborn"
    with command("lease", "jobs", "--exec", line, "--grace", "0.1", "--store", url) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"begun\n"
        process.kill()
    await_ended(tmp_path / "pid")
    assert (tmp_path / "asked").exists()


def test_the_lease_is_extended_while_the_program_runs(url: str, jobs: PriorityQueue, tmp_path: Path) -> None:
    item = jobs.push(b"1", priority=1)
    line = f"sh -c 'touch {tmp_path}/begun; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done'"
    with command("lease", "jobs", "--for=3s", "--exec", line, "--store", url) as process:
        started(jobs, tmp_path)
        first = jobs.find(item.id).expires_at
        await_true(lambda: jobs.find(item.id).expires_at > first + timedelta(seconds=1))
        jobs.expire()
        (tmp_path / "go").touch()
        process.communicate(timeout=PATIENCE)
    assert (process.returncode, jobs.find(item.id)) == (0, None)


def test_a_program_whose_lease_is_taken_away_is_killed(
    url: str, store: Store, jobs: PriorityQueue, tmp_path: Path
) -> None:
    item = jobs.push(b"1", priority=1)
    line = f"sh -c 'touch {tmp_path}/begun; sleep 600'"
    with command("lease", "jobs", "--for=3s", "--exec", line, "--store", url) as process:
        started(jobs, tmp_path)
        store.actions("ada").release("jobs", [item.id], reason="stuck")
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert err.decode() == f"The lease of {item.id} is over while its command ran: another worker may hold the item.\n"
    assert jobs.find(item.id).state == "ready"


def test_a_command_that_waits_handles_what_is_pushed_meanwhile(url: str, store: Store, jobs: PriorityQueue) -> None:
    with command("pop", "jobs", "--wait=1h", "--exec", "cat", "--store", url) as process:
        await_true(lambda: any(consumer.waiting for consumer in jobs.consumers().live))
        jobs.push(b"late", priority=1)
        out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, jobs.depth()) == (0, b"late", 0)


def test_a_stop_while_it_waits_takes_nothing(url: str, jobs: PriorityQueue) -> None:
    with command("pop", "jobs", "--wait=1h", "--exec", "cat", "--store", url) as process:
        await_true(lambda: any(consumer.waiting for consumer in jobs.consumers().live))
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (130, b"Interrupted.\n")
    assert jobs.consumers().live == (), "the store was closed"


def test_a_program_reaches_the_same_store(url: str, store: Store, jobs: PriorityQueue) -> None:
    store.create_queue("results", kind="fifo")
    jobs.push(b"42", priority=1)
    python = f"{sys.executable} -m pqadmin"
    done = run(url, "lease", "jobs", "--exec", f"{python} push results -")
    assert done.returncode == 0, done.stderr
    assert store.fifo_queue("results").peek().value == b"42"


def test_raw_writes_the_value_alone(url: str, jobs: PriorityQueue) -> None:
    jobs.push_many([(b"\x00raw\xff", 1), (b"leased", 2)])
    assert run(url, "show", "jobs", jobs.peek_min().id, "--raw").stdout == b"\x00raw\xff"
    popped = run(url, "pop", "jobs", "--raw")
    assert (popped.returncode, popped.stdout, popped.stderr) == (0, b"\x00raw\xff", b"")
    leased = run(url, "lease", "jobs", "--raw")
    assert (leased.returncode, leased.stdout) == (0, b"leased")
    word, token = leased.stderr.decode().split()
    assert word == "Token:"
    jobs.ack(token)
    empty = run(url, "pop", "jobs", "--raw")
    assert (empty.returncode, empty.stdout, empty.stderr) == (4, b"", b"jobs has nothing ready.\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["pop", "jobs", "--raw", "-n", "2"],
        ["pop", "jobs", "--raw", "--json"],
        ["lease", "jobs", "--raw", "--exec", "cat"],
        ["pop", "jobs", "--exec", "cat", "--no-trash"],
        ["pop", "jobs", "--exec", "cat", "--reason", "why"],
    ],
)
def test_what_does_not_go_together_is_refused_and_nothing_is_taken(
    url: str, jobs: PriorityQueue, arguments: list[str]
) -> None:
    jobs.push(b"1", priority=1)
    assert (run(url, *arguments).returncode, jobs.depth()) == (1, 1)
