"""Ends a process that a handler forked, where it comes back from the handler."""

import logging
import os
import sys
from contextlib import suppress
from typing import NoReturn

from queues.workers.error_text import place_of

log = logging.getLogger("queues.workers")


def end_child(error: BaseException | None) -> NoReturn:
    """End this process with its exit code: item and lease are those of its parent."""
    code: object = error.code if isinstance(error, SystemExit) else 1 if error else None
    if error is not None and not isinstance(error, SystemExit):
        log.warning("A process that a handler forked has failed: %s", place_of(error))
    if not (code is None or isinstance(code, int)):
        with suppress(Exception):
            sys.stderr.write(f"{code}\n")  # as Python does
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code & 0xFF if isinstance(code, int) else 0 if code is None else 1)
