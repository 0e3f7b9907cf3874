"""Checkpoints and the write-ahead log, step by step; test_power_cut.py cuts the power of whole programs."""

import ast
import errno
import fcntl
import hashlib
import os
import shutil
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from queues.kv import open_kv, verify_store
from queues.kv.embedded import checkpoints, environment, write_ahead_log
from queues.kv.embedded.write_ahead_log import WriteAheadLog
from queues.kv.errors import OutcomeUnknown, StoreFull, StoreUnavailable
from queues.kv.port import KeyValueStore
from tests import descriptors
from tests.programs import run_to_end
from tests.waiting import LONG, await_true

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a closed store with one key."""
    path = tmp_path / "store"
    with closing(open_kv(f"lmdb:{path}")) as kv:
        put(kv, b"key", b"1")
    return path


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the files that were flushed."""
    names: list[str] = []
    flush = os.fdatasync

    def noted(descriptor: int) -> None:
        flush(descriptor)
        names.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    monkeypatch.setattr(os, "fdatasync", noted)
    return names


def put(kv: KeyValueStore, key: bytes, value: bytes) -> None:
    kv.transact(lambda tr: tr.set(key, value))


def get(kv: KeyValueStore, key: bytes) -> bytes | None:
    return kv.read(lambda tr: tr.get(key).wait())


