"""`pqadmin promote`: make delayed items ready now."""

from pqadmin.commands.item_command import ItemCommand


class Command(ItemCommand):
    """Make delayed items ready now, due or not."""

    verb = "promote"
    done = "are ready"
