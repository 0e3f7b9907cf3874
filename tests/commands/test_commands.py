"""queues, push, pop, peek, depth, create_queue, pause and resume: their acts, their JSON, their refusals."""

import base64
import io
import json
import os
import pwd
import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from pqadmin.files.shapes import pause_shape, status_shape
from queues import Queue
from queues.admin import HealthCode, unknown_health
from tests.commands.conftest import Run, Shop
from tests.sweeps import sweep_trash

ITEM_FIELDS = {"id", "priority", "count", "state", "pushed_at", "ready_at", "size", "key"}
ITEM_FIELDS |= {"attempts", "attempt_log", "due_at", "leased_at", "expires_at", "worker", "died_at", "reason"}


@pytest.fixture
def jobs(shop: Shop) -> Queue:
    """A priority queue with three items."""
    queue = shop.store.create_queue("jobs")
    queue.push_many([(b"low", 1), (b"\xff\x00", 5), (b"high", 9)])
    return queue


def test_push_from_the_argument_a_file_and_standard_input(run: Run, shop: Shop, tmp_path: Path) -> None:
    queue = shop.store.create_queue("jobs")
    (tmp_path / "value").write_bytes(b"\x00file\n")
    assert run("push", "jobs", "tëxt", "--priority", "3").code == 0
    assert run("push", "jobs", "--file", str(tmp_path / "value"), "--priority=-5").code == 0
    assert run("push", "jobs", "-", "--priority", "-1", stdin=b"piped\n").code == 0
    assert [(item.priority, item.value) for item in queue.items().items] == [
        (-5, b"\x00file\n"),
        (-1, b"piped\n"),
        (3, "tëxt".encode()),
    ]


def test_options_come_before_between_and_behind_the_arguments(run: Run, shop: Shop, tmp_path: Path) -> None:
    queue = shop.store.create_queue("jobs")
    assert run("push", "jobs", "--priority", "3", "last").code == 0
    assert run("push", "--priority=2", "jobs", "--json", "middle").json["item"]["value"] == "middle"
    assert [item.value for item in queue.items().items] == [b"middle", b"last"]
    file = tmp_path / "jobs.csv"
    assert run("export_items", "jobs", "--format", "csv", str(file)).code == 0
    assert file.read_text().count("\n") == 3
    assert run("jobs", "show", "--json", "0" * 40).error.startswith("No bulk job has this id")
    assert run("move", "jobs", "--priority", "7", "--all", "elsewhere").error == "No queue is named “elsewhere”."


@pytest.mark.parametrize(
    "given", [("--priority", "-5"), ("--priority=-5",), ("--priority", "-0.5"), ("--priority=-1e3",)]
)
def test_negative_priorities_are_no_options(run: Run, shop: Shop, given: tuple[str, ...]) -> None:
    scores = shop.store.create_queue("scores", priority_type="float")
    assert run("push", "scores", "text", *given).code == 0
    assert scores.peek_min().priority == float(given[-1].removeprefix("--priority="))


def test_push_is_audited_under_the_name_of_the_system_user(run: Run, shop: Shop, jobs: Queue) -> None:
    from pqadmin.commands.store_command import os_user

    run("push", "jobs", "x", "--priority", "1")
    entry = shop.store.audit.entries().entries[0]
    assert (entry.verb, entry.via, entry.actor, entry.queue) == ("push", "cli", os_user(), "jobs")


def test_the_environment_does_not_choose_the_audited_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from pqadmin.commands.store_command import os_user

    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(variable, "somebody-else")
    assert os_user() == pwd.getpwuid(os.getuid()).pw_name
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)  # an id without a name
    assert os_user() == f"uid {2**31 - 7}"


