"""kill -9 in the middle of pushes: what was acknowledged is there once, the rest once or not at all."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from queues import open_store
from tests.full_count import check_full_count

ROUNDS = 50
PUSHER = Path(__file__).with_name("pusher.py")
ROOT = Path(__file__).parents[2]


def numbers(record: Path, kind: bytes) -> set[int]:
    lines = record.read_bytes().splitlines() if record.exists() else []
    return {int(line[2:]) for line in lines if line.startswith(kind)}


def run_and_kill(url: str, record: Path, first: int, acknowledgements: int) -> None:
    """Start a pusher, kill it once it has that many acknowledgements more."""
    before = len(numbers(record, b"a"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, PUSHER, url, "jobs", record, str(first)], env=environment)
    try:
        while len(numbers(record, b"a")) < before + acknowledgements:
            assert process.poll() is None, "the pusher stopped by itself"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_nothing_acknowledged_is_lost_and_nothing_is_there_twice(tmp_path: Path) -> None:
    url, record = f"lmdb:{tmp_path / 'store'}", tmp_path / "record"
    dice = random.Random(20261120)
    with open_store(url) as store:
        store.create_queue("jobs")
    in_flight_at_kill = 0
    for number in range(ROUNDS):
        seen = len(numbers(record, b"b")) - len(numbers(record, b"a"))
        run_and_kill(url, record, first=number * 1_000_000, acknowledgements=dice.randint(1, 300))
        begun, acknowledged = numbers(record, b"b"), numbers(record, b"a")
        in_flight_at_kill += len(begun) - len(acknowledged) > seen
        with open_store(url) as store:
            queue = store.queue("jobs")
            items = check_full_count(store, queue)
            if number % 10 == 9 or number == ROUNDS - 1:
                found: Counter[int] = Counter()
                cursor = None
                while True:
                    page = queue.items(limit=1000, after=cursor)
                    found.update(int(item.value) for item in page.items)
                    cursor = page.cursor
                    if cursor is None:
                        break
                assert max(found.values()) == 1, "an item is there twice"
                assert not acknowledged - found.keys(), "an acknowledged item is gone"
                assert not found.keys() - begun, "an item is there that nobody pushed"
                assert items == len(found)
    assert in_flight_at_kill >= 0.8 * ROUNDS, "the kills did not hit pushes in flight"
