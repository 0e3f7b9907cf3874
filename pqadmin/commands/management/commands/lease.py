"""`pqadmin lease`: lease items, as a worker does."""

from pqadmin.commands.arguments import COUNT, END, EXIT_CODE, LEASE_FOR, QUEUE, RAW, Argument, seconds
from pqadmin.commands.exec_program import DELAY, EXEC, GRACE, Execution
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.commands.tables import console, print_items
from pqadmin.commands.take_options import check_output, end_of, finish, waited, write_raw
from pqadmin.files.shapes import item_shape, time_shape
from queues import Store


class Command(StoreCommand):
    """Lease items from one end of a queue.

    It prints each item's token, for ack, release or extend; with --raw on standard error. With --exec a program handles
    the items, one after the other. A worker's verb: counted in the queue's traffic, not in the audit.
    """

    arguments = (
        QUEUE,
        END,
        COUNT,
        LEASE_FOR,
        Argument("--worker", metavar="NAME", help="the holder's name (default: this machine and process)"),
        Argument("--wait", type=seconds, metavar="SPAN", help="wait so long for an item"),
        EXIT_CODE,
        RAW,
        EXEC,
        DELAY,
        GRACE,
    )
    listed = "leases"

    def run(self, store: Store, options: Options) -> None:
        """Lease the items and show them."""
        check_output(options)
        queue, wait = store.queue(options["queue"]), options["wait"]
        if options["exec"] is not None:
            Execution(self, queue, options, store_url=self.store_url(options)).run()
            return
        shared = {"seconds": options["span"], "end": end_of(queue, options), "worker": options["worker"]}
        held = queue.lease_many(options["n"], wait=False if wait is None else wait, **shared)
        if not held and wait is not None:
            with waited(wait):
                held = queue.lease_many(options["n"], **shared)
        if held and options["raw"]:
            write_raw([held[0].item.raw])
            self.tell(f"Token: {held[0].token}")
        if options["raw"]:
            finish(self, queue, options, empty=not held)
            return
        if held and not options["json"]:
            print_items(console(self.stdout), [lease.item for lease in held], store.now())
        leases = [
            {**item_shape(lease.item), "token": lease.token, "expires_at": time_shape(lease.expires_at)}
            for lease in held
        ]
        self.answer({"queue": queue.name, "leases": leases}, *(f"Token: {lease.token}" for lease in held))
        finish(self, queue, options, empty=not held)
