"""How the site writes its log: to standard error, one line an event."""

import logging
import time


class OneLine(logging.Formatter):
    """Time in UTC, level, logger and message on one line; a traceback is folded into it."""

    converter = time.gmtime
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        lines = (line.strip() for line in super().format(record).splitlines())
        return " | ".join(line for line in lines if line)
