"""A value on the command line: an argument, a file, or standard input, byte for byte."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin.commands.store_command import stdin_bytes
from queues.model.records import MAX_VALUE_SIZE


def add_value(parser: CommandParser) -> None:
    """Declare the value."""
    parser.add_argument("value", nargs="?", help="the value as text; - reads standard input to its end")
    parser.add_argument("--file", metavar="PATH", help="read the value from a file")


def read_value(options: dict[str, Any]) -> bytes:
    """Return the value's bytes; no more is read than the largest value and one byte, which is refused."""
    text, path = options["value"], options["file"]
    if (text is None) == (path is None):
        raise CommandError("Give the value as an argument, with --file, or as - for standard input; one of them.")
    if path is not None:
        with Path(path).open("rb") as stream:
            return stream.read(MAX_VALUE_SIZE + 1)
    if text == "-":
        return stdin_bytes().read(MAX_VALUE_SIZE + 1)
    return os.fsencode(text)
