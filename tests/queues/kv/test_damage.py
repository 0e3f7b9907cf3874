"""Damaged files of embedded stores: a clear error when they are opened or read, and nothing is changed."""

import os
import sys
from pathlib import Path

import lmdb
import pytest

from queues import open_store
from queues.errors import StoreDamaged, StoreUnavailable
from queues.kv import open_kv, verify_store
from queues.kv.embedded import damage
from queues.tools.backup import back_up, restore_backup
from tests.damaged import PAGE, copy_damaged, make_store


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("healthy") / "store"
    make_store(folder)
    return folder


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_file_that_was_cut_off_is_refused_when_it_is_opened(tmp_path: Path, healthy: Path, share: float) -> None:
    store = tmp_path / "store"
    store.mkdir()
    whole = (healthy / "data.mdb").read_bytes()
    cut = whole[: int(len(whole) * share)]
    (store / "data.mdb").write_bytes(cut)
    with pytest.raises(StoreDamaged, match="is damaged"):
        open_store(f"lmdb:{store}")
    assert (store / "data.mdb").read_bytes() == cut


def test_a_file_cut_off_within_its_first_pages_is_refused(tmp_path: Path, healthy: Path) -> None:
    whole = (healthy / "data.mdb").read_bytes()
    for size in (100, 200, PAGE, PAGE + 100):
        store = tmp_path / str(size)
        store.mkdir()
        (store / "data.mdb").write_bytes(whole[:size])
        with pytest.raises(StoreDamaged):
            open_store(f"lmdb:{store}")


def test_an_emptied_file_is_not_taken_for_a_new_store(tmp_path: Path) -> None:
    url = make_store(tmp_path / "store")
    os.truncate(tmp_path / "store" / "data.mdb", 0)
    with pytest.raises(StoreDamaged, match="empty"):
        open_store(url)


def test_an_empty_file_alone_is_not_taken_for_a_new_store(tmp_path: Path) -> None:
    """A process that is creating a store has made its log before, and one that was interrupted is completed."""
    data = tmp_path / "data.mdb"
    data.touch()
    for open_one in (verify_store, open_store, open_store):
        with pytest.raises(StoreDamaged, match="empty"):
            open_one(f"lmdb:{tmp_path}")
    assert data.read_bytes() == b""
    (tmp_path / "log").touch()
    with open_store(f"lmdb:{tmp_path}") as store:
        assert store.directory() == {}


def test_a_file_that_is_cut_off_while_it_is_open_is_refused_before_it_is_read(tmp_path: Path) -> None:
    url = make_store(tmp_path / "store")
    with open_store(url) as store:
        data = tmp_path / "store" / "data.mdb"
        whole = data.read_bytes()
        os.truncate(data, len(whole) // 2)
        with pytest.raises(StoreDamaged, match="cut off"):
            store.queue("mail").push(b"x", priority=1)
        data.write_bytes(whole)
        assert store.queue("mail").depth() == 150


def test_pages_at_the_end_that_were_never_written_are_no_damage(tmp_path: Path) -> None:
    """LMDB does not write pages that a transaction has both taken and given back."""
    folder = tmp_path / "store"
    kv = open_kv(f"lmdb:{folder}")
    kv.transact(lambda tr: tr.set(b"kept", b"value"))
    kv.close()
    data = folder / "data.mdb"
    # By LMDB itself: a store's checkpoints, which come when they come, would keep some of the pages.
    with lmdb.open(str(folder), map_size=1 << 30, max_dbs=4) as environment:
        for n in range(50):
            with environment.begin(write=True) as tr:
                tr.put(b"large%d" % n, bytes(50_000))
        with environment.begin(write=True) as tr:
            for n in range(50):
                tr.delete(b"large%d" % n)
        for n in range(4):  # so that the pages are free in both meta pages
            with environment.begin(write=True) as tr:
                tr.put(b"n", b"%d" % n)
        with environment.begin(write=True) as tr:
            tr.delete(b"n")
    size = data.stat().st_size
    os.truncate(data, size - 10 * PAGE)
    kv = open_kv(f"lmdb:{folder}")
    assert kv.read(lambda tr: tr.get(b"kept").wait()) == b"value"
    kv.close()
    assert data.stat().st_size == size


def test_a_suspect_store_is_read_whole_before_it_is_opened(tmp_path: Path, healthy: Path) -> None:
    bad = tmp_path / "bad"
    copy_damaged(healthy, bad, "much", 1)
    (bad / damage.SUSPECT).touch()
    with pytest.raises(StoreDamaged):
        open_store(f"lmdb:{bad}")
    assert (bad / damage.SUSPECT).exists(), "it stays suspect"
    good = make_store(tmp_path / "good")
    (tmp_path / "good" / damage.SUSPECT).touch()
    with open_store(good) as store:
        assert store.queue("mail").depth() == 150
    assert not (tmp_path / "good" / damage.SUSPECT).exists()


def test_a_store_in_use_can_be_verified(tmp_path: Path) -> None:
    url = make_store(tmp_path / "store")
    with open_store(url) as store:
        verify_store(url)
        store.queue("mail").push(b"x", priority=1)
    verify_store("memory:")


@pytest.mark.parametrize("program", ["no python", "/bin/false", "", "stopped"])
def test_a_store_that_could_not_be_verified_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, program: str
) -> None:
    url = make_store(tmp_path / "store")
    (tmp_path / "stopped").write_text("#!/bin/sh\nkill -TERM $$\n")
    (tmp_path / "stopped").chmod(0o700)
    monkeypatch.setattr(sys, "executable", program and str(tmp_path / program))
    for verify in (lambda: verify_store(url), lambda: back_up(url, str(tmp_path / "backup"))):
        with pytest.raises(StoreUnavailable, match="could not be read whole"):
            verify()
        assert "was not read whole" in caplog.text
    assert not (tmp_path / "backup").exists()


