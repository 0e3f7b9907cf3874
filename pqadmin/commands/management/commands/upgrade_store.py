"""`pqadmin upgrade_store`: bring a store of an older release to this one's format."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.store_command import StoreCommand
from queues.tools.upgrading import upgrade


class Command(StoreCommand):
    """Bring a store that an older release wrote to the format of this one."""

    help = (
        "Bring a store of an older release to this one's format. Older releases cannot use it afterwards. "
        "Stop whatever uses the store first, and back it up. An interrupted upgrade goes on when it "
        "is run again."
    )

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--dry-run", action="store_true", help="tell what would be done, and change nothing")

    def run_at(self, url: str, options: dict[str, Any]) -> None:
        """Upgrade the store, which cannot be opened before."""
        dry_run = bool(options["dry_run"])
        done = upgrade(url, dry_run=dry_run)
        if options["json"]:
            steps = [{"format": step.format, "does": step.does} for step in done.steps]
            self.print_json(
                {"store": url, "before": done.before, "after": done.after, "dry_run": dry_run, "steps": steps}
            )
        elif not done.steps:
            self.print_line(f"{url} has store format {done.after} already: nothing to do.")
        else:
            told = "Would upgrade" if dry_run else "Upgraded"
            self.print_line(f"{told} {url} from store format {done.before} to {done.after}:")
            for step in done.steps:
                self.print_line(f"  {step.format}: {step.does}")
