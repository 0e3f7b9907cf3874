"""Every frame is a consistent cut: what moves between queues is in exactly one of them, in every single frame."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pqadmin.live import monitor as monitors
from pqadmin.live.monitor import Monitor
from queues import Store
from tests.live.conftest import SignIn, Viewer

#: Where each queue is read in a transaction of its own, one of the first 4 frames is torn while another process moves,
#: one of the first 20 to 120 while another thread does. `PQ_FRAMES=5` for five times as many.
FRAMES, FRAMES_OF_THREADS = (int(os.environ.get("PQ_FRAMES", "1")) * frames for frames in (150, 500))
ITEMS = 60


MOVES = """
import sys
from queues import open_store

def run(store, turns):
    here, there = store.queue("left"), store.queue("right")

    def act(tr):
        item = here.pop_min(tr=tr)
        if item is not None:
            there.push(item.value, priority=item.priority, tr=tr)
        return item is not None

    for moves, _ in enumerate(turns, start=1):
        while not store.transact(act):
            here, there = there, here
        yield moves
"""


class Mover:
    """One transaction a move pops from one queue and pushes to the other: in another process if it may.

    It moves on for as long as it has leave: every frame that a reader has seen gives it some more, so that no
    frame waits in vain for something to change, however slow the machine.
    """

    #: Moves at a stretch: the frames are made in the midst of them.
    STRETCH = 5

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ended = False
        self._leave = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._in_process if store.url.startswith("lmdb:") else self._in_thread)
        self.moves = 0

    def __enter__(self) -> "Mover":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._leave.release()
        self._thread.join()

    def go_on(self) -> None:
        """Let it make some more moves."""
        self._leave.release()

    def _turns(self) -> Iterator[None]:
        while True:
            self._leave.acquire()
            for _ in range(self.STRETCH):
                if self._ended:
                    return
                yield

    def _in_thread(self) -> None:
        space: dict[str, Any] = {}
        exec(MOVES, space)  # the same text as in the other process
        for moves in space["run"](self._store, self._turns()):
            self.moves = moves

    def _in_process(self) -> None:
        code = f"{MOVES}\nfor moves in run(open_store(sys.argv[1]), sys.stdin):\n    print(moves, flush=True)\n"
        command = [sys.executable, "-c", code, self._store.url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            for _ in self._turns():
                process.stdin.write("\n")
                process.stdin.flush()
                self.moves = int(process.stdout.readline())
            process.stdin.close()


@pytest.mark.slow
async def test_depths_add_up_in_every_frame(
    store: Store, engine: str, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = FRAMES_OF_THREADS if engine == "simulated" else FRAMES
    left, right = store.create_queue("left"), store.create_queue("right")
    for n in range(ITEMS):
        (left, right)[n % 2].push(b"item %d" % n, priority=n % 7)
    fast = Monitor(lambda: store, frame_rate=100.0)
    monkeypatch.setattr(monitors, "_monitor", fast)
    viewer = Viewer(await asyncio.to_thread(sign_in, "vera"))
    await viewer.open()
    await viewer.watch(left.id, right.id)

    seen, different, last = 0, 0, None
    began = time.monotonic()
    with Mover(store) as mover:
        while different < frames:  # other frames carry rates alone: a mover that is held up moves nothing
            mover.go_on()
            frame = await viewer.frame()
            seen += 1
            depths = tuple(viewer.rows[str(queue.id)]["ready"] for queue in (left, right))
            assert sum(depths) == ITEMS, frame["version"]
            assert frame["total"]["ready"] == ITEMS
            different += depths != last
            last = depths
    rate = mover.moves / (time.monotonic() - began)
    await viewer.leave()
    await asyncio.to_thread(fast.shutdown)

    print(f"{seen} frames, {different} of them with new depths, {rate:.0f} moves a second")
