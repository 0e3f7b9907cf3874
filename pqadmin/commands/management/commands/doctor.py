"""`pqadmin doctor`: examine a whole store, and mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from pqadmin.commands.shapes import time_shape
from pqadmin.commands.store_command import StoreCommand, os_user
from pqadmin.commands.tables import console
from pqadmin.display.format import moment, number, visible
from queues import Store
from queues.catalog.store_record import FORMAT
from queues.serving.clock import SKEWED, describe, spelled
from queues.tools.doctor import Examination
from queues.tools.verify import verify_store


class Unhealthy(CommandError):
    """Something is wrong with the store."""


class Command(StoreCommand):
    """Examine a store: counters and index against a full count, orphans, stale slots, drift flags, format."""

    help = (
        "Examine the whole store against a full count, and mend it. Counters, priority bands and index of every queue"
        " are compared with its items; names without queues, queues without names, keys that nobody knows, slots that"
        " clients left behind and drift flags are found. Changes nothing without --repair. Ends with exit code 1 when"
        " something is wrong."
    )

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--repair", action="store_true", help="mend what can be mended, and tell what was done")
        what.add_argument(
            "--set-clock", action="store_true", help="only set the store's clock by this machine's, for all processes"
        )

    def run_at(self, url: str, options: dict[str, Any]) -> None:
        """Read the file of an embedded store whole first: LMDB would stumble over damaged pages."""
        verify_store(url)
        super().run_at(url, options)

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Examine the store; opening it has shown that its format is this release's."""
        if options["set_clock"]:
            self._set_clock(store, options)
            return
        with self._progress() as on_queue:
            examine = store.doctor.repair if options["repair"] else store.doctor.examine
            found = examine(on_queue=on_queue)
        if options["json"]:
            self._print_json(store, found)
        else:
            self._print(found, repaired=options["repair"])
            if abs(store.skew) > SKEWED:
                self.print_line(f"Note: {_skew_words(store)} {_FOLLOW}")
            if (oldest := store.audit.oldest_at()) is not None:
                self.print_line(_retention(oldest))
        if not found.healthy:
            raise Unhealthy(_verdict(found, repaired=options["repair"]))

    def _set_clock(self, store: Store, options: dict[str, Any]) -> None:
        moved = store.set_clock(by=os_user())
        if options["json"]:
            self.print_json({"store": store.url, "time": time_shape(store.now()), "forward_seconds": round(moved, 3)})
        else:
            way = "forward" if moved >= 0 else "back"
            self.print_line(f"The store's clock was set {way} by {spelled(abs(moved))}: {moment(store.now())}.")

    @contextmanager
    def _progress(self) -> Iterator[Callable[[str], None]]:
        if not self.stderr.isatty():
            yield lambda name: None
            return
        with console(self.progress_stream()).status("Examining") as status:
            yield lambda name: status.update(f"Counting {visible(name)}")

    def _print(self, found: Examination, *, repaired: bool) -> None:
        for done in found.mended:
            self.print_line(f"Mended: {done}")
        for finding in found.findings:
            queue = f"{visible(finding.queue)}: " if finding.queue is not None else ""
            self.print_line(f"{'Still wrong' if repaired else 'Wrong'}: {queue}{finding.says}")
        for note in found.notes:
            self.print_line(f"Note: {note}")
        for name, keys in found.spaces.items():
            held = "1 key" if keys == 1 else f"{number(keys)} keys"
            self.print_line(f"Space {visible(name)}: {held} of the application, not examined.")
        if found.healthy:
            queues = "1 queue" if found.queues == 1 else f"{number(found.queues)} queues"
            items = "1 item" if found.items == 1 else f"{number(found.items)} items"
            self.print_line(f"Healthy: {queues} with {items} counted, store format {FORMAT}.")

    def _print_json(self, store: Store, found: Examination) -> None:
        self.print_json(
            {
                "store": store.url,
                "store_id": store.id,
                "format": FORMAT,
                "healthy": found.healthy,
                "queues": found.queues,
                "items": found.items,
                "spaces": dict(found.spaces),
                "findings": [asdict(finding) for finding in found.findings],
                "notes": list(found.notes),
                "mended": list(found.mended),
                "clock": {"time": time_shape(store.now()), "skew_seconds": round(store.skew, 3)},
                "audit": {
                    "since": time_shape(store.audit.oldest_at()),
                    "days": settings.PQADMIN_AUDIT_DAYS,
                },
            }
        )


def _retention(oldest: datetime) -> str:
    """Say since when the audit holds acts, and for how long it keeps them."""
    days = settings.PQADMIN_AUDIT_DAYS
    kept = f"for {number(days)} days" if days else "for ever"
    return f"The audit keeps acts {kept} (PQADMIN_AUDIT_DAYS); the oldest is of {oldest:%Y-%m-%d %H:%M} UTC."


#: What to do about clocks that differ.
_FOLLOW = (
    "Times follow the store's. Correct this machine's clock, or, where the store's is wrong, run doctor --set-clock."
)


def _skew_words(store: Store) -> str:
    return f"{describe(store.skew)}, which shows {moment(store.now())}."


def _verdict(found: Examination, *, repaired: bool) -> str:
    n = len(found.findings)
    told = "1 thing is wrong" if n == 1 else f"{n} things are wrong"
    if repaired:
        return f"{told} and could not be mended."
    return f"{told}; --repair mends what can be mended." if any(f.mendable for f in found.findings) else f"{told}."
