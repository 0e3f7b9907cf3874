"""One try of a function on a simulated store: a transaction that commits with the faults of its store."""

from collections.abc import Callable

from queues.kv.errors import Conflict, StoreUnavailable
from queues.kv.exactly_once import MaybeCommitted, NotCommitted, lost_to_others
from queues.kv.simulated.faults import Fault, Faults
from queues.kv.simulated.history import History
from queues.kv.simulated.late_commits import Lateness
from queues.kv.simulated.schedule import Point, Schedule
from queues.kv.simulated.transaction import SimulatedTransaction


class Attempt(SimulatedTransaction):
    """A transaction that the retry loop commits: in vain, in doubt, late, or for good."""

    def __init__(
        self,
        history: History,
        clock: Callable[[], float],
        on_commit: Callable[[set[bytes]], None],
        schedule: Schedule,
        *,
        faults: Faults | None,
        land: Callable[[], None],
        send: Callable[[Callable[[], bool], Lateness], None],
        ended: Callable[[int], None],
    ) -> None:
        super().__init__(history, clock, on_commit, schedule)
        self._faults = faults
        self._land = land
        self._send = send
        self._on_end = ended
        self._counted = False

    def commit(self) -> int:
        """Apply the writes, unless a fault says otherwise; raises NotCommitted or MaybeCommitted."""
        self._schedule(Point.COMMIT)
        self._land()
        if not self.wrote:
            return super().commit()
        self._check_commit()
        fault = self._faults.at_commit() if self._faults is not None else None
        if fault is Fault.CONFLICT or fault is Fault.TOO_OLD:
            raise NotCommitted(lost_to_others())
        if fault is Fault.UNKNOWN_BEFORE:
            raise MaybeCommitted(_answer_lost())
        if fault is Fault.LATE:
            self._leave()
            raise MaybeCommitted(_answer_lost())
        try:
            version = super().commit()
        except Conflict as conflict:
            if fault is Fault.UNKNOWN_AFTER:
                raise MaybeCommitted(_answer_lost()) from conflict
            raise NotCommitted(lost_to_others()) from conflict
        self._schedule(Point.ANSWER)
        if fault is Fault.UNKNOWN_AFTER:
            raise MaybeCommitted(_answer_lost())
        return version

    def cancel(self) -> None:
        """End the transaction and count its reads."""
        super().cancel()
        if not self._counted:
            self._counted = True
            self._on_end(self.reads)

    def _leave(self) -> None:
        """Send the writes on their way. What they were made from stays readable until they land."""
        assert self._faults is not None
        self._history.hold(self._version)

        def apply() -> bool:
            try:
                return self._apply() is not None
            finally:
                self._history.end(self._version)

        self._send(apply, self._faults.lateness())


def _answer_lost() -> StoreUnavailable:
    return StoreUnavailable("The store's answers kept being lost; nothing was written. Try again later.")
