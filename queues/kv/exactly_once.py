"""Applies a function exactly once on a store with commits that may end unknown: the one retry loop of such engines.

Every attempt that writes adds a read conflict on its slot and leaves a mark there. Once an attempt of a sequence has
ended unknown, each later one first reads the slot inside its own transaction: a mark of this sequence says which
attempt was applied, and its remembered result is the answer. An attempt that still lands late conflicts with
whatever was written to the slot since, so at most one attempt is ever applied. A sequence in doubt only ends as
"nothing was written" after a fence, a transaction that marks the slot and does nothing else, was committed.
"""

import random
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from queues.kv import lifecycle
from queues.kv.boottime import boottime
from queues.kv.commit_slots import Mark, Slot, SlotPool
from queues.kv.errors import Conflict, OutcomeUnknown, StoreError
from queues.kv.port import Transaction

T = TypeVar("T")

#: Seconds that a function is tried again; then its last failure is raised.
PATIENCE = 10.0
#: Seconds more that a function in doubt is settled; then its outcome is unknown.
SETTLING = 20.0
#: Tries of one function before it gives up, however quick they are.
MAX_TRIES = 200
#: Seconds; the shortest and the longest pause between two tries.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.000_1, 0.05
#: Seconds; a slot's mark is trusted to be there for longer than this. Slots are swept after a day.
_TRUSTED = 3_600.0


class NotCommitted(Exception):
    """An attempt wrote nothing and may be tried again; `error` is for the caller once patience ends."""

    def __init__(self, error: StoreError) -> None:
        super().__init__(str(error))
        self.error = error


class MaybeCommitted(NotCommitted):
    """An attempt may have been applied, or may be applied later."""


def lost_to_others() -> Conflict:
    """Build the error of a transaction that conflicts until its tries are used up."""
    return Conflict(
        "The transaction kept losing to other ones until its tries were used up; nothing was written. "
        "Try again, or do less in it."
    )


class Attempt(Transaction, Protocol):
    """A transaction that can be committed."""

    def commit(self) -> object:
        """Apply the writes; raises NotCommitted, MaybeCommitted, or a StoreError that no retry mends."""

    def cancel(self) -> None:
        """End the transaction, committed or not. Idempotent."""

    @property
    def wrote(self) -> bool:
        """Whether anything was written."""


class ExactlyOnce:
    """Runs functions exactly once. Thread-safe.

    Without slots the outcome of a commit with a lost answer cannot be found: such a function ends unknown.
    """

    def __init__(
        self,
        slots: SlotPool | None,
        *,
        clock: Callable[[], float] = boottime,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._slots = slots
        self.clock = clock
        #: Seconds since the epoch, for marks.
        self.wall = time.time
        self._sleep = sleep
        self._random = random.Random()  # noqa: S311 - spreads retries, guards nothing
        #: Whether some function ended unknown, so that an attempt of this process may still land.
        self.in_doubt = False

    def run(self, begin: Callable[[], Attempt], fn: Callable[[Transaction], T], *, patience: float = PATIENCE) -> T:
        """Run `fn` in transactions from `begin` until one was applied, and return its result.

        After `patience` seconds its last failure is raised.
        """
        if self._slots is None:
            return _Sequence(self, None, begin, fn, patience).run()
        slot = self._slots.take()
        try:
            return _Sequence(self, slot, begin, fn, patience).run()
        finally:
            self._slots.give_back(slot)

    def now(self) -> float:
        """Return the seconds that patience is counted in."""
        return self.clock()

    def now_ms(self) -> int:
        """Return milliseconds since the epoch."""
        return int(self.wall() * 1000)

    def pause(self, attempt: int) -> None:
        """Wait a little, longer with every try."""
        self._sleep(self._random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(attempt, 16))))


class _Sequence(Generic[T]):
    """One function's way to its one application."""

    def __init__(
        self,
        loop: ExactlyOnce,
        slot: Slot | None,
        begin: Callable[[], Attempt],
        fn: Callable[[Transaction], T],
        patience: float,
    ) -> None:
        self._loop = loop
        self._slot = slot
        self._begin = begin
        self._fn = fn
        self._patience = patience
        self._number = 0 if slot is None else slot.begin()
        self._results: dict[int, T] = {}
        self._doubtful = False
        #: Why nothing more is tried; an earlier attempt in doubt is still fenced off.
        self._failure: BaseException | None = None
        self._began = loop.now()

    def run(self) -> T:
        attempt = 0
        while True:
            try:
                applied = self._try(attempt)
            except NotCommitted as error:
                if isinstance(error, MaybeCommitted):
                    if self._slot is None:
                        raise self._unknown() from error
                    self._doubtful = True
                attempt += 1
                waited = self._loop.now() - self._began
                if not self._doubtful and (attempt >= MAX_TRIES or waited > self._patience):
                    raise error.error from error
                if self._doubtful and (attempt >= 2 * MAX_TRIES or waited > self._patience + SETTLING):
                    raise self._unknown() from error
                if self._failure is None and (attempt >= MAX_TRIES or waited > self._patience):
                    self._failure = error.error
                self._loop.pause(attempt)
                continue
            if applied is not None:
                return self._results[applied]
            assert self._failure is not None
            raise self._failure

    def _try(self, attempt: int) -> int | None:
        """Make one attempt. Return the attempt that was applied, or None when it is certain that none ever is."""
        tr = self._begin()
        try:
            return self._try_in(tr, attempt)
        except (NotCommitted, OutcomeUnknown):
            raise
        except BaseException as error:
            if not self._doubtful:
                raise
            # An earlier attempt may still land: only a fence makes "nothing was written" true.
            if self._failure is None:
                self._failure = error
            raise NotCommitted(StoreError("to be fenced")) from error
        finally:
            tr.cancel()

    def _try_in(self, tr: Attempt, attempt: int) -> int | None:
        if self._doubtful:
            applied = self._applied(tr)
            if applied is not None:
                return applied
            if self._loop.now() - self._began > _TRUSTED:
                raise self._unknown()
        if self._failure is None:
            with lifecycle.running():
                self._results[attempt] = self._fn(tr)
        if self._slot is not None and (tr.wrote or self._doubtful):
            tr.add_read_conflict_key(self._slot.key)
            tr.set(self._slot.key, Mark(sequence=self._number, attempt=attempt, ms=self._loop.now_ms()).encode())
        tr.commit()
        return None if self._failure is not None else attempt

    def _applied(self, tr: Transaction) -> int | None:
        assert self._slot is not None, "nothing is in doubt without a slot"
        value = tr.get(self._slot.key).wait()
        if value is None:
            return None
        mark = Mark.decode(value)
        return mark.attempt if mark.sequence == self._number and mark.attempt in self._results else None

    def _unknown(self) -> OutcomeUnknown:
        self._loop.in_doubt = True
        return OutcomeUnknown(
            "The store did not say whether the transaction was applied, and could not be asked again in time: "
            "look before you repeat it."
        )
