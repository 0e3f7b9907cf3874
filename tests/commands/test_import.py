"""import_items: what ends up in the queue, what is told about the rest, and where the next run goes on."""

import gzip
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pqadmin.commands.import_marks import MarkedPusher, last_mark
from pqadmin.commands.importer import Importer, ImportReport
from pqadmin.files.entries import Entry
from queues import PriorityQueue, Queue
from tests.all_items import all_items
from tests.commands.conftest import Run, Shop


def lines(first: int, last: int) -> bytes:
    """Return one line for each number: the number is value and priority."""
    return b"".join(b'{"value": "%d", "priority": %d}\n' % (n, n) for n in range(first, last + 1))


def values(queue: Queue) -> list[bytes]:
    """Return every ready value in order."""
    return [item.value for item in all_items(queue.items)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a test puts the file to import."""
    return tmp_path / "items.ndjson"


def test_everything_is_pushed_in_chunks_and_told(run: Run, jobs: Queue, file: Path) -> None:
    answer = run("import_items", "jobs", "-", "--chunk", "10", stdin=lines(1, 25))
    assert answer.code == 0
    assert values(jobs) == [b"%d" % n for n in range(1, 26)]
    assert answer.err.splitlines() == [
        "Committed to line 10 (10 items).",
        "Committed to line 20 (20 items).",
        "Committed to line 25 (25 items).",
    ]
    assert answer.out == "Imported 25 items into jobs. Last committed line: 25.\n"


def test_each_chunk_is_one_audited_act(run: Run, shop: Shop, jobs: Queue, file: Path) -> None:
    file.write_bytes(lines(1, 25))
    run("import_items", "jobs", str(file), "--chunk", "10")
    entries = shop.store.audit.entries(queue="jobs").entries
    assert [(entry.verb, entry.via, entry.count) for entry in entries] == [
        ("push", "cli", 5),
        ("push", "cli", 10),
        ("push", "cli", 10),
    ]


def test_a_chunk_holds_at_most_a_megabyte(run: Run, shop: Shop, jobs: Queue, file: Path) -> None:
    line = json.dumps({"value": "x" * 90_000, "priority": 1})
    file.write_text(f"{line}\n" * 30)
    assert run("import_items", "jobs", str(file)).code == 0
    assert [entry.count for entry in shop.store.audit.entries(queue="jobs").entries] == [8, 11, 11]


def test_equal_priorities_keep_the_order_of_the_file(run: Run, jobs: Queue, file: Path) -> None:
    file.write_bytes(b"".join(b'{"value": "%d", "priority": 5}\n' % n for n in range(50)))
    run("import_items", "jobs", str(file), "--chunk", "7")
    assert values(jobs) == [b"%d" % n for n in range(50)]


def test_bad_lines_are_numbered_left_out_and_counted(run: Run, jobs: Queue, file: Path) -> None:
    file.write_bytes(lines(1, 2) + b"nonsense\n\n" + lines(5, 6) + b'{"value": "x", "priority": true}\n')
    answer = run("import_items", "jobs", str(file), "--json")
    assert answer.code == 3
    assert answer.error == "2 bad lines were left out."
    assert answer.json == {"queue": "jobs", "items": 4, "bad": 2, "blank": 1, "last_line": 7}
    assert values(jobs) == [b"1", b"2", b"5", b"6"]
    again = run("import_items", "jobs", str(file))
    assert [line.split(":")[0] for line in again.err.splitlines()] == [
        "Line 3",
        "Line 7",
    ]


def test_with_json_every_line_is_json(run: Run, jobs: Queue, file: Path) -> None:
    """Standard output is one document; standard error has an object a line: what is bad, committed, resumed."""
    file.write_bytes(b"nonsense\n" * 21 + lines(1, 2) + b"nonsense\n" * 2)
    answer = run("import_items", "jobs", str(file), "--json", "--create")
    assert answer.json == {"queue": "jobs", "items": 2, "bad": 23, "blank": 0, "last_line": 25}
    told = [json.loads(line) for line in answer.err.splitlines()]
    bad = [shape["bad"] for shape in told if "bad" in shape]
    assert [(shape["first_line"], shape["last_line"]) for shape in bad] == [*((n, n) for n in range(1, 22)), (24, 25)]
    assert [shape["reason"] is None for shape in bad] == [False] * 20 + [True] * 2
    assert [shape["committed"] for shape in told if "committed" in shape] == [{"last_line": 25, "items": 2}]
    resumed = run("import_items", "jobs", str(file), "--json", "--resume")
    (mark,) = [json.loads(line) for line in resumed.err.splitlines()]
    assert set(mark["resumed"]) == {"last_line", "at", "by"}
    assert mark["resumed"]["last_line"] == 25
    assert run("import_items", "jobs", str(file), "--json", "--resume", "--quiet").err == ""


def test_of_many_bad_lines_the_first_tell_why_and_all_their_numbers(run: Run, jobs: Queue, file: Path) -> None:
    file.write_bytes(b"x\n" * 1_000 + lines(1, 1) + b"x\n" + lines(2, 2) + b"x\nx\n")
    answer = run("import_items", "jobs", str(file), "--quiet")
    assert answer.code == 3
    told = answer.err.splitlines()
    assert [line.split(":")[0] for line in told[:20]] == [f"Line {n}" for n in range(1, 21)]
    assert told[20:] == ["Also bad: lines 21-1000, 1002, 1004-1005."]
    assert answer.error == "1003 bad lines were left out."


def test_bad_lines_far_apart_are_told_in_lines_of_a_hundred_ranges(run: Run, jobs: Queue, file: Path) -> None:
    file.write_bytes((b"x\n" + lines(1, 1)) * 300)
    told = run("import_items", "jobs", str(file), "--quiet").err.splitlines()[20:]
    numbers = [line.removeprefix("Also bad: lines ").removesuffix(".").split(", ") for line in told]
    assert [len(part) for part in numbers] == [100, 100, 80]
    assert [int(number) for part in numbers for number in part] == list(range(41, 601, 2))


def test_further_bad_records_are_told_by_their_lines(run: Run, jobs: Queue) -> None:
    data = b"value,priority\n" + b"x,y\n" * 20
    answer = run("import_items", "jobs", "-", stdin=data + b'"two\nlines",x\n"two\nlines",x\n1,1\n')
    assert answer.err.splitlines()[-1] == "Also bad: lines 22-25."
    assert run("import_items", "jobs", "-", stdin=data + b"x,y\n").err.splitlines()[-1] == "Also bad: line 22."


def test_a_file_of_bad_lines_alone_fails(run: Run, jobs: Queue, file: Path) -> None:
    file.write_bytes(b"x\n")
    answer = run("import_items", "jobs", str(file))
    assert (answer.code, answer.error) == (1, "1 bad line was left out.")


@pytest.mark.parametrize("name", ["items.ndjson.gz", "items.csv", "items.ndjson"])
def test_what_is_packed_by_gzip_is_told_how_to_unpack(run: Run, jobs: Queue, tmp_path: Path, name: str) -> None:
    packed = tmp_path / name
    packed.write_bytes(gzip.compress(lines(1, 3)))
    answer = run("import_items", "jobs", str(packed))
    assert answer.code == 1
    assert answer.error == "The file is packed by gzip: unpack it first, as in zcat FILE | pqadmin import_items jobs -"
    assert run("import_items", "jobs", "-", stdin=packed.read_bytes()).error == answer.error
    assert jobs.depth() == 0


def test_how_to_go_on_is_said_only_when_something_was_committed(run: Run, jobs: Queue, file: Path) -> None:
    csv = file.with_suffix(".csv")
    csv.write_text("prio;value\n1;a\n")
    answer = run("import_items", "jobs", str(csv))
    assert (answer.code, "names its columns" in answer.error) == (1, True)
    assert "--skip" not in answer.error
    assert answer.error.endswith("Nothing was committed.")


def test_an_empty_file_is_no_error(run: Run, jobs: Queue, file: Path) -> None:
    file.write_bytes(b"")
    answer = run("import_items", "jobs", str(file))
    assert (answer.code, answer.out) == (0, "Imported 0 items into jobs. Last committed line: 0.\n")


def test_strict_stops_at_the_first_bad_line_and_says_how_to_go_on(run: Run, jobs: Queue, file: Path) -> None:
    file.write_bytes(lines(1, 3) + b"nonsense\n" + lines(5, 6))
    answer = run("import_items", "jobs", str(file), "--strict")
    assert answer.code == 1
    assert answer.error.startswith("Line 4: ")
    assert answer.error.endswith("Committed to line 3: continue with --skip 3.")
    assert values(jobs) == [b"1", b"2", b"3"]
    file.write_bytes(lines(1, 6))
    assert run("import_items", "jobs", str(file), "--strict", "--skip", "3").code == 0
    assert values(jobs) == [b"1", b"2", b"3", b"4", b"5", b"6"]


def test_resume_goes_on_from_the_audit(run: Run, jobs: Queue, file: Path) -> None:
    file.write_bytes(lines(1, 3) + b"nonsense\n" + lines(5, 6))
    run("import_items", "jobs", str(file), "--strict")
    file.write_bytes(lines(1, 6))
    answer = run("import_items", "jobs", str(file), "--resume")
    assert answer.err.startswith("Resuming after line 3 (committed ")
    assert values(jobs) == [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert run("import_items", "jobs", str(file), "--resume").code == 0
    assert jobs.depth() == 6


def test_resume_goes_on_from_what_was_pushed_last_whatever_the_clocks_say(shop: Shop, jobs: Queue) -> None:
    """An hour fast, then an hour slow, then imported anew by a right clock: each time the last commit counts."""

    def push(last_line: int, ahead: float) -> int | None:
        how = {"actor": "ada", "source": "/file", "clock": lambda: time.time() + ahead}
        MarkedPusher(shop.store, jobs, **how).push([Entry(line=last_line, value=b"x", priority=1)], last_line)
        mark = last_mark(shop.store, jobs, "/file")
        return None if mark is None else mark.last_line

    assert last_mark(shop.store, jobs, "/file") is None
    assert [push(500, 3600.0), push(1000, -3600.0), push(1500, 0.0), push(500, -3600.0)] == [500, 1000, 1500, 500]


def test_resume_knows_files_apart(run: Run, jobs: Queue, file: Path) -> None:
    file.write_bytes(lines(1, 3))
    other = file.with_name("other.ndjson")
    other.write_bytes(lines(4, 5))
    run("import_items", "jobs", str(file))
    run("import_items", "jobs", str(other), "--resume")
    assert jobs.depth() == 5


def test_what_the_store_refuses_is_told_with_the_last_committed_line(
    run: Run, jobs: Queue, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_bytes(lines(1, 30))
    real, calls = PriorityQueue.push_many, iter(range(100))

    def full(self: Queue, *arguments: object, **options: object) -> object:
        if next(calls) >= 2:
            from queues.errors import StoreFull

            raise StoreFull("The store is full.")
        return real(self, *arguments, **options)

    monkeypatch.setattr(PriorityQueue, "push_many", full)
    answer = run("import_items", "jobs", str(file), "--chunk", "10")
    assert answer.code == 1
    assert answer.error == "The store is full. Committed to line 20: continue with --skip 20."
    assert jobs.depth() == 20


def test_standard_input_of_either_format(run: Run, jobs: Queue) -> None:
    assert run("import_items", "jobs", "-", stdin=lines(1, 2)).code == 0
    assert run("import_items", "jobs", "-", stdin=b"value,priority\n3,3\n4,-4\n").code == 0
    assert values(jobs) == [b"4", b"1", b"2", b"3"]


def test_standard_input_cannot_be_resumed_by_the_audit(run: Run, jobs: Queue) -> None:
    answer = run("import_items", "jobs", "-", "--resume", stdin=lines(1, 2))
    assert answer.code == 1
    assert "--skip" in answer.error


def test_a_fifo_queue_keeps_the_order_of_the_file(run: Run, shop: Shop) -> None:
    mail = shop.store.create_queue("mail", kind="fifo")
    assert run("import_items", "mail", "-", stdin=b'{"value": "b"}\n{"value": "a"}\n').code == 0
    assert values(mail) == [b"b", b"a"]
    answer = run("import_items", "mail", "-", stdin=b'{"value": "b", "priority": 1}\n')
    assert answer.code == 1
    assert "FIFO" in answer.err


def test_priorities_come_exactly(run: Run, shop: Shop) -> None:
    big = 2**2039 + 1
    run("import_items", "big", "-", "--create", stdin=b'{"value": "x", "priority": %d}\n' % big)
    assert shop.store.queue("big").items().items[0].priority == big
    run("import_items", "scores", "-", "--create", "--priority-type=float", stdin=b'{"value":"x","priority":-0.0}\n')
    assert repr(shop.store.queue("scores").items().items[0].priority) == "0.0"
    run("import_items", "days", "-", "--create", "--priority-type=str", stdin=b'{"value":"x","priority":"e\\u0301"}\n')
    assert shop.store.queue("days").items().items[0].priority == "é"


def test_a_queue_is_created_only_when_asked(run: Run, shop: Shop) -> None:
    assert run("import_items", "nowhere", "-", stdin=lines(1, 1)).code == 1
    assert shop.store.queues() == []
    assert run("import_items", "mail", "-", "--create", "--kind=fifo", stdin=b'{"value":"a"}\n').code == 0
    assert shop.store.queue("mail").kind == "fifo"
    assert run("import_items", "mail", "-", "--create", "--kind=fifo", stdin=b'{"value":"a"}\n').code == 0
    assert shop.store.queue("mail").depth() == 2


def test_near_misses_of_a_name_are_told(run: Run, jobs: Queue) -> None:
    answer = run("import_items", "jbos", "-", stdin=lines(1, 1))
    assert "jobs" in answer.error


def test_a_missing_file_and_a_json_list_are_told_in_a_line(run: Run, jobs: Queue, file: Path) -> None:
    answer = run("import_items", "jobs", str(file))
    assert answer.code == 1
    assert answer.error == f"{file}: No such file or directory"
    file.with_suffix("").write_text('[{"value": "x"}]')
    assert "list" in run("import_items", "jobs", str(file.with_suffix(""))).error
    csv = file.with_suffix(".csv")
    csv.write_text("a,b\n1,2\n")
    assert "names its columns" in run("import_items", "jobs", str(csv)).error


def test_hostile_text_reaches_the_terminal_as_visible_characters(run: Run, jobs: Queue) -> None:
    answer = run("import_items", "jobs", "-", stdin='{"\x9b31m\u202e": 1}\n'.encode())
    assert "\x9b" not in answer.err + answer.error
    assert "\u202e" not in answer.err + answer.error


def test_a_stop_need_not_wait_for_the_reader_of_the_progress() -> None:
    held, told = [], []

    @contextmanager
    def hold() -> Iterator[None]:
        held.append(True)
        yield
        held.clear()

    def committed(report: ImportReport) -> None:
        told.append((report.last_line, bool(held)))

    importer = Importer(lambda entries, last: None, on_commit=committed, on_bad=lambda entry: None, hold=hold)
    importer.run([Entry(line=1, value=b"a", priority=1)])
    assert told == [(1, False)]


@pytest.mark.parametrize("name", ["items.ndjson", "items.csv"])
@pytest.mark.parametrize("how", [["--json"], []])
def test_a_skip_behind_the_end_of_the_file_is_told(
    run: Run, jobs: Queue, tmp_path: Path, name: str, how: list[str]
) -> None:
    file = tmp_path / name
    file.write_bytes(lines(1, 2) if name.endswith("ndjson") else b"priority,value\n1,a\n")
    refused = run("import_items", "jobs", str(file), "--skip", "1000", *how)
    assert (refused.code, refused.out) == (1, "")
    assert refused.error == "The file ends at line 2: line 1,000 is behind its end. Nothing was read."
    assert run("import_items", "jobs", str(file), "--skip", "2").code == 0
    assert jobs.depth() == 0


@pytest.mark.parametrize("how", [["--json"], ["--quiet"]])
def test_a_resumed_import_without_a_mark_says_that_it_begins_at_the_first_line(
    run: Run, jobs: Queue, file: Path, how: list[str]
) -> None:
    file.write_bytes(lines(1, 3))
    done = run("import_items", "jobs", str(file), "--resume", *how)
    if "--json" in how:
        assert json.loads(done.err.splitlines()[0]) == {"resumed": None}
    else:
        assert "no mark of an earlier import of this file: beginning at the first line." in done.err
    assert (done.code, jobs.depth()) == (0, 3)
