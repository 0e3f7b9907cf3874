"""Every message has its Chinese translation, and the compiled catalog is that of the texts beside it."""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queues import errors
from queues.kv.limits import too_old
from queues.model.names import check_name
from queues.model.priority import parse_priority

ROOT = Path(__file__).parents[2]
MESSAGES = Path("locale/zh_Hans/LC_MESSAGES")

pytestmark = pytest.mark.skipif(
    shutil.which("xgettext") is None and os.environ.get("PQ_REQUIRE_GETTEXT") != "1",
    reason="GNU gettext is not installed (Debian's package gettext)",
)


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the catalog with every message of the sources as they are now."""
    package = tmp_path_factory.mktemp("messages") / "pqadmin"
    shutil.copytree(ROOT / "pqadmin", package, ignore=shutil.ignore_patterns("__pycache__", "*.mo"))
    shutil.copytree(ROOT / "templates", package.parent / "templates")
    script = (
        "from django.conf import settings; settings.configure(); import django; django.setup(); "
        "from django.core.management import call_command; "
        "from pqadmin.server.management.commands.makemessages import Command; "
        "call_command(Command(), locale=['zh_Hans'], no_wrap=True, no_location=True, no_obsolete=True)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=package, check=True, capture_output=True)
    return package / MESSAGES / "django.po"


@pytest.mark.parametrize("lacking", ["--untranslated", "--only-fuzzy"])
def test_no_message_is_empty_or_fuzzy(collected: Path, lacking: str) -> None:
    found = subprocess.run(["msgattrib", lacking, str(collected)], check=True, capture_output=True, text=True)
    assert found.stdout == "", "make messages, then translate these in pqadmin/locale"


def test_the_words_of_errors_are_among_the_messages(collected: Path) -> None:
    known = collected.read_text()
    for error in (
        errors.QueueNotFound("orders", ("order", "border")),
        errors.QueueNotFound("orders", gone=True),
        errors.QueueNotFound("orders", name_taken=True),
        errors.NotForAttached("orders", "it is never paused."),
        refused(lambda: check_name("a b")),
        refused(lambda: parse_priority("1e400", "int")),
        too_old(),
    ):
        for template in templates(error.words):
            assert f'msgid "{template}"' in known


def test_every_error_of_the_core_is_raised_with_a_whole_template() -> None:
    """What is put together where it is raised is not collected, and may hold a brace that a user typed."""
    put_together = []
    for path in sorted((ROOT / "queues").rglob("*.py")):
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            name = ast.unparse(call.func).rpartition(".")[2]
            if name in {*errors.ERRORS, "Words"} and any(
                isinstance(given, ast.JoinedStr | ast.BinOp | ast.IfExp) for given in call.args[:2]
            ):
                put_together.append(f"{path.name}:{call.lineno} {name}")
    assert put_together == []


def test_no_message_is_inside_an_f_string() -> None:
    """What is looked up there is not collected: xgettext reads such a string as one."""
    within = []
    for path in sorted((ROOT / "pqadmin").rglob("*.py")):
        for text in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.JoinedStr)):
            calls = [ast.unparse(node.func) for node in ast.walk(text) if isinstance(node, ast.Call)]
            within += [f"{path.name}:{text.lineno}" for name in calls if name == "_" or name.endswith("gettext")]
    assert within == []


def refused(act: Callable[[], object]) -> errors.QueueError:
    with pytest.raises(errors.QueueError) as caught:
        act()
    return caught.value


def templates(words: errors.Words) -> Iterator[str]:
    yield words.template
    for value in words.values.values():
        if isinstance(value, errors.Words):
            yield from templates(value)


def test_translations_fill_in_what_their_messages_do(collected: Path, tmp_path: Path) -> None:
    done = subprocess.run(["msgfmt", "--check-format", "-o", str(tmp_path / "x"), str(collected)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_the_compiled_catalog_is_that_of_the_texts(tmp_path: Path) -> None:
    kept = ROOT / "pqadmin" / MESSAGES
    subprocess.run(["msgfmt", "-o", str(tmp_path / "django.mo"), str(kept / "django.po")], check=True)
    assert _messages(tmp_path / "django.mo") == _messages(kept / "django.mo"), "make messages"


def _messages(catalog: Path) -> bytes:
    return subprocess.run(["msgunfmt", str(catalog)], capture_output=True, check=True).stdout
