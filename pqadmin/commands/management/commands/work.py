"""`pqadmin work`: run the handlers of a program's module on the items of some queues."""

import logging
import os
from dataclasses import asdict

from django.core.management.base import CommandError

from pqadmin.commands import handlers
from pqadmin.commands.arguments import Argument, flag, number, whole_number
from pqadmin.commands.exit_codes import Exit
from pqadmin.commands.stop_signals import Interrupted, Interruption
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.conf import environment
from queues import Store
from queues.workers import Pool, PoolStats

_DAY = 86_400


class Command(StoreCommand):
    """Run a program's handlers on the items of some queues.

    It runs until Ctrl-C or SIGTERM. Each item is leased, and acknowledged when its handler returns; when it raises, the
    item is retried later, or is dead after its last attempt. Delayed items are made ready when they are due. Django is
    the program's: it is set up by --settings or DJANGO_SETTINGS_MODULE, and not at all without.
    """

    arguments = (
        Argument("queues", nargs="+", metavar="queue"),
        Argument(
            "--handlers",
            required=True,
            metavar="MODULE[:NAME]",
            help="the module with the handlers, in the current folder or installed, and the Worker in it (worker)",
        ),
        Argument("--threads", type=whole_number, default=4, metavar="N", help="default: %(default)s"),
        flag("--once", "end when nothing is ready or due any more"),
        Argument(
            "--grace",
            type=number(float, 0, _DAY, f"a number of seconds from 0 to {_DAY}"),
            default=30.0,
            metavar="SECONDS",
            help="the time in which running handlers may finish after a stop (default: %(default)s)",
        ),
    )

    def store_of_environment(self) -> str:
        """Return the URL of the environment's store, as Django's settings are the program's."""
        try:
            return environment.read_store(os.environ)
        except environment.BadSetting as error:
            raise CommandError(str(error), returncode=Exit.USAGE) from error

    def token_of_environment(self) -> str:
        """Return the token of the environment, as Django's settings are the program's."""
        try:
            return environment.read_token(os.environ)
        except environment.BadSetting as error:
            raise CommandError(str(error), returncode=Exit.USAGE) from error

    def run(self, store: Store, options: Options) -> None:
        """Work until the end, or until stopped."""
        worker = handlers.load(options["handlers"])
        handlers.log_to_stderr(logging.INFO if options["verbosity"] > 1 else logging.WARNING)
        try:
            pool = Pool(store, worker, options["queues"], threads=options["threads"], once=options["once"])
        except LookupError as error:
            raise CommandError(str(error)) from error
        with Interruption():
            stats = self._work(pool, options)
        self.answer(
            asdict(stats),
            f"{stats.done} done, {stats.failed} failed ({stats.dead} of them dead), {stats.stopped} stopped, "
            f"{stats.cut_off} cut off.",
        )
        if stats.cut_off:
            raise CommandError(f"Handlers that did not end in time: {stats.cut_off}. Their items were returned.")

    def _work(self, pool: Pool, options: Options) -> PoolStats:
        try:
            if options["verbosity"] and not options["once"]:
                self.tell(f"Working on {', '.join(options['queues'])} with {options['threads']} threads.")
            pool.start()
            pool.wait()
            return pool.stats()
        except Interrupted:
            try:
                return pool.stop(options["grace"])
            except Interrupted:  # asked again: at once
                return pool.stop(0.0)
