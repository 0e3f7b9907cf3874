"""What can not be read: damaged records, and those of a newer release. Whoever sweeps leaves them, and goes on."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable

from queues.errors import NewerFormat, Worded, Words

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


def warn(what: str, error: Exception) -> None:
    """Log what was left alone."""
    log.warning("%s is left alone: %s: %s", what, type(error).__name__, error)
