"""`pqadmin lease`: hold items for a time, as a worker does."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin.commands.shapes import item_shape, time_shape
from pqadmin.commands.store_command import ENDS, StoreCommand, add_exit_empty, end_empty, whole_number
from pqadmin.commands.tables import console, print_items
from pqadmin.commands.times import seconds, waited
from queues import Store


class Command(StoreCommand):
    """Hold items from one end and print the token that acknowledges each."""

    help = (
        "Hold items from one end of a queue for a time. It prints each one's token, for ack, release or extend. "
        "A worker's verb: counted in the queue's traffic, not in the audit."
    )

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("--end", choices=ENDS, default="min", help="FIFO: head (default: %(default)s)")
        parser.add_argument("-n", type=whole_number, default=1, metavar="N", help="at most N items, up to 1,000")
        parser.add_argument("--for", dest="span", type=seconds, default=60.0, metavar="SPAN", help="default: 60s")
        parser.add_argument("--worker", metavar="NAME", help="who holds them (default: this machine and process)")
        parser.add_argument("--timeout", type=seconds, metavar="SPAN", help="wait so long for an item")
        add_exit_empty(parser)

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Lease the items and show them."""
        queue = store.queue(options["queue"])
        if queue.kind == "fifo" and options["end"] in ("max", "tail"):
            raise CommandError(f"{queue.name} is a FIFO queue: items leave it at the head only.")
        shared = {"seconds": options["span"], "end": options["end"], "worker": options["worker"]}
        timeout = options["timeout"]
        held = queue.lease(options["n"], timeout=timeout, **shared)
        if not held and timeout is not None:
            with waited(timeout):
                held = queue.lease(options["n"], **shared)
        if options["json"]:
            leases = [
                {**item_shape(lease.item), "token": lease.token, "expires_at": time_shape(lease.expires_at)}
                for lease in held
            ]
            self.print_json({"queue": queue.name, "leases": leases})
        elif held:
            print_items(console(self.stdout), [lease.item for lease in held], store.now())
            for lease in held:
                self.stdout.write(f"Token: {lease.token}")
        else:
            self.stdout.write(f"{queue.name} has nothing ready.")
        if not held:
            end_empty(options)
