"""Where stores are opened, and what is in the way."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from queues.kv import back_up_kv, open_kv, restore_kv
from queues.kv.embedded import EmbeddedStore, file_system
from queues.kv.errors import BadStoreURL, StoreClosed, StoreError, StoreReadOnly, StoreUnavailable
from queues.kv.port import KeyValueStore
from tests.programs import run_to_end


def put(kv: KeyValueStore, key: bytes, value: bytes = b"value") -> None:
    kv.transact(lambda tr: tr.set(key, value))


def get(kv: KeyValueStore, key: bytes) -> bytes | None:
    return kv.read(lambda tr: tr.get(key).wait())


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "lmdb:PATH"),
        ("nothing", "lmdb:PATH"),
        ("lmdb:", "path of a folder"),
        ("lmdb:a\0b", "lmdb:PATH"),
        ("redis:x", "no engine 'redis'"),
        ("redis:x", "https://HOST"),
        ("nothing", "https://HOST"),
        ("fdb:a\0b", "fdb:CLUSTER_FILE"),
        ("lmdb:~/store", r"\$HOME"),
        ("fdb:~ann/fdb.cluster", r"\$HOME"),
    ],
)
def test_a_bad_url_says_what_to_write(url: str, says: str) -> None:
    with pytest.raises(BadStoreURL, match=says):
        open_kv(url)


def test_a_path_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path, store = os.fsdecode(os.fsencode(tmp_path) + b"/x\xff"), f"lmdb:{tmp_path / 'store'}"
    open_kv(store).close()
    with pytest.raises(BadStoreURL, match="is not UTF-8"):
        open_kv(f"lmdb:{path}")
    with pytest.raises(BadStoreURL, match="is not UTF-8"):
        back_up_kv(store, path, lambda kv: None)
    assert [found.name for found in tmp_path.iterdir()] == ["store"]
    (tmp_path / "store").rename(path)
    with pytest.raises(BadStoreURL, match="is not UTF-8"):
        restore_kv(path, store, lambda kv: None)
    assert [str(found) for found in tmp_path.iterdir()] == [path]


def test_memory_is_private_and_a_named_one_is_shared() -> None:
    private, other = open_kv("memory:"), open_kv("memory:")
    put(private, b"key")
    assert get(other, b"key") is None
    one, two = open_kv("memory:shared"), open_kv("memory:shared")
    put(one, b"key")
    one.close()
    assert get(two, b"key") == b"value"
    two.close()
    again = open_kv("memory:shared")
    assert get(again, b"key") is None
    for kv in (private, other, again):
        kv.close()


#: The number of the system call statx.
STATX = {"x86_64": 332, "aarch64": 291}


@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine not in STATX, reason="for Linux on two machines")
def test_a_store_works_where_a_container_does_not_know_all_system_calls(tmp_path: Path) -> None:
    """Filters of older container engines refuse statx with EPERM."""
    program = f"""
import ctypes, errno, os, struct
load, jump_equal, answer = 0x20, 0x15, 0x06
refuse, allow = 0x50000 | errno.EPERM, 0x7fff0000
is_statx = (jump_equal, 0, 1, {STATX.get(os.uname().machine)})
steps = [(load, 0, 0, 0), is_statx, (answer, 0, 0, refuse), (answer, 0, 0, allow)]
content = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
prctl = ctypes.CDLL(None).prctl
no_new_privileges, seccomp, filter = 38, 22, 2
if prctl(no_new_privileges, 1, 0, 0, 0):
    raise SystemExit(3)
if prctl(seccomp, filter, ctypes.c_char_p(struct.pack("HP", len(steps), ctypes.addressof(content)))):
    raise SystemExit(3)
