"""`pqadmin ack`: acknowledge leased items."""

from pqadmin.commands.arguments import QUEUE, Argument
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.files.plain_text import items
from queues import Store
from queues.errors import StaleLease


class Command(StoreCommand):
    """Acknowledge leased items by their tokens, which removes them. Acknowledging again changes nothing."""

    arguments = (QUEUE, Argument("tokens", nargs="+", metavar="TOKEN", help="at most 1,000"))

    def run(self, store: Store, options: Options) -> None:
        """Acknowledge the leases; stale ones are named, and end the command with an error."""
        queue, tokens = store.queue(options["queue"]), options["tokens"]
        stale = queue.ack_many(tokens)
        done = len(tokens) - len(stale)
        self.answer(
            {"queue": queue.name, "acked": done, "stale": stale},
            f"{queue.name}: {items(done, 'are done')}.",
        )
        if stale:
            raise StaleLease(f"These leases are over, and another worker may hold the items: {', '.join(stale)}")
