"""`pqadmin export_items`: write a queue's items to a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.interruption import Interruption
from pqadmin.commands.store_command import StoreCommand
from pqadmin.files import formats
from pqadmin.files.items_dump import entries, replacing
from queues import Store

_STDOUT = "-"


class Command(StoreCommand):
    """Write a queue's ready items in order, so that importing them gives an equal sequence."""

    help = (
        "Write the ready items of a queue to a file, as NDJSON or CSV. They stand in the order in which they would "
        "leave; nothing is taken. import_items of the file gives an equal sequence (with --end min). The queue is "
        "read page by page, so the export of a queue in use is not one snapshot. The file appears under its name when"
        " it is complete."
    )
    has_json = False

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("file", nargs="?", default=_STDOUT, help="default: -, standard output")
        parser.add_argument("--format", choices=("ndjson", "csv"), help="default: by the file's ending, else ndjson")
        parser.add_argument("--end", choices=("min", "max"), default="min", help="the end to begin at")
        parser.add_argument("--quiet", action="store_true", help="do not tell how many items were written")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Write the items."""
        queue = store.queue(options["queue"])
        name = options["file"]
        file_format = options["format"] or formats.format_of_name(name) or "ndjson"
        found = entries(queue, end=options["end"])
        priority_type = None if queue.kind == "fifo" else queue.priority_type
        if name == _STDOUT:
            count = formats.write(sys.stdout.buffer, file_format, found, priority_type=priority_type)
            sys.stdout.buffer.flush()
        else:
            with Interruption(), replacing(Path(name)) as stream:
                count = formats.write(stream, file_format, found, priority_type=priority_type)
        if not options["quiet"]:
            items = "1 item" if count == 1 else f"{count} items"
            self.stderr.write(f"Exported {items} of {queue.name}.", lambda text: text)