def lose(folder: Path, *steps: str, metas: bool = False) -> None:
    """Have a process commit each of some steps and be killed; the data file loses them all, the log none.

    With `metas` only LMDB's two meta pages are left of them, which lead nowhere then.
    """
    data = folder / "data.mdb"
    before = data.read_bytes()
    program = f"""
import os
from queues.kv import open_kv
kv = open_kv("lmdb:{folder}")
for step in {steps!r}:
    kv.transact(lambda tr: eval(step, {{"tr": tr}}))
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
    if metas:
        after = data.read_bytes()
        before = after[:8_192] + before[8_192:].ljust(len(after) - 8_192, b"\0")
    data.write_bytes(before)


def test_what_the_data_file_has_lost_is_executed_again(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    many = "[tr.set(b'many%d' % n, bytes(100)) for n in range(1_000)]"
    lose(folder, "tr.set(b'new', b'2')", "tr.set(b'empty', b'')", "tr.clear(b'key')", many, "tr.add(b'count', 3)")
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert [get(kv, key) for key in (b"new", b"empty", b"key", b"many999")] == [b"2", b"", None, bytes(100)]
        assert get(kv, b"count") == (3).to_bytes(8, "little")
        assert "5 transactions" in caplog.text
        put(kv, b"new", b"3")
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"new") == b"3"


MANY = [f"[tr.set(b'new%d' % n, bytes(300)) for n in range({n}, {n + 20})]" for n in range(0, 600, 20)]


def test_a_store_is_verified_once_it_was_recovered(folder: Path) -> None:
    lose(folder, *MANY, metas=True)
    verify_store(f"lmdb:{folder}")
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"new599") == bytes(300)


def test_no_other_process_recovers_a_store_while_it_is_verified(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = subprocess.run

    def used_meanwhile(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(subprocess, "run", run)
        lose(folder, *MANY[:2])
        descriptor = os.open(folder / write_ahead_log.NAME, os.O_RDWR)
        with pytest.raises(BlockingIOError), os.fdopen(descriptor) as log:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return run(*arguments, **named)

    monkeypatch.setattr(subprocess, "run", used_meanwhile)
    verify_store(f"lmdb:{folder}")


@pytest.mark.parametrize("hindrance", ["no right to write", "a failed disk"])
def test_a_store_that_cannot_be_recovered_here_is_not_called_damaged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, hindrance: str
) -> None:
    using = open_kv(f"lmdb:{folder}") if hindrance == "a failed disk" else None
    lose(folder, *MANY, metas=True)
    if using is not None:
        with failing_flushes(monkeypatch), pytest.raises(StoreUnavailable):
            put(using, b"key", b"2")
    else:
        opened = os.open

        def refuse(path: Any, flags: int, *rest: Any, **named: Any) -> int:
            if flags & os.O_RDWR and str(path).startswith(str(folder)):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return opened(path, flags, *rest, **named)

        monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreUnavailable, match="could not be read whole") as raised:
        verify_store(f"lmdb:{folder}")
    assert type(raised.value) is StoreUnavailable
    assert "its log holds transactions" in caplog.text
    if using is not None:
        using.close()


@pytest.mark.parametrize("seed", range(4))
def test_what_every_operation_wrote_is_executed_again(folder: Path, seed: int) -> None:
    data = folder / "data.mdb"
    before = data.read_bytes()
    program = [sys.executable, "-m", "tests.queues.kv.programs", "write_at_random", f"lmdb:{folder}", str(seed)]
    said = subprocess.run(program, check=True, cwd=ROOT, capture_output=True, text=True).stdout
    data.write_bytes(before)
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        pairs = kv.read(lambda tr: tr.get_range(b"", b"\xff", limit=10_000).wait())
        assert [(bytes(key), bytes(value)) for key, value in pairs] == ast.literal_eval(said)
        assert len(pairs) > 100


def test_a_recovery_that_is_cut_off_begins_anew(folder: Path) -> None:
    before = (folder / "data.mdb").read_bytes()
    lose(folder, "tr.set(b'key', b'2')")
    log = (folder / "log").read_bytes()
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"key") == b"2"
    (folder / "log").write_bytes(log)  # the pages of the recovery are on the disk, its checkpoint is not
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"key") == b"2"
    (folder / "log").write_bytes(log)
    (folder / "data.mdb").write_bytes(before)
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"key") == b"2"


def test_a_record_that_is_not_whole_ends_the_log(folder: Path) -> None:
    lose(folder, *(f"tr.set(b'key', b'value {n}')" for n in (2, 3, 4)))
    log = folder / "log"
    content = bytearray(log.read_bytes())
    content[content.index(b"value 3")] ^= 1
    log.write_bytes(content)
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"key") == b"value 2"


def test_a_closed_store_is_whole_in_its_one_file_and_an_older_copy_may_be_put_back(folder: Path) -> None:
    data = folder / "data.mdb"
    copy = shutil.copy(data, folder.with_name("copy"))
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        kv.transact(lambda tr: tr.clear(b"key"))
    shutil.copyfile(copy, data)  # into the same file
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"key") == b"1"
        put(kv, b"key", b"2")
    (folder / "log").unlink()
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"key") == b"2"


def test_a_log_with_transactions_of_another_data_file_is_refused(folder: Path, tmp_path: Path) -> None:
    with closing(open_kv(f"lmdb:{tmp_path}/other")) as kv:
        for n in range(5):
            put(kv, b"other", b"%d" % n)
    lose(folder, "tr.set(b'key', b'2')")
    own = (folder / "data.mdb").read_bytes()
    other = (tmp_path / "other" / "data.mdb").read_bytes()
    (folder / "data.mdb").write_bytes(other)
    with pytest.raises(StoreUnavailable, match=r"another file data.mdb .* Nothing was changed"):
        open_kv(f"lmdb:{folder}")
    assert (folder / "data.mdb").read_bytes() == other
    (folder / "data.mdb").write_bytes(own)
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"key") == b"2"


def test_a_data_file_that_is_gone_is_not_made_anew_while_the_log_has_transactions(folder: Path) -> None:
    lose(folder, "tr.set(b'key', b'2')")
    aside = (folder / "data.mdb").rename(folder / "aside")
    with pytest.raises(StoreUnavailable, match="another file"):
        open_kv(f"lmdb:{folder}")
    assert not (folder / "data.mdb").exists()
    aside.rename(folder / "data.mdb")
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"key") == b"2"


def test_a_folder_that_is_put_in_the_place_of_the_open_one_has_a_log_of_its_own(folder: Path) -> None:
    copy = folder.with_name("copy")
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        copy.mkdir()
        kv.copy_into(str(copy))
        folder.rename(folder.with_name("old"))
        copy.rename(folder)
        put(kv, b"key", b"2")
        before = (folder / "data.mdb").read_bytes()
        assert get(kv, b"key") == b"2"
    assert (folder / "log").exists()
    (folder / "data.mdb").write_bytes(before)
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"key") == b"2"


def test_a_commit_takes_one_flush(folder: Path, flushed: list[str]) -> None:
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        put(kv, b"key", b"2")
        flushed.clear()
        for n in range(10):
            put(kv, b"key", b"%d" % n)
        assert flushed.count("log") == 10


def test_after_a_rest_the_data_file_is_whole_by_itself(
    folder: Path, monkeypatch: pytest.MonkeyPatch, flushed: list[str]
) -> None:
    monkeypatch.setattr(checkpoints, "REST", 0.05)
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        put(kv, b"key", b"2")
        await_true(lambda: "data.mdb" in flushed)
        flushed.clear()
        put(kv, b"key", b"3")
        await_true(lambda: "data.mdb" in flushed)
        put(kv, b"key", b"4")
        assert get(kv, b"key") == b"4"


def test_checkpoints_are_made_where_no_descriptor_is_left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "COMMITS", 3)
    with closing(open_kv(f"lmdb:{folder}")) as kv, descriptors.none_left():
        for n in range(20):
            put(kv, b"key", b"%d" % n)
        kv.transact(lambda tr: [tr.set(b"large%d" % n, bytes(90_000)) for n in range(8)])  # flushed with a checkpoint
        put(kv, b"key", b"last")
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert (get(kv, b"key"), get(kv, b"large7")) == (b"last", bytes(90_000))


def test_without_a_thread_the_store_works(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name == "pq-checkpoints":
            raise RuntimeError("can't start new thread")
        started(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(checkpoints, "COMMITS", 3)
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        for n in range(10):
            put(kv, b"key", b"%d" % n)
        assert get(kv, b"key") == b"9"


def test_an_interrupt_while_the_thread_starts_leaves_none_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started, threads = threading.Thread.start, list[threading.Thread]()

    def start(thread: threading.Thread) -> None:
        started(thread)
        if thread.name == "pq-checkpoints":
            threads.append(thread)
            if len(threads) == 1:
                raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(checkpoints, "COMMITS", 3)
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        with pytest.raises(KeyboardInterrupt):
            put(kv, b"key", b"1")
        for n in range(10):
            put(kv, b"key", b"%d" % n)
        assert get(kv, b"key") == b"9"
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()
    assert len(threads) == 2


def test_what_cannot_be_executed_again_is_said_and_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lose(folder, "[tr.set(b'large%d' % n, bytes(90_000)) for n in range(4)]")
    with monkeypatch.context() as small:
        small.setattr(environment, "MAP_BYTES", 0)
        small.setattr(environment, "MAP_RESERVE", 0)
        with pytest.raises(StoreUnavailable, match="keep both files") as kept:
            open_kv(f"lmdb:{folder}", max_bytes=200_000)
    assert kept.value.__cause__ is not None
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        put(kv, b"key", b"2")
        assert get(kv, b"large3") == bytes(90_000)


def test_a_store_that_another_process_recovers_is_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_ahead_log, "PATIENCE", 0.0)
    other = os.open(folder, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(StoreUnavailable, match="is being recovered by another process"):
        open_kv(f"lmdb:{folder}")
    os.close(other)
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"key") == b"1"


@pytest.mark.parametrize("done", [False, True])
def test_an_error_of_no_kind_that_is_known_tells_no_lie(
    folder: Path, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        environment = kv.engine.environment
        commit = environment.commit

        def broken(*arguments: Any) -> None:
            if done:
                commit(*arguments)
            raise MemoryError("none left")

        with monkeypatch.context() as patched:
            patched.setattr(environment, "commit", broken)
            with nullcontext() if done else pytest.raises(StoreUnavailable, match="none left"):
                put(kv, b"key", b"2")
        assert get(kv, b"key") == (b"2" if done else b"1")
        put(kv, b"key", b"3")
        assert get(kv, b"key") == b"3"


def test_a_transaction_whose_flush_failed_is_executed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its record may be on the disk all the same; it must not be executed at the next start besides."""
    program = f"""
import errno, os
from queues.kv import open_kv
kv = open_kv("lmdb:{folder}")
kv.transact(lambda tr: tr.add(b"count", 1))
flush, left = os.fdatasync, [1]
def failing(descriptor):
    if left:
        left.pop()
        raise OSError(errno.EIO, "it fails once")
    flush(descriptor)
os.fdatasync = failing
kv.transact(lambda tr: tr.add(b"count", 1))
assert not left
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"count") == (2).to_bytes(8, "little")


def test_a_disk_that_fails_is_written_no_more_until_the_store_is_opened_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"""
import sys
from queues.kv import open_kv
from queues.kv.errors import StoreUnavailable
kv = open_kv("lmdb:{folder}")
print("ready", flush=True)
sys.stdin.readline()
try:
    kv.transact(lambda tr: tr.set(b"key", b"3"))
