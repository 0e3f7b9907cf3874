"""Completion in shells: commands, options, choices and names of queues; and that it costs other commands nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from queues import open_store
from tests.commands.conftest import PATIENCE, ROOT
from tests.programs import run_to_end

PROGRAM = [sys.executable, "-m", "pqadmin"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a store with some queues."""
    url = f"lmdb:{tmp_path / 'store'}"
    with open_store(url) as store:
        for name in ("mail", "orders:eu", "orders:us"):
            store.create_queue(name)
    return url


def completed(line: str, folder: Path, **variables: str) -> list[str]:
    """Return what completes a line, as a shell asks for it."""
    answer = folder / "answer"
    shell = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SHELL": "fish",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line.encode())),
    }
    done = subprocess.run(
        PROGRAM,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PQADMIN_DATA": str(folder / "var")} | shell | variables,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not (folder / "var").exists(), "a look makes nothing"
    return [one.partition("\t")[0] for one in answer.read_text().split("\n") if one]


def test_commands_options_and_choices_are_completed(tmp_path: Path) -> None:
    assert completed("pqadmin rest", tmp_path) == ["restore_backup"]
    assert {"push", "serve", "top"} <= set(completed("pqadmin ", tmp_path))
    assert "--priority" in completed("pqadmin push jobs --pri", tmp_path)
    assert completed("pqadmin peek jobs --state d", tmp_path) == ["delayed", "dead"]
    assert completed("pqadmin jobs can", tmp_path) == ["cancel"]
    assert completed("pqadmin no-such-command --", tmp_path) == []


def test_commands_of_stores_are_imported_without_django(tmp_path: Path) -> None:
    """Completion reads their options: what they import must not need the site's settings."""
    look = (
        "import importlib, pathlib\n"
        "for path in sorted(pathlib.Path('pqadmin/commands/management/commands').glob('[a-z]*.py')):\n"
        "    command = importlib.import_module(f'pqadmin.commands.management.commands.{path.stem}').Command()\n"
        "    command.create_parser('pqadmin', path.stem)\n"
    )
    variables = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run([sys.executable, "-c", look], env=variables, cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "--trouble" in completed("pqadmin queues --tr", tmp_path)


def test_names_of_queues_are_completed(tmp_path: Path, url: str) -> None:
    names = {"PQADMIN_STORE": url}
    assert completed("pqadmin push ", tmp_path, **names) == ["mail", "orders:eu", "orders:us"]
    assert completed("pqadmin move mail orders:", tmp_path, **names) == ["orders:eu", "orders:us"]
    assert completed(f"pqadmin tail --store {url} or", tmp_path) == ["orders:eu", "orders:us"]
    assert completed("pqadmin depth mail orders:u", tmp_path, **names) == ["orders:us"]
    assert completed("pqadmin targets or", tmp_path, **names) == ["orders:eu", "orders:us"]


def test_a_store_that_is_not_there_has_no_names_and_is_not_made(tmp_path: Path) -> None:
    assert completed("pqadmin push ", tmp_path, PQADMIN_STORE=f"lmdb:{tmp_path}/nowhere") == []
    assert completed("pqadmin push ", tmp_path, PQADMIN_STORE="nonsense") == []
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(("shell", "words"), [("bash", "complete "), ("zsh", "compdef "), ("fish", "complete ")])
def test_the_code_for_a_shell_is_printed(shell: str, words: str, tmp_path: Path) -> None:
    done = subprocess.run([*PROGRAM, "completion", shell], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, words in done.stdout, "pqadmin" in done.stdout) == (0, True, True)
    if (found := shutil.which(shell)) is not None:
        subprocess.run([found, "-n"], input=done.stdout, text=True, check=True)


def test_bash_completes_a_name_with_colons(tmp_path: Path, url: str) -> None:
    (tmp_path / "pqadmin").write_text(f'#!/bin/sh\nexec {sys.executable} -m pqadmin "$@"\n')
    (tmp_path / "pqadmin").chmod(0o755)
    script = (
        'eval "$(pqadmin completion bash)"\n'
        'COMP_LINE="pqadmin push orders:e" COMP_POINT=21 COMP_TYPE=9\n'
        "_python_argcomplete pqadmin 2> /dev/null\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = run_to_end(
        ["bash", "-c", script],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "PQADMIN_STORE": url},
    )
    assert done.stdout.strip() == "eu"  # bash breaks words at colons: it keeps what is before


def test_other_commands_do_not_import_it(tmp_path: Path) -> None:
    look = (
        "import sys; sys.argv = ['pqadmin', 'queues', '--help']\n"
        "from pqadmin.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not [name for name in sys.modules if name.startswith('argcomplete')]"
    )
    variables = os.environ | {"PQADMIN_DATA": str(tmp_path), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", look], env=variables, capture_output=True, check=True)
