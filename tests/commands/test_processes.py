"""Commands as processes of their own: killed, interrupted, with a closed pipe; and what is in the store afterwards."""

import json
import os
import select
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from pqadmin.commands.stop_signals import Interrupted, Interruption
from queues import Queue, Store
from tests.all_items import all_items
from tests.commands.conftest import PATIENCE, ROOT, command
from tests.forks import run_forked, run_forked_text
from tests.programs import run_to_end
from tests.waiting import await_true

#: The commands; their search for items is held up behind the first step.
HELD = """
import threading

from pqadmin.cli import main
from queues import Queue

search = Queue.search


def held(queue, query, **how):
    if how["after"] is not None:
        threading.Event().wait()
    return search(queue, query, **how)


Queue.search = held
main()
"""
#: The commands; a signal asks a pop to stop between its commit and the next step.
STOPPED = """
import signal

from pqadmin.cli import main
from queues import Actions

pop_many = Actions.pop_many


def stopped(*arguments, **options):
    popped = pop_many(*arguments, **options)
    if popped:
        signal.raise_signal(signal.SIGTERM)
    return popped


Actions.pop_many = stopped
main()
"""
#: The commands; two signals ask a pop to stop while it takes the rest.
STOPPED_TWICE = """
import signal

from pqadmin.cli import main
from queues import Actions

pop_many = Actions.pop_many
steps = []


def stopped(*arguments, **options):
    steps.append(1)
    if len(steps) == 2:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    return pop_many(*arguments, **options)


Actions.pop_many = stopped
main()
"""
#: The commands; a signal asks to stop when the first bulk job has ended.
STOPPED_AFTER_A_JOB = """
import signal

from pqadmin.cli import main
from queues import Actions

run_bulk = Actions.run_bulk


def stopped(*arguments, **options):
    job = run_bulk(*arguments, **options)
    signal.raise_signal(signal.SIGTERM)
    return job


Actions.run_bulk = stopped
main()
"""
#: Says that the processes which a command starts need some seconds for it.
SLOW_TO_START = """
import sys
import threading

if "--multiprocessing-fork" in sys.orig_argv:
    threading.Event().wait(3)
"""


#: A device on which nothing can be written.
FULL = Path("/dev/full")


def line(number: int) -> bytes:
    """Return a line whose value and priority are its number."""
    return b'{"value": "%d", "priority": %d}\n' % (number, number)


def counted(queue: Queue) -> Counter[int]:
    """Return how often each value is in the queue."""
    return Counter(int(item.value) for item in all_items(queue.items))


def committed(process: subprocess.Popen[bytes], commits: int) -> int:
    """Read the progress until so many commits were told; return the last committed line."""
    for _ in range(commits):
        told = process.stderr.readline().decode()
        assert "ommitted" in told, told
    return int(json.loads(told)["committed"]["last_line"] if told.startswith("{") else told.split()[3])


@pytest.mark.crash
@pytest.mark.parametrize("commits", [1, 3, 17])
def test_after_kill_9_resume_gives_every_line_once(url: str, store: Store, tmp_path: Path, commits: int) -> None:
    queue = store.create_queue("jobs")
    file = tmp_path / "items.ndjson"
    file.write_bytes(b"".join(map(line, range(1, 30_001))))
    with command("import_items", "jobs", str(file), "--json", "--store", url, "--chunk", "20") as process:
        told = committed(process, commits)
        process.kill()
        assert process.wait(PATIENCE) == -signal.SIGKILL
    # The kill may fall between a commit and its line: then one chunk more is in than was told.
    assert told <= queue.depth() < 30_000
    assert queue.depth() % 20 == 0
    with command("import_items", "jobs", str(file), "--store", url, "--resume", "--json", "--quiet") as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert json.loads(out)["last_line"] == 30_000
    assert counted(queue) == Counter(range(1, 30_001))


