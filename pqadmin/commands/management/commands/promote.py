"""`pqadmin promote`: make delayed items ready now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pqadmin.commands.item_command import ItemCommand
from queues import Acts, Changed


class Command(ItemCommand):
    """Make delayed items ready, due or not."""

    help = "Make delayed items ready now, due or not."
    done = "are ready"

    def change(self, acts: Acts, name: str, ids: Sequence[str], options: dict[str, Any], **shared: Any) -> Changed:
        """Promote the items."""
        return acts.promote(name, ids, **shared)
