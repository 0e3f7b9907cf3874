"""copy_store as people run it: its lines and its JSON, killed and run again, refused."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from queues import open_store
from queues.errors import CopyUnfinished
from tests.commands.terminals import on_terminal
from tests.full_count import check_full_count

ROOT = Path(__file__).resolve().parents[3]
#: Seconds; reached only when something hangs.
PATIENCE = 120

#: The command; its copy waits for ever behind the second step, so that it is not done before it is killed.
HELD = """
import itertools
import threading

from pqadmin.cli import main
from queues.tools import copy

steps, progress = itertools.count(1), copy.Progress


def held(**fields):
    if next(steps) == 3:
        threading.Event().wait()
    return progress(**fields)


copy.Progress = held
main()
"""


def run(*arguments: str) -> tuple[str, str, CommandError | None]:
    """Call the command; return what it printed and how it failed."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("copy_store", *arguments, stdout=out, stderr=err)
    except CommandError as error:
        return out.getvalue(), err.getvalue(), error
    return out.getvalue(), err.getvalue(), None


@pytest.fixture
def urls(tmp_path: Path) -> tuple[str, str]:
    """The URLs of a store with a few items, and of a place to copy it to."""
    here, there = f"lmdb:{tmp_path / 'here'}", f"lmdb:{tmp_path / 'there'}"
    with open_store(here) as store:
        store.create_queue("jobs").push_many([(b"%d" % n, n % 5) for n in range(500)])
    return here, there


def test_it_tells_progress_and_what_was_verified(urls: tuple[str, str]) -> None:
    out, err, error = run(*urls)
    assert error is None
    assert re.fullmatch(
        rf"Copied {urls[0]} to {urls[1]} in [\d.]+ s: 1,0\d\d keys, .+\. "
        r"Both sides were read whole and are equal: SHA-256 [0-9a-f]{64}\.\n",
        out.replace("\N{NARROW NO-BREAK SPACE}", ",").replace("\N{THIN SPACE}", ","),
    )
    assert err == "", "progress is for terminals"
    with open_store(urls[1]) as store:
        assert check_full_count(store, store.queue("jobs")) == 500


def test_on_a_terminal_it_tells_progress(urls: tuple[str, str]) -> None:
    with on_terminal("copy_store", *urls) as terminal:
        terminal.until(lambda: b"Copied " in terminal.written)
        assert terminal.process.wait(PATIENCE) == 0
    told = [line.partition(b":")[0] for line in terminal.written.splitlines()]
    assert told[:3] == [b"Copying", b"Verifying", b"Finishing"]


def test_a_copy_is_told_as_json(urls: tuple[str, str]) -> None:
    out, err, _ = run(*urls, "--json")
    shape = json.loads(out)
    with open_store(urls[0]) as store:
        store_id = store.id
    assert {key: shape[key] for key in ("from", "to", "store_id", "rounds", "resumed")} == {
        "from": urls[0],
        "to": urls[1],
        "store_id": store_id,
        "rounds": 1,
        "resumed": False,
    }
    assert shape["keys"] > 1_000
    assert len(shape["checksum"]) == 64
    lines = [json.loads(line) for line in err.splitlines()]
    assert [line["phase"] for line in lines] == ["copying", "verifying", "finishing"]
    assert all(set(line) == {"phase", "keys", "bytes"} for line in lines)
    assert run(*urls, "--quiet")[2] is not None


def test_a_killed_copy_goes_on_and_ends_equal(urls: tuple[str, str]) -> None:
    here, there = urls
    with open_store(here) as store:
        for _ in range(6):
            store.queue("jobs").push_many([(b"x" * 100, n % 7) for n in range(1_000)])
    process = subprocess.Popen(
        [sys.executable, "-c", HELD, "copy_store", here, there, "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        told = b""
        while b'"copying"' not in told:  # then the first chunk is committed
            told = process.stderr.readline()
            assert told, "the copy ended by itself"
        process.kill()
        assert process.wait(PATIENCE) == -9
    with pytest.raises(CopyUnfinished, match="is not finished"):
        open_store(there)
    out, _, error = run(here, there, "--json", "--quiet")
    assert error is None
    shape = json.loads(out)
    assert (shape["resumed"], shape["rounds"]) == (True, 1)
    with open_store(here) as source, open_store(there) as target:
        assert check_full_count(target, target.queue("jobs")) == 6_500
        for page in (source, target):
            page.queue("jobs").push(b"new", priority=3)
        ends = [
            page.queue("jobs").items(end=end, limit=500).items for page in (source, target) for end in ("min", "max")
        ]
        assert [item.value for item in ends[0]] == [item.value for item in ends[2]]
        assert [item.value for item in ends[1]] == [item.value for item in ends[3]]


def test_refusals_are_one_line(urls: tuple[str, str], tmp_path: Path) -> None:
    here, there = urls
    assert "There is no store in" in str(run(f"lmdb:{tmp_path / 'nothing'}", there)[2])
    assert not (tmp_path / "nothing").exists()
    assert not (tmp_path / "there").exists()
    assert "no engine 'redis'" in str(run(here, "redis:x")[2])
    assert "holds a store already" in str(run(here, here)[2])
    assert run(here, there)[2] is None
    assert "holds a store already" in str(run(here, there)[2])


def test_every_other_command_refuses_an_unfinished_copy(urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("queues.tools.copy.digest", stop)
        error = run(*urls)[2]
    assert error.returncode == 130
    with pytest.raises(CommandError, match=f"copy_store {urls[0]} {urls[1]}"):
        call_command("queues", "--store", urls[1])
    assert run(*urls)[2] is None


def test_a_full_target_says_how_to_go_on(urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = urls
    with open_store(here) as store:
        for _ in range(5):
            store.queue("jobs").push_many([(b"x" * 2_000, 1)] * 1_000)
    with monkeypatch.context() as patched:
        patched.setenv("PQ_STORE_MAX_BYTES", "4000000")
        error = run(here, there)[2]
    assert error is not None
    assert "PQ_STORE_MAX_BYTES" in str(error)
    assert "Run the same command again" in str(error)
    assert run(here, there)[2] is None


def test_it_says_how_many_keys_outside_of_the_root_were_copied_or_left(urls: tuple[str, str], tmp_path: Path) -> None:
    here, there = urls
    with open_store(here) as store:
        store.transact(lambda tr: [tr.set(b"app/%d" % n, b"x") for n in range(7)])
    out, _, error = run(here, there, "--quiet")
    assert error is None
    assert re.search(r"^7 keys outside of the root, .* are equal too: SHA-256 [0-9a-f]{64}\.$", out, re.MULTILINE)
    out, _, error = run(here, f"lmdb:{tmp_path / 'bare'}", "--quiet", "--no-outside")
    assert error is None
    assert "7 keys outside of the root are not copied" in out
    out, _, _ = run(here, f"lmdb:{tmp_path / 'json'}", "--quiet", "--json")
    assert json.loads(out)["outside"]["keys"] == 7