@pytest.mark.crash
def test_after_kill_9_skipping_to_the_told_line_gives_every_line_once(url: str, store: Store, tmp_path: Path) -> None:
    queue = store.create_queue("jobs")
    with command("import_items", "jobs", "-", "--format", "ndjson", "--store", url, "--chunk", "10") as process:
        process.stdin.write(b"".join(map(line, range(1, 36))))
        process.stdin.flush()
        told = committed(process, 3)  # 5 lines are read and wait for the chunk's rest, which never comes
        process.kill()
        process.wait(PATIENCE)
    assert told == 30
    everything = b"".join(map(line, range(1, 101)))
    with command("import_items", "jobs", "-", "--skip", str(told), "--store", url) as process:
        process.communicate(everything, timeout=PATIENCE)
    assert process.returncode == 0
    assert counted(queue) == Counter(range(1, 101))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_tells_the_last_committed_line(url: str, store: Store, number: signal.Signals) -> None:
    queue = store.create_queue("jobs")
    with command("import_items", "jobs", "-", "--format", "ndjson", "--store", url, "--chunk", "10") as process:
        process.stdin.write(b"".join(map(line, range(1, 36))))
        process.stdin.flush()
        committed(process, 3)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == (-number if number == signal.SIGINT else 130)
    assert b"Last committed line: 30." in out
    assert b"Interrupted. Committed to line 30: continue with --skip 30." in err
    assert b"Traceback" not in err
    assert queue.depth() == 30


def test_a_stop_during_a_commit_waits_for_its_end() -> None:
    done, before = [], signal.getsignal(signal.SIGINT)  # a shell's jobs in the background are not interrupted

    def commit(interruption: Interruption) -> None:
        with interruption.held():
            signal.raise_signal(signal.SIGINT)
            done.append("committed")

    with Interruption() as interruption:
        with pytest.raises(Interrupted):
            commit(interruption)
        assert interruption.requested
        with pytest.raises(Interrupted):
            signal.raise_signal(signal.SIGTERM)
    assert done == ["committed"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_closed_pipe_ends_an_export_quietly(url: str, store: Store) -> None:
    queue = store.create_queue("jobs")
    for _ in range(10):
        queue.push_many([(b"x" * 500, 1)] * 1_000)
    with command("export_items", "jobs", "--store", url) as process:
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(PATIENCE) == 141
    assert err == b""


def test_a_pipe_that_was_closed_before_the_first_word_is_quiet_too(url: str, store: Store) -> None:
    store.create_queue("jobs")
    with command("queues", "--store", url) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(PATIENCE) == 141


@pytest.mark.parametrize(("options", "taken"), [(["-n", "600"], 500), ([], 1), (["--wait", "1h", "-n", "3"], 3)])
def test_an_interrupted_pop_prints_what_it_took(url: str, store: Store, options: list[str], taken: int) -> None:
    queue = store.create_queue("jobs")
    queue.push_many([(b"%d" % n, n) for n in range(600)])
    ended = run_forked_text("pop", "jobs", *options, "--no-trash", "--jsonl", "--store", url, source=STOPPED)
    values = [int(json.loads(line)["value"]) for line in ended.stdout.splitlines()]
    assert (ended.returncode, values, queue.depth()) == (130, list(range(taken)), 600 - taken)
    assert json.loads(ended.stderr.splitlines()[-1])["error"] == {
        "code": "Interrupted",
        "message": "Interrupted.",
        "suggestions": [],
    }


def test_a_second_stop_ends_a_pop_that_takes(url: str, store: Store) -> None:
    queue = store.create_queue("jobs")
    queue.push_many([(b"%d" % n, n) for n in range(600)])
    words = ("pop", "jobs", "-n", "600", "--no-trash", "--jsonl", "--store", url)
    ended = run_forked_text(*words, source=STOPPED_TWICE)
    values = [int(json.loads(line)["value"]) for line in ended.stdout.splitlines()]
    assert (ended.returncode, values, queue.depth()) == (130, list(range(500)), 100)


def test_a_stop_between_jobs_tells_those_that_ended(url: str, store: Store) -> None:
    actions = store.actions("ann")
    for name in ("first", "second"):
        store.create_queue(name).push(b"x", 1)
        store.create_queue(f"{name}-target")
        actions.begin_bulk("move", name, to=f"{name}-target")
    ended = run_forked_text("jobs", "run", "--json", "--store", url, source=STOPPED_AFTER_A_JOB)
    (left,) = actions.running_jobs()
    shown = json.loads(ended.stdout)
    assert (ended.returncode, shown["status"], shown["items"]) == (130, "done", 1)
    assert shown["job"] != left.id
    assert f"pqadmin jobs run {left.id}" in json.loads(ended.stderr.splitlines()[-1])["error"]["message"]


def test_an_interrupted_raw_pop_writes_the_value(url: str, store: Store) -> None:
    store.create_queue("jobs").push(b"first", 1)
    ended = run_forked_text("pop", "jobs", "--raw", "--no-trash", "--store", url, source=STOPPED)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "first", "Interrupted.\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_stop_ends_a_pop_of_which_the_output_is_not_read(
    url: str, store: Store, number: signal.Signals
) -> None:
    queue = store.create_queue("jobs")
    queue.push_many([(b"x" * 1_000, 1)] * 500)
    with command("pop", "jobs", "-n", "500", "--jsonl", "--store", url) as process:
        await_true(lambda: not queue.depth())
        process.stdout.read(1)  # it prints, and fills the pipe
        await_true(lambda: process.poll() is not None, meanwhile=lambda: process.send_signal(number))
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode in {130, -number}


