"""A minted key that exists after all: its batch is given up, and only its creator gets an error."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from queues.kv import open_kv
from queues.kv.errors import StoreUnavailable
from queues.kv.port import Transaction

LONG = 120


def test_a_key_that_exists_is_not_overwritten_and_neighbors_are_served(tmp_path: Path) -> None:
    kv = open_kv(f"lmdb:{tmp_path}/store")
    try:
        kv.transact(lambda tr: tr.set(b"there", b"first"))

        def collide(tr: Transaction) -> None:
            tr.set(b"along", b"x")
            tr.set_new([b"new", b"there"], [b"", b"second"])

        with ThreadPoolExecutor(8) as threads:
            asked = [threads.submit(kv.transact, lambda tr, n=n: tr.set(b"%d" % n, b"")) for n in range(20)]
            bad = threads.submit(kv.transact, collide)
            asked += [threads.submit(kv.transact, lambda tr, n=n: tr.set(b"%d" % n, b"")) for n in range(20, 40)]
            with pytest.raises(StoreUnavailable):
                bad.result(LONG)
            for one in asked:
                one.result(LONG)
        found = dict(kv.read(lambda tr: tr.get_range(b"", b"\xff", limit=100).wait()))
        assert found == {b"there": b"first"} | {b"%d" % n: b"" for n in range(40)}
    finally:
        kv.close()
