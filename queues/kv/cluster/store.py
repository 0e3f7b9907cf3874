"""The cluster store: transactions with their retries, watches bridged to threads, and how long to be patient."""

import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from queues.kv import lifecycle
from queues.kv.cluster.client import open_database
from queues.kv.cluster.silence import Silence
from queues.kv.cluster.transaction import ClusterTransaction
from queues.kv.cluster.watches import Watches
from queues.kv.commit_slots import SlotPool
from queues.kv.errors import StoreError, StoreUnavailable
from queues.kv.exactly_once import PATIENCE, ExactlyOnce, NotCommitted
from queues.kv.group_commit import Combiners
from queues.kv.lifecycle import Lifecycle
from queues.kv.port import MAX_TRANSACTION_SECONDS, Count, ReadTransaction, Transaction, Wire
from queues.kv.watching import Wake, WatchBoard, Watcher

T = TypeVar("T")

#: See `Combiner`.
LINGER, PAUSES, ABREAST = 0.1, (0.0, 0.005), 4
#: Seconds that one try may take, to its commit's answer.
TRY_TIMEOUT = 5.0
#: Seconds that a read is tried, unless the cluster is silent.
READ_PATIENCE = 5.0
#: Seconds that background work is tried: a cluster serves all other callers first.
BACKGROUND_PATIENCE = 60.0
#: Seconds between two looks at whether the cluster still answers, while a thread waits in `watch`; and how long one
#: of them may take.
PROBE_EVERY, PROBE_PATIENCE = 2.0, 2.0
#: Seconds after which a watch that did not fire is checked by reading.
RECHECK_EVERY = 30.0


