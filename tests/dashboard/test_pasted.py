"""Texts of very many lines: no more of them are read than tell that they are too many."""

from __future__ import annotations

from typing import Any

import pytest

from pqadmin.dashboard import format as write
from pqadmin.dashboard import pasted
from pqadmin.operations import formats, lines
from queues.ready import MAX_ITEMS

GOOD = b'{"value": "x", "priority": 1}\n'
HEADER = b"value,priority\n"
MANY = 20_000


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of the lines that were read."""
    numbers: list[int] = []
    plain = lines.RawLine

    def noted(**fields: Any) -> lines.RawLine:
        numbers.append(fields["number"])
        return plain(**fields)

    monkeypatch.setattr(lines, "RawLine", noted)
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
def test_only_so_many_lines_are_read(read: list[int], data: bytes, file_format: formats.Format | None) -> None:
    batch = pasted.read(data, file_format=file_format, priority_type="int")
    assert len(read) <= pasted.MAX_LINES + 2  # a header, and the one that is too many
    assert f"more than {write.number(5_000)} lines" in batch.wrong
    assert not batch.good
    assert len(batch.bad) <= pasted.MAX_SHOWN
    assert len(batch.entries) <= MAX_ITEMS


def test_a_record_may_have_many_lines_but_not_all_of_them(read: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasted, "MAX_LINES_OF_RECORDS", 12_000)
    batch = pasted.read(HEADER + b'"' + b"\n" * 11_000 + b'",1\n', file_format="csv", priority_type="int")
    assert batch.good
    assert batch.entries[0].value == b"\n" * 11_000
    read.clear()
    batch = pasted.read(HEADER + b'"' + b"\n" * MANY + b'",1\n', file_format="csv", priority_type="int")
    assert len(read) <= 12_001
    assert f"more than {write.number(12_000)} lines" in batch.wrong


def test_as_many_lines_as_are_allowed_are_all_looked_at(read: list[int]) -> None:
    data = GOOD * MAX_ITEMS + b"\n" * (pasted.MAX_LINES - MAX_ITEMS)
    batch = pasted.read(data, file_format=None, priority_type="int")
    assert len(read) == pasted.MAX_LINES
    assert (batch.good, batch.count, batch.size) == (True, MAX_ITEMS, MAX_ITEMS)
    batch = pasted.read(b"x\n" * pasted.MAX_LINES, file_format="ndjson", priority_type="int")
    assert (batch.wrong, batch.bad_count) == ("", pasted.MAX_LINES)
