"""The lone client: a connection that alone sends requests, which the event loop may then execute itself.

To hand a request to another thread and its answer back takes longer than a flush of a fast disk. But the loop does
nothing else while it executes one.
"""

#: Requests in a row of one connection from which on it is alone.
IN_A_ROW = 8
#: Seconds for which the loop may do nothing else, and requests that go to a thread after one that took longer.
LONGEST, PAUSE = 0.005, 16


class LoneClient:
    """Tells which requests are those of a lone client. For one event loop."""

    def __init__(self) -> None:
        self._last: object = None
        self._row = 0

    def asks(self, connection: object, *, others: bool) -> bool:
        """Note a request, and return whether the loop may execute it; `others`: more are under way."""
        if others or connection is not self._last:
            self._last, self._row = connection, 0
        self._row += 1
        return self._row > IN_A_ROW

    def took(self, seconds: float) -> None:
        """Note the time of a request that the loop could execute."""
        if seconds > LONGEST:
            self._row = -PAUSE

    def forget(self, connection: object) -> None:
        """Forget a connection that has ended."""
        if connection is self._last:
            self._last = None