def test_push_prints_the_item_as_json(run: Run, shop: Shop) -> None:
    queue = shop.store.create_queue("jobs")
    big = 2**2039 + 1
    shape = run("push", "jobs", "{}", f"--priority={-big}", "--json").json
    assert set(shape) == {"queue", "item"}
    assert set(shape["item"]) == ITEM_FIELDS | {"value"}
    assert shape["item"]["priority"] == -big
    assert shape["item"]["value"] == "{}"
    assert shape["item"]["id"] == queue.items().items[0].id
    assert datetime.fromisoformat(shape["item"]["pushed_at"]).utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["jobs", "x"], "--priority"),
        (["jobs", "x", "--priority=high"], "“high” is not a whole number"),
        (["jobs", "x", "--priority=1e400"], "not a whole number"),
        (["jobs", "x", "--priority=" + "9" * 1000], "too long"),
        (["jobs", "--priority=1"], "one of them"),
        (["jobs", "x", "--file=y", "--priority=1"], "one of them"),
        (["jobs", "--file=/nowhere", "--priority=1"], "/nowhere: No such file"),
        (["jobs", "x" * 90_001, "--priority=1"], "90,000 bytes"),
        (["mail", "x", "--priority=1"], "FIFO"),
        (["jbos", "x", "--priority=1"], "jobs"),
    ],
)
def test_a_push_that_is_refused_says_why_and_changes_nothing(
    run: Run, shop: Shop, jobs: Queue, arguments: list[str], words: str
) -> None:
    mail = shop.store.create_queue("mail", kind="fifo")
    answer = run("push", *arguments)
    assert answer.code == 1
    assert words in answer.error
    assert (jobs.depth(), mail.depth()) == (3, 0)


def test_the_largest_value_and_the_empty_value(run: Run, shop: Shop) -> None:
    mail = shop.store.create_queue("mail", kind="fifo")
    assert run("push", "mail", "-", stdin=b"x" * 90_000).code == 0
    assert run("push", "mail", "").code == 0
    assert [item.size for item in mail.items().items] == [90_000, 0]
    assert "90,000" in run("push", "mail", "-", stdin=b"x" * 90_001).error


def test_pop_takes_from_either_end_and_keeps_it_in_the_trash(run: Run, shop: Shop, jobs: Queue) -> None:
    taken = run("pop", "jobs", "--end", "max", "--json", "--reason", "stuck").json
    assert set(taken) == {"queue", "items"}
    assert set(taken["items"][0]) == ITEM_FIELDS | {"value", "trash_id"}
    assert taken["items"][0]["value"] == "high"
    assert shop.store.audit.entries().entries[0].reason == "stuck"
    shop.store.actions("me").undo(taken["items"][0]["trash_id"])
    assert run("pop", "jobs", "-n", "5", "--json").json["items"][1]["value_base64"] == "/wA="
    assert jobs.depth() == 0
    assert run("pop", "jobs", "--json").json["items"] == []
    assert run("pop", "jobs").out == "jobs has nothing ready.\n"


def test_pop_tells_how_to_undo_it(run: Run, jobs: Queue) -> None:
    before = [item.id for item in jobs.items().items]
    lines = run("pop", "jobs", "-n", "2").out.splitlines()
    for line in lines[-1:-3:-1]:
        _, _, command = line.partition("Undo: pqadmin ")
        call_command(*shlex.split(command))  # the line names the store
    assert [item.id for item in jobs.items().items] == before
    jobs.push_many([(b"x", 1)] * 9)
    assert run("pop", "jobs", "-n", "7").out.count("Undo: ") == 5


def test_a_program_pops_without_filling_the_trash(run: Run, shop: Shop, jobs: Queue) -> None:
    answer = run("pop", "jobs", "--no-trash", "--json").json
    assert [(item["value"], item["trash_id"]) for item in answer["items"]] == [("low", None)]
    assert "Undo" not in run("pop", "jobs", "--no-trash").out
    assert shop.store.trash.entries().entries == ()
    assert run("pop", "jobs", "--keep=10m", "--reason", "nightly").out.count("Undo: ") == 1
    (entry,) = shop.store.trash.entries().entries
    assert entry.deadline - entry.at == timedelta(minutes=10)
    for wrong in (("--keep=8d",), ("--keep=soon",), ("--keep=1h", "--no-trash")):
        assert run("pop", "jobs", *wrong).code not in (0, 4)
    assert [entry.verb for entry in shop.store.audit.entries().entries] == ["pop_min"] * 3


def test_items_are_deleted_and_purged_for_good(run: Run, shop: Shop, jobs: Queue) -> None:
    first = jobs.items().items[0].id
    assert run("delete_items", "jobs", first, "--no-trash").out == "jobs: 1 item is gone.\n"
    answer = run("purge", "jobs", "--confirm", "jobs", "--no-trash")
    assert answer.out == "Purged jobs: 2 items are gone.\n"
    assert run("purge", "jobs", "--confirm", "jobs", "--no-trash").out == "jobs held nothing to purge.\n"
    sweep_trash(shop.store)
    assert shop.store.trash.entries().entries == ()
    jobs.push(b"x", priority=1)
    assert "Undo: pqadmin undo" in run("purge", "jobs", "--confirm", "jobs", "--keep", "1h").out
    (entry,) = shop.store.trash.entries().entries
    assert entry.deadline - entry.at == timedelta(hours=1)