except StoreUnavailable as error:
    print(error, flush=True)
"""
    other = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with closing(open_kv(f"lmdb:{folder}")) as kv, other:
        assert other.stdout.readline() == "ready\n"
        put(kv, b"key", b"1")
        with failing_flushes(monkeypatch), pytest.raises(OutcomeUnknown, match="Look before you try again"):
            put(kv, b"key", b"2")
        with pytest.raises(StoreUnavailable, match="The disk of the store"):
            put(kv, b"key", b"3")
        other.stdin.write("\n")
        other.stdin.flush()
        assert "The disk of the store" in other.stdout.readline()
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"key") in {b"1", b"2"}
        put(kv, b"key", b"4")


def test_a_checkpoint_that_fails_on_its_way_leaves_no_commit_out_of_the_log(folder: Path) -> None:
    """The header of the next one may be on the disk when the rest of it fails."""
    program = f"""
import errno, os, shutil, time
from queues.kv import open_kv, verify_store
from queues.kv.embedded import checkpoints
checkpoints.REST = 0.05
kv = open_kv("lmdb:{folder}")
kv.transact(lambda tr: tr.set(b"key", b"2"))
flush, failed = os.fdatasync, []
def failing(descriptor):
    flush(descriptor)
    if os.readlink(f"/proc/self/fd/{{descriptor}}").endswith("/log"):
        failed.append(1)
        if len(failed) == 2:
            os.fdatasync = flush
            raise OSError(errno.EIO, "it fails once")
