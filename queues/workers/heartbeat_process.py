"""Heartbeat process: extends the leases of a pool, whatever holds the pool's interpreter.

A pool starts it as `python -m queues.workers.heartbeat_process` and writes lines of JSON to its standard input: first
the store, then leases to keep and to drop. It answers by lines on its standard output: that it is ready, that a lease
is lost, what is to be logged. It ends at the end of its input, or when its parent is no longer the pool: leases of a
pool that was killed are not extended.
"""

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from queues.errors import QueueError, QueueNotFound, StoreError
from queues.model.store_address import StoreAddress
from queues.opening import open_store
from queues.queue import Queue
from queues.store import Store
from queues.workers.lease_extender import HeldLease, LeaseExtender
from queues.workers.rests import AFTER_TROUBLE

log = logging.getLogger("queues.workers")

#: Seconds that a running extension gets to end.
PATIENCE = 5.0
#: Characters of a line for the log: one write of at most 4,096 bytes to a pipe is atomic.
MAX_TEXT = 900
#: Tries to open a queue that is renamed meanwhile, or listed and not there.
_LOOKS = 3


class HeartbeatProcess:
    """Two threads: one reads what the pool says, one extends leases."""

    def __init__(self, address: StoreAddress, parent: int) -> None:
        self._address = address
        self._parent = parent
        self._extender = LeaseExtender(lost=lambda token: tell(lost=token))
        self._ended = threading.Event()
        self._store: Store | None = None
        self._queues: dict[int, Queue] = {}

    def run(self, lines: Iterable[str]) -> None:
        """Extend leases until the pool has ended."""
        threading.Thread(target=self._listen, args=(lines,), daemon=True).start()
        while not self._ended.is_set():
            try:
                address = self._address
                self._store = open_store(
                    address.url, root=address.root, max_bytes=address.max_bytes, token=address.token
                )
            except (StoreError, QueueError) as error:
                log.warning("Leases are not extended, the store cannot be opened: %s", error)
                self._ended.wait(AFTER_TROUBLE)
                continue
            with self._store:
                tell(ready=True)
                self._extender.run()

    def _listen(self, lines: Iterable[str]) -> None:
        try:
            for line in lines:
                self._obey(json.loads(line))
        except ValueError:
            pass  # the pool was killed in the middle of a line
        except Exception:
            log.exception("What the pool said could not be done")
        finally:
            self._ended.set()
            self._extender.stop()
            threading.Event().wait(PATIENCE)
            os._exit(1)

    def _obey(self, said: Mapping[str, Any]) -> None:
        if "drop" in said:
            self._extender.drop(said["drop"])
            return
        queue = partial(self._queue, said["queue"], said["name"])
        held = HeldLease(queue=queue, name=said["name"], token=said["keep"], seconds=said["seconds"])
        self._extender.keep(held, at_once=said["at_once"] or self._store is None)

    def _queue(self, queue_id: int, name: str) -> Queue:
        """Return the queue of this id; `name` is the name that it had."""
        if os.getppid() != self._parent:  # a child of the pool's process may hold our input open
            os._exit(0)
        queue = self._queues.get(queue_id)
        if queue is None:
            assert self._store is not None
            queue = self._queues[queue_id] = find_queue(self._store, queue_id, name)
        return queue


def find_queue(store: Store, queue_id: int, name: str) -> Queue:
    """Return the queue of an id; `name` is the name that it had. Raises `QueueNotFound`."""
    known = name
    names: Mapping[str, int] = {}
    for _ in range(_LOOKS):
        with suppress(QueueNotFound):
            queue = store.queue(known)
            if queue.id == queue_id:
                return queue
        names = store.directory()
        known = next((each for each, its_id in names.items() if its_id == queue_id), "")
        if not known:
            break
    raise QueueNotFound(name, name_taken=name in names)


def tell(**what: Any) -> None:
    """Write a message to the pool; it is dropped when the pipe is full."""
    try:
        os.write(1, json.dumps(what).encode() + b"\n")
    except (BlockingIOError, BrokenPipeError):
        return


class TellingHandler(logging.Handler):
    """Passes log records to the pool's process."""

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on."""
        tell(log=record.getMessage()[:MAX_TEXT], level=record.levelno)


def main() -> None:
    """Run the heartbeat process of the pool that writes to standard input."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the pool decides when its work ends
        signal.signal(number, signal.SIG_IGN)
    os.set_blocking(1, False)
    logging.getLogger("queues").addHandler(TellingHandler())
    address, parent = StoreAddress.decode(sys.stdin.readline()), int(sys.stdin.readline())
    HeartbeatProcess(address, parent).run(sys.stdin)


if __name__ == "__main__":
    main()
