"""`pqadmin peek`: show the items at one end of a queue."""

from django.core.management.base import CommandError

from pqadmin.commands.arguments import COUNT, END, QUEUE, STATE
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.commands.tables import console, print_items
from pqadmin.files.shapes import item_shape
from queues import Item, Queue, Store


class Command(StoreCommand):
    """Show the items at one end of a queue, changing nothing.

    Delayed items are listed by due time, leased ones by expiry, dead ones by the time of death.
    """

    arguments = (QUEUE, END, STATE, COUNT)
    listed = "items"

    def run(self, store: Store, options: Options) -> None:
        """Show the items, the first to be taken first."""
        queue, state = store.queue(options["queue"]), options["state"]
        items = _items(queue, state, options["end"], options["n"])
        if items and not options["json"]:
            print_items(console(self.stdout), items, store.now())
            return
        none = "has nothing ready" if state == "ready" else f"has no {state} items"
        self.answer(
            {"queue": queue.name, "items": [item_shape(item) for item in items]},
            f"{queue.name} {none}.",
        )


def _items(queue: Queue, state: str, end: str, n: int) -> tuple[Item, ...]:
    if state == "ready":
        return queue.items(end=end, limit=n).items
    if end not in ("min", "head"):
        raise CommandError(f"--end is for ready items; {state} ones are listed by time.")
    pages = {"delayed": queue.delayed, "leased": queue.leased, "dead": queue.dead}
    return pages[state](limit=n).items
