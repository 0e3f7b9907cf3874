"""`pqadmin delete_items`: delete particular items."""

from pqadmin.commands.arguments import KEEP
from pqadmin.commands.item_command import ItemCommand
from queues import Actions


class Command(ItemCommand):
    """Delete items in any state: ready, delayed, leased or dead. The trash keeps them."""

    arguments = (*ItemCommand.arguments, KEEP)
    verb = staticmethod(Actions.delete_items)
    done, done_for_good = "are in the trash", "are gone"
