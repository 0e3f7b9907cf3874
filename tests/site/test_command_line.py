"""`pqadmin`, `python -m pqadmin` and `manage.py` are one command."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands

from pqadmin import __version__, cli, fatal_signals
from pqadmin.commands.exit_codes import Exit
from pqadmin.commands.help import GROUPS, WIDTH, summary
from queues import open_store
from tests.forks import MANAGE, MODULE, run_forked_text
from tests.waiting import LONG, await_true

#: The command line, for a user that may not read saved tokens, as root may.
UNREADABLE = """
import pathlib

from pqadmin.cli import main

opened = pathlib.Path.open


def refused(path, *arguments, **options):
    if path.name == "tokens.json":
        raise PermissionError(13, "Permission denied", str(path))
    return opened(path, *arguments, **options)


pathlib.Path.open = refused
main()
"""
#: The command line, for a user that has no home and no name.
HOMELESS = """
import os
import pwd


def unknown(number):
    raise KeyError(number)


os.environ.pop("HOME", None)
pwd.getpwuid = unknown

from pqadmin.cli import main

main()
"""
#: The command line, which is interrupted while it imports Django.
INTERRUPTED = """
import signal
import sys

from pqadmin.cli import main


class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "django.core.management":
            signal.raise_signal(signal.SIGINT)