@pytest.mark.parametrize(
    ("redirected", "told", "left"),
    [
        (
            "> /dev/full",
            b"Standard output cannot be written: No space left on device. What the command has done stays done.\n",
            0,
        ),
        (
            "--raw > /dev/full",
            b"Standard output cannot be written: No space left on device. What the command has done stays done.\n",
            0,
        ),
        (">&-", b"Standard output is closed: nothing was done. Send it to a file, or /dev/null.\n", 1),
    ],
)
def test_a_pop_that_cannot_tell_what_it_took_says_so(
    url: str, store: Store, redirected: str, told: bytes, left: int
) -> None:
    queue = store.create_queue("jobs")
    queue.push(b"x", 1)
    shell = f"exec {sys.executable} -m pqadmin pop jobs --store {url} {redirected}"
    ended = subprocess.run(["sh", "-c", shell], cwd=ROOT, stderr=subprocess.PIPE, timeout=PATIENCE)
    assert (ended.returncode, ended.stderr, queue.depth()) == (1, told, left)


@pytest.mark.parametrize(
    "command",
    ["", "--version", "help", "help push", "help --all", "completion bash", "push --help", "push --version"],
)
def test_help_that_cannot_be_written_says_so(command: str) -> None:
    with FULL.open("wb") as device:
        full = run_forked_text(*command.split(), stdout=device)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        closed = run_forked_text(*command.split(), stdout=pipe)
    assert full.returncode == 1
    assert full.stderr.startswith("Standard output cannot be written: No space left on device.")
    assert full.stderr.count("\n") == 1
    assert closed.stderr == ""


