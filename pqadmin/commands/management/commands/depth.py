"""`pqadmin depth`: tell how many items queues hold."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.shapes import depth_shape
from pqadmin.commands.store_command import StoreCommand
from pqadmin.display.format import clock
from queues import Queue, Store, Totals

#: The states of an item, in the order of the columns of --all.
STATES = ("ready", "delayed", "leased", "dead")


class Command(StoreCommand):
    """Print the exact number of items of one queue or of several: the ready ones, those of a state, or all states."""

    help = (
        "Print how many items a queue holds, exactly: those that are ready, unless --state or --all says otherwise. "
        "Only items of attached queues are counted for it."
    )

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue", nargs="+", help="one queue prints the number alone; several, a line each")
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--state", choices=STATES, default="ready", help="items of this state (default: ready)")
        which.add_argument(
            "--all",
            action="store_true",
            help="a line for each queue: ready, delayed, leased, dead and its name, separated by tabs",
        )

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Read all depths of our own queues in one transaction, so that their sum is true, and count the others."""
        queues = [store.queue(name) for name in options["queue"]]
        ours = [queue for queue in queues if not queue.attached]
        known = store.read(lambda tr: {queue.id: queue.totals(tr=tr) for queue in ours})
        depths = [
            (queue, known[queue.id], None) if queue.id in known else (queue, *_counted(store, queue))
            for queue in queues
        ]
        if options["json"]:
            self.print_json({"depths": [depth_shape(queue.name, totals, at) for queue, totals, at in depths]})
            return
        for queue, totals, at in depths:
            if options["all"]:
                numbers = "\t".join(str(getattr(totals, state)) for state in STATES)
                self.stdout.write(f"{numbers}\t{queue.name}")
            else:
                depth = getattr(totals, options["state"])
                self.stdout.write(str(depth) if len(depths) == 1 else f"{depth}\t{queue.name}")
            if at is not None:
                self.stderr.write(f"{queue.name} is attached: counted {clock(at)}.", lambda same: same)


def _counted(store: Store, queue: Queue) -> tuple[Totals, datetime | None]:
    """Count an attached queue now, and say when that began."""
    totals = queue.totals()
    count = store.counts.known(queue.id)
    return totals, None if count is None else count.counted_at
