"""The file formats: what is an entry, what is a bad line and why, and that every value comes back as it went."""

from __future__ import annotations

import io
import tracemalloc
from typing import Any

import pytest

from pqadmin.commands.importer import Importer
from pqadmin.files import formats
from pqadmin.files.entries import BadEntry, BadFormat, Blank, Entry, Format, Outcome
from pqadmin.files.lines import MAX_LINE_BYTES
from queues.model.priority import PriorityType


def read(
    data: bytes, file_format: Format = "ndjson", *, priority_type: PriorityType | None = "int", skip: int = 0
) -> list[Outcome]:
    """Read what a file of these bytes holds."""
    return list(formats.read(io.BytesIO(data), file_format, priority_type=priority_type, skip=skip))


def buffered(data: bytes) -> io.BufferedReader[Any]:
    """Return the bytes as an open file would give them."""
    return io.BufferedReader(io.BytesIO(data))


def reason(line: str | bytes, *, priority_type: PriorityType | None = "int") -> str:
    """Return why the only line is bad."""
    data = line.encode() if isinstance(line, str) else line
    (outcome,) = read(data + b"\n", priority_type=priority_type)
    assert isinstance(outcome, BadEntry), outcome
    assert outcome.line == 1
    return outcome.reason


def test_the_three_ways_to_write_a_value() -> None:
    lines = [
        b'{"value": "t\\u00e9xt", "priority": 1}',
        b'{"value_base64": "AP8=", "priority": 2}',
        b'{"priority": 3, "value_json": {"b": 1.50, "a": [123456789012345678901234567890 ]} }',
    ]
    assert read(b"\n".join(lines)) == [
        Entry(line=1, value="téxt".encode(), priority=1),
        Entry(line=2, value=b"\x00\xff", priority=2),
        Entry(line=3, value=b'{"b": 1.50, "a": [123456789012345678901234567890 ]}', priority=3),
    ]


def test_byte_order_mark_crlf_blank_lines_and_no_last_line_end() -> None:
    data = b'\xef\xbb\xbf{"value":"a","priority":1}\r\n\r\n   \n{"value":"b","priority":2}'
    assert read(data) == [
        Entry(line=1, value=b"a", priority=1),
        Blank(line=2),
        Blank(line=3),
        Entry(line=4, value=b"b", priority=2),
    ]


def test_skipping_keeps_the_numbers() -> None:
    data = b"".join(b'{"value":"%d","priority":%d}\n' % (n, n) for n in range(1, 6))
    assert read(data, skip=3) == [
        Entry(line=4, value=b"4", priority=4),
        Entry(line=5, value=b"5", priority=5),
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"value": "x", "priority": NaN}', "NaN"),
        ('{"value": "x", "priority": -Infinity}', "-Infinity"),
        ('{"value": "x", "priority": 1e400}', "1e400"),
        ('{"value_json": [1e400], "priority": 1}', "1e400"),
        ('{"value": "x", "priority": true}', "bool"),
        ('{"value": "x", "priority": "5"}', "text"),
        ('{"value": "x", "priority": 1.5}', "whole number"),
        ('{"value": "x", "priority": ' + "9" * 615 + "}", "614"),
        ('{"value": "x", "priority": ' + "9" * 20_000 + "}", "20,000 digits"),
        ('{"value": "x"}', "priority is missing"),
        ('{"value": "x", "priority": null}', "priority is missing"),
        ('{"value": "x", "priority": 1, "priority": 2}', "twice"),
        ('{"value_json": {"k": 1, "k": 2}, "priority": 1}', "twice"),
        ('{"value": "\\ud83d", "priority": 1}', "lone surrogate"),
        ('{"value_json": {"\\udc00": 1}, "priority": 1}', "lone surrogate"),
        ('{"value": "x", "prio": 1}', "unknown name “prio”"),
        ('{"value": "x", "value_base64": "eA==", "priority": 1}', "one value"),
        ('{"priority": 1}', "no value"),
        ('{"value": 5, "priority": 1}', "value_json"),
        ('{"value": null, "priority": 1}', "value_json"),
        ('{"value_base64": "eA", "priority": 1}', "base64"),
        ('{"value_base64": "é===", "priority": 1}', "base64"),
        ('{"value": "' + "x" * 90_001 + '", "priority": 1}', "90,001 bytes"),
        ('["value"]', "object"),
        ('{"value": "x", "priority": 1', "not JSON"),
        ('{"value": "x", "priority": 1} x', "not JSON"),
        ('{"value": "x" "priority": 1}', "not JSON"),
        ('{value: "x"}', "not JSON"),
        ('{"value": "tab\there", "priority": 1}', "not JSON"),
        ('{"value_json": ' + "[" * 90_000 + ', "priority": 1}', "nested too deeply"),
        (b'{"value": "\xff", "priority": 1}', "not UTF-8"),
        (b'{"value": "x", "priority": 1}\x00', "not JSON"),
    ],
)
def test_a_bad_line_says_why(line: str | bytes, words: str) -> None:
    assert words in reason(line)


