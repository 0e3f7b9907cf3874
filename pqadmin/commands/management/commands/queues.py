"""`pqadmin queues`: list the queues of a store."""

import time
from collections.abc import Iterator

from pqadmin.commands.arguments import Argument
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.commands.tables import console, print_queues
from pqadmin.files.shapes import status_shape
from queues import QueueStatus, Store
from queues.admin import canonical_name

#: Queues of one read transaction.
_STEP = 500
#: Seconds that the list waits for the counts of attached queues, and between two looks.
_PATIENCE, _STEP_SECONDS = 3.0, 0.05


class Command(StoreCommand):
    """List the queues: items in each state, both ends, oldest age, and the state of the queue."""

    arguments = (Argument("--prefix", default="", help="only queues whose name begins with this"),)

    def run(self, store: Store, options: Options) -> None:
        """List the queues by name."""
        now = store.now()
        statuses = list(_statuses(store, options["prefix"]))
        if statuses and not options["json"]:
            print_queues(console(self.stdout), statuses, now)
            return
        self.answer(
            {"queues": [status_shape(status, now) for status in statuses]},
            "No queue begins with that." if options["prefix"] else "No queues.",
        )


def _statuses(store: Store, prefix: str) -> Iterator[QueueStatus]:
    named = [
        (name, queue_id) for name, queue_id in store.directory().items() if name.startswith(canonical_name(prefix))
    ]
    for at in range(0, len(named), _STEP):
        ids = [queue_id for _, queue_id in named[at : at + _STEP]]
        snapshot = store.snapshot(ids, preview=0, tolerant=True)
        until = time.monotonic() + _PATIENCE
        while any(_uncounted(status) for status in snapshot.queues.values()) and time.monotonic() < until:
            time.sleep(_STEP_SECONDS)  # another thread counts them
            snapshot = store.snapshot(ids, previous=snapshot, preview=0, tolerant=True)
        yield from (snapshot.queues[queue_id] for queue_id in ids if queue_id in snapshot.queues)


def _uncounted(status: QueueStatus) -> bool:
    return status.attached and status.counted_at is None
