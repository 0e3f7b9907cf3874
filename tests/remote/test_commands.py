"""The command line on the store of another site: with a token of a file, the environment, or kept by `login`."""

import io
import json
import re
import stat
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command, get_commands, load_command_class

from pqadmin.commands import saved_tokens
from pqadmin.commands.exit_codes import Exit
from pqadmin.commands.help import GROUPS
from queues import Store, open_store
from queues.errors import LocalStoreOnly
from tests.api.test_two_sites import command
from tests.commands.conftest import command as process
from tests.commands.test_completion import completed
from tests.server.conftest import PATIENCE, ROOT, Site
from tests.waiting import await_true

__all__ = ["process"]

Run = Callable[..., Any]
_REFERENCE = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
#: The table of commands through a server.
ON_A_SERVER = _REFERENCE.partition("| command | through a server |")[2].partition("\n\n")[0]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, where `login` keeps tokens."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def token_file(home: Path, secret: str) -> Path:
    file = home / "token"
    file.touch(0o600)
    file.write_text(secret + "\n")
    return file


@pytest.fixture
def local(site: Site, folder: Path) -> Iterator[Store]:
    with open_store(f"lmdb:{folder / 'store'}") as store:
        yield store


@pytest.fixture
def run(site: Site, token_file: Path) -> Run:
    """Run a command on the site; return the document that it prints."""

    def call(name: str, *arguments: str) -> Any:
        out = io.StringIO()
        call_command(name, *arguments, "--server", site.address, "--token-file", str(token_file), "--json", stdout=out)
        return json.loads(out.getvalue() or "null")

    return call


def test_queues_are_operated_under_the_name_of_the_token(run: Run, local: Store) -> None:
    run("create_queue", "mail", "--kind", "fifo")
    run("push", "mail", "x")
    assert run("pause", "mail", "--reason", "repair")["pause"]["by"] == "token:ops"
    run("resume", "mail")
    assert run("configure", "mail", "--max-depth", "5")["settings"]["max_depth"] == 5
    purged = run("purge", "mail", "--confirm", "mail")
    assert purged["items"] == 1
    run("undo", *purged["trash_ids"])
    run("create_queue", "post", "--kind", "fifo")
    (item,) = run("peek", "mail")["items"]
    assert run("move", "mail", "post", "--ids", item["id"])["items"] == 1
    assert run("rename_queue", "post", "letters")["queue"] == "letters"
    deleted = run("delete_queue", "letters", "--confirm", "letters")
    run("undo", deleted["trash_id"])
    assert local.fifo_queue("letters").depth() == 1
    assert {entry.actor for entry in local.audit.entries(queue="mail").entries} == {"token:ops"}


def test_all_items_are_moved_by_a_job_of_the_site_and_undone(run: Run, local: Store) -> None:
    tasks, review = local.create_queue("tasks"), local.create_queue("review")
    tasks.push_many([(b"%d" % n, n) for n in range(900)])
    moved = run("move", "tasks", "review", "--all", "--reason", "look again")
    assert (moved["items"], moved["total"], moved["trash_id"]) == (900, 900, None)
    assert (tasks.depth(), review.depth()) == (0, 900)
    listed = run("jobs", "--limit", "1")["jobs"][0]
    assert (listed["job"], listed["by"], listed["reason"]) == (moved["job"], "token:ops", "look again")
    shown = run("jobs", "show", moved["job"])
    assert {**shown, "act": "move", "state": "ready", "queue_id": tasks.id, "to_id": review.id} == shown
    undone = run("jobs", "undo", moved["job"])
    assert (undone["undoes"], undone["items"], tasks.depth()) == (moved["job"], 900, 900)
    assert run("jobs", "--running") == {"jobs": []}
    with pytest.raises(CommandError, match="restored already"):
        run("jobs", "undo", moved["job"])


def test_a_job_is_canceled_and_gone_on_with_by_the_site(run: Run, local: Store) -> None:
    slow = local.create_queue("slow")
    slow.push_many([(b"%d" % n, n) for n in range(3)])
    job = local.actions("ann").begin_bulk("delete", "slow", rate=1)
    assert job.id in [each["job"] for each in run("jobs", "--running")["jobs"]]
    assert run("jobs", "cancel", job.id, "--reason", "wait")["status"] == "canceled"
    with pytest.raises(CommandError, match="canceled already"):
        run("jobs", "cancel", job.id)
    assert slow.depth() > 0
    assert run("jobs", "resume", job.id)["status"] == "done"
    assert slow.depth() == 0
    with pytest.raises(CommandError, match="is done"):
        run("jobs", "cancel", job.id)


