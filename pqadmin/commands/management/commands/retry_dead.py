"""`pqadmin retry_dead`: put dead items back at their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pqadmin.commands.item_command import ItemCommand
from queues import Acts, Changed


class Command(ItemCommand):
    """Put dead items back at their places; all their attempts are before them again."""

    help = "Put dead items back at their places; all their attempts are before them again."
    done = "are back"

    def change(self, acts: Acts, name: str, ids: Sequence[str], options: dict[str, Any], **shared: Any) -> Changed:
        """Retry the items."""
        return acts.retry_dead(name, ids, **shared)