from queues.kv import open_kv
kv = open_kv("lmdb:{tmp_path}/store")
kv.transact(lambda tr: tr.set(b"key", b"value"))
print(kv.read(lambda tr: tr.get(b"key").wait()))
kv.close()
"""
    ended = run_to_end([sys.executable, "-c", program])
    if ended.returncode == 3:
        pytest.skip("filters of system calls are not permitted here")
    assert (ended.stdout, ended.stderr) == ("b'value'\n", "")


def test_what_was_written_is_there_after_reopening(tmp_path: Path) -> None:
    for n in range(3):
        kv = open_kv(f"lmdb:{tmp_path}/deep/folder")
        assert get(kv, b"key") == (b"%d" % (n - 1) if n else None)
        put(kv, b"key", b"%d" % n)
        kv.close()


def test_one_path_opened_twice_is_one_store_until_the_last_close(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "store")
    one, two = open_kv(f"lmdb:{tmp_path}/store"), open_kv(f"lmdb:{tmp_path}/link")
    put(one, b"key")
    one.close()
    with pytest.raises(StoreClosed):
        get(one, b"key")
    assert get(two, b"key") == b"value"
    put(two, b"other")
    two.close()
    with pytest.raises(StoreClosed):
        get(two, b"key")


def test_a_relative_path_follows_no_later_change_of_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kv = open_kv("lmdb:store")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    put(kv, b"key")
    kv.close()
    assert (tmp_path / "store" / "data.mdb").exists()


def test_the_map_is_large_and_the_file_small(tmp_path: Path) -> None:
    kv = open_kv(f"lmdb:{tmp_path}/store")
    put(kv, b"key")
    used, allowed = kv.size()
    assert 0 < used < 100_000
    assert allowed == 64 << 30
    assert (tmp_path / "store" / "data.mdb").stat().st_size < 1_000_000
    kv.close()


def test_the_limit_comes_from_the_caller_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PQ_STORE_MAX_BYTES", "5000000")
    kv = open_kv(f"lmdb:{tmp_path}/store")
    assert kv.size()[1] == 5_000_000
    again = open_kv(f"lmdb:{tmp_path}/store", max_bytes=7_000_000)
    assert kv.size()[1] == again.size()[1] == 7_000_000
    kv.close()
    again.close()
    for bad in ("much", "-1", "0", "1e9", "9" * 30):
        monkeypatch.setenv("PQ_STORE_MAX_BYTES", bad)
        with pytest.raises(BadStoreURL, match="PQ_STORE_MAX_BYTES"):
            open_kv(f"lmdb:{tmp_path}/store")


def refusal(path: Path) -> StoreError:
    with pytest.raises(StoreError) as raised:
        open_kv(f"lmdb:{path}")
    assert str(path) in str(raised.value)
    return raised.value


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "file" / "below" / "deeper"):
        error = refusal(path)
        assert isinstance(error, StoreReadOnly)
        assert f"{tmp_path / 'file'} is a file, not a folder" in str(error)


@contextmanager
def without_privileges(folder: Path) -> Iterator[None]:
    """Become a user without root's rights; the folder can be reached by them."""
    if os.geteuid() != 0:
        yield
        return
    for above in (folder, *folder.parents[:-1]):
        above.chmod(above.stat().st_mode | 0o011)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("name", ["data.mdb", "lock.mdb", "turns"])
def test_a_file_that_this_user_may_not_write_is_named(tmp_path: Path, name: str) -> None:
    kv = open_kv(f"lmdb:{tmp_path}/store")
    put(kv, b"key")
    kv.close()
    (tmp_path / "store").chmod(0o777)
    for file in (tmp_path / "store").iterdir():
        file.chmod(0o666)
    (tmp_path / "store" / name).chmod(0o444)
    with without_privileges(tmp_path / "store"):
        error = refusal(tmp_path / "store")
    assert isinstance(error, StoreReadOnly)
    assert f"write access to the file {tmp_path / 'store' / name}, which belongs to " in str(error)
    (tmp_path / "store" / name).chmod(0o666)
    with without_privileges(tmp_path / "store"):
        again = open_kv(f"lmdb:{tmp_path}/store")
        assert get(again, b"key") == b"value"
        again.close()


def test_a_folder_that_this_user_may_not_write_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o555)
    folder.chmod(0o555)
    with without_privileges(folder):
        for path in (folder, folder / "store", folder / "deep" / "store"):
            error = refusal(path)
            assert isinstance(error, StoreReadOnly)
            assert f"write access to the folder {folder}, which belongs to " in str(error)
    folder.chmod(0o755)


