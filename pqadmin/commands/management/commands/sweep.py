"""`pqadmin sweep`: do what is due in a store, once or for as long as it runs."""

import logging
import threading
from collections.abc import Callable
from dataclasses import asdict

from django.conf import settings

from pqadmin.commands.arguments import flag
from pqadmin.commands.stop_signals import Interrupted, Interruption
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.files.plain_text import json_text
from queues import Store
from queues.admin import Swept

#: Seconds between two checks that the store is still there.
_LOOK_EVERY = 1.0
#: What was done, of one and of several.
_WORDS = {
    "promoted": ("delayed item made ready", "delayed items made ready"),
    "expired": ("lease ended", "leases ended"),
    "merged": ("item of an undone purge merged", "items of undone purges merged"),
    "trash": ("key of old trash cleared", "keys of old trash cleared"),
    "unclaimed": ("item of a process that died put into the trash", "items of processes that died put into the trash"),
    "slots": ("slot forgotten", "slots forgotten"),
    "audit": ("old record of the audit removed", "old records of the audit removed"),
    "consumers": ("consumer without a heartbeat ended", "consumers without a heartbeat ended"),
    "finished": ("old record of a finished item removed", "old records of finished items removed"),
    "answers": ("answer of an old request forgotten", "answers of old requests forgotten"),
}


class Command(StoreCommand):
    """Do what is due in all queues, once or all the time.

    Make delayed items ready, end expired leases, clear the trash beyond its deadlines, merge undone purges, remove what
    clients of a cluster left behind, and audit records that are older than PQADMIN_AUDIT_DAYS. Every running site does
    this by itself; with --watch this command is a candidate too, and one candidate is elected.
    """

    on_servers = False
    arguments = (flag("--watch", "stay, and do what is due when it is due, until Ctrl-C or SIGTERM"),)

    def run(self, store: Store, options: Options) -> None:
        """Sweep and print what was done."""
        logging.getLogger("queues.background.sweeper").setLevel(logging.WARNING)
        if options["watch"]:
            self._watch(store, options)
            return
        swept = store.sweep(audit_days=settings.PQADMIN_AUDIT_DAYS)
        self.answer(asdict(swept), _words(swept) or "Nothing was due.")

    def _watch(self, store: Store, options: Options) -> None:
        done = Swept()
        lock = threading.Lock()
        #: Why the output cannot be written: its reader may be gone.
        unwritten: list[OSError] = []
        over = threading.Event()

        def tell(swept: Swept) -> None:
            nonlocal done
            with lock:
                done += swept
            if options["verbosity"]:
                told(lambda: self.stdout.write(json_text(asdict(swept)) if options["json"] else _words(swept)))
                told(self.stdout.flush)

        def elected(now: bool) -> None:
            if options["verbosity"]:
                told(lambda: self.tell("Sweeping." if now else "Another process sweeps now; standing by."))

        def told(write: Callable[[], object]) -> None:
            try:
                write()
            except OSError as error:
                unwritten.append(error)
                over.set()

        upkeep = store.upkeep(audit_days=settings.PQADMIN_AUDIT_DAYS, tell=tell, on_elected=elected)
        with Interruption() as interruption:
            try:
                if options["verbosity"]:
                    self.tell(f"Offering to sweep {store.url}; stop with Ctrl-C.")
                upkeep.start()
                while upkeep.alive and not over.wait(_LOOK_EVERY):
                    pass
            except Interrupted:
                interruption.finish(upkeep.stop)
        if unwritten:
            upkeep.stop()
            raise unwritten[0]
        if not options["json"]:
            self.stdout.write(f"Ended. {_words(done) or 'Nothing was due.'}")


def _words(swept: Swept) -> str:
    """Return what was done, in one line; empty when nothing was."""
    said = [f"{n:,} {_WORDS[what][n > 1]}" for what, n in asdict(swept).items() if n]
    return f"{', '.join(said)}." if said else ""
