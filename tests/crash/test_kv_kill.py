"""Whatever was acknowledged is there after a kill, the rest is there whole or not at all."""

import os
import random
from collections import defaultdict
from pathlib import Path

import pytest

from queues.kv import open_kv
from queues.kv.port import KeyValueStore
from tests.crash.harness import kill_during

#: Kills; more of them by the environment.
ROUNDS = int(os.environ.get("PQ_KILLS", "5"))
THREADS = 8


def content(kv: KeyValueStore) -> dict[bytes, bytes]:
    return dict(kv.read(lambda tr: tr.get_range(b"", b"\xff", limit=1_000_000).wait()))


@pytest.mark.crash
def test_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Another process has the store open all the while, and goes on writing after each kill."""
    url = f"lmdb:{tmp_path}/store"
    chance = random.Random(2)
    begun: set[str] = set()
    acknowledged: set[str] = set()
    hit = 0
    kv = open_kv(url)
    for n in range(ROUNDS):
        killed = kill_during(
            "tests.crash.programs:write", url, str(THREADS), f"round{n:02d}", after=chance.randrange(1, 1_500)
        )
        begun |= killed.begun
        acknowledged |= killed.acknowledged
        hit += bool(killed.in_flight)
        kv.transact(lambda tr: tr.add(b"survivor", 1))
        found = content(kv)
        assert int.from_bytes(found.pop(b"survivor"), "little") == n + 1
        total = int.from_bytes(found.pop(b"total"), "little")
        assert all(value == key * 3 for key, value in found.items())
        assert {key.encode() for key in acknowledged} <= found.keys() <= {key.encode() for key in begun}
        assert total == len(found)
        numbers = defaultdict(list)
        for key in found:
            thread, _, number = key.decode().rpartition("/")
            numbers[thread].append(int(number))
        assert all(sorted(seen) == list(range(len(seen))) for seen in numbers.values())
    before = content(kv)
    kv.close()
    again = open_kv(url)
    assert content(again) == before
    again.close()
    assert hit >= 0.8 * ROUNDS, f"only {hit} of {ROUNDS} kills hit writes in flight"
