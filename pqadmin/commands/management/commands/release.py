"""`pqadmin release`: return a leased item."""

from pqadmin.commands.arguments import QUEUE, TOKEN, Argument, flag, span
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.commands.tables import console, print_items
from pqadmin.files.shapes import item_shape
from queues import Store


class Command(StoreCommand):
    """Return a leased item to its place, perhaps after a delay. It is dead after its last attempt."""

    arguments = (
        QUEUE,
        TOKEN,
        Argument("--delay", type=span, metavar="SPAN", help="return after this span: 90s, 15m, 2h, 1d"),
        Argument("--reason", default="", help="kept with the item if it dies of it"),
        flag("--no-attempt", "this lease counts as no attempt"),
    )

    def run(self, store: Store, options: Options) -> None:
        """Release the lease and show the item."""
        queue = store.queue(options["queue"])
        item = queue.release(
            options["token"],
            delay=options["delay"],
            reason=options["reason"],
            count_attempt=not options["no_attempt"],
        )
        self.answer({"queue": queue.name, "item": item_shape(item)}, f"{queue.name}: the item is {item.state}.")
        if not options["json"]:
            print_items(console(self.stdout), [item], store.now())
