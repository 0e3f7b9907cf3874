"""Times on the command line: spans like 90s, 15m, 2h, 1d, and moments in ISO 8601."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from django.core.management.base import CommandError, CommandParser

from pqadmin.display.format import age
from queues.errors import QueuePaused

_UNITS = {"": "seconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SPAN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd]?)", re.ASCII)


def span(text: str) -> timedelta:
    """Read a span: seconds, or a number with s, m, h or d."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no span of time like 90s, 15m, 2h or 1d")
    return timedelta(**{_UNITS[found[2]]: float(found[1])})


def seconds(text: str) -> float:
    """Read a span and return its seconds."""
    return span(text).total_seconds()


def moment(text: str) -> datetime:
    """Read a moment; without a zone it is UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no time like 2026-11-20T18:00:00Z") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def add_when(parser: CommandParser, *, required: bool = False) -> None:
    """Declare --delay and --due, of which one may be given."""
    when = parser.add_mutually_exclusive_group(required=required)
    when.add_argument("--delay", type=span, metavar="SPAN", help="not before this span is over: 90s, 15m, 2h, 1d")
    when.add_argument("--due", type=moment, metavar="TIME", help="not before this time, ISO 8601; without a zone: UTC")


def add_keep(parser: CommandParser) -> None:
    """Declare --keep and --no-trash, of which one may be given."""
    keep = parser.add_mutually_exclusive_group()
    keep.add_argument(
        "--keep",
        type=span,
        metavar="SPAN",
        help="how long the trash keeps what is taken: 10m, 1h (default: 7d, the most)",
    )
    keep.add_argument(
        "--no-trash", dest="keep", action="store_const", const=timedelta(0), help="keep nothing: there is no undo"
    )


@contextmanager
def waited(timeout: float) -> Iterator[None]:
    """Take once more after waiting in vain: of a paused queue it is said that it is, not that it holds nothing."""
    try:
        yield
    except QueuePaused as paused:
        raise CommandError(f"Nothing came within {age(timeout)}: {paused}") from paused
