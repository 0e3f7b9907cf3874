"""The sweeper: does what falls due in a store, also in queues from which no process takes items.

Each round does some of it: delayed items become ready, expired leases end, the trash is cleared beyond its deadlines,
undone purges are merged, and periodic tasks go on. The due index says what falls due next, and the sweeper sleeps
exactly until then, however many queues there are. Every step is idempotent: of two sweepers, one finds it done.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields

from queues.background import due_index
from queues.background.audit_retention import check_days, sweep_audit
from queues.background.empty_trash import sweep_trash
from queues.background.merge_generations import merge
from queues.background.stale_commit_slots import sweep_slots
from queues.background.unclaimed_staging import sweep_unclaimed, unclaimed_in
from queues.bulk.bulk_job import sweep_jobs
from queues.bulk.push_parts import KEPT_MS as LAID_MS
from queues.bulk.push_parts import sweep_incoming
from queues.consumers.consumer import BEAT, sweep_consumers
from queues.context import StoreContext
from queues.errors import (
    Conflict,
    ForkedStore,
    OutcomeUnknown,
    QueueError,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreUnavailable,
    TransactionTooOld,
)
from queues.items import delayed, lease_expiry
from queues.items.finished import sweep_finished
from queues.kv.port import ReadTransaction, Transaction
from queues.model.config import Config
from queues.model.records import Tell, warn
from queues.operations.idempotency import KEPT_MS as ANSWERS_MS
from queues.operations.idempotency import sweep_answers
from queues.trash.trash import KEPT_MS, Trash

log = logging.getLogger("queues.background.sweeper")

#: Seconds after which it looks again though nothing woke it: half of what counts as soon in the due index.
LONGEST = 10.0
#: Queues of one look; items of one transaction, and transactions of one queue before the next one's turn.
QUEUES, _ITEMS, _TURNS = 500, 100, 10
#: Keys of the trash, and items of undone purges, of one round; and steps over the audit and finished items.
_KEYS, _AUDIT_STEPS, _FINISHED_STEPS = 2_000, 4, 8
#: Seconds between rounds over what is due once a day, looks at all queues, and looks at finished items.
_DAILY, _HOURLY, _MINUTELY = 24 * 3600.0, 3600.0, 60.0
#: Seconds for which a queue is left alone when the store failed there, and when the queue itself is damaged.
_AFTER_TROUBLE, _AFTER_DAMAGE = 1.0, 60.0
#: Failures of the store that may be over in a moment.
_TROUBLE = (StoreUnavailable, TransactionTooOld, OutcomeUnknown)
#: Seconds after a due time, at least and at most: workers that wait for it do it first, so that it is done once.
_JITTER = 0.01, 0.03

_random = random.Random()  # noqa: S311 - spreads processes, guards nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep did, by kind."""

    #: Delayed items that were due and are ready now.
    promoted: int = 0
    #: Leases that had expired: their items are back, or dead after the last attempt.
    expired: int = 0
    #: Items of undone purges that were brought to their queue's newest generation.
    merged: int = 0
    #: Keys of the trash beyond its deadlines.
    trash: int = 0
    #: Items that other processes popped for ones that died since: they are in the trash now.
    unclaimed: int = 0
    #: Slots that clients left behind.
    slots: int = 0
    #: Actions that the audit no longer keeps.
    audit: int = 0
    #: Answers of requests with idempotency keys that were older than 24 hours.
    answers: int = 0
    #: Consumers without heartbeats any more.
    consumers: int = 0
    #: Records of finished items that were too old or too many.
    finished: int = 0

    def __add__(self, other: "Swept") -> "Swept":
        return Swept(**{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)})

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round did, and when the next one is worth it."""

    swept: Swept
    #: Seconds until something else falls due; 0: there is more to do.
    rest: float
    #: What to watch meanwhile.
    known: Mapping[bytes, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What a round found to do, at one read version."""

    due: due_index.DueIndex
    wake: bytes | None
    #: The first deadline of the trash, and whether it has passed.
    trash_ms: int | None
    trash_due: bool
    merging: bool
    #: Consumers tell of themselves.
    consuming: bool


