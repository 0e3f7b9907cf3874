"""The store: where named queues live, and how to reach them."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Self, TypeVar

from queues.actions.actions import Actions
from queues.actions.audited_action import RequestKey
from queues.audit.audit_log import Audit
from queues.background.service import Upkeep
from queues.background.sweeper import Sweeper, Swept
from queues.background.unclaimed_staging import sweep_unclaimed
from queues.bulk.chunk import Shown, all_shown
from queues.bulk.runner import JobRunner
from queues.catalog import store_record
from queues.consumers.presence import Presence
from queues.context import StoreContext
from queues.errors import QueueNotFound, TooLarge
from queues.history import History
from queues.history.recorder import Recorder
from queues.items.counters import total_bytes
from queues.keys.keyspace import Keyspace
from queues.kv.port import KeyValueStore, ReadTransaction, Transaction
from queues.model.duration import TIMEOUT, Duration, seconds_of
from queues.model.ids import IdGenerator
from queues.model.store_address import StoreAddress
from queues.operations import idempotency
from queues.operations.idempotency import Answer
from queues.operations.plain_functions import checked
from queues.operations.request_wire import RequestWire
from queues.operations.space import Space
from queues.operations.targets import StoredTargets
from queues.operations.wait import LONGEST, Outlook
from queues.queue import Queue
from queues.queue_catalog import QueueCatalog
from queues.serving.background import BackgroundThreads
from queues.serving.clock import GivenClock, StoreClock
from queues.status.attached_counts import AttachedCounts
from queues.status.site_protocol import Site
from queues.status.snapshots import read_statuses
from queues.status.status import Snapshot
from queues.tools.doctor import Doctor

T = TypeVar("T")

#: A function of `read` and `transact`, in errors about it.
_FUNCTION = "The function of a transaction"
#: A snapshot is one transaction: 500 queues take some 25 ms.
MAX_SNAPSHOT = 500


class Store(QueueCatalog):
    """An open store. Thread-safe; close it, or use it in a `with` statement."""

    #: Whether the processes that open the store do what is due in it; else its server does.
    tended = True
    #: What the site of a remote store tells beside the verbs; None of a store that this process opened itself.
    site: Site | None = None
    #: What the server of a remote store calls this program, and what its token allows.
    caller: str = ""
    verbs: tuple[str, ...] = ()

    def __init__(
        self,
        kv: KeyValueStore,
        *,
        url: str,
        keyspace: Keyspace,
        clock: Callable[[], float],
        background_threads: BackgroundThreads | None = None,
        id_generator: IdGenerator | None = None,
    ) -> None:
        #: None where the caller gives the time.
        self.clock = clock if isinstance(clock, StoreClock) else None
        threads = background_threads or BackgroundThreads()
        # Where a caller gives the time, another process could not tell it.
        wire = None if self.clock is None else RequestWire(lambda: self.context, keyspace.root)
        context = StoreContext(
            kv=kv,
            keyspace=keyspace,
            id_generator=id_generator or IdGenerator(clock),
            clock=self.clock or GivenClock(clock),
            counts=AttachedCounts(kv, keyspace, clock),
            presence=Presence(kv, keyspace, clock, threads),
            background_threads=threads,
            wire=wire,
        )
        self._assemble(context, url)
        self.id = store_record.settle(kv, self.context.keyspace, url)
        if self.clock is not None:
            self.clock.open()
        kv.keep_time(clock)
        if wire is not None:
            kv.host(wire)

    def _assemble(self, context: StoreContext, url: str) -> None:
        """Make the parts of the store that share this context."""
        QueueCatalog.__init__(self, context)
        self.url = url
        #: By what another process opens the same store; None when none can, or the clock was given.
        self.address: StoreAddress | None = None
        #: Depths of attached queues, counted in the background.
        self.counts = context.counts
        self.audit = Audit(context)
        self.trash = self._trash
        self.history = History(self.context)
        self.targets = StoredTargets(self.context)
        self.doctor = Doctor(
            self.context, sweep_unclaimed=lambda config: sweep_unclaimed(self.context, self.trash, config)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {self.url}>"

    def close(self) -> None:
        """Finish what was accepted and release the store. Idempotent."""
        self.counts.close()
        self.context.presence.stop()
        self.context.batches.stop()
        if self.clock is not None:
            self.clock.close()
        self.context.kv.close()

    # Actions

    def actions(
        self,
        actor: str,
        *,
        via: str = "web",
        keep: Duration | None = None,
        tr: Transaction | None = None,
        key: RequestKey | None = None,
    ) -> Actions:
        """Return the actions of a person. Each is in the audit, and `undo` reverses what removes or changes something.

        `keep` is how long the trash keeps what they remove: at most 7 days, which is the default; zero keeps nothing.
        It keeps what bulk jobs remove for 7 days all the same.
        Each action is a transaction of its own, or part of `tr`. With a `key` the first action is done once: the second
        time it raises `AlreadyDone` with the first answer. Raises `BadTime`.
        """
        return Actions(self.context, actor=actor, via=via, keep=keep, tr=tr, key=key)

    def job_runner(self, *, shown: Shown = all_shown) -> JobRunner:
        """Return a runner of the store's jobs. `shown` gives, by a queue's config, what a searcher sees of a value."""
        return JobRunner(self.context, shown=shown)

    # Transactions

    def space(self, name: str) -> Space:
        """Return the application's own keys under a name, written in the same transactions as queues.

        Copies and backups carry them. Raises `BadName`.
        """
        return Space(self.context, name)

    def read(self, fn: Callable[[ReadTransaction], T]) -> T:
        """Run `fn` on one consistent version; every looking verb joins with `tr=`.

        A coroutine or a generator as its result raises `TypeError`: `fn` is a plain function.
        """
        return self.context.kv.read(checked(fn, _FUNCTION))

    def transact(self, fn: Callable[[Transaction], T]) -> T:
        """Run `fn` as one atomic transaction and return its result once it is durable.

        Every verb joins with `tr=`. `fn` may run more than once: it is short, and changes nothing but the store.
        An exception from it undoes everything. A coroutine or a generator as its result raises `TypeError`: `fn` is a
        plain function, and calls the verbs for threads.
        """
        return self.context.kv.transact(checked(fn, _FUNCTION))

    def once(self, key: str, execute: Callable[[Transaction], bytes], *, content: bytes = b"") -> Answer:
        """Run `execute` once for each key, as `transact` does. Return its answer: the first one, if it ran before.

        The answer is stored in that transaction and kept for 24 hours: after a crash or `OutcomeUnknown`, repeat it.
        `content` is what the request asks for; another one under the same key raises `KeyReused`. Raises `BadKey`,
        and `BadValue` for what is no bytes.
        """
        now_ms, keyspace = self.context.clock.now_ms(), self.context.keyspace
        return self.context.kv.transact(
            lambda tr: idempotency.once(tr, keyspace, key, lambda: execute(tr), content=content, now_ms=now_ms)
        )

    def first_answer(
        self, key: str, *, content: bytes | None = None, tr: ReadTransaction | None = None
    ) -> Answer | None:
        """Return the answer that `once` stored under a key; None when there is none. Raises `BadKey`.

        With `content`, the answer to another content raises `KeyReused`.
        """
        keyspace = self.context.keyspace
        return self.context.read(lambda tr: idempotency.first_answer(tr, keyspace, key, content=content), tr)

    # Watching

    def snapshot(
        self,
        queue_ids: Sequence[int],
        *,
        previous: Snapshot | None = None,
        preview: int = 256,
        tolerant: bool = False,
        tr: ReadTransaction | None = None,
    ) -> Snapshot:
        """Read the status of at most 500 queues at one read version.

        Queues that did not change since `previous` are not read again; attached ones always are, as other programs
        announce no changes. Values are cut to `preview` bytes. A queue with unreadable records raises
        `QueueUnreadable`; with `tolerant` its status says so (`unreadable`).
        """
        if len(queue_ids) > MAX_SNAPSHOT:
            raise TooLarge("A snapshot covers at most {most} queues.", most=MAX_SNAPSHOT)
        now = self.context.clock.now()
        snapshot = self.context.read(
            lambda tr: read_statuses(
                tr,
                self.context.keyspace,
                queue_ids,
                at_time=now,
                previous=previous,
                preview=preview,
                counts=self.counts,
                tolerant=tolerant,
            ),
            tr,
        )
        self.counts.look(snapshot, previous)
        if tr is None:
            self.remember(snapshot)
        return snapshot

    def remember(self, snapshot: Snapshot) -> None:
        """Keep a snapshot for other readers of this process. Call it after the `read` that made the snapshot.

        What a writing transaction sees is not true yet, and may never be.
        """
        self.context.statuses.put(snapshot.queues)

    def wait_for_change(self, snapshot: Snapshot, *, timeout: Duration) -> bool:
        """Block until a queue of the snapshot, or the directory, may have changed. False after `timeout` seconds."""
        known = {
            self.context.keyspace.change(queue_id): total_bytes(change) for queue_id, change in snapshot.changes.items()
        }
        known[self.context.keyspace.directory_change] = total_bytes(snapshot.directory_change)
        return self.context.kv.watch(known, timeout=seconds_of(timeout, TIMEOUT, endless=True))

    def outlooks(self, queues: Sequence[Queue]) -> dict[Queue, Outlook]:
        """Return the outlooks of those of the queues that exist, at one read version."""

        def read(tr: ReadTransaction) -> dict[Queue, Outlook]:
            found = {}
            for queue in queues:
                with suppress(QueueNotFound):  # deleted: it may be restored
                    found[queue] = queue.outlook(tr=tr)
            return found

        return self.read(read)

    def wait_for_items(self, outlooks: Iterable[Outlook], *, timeout: Duration = LONGEST) -> bool:
        """Block until a queue may have something to take, or something earlier to wait for.

        False after `timeout` seconds. To wait for one queue, give its verbs `wait`.
        """
        known = {key: value for outlook in outlooks for key, value in outlook.known.items()}
        return self.context.kv.watch(known, timeout=seconds_of(timeout, TIMEOUT, endless=True))

    def interrupt(self) -> None:
        """Wake every thread in `wait_for_change` and `wait_for_items`; used at shutdown."""
        self.context.kv.interrupt()

    # Sweeping

    def sweep(self, *, audit_days: int = 0) -> Swept:
        """Do all that is due now, as upkeep does: promote, expire, merge, clear the trash. Return what was done.

        Acts in the audit that are older than `audit_days` are forgotten; 0 keeps them for ever.
        """
        return Sweeper(self.context, audit_days=audit_days).sweep()

    def upkeep(
        self,
        *,
        audit_days: int = 0,
        tell: Callable[[Swept], None] = lambda swept: None,
        on_elected: Callable[[bool], None] = lambda elected: None,
    ) -> Upkeep:
        """Return the offer to sweep this store in the background. Start it, and stop it before closing the store.

        Of all processes that offer it one is elected. `tell` is called with what was done, `on_elected` with whether
        this process is elected. That process deletes audit records that are older than its `audit_days`; 0 keeps them
        forever. It judges queues by the targets in the store.
        """
        return Upkeep(self.context, audit_days=audit_days, tell=tell, on_elected=on_elected)

    def recorder(self, *, count: Callable[[], float] = time.monotonic) -> Recorder:
        """Return what writes histories and health: upkeep does it in whichever process is elected. One at a time.

        `count` is the seconds between its writes.
        """
        return Recorder(self.context, count=count)

    # Time

    def now(self) -> datetime:
        """Return the time by the store's clock, UTC: the same in all its processes."""
        return self.context.clock.now()

    @property
    def skew(self) -> float:
        """The seconds by which this process's wall clock is ahead of the store's clock. Costs no read."""
        return 0.0 if self.clock is None else self.clock.skew

    def set_clock(self, *, by: str, via: str = "cli") -> float:
        """Set the store's clock by this process's own. Return by how many seconds it was set forward.

        All processes follow within seconds; leases and delays keep their times. The audit notes it.
        """
        audit_id = self.context.id_generator.new_id()

        def note(tr: Transaction, was: datetime, now: datetime) -> None:
            before, after = {"time": was.isoformat()}, {"time": now.isoformat()}
            self.audit.write(tr, audit_id, actor=by, via=via, verb="set_clock", count=0, before=before, after=after)

        return 0.0 if self.clock is None else self.clock.set(note)

    def size(self) -> tuple[int, int]:
        """Return (bytes used, bytes allowed); allowed is 0 where the engine sets no limit."""
        return self.context.kv.size()
