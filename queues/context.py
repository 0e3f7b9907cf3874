"""What all queues of one open store share: the key-value store, the keys, the ids and the clock."""

import threading
import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar

from queues.consumers.presence import Presence
from queues.keys.keyspace import Keyspace
from queues.kv.port import KeyValueStore, ReadTransaction, Transaction, Wire
from queues.model.ids import IdGenerator
from queues.serving.background import BackgroundThreads
from queues.serving.batch import Batch
from queues.serving.clock import Clock
from queues.serving.waiters import WaitQueues
from queues.status.attached_counts import AttachedCounts
from queues.status.status_cache import StatusCache


class Batches:
    """The batches of one open store, by what they execute. Each is there while a queue holds it. Thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._batches: weakref.WeakValueDictionary[Hashable, Batch] = weakref.WeakValueDictionary()

    def of(self, what: Hashable, make: Callable[[], Batch]) -> Batch:
        """Return the one batch for this, made now if there is none."""
        with self._mutex:
            batch = self._batches.get(what)
            if batch is None:
                batch = self._batches[what] = make()
            return batch

    def stop(self) -> None:
        """End what batches do by themselves."""
        with self._mutex:
            batches = list(self._batches.values())
        for batch in batches:
            batch.stop()


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreContext:
    """One open store's parts."""

    kv: KeyValueStore
    keyspace: Keyspace
    id_generator: IdGenerator
    clock: Clock
    counts: AttachedCounts
    #: What this process takes, told to other processes.
    presence: Presence
    #: What it does in threads of its own.
    background_threads: BackgroundThreads = field(default_factory=BackgroundThreads)
    #: Callers of this process that wait for items.
    wait_queues: WaitQueues = field(default_factory=WaitQueues)
    #: What executes requests of concurrent callers together.
    batches: Batches = field(default_factory=Batches)
    #: What carries requests to the process that hosts an embedded store.
    wire: Wire | None = None
    #: What it has read of queues.
    statuses: StatusCache = field(default_factory=StatusCache)

    def read(self, fn: Callable[[ReadTransaction], T], tr: ReadTransaction | None) -> T:
        """Run `fn` in the caller's transaction, or in a read of its own."""
        return fn(tr) if tr is not None else self.kv.read(fn)

    def transact(self, fn: Callable[[Transaction], T], tr: Transaction | None) -> T:
        """Run `fn` in the caller's transaction, or in one of its own."""
        return fn(tr) if tr is not None else self.kv.transact(fn)
