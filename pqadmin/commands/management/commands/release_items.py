"""`pqadmin release_items`: take leased items back from their workers."""

from pqadmin.commands.item_command import ItemCommand


class Command(ItemCommand):
    """Take leased items back from their workers. Later acknowledgements by those workers are refused."""

    verb = "release"
    done = "are back"