def test_pop_from_a_fifo_queue_takes_the_head_only(run: Run, shop: Shop) -> None:
    shop.store.create_queue("mail", kind="fifo").enqueue_many([b"first", b"second", b"third"])
    assert run("pop", "mail", "--end", "head", "--json").json["items"][0]["value"] == "first"
    assert run("pop", "mail", "--json").json["items"][0]["value"] == "second"
    assert "head only" in run("pop", "mail", "--end", "tail").error
    assert run("depth", "mail").out == "1\n"


def test_pop_takes_more_than_one_transaction_holds(run: Run, shop: Shop) -> None:
    queue = shop.store.create_queue("jobs")
    for _ in range(3):
        queue.push_many([(b"x", 1)] * 400)
    assert len(run("pop", "jobs", "-n", "1100", "--json").json["items"]) == 1100
    assert queue.depth() == 100


def test_pop_takes_fewer_in_one_transaction_when_they_are_large(run: Run, shop: Shop) -> None:
    mail = shop.store.create_queue("mail", kind="fifo")
    for _ in range(2):
        mail.enqueue_many([b"x" * 90_000] * 50)
    mail.enqueue(b"last")
    assert [item["size"] for item in run("pop", "mail", "-n", "200", "--json").json["items"]] == [90_000] * 100 + [4]
    assert mail.depth() == 0


def test_peek_changes_nothing(run: Run, shop: Shop, jobs: Queue) -> None:
    shape = run("peek", "jobs", "-n", "2", "--json").json
    assert [(item["priority"], item.get("value")) for item in shape["items"]] == [(1, "low"), (5, None)]
    assert run("peek", "jobs", "--end", "tail", "--json").json["items"][0]["value"] == "high"
    assert jobs.depth() == 3
    assert shop.store.audit.entries().entries == ()


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (b"", True),
        ("tab\tline\nKraków 東京 👩‍🚀\u00a0\u202f".encode(), True),
        (b"\r", False),
        (b"\x00", False),
        (b"\x1b[31m", False),
        (b"\x7f", False),
        ("\x9b".encode(), False),
        ("\u202e".encode(), False),
        ("\ufeff".encode(), False),
        (b"\xff", False),
        (b"\xed\xa0\x80", False),
    ],
)
def test_plain_text_is_shown_and_anything_else_is_base64(run: Run, shop: Shop, value: bytes, plain: bool) -> None:
    shop.store.create_queue("mail", kind="fifo").enqueue(value)
    (item,) = run("peek", "mail", "--json").json["items"]
    assert ("value" in item, "value_base64" in item) == (plain, not plain)
    assert (item["value"].encode() if plain else base64.b64decode(item["value_base64"])) == value


def test_depth_prints_ready_items(run: Run, shop: Shop, jobs: Queue) -> None:
    shop.store.create_queue("mail", kind="fifo")
    assert run("depth", "jobs").out == "3\n"
    assert run("depth", "jobs", "mail").out == "3\tjobs\n0\tmail\n"
    assert run("depth", "jobs", "--json").json == {
        "depths": [{"queue": "jobs", "ready": 3, "delayed": 0, "leased": 0, "dead": 0, "counted_at": None}]
    }


def test_depth_prints_every_state(run: Run, shop: Shop, jobs: Queue) -> None:
    """`depth QUEUE` prints what can be taken; the other states are asked for, or all of them."""
    shop.store.create_queue("mail", kind="fifo")
    jobs.push(b"later", priority=1, delay=timedelta(hours=1))
    jobs.lease(seconds=60)
    kill(shop, jobs)
    told = {"ready": 1, "delayed": 1, "leased": 1, "dead": 1}
    for state, number in told.items():
        assert run("depth", "jobs", "--state", state).out == f"{number}\n"
    assert run("depth", "jobs", "mail", "--state=dead").out == "1\tjobs\n0\tmail\n"
    assert run("depth", "jobs", "--all").out == "1\t1\t1\t1\tjobs\n"
    assert run("depth", "jobs", "mail", "--all").out == "1\t1\t1\t1\tjobs\n0\t0\t0\t0\tmail\n"
    assert run("depth", "jobs", "--json").json["depths"] == [{"queue": "jobs", **told, "counted_at": None}]
    assert run("depth", "jobs", "--all", "--state=dead").code != 0


