"""The writer thread: runs functions in order, many per commit, and answers only after the commit."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence

import lmdb

from queues.kv import lifecycle
from queues.kv.embedded.batch import Batch
from queues.kv.embedded.calls import Calls, deliver
from queues.kv.embedded.environment import Environment, Outcome
from queues.kv.embedded.failures import EngineFailure, translate
from queues.kv.embedded.poller import Poller
from queues.kv.embedded.room import SpaceLimit
from queues.kv.embedded.runner import Runner
from queues.kv.embedded.turns import WriterFairness
from queues.kv.errors import OutcomeUnknown, StoreClosed, StoreError
from queues.kv.port import Ticket
from queues.kv.watching import WatchBoard

log = logging.getLogger("queues.kv")

#: A batch waits for the callers of the last one to come back as long as some come within this part of the last
#: commit's time, or within so many seconds, and for so many such times at most.
LINGER = 0.2
_COMING = 0.000_5
_TIMES = 10
#: Callers from which on two cohorts pay, and seconds in which each comes back, a thread and one who waits in none: a
#: commit that takes longer than all of them together is not worth a second one (see `_answer`).
_CROWD, _RETURN, _LANDING = 16, 0.000_02, 0.000_005
#: Threads that are woken abreast while a commit is flushed, when nobody else wants the interpreter.
_ABREAST = 2
#: Keys with this prefix are the writers' own: which commit of which process was the last.
_MARK_PREFIX = b"\xff\x02writer/"


class Writer:
    """One thread and its queue; every write of this process to one store goes through it."""

    def __init__(
        self,
        environment: Environment,
        room: SpaceLimit,
        turns: WriterFairness,
        board: WatchBoard,
        poller: Poller,
        *,
        clock: Callable[[], float],
        name: str,
    ) -> None:
        self._environment = environment
        self._room = room
        self._turns = turns
        self._board = board
        self._calls = calls = Calls()
        #: How callers hand in functions and requests; each returns once what it wrote is durable.
        self.run, self.serve = calls.run, calls.serve
        self.submit, self.withdraw = calls.submit, calls.withdraw
        self._closing = False
        #: How many calls are worth waiting for.
        self._expected = 0
        self._last_seconds = 0.0
        #: Calls whose commit is durable, and that hear of it as the next one begins to be flushed.
        self._kept: list[Ticket] = []
        #: How many heard of it as the last one began to be flushed.
        self._told_late = 0
        self._last_version = 0
        self._alone = False
        self._process = os.urandom(16)
        self._working = threading.RLock()
        self._sequence = 0
        self._poller = poller
        self._runner = Runner(calls, room, clock)
        self._thread = threading.Thread(target=self._work, name=f"pq-writer {name}", daemon=True)
        self._thread.start()

    @property
    def reads(self) -> int:
        """How many reads functions and servers have issued."""
        return self._runner.reads

    def hold_still(self, timeout: float) -> bool:
        """Wait until no commit is under way and begin none until `go_on`; False when the time is up."""
        return self._working.acquire(timeout=timeout)

    def go_on(self) -> None:
        """Begin commits again."""
        self._working.release()

    def close(self) -> None:
        """Finish what was accepted, then stop."""
        self._closing = True
        self._calls.wake()
        self._thread.join()

    def _work(self) -> None:
        lifecycle.enter()
        calls = self._calls
        while self._await_calls():
            try:
                with self._working:
                    try:
                        self._commit_batch()
                    finally:
                        self._turns.ended()
            except Exception as error:  # the store cannot be written at all; the thread lives on
                if not isinstance(error, StoreError):
                    log.exception("The writer of %s failed", self._environment.path)
                self._let_go()
                _refuse(list(iter(calls.take, None)), error)
        calls.refuse(lambda: StoreClosed("The store was closed; open it again."))

    def _await_calls(self) -> bool:
        """Sleep until there is something to do; False when the store is closing and nothing is left."""
        calls = self._calls
        self._await(self._expected)
        if self._kept and not calls.lead_with_request():
            self._let_go()
            back, self._told_late = self._told_late, 0
            if not len(calls):
                self._await(back)
        while not len(calls):
            if self._closing:
                return False
            self._expected = 0
            calls.sleep(1)
        return True

    def _await(self, want: int) -> None:
        """Wait until so many calls wait, as long as some come."""
        calls = self._calls
        here = len(calls)
        if want < 2 or here >= want:
            return
        pause = max(LINGER * self._last_seconds, _COMING)
        for _ in range(_TIMES):
            if self._closing:
                return
            calls.sleep(want, pause)
            before, here = here, len(calls)
            if here >= want or here == before:
                return

    def _commit_batch(self) -> None:
        batch = self._begin()
        taken: list[Ticket] = []
        try:
            try:
                self._runner.run_all(batch, taken, self._let_go)
                if not batch.log:
                    batch.txn.abort()
                    self._answer(taken)
                    return
                self._seal(batch)
            finally:
                self._let_go()
        except (EngineFailure, lmdb.Error) as error:
            batch.txn.abort()
            log.info("A batch of %d functions failed and runs again one by one: %s", len(taken), error)
            self._run_alone(taken)
            return
        except BaseException as error:
            batch.txn.abort()
            _refuse(taken, error)
            raise
        outcome, failure = self._commit(batch)
        if outcome is Outcome.NOT_DONE:
            self._run_alone(taken)
            return
        if outcome is Outcome.UNKNOWN and failure is not None:
            _refuse(taken, failure)
            return
        self._room.spend(batch.room)
        # Nobody else wrote in between: behind another process's transaction answers might wait long.
        self._alone, self._last_version = batch.version == self._last_version + 1, batch.version
        self._tell(batch)  # first: a caller who waits for changes next is not to be told of his own
        self._answer(taken)

    def _begin(self) -> Batch:
        turns = self._turns
        room = self._room.left()
        if self._kept and turns.somebody_is_here():  # who may hold the lock for long
            self._let_go()
        turns.give_way()
        turns.ask()
        try:
            txn = self._environment.begin_write()
        finally:
            turns.got()
        return Batch(txn, room)

    def _seal(self, batch: Batch) -> None:
        batch.flush_all()
        if self._turns.slot is not None:
            self._sequence += 1
            batch.cursor.put(*self._mark())
        self._environment.flushes.link(batch.txn)

    def _written(self, batch: Batch) -> set[bytes]:
        keys = batch.keys()
        if self._turns.slot is not None:
            keys.add(self._mark()[0])
        return keys

    def _mark(self) -> tuple[bytes, bytes]:
        return _MARK_PREFIX + b"%d" % (self._turns.slot or 0), self._process + self._sequence.to_bytes(8, "big")

    def _commit(self, batch: Batch) -> tuple[Outcome, StoreError | None]:
        self._poller.own(batch.version)
        began = time.perf_counter()
        try:
            self._environment.commit(batch.txn, lambda: self._written(batch))
        except Exception as error:  # whatever it is, and wherever it came: the mark tells whether it is done
            batch.txn.abort()
            self._poller.disown()
            mark = self._mark() if self._turns.slot is not None else None
            try:
                outcome = self._environment.settle(error, mark, batch.version)
            except Exception:
                log.exception("What became of a commit of %s could not be found out", self._environment.path)
                outcome = Outcome.UNKNOWN
            log.warning("A commit failed (%s); its outcome: %s", error, outcome.value)
            if outcome is Outcome.UNKNOWN:
                return outcome, OutcomeUnknown(
                    "The store {path} failed while committing ({error}); whether the transaction was applied "
                    "is not known. Look before you try again.",
                    path=self._environment.path,
                    error=str(error),
                )
            return outcome, translate(error, self._environment.path)
        finally:
            self._last_seconds = time.perf_counter() - began
        return Outcome.DONE, None

    def _run_alone(self, taken: list[Ticket]) -> None:
        """Run each function in a commit of its own, so that only the guilty one fails."""
        self._expected = self._told_late = 0
        failure: Exception | None
        for call in taken:
            try:
                failure = self._run_in_own_commit(call)
            except EngineFailure as error:
                failure = translate(error.cause, self._environment.path)
            except (lmdb.Error, OSError) as error:
                failure = translate(error, self._environment.path)
            except StoreError as error:
                failure = error
            except Exception as error:  # of nothing that is known: the next ones are tried all the same
                log.exception("A function could not be run on %s", self._environment.path)
                failure = error
            if failure is not None:
                call.answer, call.error = None, failure
            deliver([call])

    def _run_in_own_commit(self, call: Ticket) -> StoreError | None:
        batch = self._begin()
        try:
            self._runner.run_alone(batch, call)
            if not batch.log:
                batch.txn.abort()
                return None
            self._seal(batch)
        except BaseException:
            batch.txn.abort()
            raise
        outcome, failure = self._commit(batch)
        if outcome is not Outcome.DONE:
            return failure
        self._room.spend(batch.room)
        self._tell(batch)
        return None

    def _tell(self, batch: Batch) -> None:
        if len(self._board):  # whoever comes now reads what was committed
            try:
                self._board.notify(batch.keys())
            except Exception:  # what is done is to be answered
                log.exception("Not all who watch %s were told of a commit", self._environment.path)
                self._poller.disown()  # they hear of it from who looks for the commits of others

    def _answer(self, taken: list[Ticket]) -> None:
        """Tell everybody, and say for how many to wait: threads come back quickest to a writer that waits for them.

        A crowd works in two cohorts where a commit is short: one hears of its answers, and prepares its next requests,
        while the commit of the other is flushed. Told at once, it would compete for the interpreter with the writer,
        who serves the others then, and have nothing to do during the flush.
        """
        threads = [call.landing for call in taken].count(None)
        told, late = self._first_cohort(len(taken), threads), self._told_late
        first, self._told_late = taken[:told], 0
        self._kept += taken[told:]
        self._expected = late + (told if told < len(taken) else threads)
        if first:
            deliver(first)

    def _first_cohort(self, n: int, threads: int) -> int:
        """Return how many of so many callers that have answers are told at once, so that both cohorts are alike."""
        other = max(self._told_late, len(self._calls))
        crowd = n + other
        if crowd < _CROWD or self._last_seconds > crowd * (_RETURN if threads else _LANDING) or not self._alone:
            return n
        return max(0, n - other + 1) // 2

    def _let_go(self) -> None:
        """Tell those who were to hear of their answers later."""
        if self._kept:
            kept, self._kept = self._kept, []
            self._told_late += len(kept)
            deliver(kept, _ABREAST)


def _refuse(calls: Sequence[Ticket], error: BaseException) -> None:
    for call in calls:
        own = type(error)(*error.args) if isinstance(error, StoreError) else error  # each thread raises its own
        call.answer, call.error = None, own
    deliver(calls)