def test_a_process_with_the_same_number_in_another_container_is_named(tmp_path: Path) -> None:
    """LMDB knows living readers by locks at their numbers: here another process holds the one of this process."""
    store = tmp_path / "store"
    open_kv(f"lmdb:{store}").close()
    program = f"""
import fcntl, sys
with open("{store}/lock.mdb", "r+b") as file:
    fcntl.lockf(file, fcntl.LOCK_EX, 1, {os.getpid()})
    print(flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert f"Another process with the number of this one, {os.getpid()}, uses the store" in str(refusal(store))
        other.communicate()
    open_kv(f"lmdb:{store}").close()


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only, for root too."""
    for command in (["mount", "--bind", folder, folder], ["mount", "-o", "remount,ro,bind", folder]):
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("mounting a folder read-only needs root")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.parametrize("existing", [False, True])
def test_a_read_only_folder(tmp_path: Path, existing: bool) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    if existing:
        kv = open_kv(f"lmdb:{folder}")
        put(kv, b"key")
        kv.close()
    with read_only(folder):
        error = refusal(folder) if existing else refusal(folder / "store")
    assert isinstance(error, StoreReadOnly)
    assert f"Mount the file system of {folder}" in str(error)


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"something else entirely" * 1_000)
    error = refusal(tmp_path)
    assert isinstance(error, StoreUnavailable)
    assert "backup" in str(error)
    assert (tmp_path / "data.mdb").read_bytes().startswith(b"something else")


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_folder_on_a_network_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    device = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "21 1 0:999 / /else rw shared:1 - ext4 /dev/else rw\n"
        f"22 1 {os.major(device)}:{os.minor(device)} / /far\\040away rw,noatime - {kind} server:/far rw,vers=4.2\n"
    )
    monkeypatch.setattr(file_system, "MOUNTS", mounts)
    error = refusal(tmp_path / "store")
    assert isinstance(error, StoreUnavailable)
    assert f"network file system ({kind})" in str(error)
    assert list((tmp_path / "store").iterdir()) == []


def test_the_file_goes_away_and_comes_back(tmp_path: Path) -> None:
    kv = open_kv(f"lmdb:{tmp_path}/store")
    put(kv, b"key")
    data, aside = tmp_path / "store" / "data.mdb", tmp_path / "aside"
    data.rename(aside)
    with pytest.raises(StoreUnavailable, match="is gone"):
        put(kv, b"lost")
    aside.rename(data)
    put(kv, b"other")
    assert (get(kv, b"key"), get(kv, b"lost"), get(kv, b"other")) == (b"value", None, b"value")
    kv.close()


@pytest.mark.parametrize("first", [put, get])
def test_another_file_in_its_place_is_followed(tmp_path: Path, first: object) -> None:
    new = open_kv(f"lmdb:{tmp_path}/new")
    put(new, b"restored")
    new.close()
    kv = open_kv(f"lmdb:{tmp_path}/store")
    put(kv, b"old")
    (tmp_path / "new" / "data.mdb").rename(tmp_path / "store" / "data.mdb")
    assert isinstance(kv, EmbeddedStore)
    first(kv, b"restored")
    assert (get(kv, b"restored"), get(kv, b"old")) == (b"value", None)
    kv.close()


def test_an_interpreter_ends_with_a_store_open(tmp_path: Path) -> None:
    program = (
        "import logging; logging.disable(); from queues.kv import open_kv; "
        f"kv = open_kv('lmdb:{tmp_path}/store'); kv.transact(lambda tr: tr.set(b'a', b'1'))"
    )
    ended = run_to_end(
        [sys.executable, "-W", "error", "-W", "ignore::ImportWarning", "-c", program],
        cwd=Path(__file__).parents[3],
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    kv = open_kv(f"lmdb:{tmp_path}/store")
    assert get(kv, b"a") == b"1"
    kv.close()