def kill(shop: Shop, queue: Queue) -> None:
    """Let the next item be dead."""
    shop.store.actions("ada").configure(queue.name, max_attempts=1)
    lease = queue.lease(seconds=60)
    queue.release(lease, reason="no address")


def codes(shape: dict[str, Any]) -> list[str]:
    """Return the codes of a verdict's reasons."""
    return [reason["code"] for reason in shape["verdict"]["reasons"]]


def test_queues_shows_the_depth_of_every_state_and_the_verdict(run: Run, shop: Shop, jobs: Queue) -> None:
    acts = shop.store.actions("ada")
    jobs.pop_min()
    for name in ("broken", "closed", "later", "idle", "held"):
        shop.store.create_queue(name)
    for _ in range(4):
        shop.store.queue("broken").push(b"x", priority=1)
        kill(shop, shop.store.queue("broken"))
    shop.store.queue("later").push(b"x", priority=1, delay=timedelta(hours=1))
    acts.configure("closed", closed=True)
    shop.store.queue("held").push(b"x", priority=1)
    acts.pause("held", reason="deploy")
    shapes = {shape["queue"]: shape for shape in run("queues", "--json").json["queues"]}
    told = {name: (shape["verdict"]["level"], codes(shape)) for name, shape in shapes.items()}
    assert told == {
        "broken": ("warning", ["dead"]),
        "closed": ("ok", []),
        "held": ("warning", ["paused"]),
        "idle": ("ok", []),
        "jobs": ("ok", []),
        "later": ("ok", []),
    }
    assert [name for name, shape in shapes.items() if shape["closed"]] == ["closed"]
    assert (shapes["broken"]["ready"], shapes["broken"]["dead"]) == (0, 4)
    lines = {line.split()[0]: line.split() for line in run("queues").out.splitlines()}
    columns = ["Kind", "Ready", "Delayed", "Leased", "Dead", "Min", "Max", "Oldest", "Consumers", "Verdict"]
    assert lines["Queue"] == ["Queue", *columns]
    assert " ".join(lines["broken"]) == "broken int 0 0 0 4 – ▲ warning · 4 dead · empty"
    assert " ".join(lines["later"]) == "later int 0 1 0 0 – ● ok"
    assert " ".join(lines["held"]).endswith("▲ warning · paused by ada, <10 s ago: deploy")
    assert " ".join(lines["closed"]).endswith("● ok · closed for pushes · empty")


def test_queues_are_listed_as_json(run: Run, shop: Shop, jobs: Queue) -> None:
    shop.store.create_queue("mail:out", kind="fifo").enqueue(b"x")
    jobs.pause(reason="deploy", by="ada")
    jobs_shape, mail_shape = run("queues", "--json").json["queues"]
    assert list(jobs_shape) == [
        "queue", "kind", "priority_type", "codec", "ready", "delayed", "leased", "dead", "arrived", "left", "oldest",
        "min_priority", "max_priority", "consumers", "last_consumer", "pause", "closed", "rate_in",
        "rate_out", "prefix", "counted_at", "unreadable", "verdict",
    ]  # fmt: skip
    assert (jobs_shape["ready"], jobs_shape["min_priority"], jobs_shape["max_priority"]) == (3, 1, 9)
    assert jobs_shape["pause"]["reason"] == "deploy"
    assert jobs_shape["pause"]["until"] is None
    assert (mail_shape["kind"], mail_shape["priority_type"], mail_shape["pause"]) == ("fifo", None, None)
    assert [queue["queue"] for queue in run("queues", "--prefix", "mail:", "--json").json["queues"]] == ["mail:out"]
    assert run("queues", "--prefix", "nothing", "--json").json == {"queues": []}


def test_queues_lists_the_consumers(run: Run, shop: Shop, jobs: Queue) -> None:
    shop.store.create_queue("idle")
    jobs.lease(seconds=60, worker="press\u202e")
    shop.store.context.presence.beat()
    idle, shape = run("queues", "--json").json["queues"]
    (consumer,) = shape["consumers"]
    assert (consumer["pid"], consumer["worker"], consumer["holds"]) == (os.getpid(), "press\u202e", 1)
    assert (consumer["takes"], consumer["end"], shape["last_consumer"]) == (1, None, None)
    assert (idle["consumers"], idle["last_consumer"]) == (None, None)
    lines = run("queues").out.splitlines()
    assert [re.split("[●◌]", line)[0].split()[-1] for line in lines[1:]] == ["–", "1"]


