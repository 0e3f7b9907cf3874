"""Bytes that the recorder of histories keeps in memory for queues that change all the time, a queue.

    python -m benchmarks.history_memory [QUEUES]

Every queue changes each second for a minute, and each minute for two hours, by the clock of the benchmark, so that the
blocks being filled are full. Memory is counted by tracemalloc, in the modules of `queues.history` alone.
"""

import gc
import random
import sys
import tracemalloc
from functools import partial
from tempfile import TemporaryDirectory

from queues import Transaction, open_store

#: What 10,000 queues may take.
MOST_BYTES = 10_000 * 8_192


def measure(queues: int) -> float:
    """Return the bytes of one queue."""
    now = [1_800_000_000.0]
    rng = random.Random(1)
    # A store in memory would keep the blocks that are written, and all their versions while another thread reads.
    with TemporaryDirectory() as folder, open_store(f"lmdb:{folder}/store", clock=lambda: now[0]) as store:
        made = [store.create_queue(f"q{n}") for n in range(queues)]
        recorder = store.recorder(count=lambda: now[0])

        def change(numbers: list[tuple[int, int]], tr: Transaction) -> None:
            for queue, (pushed, popped) in zip(made, numbers, strict=True):
                queue.push_many([(b"x", n) for n in range(pushed)], tr=tr)
                queue.pop_many(popped, tr=tr)

        def go_on(seconds: int) -> None:
            store.transact(partial(change, [(rng.randint(1, 9), rng.randint(1, 8)) for _ in made]))
            recorder.look()
            now[0] += seconds

        tracemalloc.start()
        try:
            now[0] += 7_200 - now[0] % 7_200  # a block of minutes begins
            for _ in range(118):
                go_on(60)
            for _ in range(59):
                go_on(1)
            recorder.flush()
            gc.collect()  # free lists of the interpreter, too
            here = tracemalloc.Filter(True, "*/queues/history/*")
            traces = tracemalloc.take_snapshot().filter_traces([here]).statistics("filename")
        finally:
            tracemalloc.stop()
    return sum(trace.size for trace in traces) / queues


if __name__ == "__main__":
    queues = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    size = measure(queues)
    print(f"{size:,.0f} bytes a queue, {size * 10_000 / 1e6:,.0f} MB for 10,000")
