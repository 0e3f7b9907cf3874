"""Staging: where pops of several processes keep conflicting, one process executes the requests of all.

Each process executes requests of its own callers together (`queues.kv.group_commit`), so only processes compete for the
ends of a queue. After two conflicts of a batch its process becomes the *fulfiller* of the queue, by a record that the
other processes see. While it is there, they write their requests and wait for the results. The fulfiller reads the
requests with the ends, and executes its own and theirs in one transaction.

The record is for speed; nothing depends on it, and several processes may believe to be the fulfiller. Three rules give
every item to exactly one caller:

- the fulfiller's transaction conflicts with every other one that takes one of its items (as every take does),
- and with the process that gives up a request that it answers;
- a result is returned once its removal from the store is committed, and not before.

A process that dies leaves a request or a result behind. Results of pops that stay unclaimed for a while go to the
trash: they may have been delivered, so they never become ready again by themselves. Leases of such results expire like
any other. A waiting process gives up after a quarter of a second and executes its batch itself.
"""

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from queues.errors import (
    ForkedStore,
    OutcomeUnknown,
    QueueError,
    QueueNotFound,
    QueuePaused,
    StoreClosed,
    StoreError,
    TooLarge,
    display_name,
)
from queues.items.counters import CounterDelta
from queues.keys.queue_keys import QueueKeys
from queues.kv.port import KeyValueStore, Transact, Transaction
from queues.model.log_limit import LogLimit
from queues.serving import staging_records
from queues.serving.background import BackgroundThreads
from queues.serving.batch import Batch, Execution
from queues.serving.leadership import Holding, Leadership
from queues.serving.staging_records import Take

log = logging.getLogger("queues.serving.staging")

#: Conflicts of one batch after which its process becomes the fulfiller.
CONFLICTS = 2
#: Seconds for which the role lasts without being renewed; after which it is renewed; after which a fulfiller without
#: requests of other processes releases it.
HELD, RENEWED, LAPSE = 1.0, 0.3, 1.0
#: Seconds that a process waits for a result; between two looks for it, and for requests, at least and at most.
PATIENCE, LOOK, LONGEST_LOOK = 0.25, 0.002, 0.02
#: Seconds after which a fulfiller leaves a request alone: its process has given up or died.
FRESH = 30.0
#: Own requests of a batch while requests of other processes wait.
_OWN = 100

Answers = Sequence[Any]


class _Busy(Exception):
    """Another process is the fulfiller."""


class _Crowded(Exception):
    """The batch has conflicted often enough."""


