"""`pqadmin doctor`: examine a whole store, and repair it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

from django.conf import settings
from django.core.management.base import CommandError

from pqadmin.commands.arguments import OneOf, flag
from pqadmin.commands.store_command import Options, StoreCommand, os_user
from pqadmin.commands.tables import console
from pqadmin.display.format import moment, number, visible
from pqadmin.files.shapes import Shape, time_shape
from queues import Store
from queues.admin import SKEWED_CLOCK, STORE_FORMAT, Examination, describe_skew, spelled_duration, verify_store


class Unhealthy(CommandError):
    """Something is wrong with the store."""


class Command(StoreCommand):
    """Examine the whole store against a full count, and repair it.

    Counters, priority bands and index of every queue are compared with its items; names without queues, queues without
    names, unknown keys, slots that clients left behind and drift flags are found. Changes nothing without --repair.
    Ends with exit code 1 when something is wrong.
    """

    on_servers = False
    arguments = (
        OneOf(
            flag("--repair", "repair what can be repaired, and print what was done"),
            flag("--set-clock", "only set the store's clock by this machine's, for all processes"),
        ),
    )

    def run_at(self, url: str, options: Options) -> None:
        """Verify the file of an embedded store first: LMDB crashes on damaged pages."""
        verify_store(url)
        super().run_at(url, options)

    def run(self, store: Store, options: Options) -> None:
        """Examine the store; opening it has shown that its format is this release's."""
        if options["set_clock"]:
            moved = store.set_clock(by=os_user())
            way = "forward" if moved >= 0 else "back"
            self.answer(
                {"store": store.url, "time": time_shape(store.now()), "forward_seconds": round(moved, 3)},
                f"The store's clock was set {way} by {spelled_duration(abs(moved))}: {moment(store.now())}.",
            )
            return
        repair = bool(options["repair"])
        with self._progress() as on_queue:
            found = (store.doctor.repair if repair else store.doctor.examine)(on_queue=on_queue)
        self.answer(_shape(store, found), *_lines(found, repaired=repair), *_notes(store))
        if not found.healthy:
            raise Unhealthy(_verdict(found, repaired=repair))

    @contextmanager
    def _progress(self) -> Iterator[Callable[[str], None]]:
        if not self.stderr.isatty():
            yield lambda name: None
            return
        with console(self.progress_stream()).status("Examining") as status:
            yield lambda name: status.update(f"Counting {visible(name)}")


def _lines(found: Examination, *, repaired: bool) -> Iterator[str]:
    for done in found.mended:
        yield f"Mended: {done}"
    for finding in found.findings:
        queue = f"{visible(finding.queue)}: " if finding.queue is not None else ""
        yield f"{'Still wrong' if repaired else 'Wrong'}: {queue}{finding.says}"
    for note in found.notes:
        yield f"Note: {note}"
    for name, keys in found.spaces.items():
        yield f"Space {visible(name)}: {_counted(keys, 'key')} of the application, not examined."
    if found.healthy:
        queues, items = _counted(found.queues, "queue"), _counted(found.items, "item")
        yield f"Healthy: {queues} with {items} counted, store format {STORE_FORMAT}."


def _notes(store: Store) -> Iterator[str]:
    """Describe the store's clock, if it differs, and the retention of the audit."""
    if abs(store.skew) > SKEWED_CLOCK:
        yield (
            f"Note: {describe_skew(store.skew)}, which shows {moment(store.now())}. Times follow the store's. Correct "
            "this machine's clock, or, where the store's is wrong, run doctor --set-clock."
        )
    if (oldest := store.audit.oldest_at()) is not None:
        days = settings.PQADMIN_AUDIT_DAYS
        kept = f"for {number(days)} days" if days else "for ever"
        yield (
            f"The audit keeps its records {kept} (PQADMIN_AUDIT_DAYS); the oldest is of {oldest:%Y-%m-%d %H:%M} UTC."
        )


def _shape(store: Store, found: Examination) -> Shape:
    return {
        "store": store.url,
        "store_id": store.id,
        "format": STORE_FORMAT,
        "healthy": found.healthy,
        "queues": found.queues,
        "items": found.items,
        "spaces": dict(found.spaces),
        "findings": [asdict(finding) for finding in found.findings],
        "notes": list(found.notes),
        "mended": list(found.mended),
        "clock": {"time": time_shape(store.now()), "skew_seconds": round(store.skew, 3)},
        "audit": {"since": time_shape(store.audit.oldest_at()), "days": settings.PQADMIN_AUDIT_DAYS},
    }


def _verdict(found: Examination, *, repaired: bool) -> str:
    n = len(found.findings)
    told = "1 thing is wrong" if n == 1 else f"{n} things are wrong"
    if repaired:
        return f"{told} and could not be repaired."
    mendable = any(finding.mendable for finding in found.findings)
    return f"{told}; --repair repairs what can be repaired." if mendable else f"{told}."


def _counted(n: int, what: str) -> str:
    return f"1 {what}" if n == 1 else f"{number(n)} {what}s"
