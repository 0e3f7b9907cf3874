"""`pqadmin promote`: make delayed items ready now."""

from pqadmin.commands.item_command import ItemCommand
from queues import Actions


class Command(ItemCommand):
    """Make delayed items ready now, due or not."""

    verb = staticmethod(Actions.promote)
    done = "are ready"
