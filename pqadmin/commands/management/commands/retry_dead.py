"""`pqadmin retry_dead`: retry dead items."""

from pqadmin.commands.item_command import ItemCommand


class Command(ItemCommand):
    """Return dead items to their places, with no attempts counted."""

    verb = "retry_dead"
    done = "are back"
