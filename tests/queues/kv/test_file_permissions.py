"""The rights of a store's files: whatever the umask is, and whatever was there."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from queues import open_store
from queues.kv import open_kv
from queues.kv.embedded import backup
from tests.queues.kv.test_opening import get, put


@pytest.fixture(params=[0o000, 0o002, 0o022, 0o077], ids="umask {:03o}".format)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def modes(folder: Path) -> dict[str, int]:
    return {path.name: mode(path) for path in folder.iterdir()}


def use(folder: Path) -> None:
    kv = open_kv(f"lmdb:{folder}")
    put(kv, b"key")
    assert get(kv, b"key") == b"value"
    kv.close()


def test_a_new_store_is_its_owners_alone(umask: int, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    use(folder)
    assert mode(folder) == 0o700
    assert set(modes(folder).values()) == {0o600}
    assert {"data.mdb", "lock.mdb"} <= modes(folder).keys()


def test_a_folder_that_its_group_may_write_is_shared_with_the_group(umask: int, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    folder.chmod(0o2770)
    use(folder)
    assert folder.stat().st_mode & 0o7777 == 0o2770
    assert set(modes(folder).values()) == {0o660}


@pytest.mark.parametrize(("rights", "wanted"), [(0o755, 0o600), (0o750, 0o600), (0o775, 0o660), (0o770, 0o660)])
def test_files_of_an_older_release_get_the_rights_that_new_ones_have(rights: int, wanted: int, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    use(folder)
    folder.chmod(rights)
    for path in folder.iterdir():
        path.chmod(0o664)
    use(folder)
    assert mode(folder) == rights, "a folder that was there is not ours to change"
    assert set(modes(folder).values()) == {wanted}


def test_a_folder_that_every_user_may_write_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    for rights, warned in ((0o777, True), (0o775, False), (0o1777, True)):
        caplog.clear()
        folder.chmod(rights)
        with caplog.at_level(logging.WARNING, logger="queues"):
            use(folder)
        assert (str(folder) in caplog.text) is warned


def test_a_backup_and_what_comes_back_from_it_are_their_owners_alone(umask: int, tmp_path: Path) -> None:
    store = open_store(f"lmdb:{tmp_path / 'store'}")
    store.create_queue("jobs")
    store.close()
    backup.back_up(str(tmp_path / "store"), str(tmp_path / "copy"), lambda _: None)
    backup.restore(str(tmp_path / "copy"), str(tmp_path / "back"), lambda _: None)
    for folder in (tmp_path / "copy", tmp_path / "back"):
        assert mode(folder) == 0o700
        assert modes(folder) == {"data.mdb": 0o600}
