"""Every frame is a consistent cut: what moves between queues is in exactly one of them, in every single frame."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from pqadmin.live import monitor as monitors
from pqadmin.live.monitor import Monitor
from queues import Store
from tests.live.conftest import SignIn, Viewer

FRAMES = 1_000
ITEMS = 60
#: Seconds between moves in a thread of this process; another process moves as fast as it can.
PAUSE = 0.0002


MOVES = """
import sys, time
from queues import open_store

def move(store, here, there):
    def act(tr):
        item = here.pop_min(tr=tr)
        if item is not None:
            there.push(item.value, priority=item.priority, tr=tr)
        return item is not None
    return store.transact(act)

def run(store, ended):
    here, there = store.queue("left"), store.queue("right")
    moves = 0
    while not ended():
        if not move(store, here, there):
            here, there = there, here
        moves += 1
    return moves
"""


class Mover:
    """One transaction after another pops from one queue and pushes to the other: in another process if it may."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._in_process if store.url.startswith("lmdb:") else self._in_thread)
        self.moves = 0

    def __enter__(self) -> Mover:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _in_thread(self) -> None:
        space: dict[str, Any] = {}
        exec(MOVES, space)  # the same text as in the other process
        self.moves = space["run"](self._store, lambda: self._ended.wait(PAUSE))

    def _in_process(self) -> None:
        code = (
            f"{MOVES}\nimport threading\nended = threading.Event()\n"
            "threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()\n"
            "print(run(open_store(sys.argv[1]), ended.is_set))\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code, self._store.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            self._ended.wait()
            self.moves = int(process.communicate("")[0])


@pytest.mark.slow
async def test_depths_add_up_in_every_frame(store: Store, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = store.create_queue("left"), store.create_queue("right")
    for n in range(ITEMS):
        (left, right)[n % 2].push(b"item %d" % n, priority=n % 7)
    fast = Monitor(lambda: store, frame_rate=100.0)
    monkeypatch.setattr(monitors, "_monitor", fast)
    viewer = Viewer(await asyncio.to_thread(sign_in, "vera"))
    await viewer.open()
    await viewer.watch(left.id, right.id)

    different, last = 0, None
    with Mover(store) as mover:
        await viewer.frame()
        began = time.monotonic()
        for _ in range(FRAMES):
            frame = await viewer.frame()
            depths = tuple(viewer.rows[str(queue.id)]["ready"] for queue in (left, right))
            assert sum(depths) == ITEMS, frame["version"]
            assert frame["total"]["ready"] == ITEMS
            different += depths != last
            last = depths
    rate = mover.moves / (time.monotonic() - began)
    await viewer.leave()
    await asyncio.to_thread(fast.shutdown)

    assert rate >= 200, rate
    assert different >= 0.9 * FRAMES, different
