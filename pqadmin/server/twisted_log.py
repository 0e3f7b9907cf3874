"""What Twisted logs, as far as operators need it: errors, and that descriptors have run out."""

import logging

from twisted.logger import LogEvent, LogLevel, formatEvent

from queues.admin import LogLimit

log = logging.getLogger(__name__)
_limited = LogLimit(log)


def tell(event: LogEvent) -> None:
    """Log one event of Twisted's if it matters: errors, and refused connections for want of descriptors."""
    level = event.get("log_level")
    text = formatEvent(event) or ""
    if "EMFILE" in text or "Could not accept new connection" in text:
        _limited.warn("EMFILE", "The process has no file descriptor left: connections are reset (%s).", text)
    elif level is not None and level >= LogLevel.error:
        failure = event.get("log_failure")
        what = f"{failure.type.__name__}: {failure.getErrorMessage()}" if failure is not None else text
        where = f" at {failure.frames[-1][1]}:{failure.frames[-1][2]}" if failure is not None and failure.frames else ""
        _limited.warn((event.get("log_namespace"), what[:80]), "A connection failed: %s%s", what, where)
