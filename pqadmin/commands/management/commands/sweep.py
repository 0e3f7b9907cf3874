"""`pqadmin sweep`: do what is due in a store, once or for as long as it runs."""

from __future__ import annotations

import logging
import threading
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from pqadmin.commands.interruption import Interrupted, Interruption
from pqadmin.commands.store_command import StoreCommand
from pqadmin.files.plain_text import json_text
from queues import Store
from queues.background.service import Upkeep
from queues.background.sweeper import Swept

#: Seconds between two looks whether the store is still there.
_LOOK_EVERY = 1.0


class Command(StoreCommand):
    """Make ready what is due, end leases that expired, clear the trash, merge undone purges."""

    help = (
        "Do what is due in all queues, once or all the time: make delayed items ready, end leases that have expired, "
        "clear the trash beyond its deadlines, merge undone purges, forget what clients of a cluster left behind, and "
        "acts in the audit that are older than PQADMIN_AUDIT_DAYS. "
        "Every running site does this by itself; with --watch this command offers to, and of all that offer it one is"
        " elected."
    )

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "--watch", action="store_true", help="stay, and do what is due when it is due, until Ctrl-C or SIGTERM"
        )

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Sweep and say what was done."""
        logging.getLogger("queues.background.sweeper").setLevel(logging.WARNING)
        if options["watch"]:
            self._watch(store, options)
            return
        swept = store.sweep(audit_days=settings.PQADMIN_AUDIT_DAYS)
        if options["json"]:
            self.print_json(asdict(swept))
        else:
            self.stdout.write(_words(swept) or "Nothing was due.")

    def _watch(self, store: Store, options: dict[str, Any]) -> None:
        done = Swept()
        lock = threading.Lock()

        def tell(swept: Swept) -> None:
            nonlocal done
            with lock:
                done += swept
                if options["verbosity"]:
                    self.print_line(json_text(asdict(swept)) if options["json"] else _words(swept))
                    self.stdout.flush()

        def elected(now: bool) -> None:
            if options["verbosity"]:
                words = "Sweeping." if now else "Another process sweeps now; standing by."
                self.stderr.write(words, lambda same: same)
                self.stderr.flush()

        upkeep = store.upkeep(audit_days=settings.PQADMIN_AUDIT_DAYS, tell=tell, on_elected=elected)
        with Interruption() as interruption:
            try:
                if options["verbosity"]:
                    self.stderr.write(f"Offering to sweep {store.url}; stop with Ctrl-C.", lambda same: same)
                upkeep.start()
                self._wait(upkeep)
            except Interrupted:
                interruption.finish(upkeep.stop)
        if not options["json"]:
            self.stdout.write(f"Ended. {_words(done) or 'Nothing was due.'}")

    @staticmethod
    def _wait(upkeep: Upkeep) -> None:
        while upkeep.alive:
            threading.Event().wait(_LOOK_EVERY)


#: What was done, of one and of several.
_WORDS = {
    "promoted": ("delayed item made ready", "delayed items made ready"),
    "expired": ("lease ended", "leases ended"),
    "merged": ("item of an undone purge merged", "items of undone purges merged"),
    "trash": ("key of old trash cleared", "keys of old trash cleared"),
    "unclaimed": ("item of a process that died put into the trash", "items of processes that died put into the trash"),
    "slots": ("slot forgotten", "slots forgotten"),
    "audit": ("old act of the audit forgotten", "old acts of the audit forgotten"),
    "answers": ("answer of an old request forgotten", "answers of old requests forgotten"),
}


def _words(swept: Swept) -> str:
    """Say what was done, in one line; nothing when there was nothing."""
    said = [f"{n:,} {_WORDS[what][n > 1]}" for what, n in asdict(swept).items() if n]
    return f"{', '.join(said)}." if said else ""