def test_items_that_come_back_arrive_once(run: Run, shop: Shop) -> None:
    jobs = shop.store.create_queue("jobs")
    jobs.push_many([(b"%d" % n, n) for n in range(30)])
    for _ in range(2):
        for lease in jobs.lease_many(14, seconds=60):
            jobs.release(lease)
    for lease in jobs.lease_many(5, seconds=60)[:3]:
        jobs.ack(lease)
    shape = run("queues", "--json").json["queues"][0]
    assert (shape["arrived"], shape["left"], shape["ready"], shape["leased"]) == (30, 3, 25, 2)
    other = shop.store.create_queue("others")
    moved = [item.id for item in jobs.items(limit=4).items]
    shop.store.actions("ann").move_items("jobs", moved, "others")
    shapes = {shape["queue"]: shape for shape in run("queues", "--json").json["queues"]}
    assert (shapes["jobs"]["arrived"], shapes["jobs"]["left"]) == (30, 7)
    assert (shapes["others"]["arrived"], shapes["others"]["left"]) == (4, 0)
    other.pop_min()
    assert run("queues", "--json").json["queues"][1]["left"] == 1


def test_a_queue_that_cannot_be_read_is_a_line_that_says_so(run: Run, shop: Shop, jobs: Queue) -> None:
    bad = shop.store.create_queue("bad")
    shop.store.transact(lambda tr: tr.set(shop.store.context.keyspace.configs.key(bad.id), b"\x01\x00\x00\x02[]"))
    first, second = run("queues", "--json").json["queues"]
    assert (first["queue"], first["ready"], second["queue"], second["ready"]) == ("bad", None, "jobs", 3)
    assert first["unreadable"].startswith("Its bytes are damaged")
    assert list(first) == list(second)
    assert [(shape["verdict"]["level"], codes(shape)) for shape in (first, second)] == [
        ("unknown", ["unreadable"]),
        ("ok", ["quiet"]),
    ]
    assert "–  " in run("queues").out
    assert "unreadable: Its bytes are damaged" in run("queues").out
    refused = run("pop", "bad")
    assert (refused.code, refused.out) == (1, "")
    assert refused.error.startswith("The queue “bad” cannot be read. Its bytes are damaged")


def test_a_pause_that_is_over_is_none(run: Run, shop: Shop, jobs: Queue) -> None:
    assert pause_shape(jobs.pause_state, datetime.now(UTC)) is None
    until = datetime.now(UTC) + timedelta(hours=1)
    jobs.pause(reason="deploy", by="ada", until=until)
    paused = jobs.pause_state
    assert paused is not None
    assert pause_shape(paused, until - timedelta(milliseconds=2)) is not None
    assert pause_shape(paused, until) is None
    status = next(iter(shop.store.snapshot([jobs.id]).queues.values()))
    verdict = unknown_health(HealthCode.STALE, 0.0)
    assert status_shape(status, verdict, until - timedelta(milliseconds=2))["pause"] is not None
    assert status_shape(status, verdict, until)["pause"] is None


def test_more_queues_than_one_snapshot_holds(run: Run, shop: Shop) -> None:
    shop.store.transact(lambda tr: [shop.store.create_queue(f"q{n:04}", tr=tr) for n in range(520)])
    names = [queue["queue"] for queue in run("queues", "--json").json["queues"]]
    assert names == [f"q{n:04}" for n in range(520)]


def test_tables_for_people_show_hostile_text_as_visible_characters(run: Run, shop: Shop) -> None:
    queue = shop.store.create_queue("jobs", priority_type="str")
    queue.push("[red]\x1b[31m\u202eevil\x9b".encode(), priority="\x1b[2J")
    queue.pause(reason="[link=x]\x1b]0;t\x07", by="ada")
    for answer in (run("queues"), run("peek", "jobs")):
        assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", answer.out) is None
    assert "[red]" in run("peek", "jobs").out
    assert "[link=x]" in run("queues").out
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", run("peek", "jobs", "--json").out) is None


