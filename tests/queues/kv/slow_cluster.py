"""A real cluster that needs seconds for a read, by a clock of the test: a layer between our engine and the binding."""

from typing import Any

from queues.kv.cluster.store import ClusterStore
from tests.conftest import Clock
from tests.queues.kv.lost_answers import TIMED_OUT, Failing


class SlowDatabase:
    """The database of an open store, and a store on it."""

    def __init__(self, kv: Any, clock: Clock) -> None:
        self._native = kv.database
        self.clock = clock
        #: How long a read takes, of callers and of background work.
        self.seconds = self.background_seconds = 0.0
        self.store = ClusterStore(self, "fdb:slow", clock=clock)
        self.store.exactly_once.clock = clock

    def create_transaction(self) -> "SlowTransaction":
        """Begin a transaction."""
        return SlowTransaction(self, self._native.create_transaction())


class SlowTransaction:
    """A transaction of the binding, but for its reads of one key; it is its own options."""

    def __init__(self, database: SlowDatabase, native: Any) -> None:
        self._database = database
        self._native = native
        self._timeout = 0.0
        self._background = False
        self.options = self.snapshot = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def set_timeout(self, milliseconds: int) -> None:
        """Note how long the transaction may take."""
        self._timeout = milliseconds / 1000

    def set_priority_batch(self) -> None:
        """Note that this is background work."""
        self._background = True

    def set_auto_throttle_tag(self, tag: str) -> None:
        """Do nothing."""

    def get(self, key: bytes) -> Any:
        """Read a key if there is time for it."""
        database = self._database
        needed = database.background_seconds if self._background else database.seconds
        self._database.clock.advance(min(needed, self._timeout))
        return Failing(TIMED_OUT) if needed > self._timeout else self._native.get(key)
