"""`pqadmin extend`: extend a lease."""

from pqadmin.commands.arguments import LEASE_FOR, QUEUE, TOKEN
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.files.shapes import time_shape
from queues import Store


class Command(StoreCommand):
    """Extend a lease: it ends so long from now. Its token stays."""

    arguments = (QUEUE, TOKEN, LEASE_FOR)

    def run(self, store: Store, options: Options) -> None:
        """Extend the lease."""
        queue = store.queue(options["queue"])
        lease = queue.extend(options["token"], seconds=options["span"])
        expires = time_shape(lease.expires_at)
        self.answer(
            {"queue": queue.name, "token": lease.token, "expires_at": expires},
            f"{queue.name}: the lease ends {expires}.",
        )