sys.meta_path.insert(0, Interrupts())
main()
"""
ROOT = Path(__file__).resolve().parents[2]
FORMS = ([sys.executable, str(ROOT / "manage.py")], [sys.executable, "-m", "pqadmin"])


def run(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PQADMIN_DATA": str(folder / "var"), "PYTHONPATH": str(ROOT)} | variables
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def run_words(
    *words: str, folder: Path, form: str = MODULE, source: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PQADMIN_DATA": str(folder / "var"), "PYTHONPATH": str(ROOT)} | variables
    return run_forked_text(*words, form=form, source=source, folder=folder, env=environment)


@pytest.mark.parametrize("form", FORMS, ids=["manage.py", "-m pqadmin"])
def test_the_commands_are_listed(form: list[str], tmp_path: Path) -> None:
    listed = run([*form, "help", "--commands"], tmp_path)
    assert listed.returncode == 0
    assert {"serve", "create_user", "reset_password", "import_items", "export_items", "load", "queues"} <= set(
        listed.stdout.split()
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", [MANAGE, MODULE], ids=["manage.py", "-m pqadmin"])
def test_a_bad_setting_ends_with_one_line(form: str, tmp_path: Path) -> None:
    done = run_words("queues", form=form, folder=tmp_path, PQADMIN_PORT="high")
    assert done.returncode == 2
    assert done.stderr == "pqadmin: PQADMIN_PORT='high': a port is a number from 0 to 65535\n"


def test_the_console_script_is_the_same_function() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"pqadmin": f"{cli.__name__}:{cli.main.__name__}"}


def test_the_changelog_names_the_version() -> None:
    assert __version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_a_user_made_on_the_command_line_is_there_for_the_site(tmp_path: Path) -> None:
    made = run_words("create_user", "ann", "--role", "viewer", form=MANAGE, folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert made.stdout.count("Password, shown once:") == 2  # the first admin's and ann's
    assert f"First start in {tmp_path / 'var'}: created admin" in made.stdout
    assert run_words("create_user", "ann", "--role", "viewer", form=MANAGE, folder=tmp_path).returncode == 1


def test_our_commands_are_listed_first_each_with_a_line_of_its_own(tmp_path: Path) -> None:
    listed = run(FORMS[1], tmp_path)
    assert listed.returncode == 0
    lines = listed.stdout.splitlines()
    assert lines[0] == "Usage: python -m pqadmin COMMAND [OPTIONS]"
    assert max(len(line) for line in lines) <= 100
    told = dict(line.split(maxsplit=1) for line in lines if line.startswith("  "))
    assert told["push"] == "Push one item"
    assert told["doctor"] == "Examine the whole store against a full count, and repair it"
    assert "migrate" not in told
    assert run_words("--help", folder=tmp_path).stdout == listed.stdout
    everything = run_words("help", "--all", folder=tmp_path).stdout
    assert everything.index("  push") < everything.index("  migrate")
    assert list(tmp_path.iterdir()) == []


def test_every_command_of_ours_is_in_one_group_of_the_list() -> None:
    ours = [name for name, app in get_commands().items() if isinstance(app, str) and app.startswith("pqadmin.")]
    named = [name for names in GROUPS.values() for name in names]
    assert sorted(named) == sorted(set(ours) - {"makemessages"}), "that one is for developers"
    assert {name: told for name in named if not 8 <= len(told := summary(name)) <= WIDTH - 18} == {}


@pytest.mark.parametrize("form", [MANAGE, MODULE], ids=["manage.py", "-m pqadmin"])
def test_version_prints_the_version_of_pqadmin(form: str, tmp_path: Path) -> None:
    assert run_words("--version", form=form, folder=tmp_path).stdout == f"{__version__}\n"


def test_version_of_a_command_is_that_of_pqadmin(tmp_path: Path) -> None:
    assert run_words("push", "--version", folder=tmp_path).stdout == f"{__version__}\n"


def test_settings_that_do_not_import_are_said_where_the_commands_are_listed(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module_at_all\n", "utf-8")
    both = os.pathsep.join((str(tmp_path), str(ROOT)))
    listed = run(FORMS[1], tmp_path, DJANGO_SETTINGS_MODULE="broken", PYTHONPATH=both)
    assert "Traceback" not in listed.stderr
    assert "no_such_module_at_all" in listed.stdout


def test_a_command_on_a_store_loads_neither_models_nor_pages(tmp_path: Path) -> None:
    """They took half of its time."""
    loaded = run(
        [sys.executable, "-X", "importtime", "-m", "pqadmin", "depth", "jobs", "--store", "lmdb:none"], tmp_path
    )
    modules = {line.rpartition("|")[2].strip() for line in loaded.stderr.splitlines()}
    assert "pqadmin.commands.store_command" in modules
    assert not modules & {"django.contrib.auth.models", "django.urls", "django.template"}


def test_a_command_on_a_store_heeds_settings_of_a_program(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from pqadmin.settings import *\nPQADMIN_STORE = 'lmdb:mine'\n", "utf-8")
    both = os.pathsep.join((str(tmp_path), str(ROOT)))
    for words, variables in (
        (["--settings", "mine"], {}),
        (["--settings=mine", "--pythonpath", str(tmp_path)], {}),
        ([], {"DJANGO_SETTINGS_MODULE": "mine"}),
    ):
        told = run([*FORMS[1], "depth", "jobs", *words], tmp_path, PYTHONPATH=both, **variables).stderr
        assert "There is no store in mine" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["qeues"], "python -m pqadmin: no command is named 'qeues'. Did you mean queues? See python -m pqadmin help."),
        (["no\nsuch"], "python -m pqadmin: no command is named 'no\\nsuch'. See python -m pqadmin help."),
        (
            ["serve", "--port", "x"],
            "python -m pqadmin serve: argument --port: a port is a number from 0 to 65535; see … --help",
        ),
        (
            ["targets", "mail", "--oldest", "5x"],
            (
                "python -m pqadmin targets: argument --oldest: '5x': "
                "Give a length of time, such as 90 s, 15 min or 1 h 30 min. Or off, or inherit; see … --help"
            ),
        ),
        (["push"], "python -m pqadmin push: the following arguments are required: queue; see … --help"),
        (
            ["pop", "jobs", "-n", "x\ny"],
            "python -m pqadmin pop: argument -n: 'x\\ny' is not a whole number of at least 1; see … --help",
        ),
    ],
)
def test_wrong_arguments_end_with_one_line(arguments: list[str], told: str, tmp_path: Path) -> None:
    done = run_words(*arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == told.replace("…", f"python -m pqadmin {arguments[0]}") + "\n"


def test_wrong_arguments_are_told_as_json_where_json_is_asked_for(tmp_path: Path) -> None:
    done = run_words("push", "--jsonl", folder=tmp_path)
    assert (done.returncode, json.loads(done.stderr)["error"]["code"]) == (2, "UsageError")


def test_the_table_of_exit_codes_is_that_of_the_code() -> None:
    """Every code that a command can end with is in the reference, once, and no other."""
    document = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    table = document.partition("## How a command ends")[2].partition("\n## ")[0]
    told = [int(code) for cell in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in cell.split(",")]
    assert sorted(told) == sorted({*Exit, *fatal_signals.SIGNALS})
    for path in (ROOT / "pqadmin" / "commands").rglob("*.py"):
        bare = re.findall(r"returncode=\d+|sys\.exit\(\d+\)|SystemExit\(\d+\)", path.read_text(encoding="utf-8"))
        assert bare == [], path


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["queues"], {"PQADMIN_PORT": "abc"}),
        (["qeues"], {}),
        (["depth", "jobs", "--server", "nohost"], {}),
        (
            ["work", "jobs", "--handlers", "json", "--server", "https://a.example"],
            {"PQADMIN_TOKEN": "two words", "DJANGO_SETTINGS_MODULE": ""},
        ),
    ],
)
def test_what_is_not_understood_is_told_as_json(words: list[str], variables: dict[str, str], tmp_path: Path) -> None:
    done = run_words(*words, "--json", folder=tmp_path, **variables)
    error = json.loads(done.stderr)["error"]
    assert (done.returncode, done.stdout, error["code"]) == (2, "", "UsageError")
    assert error["suggestions"] == (["queues"] if words == ["qeues"] else [])


@pytest.mark.parametrize(
    "words",
    [
        ["login", "http://queues.example.org"],
        ["push", "mail", "x", "--server", "http://queues.example.org"],
        ["push", "mail", "x", "--server", "http://queues.example.org", "--token-file", "none"],
    ],
)
def test_a_token_for_plain_http_is_refused_before_it_is_asked_for(words: list[str], tmp_path: Path) -> None:
    done = run_words(*words, folder=tmp_path, HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "A token is not sent to 'http://queues.example.org' in the clear: write https://. "
        "Plain http is for this machine alone.\n"
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("login http://127.0.0.1:1 <&-", "Standard input is closed: the token is read from it."),
        ("top <&-", "top needs a terminal; queues --watch follows the queues without one."),
        ("logout http://127.0.0.1:1", "{home}/.config/pqadmin/tokens.json: Permission denied"),
        ("depth jobs --server http://127.0.0.1:1 --token-file bytes", "bytes holds no token: it is not text."),
        (
            "create_user ann --role viewer --password-stdin <&-",
            "Standard input is closed: the password is read from it.",
        ),
    ],
)
def test_what_a_user_can_cause_ends_with_one_line(line: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "bytes").touch(0o600)
    (tmp_path / "bytes").write_bytes(b"\xff")
    with open_store(f"lmdb:{tmp_path / 'var' / 'store'}"):
        pass
    kept = tmp_path / ".config" / "pqadmin" / "tokens.json"
    kept.parent.mkdir(parents=True)
    kept.touch(0o600)
    kept.write_text('{"http://127.0.0.1:1": "t"}')
    program = [sys.executable, "-m", "pqadmin"]
    if line.startswith("logout"):
        program = [sys.executable, "-c", UNREADABLE]
    done = run(["sh", "-c", f'exec "$@" {line}', "sh", *program], tmp_path, HOME=str(tmp_path))
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (1, [told.replace("{home}", str(tmp_path))])
    assert "Traceback" not in done.stderr


def test_a_user_without_a_home_is_told_what_is_missing(tmp_path: Path) -> None:
    done = run_words("depth", "jobs", "--server", "https://a.example", folder=tmp_path, source=HOMELESS)
    told = "No home folder is known, where tokens are kept: set HOME, or give --token-file.\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_a_command_that_is_interrupted_while_it_is_imported_says_so(tmp_path: Path) -> None:
    done = run([sys.executable, "-c", INTERRUPTED, "queues"], tmp_path)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "Interrupted.\n")


def test_ctrl_c_ends_a_loop_of_a_shell(tmp_path: Path) -> None:
    url = f"lmdb:{tmp_path / 'store'}"
    loop = 'for n in 1 2; do "$0" -m pqadmin pop jobs --wait 1h --store "$1"; echo "code $?"; done'
    with open_store(url) as store:
        jobs = store.create_queue("jobs")
        shell = subprocess.Popen(
            ["bash", "-c", loop, sys.executable, url],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
        await_true(lambda: jobs.consumers().live)
        os.killpg(shell.pid, signal.SIGINT)
        out, err = shell.communicate(timeout=LONG)
    assert (shell.returncode, out, err) == (-signal.SIGINT, b"", b"Interrupted.\n")