def test_a_fifo_queue_takes_no_priority() -> None:
    assert read(b'{"value": "x"}', priority_type=None) == [Entry(line=1, value=b"x", priority=None)]
    assert "FIFO" in reason('{"value": "x", "priority": 1}', priority_type=None)


def test_a_long_line_is_read_past_and_numbered() -> None:
    data = b"x" * (3 * MAX_LINE_BYTES) + b'\n{"value":"b","priority":2}\n'
    first, second = read(data)
    assert isinstance(first, BadEntry)
    assert "3,000,001 bytes" in first.reason
    assert second == Entry(line=2, value=b"b", priority=2)


def test_memory_stays_flat_in_a_line_without_end() -> None:
    tracemalloc.start()
    try:
        outcomes = list(formats.read(io.BufferedReader(Generated(b"x", 100_000_000)), "ndjson", priority_type="int"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(outcomes) == 1
    assert peak < 5_000_000


def test_largest_value_fits_in_a_line_however_it_is_escaped() -> None:
    value = b"\x01" * 90_000
    line = '{"value": "' + "\\u0001" * 90_000 + '", "priority": ' + "9" * 614 + "}"
    (entry,) = read(line.encode())
    assert isinstance(entry, Entry)
    assert entry.value == value


# CSV


def test_csv_reads_quotes_line_breaks_and_columns_in_any_order() -> None:
    data = b'priority,value\r\n1,"a ""b"", c"\r\n-2,"two\r\nlines"\r\n\r\n 3 ,x\r\n'
    assert read(data, "csv") == [
        Entry(line=2, value=b'a "b", c', priority=1),
        Entry(line=4, value=b"two\r\nlines", priority=-2),
        Blank(line=5),
        Entry(line=6, value=b"x", priority=3),
    ]


def test_csv_has_one_value_of_three_columns() -> None:
    data = b'value,value_base64,value_json,priority\na,,,1\n,AP8=,,2\n,,"{""n"": 1}",3\n,,,4\na,AP8=,,5\n,,{,6\n'
    outcomes = read(data, "csv")
    assert [entry.value for entry in outcomes if isinstance(entry, Entry)] == [b"a", b"\x00\xff", b'{"n": 1}', b""]
    assert [bad.line for bad in outcomes if isinstance(bad, BadEntry)] == [6, 7]


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (b"x,abc", "not a whole number"),
        (b"x,", "priority is missing"),
        (b"x", "1 cells"),
        (b"x,1,2", "3 cells"),
        (b'"x"y,1', "not CSV"),
        (b'"x,1', "not CSV"),
        (b"\xff,1", "not UTF-8"),
        (b"x,1e400", "not a whole number"),
        (b"x," + b"9" * 5000, "too long"),
    ],
)
def test_a_bad_csv_record_says_why(record: bytes, words: str) -> None:
    (outcome,) = read(b"value,priority\n" + record + b"\n", "csv")
    assert isinstance(outcome, BadEntry)
    assert (outcome.first, outcome.line) == (2, 2)
    assert words in outcome.reason


def test_csv_goes_on_after_a_bad_record() -> None:
    data = b'value,priority\n"a"b,1\n' + b"x" * (MAX_LINE_BYTES + 1) + b",2\nok,3\n"
    outcomes = read(data, "csv")
    assert [type(outcome) for outcome in outcomes] == [BadEntry, BadEntry, Entry]
    assert [outcome.line for outcome in outcomes] == [2, 3, 4]


def test_csv_reads_float_and_text_priorities() -> None:
    assert read(b"value,priority\nx,1e3\ny,-0.0\n", "csv", priority_type="float") == [
        Entry(line=2, value=b"x", priority=1000.0),
        Entry(line=3, value=b"y", priority=0.0),
    ]
    (bad,) = read(b"value,priority\nx,9007199254740993\n", "csv", priority_type="float")
    assert isinstance(bad, BadEntry)
    assert read(b"value,priority\nx,\ny, b \n", "csv", priority_type="str") == [
        Entry(line=2, value=b"x", priority=""),
        Entry(line=3, value=b"y", priority=" b "),
    ]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b"", "nothing"),
        (b"a,b\n", "“a”"),
        (b"value;priority\n", "“value;priority”"),
        (b"value,value\n", "twice"),
        (b"priority\n", "no column value"),
        (b'"value\n', "no CSV header"),
    ],
)
def test_a_csv_file_without_a_header_is_refused(header: bytes, words: str) -> None:
    with pytest.raises(BadFormat, match=words):
        read(header, "csv")


