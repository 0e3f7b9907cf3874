"""`pqadmin pop`: take items from one end of a queue."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin.commands.shapes import item_shape
from pqadmin.commands.store_command import ENDS, StoreCommand, add_exit_empty, end_empty, whole_number
from pqadmin.commands.tables import console, print_items
from pqadmin.commands.times import add_keep, seconds, waited
from queues import Popped, Queue, Store
from queues.errors import QueueError, QueuePaused, StoreError, TooLarge

#: Items of one transaction at first; halved while they are too large for one.
_STEP = 500
#: Items whose undoing is told, a line each.
_SHOWN = 5


class Command(StoreCommand):
    """Take items from one end; each is audited, and stays in the trash unless told otherwise."""

    help = (
        "Take items from one end of a queue. Each is audited, and can be put back from the trash for 7 days (--keep)."
    )

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("--end", choices=ENDS, default="min", help="FIFO: head (default: %(default)s)")
        parser.add_argument("-n", type=whole_number, default=1, metavar="N", help="at most N items")
        parser.add_argument(
            "--timeout",
            type=seconds,
            metavar="SPAN",
            help="wait so long for the first item: 90s, 15m; through a pause too",
        )
        add_exit_empty(parser)
        add_keep(parser)
        parser.add_argument("--reason", default="", help="why, for the audit trail")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Take the items and show them, the first that left first."""
        queue = store.queue(options["queue"])
        end = {"head": "min", "tail": "max"}.get(options["end"], options["end"])
        if queue.kind == "fifo" and end == "max":
            raise CommandError(f"{queue.name} is a FIFO queue: items leave it at the head only.")
        taken: list[Popped] = []
        try:
            self._wait(queue, options["timeout"], lambda: self._take(store, queue.name, end, taken, options), taken)
        except (QueueError, StoreError):
            if taken:  # what was taken before is shown all the same
                self._show(queue.name, taken, options, store.now())
            raise
        self._show(queue.name, taken, options, store.now())
        if not taken:
            end_empty(options)

    def _wait(self, queue: Queue, timeout: float | None, take: Callable[[], None], taken: list[Popped]) -> None:
        """Take what is there; while nothing is, wait for the rest of the time and try again."""
        if timeout is None:
            take()
            return
        deadline = time.monotonic() + timeout
        while not taken and queue.wait(max(0.0, deadline - time.monotonic())):
            with contextlib.suppress(QueuePaused):  # paused since it was seen
                take()
        if not taken:
            with waited(timeout):
                take()

    def _take(self, store: Store, name: str, end: str, taken: list[Popped], options: dict[str, Any]) -> None:
        acts = self.acts(store, keep=options["keep"])
        step = _STEP
        while (wanted := options["n"] - len(taken)) > 0:
            step = min(step, wanted)
            try:
                popped = acts.pop_many(name, step, end=end, reason=options["reason"])
            except TooLarge:  # nothing is taken
                if step == 1:
                    raise
                step //= 2
                continue
            if not popped:
                return
            taken.extend(popped)

    def _show(self, name: str, taken: list[Popped], options: dict[str, Any], now: datetime) -> None:
        if options["json"]:
            items = [{**item_shape(popped.item), "trash_id": popped.trash_id} for popped in taken]
            self.print_json({"queue": name, "items": items})
        elif taken:
            print_items(console(self.stdout), [popped.item for popped in taken], now)
            kept = [popped.trash_id for popped in taken if popped.trash_id is not None]
            for trash_id in kept[:_SHOWN]:
                self.print_line(f"Undo: pqadmin undo {trash_id}")
            if len(kept) > _SHOWN:
                self.print_line("The others are put back from the trash's page; --json prints the ids of all.")
        else:
            self.stdout.write(f"{name} has nothing ready.")
