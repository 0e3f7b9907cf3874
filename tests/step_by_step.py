"""Transactions driven step by step, on every engine with conflicts, to assert which transactions conflict."""

from typing import Any

import pytest

from queues import Store
from queues.errors import Conflict
from queues.kv.exactly_once import NotCommitted
from queues.kv.simulated.transaction import SimulatedTransaction, Write
from tests.conftest import ENGINES

#: Transactions of the embedded engine run one after the other.
CONCURRENT = [engine for engine in ENGINES if engine != "embedded"]


on_concurrent_engines = pytest.mark.parametrize("engine", CONCURRENT)


class Step:
    """A transaction that begins now and is committed by hand; `commit` raises `Conflict` and never retries."""

    def __init__(self, store: Store) -> None:
        self._tr: Any = store.context.kv.begin()
        self._tr.get_read_version()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tr, name)

    def set_past_the_port(self, key: bytes, value: bytes) -> None:
        """Write a pair that the port would refuse, as other clients of a cluster may."""
        if isinstance(self._tr, SimulatedTransaction):
            self._tr._writes[key] = Write(known=True, value=value)  # noqa: SLF001 # the port would refuse it
        else:
            self._tr.wrote = True
            self._tr._native.set(key, value)  # noqa: SLF001 # the native client takes it

    def commit(self) -> None:
        """Commit, or raise what keeps it from being committed."""
        try:
            self._tr.commit()
        except NotCommitted as refused:
            raise refused.error from refused
        finally:
            self._tr.cancel()

    def refused(self) -> None:
        """Commit, which conflicts with what was committed meanwhile."""
        with pytest.raises(Conflict):
            self.commit()


def begin(store: Store) -> Any:
    """Begin a transaction."""
    return Step(store)
