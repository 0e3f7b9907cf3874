"""The rate at which a client receives an answer, and its unsent bytes."""

from typing import Any

#: Bytes that a client receives at least in so many seconds of waiting for it.
LEAST, WITHIN = 100_000, 60.0


class Pace:
    """Bytes of one answer that its client received while the server waited. The server's own delays do not count."""

    def __init__(self) -> None:
        self._unsent = 0
        self._taken = 0
        self._waited = 0.0

    def sending(self, before: int, after: int) -> None:
        """Note the bytes that waited for the client before and after a part was sent."""
        self._note(before)
        self._unsent = after

    def waited(self, seconds: float, unsent: int) -> None:
        """Note that the server waited, and the bytes that still wait for the client."""
        self._waited += seconds
        self._note(unsent)

    @property
    def too_slow(self) -> bool:
        """Return whether the client received too little in its time."""
        return self._waited > WITHIN

    def _note(self, unsent: int) -> None:
        self._taken += max(0, self._unsent - unsent)
        self._unsent = unsent
        if self._taken >= LEAST:
            self._taken, self._waited = 0, 0.0


def unsent(transport: Any) -> int:
    """Return the bytes in Twisted's buffers; 0 when the connection is gone."""
    if not hasattr(transport, "_tempDataLen"):
        return 0
    count: int = len(transport.dataBuffer) - transport.offset + transport._tempDataLen  # noqa: SLF001 # none public
    return count
