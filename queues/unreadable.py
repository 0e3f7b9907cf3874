"""What can not be read: damaged records, and those of a newer release. Whoever sweeps leaves them, and goes on."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from queues.errors import NewerFormat, QueueError, QueueUnreadable, StoreError, Worded, Words

log = logging.getLogger("queues.sweeper")

#: What decoding raises.
UNREADABLE = (
    NewerFormat,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    struct.error,
)
#: Hears what was left alone, and why.
Tell = Callable[[str, Exception], None]


def why(error: Exception) -> Words:
    """Say for a person why something can not be read."""
    if isinstance(error, Worded):
        return error.words
    return Words("Its bytes are damaged ({kind}).", kind=type(error).__name__)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Raise `QueueUnreadable` for what decoding raises inside of this block; refusals and outages pass."""
    try:
        yield
    except UNREADABLE as error:
        if isinstance(error, QueueError | StoreError) and not isinstance(error, NewerFormat):
            raise
        raise QueueUnreadable(name, why(error)) from error


def warn(what: str, error: Exception) -> None:
    """Log what was left alone."""
    log.warning("%s is left alone: %s: %s", what, type(error).__name__, error)
