"""`pqadmin release_items`: take leased items back from their workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pqadmin.commands.item_command import ItemCommand
from queues import Acts, Changed


class Command(ItemCommand):
    """Take leased items back, by their ids; their workers' acknowledgements are refused from then on."""

    help = "Take leased items back from their workers. What those acknowledge from then on is refused."
    done = "are back"

    def change(self, acts: Acts, name: str, ids: Sequence[str], options: dict[str, Any], **shared: Any) -> Changed:
        """Release the items."""
        return acts.release(name, ids, **shared)
