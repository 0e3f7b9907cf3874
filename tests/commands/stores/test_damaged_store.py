"""Commands on damaged stores: each ends with one clear line and an exit code, never a traceback, never a signal."""

import os
import signal
import sqlite3
import subprocess
from contextlib import closing
from itertools import cycle
from pathlib import Path

import pytest

from queues import open_store
from tests.damaged import KINDS, copy_damaged, make_store
from tests.forks import MANAGE, run_forked_text
from tests.prepared import prepare

#: Commands that read all of a store, and some of those that read a part of it.
WHOLE = ("doctor", "backup")
PARTS = cycle(
    [
        ("queues",),
        ("export_items", "jobs"),
        ("push", "jobs", "v", "--priority", "1"),
        ("pop", "jobs"),
        ("sweep",),
        ("copy_store",),
    ]
)


def run(url: str, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a shell does."""
    store = [] if command == "copy_store" else ["--store", url]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONFAULTHANDLER"}
    return run_forked_text(command, *arguments, *store, form=MANAGE, env=environment)


def check(done: subprocess.CompletedProcess[str], *, damaged: bool) -> None:
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode >= 0, f"ended by signal {-done.returncode}: {done.stderr}"
    if damaged:
        assert done.returncode != 0, done.args
    if done.returncode:
        own = ("Assertion", " WARNING ")  # LMDB's last words, and the log of what else was met
        lines = [line for line in done.stderr.splitlines() if not any(word in line for word in own)]
        assert len(lines) == 1, lines


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("healthy") / "store"
    make_store(folder)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_commands_end_with_a_line_whatever_is_damaged(tmp_path: Path, healthy: Path, kind: str) -> None:
    store, backup = tmp_path / "store", tmp_path / "backup"
    certain = copy_damaged(healthy, store, kind, 1)
    url = f"lmdb:{store}"
    done = run(url, "backup", str(backup))
    check(done, damaged=certain)
    assert backup.exists() == (done.returncode == 0), "a backup of a damaged store leaves nothing behind"
    assert not list(tmp_path.glob(".*.part"))
    examined = run(url, "doctor")
    check(examined, damaged=certain)
    if done.returncode:
        assert examined.returncode, "doctor finds what keeps a backup from being made"
    command, *arguments = next(PARTS)
    if command == "copy_store":
        arguments = [url, f"lmdb:{tmp_path / 'copy'}", "--quiet"]
    check(run(url, command, *arguments), damaged=False)


def test_a_cut_off_store_is_told_by_every_command(tmp_path: Path, healthy: Path) -> None:
    store = tmp_path / "store"
    copy_damaged(healthy, store, "cut", 3)
    before = (store / "data.mdb").read_bytes()
    for command in (("queues",), ("export_items", "jobs"), ("push", "jobs", "v", "--priority", "1")):
        done = run(f"lmdb:{store}", *command)
        check(done, damaged=True)
        assert f"The store {store} is damaged: " in done.stderr
        assert "backup" in done.stderr
    assert (store / "data.mdb").read_bytes() == before, "it is left as it is"


def run_crashing(crash: str, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a shell does, in a process in which a line of code has put a fault."""
    script = (
        "import ctypes, sys\n"
        "sys.argv[0] = 'pqadmin'\n"
        f"{crash} = lambda *a, **k: ctypes.string_at(8)\n"
        "from pqadmin.cli import main\n"
        "main()\n"
    )
    source = f"import {crash.rpartition('.')[0]}\n{script}"
    return run_forked_text(*command, source=source, env=os.environ | variables)


def test_a_fatal_signal_ends_a_command_with_a_line_and_has_the_store_read_whole_next(tmp_path: Path) -> None:
    store = tmp_path / "store"
    make_store(store)
    done = run_crashing("queues.catalog.directory.names", "queues", "--store", f"lmdb:{store}")
    assert done.returncode == signal.SIGSEGV
    assert done.stderr.splitlines() == [
        (
            f"A fatal error ended this command: the file of the store lmdb:{store} may be damaged. "
            "pqadmin doctor reads it whole and says so."
        )
    ]
    assert (store / "suspect").exists()
    assert run(f"lmdb:{store}", "queues").returncode == 0, "it was read whole, and nothing is wrong with it"
    assert not (store / "suspect").exists()
    with open_store(f"lmdb:{store}") as opened:
        assert opened.queue("mail").depth() == 150


@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("tokens",)])
def test_a_fatal_signal_before_the_tables_are_migrated_is_told_too(tmp_path: Path, command: tuple[str, ...]) -> None:
    store = tmp_path / "store"
    make_store(store)
    prepare(tmp_path)
    with closing(sqlite3.connect(tmp_path / "site.sqlite3")) as tables, tables:
        tables.execute("DELETE FROM django_migrations WHERE name = '0003_delete_sentform'")
    variables = {"PQADMIN_DATA": str(tmp_path), "PQADMIN_STORE": f"lmdb:{store}"}
    done = run_crashing("queues.catalog.store_record.find", *command, **variables)
    assert done.returncode == signal.SIGSEGV
    (told,) = done.stderr.splitlines()
    assert f"the file of the store lmdb:{store} may be damaged" in told
    assert (store / "suspect").exists()


def test_a_fatal_signal_outside_of_the_engine_shows_its_stack_and_suspects_no_store(tmp_path: Path) -> None:
    """A handler's own extension module, say, has crashed."""
    store = tmp_path / "store"
    make_store(store)
    done = run_crashing("pqadmin.commands.queue_columns.queue_list", "queues", "--store", f"lmdb:{store}")
    assert done.returncode == signal.SIGSEGV
    assert "Segmentation fault" in done.stderr
    assert "in string_at" in done.stderr
    assert "damaged" not in done.stderr
    assert not (store / "suspect").exists()
