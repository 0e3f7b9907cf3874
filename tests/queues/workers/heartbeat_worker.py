"""What the tests of heartbeats start as a process: a pool whose handlers stay until a named pipe is opened."""

import ctypes
import json
import os
import signal
import sys

from queues import open_store
from queues.workers import Job, Pool, Worker


def stay(job: Job) -> None:
    """Stay until the pipe is opened, as the item's value says."""
    how, _, pipe = job.item.value.decode().partition(" ")
    if how == "fork":
        if os.fork() == 0:  # it has every descriptor of this process
            signal.pause()
        print("forked", flush=True)
    print("begun", flush=True)
    if how == "hold":
        ctypes.PyDLL(None).open(pipe.encode(), os.O_RDONLY)  # with the interpreter held: no other thread runs
    else:
        os.close(os.open(pipe, os.O_RDONLY))


def main() -> None:
    """Work until SIGTERM."""
    url, root, seconds, threads = sys.argv[1], tuple(json.loads(sys.argv[2])), float(sys.argv[3]), int(sys.argv[4])
    worker = Worker()
    worker.handles("jobs", seconds=seconds)(stay)
    asked, ask = os.pipe()  # an event's lock may be held by the thread that the handler interrupts
    signal.signal(signal.SIGTERM, lambda *_: os.write(ask, b"."))
    with open_store("lmdb:" + os.path.relpath(url.partition(":")[2]), root=root) as store:
        os.chdir("/")
        pool = Pool(store, worker, ["jobs"], threads=threads)
        pool.start()
        os.read(asked, 1)
        print(pool.stop(60.0).done, flush=True)


if __name__ == "__main__":
    main()
