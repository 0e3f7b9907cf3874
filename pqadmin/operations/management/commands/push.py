"""`pqadmin push`: push one item."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin.operations.command import StoreCommand, stdin_bytes
from pqadmin.operations.shapes import item_shape
from pqadmin.operations.tables import console, print_items
from queues import Store
from queues.priority import parse_priority
from queues.queue import MAX_VALUE_SIZE


class Command(StoreCommand):
    """Push one item; the push is audited."""

    help = (
        "Push one item. The value is the argument, a file, or standard input (-), byte for byte. "
        "Negative priorities: --priority=-5."
    )

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("value", nargs="?", help="the value as text; - reads standard input to its end")
        parser.add_argument("--file", metavar="PATH", help="read the value from a file")
        parser.add_argument("--priority", metavar="P", help="needed in a priority queue, refused in a FIFO queue")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Push the value."""
        queue = store.queue(options["queue"])
        given = options["priority"]
        if queue.kind == "fifo":
            if given is not None:
                raise CommandError(f"{queue.name} is a FIFO queue: it takes no --priority.")
            priority = None
        elif given is None:
            raise CommandError(f"{queue.name} is a priority queue: give --priority.")
        else:
            priority = parse_priority(given, queue.priority_type)
        item = self.acts(store).push(queue.name, _value(options), priority=priority)
        if options["json"]:
            self.print_json({"queue": queue.name, "item": item_shape(item)})
        else:
            print_items(console(self.stdout), [item])


def _value(options: dict[str, Any]) -> bytes:
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