class ClusterStore:
    """A `KeyValueStore` on a FoundationDB cluster."""

    def __init__(
        self, database: Any, url: str, *, clock: Callable[[], float] = time.monotonic, slots: bytes | None = None
    ) -> None:
        self.database = database
        self._clock = clock
        self._lifecycle = Lifecycle(url)
        self._slots = None if slots is None else SlotPool(slots)
        self.exactly_once = ExactlyOnce(self._slots)
        self._combiners = combiners = Combiners(
            self._apply, self._lifecycle, linger=LINGER, pauses=PAUSES, abreast=ABREAST
        )
        #: Requests of concurrent callers: see `KeyValueStore`.
        self.serve, self.submit, self.withdraw = combiners.serve, combiners.submit, combiners.withdraw
        self.execute_here = combiners.execute_here
        self.board = WatchBoard()
        self._watches = Watches(self.board)
        self._random = random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._count_lock = threading.Lock()
        self._reads = 0
        self._silence = Silence(clock)

    def begin(self, *, background: bool = False, timeout: float = TRY_TIMEOUT) -> ClusterTransaction:
        """Begin a transaction to be driven step by step. Its `commit` raises what `transact` would retry."""
        self._lifecycle.check()
        return self._begin(background=background, timeout=timeout)

    def read(self, fn: Callable[[ReadTransaction], T], *, background: bool = False) -> T:
        """Run `fn` on one consistent version and return its result."""
        with self._lifecycle.operation():
            return self._look(lambda tr: fn(tr.snapshot), background=background)

    def transact(self, fn: Callable[[Transaction], T], *, background: bool = False) -> T:
        """Run `fn`, commit, and return its result; conflicts are retried, unknown commits are settled."""
        with self._lifecycle.operation():
            return self._apply(fn, background=background)

    def watch(self, known: Mapping[bytes, bytes | None], *, timeout: float) -> bool:
        """Block until a key's value differs from what is known, or the time is up.

        Raises `StoreUnavailable` when the cluster stops answering meanwhile: silence is not the same as no change.
        """
        lifecycle.refuse_nesting()
        self._lifecycle.check()
        deadline = time.monotonic() + timeout
        recheck_at = time.monotonic() + RECHECK_EVERY
        while True:
            watcher = Watcher(known, self)
            self.board.add(watcher)
            try:
                self._lifecycle.check()
                missing = self._watches.unset(known)
                if missing and not self._set_watches(missing):
                    return True
                self._probe()
                if time.monotonic() >= recheck_at:
                    recheck_at += RECHECK_EVERY
                    if self._differs(known):
                        return True
                left = deadline - time.monotonic()
                if self.board.wait(watcher, min(left, PROBE_EVERY)):
                    return True
                if left <= PROBE_EVERY:
                    return False
            finally:
                self.board.discard(watcher)

    def interrupt(self) -> None:
        """Wake every thread that is in `watch`."""
        if not self._lifecycle.forked:
            self.board.rouse_all(Wake.INTERRUPTED, self)

    def host(self, wire: Wire) -> None:
        """Do nothing: each process of this engine executes its own requests."""

    def count(self) -> Count:
        """Return the version of a commit made now, in the epoch that the cluster's last recovery began."""
        lifecycle.refuse_nesting()
        self._lifecycle.check()
        return self._look(lambda tr: tr.count())

    def keep_time(self, clock: Callable[[], float]) -> None:
        """Take the times of slots' marks from this clock."""
        self.exactly_once.wall = clock

    def reads(self) -> int:
        """Return how many reads have been issued through this store."""
        return self._reads

    def size(self) -> tuple[int, int]:
        """Return (about how many bytes the cluster's keys and values take, 0): it sets no limit."""
        self._lifecycle.check()
        return self._look(lambda tr: tr.estimate_size()), 0

    def close(self) -> None:
        """Wait for what is under way, refuse the rest, drop the watches and the slots. Idempotent."""
        lifecycle.refuse_nesting()
        if not self._lifecycle.close():
            return
        self.board.rouse_all(Wake.CLOSED, self)
        patience = 2 * MAX_TRANSACTION_SECONDS
        drained = self._combiners.close(self._lifecycle.refusal, patience) and self._lifecycle.drain(patience)
        self._watches.cancel()
        if (
            drained
            and self._slots is not None
            and self._slots.used
            and not self._silence
            and not self.exactly_once.in_doubt
        ):
            self._clear(*self._slots.range)

    # Inside

    def _apply(self, fn: Callable[[Transaction], T], *, background: bool = False) -> T:
        """Run `fn` and commit, for an operation that was accepted."""
        began = self._clock()
        patience = self._silence.patience(BACKGROUND_PATIENCE if background else PATIENCE, background=background)
        timeout = min(TRY_TIMEOUT, patience)
        try:
            result = self.exactly_once.run(
                lambda: self._begin(background=background, timeout=timeout), fn, patience=patience
            )
        except StoreUnavailable:
            if not background:  # which a busy cluster may not serve at all
                self._silence.begins(began)
            raise
        self._silence.ends()
        return result

    def _begin(self, *, background: bool = False, timeout: float = TRY_TIMEOUT) -> ClusterTransaction:
        return ClusterTransaction(
            self.database, clock=self._clock, timeout=timeout, background=background, ended=self._count
        )

    def _look(self, fn: Callable[[ClusterTransaction], T], *, background: bool = False, probe: bool = False) -> T:
        """Run `fn` in transactions that commit nothing, until one reads to its end."""
        if probe:
            patience = PROBE_PATIENCE
        else:
            usual = BACKGROUND_PATIENCE if background else READ_PATIENCE
            patience = self._silence.patience(usual, background=background)
        began = self._clock()
        attempt = 0
        while True:
            left = max(0.1, patience - (self._clock() - began))
            tr = self._begin(background=background, timeout=min(TRY_TIMEOUT, left))
            try:
                with lifecycle.running():
                    result = fn(tr)
                self._silence.ends()
                return result
            except NotCommitted as failure:
                attempt += 1
                if self._clock() - began >= patience:
                    if not isinstance(failure.error, StoreUnavailable):
                        self._silence.ends()
                    elif not (background or probe):
                        self._silence.begins(began)
                    raise failure.error from failure
                time.sleep(self._random.uniform(0, min(0.05, 0.001 * 2 ** min(attempt, 8))))
            finally:
                tr.cancel()

    def _set_watches(self, known: Mapping[bytes, bytes | None]) -> bool:
        return self._look(lambda tr: self._watches.begin(tr, known))

    def _differs(self, known: Mapping[bytes, bytes | None]) -> bool:
        def look(tr: ClusterTransaction) -> bool:
            reads = {key: tr.snapshot.get(key) for key in known}
            return any(read.wait() != known[key] for key, read in reads.items())

        return self._look(look)

    def _probe(self) -> None:
        """Make sure that the cluster answers, unless it just did."""
        if self._clock() - self._silence.answered_at > PROBE_EVERY:
            self._look(lambda tr: tr.get_read_version(), probe=True)

    def _count(self, reads: int) -> None:
        if reads:
            with self._count_lock:
                self._reads += reads

    def _clear(self, begin: bytes, end: bytes) -> None:
        """Leave no slots behind; what stays in spite of this is swept after a day."""
        tr = self._begin(timeout=1.0)
        try:
            tr.clear_range(begin, end)
            tr.commit()
        except (NotCommitted, StoreError):
            pass  # swept after a day
        finally:
            tr.cancel()


def open_cluster(
    cluster_file: str, *, clock: Callable[[], float] = time.monotonic, slots: bytes | None = None
) -> ClusterStore:
    """Open the cluster of a cluster file; "" is the default file of this machine."""
    return ClusterStore(open_database(cluster_file), f"fdb:{cluster_file}", clock=clock, slots=slots)
