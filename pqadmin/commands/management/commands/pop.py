"""`pqadmin pop`: take items from one end of a queue."""

import contextlib
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError

from pqadmin.commands.arguments import COUNT, END, EXIT_CODE, KEEP, QUEUE, RAW, REASON, Argument, seconds
from pqadmin.commands.exec_program import DELAY, EXEC, GRACE, Execution
from pqadmin.commands.stop_signals import Interrupted, Interruption
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.commands.tables import console, print_items
from pqadmin.commands.take_options import check_output, end_of, finish, waited, write_raw
from pqadmin.files.shapes import item_shape
from queues import Popped, Queue, Store
from queues.errors import QueueError, QueuePaused, StoreError, TooLarge

#: Items of one transaction at first; halved while they are too large for one.
_STEP = 500
#: Items with a printed undo line.
_SHOWN = 5


class Command(StoreCommand):
    """Take items from one end of a queue. Each is audited, and can be put back from the trash for 7 days (--keep).

    With --exec a program handles the items, one after the other. They are leased and acknowledged as `lease --exec`
    does it: nothing is audited or kept in the trash.
    """

    arguments = (
        QUEUE,
        END,
        COUNT,
        Argument(
            "--wait",
            type=seconds,
            metavar="SPAN",
            help="wait so long for the first item: 90s, 15m; through a pause too",
        ),
        EXIT_CODE,
        RAW,
        EXEC,
        DELAY,
        GRACE,
        KEEP,
        REASON,
    )
    listed = "items"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._stop = Interruption(self._stopped)
        self._stops = 0

    def run(self, store: Store, options: Options) -> None:
        """Take the items and show them, the first taken first."""
        check_output(options)
        queue = store.queue(options["queue"])
        if options["exec"] is not None:
            if options["keep"] is not None or options["reason"]:
                raise CommandError("--exec acknowledges items, which keeps nothing: leave out --keep and --reason.")
            Execution(self, queue, options, store_url=self.store_url(options)).run()
            return
        end = end_of(queue, options)
        taken: list[Popped] = []
        with self._stop, self._stop.held():  # what is taken is shown before a stop
            try:
                self._wait(queue, options["wait"], lambda: self._take(store, queue.name, end, taken, options), taken)
            except (QueueError, StoreError, Interrupted):
                if taken:  # what was taken before is shown all the same
                    self._show(queue.name, taken, options, store.now())
                raise
            self._show(queue.name, taken, options, store.now())
            self.stdout.flush()
        finish(self, queue, options, empty=not taken)

    def _stopped(self, number: int) -> None:
        """End at once by a second stop signal: the store may not answer, or the reader of the items not read."""
        self._stops += 1
        if self._stops > 1:
            raise Interrupted

    def _wait(self, queue: Queue, wait: float | None, take: Callable[[], None], taken: list[Popped]) -> None:
        """Take items; while there are none, wait for the rest of the time and try again."""
        if wait is None:
            take()
            return
        deadline = time.monotonic() + wait
        while not taken and self._ready(queue, max(0.0, deadline - time.monotonic())):
            with contextlib.suppress(QueuePaused):  # paused meanwhile
                take()
        if not taken:
            with waited(wait):
                take()

    def _ready(self, queue: Queue, seconds: float) -> bool:
        with self._stop.waiting():
            return queue.wait(seconds)

    def _take(self, store: Store, name: str, end: str, taken: list[Popped], options: Options) -> None:
        acts = self.actions(store, keep=options["keep"])
        step = _STEP
        while (wanted := options["n"] - len(taken)) > 0 and not self._stop.requested:
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

    def _show(self, name: str, taken: list[Popped], options: Options, now: datetime) -> None:
        if options["raw"]:
            for popped in taken:
                write_raw([popped.item.raw])
            return
        if taken and not options["json"]:
            print_items(console(self.stdout), [popped.item for popped in taken], now)
        items = [{**item_shape(popped.item), "trash_id": popped.trash_id} for popped in taken]
        undo = [line for popped in taken for line in self.undo_line(popped.trash_id)]
        if len(undo) > _SHOWN:
            undo[_SHOWN:] = ["The other items can be put back on the trash's page; --json prints the ids of all."]
        self.answer({"queue": name, "items": items}, *undo)