class _Lost(Exception):
    """This process is no longer the fulfiller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """What one transaction of a fulfiller did."""

    #: The answers of its own requests.
    answers: Answers
    #: How many requests of other processes were answered.
    served: int
    #: The requests that were there, and since when.
    seen: dict[bytes, float]
    #: Requests for which there was no room, unless a request left by the last round came first.
    left: frozenset[bytes]


class Staging(Batch):
    """This process's part in the staging of one queue. Its batches are conducted one after the other."""

    def __init__(self, queue: Any, execution: Execution, *, kinds: Any, idle: Take) -> None:
        super().__init__(queue, execution)
        self._queue = queue
        self._keys: QueueKeys = queue.keys
        self._kv: KeyValueStore = queue.context.kv
        self._aside: BackgroundThreads = queue.context.background_threads
        self._now_ms: Callable[[], int] = queue.context.clock.now_ms
        #: The union of the kinds of requests, by which those of other processes are read.
        self._kinds = kinds
        #: A request that takes nothing: a batch of it serves other processes alone.
        self._idle = idle
        self._leadership = Leadership(seconds=HELD, now_ms=self._now_ms, monotonic=self._aside.now)
        #: Set while this process is the fulfiller: stands for the thread that runs its rounds.
        self._keeper: object | None = None
        self._renewed_at = 0.0
        #: When requests of other processes were answered last.
        self._load_at = 0.0
        #: Requests of other processes as last seen, and since when: their own times come from clocks that may differ.
        self._asked: dict[bytes, float] | None = None
        #: Requests for which the last round had no room; they come first now and then.
        self._left: frozenset[bytes] = frozenset()
        #: Seconds that recent results took.
        self._wait = 0.0
        self._limited = LogLimit(log, monotonic=self._aside.now)

    def conduct(self, transact: Transact, requests: Sequence[Take]) -> Answers:
        """Execute a batch: alone, by another process, or with the requests of other processes."""
        takes = self.prepare(requests)
        alone = False
        for _ in range(4):
            if self._keeper is not None:
                try:
                    return self._fulfil(transact, takes)
                except _Lost:
                    self._keeper = None
            if not any(take.n for take in takes):
                return [[] for _ in takes]
            try:
                return self._directly(transact, takes, alone=alone, patient=False)
            except _Crowded:
                if transact(partial(self._engage, by_force=alone)):
                    self._begin_keeping()
                    continue
            except _Busy:
                pass
            answers = self._ask(transact, takes)
            if answers:
                return answers
            alone = True  # there was no result in time
        return self._directly(transact, takes, alone=True, patient=True)

    # Executing alone

    def _directly(self, transact: Transact, takes: Sequence[Take], *, alone: bool, patient: bool) -> Answers:
        tries = 0

        def attempt(tr: Transaction) -> Answers:
            nonlocal tries
            tries += 1
            if tries > CONFLICTS and not patient:
                raise _Crowded
            if alone:
                return self.execute(tr, takes)
            record = tr.snapshot.get(self._keys.staging)
            if self._leadership.contested and not self._is_free(record.wait()):
                raise _Busy
            answers = self.execute(tr, takes)
            if not self._is_free(record.wait()):
                raise _Busy
            return answers

        answers: Answers = transact(attempt)
        return answers

    def _is_free(self, record: bytes | None) -> bool:
        return self._leadership.is_free(Holding.decode(record))

    # Being the fulfiller

    def _engage(self, tr: Transaction, *, by_force: bool) -> bool:
        """Become the fulfiller, unless there is one."""
        held = Holding.decode(tr.get(self._keys.staging).wait())
        if not self._leadership.is_free(held) and not by_force:
            return False
        tr.use_reserve()
        tr.set(self._keys.staging, self._leadership.taken(held).encode())
        CounterDelta(self._keys, wake=False).apply(tr)
        return True

    def _begin_keeping(self) -> None:
        self._renewed_at = self._load_at = self._aside.now()
        self._asked, self._left = None, frozenset()
        keeper = self._keeper = object()
        self._aside.start(lambda: self._keep_on(keeper), "pq-staging")

    def _keep_on(self, keeper: object) -> None:
        """Run rounds while this process has no requests, until no process has any."""
        try:
            while self._keeper is keeper:
                before = self._load_at
                self._kv.serve(self, self._idle)
                if self._aside.now() - self._load_at > LAPSE:
                    break
                if self._load_at == before:
                    # Each round costs as much as one that serves a request.
                    self._aside.sleep(min(LONGEST_LOOK, max(LOOK, (self._aside.now() - before) / 4)))
        except (QueuePaused, QueueNotFound, StoreClosed, ForkedStore):
            pass  # nothing to take from: each process finds that out by itself
        except (StoreError, QueueError) as error:
            self._limited.warn(
                ("keep", type(error)),
                "Queue %s: taking for other processes ended: %s: %s. Each takes by itself until they conflict again.",
                display_name(self._queue.config.name),
                type(error).__name__,
                error,
            )
        finally:
            if self._keeper is keeper:
                self._keeper = None
                self._step_down()

    def stop(self) -> None:
        """Give up the role of the fulfiller, if this process has it."""
        if self._keeper is not None:
            self._keeper = None
            self._step_down()

    def _step_down(self) -> None:
        def leave(tr: Transaction) -> None:
            if self._leadership.holds(Holding.decode(tr.get(self._keys.staging).wait())):
                tr.clear(self._keys.staging)
                CounterDelta(self._keys, wake=False).apply(tr)

        try:
            self._kv.transact(leave)
        except (StoreClosed, ForkedStore):
            pass  # the record is not believed for long
        except StoreError as error:
            self._limited.warn(
                ("leave", type(error)),
                "Queue %s: the record of the fulfiller was not cleared: %s: %s. It is not believed after %g s.",
                display_name(self._queue.config.name),
                type(error).__name__,
                error,
                HELD,
            )

    def _fulfil(self, transact: Transact, takes: Sequence[Take]) -> Answers:
        """Execute this batch and the requests of other processes."""
        now = self._aside.now()
        renew = now - self._renewed_at > RENEWED
        ms = self._now_ms()

        def attempt(tr: Transaction) -> _Round:
            record = tr.snapshot.get(self._keys.staging)
            found = staging_records.read_requests(tr.snapshot, self._keys, self._kinds)
            held = Holding.decode(record.wait())
            if held is None or not self._leadership.holds(held):
                raise _Lost
            seen = self._seen_since(found, now, ms)
            asked = [one.by_clock(ms) for one in found if now - seen[one.id] < FRESH]
            first = [one for one in asked if one.id in self._left][:1]
            then = [one for one in asked if not first or one.id != first[0].id]
            own = takes[:_OWN] if asked else takes
            try:
                answers, answered = self._deal(tr, own, first, then)
            except TooLarge:
                if not first:
                    raise
                # Its process gets the error when it executes the batch itself.
                staging_records.answer(tr, self._keys, first[0], [])
                answers, answered = [], 1
            if renew:
                tr.use_reserve()
                tr.set(self._keys.staging, self._leadership.renewed(held).encode())
            left = frozenset() if first else frozenset(one.id for one in then[answered:])
            return _Round(answers=answers, served=answered, seen=seen, left=left)

        round_: _Round = transact(attempt)
        if renew:
            self._renewed_at = now
        if round_.served:
            self._load_at = self._aside.now()
        self._asked, self._left = round_.seen, round_.left
        return round_.answers

    def _deal(
        self,
        tr: Transaction,
        own: Sequence[Take],
        first: Sequence[staging_records.StagedRequest],
        then: Sequence[staging_records.StagedRequest],
    ) -> tuple[Answers, int]:
        """Execute `first`, own requests, `then`; return the own answers and how many other requests were answered."""
        before = sum(len(one.takes) for one in first)
        wanted = [
            *(take for one in first for take in one.takes),
            *own,
            *(take for one in then for take in one.takes),
        ]
        anything = any(take.n for take in wanted)
        answers = self.execute(tr, wanted) if anything else [[] for _ in wanted]
        answered = 0
        at = 0
        for one in (*first, *then):
            if answered == len(first):
                at = max(at, before + len(own))
            got = answers[at : at + len(one.takes)]
            at += len(one.takes)
            if not got:
                break
            staging_records.answer(tr, self._keys, one, got)
            answered += 1
        return answers[before : before + len(own)], answered

    def _seen_since(self, found: Sequence[staging_records.StagedRequest], now: float, ms: int) -> dict[bytes, float]:
        """Return since when each request has been there, by this process's time.

        A request of the first round may be old: its own time decides. A later one is new, whatever time it tells.
        """
        if self._asked is None:
            return {one.id: now - max(0, ms - one.ms) / 1000 for one in found}
        return {one.id: self._asked.get(one.id, now) for one in found}

    # Asking the fulfiller

    def _ask(self, transact: Transact, takes: Sequence[Take]) -> Answers:
        """Ask the fulfiller, and wait for its answers; none when they did not come in time."""
        request, ms = os.urandom(16), self._now_ms()
        record, number = staging_records.encode_takes(takes)
        transact(lambda tr: staging_records.ask(tr, self._keys, ms=ms, request=request, record=record))
        try:
            found = self._await(transact, request, ms)
        except StoreError as error:
            raise OutcomeUnknown(
                "The store failed while another process took items for this one. They are in the trash "
                "in a while if they were not delivered; look before you repeat it. ({error})",
                error=error.words,
            ) from error
        return [] if found is None else staging_records.decode_answers(found, takes[:number], self._queue.config)

    def _await(self, transact: Transact, request: bytes, ms: int) -> bytes | None:
        def look(tr: Transaction) -> tuple[bytes | None, bool]:
            record = tr.snapshot.get(self._keys.staging)
            found = staging_records.collect(tr, self._keys, ms=ms, request=request)
            return found, self._is_free(record.wait())

        def give_up(tr: Transaction) -> bytes | None:
            asked = tr.get(self._keys.requests.key(ms, request))
            found = staging_records.collect(tr, self._keys, ms=ms, request=request)
            if asked.wait() is not None:
                tr.clear(self._keys.requests.key(ms, request))
            return found

        asked_at = self._aside.now()
        pause = max(LOOK, 0.75 * self._wait)  # each look costs as much as a round
        while True:
            self._aside.sleep(pause)
            waited = self._aside.now() - asked_at
            found: bytes | None
            found, free = transact(look)
            if found is not None:
                self._wait += (min(waited, PATIENCE / 2) - self._wait) / 4
                return found
            if free or self._aside.now() - asked_at > PATIENCE:
                found = transact(give_up)
                return found
            pause = LOOK
