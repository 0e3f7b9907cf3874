"""export_items: the file holds the queue's sequence, byte for byte, and importing it gives an equal one."""

import errno
import io
import os
import unicodedata
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pqadmin.commands.management.commands.export_items import replacing
from queues import Query, Queue, open_store
from tests.all_items import all_items
from tests.commands.conftest import Run, Shop

VALUES = st.binary(max_size=60) | st.text(max_size=30).map(str.encode) | st.sampled_from([b"", b'{"a": 1}', b"=1+1"])
PRIORITIES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-3, 3) | st.integers(-(2**2039), 2**2039),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "str": st.builds(
        "{}{}".format,
        st.sampled_from(["", "=", "+", "-", "@", "\t", "\r"]),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    ).map(lambda text: unicodedata.normalize("NFC", text)),
    "fifo": st.none(),
}


def sequence(queue: Queue) -> list[tuple[bytes, object]]:
    """Return the values and priorities of all ready items in order."""
    return [(item.value, item.priority) for item in all_items(queue.items)]


@pytest.mark.parametrize("file_format", ["ndjson", "csv"])
@pytest.mark.parametrize("priority_type", list(PRIORITIES))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_export_then_import_gives_an_equal_sequence(
    file_format: str, priority_type: str, tmp_path: Path, data: st.DataObject
) -> None:
    pairs = data.draw(st.lists(st.tuples(VALUES, PRIORITIES[priority_type]), max_size=12))
    url, file = f"memory:{uuid.uuid4().hex}", str(tmp_path / f"items.{file_format}")
    kind = ["--kind=fifo"] if priority_type == "fifo" else [f"--priority-type={priority_type}"]
    with open_store(url) as store:
        if priority_type == "fifo":
            queue = store.create_queue("from", kind="fifo")
            queue.enqueue_many([value for value, _ in pairs])
        else:
            queue = store.create_queue("from", priority_type=priority_type)
            queue.push_many(pairs)
        call_command("export_items", "from", file, "--quiet", "--store", url)
        call_command("import_items", "to", file, "--quiet", "--create", *kind, "--store", url, stdout=io.StringIO())
        assert sequence(store.queue("to")) == sequence(queue)


def test_more_than_a_page_on_each_engine(run: Run, shop: Shop, tmp_path: Path) -> None:
    queue = shop.store.create_queue("from")
    queue.push_many([(b"%d" % n, n % 7) for n in range(350)])
    answer = run("export_items", "from", str(tmp_path / "all.csv"))
    assert answer.err == "Exported 350 items of from.\n"
    run("import_items", "to", str(tmp_path / "all.csv"), "--create", "--chunk", "40")
    assert sequence(shop.store.queue("to")) == sequence(queue)
    assert queue.depth() == 350


def test_from_the_other_end_the_file_is_reversed(run: Run, shop: Shop, tmp_path: Path) -> None:
    shop.store.create_queue("from").push_many([(b"a", 1), (b"b", 2), (b"c", 3)])
    run("export_items", "from", str(tmp_path / "f"), "--end", "max", "--format", "ndjson")
    assert (tmp_path / "f").read_text() == (
        '{"value": "c", "priority": 3}\n{"value": "b", "priority": 2}\n{"value": "a", "priority": 1}\n'
    )


def test_items_are_exported_to_standard_output(run: Run, shop: Shop, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    shop.store.create_queue("from").push(b"\xff", priority=-1)
    run("export_items", "from", "--quiet")
    assert capfdbinary.readouterr().out == b'{"value_base64": "/w==", "priority": -1}\n'


def test_what_was_there_stays_until_the_export_is_complete(
    run: Run, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = shop.store.create_queue("from")
    queue.push_many([(b"x", n) for n in range(750)])
    file = tmp_path / "out.ndjson"
    file.write_text("before")
    real = Queue.search

    def gone(self: Queue, query: Query, **options: Any) -> Any:
        if options["after"] is not None:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, query, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Queue, "search", gone)
        answer = run("export_items", "from", str(file))
    assert (answer.code, answer.error) == (1, "No space left on device")
    assert file.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir() if path.suffix in (".part", ".ndjson")] == ["out.ndjson"]
    run("export_items", "from", str(file))
    assert len(file.read_text().splitlines()) == 750


def test_a_link_stays_a_link_and_a_device_is_written_directly(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("before")
    link.symlink_to(target)
    with replacing(link) as stream:
        stream.write(b"after")
    assert link.is_symlink()
    assert target.read_text() == "after"
    with replacing(Path(os.devnull)) as stream:
        stream.write(b"gone")
    assert not Path(os.devnull).is_file()


def test_a_folder_that_is_not_there_is_told_in_a_line(run: Run, shop: Shop, tmp_path: Path) -> None:
    shop.store.create_queue("from")
    answer = run("export_items", "from", str(tmp_path / "nowhere" / "f.csv"))
    assert (answer.code, answer.error) == (1, f"{tmp_path / 'nowhere'}: No such file or directory")
    (tmp_path / "file").write_bytes(b"")
    answer = run("export_items", "from", str(tmp_path / "file" / "f.csv"))
    assert (answer.code, answer.error) == (1, f"{tmp_path / 'file'}: Not a directory")


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_an_exports_file_is_its_owners_alone(umask: int, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_bytes(b"before")
    there.chmod(0o644)
    before = os.umask(umask)
    try:
        for path in (there, tmp_path / "new"):
            with replacing(path) as stream:
                stream.write(b"after")
            assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"after", 0o600)
    finally:
        os.umask(before)
