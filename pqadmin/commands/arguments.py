"""Arguments that several commands take, and how their texts are read."""

import io
import math
import os
import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from django.core.management.base import CommandError, CommandParser

from pqadmin.commands.exit_codes import Exit
from queues import Priority, Queue
from queues.admin import CODECS, MAX_VALUE_SIZE, PRIORITY_TYPES, STATES, Codec, parse_priority

N = TypeVar("N", int, float)

_UNITS = {"": "seconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SPAN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd]?)", re.ASCII)


class Argument:
    """One argument of a command, as `add_argument` takes it."""

    def __init__(self, *names: str, **how: Any) -> None:
        self._names = names
        self._how = how

    def add(self, parser: Any) -> None:
        """Declare the argument to a parser or to a group of one."""
        parser.add_argument(*self._names, **self._how)


class OneOf:
    """Arguments of which one may be given, or must be if `required`."""

    def __init__(self, *arguments: Argument, required: bool = False) -> None:
        self._arguments = arguments
        self._required = required

    def add(self, parser: CommandParser) -> None:
        """Declare the arguments to a parser."""
        group = parser.add_mutually_exclusive_group(required=self._required)
        for argument in self._arguments:
            argument.add(group)


def number(read: Callable[[str], N], least: float, most: float, what: str) -> Callable[[str], N]:
    """Return a reader of numbers within limits; `what` describes them in its error."""

    def parse(text: str) -> N:
        with suppress(ValueError):
            if least <= (found := read(text)) <= most:
                return found
        raise ArgumentTypeError(f"{text!r} is not {what}")

    return parse


whole_number = number(int, 1, math.inf, "a whole number of at least 1")
line_number = number(int, 0, math.inf, "a line number")


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
    """Read a time; without a zone it is UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no time like 2026-11-20T18:00:00Z") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def flag(name: str, text: str) -> Argument:
    """Return an option that takes no value."""
    return Argument(name, action="store_true", help=text)


QUEUE = Argument("queue")
REASON = Argument("--reason", default="", help="why, for the audit")
CONFIRM = Argument("--confirm", required=True, metavar="NAME", help="the queue's name again")
#: The ends of a queue; FIFO queues call them head and tail.
END = Argument("--end", choices=("min", "max", "head", "tail"), default="min", help="FIFO: head or tail (default: min)")
STATE = Argument("--state", choices=STATES, default="ready", help="items of this state (default: ready)")
#: How many items a command takes or shows.
COUNT = Argument("-n", type=whole_number, default=1, metavar="N", help="at most N items (default: 1)")
KIND = Argument("--kind", choices=("priority", "fifo"), default="priority", help="default: %(default)s")
CODEC = Argument("--codec", choices=CODECS, default="bytes", help="what values are (default: %(default)s)")
PRIORITY_TYPE = Argument("--priority-type", choices=PRIORITY_TYPES, default="int", help="default: %(default)s")
FORMAT = Argument(
    "--format",
    choices=("ndjson", "csv"),
    help="default: by the file's ending, else by the first byte of an import; an export is NDJSON",
)
TOKEN = Argument("token", metavar="TOKEN")
LEASE_FOR = Argument("--for", dest="span", type=seconds, default=60.0, metavar="SPAN", help="default: 60s")
RAW = flag("--raw", "write the value alone, byte for byte")
EXIT_CODE = Argument(
    "--exit-empty",
    type=number(int, 0, 255, "an exit code from 0 to 255"),
    default=int(Exit.EMPTY),
    metavar="CODE",
    help="the exit code when nothing was ready (default: %(default)s)",
)
#: A delay or a due time.
_DELAY = Argument("--delay", type=span, metavar="SPAN", help="not before this span is over: 90s, 15m, 2h, 1d")
_DUE = Argument("--due", type=moment, metavar="TIME", help="not before this time, ISO 8601; without a zone: UTC")
WHEN, WHEN_REQUIRED = OneOf(_DELAY, _DUE), OneOf(_DELAY, _DUE, required=True)
#: How long the trash keeps removed items.
KEEP = OneOf(
    Argument(
        "--keep", type=span, metavar="SPAN", help="how long the trash keeps the items: 10m, 1h (default and most: 7d)"
    ),
    Argument(
        "--no-trash", dest="keep", action="store_const", const=timedelta(0), help="keep nothing: there is no undo"
    ),
)
#: A value: an argument, a file, or standard input.
VALUE = Argument("value", nargs="?", help="the value as text; - reads standard input to its end")
VALUE_FILE = Argument("--file", metavar="PATH", help="read the value from a file")


def read_value(options: dict[str, Any]) -> bytes:
    """Return the value's bytes; of a file at most one byte more than a value may have, which is refused."""
    text, path = options["value"], options["file"]
    if (text is None) == (path is None):
        raise CommandError("Give the value as an argument, with --file, or as - for standard input; one of them.")
    if path is not None:
        with Path(path).open("rb") as stream:
            return stream.read(MAX_VALUE_SIZE + 1)
    if text == "-":
        return stdin_bytes().read(MAX_VALUE_SIZE + 1)
    return os.fsencode(text)


def read_value_for(queue: Queue, options: dict[str, Any]) -> Any:
    """Return the value; the argument of a msgpack queue is JSON, all else is bytes as they are stored."""
    value = read_value(options)
    if queue.codec != "msgpack" or options["value"] in (None, "-"):
        return value
    return Codec("json", queue.name).decode(value)


def read_priority(queue: Queue, text: str | None, *, refusal: str = "it takes no --priority") -> Priority | None:
    """Return a priority as the queue's type reads it; a FIFO queue takes none."""
    if text is None:
        return None
    if queue.kind == "fifo":
        raise CommandError(f"{queue.name} is a FIFO queue: {refusal}.")
    return parse_priority(text, queue.priority_type)


def stdin_bytes() -> io.BufferedReader:
    """Return standard input as bytes."""
    stream = getattr(sys.stdin, "buffer", None)
    if not isinstance(stream, io.BufferedReader):
        raise CommandError("Standard input is not readable.")
    return stream
