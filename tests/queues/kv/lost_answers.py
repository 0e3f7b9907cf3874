"""A real cluster whose answers to commits get lost by plan: a layer between our engine and the binding."""

from collections.abc import Sequence
from typing import Any, Literal

import fdb

from queues.kv.cluster.store import ClusterStore

#: The result of a commit whose answer is lost: applied, not applied, or applied when `land` is called.
Fate = bool | Literal["late"]
UNKNOWN, TIMED_OUT = 1021, 1031


class LosingDatabase:
    """The database of an open store; the first commits that write meet these fates, later ones are left alone."""

    def __init__(self, kv: Any, fates: Sequence[Fate], *, silent_afterwards: bool = False) -> None:
        self._native = kv.database
        self._fates = list(fates)
        self._silent_afterwards = silent_afterwards
        self._time = 0.0
        self.lost = 0
        self.held: list[Any] = []

    def store(self) -> ClusterStore:
        """Open a store on it; its patience is counted by a clock that each attempt moves on by a second."""
        store = ClusterStore(self, "fdb:losing", slots=b"slots")
        store.exactly_once.clock = self._tick
        return store

    def create_transaction(self) -> "LosingTransaction":
        """Begin a transaction."""
        return LosingTransaction(self, self._native.create_transaction())

    def land(self) -> str:
        """Send the commit that was held back; return the result of it."""
        try:
            self.held.pop().commit().wait()
        except fdb.FDBError as error:
            return "NotCommitted" if error.code == 1020 else str(error)
        return "committed"

    def fate(self) -> Fate | None:
        """Return the next commit's fate; None: it is left alone."""
        if self._fates:
            self.lost += 1
            return self._fates.pop(0)
        return None

    def silent(self) -> bool:
        """Say whether reads are not answered any more."""
        return self._silent_afterwards and self.lost > 0 and not self._fates

    def _tick(self) -> float:
        self._time += 1.0
        return self._time


class LosingTransaction:
    """A transaction of the binding, but for its commit."""

    def __init__(self, database: LosingDatabase, native: Any) -> None:
        self._database = database
        self._native = native
        self.snapshot = native.snapshot
        self.options = native.options

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def get(self, key: bytes) -> Any:
        """Read a key, unless the cluster has fallen silent."""
        return Failing(TIMED_OUT) if self._database.silent() else self._native.get(key)

    def commit(self) -> Any:
        """Commit and answer, unless the plan says otherwise."""
        fate = self._database.fate()
        if fate is None:
            return self._native.commit()
        if fate == "late":
            self._database.held.append(self._native)
        elif fate:
            self._native.commit().wait()
        return Failing(UNKNOWN)

    def cancel(self) -> None:
        """Cancel it, unless its commit is held back."""
        if self._native not in self._database.held:
            self._native.cancel()


class Failing:
    """A future of the binding that fails."""

    def __init__(self, code: int) -> None:
        self._code = code

    def wait(self) -> None:
        """Raise."""
        raise fdb.FDBError(self._code)

    @property
    def value(self) -> None:
        """Raise."""
        self.wait()