@pytest.mark.parametrize("command", ["", "help", "completion bash", "queues --json", "serve", "work x --handlers json"])
def test_a_command_without_standard_output_says_so(command: str) -> None:
    ended = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m pqadmin {command} >&-"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        timeout=PATIENCE,
    )
    told = b"Standard output is closed: nothing was done. Send it to a file, or /dev/null.\n"
    assert (ended.returncode, ended.stderr) == (1, told)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_output_of_another_encoding_tells_what_was_taken(url: str, store: Store, encoding: str) -> None:
    queue = store.create_queue("jobs")
    queue.push_many([("grüße 订单".encode(), n) for n in range(2)])
    shown, told = (
        run_to_end(
            [sys.executable, "-m", "pqadmin", "pop", "jobs", *options, "--store", url],
            cwd=ROOT,
            env=os.environ | {"PYTHONIOENCODING": encoding},
            text=False,
        )
        for options in ([], ["--json"])
    )
    assert (shown.returncode, shown.stderr, told.returncode, told.stderr) == (0, b"", 0, b"")
    assert b"Undo: " in shown.stdout
    assert json.loads(told.stdout)["items"][0]["value"] == "grüße 订单"
    refused = run_to_end(
        [sys.executable, "-m", "pqadmin", "pop", "grüße", "--json", "--store", url],
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": encoding},
        text=False,
    )
    assert "grüße" in json.loads(refused.stderr.splitlines()[-1])["error"]["message"]


def test_errors_as_json_have_the_codes_of_the_reference(url: str, store: Store, tmp_path: Path) -> None:
    store.create_queue("jobs")
    (tmp_path / "bad").write_bytes(b'{"value": "a"}\n')
    for words, code in [
        (["import_items", "jobs", str(tmp_path)], "OSError"),
        (["import_items", "jobs", str(tmp_path / "none")], "OSError"),
        (["import_items", "jobs", str(tmp_path / "bad")], "BadLines"),
        (["import_items", "jobs", str(tmp_path / "bad"), "--strict"], "StoppedAtBadEntry"),
        (["push", "jobs", "x", "--priority", "y"], "BadPriority"),
    ]:
        ended = run_forked_text(*words, "--json", "--store", url)
        assert json.loads(ended.stderr.splitlines()[-1])["error"]["code"] == code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_stop_signal_ends_a_command_that_waits(url: str, store: Store, number: signal.Signals) -> None:
    store.create_queue("jobs")
    with command("pop", "jobs", "--wait", "1h", "--json", "--store", url) as process:
        await_true(lambda: store.queue("jobs").consumers().live)
        process.send_signal(number)
        assert process.wait(PATIENCE) == (-signal.SIGINT if number == signal.SIGINT else 130)
        assert json.loads(process.stderr.read())["error"]["code"] == "Interrupted"


def test_an_export_that_cannot_be_written_says_so(url: str, store: Store) -> None:
    store.create_queue("jobs").push_many([(b"x" * 500, 1)] * 1_000)
    with FULL.open("wb") as device:
        ended = run_forked("export_items", "jobs", "--store", url, stdout=device)
    assert ended.returncode == 1
    assert ended.stderr.startswith(b"Standard output cannot be written: No space left on device.")
    assert ended.stderr.count(b"\n") == 1


def test_an_interrupted_export_leaves_no_file(url: str, store: Store, tmp_path: Path) -> None:
    queue = store.create_queue("jobs")
    queue.push_many([(b"x" * 500, 1)] * 1_000)
    folder = tmp_path / "out"
    folder.mkdir()
    with command("export_items", "jobs", str(folder / "jobs.ndjson"), "--store", url, program=("-c", HELD)) as process:
        while not any(folder.iterdir()):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert list(folder.iterdir()) == []


# load


def children(process: subprocess.Popen[bytes]) -> list[int]:
    """Return the ids of a process's children (threads of it may have started them)."""
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
    return [int(number) for task in tasks for number in task.read_text().split()]


def await_end(processes: list[int]) -> None:
    """Wait until every process, given as an open pidfd, has ended."""
    waiting = list(processes)
    while waiting:
        ended, _, _ = select.select(waiting, [], [], PATIENCE)
        assert ended, "a process of the load outlived it"
        for descriptor in ended:
            waiting.remove(descriptor)
            os.close(descriptor)


