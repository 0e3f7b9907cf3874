"""`pqadmin lease`: lease items, as a worker does."""

from pqadmin.commands.arguments import COUNT, END, EXIT_CODE, LEASE_FOR, QUEUE, Argument, seconds
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.commands.tables import console, print_items
from pqadmin.commands.taking import end_of, finish, waited
from pqadmin.files.shapes import item_shape, time_shape
from queues import Store


class Command(StoreCommand):
    """Lease items from one end of a queue.

    It prints each item's token, for ack, release or extend. A worker's verb: counted in the queue's traffic, not in the
    audit.
    """

    arguments = (
        QUEUE,
        END,
        COUNT,
        LEASE_FOR,
        Argument("--worker", metavar="NAME", help="the holder's name (default: this machine and process)"),
        Argument("--wait", type=seconds, metavar="SPAN", help="wait so long for an item"),
        EXIT_CODE,
    )
    listed = "leases"

    def run(self, store: Store, options: Options) -> None:
        """Lease the items and show them."""
        queue, wait = store.queue(options["queue"]), options["wait"]
        shared = {"seconds": options["span"], "end": end_of(queue, options), "worker": options["worker"]}
        held = queue.lease_many(options["n"], wait=False if wait is None else wait, **shared)
        if not held and wait is not None:
            with waited(wait):
                held = queue.lease_many(options["n"], **shared)
        if held and not options["json"]:
            print_items(console(self.stdout), [lease.item for lease in held], store.now())
        leases = [
            {**item_shape(lease.item), "token": lease.token, "expires_at": time_shape(lease.expires_at)}
            for lease in held
        ]
        self.answer({"queue": queue.name, "leases": leases}, *(f"Token: {lease.token}" for lease in held))
        finish(self, queue, options, empty=not held)
