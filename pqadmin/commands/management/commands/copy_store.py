"""`pqadmin copy_store`: copy a whole store to another place or engine."""

import argparse
import time
from functools import partial
from typing import Any

from django.core.management.base import CommandError

from pqadmin.commands.arguments import Argument, flag
from pqadmin.commands.exit_codes import Exit
from pqadmin.commands.stop_signals import Interrupted, Interruption
from pqadmin.commands.store_command import ON_THE_MACHINE, StoreCommand, refuse_missing
from pqadmin.display.format import number, size
from pqadmin.files.plain_text import json_text
from queues.admin import Copied, Progress, copy_store
from queues.errors import BadSetting, NotAStore, SourceChanged, StoreError, TargetNotEmpty

#: Seconds between two lines of progress.
_EVERY = 1.0


class Command(StoreCommand):
    """Copy a whole store to another place or engine.

    Both are compared at the end. TO is empty, or holds the same copy unfinished. Pause all writers of FROM; nothing may
    use TO before this has ended well. A copy that was stopped, killed, or that found FROM changed continues when the
    same command is run again.
    """

    arguments = (
        Argument("from_url", metavar="FROM", help="the store to copy: lmdb:PATH or fdb:CLUSTER_FILE"),
        Argument("to_url", metavar="TO", help="where to: an empty place, or the same copy unfinished"),
        Argument(
            "--outside",
            action=argparse.BooleanOptionalAction,
            default=None,
            help="copy keys outside of the root: other programs', and items of attached queues (default: from one "
            "embedded store into another; never from a cluster)",
        ),
        flag("--quiet", "no progress; the result is shown"),
    )
    has_store = False
    takes_no_server = ON_THE_MACHINE

    def handle(self, *args: Any, **options: Any) -> None:
        """Copy the store."""
        from_url, to_url = options["from_url"], options["to_url"]
        self._url = from_url
        self.watch(from_url)
        refuse_missing(from_url)
        self._phase, self._next = "", 0.0
        began = time.monotonic()
        with Interruption() as interruption:
            try:
                copied = copy_store(
                    from_url,
                    to_url,
                    with_outside=options["outside"],
                    on_progress=partial(self._progress, quiet=options["quiet"]),
                    hold=interruption.held,
                )
            except (SourceChanged, TargetNotEmpty, NotAStore, BadSetting):
                raise
            except StoreError as error:
                if not self._phase:
                    raise
                raise CommandError(f"{error} Run the same command again to continue the copy.") from error
            except Interrupted as stop:
                raise CommandError(
                    "Interrupted. Run the same command again to continue the copy.", returncode=Exit.INTERRUPTED
                ) from stop
        seconds, digest, outside = time.monotonic() - began, copied.digest, _outside_words(copied)
        self.answer(
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
            },
            f"Copied {from_url} to {to_url} in {seconds:.1f} s: {number(digest.keys)} keys, {size(digest.size)}. "
            f"Both sides were read whole and are equal: SHA-256 {digest.checksum}.",
            *([outside] if outside else ()),
        )

    def _progress(self, progress: Progress, *, quiet: bool) -> None:
        """Print the progress on a terminal, or as JSON: a line a second at most, and each phase at least once."""
        now = time.monotonic()
        if progress.phase == self._phase and now < self._next:
            return
        self._phase, self._next = progress.phase, now + _EVERY
        if quiet:
            return
        if self._json:
            self.tell(json_text({"phase": progress.phase, "keys": progress.keys, "bytes": progress.size}))
        elif self.stderr.isatty():
            self.tell(f"{progress.phase.capitalize()}: {number(progress.keys)} keys, {size(progress.size)}")


def _outside_words(copied: Copied) -> str:
    """Describe the keys outside of the root; empty where there are none."""
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
    found = copied.outside
    if found is None:
        return {"copied": False, "keys": copied.left}
    return {"copied": True, "keys": found.keys, "bytes": found.size, "checksum": found.checksum}