def test_a_cut_off_file_that_could_not_be_verified_is_left_as_it_is(
    tmp_path: Path, healthy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    copy_damaged(healthy, store, "cut", 1)
    (store / damage.SUSPECT).touch()
    cut = (store / "data.mdb").read_bytes()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(StoreUnavailable, match="shorter than it should be"):
        open_store(f"lmdb:{store}")
    assert (store / "data.mdb").read_bytes() == cut


def test_a_suspect_store_that_could_not_be_verified_stays_suspect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = make_store(tmp_path / "store")
    (tmp_path / "store" / damage.SUSPECT).touch()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with open_store(url) as store:
        assert store.queue("mail").depth() == 150
    assert (tmp_path / "store" / damage.SUSPECT).exists()


def test_a_backup_of_a_damaged_store_fails_and_leaves_nothing(tmp_path: Path, healthy: Path) -> None:
    store, backup = tmp_path / "store", tmp_path / "backup"
    copy_damaged(healthy, store, "much", 1)
    with pytest.raises(StoreDamaged) as told:
        back_up(f"lmdb:{store}", str(backup))
    assert str(store) in str(told.value)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_damaged_backup_is_not_restored(tmp_path: Path, healthy: Path) -> None:
    backup, store = tmp_path / "backup", tmp_path / "store"
    copy_damaged(healthy, backup, "much", 2)
    with pytest.raises(StoreDamaged) as told:
        restore_backup(str(backup), f"lmdb:{store}")
    assert str(backup) in str(told.value)
    assert not store.exists()


@pytest.mark.parametrize("size", [100, 3 * PAGE + 100, 10 * PAGE])
def test_a_backup_that_was_cut_off_is_not_restored(tmp_path: Path, healthy: Path, size: int) -> None:
    backup, store = tmp_path / "backup", tmp_path / "store"
    back_up(f"lmdb:{healthy}", str(backup))
    os.truncate(backup / "data.mdb", size)
    with pytest.raises(StoreDamaged) as told:
        restore_backup(str(backup), f"lmdb:{store}")
    assert str(backup) in str(told.value)
    assert not store.exists()
    assert [path.name for path in backup.iterdir()] == ["data.mdb"], "the backup is left as it is"


def test_lost_keys_are_found_though_every_page_can_be_read(tmp_path: Path, healthy: Path) -> None:
    """A leaf whose entries are gone is a whole page to LMDB; the tree says how many there should be."""
    store = tmp_path / "store"
    store.mkdir()
    data = bytearray((healthy / "data.mdb").read_bytes())
    for at in range(2 * PAGE, len(data), PAGE):
        flags, lower, upper = (int.from_bytes(data[at + n : at + n + 2], "little") for n in (10, 12, 14))
        if flags == 2 and 40 < lower < upper <= PAGE:  # a leaf of the newest commit or an older one
            data[at + 12 : at + 14] = (lower - 4).to_bytes(2, "little")
    (store / "data.mdb").write_bytes(data)
    with pytest.raises(StoreDamaged, match="keys and should hold"):
        verify_store(f"lmdb:{store}")
