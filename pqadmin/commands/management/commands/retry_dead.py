"""`pqadmin retry_dead`: retry dead items."""

from pqadmin.commands.item_command import ItemCommand
from queues import Acts


class Command(ItemCommand):
    """Return dead items to their places, with no attempts counted."""

    verb = staticmethod(Acts.retry_dead)
    done = "are back"
