"""Extension of leases by a thread, of the pool's process or of the heartbeat process."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from queues.errors import QueueError, StaleLease, StoreError
from queues.kv.boottime import boottime
from queues.operations.lease_block import PART, STEP
from queues.queue import Queue
from queues.workers.rests import LONGEST_REST, REFUSED, rest_after

log = logging.getLogger("queues.workers")


@dataclass(slots=True, kw_only=True, eq=False)
class HeldLease:
    """A lease that is extended again and again."""

    queue: Callable[[], Queue]
    #: The queue's name in the log.
    name: str
    token: str
    seconds: float
    #: When it is extended next, by the extender's clock.
    extend_at: float = 0.0
    #: Seconds between the last two tries, if it could not be extended.
    rest: float = 0.0

    @property
    def item_id(self) -> str:
        """The id of the leased item."""
        return self.token.partition("-")[0]


class LeaseExtender:
    """Extends leases until they are dropped. `run` is the body of its thread."""

    def __init__(self, *, lost: Callable[[str], None], clock: Callable[[], float] = boottime) -> None:
        #: Called with the token of a lease that is over although it was not dropped.
        self._lost = lost
        self._clock = clock
        self._condition = threading.Condition()
        self._held: dict[str, HeldLease] = {}
        self._stopped = False

    def keep(self, held: HeldLease, *, at_once: bool = False) -> None:
        """Extend a lease from now on; the first time `at_once` when it is not fresh."""
        held.extend_at = self._clock() + (0.0 if at_once else held.seconds * PART)
        with self._condition:
            self._held[held.token] = held
            self._condition.notify()

    def drop(self, token: str) -> None:
        """Extend a lease no longer."""
        with self._condition:
            self._held.pop(token, None)

    def stop(self) -> None:
        """Make `run` end."""
        with self._condition:
            self._stopped = True
            self._condition.notify()

    def run(self) -> None:
        """Extend leases until `stop`."""
        while (due := self._wait()) is not None:
            for held in due:
                self._extend(held)

    def _wait(self) -> list[HeldLease] | None:
        with self._condition:
            while not self._stopped:
                now = self._clock()
                if due := [held for held in self._held.values() if held.extend_at <= now]:
                    return due
                nearest = min((held.extend_at for held in self._held.values()), default=None)
                self._condition.wait(None if nearest is None else min(nearest - now, STEP))
            return None

    def _extend(self, held: HeldLease) -> None:
        if held.token not in self._held:
            return
        try:
            held.queue().extend(held.token, seconds=held.seconds)
        except StaleLease:
            with self._condition:
                lost = self._held.pop(held.token, None) is not None  # else it was dropped meanwhile
            if lost:
                self._lost(held.token)
        except Exception as error:  # a lease's record may hold anything; the other leases are extended all the same
            known = isinstance(error, StoreError | QueueError)
            why = error if known else f"{type(error).__name__}: {error}"
            log.warning("%s: the lease of item %s was not extended: %s", held.name, held.item_id, why)
            held.rest = rest_after(error, held.rest)
            most = LONGEST_REST if isinstance(error, REFUSED) else held.seconds * PART
            held.extend_at = self._clock() + min(held.rest, most)
        else:
            held.rest = 0.0
            held.extend_at = self._clock() + held.seconds * PART
