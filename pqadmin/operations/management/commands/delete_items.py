"""`pqadmin delete_items`: take particular items into the trash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pqadmin.operations.item_command import ItemCommand
from queues import Acts, Changed


class Command(ItemCommand):
    """Take items into the trash, in whatever state they are."""

    help = "Take items into the trash, whatever their state: ready, delayed, leased or dead."
    done = "are in the trash"

    def change(self, acts: Acts, name: str, ids: Sequence[str], options: dict[str, Any], **shared: Any) -> Changed:
        """Delete the items."""
        return acts.delete_items(name, ids, **shared)