def pushed_and_taken(store: Store) -> tuple[int, int]:
    """Return the traffic of all queues, exactly."""
    totals = [queue.totals().traffic for queue in store.queues()]
    return (
        sum(traffic.get("push", 0) + traffic.get("enqueue", 0) for traffic in totals),
        sum(traffic.get("pop", 0) + traffic.get("dequeue", 0) for traffic in totals),
    )


def await_traffic(store: Store) -> None:
    """Wait until something was taken."""
    while True:
        queues = store.queues()
        snapshot = store.snapshot([queue.id for queue in queues])
        if queues and pushed_and_taken(store)[1] > 0:
            return
        assert store.wait_for_change(snapshot, timeout=PATIENCE), "the load does nothing"


LOAD = ("load", "--queues", "5", "--push-rate", "400", "--pop-rate", "300", "--producers", "2", "--json")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_load_stops_cleanly_and_its_summary_is_exact(url: str, store: Store, number: signal.Signals) -> None:
    with command(*LOAD, "--store", url) as process:
        await_traffic(store)
        started = [os.pidfd_open(pid) for pid in children(process)]
        assert len(started) >= 3
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert b"Traceback" not in err
    summary = json.loads(out)
    assert (summary["pushed"], summary["taken"]) == pushed_and_taken(store)
    assert summary["pushed"] > 0
    await_end(started)


def test_a_load_has_dead_delayed_and_unserved_items(url: str, store: Store) -> None:
    settings = ("--queues", "9", "--push-rate", "300", "--pop-rate", "300", "--json", "--store", url)
    with command("load", *settings) as process:
        await_true(
            lambda: all(any(queue.depth(state) for queue in store.queues()) for state in ("ready", "delayed", "dead"))
        )
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0


def test_processes_of_a_killed_load_end_by_themselves(url: str, store: Store) -> None:
    with command(*LOAD, "--store", url) as process:
        await_traffic(store)
        watched = [os.pidfd_open(pid) for pid in children(process)]
        process.kill()
        await_end(watched)


def test_load_works_for_its_seconds_and_is_never_faster_than_asked(url: str, store: Store, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW_TO_START)
    with command(*LOAD, "--seconds", "2", "--store", url, PYTHONPATH=f"{tmp_path}:{ROOT}") as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    summary = json.loads(out)
    assert summary["seconds"] >= 2
    assert (summary["pushed"], summary["taken"]) == pushed_and_taken(store)
    assert 0 < summary["pushed"] <= 400 * (summary["seconds"] + 0.05), (
        "all of its time went by before anything was pushed"
    )


def test_load_needs_a_store_that_other_callers_can_open() -> None:
    with command(*LOAD, "--store", "memory:") as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert json.loads(err)["error"]["message"].startswith("memory: is private")


def test_a_loop_over_pop_in_a_shell_ends(url: str, store: Store) -> None:
    store.create_queue("jobs").push_many([(b"first", 1), (b"second", 2)])
    loop = 'while "$0" manage.py pop jobs --json --store "$1"; do :; done; "$0" manage.py pop jobs --store "$1"'
    done = run_to_end(
        ["sh", "-c", loop, sys.executable, url],
        cwd=ROOT,
    )
    shapes = [json.loads(line) for line in done.stdout.splitlines()[:3]]
    assert [[item["value"] for item in shape["items"]] for shape in shapes] == [["first"], ["second"], []]
    assert (done.returncode, done.stdout.splitlines()[3:], done.stderr) == (4, ["jobs has nothing ready."], "")


def test_with_json_the_log_is_json_too(url: str, store: Store, tmp_path: Path) -> None:
    (tmp_path / "store").chmod(0o777)  # which is warned of
    with command("queues", "--store", url, "--json") as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert json.loads(out) == {"queues": []}
    logged = json.loads(err)["log"]
    assert logged.keys() == {"at", "level", "logger", "message"}
    assert logged["level"] == "WARNING"
    assert "every user of this machine may write" in logged["message"]
