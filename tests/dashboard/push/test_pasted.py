"""Texts of very many lines: no more of them are read than tell that they are too many."""

import time
from collections.abc import Iterator
from typing import IO, Any

import pytest

from pqadmin.dashboard.push import pasted
from pqadmin.display import format as write
from pqadmin.files import csv_rows, ndjson
from pqadmin.files.entries import Format
from pqadmin.files.lines import numbered
from queues.items.ready import MAX_ITEMS

GOOD = b'{"value": "x", "priority": 1}\n'
HEADER = b"value,priority\n"
MANY = 20_000


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of the lines that were read."""
    numbers: list[int] = []

    def noted(stream: IO[bytes]) -> Iterator[Any]:
        for number, line in numbered(stream):
            numbers.append(number)
            yield number, line

    monkeypatch.setattr(ndjson, "numbered", noted)
    monkeypatch.setattr(csv_rows, "numbered", noted)
    return numbers


@pytest.mark.parametrize(
    ("data", "file_format"),
    [
        (b"\n" * MANY, "ndjson"),
        (b"x\n" * MANY, "ndjson"),
        (GOOD * MANY, None),
        (HEADER + b"\n" * MANY, "csv"),
        (HEADER + b"x\n" * MANY, "csv"),
        (HEADER + b'a"b,1\n' * MANY, "csv"),
    ],
)
def test_only_so_many_lines_are_read(read: list[int], data: bytes, file_format: Format | None) -> None:
    batch = pasted.read(data, file_format=file_format, priority_type="int", at_once=True)
    assert len(read) <= MAX_ITEMS + pasted.MORE_LINES + 2  # a header, and the one that is too many
    assert f"more than {write.number(5_000)} lines" in batch.wrong
    assert not batch.good
    assert len(batch.bad) <= pasted.MAX_SHOWN
    assert len(batch.entries) <= MAX_ITEMS


def test_a_record_may_have_many_lines_but_not_all_of_them(read: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasted, "MAX_LINES_OF_RECORDS", 12_000)
    batch = pasted.read(HEADER + b'"' + b"\n" * 11_000 + b'",1\n', file_format="csv", priority_type="int", at_once=True)
    assert batch.good
    assert batch.entries[0].value == b"\n" * 11_000
    read.clear()
    batch = pasted.read(HEADER + b'"' + b"\n" * MANY + b'",1\n', file_format="csv", priority_type="int", at_once=True)
    assert len(read) <= 12_001
    assert f"more than {write.number(12_000)} lines" in batch.wrong


def test_as_many_lines_as_are_allowed_are_all_looked_at(read: list[int]) -> None:
    data = GOOD * MAX_ITEMS + b"\n" * (MAX_ITEMS + pasted.MORE_LINES - MAX_ITEMS)
    batch = pasted.read(data, file_format=None, priority_type="int", at_once=True)
    assert len(read) == MAX_ITEMS + pasted.MORE_LINES
    assert (batch.good, batch.count, batch.size) == (True, MAX_ITEMS, MAX_ITEMS)
    batch = pasted.read(
        b"x\n" * (MAX_ITEMS + pasted.MORE_LINES), file_format="ndjson", priority_type="int", at_once=True
    )
    assert (batch.wrong, batch.bad_count) == ("", (MAX_ITEMS + pasted.MORE_LINES))


#: Each takes a line of a megabyte seconds to be parsed as a whole, while no other request gets a turn.
LONG = b"[" + b"[]," * 300_000 + b"1]"


@pytest.mark.parametrize(
    ("line", "file_format", "why"),
    [
        (
            b'{"priority": 1, "value_json": ' + LONG + b"}",
            "ndjson",
            "a list or an object in a line of 900,035 characters",
        ),
        (b'{"value": "x", "priority": ' + LONG + b"}", "ndjson", "a list or an object in a line of 900,032 characters"),
        (
            HEADER.replace(b"value", b"value_json") + LONG.replace(b",", b"") + b",1",
            "csv",
            "the value has 600,003 bytes",
        ),
    ],
)
def test_a_very_long_line_is_refused_without_being_parsed(line: bytes, file_format: Format, why: str) -> None:
    began = time.thread_time()
    batch = pasted.read(line + b"\n", file_format=file_format, priority_type="int", at_once=True)
    assert time.thread_time() - began < 0.1
    (bad,) = batch.bad
    assert bad.reason.startswith(why)
    assert not batch.good


def test_the_longest_lines_that_hold_an_item_are_read() -> None:
    nested = b"[" + b"1," * 44_990 + b"1]"
    escaped = b"\\u0001" * 90_000
    lines_of = b'{"priority": 1, "value_json": %b}\n{"value": "%b", "priority": 1}\n' % (nested, escaped)
    batch = pasted.read(lines_of, file_format="ndjson", priority_type="int", at_once=True)
    assert batch.good
    assert [entry.value for entry in batch.entries] == [nested, b"\x01" * 90_000]


def test_a_header_of_very_many_cells_is_none() -> None:
    batch = pasted.read(b"," * 900_000 + b"\n", file_format="csv", priority_type="int", at_once=True)
    assert "this one has 900,001 cells" in batch.wrong


def test_what_a_job_pushes_is_looked_at_to_the_end_and_no_further(
    read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pasted, "MAX_PUSH_JOB_ITEMS", 3_000)
    batch = pasted.read(GOOD * 3_000, file_format=None, priority_type="int")
    assert (batch.good, batch.large, batch.count, len(batch.entries)) == (True, True, 3_000, 3_000)
    assert not pasted.read(GOOD * MAX_ITEMS, file_format=None, priority_type="int").large
    batch = pasted.read(GOOD * 3_001, file_format=None, priority_type="int")
    assert not batch.good
    assert f"at most {write.number(3_000)}" in batch.wrong
    read.clear()
    batch = pasted.read(GOOD * MANY, file_format=None, priority_type="int")
    assert len(read) == 3_000 + pasted.MORE_LINES + 1
    assert "Push them in parts" in batch.wrong
