"""`pqadmin reschedule`: give delayed items another due time."""

from pqadmin.commands.arguments import WHEN_REQUIRED
from pqadmin.commands.item_command import ItemCommand


class Command(ItemCommand):
    """Give delayed items another due time: a span from now, or a time."""

    arguments = (*ItemCommand.arguments, WHEN_REQUIRED)
    verb = "reschedule"
    passed = ("delay", "due")
    done = "are rescheduled"