@dataclass(slots=True, kw_only=True)
class _Task:
    """A kind of work of which each round does some steps."""

    #: The field of `Swept` that counts it, and its name in the log.
    kind: str
    what: str
    steps: Callable[[], Iterator[int]]
    #: Whether there is something to do, as a round saw it.
    wanted: Callable[[_Seen], bool] = lambda seen: True
    #: Seconds until it is due again after it was done, and after it failed or met only what cannot be read.
    every: float = _HOURLY
    again: float = _HOURLY
    #: Steps of one round; the end counts as one.
    at_once: int = 2
    at: float = 0.0
    #: Its steps that are left, while it is under way.
    left: Iterator[int] | None = None

    def is_due(self, seen: _Seen, now: float) -> bool:
        """Say whether there is something to do now."""
        return self.left is not None or (now >= self.at and self.wanted(seen))

    def run(self, now: float) -> int:
        """Do some steps, and return how many things they did."""
        steps, self.left, self.at = self.left or self.steps(), None, now + self.again
        done = 0
        for _ in range(self.at_once):
            step = next(steps, None)
            if step is None:
                self.at = now + self.every
                return done
            done += step
        self.left = steps
        return done


class Sweeper:
    """Sweeps one store, round by round. One thread calls it."""

    def __init__(
        self, context: StoreContext, *, audit_days: int = 0, count: Callable[[], float] = time.monotonic
    ) -> None:
        self._context = context
        #: For how long actions are kept; 0: for ever.
        self._audit_days = check_days(audit_days)
        self._kv, self._keyspace = context.kv, context.keyspace
        self._trash = Trash(context)
        self._count = count
        self._stopping: Callable[[], bool] = lambda: False
        self._tasks = (
            _Task(
                kind="merged",
                what="undone purges",
                steps=self._merge,
                wanted=lambda seen: seen.merging,
                every=0,
                again=0,
            ),
            _Task(kind="trash", what="trash", steps=self._clear, wanted=lambda seen: seen.trash_due, every=0, again=0),
            _Task(kind="unclaimed", what="queues", steps=self._claim, again=_AFTER_DAMAGE),
            _Task(kind="slots", what="slots", steps=self._forget, every=_DAILY, again=_DAILY),
            _Task(kind="answers", what="answers of requests", steps=self._forget_answers),
            _Task(
                kind="consumers",
                what="consumers",
                steps=self._end_consumers,
                wanted=lambda seen: seen.consuming,
                every=BEAT,
                again=BEAT,
            ),
            _Task(
                kind="finished",
                what="finished items",
                steps=self._forget_finished,
                every=_MINUTELY,
                again=_MINUTELY,
                at_once=_FINISHED_STEPS,
            ),
            _Task(kind="audit", what="old actions of the audit", steps=self._forget_actions, at_once=_AUDIT_STEPS),
        )
        self.begin()

    def begin(self) -> None:
        """Look at everything in the next round, whatever was done before."""
        for task in self._tasks:
            task.at, task.left = self._count(), None
        #: Queues that failed, and until when they are left alone.
        self._resting: dict[int, float] = {}
        #: What could not be read since the task began that runs now.
        self._unreadable: list[str] = []
        #: The damage of the store's file that was met.
        self._damage: StoreDamaged | None = None
        #: Kinds of work that fail, and what cannot be read: told once.
        self._failing: set[str] = set()

    def sweep(self) -> Swept:
        """Do all that is due now, and return what was done. Raise `StoreDamaged` at the end where damage was met."""
        swept = Swept()
        while True:
            done = self.round()
            swept += done.swept
            if done.rest > 0:
                if self._damage is not None:
                    raise self._damage
                return swept

    def run(self, going: Callable[[], bool], tell: Callable[[Swept], None] = lambda swept: None) -> None:
        """Sweep for as long as `going` says so. Interrupting the store's watches lets it ask again."""
        self._stopping = lambda: not going()
        pause = threading.Event()
        self.begin()
        while going():
            began = self._count()
            done = self.round()
            if done.swept:
                tell(done.swept)
            if done.rest and going():
                jitter = _random.uniform(*_JITTER)
                self._kv.watch(done.known, timeout=min(LONGEST, done.rest + jitter))
                # Whatever wakes it very often is served in one go.
                pause.wait(max(0.0, began + _JITTER[1] - self._count()))

    def round(self) -> Round:
        """Do some of what is due now."""
        now_ms = self._context.clock.now_ms()
        swept = Swept()
        self._resting = {queue_id: until for queue_id, until in self._resting.items() if until > self._count()}
        seen = self._kv.read(lambda tr: self._look(tr, now_ms))
        upcoming = [] if seen.due.next_ms is None else [seen.due.next_ms]
        stale, late = [], []
        for queue in seen.due.queues:
            if queue.moment_ms is not None and queue.moment_ms <= now_ms:
                late.append(queue)
            elif not queue.settled:
                stale.append(queue)
            elif queue.moment_ms is not None:
                upcoming.append(queue.moment_ms)
        for queue in late:
            if self._stopping():
                break
            swept += self._visit(queue.queue_id, now_ms)
        if stale:
            self._kv.transact(lambda tr: due_index.settle(tr, self._keyspace, stale))
        for queue_id in seen.due.unreadable:
            self._tell_once(f"Queue {queue_id}", ValueError("its config or its due times cannot be read"))
        crowding = {queue_id: seconds for queue_id, seconds in seen.due.stuck.items() if len(seconds) > 1}
        if crowding:
            self._kv.transact(lambda tr: due_index.collapse(tr, self._keyspace, crowding))
        more = bool(late or stale or crowding)
        if seen.trash_ms is not None and not seen.trash_due:
            upcoming.append(seen.trash_ms)
        for task in self._tasks:
            if task.is_due(seen, self._count()):
                done = self._attempt(task)
                swept += Swept(**{task.kind: done})
                more |= task.left is not None or (bool(done) and task.every == 0)
        rests = [LONGEST, *((ms - now_ms) / 1000 for ms in upcoming)]
        rests += [BEAT] if seen.consuming else []
        rests += [until - self._count() for until in self._resting.values()]
        return Round(
            swept=swept,
            rest=0.0 if more else max(0.001, min(rests)),
            known={self._keyspace.due_wake: seen.wake},
        )

    def _look(self, tr: ReadTransaction, now_ms: int) -> _Seen:
        wake = tr.get(self._keyspace.due_wake)
        trash, merging = tr.get_key(*self._keyspace.deadlines.all), tr.get_key(*self._keyspace.merges.all)
        consumer = tr.get_key(*self._keyspace.consumers.all)
        seen = due_index.look(tr, self._keyspace, now_ms=now_ms, limit=QUEUES, resting=self._resting)
        deadline = trash.wait()
        trash_ms = None if deadline is None else self._keyspace.deadlines.elements(deadline)[0]
        return _Seen(
            due=seen,
            wake=wake.wait(),
            trash_ms=trash_ms,
            trash_due=trash_ms is not None and trash_ms <= now_ms,
            merging=merging.wait() is not None,
            consuming=consumer.wait() is not None,
        )

    def _visit(self, queue_id: int, now_ms: int) -> Swept:
        """Do what is late in one queue, or some of it. A queue that fails is left alone for a while."""
        swept = Swept()
        told: dict[str, Exception] = {}
        try:
            for _ in range(_TURNS):
                done = self._kv.transact(lambda tr: self._promote_and_expire(tr, queue_id, now_ms, told.__setitem__))
                swept += done
                if not done or self._stopping():
                    break
            for what, error in told.items():
                self._tell_once(what, error)
            if told and not done:  # there is nothing but what cannot be read
                self._resting[queue_id] = self._count() + _AFTER_DAMAGE
        except (StoreClosed, ForkedStore):
            raise
        except Conflict:
            pass  # another process does it at this moment: the next round looks what is left
        except Exception as error:
            rest = _AFTER_TROUBLE if isinstance(error, _TROUBLE) else _AFTER_DAMAGE
            self._note_damage(error)
            log.warning("Queue %d rests for %g s: %s: %s", queue_id, rest, type(error).__name__, error)
            self._resting[queue_id] = self._count() + rest
        return swept

    def _promote_and_expire(self, tr: Transaction, queue_id: int, now_ms: int, tell: Tell) -> Swept:
        record = tr.get(self._keyspace.configs.key(queue_id)).wait()
        if record is None:
            return Swept()
        config, keys = Config.decode(record), self._keyspace.queue(queue_id)
        promoted = delayed.promote_due(tr, keys, config, until_ms=now_ms, limit=_ITEMS, tell=tell)
        expired = lease_expiry.expire_due(
            tr, keys, config, until_ms=now_ms, limit=_ITEMS, budget=delayed.BUDGET, tell=tell
        )
        return Swept(promoted=promoted, expired=expired)

    def _merge(self) -> Iterator[int]:
        yield merge(self._kv, self._keyspace, limit=_KEYS, tell=self._tell_once)

    def _clear(self) -> Iterator[int]:
        now_ms = self._context.clock.now_ms()
        yield sweep_trash(self._kv, self._keyspace, now_ms=now_ms, limit=_KEYS, tell=self._tell_once)

    def _claim(self) -> Iterator[int]:
        """Bring results of staging that no process claims to the trash, and yield how many items."""
        for config in unclaimed_in(self._context):
            yield 0 if config is None else sweep_unclaimed(self._context, self._trash, config, tell=self._tell_once)

    def _forget(self) -> Iterator[int]:
        """Forget jobs, items of jobs and commit slots that no process needs any more. Yield how many slots."""
        now_ms = self._context.clock.now_ms()
        for _ in sweep_jobs(self._kv, self._keyspace, before_ms=now_ms - KEPT_MS):
            yield 0
        sweep_incoming(self._kv, self._keyspace, before_ms=now_ms - LAID_MS)
        yield sweep_slots(self._kv, self._keyspace, now_ms=now_ms)

    def _forget_answers(self) -> Iterator[int]:
        yield sweep_answers(self._kv, self._keyspace, before_ms=self._context.clock.now_ms() - ANSWERS_MS)

    def _end_consumers(self) -> Iterator[int]:
        yield sweep_consumers(self._kv, self._keyspace, now_ms=self._context.clock.now_ms())

    def _forget_finished(self) -> Iterator[int]:
        return sweep_finished(self._kv, self._keyspace, now_ms=self._context.clock.now_ms)

    def _forget_actions(self) -> Iterator[int]:
        return sweep_audit(self._kv, self._keyspace, now_ms=self._context.clock.now_ms(), days=self._audit_days)

    def _tell_once(self, what: str, error: Exception) -> None:
        self._unreadable.append(what)
        if what not in self._failing:
            self._failing.add(what)
            warn(what, error)

    def _note_damage(self, error: Exception) -> None:
        if isinstance(error, StoreDamaged):
            self._damage = error

    def _attempt(self, task: _Task) -> int:
        """Run a task. A failure is logged once, until the task succeeds again. Other tasks go on."""
        self._unreadable = []
        try:
            done = task.run(self._count())
        except (StoreClosed, ForkedStore):
            raise
        except Exception as error:
            self._note_damage(error)
            if task.what not in self._failing:
                known = isinstance(error, StoreError | QueueError)
                log.warning("%s were not swept: %s: %s", task.what, type(error).__name__, error, exc_info=not known)
            self._failing.add(task.what)
            return 0
        self._failing.discard(task.what)
        if self._unreadable and not done and task.left is None:
            task.at = self._count() + _AFTER_DAMAGE  # there was nothing but what cannot be read
        return done
