"""Exports of items: what the page shows, to the byte and back, hidden where it is hidden, run by no spreadsheet."""

import csv
import io
import itertools
import json
import re
from datetime import timedelta

import pytest

from pqadmin.display.redaction import NOTHING
from pqadmin.files import formats, items_export
from pqadmin.files.entries import BadEntry, BadFormat, Entry, Format
from pqadmin.files.formula import is_formula
from queues import Query, Queue, Store
from tests.dashboard.audit.test_audit import FORMULAS, body
from tests.dashboard.conftest import Desk

HOSTILE = [
    *(formula.encode() for formula in FORMULAS),
    b"",
    b"plain",
    b'quote " and, comma\nnew line',
    b"\xff\x00",
    b"a\r\nb",
    b"'=1",
    "\u202e<script>\x1b[31m\u009b".encode(),
    b'{"a": 1}',
]


@pytest.mark.parametrize("priority_type", ["int", "float", "str", "fifo"])
@pytest.mark.parametrize("file_format", ["csv", "ndjson"])
def test_what_is_exported_comes_back_to_the_byte(
    operator: Desk, store: Store, file_format: Format, priority_type: str
) -> None:
    if priority_type == "fifo":
        queue = store.create_queue("jobs", kind="fifo")
        queue.enqueue_many(HOSTILE)
    else:
        queue = store.create_queue("jobs", priority_type=priority_type)
        words = {"int": -(10**20), "float": -2.5, "str": "=1+1"}
        queue.push_many([(value, words[priority_type]) for value in HOSTILE])
    status, text = body(operator, f"/queues/jobs/export/?format={file_format}")
    assert status == 200
    read = list(
        formats.read(
            io.BytesIO(text.encode()),
            file_format,
            priority_type=None if priority_type == "fifo" else queue.priority_type,
        )
    )
    assert all(isinstance(entry, Entry) for entry in read), read
    assert [(entry.value, entry.priority) for entry in read if isinstance(entry, Entry)] == [
        (item.value, item.priority) for item in queue.items(limit=100).items
    ]
    if file_format == "ndjson":
        assert not set(text) & set("\x1b\u009b\u202e"), "harmless on a terminal"
    else:
        assert text.startswith('"'), "every cell is quoted"
        for row in csv.DictReader(io.StringIO(text, newline="")):
            assert not is_formula(row["value"])
            assert not is_formula(row.get("priority", "")) or priority_type in ("int", "float")


def test_the_file_holds_what_the_query_shows_in_its_order(
    operator: Desk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items_export, "STEP", 3)
    monkeypatch.setattr(items_export, "SCAN", 4)
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"item %d" % n, n) for n in range(20)])
    jobs.push(b"later", priority=1, delay=timedelta(hours=1))

    def values(query: str) -> list[str]:
        text = body(operator, f"/queues/jobs/export/?format=ndjson{query}")[1]
        return [json.loads(line)["value"] for line in text.splitlines()]

    assert values("") == [f"item {n}" for n in range(20)]
    assert values("&end=max") == [f"item {n}" for n in reversed(range(20))]
    assert values("&low=5&high=7") == ["item 5", "item 6", "item 7"]
    assert values("&q=M+1") == ["item 1", *(f"item {n}" for n in range(10, 20))]
    assert values("&state=delayed") == ["later"]
    assert values("&q=nowhere") == []


def test_all_that_is_known_is_told_and_no_import_takes_it(operator: Desk, jobs: Queue) -> None:
    item = jobs.push(b"=x", priority=1, delay=timedelta(hours=1))
    address = "/queues/jobs/export/?state=delayed&details=1&format="
    (line,) = body(operator, address + "ndjson")[1].splitlines()
    known = json.loads(line)
    assert (known["id"], known["state"], known["size"]) == (item.id, "delayed", 2)
    assert known["due_at"] == item.due_at.isoformat(timespec="milliseconds")
    text = body(operator, address + "csv")[1]
    with pytest.raises(BadFormat, match="names its columns"):
        list(formats.read(io.BytesIO(text.encode()), "csv", priority_type="int"))


@pytest.mark.parametrize("file_format", ["csv", "ndjson"])
def test_hidden_values_stay_hidden_and_their_marks_are_not_imported(
    operator: Desk, jobs: Queue, file_format: Format
) -> None:
    jobs.push(b'{"pin": "hunter2", "n": 1}', priority=1)
    jobs.push(b"nothing hidden", priority=2)
    jobs.configure(redact=["pin"])
    text = body(operator, f"/queues/jobs/export/?format={file_format}")[1]
    assert "hunter2" not in text
    assert "[redacted]" in text
    assert "nothing hidden" in text
    hidden, shown = formats.read(io.BytesIO(text.encode()), file_format, priority_type="int")
    assert isinstance(hidden, BadEntry)
    assert "was hidden when it was exported" in hidden.reason
    assert isinstance(shown, Entry)
    assert shown.value == b"nothing hidden"
    assert body(operator, f"/queues/jobs/export/?format={file_format}&q=hunter2")[1].count("[redacted]") == 0


def test_the_formats_are_offered_for_what_the_page_shows(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    page = operator.open("/queues/jobs/export/?q=x&state=dead")
    assert "The dead items that your search finds" in page
    assert len([link for link in page.links if "q=x" in link and "state=dead" in link]) == 4
    assert operator.open("/queues/jobs/export/?low=abc").status == 400
    assert operator.open("/queues/nobody/export/").status == 404
    named = operator.client.get("/queues/jobs/export/?format=csv")
    assert named["Content-Disposition"].startswith('attachment; filename="jobs-ready-')
    assert named["X-Content-Type-Options"] == "nosniff"
    named.close()


def test_an_attached_queue_is_exported_with_foreign_items(operator: Desk, store: Store) -> None:
    theirs = store.attach("theirs", prefix=b"\x15theirs")
    theirs.push(b"=a", priority=5)
    text = body(operator, "/queues/theirs/export/?format=csv")[1]
    (entry,) = csv.DictReader(io.StringIO(text, newline=""))
    assert (entry["priority"], entry["value"], entry["value_base64"]) == ("5", "", "PWE=")


@pytest.mark.parametrize("file_format", ["csv", "ndjson"])
def test_a_part_goes_out_when_its_time_is_over(jobs: Queue, file_format: Format) -> None:
    jobs.push_many([(b"v%d" % n, n) for n in range(30)])

    def parts(seconds: float) -> list[bytes]:
        ticks = itertools.count()
        return list(
            items_export.lines(
                jobs,
                Query(),
                end="min",
                rules=NOTHING,
                file_format=file_format,
                details=False,
                clock=lambda: next(ticks) * seconds,
            )
        )

    assert b"".join(parts(items_export.SECONDS)) == b"".join(parts(0))
    assert len(parts(items_export.SECONDS)) >= 30
    assert len(parts(0)) <= 2


def test_the_audit_of_all_queues_has_a_name_without_gaps(operator: Desk) -> None:
    named = operator.client.get("/audit/export/?format=csv")
    assert re.search(r'filename="audit-\d{8}-\d{6}\.csv"', named["Content-Disposition"])
    named.close()


def test_a_delay_is_given_in_minutes_unless_said_otherwise(operator: Desk, store: Store) -> None:
    item = store.create_queue("jobs").push(b"x", priority=1)
    page = operator.client.get(f"/queues/jobs/act/?act=delay&state=ready&id={item.id}").content.decode()
    assert '<option value="min" selected>' in page
