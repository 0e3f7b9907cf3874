"""The command line reference names every command and option and nothing else; the Python in the README runs."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import get_commands, load_command_class

from queues import errors

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
COMMANDS = sorted(name for name, app in get_commands().items() if app == "pqadmin.commands")
#: Of every Django command.
GENERAL = {"--help", "--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color"}
GENERAL |= {"--force-color", "--skip-checks"}


def options(command: str) -> set[str]:
    """Return the long options of a command."""
    parser = load_command_class("pqadmin.commands", command).create_parser("pqadmin", command)
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", parser.format_usage())) - GENERAL


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_documented(command: str) -> None:
    assert f"`{command}" in DOCUMENT
    missing = {option for option in options(command) if option not in DOCUMENT}
    assert not missing


def test_no_option_is_documented_that_does_not_exist() -> None:
    known = set().union(*(options(command) for command in COMMANDS)) | GENERAL | {"--packages"}
    assert set(re.findall(r"--[a-z][a-z-]+", DOCUMENT)) <= known


def test_the_python_of_the_readme_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) > 1
    names: dict[str, Any] = {}
    exec("\n".join(blocks).replace("timedelta(seconds=5)", "timedelta(milliseconds=5)"), names)
    assert names["item"].value == b"resize image 7"
    assert names["held"].item.value == b"remind me"


def test_the_table_of_errors_names_every_exception_with_its_base() -> None:
    text = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    named = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \| \S.*\|$", text, re.MULTILINE))
    kinds = [kind for kind in errors.ERRORS.values() if kind is not errors.Worded]
    roots = {errors.QueueError: "Exception", errors.StoreError: "Exception"}
    assert named == {kind.__name__: roots.get(kind, kind.__mro__[1].__name__) for kind in kinds}
