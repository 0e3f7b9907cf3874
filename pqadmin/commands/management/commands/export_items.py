"""`pqadmin export_items`: write a queue's items to a file."""

import sys
from pathlib import Path

from pqadmin.commands.arguments import FORMAT, QUEUE, Argument, flag
from pqadmin.commands.interruption import Interruption
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.files import formats
from pqadmin.files.items_dump import entries, replacing
from queues import Store

_STDOUT = "-"


class Command(StoreCommand):
    """Write the ready items of a queue to a file, as NDJSON or CSV.

    They are in the order in which they would be taken; none is taken. import_items of the file gives an equal sequence
    (with --end min). The queue is read page by page, so the export of a queue in use is not one snapshot. The file
    appears when it is complete.
    """

    arguments = (
        QUEUE,
        Argument("file", nargs="?", default=_STDOUT, help="default: -, standard output"),
        FORMAT,
        Argument("--end", choices=("min", "max"), default="min", help="the end to begin at"),
        flag("--quiet", "do not print how many items were written"),
    )
    has_json = False

    def run(self, store: Store, options: Options) -> None:
        """Write the items."""
        queue, name = store.queue(options["queue"]), options["file"]
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
            self.tell(f"Exported {items} of {queue.name}.")