os.fdatasync = failing
while len(failed) < 2:
    time.sleep(0.01)
shutil.copyfile("{folder}/data.mdb", "{folder}/flushed")
kv.transact(lambda tr: tr.set(b"key", b"3"))
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
    shutil.copyfile(folder / "flushed", folder / "data.mdb")
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"key") == b"3"


def test_the_shared_state_is_not_made_anew_while_a_process_uses_the_store(folder: Path) -> None:
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        put(kv, b"key", b"2")
        (folder / "log-state").unlink()
        ended = run_to_end(
            [sys.executable, "-c", f"from queues.kv import open_kv; open_kv('lmdb:{folder}')"],
            cwd=ROOT,
        )
        assert "was removed while other programs use it" in ended.stderr
        put(kv, b"key", b"3")
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"key") == b"3"


def test_a_new_store_is_on_the_disk_once_it_is_open(tmp_path: Path, flushed: list[str]) -> None:
    with closing(open_kv(f"lmdb:{tmp_path}/store")):
        assert "data.mdb" in flushed


def test_a_log_that_was_cut_off_while_open_holds_up_no_process(folder: Path) -> None:
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        put(kv, b"key", b"2")
        os.truncate(folder / "log", 100)
        program = f"from queues.kv import open_kv; open_kv('lmdb:{folder}').transact(lambda tr: tr.set(b'key', b'3'))"
        subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, timeout=LONG)
        assert get(kv, b"key") == b"3"


