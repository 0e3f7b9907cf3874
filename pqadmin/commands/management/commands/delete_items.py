"""`pqadmin delete_items`: delete particular items."""

from pqadmin.commands.arguments import KEEP
from pqadmin.commands.item_command import ItemCommand


class Command(ItemCommand):
    """Delete items in any state: ready, delayed, leased or dead. The trash keeps them."""

    arguments = (*ItemCommand.arguments, KEEP)
    verb = "delete_items"
    done, done_for_good = "are in the trash", "are gone"
