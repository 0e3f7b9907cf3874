"""`pqadmin reschedule`: let delayed items be due at another time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.item_command import ItemCommand
from pqadmin.commands.times import add_when
from queues import Acts, Changed


class Command(ItemCommand):
    """Let delayed items be due at another time."""

    help = "Let delayed items be due at another time. It is counted from now, or a moment."
    done = "are rescheduled"

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        super().add_own_arguments(parser)
        add_when(parser, required=True)

    def change(self, acts: Acts, name: str, ids: Sequence[str], options: dict[str, Any], **shared: Any) -> Changed:
        """Reschedule the items."""
        return acts.reschedule(name, ids, delay=options["delay"], due=options["due"], **shared)
