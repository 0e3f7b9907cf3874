"""The gate of a load: its processes begin together, however long the machine takes to start them."""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing.context import SpawnContext

#: Seconds between two looks at whether the load is still wanted.
_PATIENCE = 0.5


class Gate:
    """Opens when so many processes stand before it; shared by them and the command."""

    def __init__(self, context: SpawnContext, processes: int) -> None:
        self._lacking = context.Value("i", processes)
        self._opened = context.Value("d", 0.0 if processes else time.monotonic())
        self._open = context.Event()

    @property
    def opened(self) -> float:
        """When it opened, by the machine's monotonic clock; 0: not yet."""
        return float(self._opened.value)

    def wait(self, wanted: Callable[[], bool]) -> None:
        """Wait until every process is here, or for as long as `wanted`."""
        with self._lacking:
            self._lacking.value -= 1
            last = self._lacking.value == 0
        if last:
            self._opened.value = time.monotonic()
            self._open.set()
        while wanted() and not self._open.wait(_PATIENCE):
            pass
