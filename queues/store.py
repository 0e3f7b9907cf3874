"""The store: where named queues live, and how to reach them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

from queues import creating, directory, store_record
from queues.acts import Acts
from queues.aside import Aside
from queues.attached.counts import AttachedCounts
from queues.attached.queue import open_queue
from queues.audit import Audit
from queues.backing import Backing
from queues.clock import StoreClock
from queues.config import Config
from queues.doctor import Doctor
from queues.emptying import sweep_trash
from queues.errors import NotForAttached, QueueNotFound, TooLarge
from queues.history import History
from queues.history.recorder import Recorder
from queues.ids import Minter
from queues.item import Item
from queues.job_looks import Shown, all_shown
from queues.job_runner import JobRunner
from queues.jobs import sweep_jobs
from queues.keyspace import Keyspace
from queues.kv import open_kv
from queues.kv.boottime import boottime
from queues.kv.port import Count, KeyValueStore, ReadTransaction, Transaction
from queues.merging import merge
from queues.priority import Priority
from queues.queue import Queue
from queues.snapshots import read_statuses
from queues.status import Snapshot
from queues.store_address import StoreAddress
from queues.sweeper import Sweeper, Swept
from queues.sweeping import sweep_slots
from queues.totals import total_bytes
from queues.trash import KEPT_MS, Trash
from queues.unclaimed import sweep_all_unclaimed, sweep_unclaimed
from queues.upkeep import Upkeep
from queues.waiting import LONGEST, Outlook

T = TypeVar("T")

#: A snapshot is one transaction: 500 queues take some 25 ms.
MAX_SNAPSHOT = 500


def open_store(
    url: str,
    *,
    root: tuple[Any, ...] = ("pq",),
    max_bytes: int | None = None,
    clock: Callable[[], float] | None = None,
    wall: Callable[[], float] = time.time,
    count: Callable[[], Count] | None = None,
    elapsed: Callable[[], float] = boottime,
) -> Store:
    """Open the store at a URL, creating it when it is not there.

    `lmdb:PATH` is a folder on this machine; `memory:` lives and ends with this object. `root` is the tuple under
    which all keys lie. `max_bytes` limits what pushes may fill.

    The last four are for tests. `clock` is the store's time itself, in seconds since the epoch, and the same in every
    process. Without it the store keeps its time: see `queues.clock`, of which the others are this process's sources.
    Raises `BadStoreURL`, `StoreUnavailable` and its
    kinds, `OlderFormat`, `NewerFormat`, `NotAStore`, `CopyUnfinished`, and `KeyTooLarge` for a new store's root of more
    than 192 bytes.
    """
    keyspace = Keyspace(root)
    kv = open_kv(url, max_bytes=max_bytes, slots=keyspace.slots)
    try:
        own = StoreClock(kv, keyspace, wall=wall, count=count or kv.count, elapsed=elapsed, aside=Aside())
        store = Store(kv, url=url, keyspace=keyspace, clock=clock or own)
        if (clock, wall, count, elapsed) == (None, time.time, None, boottime):
            store.address = StoreAddress.of(url, root, max_bytes)
        return store
    except BaseException:
        kv.close()
        raise


class Store:
    """An open store. Thread-safe; close it, or use it in a `with` statement."""

    def __init__(
        self,
        kv: KeyValueStore,
        *,
        url: str,
        keyspace: Keyspace,
        clock: Callable[[], float],
        aside: Aside | None = None,
        minter: Minter | None = None,
    ) -> None:
        self.url = url
        #: By what another process opens the same store; None when none can, or the clock was given.
        self.address: StoreAddress | None = None
        self._kv = kv
        self._keyspace = keyspace
        #: None where the caller gives the time.
        self.clock = clock if isinstance(clock, StoreClock) else None
        #: Depths of attached queues, counted behind the back of whoever looks.
        self.counts = AttachedCounts(kv, keyspace, clock)
        self._backing = Backing(
            kv=kv,
            keyspace=keyspace,
            minter=minter or Minter(clock),
            clock=clock,
            counts=self.counts,
            aside=aside or Aside(),
        )
        self.audit = Audit(self._backing)
        self.trash = Trash(self._backing)
        self.history = History(self._backing)
        self.doctor = Doctor(
            kv,
            keyspace,
            now_ms=self._backing.now_ms,
            sweep_unclaimed=lambda config: sweep_unclaimed(self._backing, self.trash, config),
        )
        self.id = store_record.settle(kv, self._keyspace, url)
        if self.clock is not None:
            self.clock.open()
            kv.keep_time(self.clock)

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
        self._backing.servers.stop()
        if self.clock is not None:
            self.clock.close()
        self._kv.close()

    # Queues

    def create_queue(
        self,
        name: str,
        *,
        kind: str = "priority",
        priority_type: str = "int",
        bands: Sequence[Priority] | None = None,
        exist_ok: bool = False,
        tr: Transaction | None = None,
    ) -> Queue:
        """Create a queue of kind `priority` (priorities of type int, float or str) or `fifo`.

        `bands` are the edges of the priority mix, at most 15. Raises `QueueExists`, unless `exist_ok` and the
        queue that is there is of the same kind, type and (when given) bands.
        """
        config = creating.own_config(
            name, kind=kind, priority_type=priority_type, bands=bands, created_ms=self._backing.now_ms()
        )

        def write(tr: Transaction) -> Config:
            if exist_ok:
                return creating.create_or_find(tr, self._keyspace, config, any_bands=bands is None)
            return creating.create(tr, self._keyspace, config)

        return open_queue(self._backing, self._backing.transact(write, tr))

    def attach(
        self,
        name: str,
        *,
        prefix: bytes | tuple[Any, ...],
        kind: str = "priority",
        priority_type: str = "int",
        tr: Transaction | None = None,
    ) -> Queue:
        """Show and use the items that others keep under a prefix by FoundationDB's recipes, as a queue of this name.

        `kind` says by which recipe; `priority_type` what our own pushes take: reading shows any priority. Raises
        `BadPrefix`, `PrefixTaken` (it overlaps our own keys or another attached queue's) and `QueueExists`.
        """
        config = creating.attached_config(
            name,
            prefix=prefix,
            root=self._keyspace.root,
            kind=kind,
            priority_type=priority_type,
            created_ms=self._backing.now_ms(),
        )
        return open_queue(
            self._backing, self._backing.transact(lambda tr: creating.attach(tr, self._keyspace, config), tr)
        )

    def detach(self, name: str, *, tr: Transaction | None = None) -> None:
        """Forget an attached queue; its items stay where they are. Raises `QueueNotFound`, `NotAttached`."""
        with self.suggesting(tr):
            self._backing.transact(lambda tr: creating.detach(tr, self._keyspace, name), tr)

    def queue(self, name: str, *, tr: ReadTransaction | None = None) -> Queue:
        """Return the queue of this name; raise `QueueNotFound`, outside a transaction with names that look alike."""
        with self.suggesting(tr):
            config = self._backing.read(lambda tr: directory.find(tr, self._keyspace, name), tr)
            return open_queue(self._backing, config)

    def queues(
        self,
        prefix: str = "",
        *,
        after: str | None = None,
        limit: int = 100,
        tr: ReadTransaction | None = None,
    ) -> list[Queue]:
        """Return at most `limit` (1 to 1,000) queues whose names begin with `prefix`, by name.

        `after` is the last name of the page before.
        """
        if not 1 <= limit <= 1_000:
            raise TooLarge("A page has 1 to 1,000 queues.")

        def look(tr: ReadTransaction) -> list[Queue]:
            found = directory.names(tr, self._keyspace, prefix=prefix, after=after, limit=limit)
            reads = [(name, tr.get(self._keyspace.config(queue_id))) for name, queue_id in found.items()]
            configs = [Config.of(name, record) for name, read in reads if (record := read.wait()) is not None]
            return [open_queue(self._backing, config) for config in configs]

        return self._backing.read(look, tr)

    def directory(self, *, tr: ReadTransaction | None = None) -> Mapping[str, int]:
        """Return every queue's id by name, in the order of names."""
        return self._backing.read(lambda tr: directory.names(tr, self._keyspace), tr)

    def rename_queue(self, old: str, new: str, *, tr: Transaction | None = None) -> Queue:
        """Give a queue another name; handles and items stay. Raises `QueueNotFound`, `QueueExists`."""

        def write(tr: Transaction) -> Config:
            return directory.rename(tr, self._keyspace, directory.find(tr, self._keyspace, old), new)

        with self.suggesting(tr):
            return open_queue(self._backing, self._backing.transact(write, tr))

    def delete_queue(self, name: str, *, by: str = "", tr: Transaction | None = None) -> str:
        """Put a queue with all its items into the trash and return the trash id, for `restore`.

        Costs the same at any depth. Handles of it raise `QueueNotFound` until it is restored. An attached queue's
        items are not ours to delete: `NotForAttached`.
        """
        trash_id = self._backing.minter.mint()

        def write(tr: Transaction) -> str:
            queue = self.queue(name, tr=tr)
            config = directory.find(tr, self._keyspace, name)
            if config.attached:
                raise NotForAttached(config.name, "detach it instead, its items stay where they are.")
            # The depth is told only: whoever pushes or pops meanwhile is not in the way.
            self.trash.put_queue(tr, trash_id, config, depth=queue.depth(tr=tr.snapshot), by=by)
            directory.remove(tr, self._keyspace, config)
            return trash_id.hex()

        with self.suggesting(tr):
            return self._backing.transact(write, tr)

    @contextmanager
    def suggesting(self, tr: ReadTransaction | None = None) -> Iterator[None]:
        """Let a `QueueNotFound` that leaves this block name queues that look alike; not inside a transaction `tr`."""
        try:
            yield
        except QueueNotFound as error:
            if tr is not None or error.suggestions:
                raise
            name = error.name
            near = self._kv.read(lambda tr: directory.look_alikes(tr, self._keyspace, name))
            raise QueueNotFound(name, near) from None

    def restore(self, trash_id: str, *, tr: Transaction | None = None) -> Queue | Item:
        """Bring back a queue under its name, or items under their same keys, from the trash.

        Returns the item, or the queue that came back or that holds what came back. Raises `TrashNotFound`,
        `AlreadyRestored`, `QueueExists` (the name is taken), `QueueNotFound` (the item's queue is gone), `PlaceTaken`.
        """
        restored = self._backing.transact(lambda tr: self.trash.restore(tr, trash_id), tr)
        return restored.item if restored.item is not None else open_queue(self._backing, restored.config)

    def acts(self, actor: str, *, via: str = "web", keep: timedelta | None = None) -> Acts:
        """Return the acts of a person: each is audited, and undoable where it removes something.

        `keep` is how long the trash keeps what they take, for programs that act so: at most, and unless given, 7 days;
        zero keeps nothing. Raises `BadTime`.
        """
        return Acts(self, self._backing, actor=actor, via=via, keep=keep)

    def job_runner(self, *, shown: Shown = all_shown) -> JobRunner:
        """Return a runner of the store's jobs; `shown` gives, by a queue's config, what a searcher sees of a value."""
        return JobRunner(self, self._backing, shown=shown)

    # Transactions

    def read(self, fn: Callable[[ReadTransaction], T]) -> T:
        """Run `fn` on one consistent version; every looking verb joins with `tr=`."""
        return self._kv.read(fn)

    def transact(self, fn: Callable[[Transaction], T]) -> T:
        """Run `fn` as one atomic transaction and return its result once it is durable.

        Every verb joins with `tr=`. `fn` may run more than once: it is short, and changes nothing but the store.
        An exception from it undoes everything.
        """
        return self._kv.transact(fn)

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

        Queues that did not change since `previous` are not read again; attached ones always are, as others' changes
        tell nobody. Values are cut to `preview` bytes. A queue whose records can not be read raises; to
        a `tolerant` caller it is one that says so (`unreadable`).
        """
        if len(queue_ids) > MAX_SNAPSHOT:
            raise TooLarge("A snapshot covers at most {most} queues.", most=MAX_SNAPSHOT)
        now = self._backing.now()
        snapshot = self._backing.read(
            lambda tr: read_statuses(
                tr,
                self._keyspace,
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
        """Spare others of this process what was read; of a snapshot inside a transaction, after `read` has returned.

        What a writing transaction sees is not true yet, and may never be.
        """
        self._backing.seen.put(snapshot.queues)

    def wait_for_change(self, snapshot: Snapshot, *, timeout: float) -> bool:
        """Block until a queue of the snapshot, or the directory, may have changed; False after `timeout` seconds."""
        known = {self._keyspace.change(queue_id): total_bytes(change) for queue_id, change in snapshot.changes.items()}
        known[self._keyspace.directory_change] = total_bytes(snapshot.directory_change)
        return self._kv.watch(known, timeout=timeout)

    def wait_for_items(self, outlooks: Iterable[Outlook], *, timeout: float = LONGEST) -> bool:
        """Block until one of several queues may have got something to take, or something earlier to wait for.

        False after `timeout` seconds. To wait for one queue, give its verbs a timeout.
        """
        known = {key: value for outlook in outlooks for key, value in outlook.known.items()}
        return self._kv.watch(known, timeout=timeout)

    def interrupt(self) -> None:
        """Wake every thread in `wait_for_change` and `wait_for_items`; used at shutdown."""
        self._kv.interrupt()

    # Sweeping

    def sweep(self, *, audit_days: int = 0) -> Swept:
        """Do all that is due now, as upkeep does: promote, expire, merge, clear the trash; return what was done.

        Acts in the audit that are older than `audit_days` are forgotten; 0 keeps them for ever.
        """
        return Sweeper(self._backing, audit_days=audit_days).sweep()

    def upkeep(
        self,
        *,
        audit_days: int = 0,
        tell: Callable[[Swept], None] = lambda swept: None,
        on_elected: Callable[[bool], None] = lambda elected: None,
    ) -> Upkeep:
        """Return the offer to sweep this store in the background: start it, and stop it before closing the store.

        Of all processes that offer it one is elected. `tell` hears what was done, `on_elected` who is. The elected one
        forgets acts in the audit that are older than its `audit_days`; 0 keeps them for ever.
        """
        return Upkeep(self._backing, audit_days=audit_days, tell=tell, on_elected=on_elected)

    def recorder(self) -> Recorder:
        """Return what writes histories: upkeep does it in whichever process is elected; one at a time."""
        return Recorder(self._backing)

    def sweep_slots(self) -> int:
        """Clear what clients of a cluster left behind more than 24 hours ago; return how many keys that were."""
        return sweep_slots(self._kv, self._keyspace, now_ms=self._backing.now_ms())

    def sweep_unclaimed(self) -> int:
        """Bring to the trash what other processes popped for ones that vanished minutes ago; return how many items."""
        return sweep_all_unclaimed(self._backing, self.trash)

    def sweep_trash(self, limit: int = 10_000) -> int:
        """Clear what is in the trash beyond its deadline, at most `limit` keys or a step more; return how many."""
        now_ms = self._backing.now_ms()
        sweep_jobs(self._kv, self._keyspace, before_ms=now_ms - KEPT_MS)
        return sweep_trash(self._kv, self._keyspace, now_ms=now_ms, limit=limit)

    def merge_generations(self, limit: int = 10_000) -> int:
        """Merge what undone purges brought back, at most `limit` items or a step more; return how many."""
        return merge(self._kv, self._keyspace, limit=limit)

    # Time

    def now(self) -> datetime:
        """Return the time by the store's clock, UTC: the same in all its processes."""
        return self._backing.now()

    @property
    def skew(self) -> float:
        """The seconds by which this process's wall clock is ahead of the store's clock; costs no read."""
        return 0.0 if self.clock is None else self.clock.skew

    def set_clock(self, *, by: str, via: str = "cli") -> float:
        """Set the store's clock by this process's own; return by how many seconds it was set forward.

        All processes follow within seconds; leases and delays keep their times. The audit notes it.
        """
        audit_id = self._backing.minter.mint()

        def note(tr: Transaction, was: datetime, now: datetime) -> None:
            before, after = {"time": was.isoformat()}, {"time": now.isoformat()}
            self.audit.write(tr, audit_id, actor=by, via=via, verb="set_clock", count=0, before=before, after=after)

        return 0.0 if self.clock is None else self.clock.set(note)

    def size(self) -> tuple[int, int]:
        """Return (bytes used, bytes allowed); allowed is 0 where the engine sets no limit."""
        return self._kv.size()
