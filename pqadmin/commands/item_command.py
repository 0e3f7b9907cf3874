"""The base of commands that act on particular items, named by their ids, as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.store_command import StoreCommand
from pqadmin.files.plain_text import items
from queues import Acts, Changed, Store


class ItemCommand(StoreCommand):
    """Act on at most 1,000 items in one transaction, audited, and say how to undo it."""

    #: What is said of the items, with their number first.
    done = ""
    #: The same where nothing can be undone.
    done_for_good = ""

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("ids", nargs="+", metavar="ID", help="these items, at most 1,000, as one")
        parser.add_argument(
            "--skip-missing", action="store_true", help="act on those that are still there; else all or none"
        )
        parser.add_argument("--reason", default="", help="why, for the audit trail")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Act on the items and say what was done."""
        queue = store.queue(options["queue"])
        shared = {"reason": options["reason"], "skip_missing": options["skip_missing"]}
        acts = self.acts(store, keep=options.get("keep"))
        changed = self.change(acts, queue.name, options["ids"], options, **shared)
        if options["json"]:
            shape = {"queue": queue.name, "items": changed.count, "skipped": changed.skipped}
            self.print_json(shape | {"trash_id": changed.trash_id})
            return
        done = self.done_for_good if changed.count and changed.trash_id is None else self.done
        self.stdout.write(f"{queue.name}: {items(changed.count, done)}.")
        if changed.skipped:
            self.stdout.write(f"{changed.skipped:,} were not there, or did not need it.")
        if changed.trash_id is not None:
            self.stdout.write(f"Undo: pqadmin undo {changed.trash_id}")

    def change(self, acts: Acts, name: str, ids: Sequence[str], options: dict[str, Any], **shared: Any) -> Changed:
        """Act on the items."""
        raise NotImplementedError
