"""backup and restore_backup: while the store is in use, never over anything, and order kept after the way back."""

import io
import itertools
import json
import shutil
import threading
import uuid
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from queues import open_store
from queues.catalog.store_record import FORMAT, StoreRecord
from queues.errors import EmbeddedOnly, NewerFormat, NotAStore, PathTaken, StoreUnavailable
from queues.keys.keyspace import Keyspace
from queues.kv import restore_kv
from queues.kv.port import KeyValueStore
from queues.tools.backup import back_up, restore_backup
from tests.full_count import check_full_count


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a store with three items."""
    url = f"lmdb:{tmp_path / 'store'}"
    with open_store(url) as store:
        for _ in range(20):
            store.create_queue("jobs", exist_ok=True)
        jobs = store.queue("jobs")
        for n in range(3):
            jobs.push(b"%d" % n, priority=1)
    return url


def run(command: str, *arguments: str) -> str:
    out = io.StringIO()
    call_command(command, *arguments, stdout=out)
    return out.getvalue()


def values(url: str) -> list[bytes]:
    with open_store(url) as store:
        return [item.value for item in store.queue("jobs").items(limit=1_000).items]


def test_a_backup_is_restored_to_another_place(url: str, tmp_path: Path) -> None:
    backup, again = tmp_path / "backup", f"lmdb:{tmp_path / 'deep' / 'er' / 'again'}"
    assert run("backup", str(backup), "--store", url).startswith(f"Backed up {url} to {backup} (")
    assert [path.name for path in backup.iterdir()] == ["data.mdb"]
    assert backup.stat().st_mode & 0o077 == 0, "it holds what the store holds: no other caller may read it"
    with open_store(url) as store:
        store.queue("jobs").push(b"after the backup", priority=1)
        store_id = store.id
    assert run("restore_backup", str(backup), "--store", again).startswith(f"Restored {backup} to {again} (")
    assert values(again) == [b"0", b"1", b"2"]
    with open_store(again) as store:
        assert store.id == store_id
        check_full_count(store, store.queue("jobs"))
        store.queue("jobs").push(b"3", priority=1)
    assert values(again) == [b"0", b"1", b"2", b"3"], "behind what was backed up"
    assert [path.name for path in backup.iterdir()] == ["data.mdb"], "the backup stays as it was"
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def test_a_backup_is_told_as_json(url: str, tmp_path: Path) -> None:
    shape = json.loads(run("backup", str(tmp_path / "b"), "--store", url, "--json"))
    with open_store(url) as store:
        assert (shape["store"], shape["backup"], shape["store_id"]) == (url, str(tmp_path / "b"), store.id)
    assert (shape["format"], shape["bytes"] > 0) == (FORMAT, True)
    again = f"lmdb:{tmp_path / 'again'}"
    restored = json.loads(run("restore_backup", str(tmp_path / "b"), "--store", again, "--json"))
    assert restored == shape | {"store": again}


def test_a_backup_of_a_busy_store_is_one_moment_of_it(url: str, tmp_path: Path) -> None:
    """Each transaction moves an item from one queue to the other: whatever the moment, there are as many in both."""
    with open_store(url) as store:
        jobs, other = store.queue("jobs"), store.create_queue("other")
        jobs.push_many([(b"x" * 500, n) for n in range(300)])
        stop = threading.Event()
        moved = threading.Semaphore(0)

        def move() -> None:
            for here, there in itertools.cycle(((jobs, other), (other, jobs))):
                if stop.is_set():
                    return

                def step(tr, here=here, there=there):
                    item = here.pop_min(tr=tr)
                    there.push(item.value, priority=item.priority, tr=tr)

                store.transact(step)
                moved.release()

        mover = threading.Thread(target=move)
        mover.start()
        try:
            for n in range(3):
                moved.acquire()
                run("backup", str(tmp_path / f"backup{n}"), "--store", url)
        finally:
            stop.set()
            mover.join()
    for n in range(3):
        with open_store(f"lmdb:{tmp_path / f'backup{n}'}") as store:
            assert sum(check_full_count(store, store.queue(name)) for name in ("jobs", "other")) == 303


def test_nothing_is_overwritten(url: str, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("taken", "link", "store"):
        with pytest.raises(CommandError, match="is there already"):
            run("backup", str(tmp_path / name), "--store", url)
    assert list(taken.iterdir()) == []
    back_up(url, str(tmp_path / "backup"))
    with pytest.raises(CommandError, match="is not empty"):
        run("restore_backup", str(tmp_path / "backup"), "--store", url)
    (tmp_path / "data.mdb").mkdir()
    with pytest.raises(PathTaken):
        restore_backup(str(tmp_path / "backup"), f"lmdb:{tmp_path}")
    assert values(url) == [b"0", b"1", b"2"]
    restore_backup(str(tmp_path / "backup"), f"lmdb:{taken}")  # an empty folder will do
    assert values(f"lmdb:{taken}") == [b"0", b"1", b"2"]


def test_an_empty_folder_keeps_its_rights(url: str, tmp_path: Path) -> None:
    """It is for a group, or a file system of its own: another folder in its place would be neither."""
    back_up(url, str(tmp_path / "backup"))
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o2770)
    before = shared.stat()
    with pytest.raises(NotAStore):
        restore_backup(str(tmp_path / "backup"), f"lmdb:{shared}", root=("other",))
    assert list(shared.iterdir()) == []
    shutil.copytree(tmp_path / "backup", shared / f".{uuid.uuid4().hex}.part")  # by a restore that was killed
    restore_backup(str(tmp_path / "backup"), f"lmdb:{shared}")
    assert (shared.stat().st_ino, shared.stat().st_mode) == (before.st_ino, before.st_mode)
    assert [(path.name, path.stat().st_mode & 0o777) for path in shared.iterdir()] == [("data.mdb", 0o660)]
    assert values(f"lmdb:{shared}") == [b"0", b"1", b"2"]


def test_a_new_volume_is_an_empty_folder(url: str, tmp_path: Path) -> None:
    back_up(url, str(tmp_path / "backup"))
    (tmp_path / "volume" / "lost+found").mkdir(parents=True)  # as ext4 makes it
    restore_backup(str(tmp_path / "backup"), f"lmdb:{tmp_path / 'volume'}")
    assert values(f"lmdb:{tmp_path / 'volume'}") == [b"0", b"1", b"2"]


def test_two_restores_into_one_folder_do_not_disturb_each_other(url: str, tmp_path: Path) -> None:
    backup, shared = str(tmp_path / "backup"), tmp_path / "shared"
    back_up(url, backup)
    shared.mkdir()

    def restore_another(_: KeyValueStore) -> None:
        with pytest.raises(PathTaken, match="Another process is restoring"):
            restore_backup(backup, f"lmdb:{shared}")

    restore_kv(backup, f"lmdb:{shared}", restore_another)
    assert values(f"lmdb:{shared}") == [b"0", b"1", b"2"]


def test_a_backup_into_a_folder_that_is_not_there_names_that_folder(url: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as refused:
        run("backup", str(tmp_path / "nowhere" / "deep"), "--store", url)
    assert str(refused.value) == f"{tmp_path / 'nowhere'}: No such file or directory"


def test_a_backup_that_fails_leaves_nothing_behind(url: str, tmp_path: Path) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(NotAStore):
        back_up(url, str(tmp_path / "backup"), root=("other",))
    with pytest.raises(CommandError, match="No such file or directory"):
        run("backup", str(tmp_path / "no" / "backup"), "--store", url)
    with pytest.raises(CommandError, match="There is no store in"):
        run("backup", str(tmp_path / "backup"), "--store", f"lmdb:{tmp_path / 'nothing'}")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_what_is_no_backup_is_not_restored(url: str, tmp_path: Path) -> None:
    again = f"lmdb:{tmp_path / 'again'}"
    with pytest.raises(StoreUnavailable, match="no backup"):
        restore_backup(str(tmp_path), again)
    back_up(url, str(tmp_path / "torn"))
    (tmp_path / "torn" / "data.mdb").write_bytes(b"\xff" * 20_000)
    with pytest.raises(StoreUnavailable, match="not a store"):
        restore_backup(str(tmp_path / "torn"), again)
    with open_store(f"lmdb:{tmp_path / 'other'}", root=("other",)):
        pass
    with pytest.raises(NotAStore):
        restore_backup(str(tmp_path / "other"), again)
    assert not (tmp_path / "again").exists()


def test_a_store_of_another_release_is_neither_backed_up_nor_restored(url: str, tmp_path: Path) -> None:
    back_up(url, str(tmp_path / "backup"))
    with open_store(url) as store:
        other = StoreRecord(format=FORMAT + 1, id=store.id).encode()
        store.transact(lambda tr: tr.set(Keyspace(("pq",)).store, other))
    with pytest.raises(NewerFormat, match="newer pqadmin"):
        back_up(url, str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()
    shutil.copy(tmp_path / "store" / "data.mdb", tmp_path / "backup" / "data.mdb")
    with pytest.raises(NewerFormat, match="newer pqadmin"):
        restore_backup(str(tmp_path / "backup"), f"lmdb:{tmp_path / 'again'}")
    assert not (tmp_path / "again").exists()


def test_a_store_that_is_in_use_can_be_restored_from_like_a_backup(url: str, tmp_path: Path) -> None:
    again = f"lmdb:{tmp_path / 'again'}"
    with open_store(url) as store:
        store.queue("jobs").push(b"3", priority=1)
        restore_backup(str(tmp_path / "store"), again)
        store.queue("jobs").push(b"4", priority=1)
    assert values(again) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize(("url", "word"), [("fdb:/etc/x.cluster", "fdbbackup"), ("memory:x", "in memory")])
def test_other_engines_are_pointed_to_their_own_tools(url: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(EmbeddedOnly, match=word):
        back_up(url, str(tmp_path / "backup"))
    with pytest.raises(CommandError, match=word):
        run("backup", str(tmp_path / "backup"), "--store", url)
    with pytest.raises(CommandError, match=word):
        run("restore_backup", str(tmp_path / "backup"), "--store", url)
