"""The push page: later, several at once, templates, duplicates; nothing half pushed, nothing typed lost."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from pqadmin.pages import uploads
from queues import Store
from tests.dashboard.conftest import Desk
from tests.dashboard.screen import Screen

pytestmark = pytest.mark.usefixtures("jobs")
HERE, MANY = "/queues/jobs/push/", "/queues/jobs/push/many/"


def delayed(store: Store) -> list[Any]:
    return list(store.queue("jobs").delayed().items)


def test_an_item_is_pushed_for_later(operator: Desk, store: Store) -> None:
    before = datetime.now(UTC)
    after = operator.send(operator.open(HERE), "push/", value="x", priority="1", when="delay", delay="1,5", unit="h")
    (item,) = delayed(store)
    assert timedelta(hours=1.5) <= item.due_at - before < timedelta(hours=1.6)
    assert "Pushed 1 B with priority 1, due " in after
    assert store.queue("jobs").depth() == 0


def test_a_moment_is_typed_in_any_time_zone(operator: Desk, store: Store) -> None:
    page = operator.open(HERE)
    operator.send(
        page, "push/", value="x", priority="1", when="due", due="2099-07-01T14:00:00", zone="America/New_York"
    )
    (item,) = delayed(store)
    assert item.due_at == datetime(2099, 7, 1, 18, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ({"when": "delay", "delay": "soon"}, "Give a number"),
        ({"when": "delay", "delay": "-5"}, "Give a number"),
        ({"when": "delay", "delay": "999999999.9", "unit": "d"}, "before the year 10000"),
        ({"when": "delay", "delay": "999999999999", "unit": "s"}, "before the year 10000"),
        ({"when": "delay", "delay": "9" * 40, "unit": "d"}, "too far away"),
        ({"when": "due", "due": "tomorrow"}, "Give a date and a time"),
        ({"when": "due", "due": "2099-01-01T00:00", "zone": "Middle/Earth"}, "No time zone"),
        ({"when": "due", "due": "2099-01-01T00:00", "zone": "../etc/passwd"}, "No time zone"),
        ({"when": "due", "due": "2099-01-01T00:00", "zone": "x" * 100}, "No time zone"),
        ({"when": "due", "due": "0001-01-01T00:00", "zone": "+14:00"}, "too far away"),
    ],
)
def test_a_wrong_time_keeps_what_was_typed(operator: Desk, store: Store, typed: dict[str, str], why: str) -> None:
    refused = operator.send(operator.open(HERE), "push/", value="precious", priority="1", **typed)
    assert refused.status == 422
    assert why in refused
    fields = refused.form("push/")[1]
    assert fields["value"] == "precious"
    assert all(fields[name] == value for name, value in typed.items())
    assert store.queue("jobs").totals().traffic == {}


def test_several_are_pushed_in_order_as_one(operator: Desk, store: Store) -> None:
    lines = '{"value": "b", "priority": 2}\r\n\r\n{"value_json": {"a": 1.50}, "priority": 1}\r\n'
    page = operator.open(MANY)
    after = operator.send(page, "many/", items=lines, reason="replay")
    assert "Pushed 2 items." in after
    assert [item.value for item in store.queue("jobs").items().items] == [b'{"a": 1.50}', b"b"]
    (entry,) = store.audit.entries(queue="jobs").entries
    assert (entry.verb, entry.count, entry.reason) == ("push", 2, "replay")
    again = operator.send(page, "many/", items=lines, reason="replay")
    assert "Nothing was done a second time." in again
    assert store.queue("jobs").depth() == 2


def test_one_wrong_line_stops_all_and_every_wrong_line_is_named(operator: Desk, store: Store) -> None:
    lines = "priority,value\n1,good\nx,bad\n2,also <b>good</b>\n3\n"
    refused = operator.send(operator.open(MANY), "many/", items=lines, format="csv")
    assert refused.status == 422
    assert "2 lines are wrong." in refused
    assert "line 3" in refused
    assert "line 5" in refused
    assert "1 cells where the header names 2 columns" in refused
    assert refused.form("many/")[1]["items"] == lines
    assert store.queue("jobs").depth() == 0
    fixed = lines.replace("x,bad", "9,bad").replace("\n3\n", "\n3,c\n")
    assert "Pushed 4 items." in operator.send(refused, "many/", items=fixed)


def test_pasted_plain_lines_are_told_by_their_beginning_and_confirmed(operator: Desk, store: Store) -> None:
    lines = "to ann\nto bob, and cy\n"
    asked = operator.send(operator.open(MANY), "many/", items=lines)
    assert asked.status == 422
    assert "A priority is needed." in asked
    refused = operator.send(asked, "many/", priority="4", format="")
    assert "No line names columns, so each is a value." in refused
    assert store.queue("jobs").depth() == 0
    assert refused.form("many/")[1]["format"] == "lines"
    assert "Pushed 2 items." in operator.send(refused, "many/")
    assert [item.value for item in store.queue("jobs").items().items] == [b"to ann", b"to bob, and cy"]
    typo = operator.send(operator.open(MANY), "many/", items="valeu,priority\na,1\n", priority="4")
    assert "found “valeu”" in typo


def test_checking_pushes_nothing_and_shows_what_would_be(operator: Desk, store: Store) -> None:
    lines = "\n".join(json.dumps({"value": f"<i>{n}</i>", "priority": n}) for n in range(7))
    checked = operator.send(operator.open(MANY), "many/", items=lines, check="lines")
    assert "7 items, not pushed yet" in checked
    assert "<i>0</i>" in checked.text
    assert "<i>5</i>" not in checked.text.split("Paste NDJSON, CSV or plain lines")[0]
    assert store.queue("jobs").depth() == 0
    assert "Pushed 7 items." in operator.send(checked, "many/")


def test_a_file_is_checked_and_its_text_comes_into_the_field(operator: Desk, store: Store) -> None:
    def send(**more: Any) -> Screen:
        action, fields = operator.open(MANY).form("many/")
        file = SimpleUploadedFile("items.csv", b"\xef\xbb\xbfpriority,value\r\n1,a\r\n2,b\r\n")
        return Screen(operator.client.post(action, {**fields, "file": file, **more}, follow=True))

    checked = send(check="lines")
    assert "2 items, not pushed yet" in checked
    assert "The file's text is in the field now." in checked
    assert checked.form("many/")[1]["items"].splitlines() == ["priority,value", "1,a", "2,b"]
    assert "Pushed 2 items." in send()
    both = send(items="priority,value\n1,a\n")
    assert "which one is meant?" in both
    assert store.queue("jobs").depth() == 2


def test_more_than_one_transaction_takes_is_pushed_as_a_job_and_undone(operator: Desk, store: Store) -> None:
    lines = "\n".join(json.dumps({"value": f"<i>{n}</i>", "priority": n % 3}) for n in range(1_001))
    page = operator.open(MANY)
    checked = operator.send(page, "many/", items=lines, check="lines")
    assert "1 001 items, not pushed yet" in checked
    assert "as a job" in checked
    assert store.actions("").jobs() == []
    begun = operator.send(checked, "many/", reason="the backlog", when="delay", delay="1", unit="h")
    assert "Push 1 001 items to jobs" in begun
    assert "what was pasted or uploaded, in its order" in begun
    assert "due " in begun
    again = operator.send(checked, "many/", reason="the backlog", when="delay", delay="1", unit="h")
    assert again.path == begun.path, "a form that is sent twice begins one job"
    (job,) = store.actions("").jobs()
    assert (job.reason, job.total, job.status) == ("the backlog", 1_001, "running")
    store.actions("").run_bulk(job.id, progress=lambda now: now.done < 400)
    operator.send(operator.open(begun.path), "cancel/")
    assert store.queue("jobs").depth("delayed") == 400
    operator.send(operator.open(begun.path), "resume/")
    store.actions("").run_bulk(job.id)
    assert store.queue("jobs").depth("delayed") == 1_001
    taken_out = operator.open("/trash/?act=push")
    assert "pushed" in taken_out
    assert "This undoes: " in operator.send(taken_out, "restore/")
    operator.send(operator.open(begun.path), "undo/")
    (undoing,) = store.actions("").running_jobs()
    assert not operator.open(f"/jobs/{undoing.id}/").has_form("/undo/")
    store.actions("").run_bulk(undoing.id)
    assert store.queue("jobs").depth("delayed") == 0
    assert operator.open(f"/jobs/{undoing.id}/").has_form("/undo/"), "this can be undone too"
    assert "This undoes: Undo in jobs" in operator.send(operator.open("/trash/?act=delete"), f"{undoing.id}/restore/")
    (again,) = store.actions("").running_jobs()
    store.actions("").run_bulk(again.id)
    assert store.queue("jobs").depth("delayed") == 1_001
    assert not operator.open(f"/jobs/{again.id}/").has_form("/undo/")


def test_a_push_is_undone_from_its_answer_and_that_too(operator: Desk, store: Store) -> None:
    store.create_queue("line", kind="fifo")
    store.attach("theirs", prefix=("theirs", 1))
    for name, fields in (("jobs", {"priority": "1"}), ("line", {}), ("theirs", {"priority": "1"})):
        pushed = operator.send(operator.open(f"/queues/{name}/push/"), "push/", value="x", **fields)
        queue = store.queue(name)
        (item,) = queue.items().items
        undone = operator.send(pushed, "restore/")
        assert "Undone: 1 item was taken out again." in undone
        assert queue.depth() == 0
        assert operator.post(*pushed.form("restore/")).text.count("Nothing was done a second time.") == 1
        entry = store.audit.entries(item=item.id).entries[0]
        assert (entry.verb, entry.actor, entry.before) == ("undo", "ada", {"act": "push"})
        assert "It is in the trash." in operator.open(f"/queues/{name}/items/{item.id}/")
        assert "as it was, where it was" in operator.send(undone, "restore/")
        assert [(back.id, back.value) for back in queue.items().items] == [(item.id, b"x")]


@pytest.mark.parametrize("when", [{}, {"when": "delay", "delay": "1", "unit": "h"}], ids=["at once", "later"])
def test_undoing_a_push_leaves_alone_what_has_gone_on(operator: Desk, store: Store, when: dict[str, str]) -> None:
    jobs, lines = store.queue("jobs"), "\n".join(json.dumps({"value": f"{n}", "priority": n}) for n in range(4))
    pushed = operator.send(operator.open(MANY), "many/", items=lines, **when)
    pushed_items = sorted((jobs.delayed() if when else jobs.items()).items, key=lambda item: item.value)
    ids = [item.id for item in pushed_items]
    ann = store.actions("ann")
    ann.delete_item("jobs", ids[0])
    ann.edit_item("jobs", ids[1], b"edited", expect=b"1")
    if when:
        ann.promote("jobs", [ids[2]])
    else:
        assert jobs.lease(worker="bob").item.value == b"edited"
        ann.reprioritize("jobs", [ids[2]], priority=9)
    undone = operator.send(pushed, "restore/")
    assert "Undone: 1 item was taken out again. 3 have gone on since and were left alone." in undone
    assert {item_id: jobs.find(item_id) is not None for item_id in ids} == dict(
        zip(ids, [False, True, True, False], strict=True)
    )
    operator.send(undone, "restore/")
    assert jobs.find(ids[3]).value == b"3"
    again = operator.send(operator.open(MANY), "many/", items='{"value": "x", "priority": -1}')
    jobs.pop_min()
    gone = operator.send(again, "restore/")
    assert "All of these items have gone on since" in gone


def test_a_job_that_cannot_go_on_says_why_and_keeps_the_rest(operator: Desk, store: Store) -> None:
    lines = "\n".join('{"value": "x", "priority": 1}' for _ in range(1_001))
    begun = operator.send(operator.open(MANY), "many/", items=lines)
    store.actions("").configure("jobs", closed=True)
    store.actions("").run_bulk(store.actions("").jobs()[0].id)
    page = operator.open(begun.path)
    assert "Pushing to jobs is closed" in page
    assert "kept with the job for 7 days" in page
    refused = operator.send(operator.open(MANY), "many/", items=lines)
    assert "The queue is closed for pushes" in refused
    assert refused.form("many/")[1]["items"] == lines


def test_an_attached_queue_takes_one_transaction_at_once(operator: Desk, store: Store) -> None:
    store.attach("theirs", prefix=("theirs", 1))
    lines = "\n".join('{"value": "x", "priority": 1}' for _ in range(1_001))
    page = operator.open("/queues/theirs/push/many/")
    assert "as a job" not in page
    refused = operator.send(page, "many/", items=lines)
    assert refused.status == 422
    assert "import_items theirs" in refused
    assert "at most 1 000 items" in refused


@pytest.mark.parametrize("more", [{}, {"check": "lines"}])
def test_a_file_of_too_many_lines_is_refused_with_the_way_to_do_it(
    operator: Desk, store: Store, more: dict[str, str]
) -> None:
    action, fields = operator.open(MANY).form("many/")
    file = SimpleUploadedFile("items.ndjson", b"x\n" * 105_000)
    refused = Screen(operator.client.post(action, {**fields, "file": file, **more}))
    assert refused.status == 422
    assert "more than 104 000 lines" in refused
    assert "import_items jobs" in refused
    assert store.queue("jobs").depth() == 0


def test_a_file_that_is_too_large_is_not_kept(operator: Desk, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_FILE", 100_000)
    action, fields = operator.open(MANY).form("many/")
    file = SimpleUploadedFile("items.ndjson", b'{"value": "x", "priority": 1}\n' * 10_000)
    refused = Screen(operator.client.post(action, {**fields, "file": file}))
    assert refused.status == 422
    assert "The file has more than 100.0 kB" in refused
    assert store.queue("jobs").depth() == 0


@pytest.mark.parametrize("text", ["", " \n ", "[1]", "nonsense", "\x01", '{"value": "x"}\n' + "y" * 100_000])
def test_whatever_is_pasted_is_answered(operator: Desk, store: Store, text: str) -> None:
    refused = operator.send(operator.open(MANY), "many/", items=text)
    assert refused.status == 422
    assert re.search("Nothing was (pushed|changed)", refused.text)
    assert store.queue("jobs").depth() == 0


def test_fifo_items_come_without_a_priority(operator: Desk, store: Store) -> None:
    store.create_queue("mail", kind="fifo")
    page = operator.open("/queues/mail/push/many/")
    assert "Enqueued 2 items." in operator.send(page, "many/", items='{"value": "a"}\n{"value": "b"}')
    refused = operator.send(operator.open(page.path), "many/", items='{"value": "a", "priority": 1}')
    assert "a FIFO queue takes no priority" in refused


def test_templates_are_shared_and_belong_to_the_queue(desk: Callable[..., Desk], store: Store) -> None:
    ann, bob = desk(name="ann"), desk(name="bob")
    kept = ann.send(
        ann.open(HERE),
        "push/",
        value='{"job": "<nightly>"}',
        priority="7",
        when="delay",
        delay="5",
        unit="min",
        template_name="  nightly  run ",
        keep="template",
    )
    assert "Kept as the template “nightly run”. Nothing was pushed." in kept
    assert kept.form("push/")[1]["value"] == '{"job": "<nightly>"}'
    assert store.queue("jobs").totals().traffic == {}
    store.rename_queue("jobs", "tasks")
    page = bob.open("/queues/tasks/push/")
    assert "nightly run" in page
    (link,) = [link for link in page.links if "template=" in link]
    filled = bob.open(link)
    fields = filled.form("push/")[1]
    assert (fields["value"], fields["priority"], fields["when"], fields["delay"], fields["unit"]) == (
        '{"job": "<nightly>"}',
        "7",
        "delay",
        "5",
        "min",
    )
    assert "due" in bob.send(filled, "push/")
    store.create_queue("jobs")
    assert "nightly run" not in ann.open(HERE)
    gone = bob.send(page, "delete/")
    assert "The template is deleted." in gone
    assert "not there any more" in bob.open(link)
    told = [(entry.verb, entry.actor, entry.queue) for entry in store.audit.entries(queue="tasks").entries]
    assert told[0] == ("forget_template", "bob", "tasks")
    assert told[-1] == ("keep_template", "ann", "jobs")
    page = ann.open("/audit/?queue=tasks")
    assert "kept a push template" in page
    assert "deleted a push template" in page
    assert "template nightly run" in page
    assert "<nightly>" not in page.text, "what it holds may be secret"


def test_a_template_needs_a_name_and_what_was_typed_stays(operator: Desk) -> None:
    for name in ("", "x" * 81, "a\u202eb"):
        refused = operator.send(operator.open(HERE), "push/", value="kept", template_name=name, keep="template")
        assert refused.status == 422
        assert "The template was not kept" in refused
        assert refused.form("push/")[1]["value"] == "kept"


@pytest.mark.parametrize(
    "value", [b"plain\n\n text ", b"\nfirst", "\u202e<script>".encode(), b"\xff\x00", b"a\r\nb", b""]
)
def test_a_duplicate_is_the_same_to_the_byte(operator: Desk, store: Store, value: bytes) -> None:
    item = store.queue("jobs").push(value, priority=-5)
    page = operator.open(f"{HERE}?like={item.id}")
    assert "A duplicate of the item, not pushed yet." in page
    operator.send(page, "push/")
    first, second = store.queue("jobs").items().items
    assert first.value == second.value == value
    assert first.priority == second.priority == -5
    assert first.id != second.id


def test_what_is_hidden_is_not_handed_out_by_duplicating(operator: Desk, store: Store) -> None:
    item = store.queue("jobs").push(b'{"password": "hunter2"}', priority=1)
    store.queue("jobs").configure(redact=["password"])
    page = operator.open(f"{HERE}?like={item.id}")
    assert "hunter2" not in page.html
    assert "reveal it on its page" in page
    assert f"/queues/jobs/items/{item.id}/" in page.links
    assert "not here any more" in operator.open(f"{HERE}?like={'0' * 40}")


def test_an_attached_queue_takes_nothing_for_later(operator: Desk, store: Store) -> None:
    store.attach("theirs", prefix=b"\x15theirs")
    page = operator.open("/queues/theirs/push/")
    assert "when" not in page.form("push/")[1]
    assert "Pushed" in operator.send(page, "push/", value="x", priority="1", when="delay", delay="5")
    assert store.queue("theirs").peek_min().value == b"x"


def test_limits_of_the_queue_are_said_on_the_form(operator: Desk, store: Store) -> None:
    store.queue("jobs").configure(max_depth=1, max_value=3)
    refused = operator.send(operator.open(HERE), "push/", value="four", priority="1")
    assert "takes values of at most 3 bytes" in refused
    operator.send(refused, "push/", value="abc")
    full = operator.send(operator.open(HERE), "push/", value="abc", priority="1")
    assert full.status == 409
    assert "The queue is full" in full
