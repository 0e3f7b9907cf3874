"""A full store refuses what grows it, and can always be emptied."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from queues.kv import open_kv
from queues.kv.errors import StoreFull
from queues.kv.port import KeyValueStore, Transaction

VALUE = b"v" * 5_000


@pytest.fixture
def small(tmp_path: Path) -> Iterator[KeyValueStore]:
    kv = open_kv(f"lmdb:{tmp_path}/store", max_bytes=1_000_000)
    yield kv
    kv.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True, check=False
    ).returncode:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(kv: KeyValueStore) -> int:
    """Write until the store is full; return how many pairs it took."""
    n = 0
    while True:
        try:
            kv.transact(lambda tr, key=b"%06d" % n: tr.set(key, VALUE))
        except StoreFull:
            return n
        n += 1
        assert n < 10_000


def fill_disk(folder: Path) -> Path:
    """Fill a disk to its last byte, and return the file that does."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as filler:
        while os.statvfs(folder).f_bavail:
            filler.write(b"x" * 4_096)
    return ballast


def count(kv: KeyValueStore) -> int:
    return len(kv.read(lambda tr: tr.get_range(b"", b"\xff", limit=100_000).wait()))


def test_a_full_store_refuses_to_grow_and_says_what_to_do(small: KeyValueStore) -> None:
    written = fill(small)
    used, allowed = small.size()
    assert 0.9 * allowed < used < 1.1 * allowed
    with pytest.raises(StoreFull, match=r"nothing was written\. Let workers take items") as raised:
        small.transact(lambda tr: tr.set(b"more", VALUE))
    assert "store" in str(raised.value)
    assert count(small) == written


def test_a_full_store_can_be_emptied_and_filled_again(small: KeyValueStore) -> None:
    written = fill(small)

    def take(tr: Transaction) -> bytes:
        key = tr.get_key(b"", b"\xff").wait()
        assert key is not None
        tr.clear(key)
        tr.add(b"~taken", 1)
        return key

    keys = [small.transact(take) for _ in range(written)]
    assert keys == sorted(set(keys))
    assert count(small) == 1
    assert fill(small) > written * 0.9


def test_counting_needs_no_room(small: KeyValueStore) -> None:
    fill(small)
    for n in range(200):
        small.transact(lambda tr, key=b"~counter%d" % n: tr.add(key, 1))


def test_what_clears_as_much_as_it_sets_passes(small: KeyValueStore) -> None:
    fill(small)
    small.transact(lambda tr: [tr.set(b"moved", VALUE), tr.clear(b"000000")])
    small.transact(lambda tr: tr.set(b"moved", VALUE[::-1]))
    with pytest.raises(StoreFull):
        small.transact(lambda tr: [tr.set(b"one", VALUE), tr.set(b"two", VALUE), tr.clear(b"000001")])


def test_the_reserve_is_for_callers_that_ask(small: KeyValueStore) -> None:
    written = fill(small)
    small.transact(lambda tr: [tr.use_reserve(), tr.set(b"record", VALUE)])
    with pytest.raises(StoreFull):
        small.transact(lambda tr: tr.set(b"more", VALUE))
    assert count(small) == written + 1


def test_a_refusal_fails_only_the_one_that_grows(small: KeyValueStore) -> None:
    written = fill(small)
    for n in range(written // 2):
        small.transact(lambda tr, key=b"%06d" % n: tr.clear(key))
    assert count(small) == written - written // 2
    small.transact(lambda tr: tr.set(b"more", VALUE))


def test_the_limit_can_be_raised(tmp_path: Path) -> None:
    kv = open_kv(f"lmdb:{tmp_path}/store", max_bytes=500_000)
    written = fill(kv)
    larger = open_kv(f"lmdb:{tmp_path}/store", max_bytes=1_000_000)
    kv.transact(lambda tr: tr.set(b"more", VALUE))
    assert count(larger) == written + 1
    kv.close()
    larger.close()


def test_a_full_disk_refuses_pushes_and_lets_pops_through(small_disk: Path) -> None:
    kv = open_kv(f"lmdb:{small_disk}/store")
    written = fill(kv)
    assert written > 100
    with pytest.raises(StoreFull, match=r"disk under the store .* almost full"):
        kv.transact(lambda tr: tr.set(b"more", VALUE))
    for n in range(written):
        kv.transact(lambda tr, key=b"%06d" % n: [tr.clear(key), tr.add(b"~taken", 1)])
    assert count(kv) == 1
    assert fill(kv) > written // 2
    kv.close()


def test_a_disk_that_other_programs_fill_to_the_last_byte_loses_nothing(small_disk: Path) -> None:
    kv = open_kv(f"lmdb:{small_disk}/store")
    for n in range(50):
        kv.transact(lambda tr, key=b"%06d" % n: tr.set(key, VALUE))
    ballast = fill_disk(small_disk)
    with pytest.raises(StoreFull, match="disk"):
        kv.transact(lambda tr: [tr.use_reserve(), *(tr.set(b"x%d" % n, VALUE * 10) for n in range(10))])
    assert count(kv) == 50
    ballast.unlink()
    kv.transact(lambda tr: tr.set(b"more", VALUE))
    assert count(kv) == 51
    kv.close()
    again = open_kv(f"lmdb:{small_disk}/store")
    assert count(again) == 51
    again.close()


def test_a_reader_on_a_full_disk_is_not_killed(small_disk: Path) -> None:
    """Each new reader takes a slot in the lock file, which therefore has its blocks from the start."""
    kv = open_kv(f"lmdb:{small_disk}/store")
    fill_disk(small_disk)
    environment = kv.engine.environment
    readers = [environment.begin_read() for _ in range(1_000)]
    for txn in readers:
        environment.end_read(txn)
    kv.close()
