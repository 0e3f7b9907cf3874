"""`pqadmin copy_store`: copy a whole store to another place or engine."""

from __future__ import annotations

import argparse
import time
from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin.commands.interruption import Interrupted, Interruption
from pqadmin.commands.store_command import EXIT_INTERRUPTED, StoreCommand, refuse_missing
from pqadmin.display.format import number, size
from pqadmin.files.plain_text import json_text
from queues.errors import BadSetting, NotAStore, SourceChanged, StoreError, TargetNotEmpty
from queues.tools.copy import Copied, Progress, copy_store

#: Seconds between two lines of progress.
_EVERY = 1.0


class Command(StoreCommand):
    """Copy a whole store into an empty place, and verify the copy."""

    help = (
        "Copy a whole store to another place or engine. Both are compared at the end. TO is empty, or holds the same "
        "copy unfinished. Pause whatever writes to FROM; nothing may use TO before this has ended well. A copy that "
        "was stopped, killed, or that found FROM changed goes on when the same command is run again."
    )
    has_store = False

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("from_url", metavar="FROM", help="the store to copy: lmdb:PATH or fdb:CLUSTER_FILE")
        parser.add_argument("to_url", metavar="TO", help="where to: an empty place, or the same copy unfinished")
        parser.add_argument(
            "--outside",
            action=argparse.BooleanOptionalAction,
            default=None,
            help="copy keys outside of the root: other programs', and items of attached queues (default: from one "
            "embedded store into another; never from a cluster)",
        )
        parser.add_argument("--quiet", action="store_true", help="no progress; the result is shown")

    def handle(self, *args: Any, **options: Any) -> None:
        """Copy the store."""
        from_url, to_url = options["from_url"], options["to_url"]
        self._url = from_url
        self.watch(from_url)
        refuse_missing(from_url)
        progress = _Lines(self, quiet=options["quiet"], as_json=options["json"])
        began = time.monotonic()
        with Interruption() as interruption:
            try:
                copied = copy_store(
                    from_url,
                    to_url,
                    with_outside=options["outside"],
                    on_progress=progress.tell,
                    hold=interruption.held,
                )
            except (SourceChanged, TargetNotEmpty, NotAStore, BadSetting):
                raise
            except StoreError as error:
                if not progress.told:
                    raise
                raise CommandError(f"{error} Run the same command again to go on with the copy.") from error
            except Interrupted as stop:
                raise CommandError(
                    "Interrupted. Run the same command again to go on with the copy.", returncode=EXIT_INTERRUPTED
                ) from stop
        seconds = time.monotonic() - began
        digest = copied.digest
        if options["json"]:
            self.print_json(
                {
                    "from": from_url,
                    "to": to_url,
                    "store_id": copied.store_id,
                    "keys": digest.keys,
                    "bytes": digest.size,
                    "checksum": digest.checksum,
                    "rounds": copied.rounds,
                    "resumed": copied.resumed,
                    "outside": _outside_shape(copied),
                    "seconds": round(seconds, 3),
                }
            )
            return
        self.print_line(
            f"Copied {from_url} to {to_url} in {seconds:.1f} s: {number(digest.keys)} keys, {size(digest.size)}. "
            f"Both sides were read whole and are equal: SHA-256 {digest.checksum}."
        )
        if words := _outside_words(copied):
            self.print_line(words)


def _outside_words(copied: Copied) -> str:
    """Say what became of keys outside of the root; empty where there are none."""
    if copied.outside is not None:
        keys, bytes_ = number(copied.outside.keys), size(copied.outside.size)
        equal = f"{keys} keys outside of the root, {bytes_}, are equal too: SHA-256 {copied.outside.checksum}."
        return equal if copied.outside.keys else ""
    if copied.left is None:
        return "Keys outside of the root are not copied from a cluster: they belong to other programs."
    if not copied.left:
        return ""
    return (
        f"{number(copied.left)} keys outside of the root are not copied (other programs', and items of attached "
        "queues); --outside copies them."
    )


def _outside_shape(copied: Copied) -> dict[str, object]:
    if copied.outside is None:
        return {"copied": False, "keys": copied.left}
    found = copied.outside
    return {"copied": True, "keys": found.keys, "bytes": found.size, "checksum": found.checksum}


class _Lines:
    """Tells how far a copy is, a line a second at most, and each phase at least once."""

    def __init__(self, command: Command, *, quiet: bool, as_json: bool) -> None:
        self._command = command
        self._quiet = quiet
        self._json = as_json
        self._phase = ""
        self._next = 0.0
        #: Whether anything was done.
        self.told = False

    def tell(self, progress: Progress) -> None:
        """Show the progress if it is time to."""
        self.told = True
        now = time.monotonic()
        if self._quiet or (progress.phase == self._phase and now < self._next):
            return
        self._phase, self._next = progress.phase, now + _EVERY
        if self._json:
            line = json_text({"phase": progress.phase, "keys": progress.keys, "bytes": progress.size})
        else:
            line = f"{progress.phase.capitalize()}: {number(progress.keys)} keys, {size(progress.size)}"
        self._command.stderr.write(line, lambda same: same)
        self._command.stderr.flush()