def test_csv_skipping_counts_lines_and_refuses_the_middle_of_a_record() -> None:
    data = b'value,priority\n"two\nlines",1\nx,2\n'
    assert read(data, "csv", skip=3) == [Entry(line=4, value=b"x", priority=2)]
    with pytest.raises(BadFormat, match="Line 2 is inside a record"):
        read(data, "csv", skip=2)


def test_csv_files_without_quotes_are_read_as_before() -> None:
    (entry,) = read(b"priority,value,value_base64\r\n-5,x,\r\n", "csv")
    assert isinstance(entry, Entry)
    assert (entry.value, entry.priority) == (b"x", -5)


@pytest.mark.parametrize(
    ("priority_type", "cells", "words"),
    [
        ("int", ",NQ==", "only for text priorities"),
        (None, ",NQ==", "FIFO"),
        ("str", "a,YQ==", "are given together"),
        ("str", ",YQ", "not base64"),
        ("str", ",/w==", "not UTF-8"),
    ],
)
def test_a_bad_priority_in_base64_says_why(priority_type: PriorityType | None, cells: str, words: str) -> None:
    (bad,) = read(f"value,priority,priority_base64\nx,{cells}\n".encode(), "csv", priority_type=priority_type)
    assert isinstance(bad, BadEntry)
    assert words in bad.reason


def test_a_priority_in_base64_in_either_format() -> None:
    expected = [Entry(line=1, value=b"x", priority="=1")]
    assert read(b'{"value": "x", "priority_base64": "PTE="}', priority_type="str") == expected
    assert "text" in reason('{"value": "x", "priority_base64": 5}', priority_type="str")
    assert "together" in reason('{"value": "x", "priority": "a", "priority_base64": "YQ=="}', priority_type="str")
    assert read(b"value,priority_base64\nx,\n", "csv", priority_type="str") == [Entry(line=2, value=b"x", priority="")]


# Which format


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.ndjson", "ndjson"), ("a.JSONL", "ndjson"), ("a.csv", "csv"), ("a.txt", None), ("-", None)],
)
def test_the_format_by_name(name: str, expected: Format | None) -> None:
    assert formats.format_of_name(name) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b'\n {"value"', "ndjson"), (b"", "ndjson"), (b"value,priority\n", "csv"), (b'\xef\xbb\xbf{"v', "ndjson")],
)
def test_the_first_byte_tells_the_format(data: bytes, expected: Format) -> None:
    stream = buffered(data)
    assert formats.sniff(stream) == expected
    assert stream.read() == data


@pytest.mark.parametrize("data", [b"[1]", b"\xff\xfe{\x00", b"\xfe\xff\x00{"])
def test_files_of_no_known_format_are_refused(data: bytes) -> None:
    with pytest.raises(BadFormat):
        formats.sniff(buffered(data))


# Many lines


class Generated(io.RawIOBase):
    """A file that is made while it is read: `count` times the same text."""

    def __init__(self, line: bytes, count: int) -> None:
        self._block = line * (200_000 // len(line))
        self._left = len(line) * count
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._block[self._at : self._at + min(len(buffer), self._left)]
        self._at = (self._at + len(part)) % len(self._block)
        self._left -= len(part)
        buffer[: len(part)] = part
        return len(part)


def test_memory_stays_flat_over_a_large_file() -> None:
    pushed = 0

    def push(entries: list[Entry], last_line: int) -> None:
        nonlocal pushed
        pushed += len(entries)

    line = b'{"value": "' + b"x" * 2_000 + b'", "priority": 5}\n'
    importer = Importer(push, on_commit=lambda report: None, on_bad=lambda entry: None)
    stream = io.BufferedReader(Generated(line, 40_000))
    tracemalloc.start()
    try:
        report = importer.run(formats.read(stream, "ndjson", priority_type="int"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (report.items, report.last_line, pushed) == (40_000, 40_000, 40_000)
    assert peak < 6_000_000


def test_a_value_of_json_is_kept_as_it_is_written_however_its_name_is() -> None:
    line = b'{"val\\u0075e_json": 1.50e+1, "priority": 1}\n'
    (entry,) = formats.read(io.BytesIO(line), "ndjson", priority_type="int")
    assert isinstance(entry, Entry)
    assert entry.value == b"1.50e+1"