def test_a_process_that_reads_an_old_commit_is_told_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(environment, "_OLD", 5)
    monkeypatch.setattr(environment, "_SWEEP_EVERY", 0.0)
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        old = kv.engine.environment.begin_read()
        for n in range(10):
            put(kv, b"key", b"%d" % n)
        kv.engine.environment.end_read(old)
    assert f"process {os.getpid()} reads an old commit" in caplog.text


def test_records_go_round_the_ring(tmp_path: Path) -> None:
    with closing(WriteAheadLog(tmp_path)) as log:
        checkpoint = write_ahead_log.Checkpoint(1, 0, 0, b"l" * 16, 4096, b"r" * 16, bytes(512))
        state = log.state._replace(link=checkpoint.link)
        for lap in range(20):
            at = write_ahead_log.Checkpoint(1, 0, state.tail, state.link, 4096, b"r" * 16, bytes(512))
            sizes = [0, 1, 200_000, 33_333 * lap % 250_000]
            for size in sizes:
                state = log.append(state, state.txnid + 1, b"%d" % (lap % 10) * size)
            found = list(log.records(at))
            assert [len(record.pairs) for record in found] == sizes
            assert {record.pairs[:1] for record in found} == {b"", b"%d" % (lap % 10)}
        assert state.tail > 2 * write_ahead_log.RING_BYTES


def interrupt_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a signal handler raise in the next flush of a data file."""
    flush = os.fdatasync

    def interrupted(descriptor: int) -> None:
        flush(descriptor)
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == "data.mdb":
            monkeypatch.setattr(os, "fdatasync", flush)
            raise TimeoutError("job took too long")

    monkeypatch.setattr(os, "fdatasync", interrupted)


def test_an_interrupted_flush_is_no_failure_of_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        interrupt_flush(monkeypatch)
        with pytest.raises(TimeoutError, match="job took too long"):
            kv.transact(lambda tr: [tr.set(b"large%d" % n, bytes(90_000)) for n in range(6)])  # flushed with the file
        put(kv, b"key", b"2")
        assert (get(kv, b"key"), get(kv, b"large5")) == (b"2", bytes(90_000))


def test_an_interrupted_flush_before_a_commit_raises_what_the_handler_raised(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        write = f"open_kv('lmdb:{folder}').transact(lambda tr: tr.set(b'a', b'1'))"
        program = f"import os; from queues.kv import open_kv; {write}; os._exit(0)"
        subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
        interrupt_flush(monkeypatch)
        with pytest.raises(TimeoutError, match="job took too long"):
            put(kv, b"key", b"2")
        put(kv, b"key", b"3")
        assert (get(kv, b"key"), get(kv, b"a")) == (b"3", b"1")


def test_a_new_process_with_the_number_of_a_killed_one_does_not_keep_what_that_read(folder: Path) -> None:
    """As in a container that is started again."""
    program = f"""
import sys
from queues.kv import open_kv
kv = open_kv("lmdb:{folder}")
def read(tr):
    tr.get(b"key").wait()
    print("reads", flush=True)
    sys.stdin.read()
