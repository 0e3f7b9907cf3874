"""How the site and its commands write their log: to standard error, one line an event."""

import json
import logging
import time
import traceback
from types import TracebackType
from typing import Any

from queues.admin import LogLimit

FRAMES = 8


class OneLine(logging.Formatter):
    """Time in UTC, level, logger and message on one line; of an exception also where it came from."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self, pattern: str = "%(asctime)s %(levelname)s %(name)s: %(message)s") -> None:
        super().__init__(pattern)

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, whatever line breaks a message holds."""
        return " | ".join(line.strip() for line in super().format(record).splitlines() if line.strip())

    def formatException(  # noqa: N802 # logging's name
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None] | Any
    ) -> str:
        """Return the exception, its cause, and the innermost calls, the latest first."""
        _, error, trace = ei
        if error is None:
            return ""
        calls = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]
        cause = error.__cause__ or error.__context__
        because = f" (after {type(cause).__name__}: {cause})" if cause else ""
        return f"{type(error).__name__}: {error}{because} at {' < '.join(calls[: -FRAMES - 1 : -1])}"


class FewOfClients(logging.Filter):
    """Passes one line a minute of each kind of bad request that frameworks log: any client can cause them."""

    _loggers = ("django.security", "daphne.http_protocol", "daphne.ws_protocol")

    def __init__(self, limit: LogLimit | None = None) -> None:
        super().__init__()
        self._limit = limit or LogLimit(logging.getLogger(__name__))

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether the line is written."""
        if not record.name.startswith(self._loggers):
            return True
        suppressed = self._limit.turn(record.name)
        if suppressed:
            record.msg = f"{record.msg} ({suppressed} more like this since the last line)"
        return suppressed is not None


class JsonLine(OneLine):
    """The same as a JSON object, for commands that programs read the standard error of."""

    def __init__(self) -> None:
        super().__init__("%(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one JSON object."""
        told = {"at": self.formatTime(record), "level": record.levelname, "logger": record.name}
        return json.dumps({"log": told | {"message": super().format(record)}})


def log_lines(name: str = "") -> None:
    """Write the log, or a logger's part of it, to standard error, unless logging is set up."""
    logger = logging.getLogger(name)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(OneLine())
        logger.addHandler(handler)


def log_json() -> None:
    """Write what the root logger's handlers write as JSON from now on."""
    for handler in logging.root.handlers:
        if isinstance(handler.formatter, OneLine):
            handler.setFormatter(JsonLine())
