"""`pqadmin delete_items`: take particular items into the trash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.item_command import ItemCommand
from pqadmin.commands.times import add_keep
from queues import Acts, Changed


class Command(ItemCommand):
    """Take items into the trash, in whatever state they are, or out of the store."""

    help = "Take items into the trash, whatever their state: ready, delayed, leased or dead."
    done, done_for_good = "are in the trash", "are gone"

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        super().add_own_arguments(parser)
        add_keep(parser)

    def change(self, acts: Acts, name: str, ids: Sequence[str], options: dict[str, Any], **shared: Any) -> Changed:
        """Delete the items."""
        return acts.delete_items(name, ids, **shared)