kv.read(read)
"""
    kept, killed = (
        subprocess.Popen(
            [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    )
    with kept, killed:
        for process in (kept, killed):
            assert process.stdout.readline() == "reads\n"
        killed.kill()
        killed.wait()
        with (folder / "lock.mdb").open("r+b") as file:
            slots, slot = file.read(), struct.Struct("=Qi")  # commit, process
            places = [at for at in range(128, len(slots), 64) if slot.unpack_from(slots, at)[1] == killed.pid]
            assert places
            for at in places:
                file.seek(at + 8)
                file.write(struct.pack("=i", os.getpid()))
        with closing(open_kv(f"lmdb:{folder}")) as kv:
            show = f"import lmdb; print(lmdb.open({str(folder)!r}, readonly=True, create=False).readers())"
            shown = subprocess.run([sys.executable, "-c", show], check=True, capture_output=True, text=True).stdout
            rows = [row for line in shown.splitlines()[1:] if (row := line.split())]
            assert not [row for row in rows if row[0] == str(os.getpid()) and row[2].isdigit()], shown
            assert any(row[0] == str(kept.pid) and row[2].isdigit() for row in rows)
            put(kv, b"key", b"2")
            assert get(kv, b"key") == b"2"
        kept.communicate()


@contextmanager
def failing_flushes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let flushes fail, as those of a broken disk do."""

    def failing(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", failing)
        yield


@pytest.mark.parametrize("refuses", ["open", "pwrite"])
def test_a_file_system_without_direct_writes_has_the_same_log(folder: Path, refuses: str) -> None:
    """Some refuse to open a file for them, some each write that is smaller than a sector of theirs."""
    before = (folder / "data.mdb").read_bytes()
    program = f"""
import errno, fcntl, os
from queues.kv import open_kv
real, refused = os.{refuses}, []
def refuse(file, *rest, **named):
    flags = rest[0] if "{refuses}" == "open" else fcntl.fcntl(file, fcntl.F_GETFL)
    if flags & os.O_DIRECT:
        refused.append(file)
        raise OSError(errno.EINVAL, "no direct writes")
    return real(file, *rest, **named)
os.{refuses} = refuse
kv = open_kv("lmdb:{folder}")
for n in range(3):
    kv.transact(lambda tr: tr.add(b"count", 1))
assert len(refused) == 1
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
    (folder / "data.mdb").write_bytes(before)
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"count") == (3).to_bytes(8, "little")


def test_a_log_that_cannot_be_opened_keeps_nothing_open(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return opening(path, flags, *rest, **named)

    opening, before = os.open, len(list(Path("/proc/self/fd").iterdir()))
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        with pytest.raises(StoreUnavailable, match=r"Too many open files.*ulimit -n"):
            open_kv(f"lmdb:{folder}")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    monkeypatch.setattr(write_ahead_log, "PATIENCE", 0.1)
    with closing(open_kv(f"lmdb:{folder}")) as kv:
        assert get(kv, b"key") == b"1"


def test_a_log_for_which_the_disk_has_no_room_takes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, log = os.pwrite, tmp_path / "store" / "log"
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", lambda file, content, at: write(file, content[:4_096], at))
        with pytest.raises(StoreFull):
            open_kv(f"lmdb:{tmp_path}/store")
    assert log.stat().st_size == 0
    with closing(open_kv(f"lmdb:{tmp_path}/store")) as kv:
        put(kv, b"key", b"1")


@pytest.mark.parametrize("used", [False, True], ids=["closed", "in use"])
def test_the_log_of_another_release_is_refused(folder: Path, *, used: bool) -> None:
    """That one, too, with which processes of that release work now: they write records of another form."""
    log = bytearray((folder / "log").read_bytes())
    for at in (0, 4_096):  # its two headers: 16 bytes of digest, and what it is of
        sizes = (n for n in range(8, 4_080) if _digest(log[at + 16 : at + 16 + n]) == log[at : at + 16])
        if size := next(sizes, 0):
            log[at + 16 : at + 24] = b"pqlog9\0\0"
            log[at : at + 16] = _digest(log[at + 16 : at + 16 + size])
    with closing(open_kv(f"lmdb:{folder}")) if used else nullcontext():
        (folder / "log").write_bytes(log)
        command = [sys.executable, "-c", f"from queues.kv import open_kv; open_kv('lmdb:{folder}')"]
        assert "another release" in run_to_end(command, cwd=ROOT).stderr
    assert (folder / "log").read_bytes() == log


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()