def test_queues_are_created_paused_and_resumed(run: Run, shop: Shop) -> None:
    assert run("create_queue", "scores", "--priority-type", "float", "--json").json == {
        "queue": "scores", "id": shop.store.queue("scores").id, "kind": "priority", "priority_type": "float",
        "codec": "bytes", "prefix": None,
    }  # fmt: skip
    assert "exists already" in run("create_queue", "scores").error
    assert run("create_queue", "a/b").code == 1
    assert run("pause", "scores", "--reason", "deploy").out == "Paused scores.\n"
    assert "paused" in run("pop", "scores").error
    assert run("resume", "scores", "--json").json == {"queue": "scores", "pause": None}
    until = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    paused = run("pause", "scores", "--reason", "x", "--until", until.isoformat(), "--json").json
    assert datetime.fromisoformat(paused["pause"]["until"]) == until
    assert "time like" in run("pause", "scores", "--reason", "x", "--until", "soon").error
    # Acts of one millisecond, each by a store opened anew, have any order.
    assert sorted(entry.verb for entry in shop.store.audit.entries().entries) == ["create", "pause", "pause", "resume"]


def test_a_store_that_cannot_be_opened_is_told_in_a_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for url in ("nonsense", "redis:x", f"lmdb:{tmp_path / 'file'}"):
        with pytest.raises(CommandError) as caught:
            call_command("queues", "--store", url)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        ("queues",),
        ("depth", "jobs"),
        ("peek", "jobs"),
        ("pop", "jobs"),
        ("push", "jobs", "x"),
        ("pause", "jobs", "--reason", "x"),
        ("resume", "jobs"),
        ("export_items", "jobs"),
        ("import_items", "jobs", "/dev/null"),
    ],
)
def test_a_mistyped_path_makes_no_store(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "nowhere", tmp_path / "folder"):
        with pytest.raises(CommandError, match=re.escape(f"no store in {path}; create_queue makes one, --store")):
            call_command(*arguments, "--store", f"lmdb:{path}")
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


def test_what_puts_something_into_a_store_makes_it(tmp_path: Path) -> None:
    call_command("create_queue", "jobs", "--store", f"lmdb:{tmp_path / 'a'}", stdout=io.StringIO())
    call_command(
        "import_items", "jobs", "/dev/null", "--create", "--store", f"lmdb:{tmp_path / 'b'}", stdout=io.StringIO()
    )
    assert [(tmp_path / name / "data.mdb").is_file() for name in "ab"] == [True, True]


def test_errors_are_json_on_standard_error(shop: Shop, jobs: Queue, capsys: pytest.CaptureFixture[str]) -> None:
    from pqadmin.commands.management.commands.depth import Command

    with pytest.raises(SystemExit) as ended:
        Command().run_from_argv(["pqadmin", "depth", "jbos", "--json", "--store", shop.url])
    captured = capsys.readouterr()
    assert ended.value.code == 1
    assert captured.out == ""
    assert json.loads(captured.err) == {
        "error": {
            "code": "QueueNotFound",
            "message": "No queue is named “jbos”. Did you mean “jobs”?",
            "suggestions": ["jobs"],
        }
    }


def test_queues_marks_a_name_that_looks_like_another_one(run: Run, shop: Shop) -> None:
    shop.store.create_queue("orders")
    shop.store.create_queue("\u043erders")
    plain, marked = sorted(line for line in run("queues").out.splitlines() if "rders" in line)
    assert "looks like" not in plain
    assert "looks like another name: \u043e U+043E CYRILLIC SMALL LETTER O" in marked


def test_a_lone_none_empties_rules_of_redaction_and_preview_fields(run: Run, jobs: Queue) -> None:
    run("configure", "jobs", "--redact", "card*", "none", "--preview", "customer.id")
    settings = run("configure", "jobs", "--json").json["settings"]
    assert (settings["redact"], settings["preview"]) == (["card*", "none"], ["customer.id"])
    settings = run("configure", "jobs", "--redact", "none", "--preview", "none", "--json").json["settings"]
    assert (settings["redact"], settings["preview"]) == ([], [])


def test_a_pause_names_the_one_that_it_replaces(run: Run, jobs: Queue) -> None:
    jobs.pause(reason="dep\nloy", by="ada")
    assert run("pause", "jobs", "--reason", "repair").out == "Paused jobs. This replaces the pause by ada: dep ↵ loy\n"
    shape = run("pause", "jobs", "--reason", "again", "--json").json
    assert (shape["pause"]["reason"], shape["replaced"]["reason"]) == ("again", "repair")
    run("resume", "jobs")
    assert run("pause", "jobs", "--reason", "deploy", "--json").json["replaced"] is None