def test_a_job_that_fails_says_at_which_item(run: Run, local: Store) -> None:
    parts, whole = local.create_queue("parts", priority_type="float"), local.create_queue("whole")
    item = parts.push(b"a", priority=1.5)
    with pytest.raises(CommandError, match=f"has failed after 0 items.*The item is {item.id}"):
        run("move", "parts", "whole", "--all")
    assert (parts.depth(), whole.depth()) == (1, 0)
    with pytest.raises(CommandError, match="is no move from whole to parts"):
        run("move", "whole", "parts", "--resume", run("jobs")["jobs"][0]["job"])


def test_the_trash_keeps_what_is_popped_for_as_long_as_asked(run: Run, local: Store) -> None:
    kept = local.create_queue("kept")
    kept.push_many([(b"%d" % n, n) for n in range(5)])
    (first,) = run("pop", "kept", "--reason", "broken")["items"]
    assert (entry := local.trash.get(first["trash_id"])).deadline - entry.at == timedelta(days=7)
    act = local.audit.entries(queue="kept").entries[0]
    assert (act.verb, act.actor, act.reason) == ("pop_min", "token:ops", "broken")
    run("undo", first["trash_id"])
    (hour,) = run("pop", "kept", "--keep", "1h")["items"]
    assert (entry := local.trash.get(hour["trash_id"])).deadline - entry.at == timedelta(hours=1)
    assert run("pop", "kept", "--no-trash")["items"][0]["trash_id"] is None
    two = [item.id for item in kept.peek_many(2)]
    assert run("delete_items", "kept", two[0], "--no-trash")["trash_id"] is None
    deleted = run("delete_items", "kept", two[1], "--keep", "10m")["trash_id"]
    assert (entry := local.trash.get(deleted)).deadline - entry.at == timedelta(minutes=10)
    assert run("purge", "kept", "--confirm", "kept", "--no-trash")["trash_ids"] == []
    assert kept.depth() == 0
    with pytest.raises(CommandError, match="7 days"):
        run("pop", "kept", "--keep", "8d")


def test_an_item_is_edited_as_it_was_seen(run: Run, local: Store) -> None:
    for codec, given, stored in (("text", "größer", "größer"), ("json", '{"a": 1}', {"a": 1}), ("msgpack", "[1]", [1])):
        edited = local.create_queue(f"edited:{codec}", codec=codec)
        edited.configure(redact=("a",))
        item = edited.push({"a": "secret"} if codec != "text" else "old", priority=1)
        changed = run("edit_item", edited.name, item.id, given)
        assert (changed["items"], edited.find(item.id).value) == (1, stored)
        assert run("edit_item", edited.name, item.id, given)["trash_id"] is None
        run("undo", changed["trash_id"])
        assert edited.find(item.id).value == item.value
    with pytest.raises(CommandError, match="has no item"):
        run("edit_item", "edited:text", "0" * 40, "x")


def test_what_the_site_hides_is_told_apart_from_a_value(run: Run, site: Site, token_file: Path, local: Store) -> None:
    hiding = local.create_queue("hiding", codec="json")
    hiding.configure(redact=("password",))
    item = hiding.push({"password": "ten letters"}, priority=1)
    hiding.push({"color": "red"}, priority=2)
    hidden, seen = run("peek", "hiding", "-n", "2")["items"]
    assert "letters" not in hidden["value_redacted"]
    assert hidden.keys().isdisjoint({"value", "value_base64", "value_json"})
    assert (seen["value_json"], "value_redacted" in seen) == ({"color": "red"}, False)
    shown = run("show", "hiding", item.id)["item"]
    assert shown["value_redacted"] == hidden["value_redacted"]
    on_site = ("--server", site.address, "--token-file", str(token_file))
    with pytest.raises(CommandError, match="hides parts of this value"):
        call_command("show", "hiding", item.id, "--raw", *on_site)
    assert run("pop", "hiding")["items"][0]["value_json"] == {"password": "ten letters"}


