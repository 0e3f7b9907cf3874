"""`pqadmin work`: run the handlers of a program's module on the items of some queues."""

from __future__ import annotations

import logging
import os
from argparse import ArgumentTypeError
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin.commands import handlers
from pqadmin.commands.interruption import Interrupted, Interruption
from pqadmin.commands.store_command import StoreCommand, whole_number
from pqadmin.conf import environment
from queues import Store
from queues.workers import Pool, Tally

_DAY = 86_400.0


class Command(StoreCommand):
    """Lease items, run handlers on them, and make delayed items ready when they are due."""

    help = (
        "Run a program's handlers on the items of some queues. It goes on until Ctrl-C or SIGTERM. Each item is "
        "leased, and acknowledged when its handler returns; when it raises, the item comes back later, or is dead "
        "after its last attempt. Delayed items are made ready when they are due. Django is the program's: it is set up "
        "by --settings or DJANGO_SETTINGS_MODULE, and not at all without."
    )

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queues", nargs="+", metavar="queue")
        parser.add_argument(
            "--handlers",
            required=True,
            metavar="MODULE[:NAME]",
            help="the module with the handlers, in the current folder or installed, and the Worker in it (worker)",
        )
        parser.add_argument("--threads", type=whole_number, default=4, metavar="N", help="default: %(default)s")
        parser.add_argument("--once", action="store_true", help="end when nothing is ready or due any more")
        parser.add_argument(
            "--grace",
            type=_seconds,
            default=30.0,
            metavar="SECONDS",
            help="what running handlers get to finish when the command is stopped (default: %(default)s)",
        )

    def store_url(self, options: dict[str, Any]) -> str:
        """Return the store's URL: the option, else the environment's, as Django's settings are the program's."""
        try:
            return str(options["store"] or environment.read_store(os.environ))
        except environment.BadSetting as error:
            raise CommandError(str(error), returncode=2) from error

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Work until the end, or until stopped."""
        worker = handlers.load(options["handlers"])
        handlers.log_to_stderr(logging.INFO if options["verbosity"] > 1 else logging.WARNING)
        try:
            pool = Pool(store, worker, options["queues"], threads=options["threads"], once=options["once"])
        except LookupError as error:
            raise CommandError(str(error)) from error
        with Interruption():
            tally = self._work(pool, options)
        self._tell_result(tally, options)
        if tally.cut_off:
            raise CommandError(f"Handlers that did not end in time: {tally.cut_off}. Their items were given back.")

    def _work(self, pool: Pool, options: dict[str, Any]) -> Tally:
        try:
            if options["verbosity"] and not options["once"]:
                names = ", ".join(options["queues"])
                self.stderr.write(f"Working on {names} with {options['threads']} threads.", lambda same: same)
            pool.start()
            pool.wait()
            return pool.tally()
        except Interrupted:
            try:
                return pool.stop(options["grace"])
            except Interrupted:  # asked again: at once
                return pool.stop(0.0)

    def _tell_result(self, tally: Tally, options: dict[str, Any]) -> None:
        if options["json"]:
            self.print_json(asdict(tally))
            return
        self.stdout.write(
            f"{tally.done} done, {tally.failed} failed ({tally.dead} of them dead), {tally.stopped} stopped, "
            f"{tally.cut_off} cut off."
        )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _DAY:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to {_DAY:.0f}")
    return seconds
