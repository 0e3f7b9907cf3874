"""What can not be read: damaged records, and those of a newer release. Whoever sweeps leaves them, and goes on."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable

from queues.errors import NewerFormat, Words

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
    return error.words if isinstance(error, NewerFormat) else Words("Its bytes are damaged.")


def warn(what: str, error: Exception) -> None:
    """Log what was left alone."""
    log.warning("%s is left alone: %s: %s", what, type(error).__name__, error)