@pytest.mark.parametrize("ending", ["ndjson", "csv"])
def test_an_export_never_passes_hidden_parts_off_as_the_value(
    site: Site, token_file: Path, home: Path, local: Store, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    secret, back = local.create_queue(f"secret:{ending}"), local.create_queue(f"back:{ending}")
    secret.configure(redact=("password",))
    secret.push_many([(b'{"password": "ten letters"}', 1), (b"plain", 2), (b'{"password": "' + b"x" * 10 + b'"}', 3)])
    file = str(home / f"items.{ending}")
    on_site = ("--server", site.address, "--token-file", str(token_file))
    call_command("export_items", secret.name, file, *on_site)
    assert "hides parts of 2 items" in capsys.readouterr().err
    with pytest.raises(CommandError, match="2 bad lines"):
        call_command("import_items", back.name, file, *on_site)
    assert [item.value for item in back.items().items] == [b"plain"]


def test_a_token_that_may_only_read_changes_nothing(site: Site, folder: Path, home: Path, local: Store) -> None:
    read = local.create_queue("read")
    item = read.push(b"x", 1)
    local.create_queue("hidden")
    file = home / "reading"
    file.touch(0o600)
    file.write_text(command(folder, "create_token", "reader", "--queues", "read", "--verbs", "read"))

    items = home / "items.ndjson"
    items.write_text('{"value": "y", "priority": 1}\n')

    def call(*arguments: str) -> Any:
        out = io.StringIO()
        call_command(*arguments, "--server", site.address, "--token-file", str(file), "--json", stdout=out)
        return json.loads(out.getvalue())

    assert [queue["queue"] for queue in call("queues")["queues"]] == ["read"]
    assert call("show", "read", item.id)["item"]["value"] == "x"
    assert call("jobs")["jobs"] == []
    assert call("targets", "read")["queue"] == "read"
    for refused in (
        ("pop", "read"),
        ("edit_item", "read", item.id, "y"),
        ("targets", "read*", "--depth", "5"),
        ("targets", "read", "--depth", "5"),
        ("import_items", "read", str(items)),
    ):
        with pytest.raises(CommandError, match="token"):
            call(*refused)
    for unseen in (("show", "hidden", item.id), ("targets", "hidden"), ("tail", "hidden")):
        with pytest.raises(CommandError, match="No queue is named"):
            call(*unseen)
    assert [each.raw for each in read.items().items] == [b"x"]


def test_items_are_exported(run: Run, site: Site, token_file: Path, home: Path) -> None:
    run("create_queue", "export", "--codec", "text")
    for n in range(3):
        run("push", "export", f"{n}", "--priority", f"{n}")
    file = home / "items.ndjson"
    call_command("export_items", "export", str(file), "--server", site.address, "--token-file", str(token_file))
    assert [json.loads(line)["value"] for line in file.read_text().splitlines()] == ["0", "1", "2"]


@pytest.mark.parametrize(
    "arguments",
    [("doctor",), ("backup", "x"), ("restore_backup", "x"), ("sweep",), ("load", "--seconds", "1")],
)
def test_what_needs_the_store_itself_says_so(run: Run, arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="machine of the site") as refused:
        run(*arguments)
    assert refused.value.returncode == Exit.FAILED
    assert isinstance(refused.value.__cause__, LocalStoreOnly)


@pytest.mark.parametrize("name", [name for names in GROUPS.values() for name in names])
def test_every_command_takes_a_server_or_is_listed_as_one_that_says_why_not(name: str) -> None:
    found = load_command_class(get_commands()[name], name)
    row = re.search(rf"^\|[^|]*`{name}`[^|]*\| no: ", ON_A_SERVER, re.MULTILINE)
    if not found.takes_no_server:
        assert ("--server" in found.create_parser("pqadmin", name).format_usage()) is found.on_servers
        assert (row is None) is found.on_servers
        return
    with pytest.raises(CommandError, match=re.escape(found.takes_no_server)):
        call_command(found, "--server", "https://queues.example.org")
    assert row is not None


def test_a_token_file_that_a_group_or_all_may_read_is_refused(run: Run, token_file: Path) -> None:
    for mode in (0o640, 0o604):
        token_file.chmod(mode)
        with pytest.raises(CommandError, match=f"chmod 600 {token_file}"):
            run("depth", "jobs")


def test_a_token_is_checked_and_kept_and_forgotten(
    site: Site, secret: str, home: Path, monkeypatch: pytest.MonkeyPatch, local: Store
) -> None:
    local.create_queue("kept", exist_ok=True)

    def login(token: str) -> str:
        out = io.StringIO()
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{token}\n"))
        call_command("login", site.address, stdout=out)
        return out.getvalue()

    with pytest.raises(CommandError, match="no such token"):
        login("pq_wrong")
    assert list(home.rglob("tokens.json")) == []
    assert "token:ops" in login(secret)
    (kept,) = home.rglob("tokens.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    out = io.StringIO()
    call_command("depth", "kept", "--store", f"{site.address}/", stdout=out)
    assert out.getvalue() == "0\n"
    kept.chmod(0o644)
    with pytest.raises(CommandError, match="chmod 600"):
        call_command("depth", "kept", "--server", site.address)
    kept.chmod(0o600)
    call_command("logout", site.address)
    with pytest.raises(CommandError, match="needs a token"):
        call_command("depth", "kept", "--server", site.address)
    with pytest.raises(CommandError, match="No token is kept"):
        call_command("logout", site.address)


def test_the_environment_names_a_site_and_a_token(site: Site, secret: str, local: Store, home: Path) -> None:
    local.create_queue("env", exist_ok=True)
    (home / "jobs.py").write_text(
        "from queues.workers import Worker\nworker = Worker()\n@worker.handles('env')\ndef work(job): pass\n"
    )
    variables = {"PQADMIN_STORE": site.address, "PQADMIN_TOKEN": secret, "PQADMIN_DATA": str(home)}
    with process("push", "env", "x", "--priority=1", **variables) as pushing:
        assert pushing.wait(PATIENCE) == 0
    with process("work", "env", "--handlers", "jobs", "--once", "--json", folder=home, **variables) as working:
        out, err = working.communicate(timeout=PATIENCE)
        assert working.returncode == 0, err
        assert json.loads(out)["done"] == 1
    with process("serve", "--port", "0", text=True, **variables) as serving:
        assert serving.wait(PATIENCE) == Exit.FAILED
        assert "store of another site" in serving.stderr.read()


@pytest.mark.parametrize("command_line", [("depth", "apart"), ("work", "apart", "--handlers", "none", "--once")])
def test_the_token_of_the_environment_is_for_no_other_site(
    site: Site, secret: str, local: Store, home: Path, command_line: tuple[str, ...]
) -> None:
    local.create_queue("apart", exist_ok=True)
    for store, code in (("https://a.example", Exit.FAILED), (f"{site.address}/", 0), (f"lmdb:{home}", 0)):
        if command_line[0] == "work" and not code:
            continue
        variables = {"PQADMIN_STORE": store, "PQADMIN_TOKEN": secret, "PQADMIN_DATA": str(home)}
        with process(*command_line, "--server", site.address, text=True, **variables) as run:
            _, err = run.communicate(timeout=PATIENCE)
            assert run.returncode == code, err
            assert ("PQADMIN_TOKEN is for https://a.example." in err) == (code != 0)


def test_a_server_is_named_by_its_address(run: Run) -> None:
    with pytest.raises(CommandError, match="https://HOST") as wrong:
        call_command("depth", "jobs", "--server", "lmdb:x")
    assert wrong.value.returncode == Exit.USAGE
    assert {"login", "logout"} <= {name for names in GROUPS.values() for name in names}


@pytest.mark.parametrize(
    "command_line",
    [
        ("create_token", "ops", "--queues", "*", "--verbs", "all", "--owner", "nobody"),
        ("revoke_token", "nothing"),
        ("logout", "https://a.example"),
        ("depth", "nothing"),
    ],
)
def test_every_command_that_is_refused_says_so_in_one_line(
    folder: Path, site: Site, command_line: tuple[str, ...]
) -> None:
    with process(*command_line, text=True, PQADMIN_DATA=str(folder)) as run:
        out, err = run.communicate(timeout=PATIENCE)
    assert (run.returncode, out, len(err.splitlines())) == (1, "", 1)
    assert not err.startswith(("CommandError", "Traceback"))


def test_names_of_queues_are_completed_with_the_token_for_their_site(
    site: Site, secret: str, token_file: Path, home: Path, local: Store
) -> None:
    local.create_queue("completed", exist_ok=True)
    line = f"pqadmin depth --server {site.address} compl"
    own = {"PQADMIN_STORE": site.address, "PQADMIN_TOKEN": secret}
    # A shell does not wait long for names, and completes none that come later.
    await_true(lambda: completed(line, home, **own) == ["completed"])
    assert completed(f"pqadmin depth --token-file {token_file} --server {site.address} compl", home) == ["completed"]
    assert completed(line, home, **{**own, "PQADMIN_STORE": "https://a.example"}) == []
    saved_tokens.keep(site.address, secret)
    assert completed(line, home, **{**own, "PQADMIN_STORE": "https://a.example"}) == ["completed"]
