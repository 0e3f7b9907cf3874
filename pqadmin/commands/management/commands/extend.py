"""`pqadmin extend`: let a lease end later."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.shapes import time_shape
from pqadmin.commands.store_command import StoreCommand
from pqadmin.commands.times import seconds
from queues import Store


class Command(StoreCommand):
    """Let a lease end so long from now; its token stays."""

    help = "Let a lease end so long from now; its token stays."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("token", metavar="TOKEN")
        parser.add_argument("--for", dest="span", type=seconds, default=60.0, metavar="SPAN", help="default: 60s")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Extend the lease."""
        queue = store.queue(options["queue"])
        lease = queue.extend(options["token"], seconds=options["span"])
        expires = time_shape(lease.expires_at)
        if options["json"]:
            self.print_json({"queue": queue.name, "token": lease.token, "expires_at": expires})
        else:
            self.stdout.write(f"{queue.name}: the lease ends {expires}.")
