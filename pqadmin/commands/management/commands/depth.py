"""`pqadmin depth`: print how many items queues hold."""

from datetime import datetime

from pqadmin.commands.arguments import STATE, Argument, OneOf, flag
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.display.format import clock
from pqadmin.files.shapes import depth_shape
from queues import Queue, Store, Totals
from queues.admin import STATES


class Command(StoreCommand):
    """Print how many items a queue holds, exactly: the ready items, unless --state or --all says otherwise.

    Only attached queues are counted for it.
    """

    arguments = (
        Argument("queue", nargs="+", help="one queue prints the number alone; several, a line each"),
        OneOf(STATE, flag("--all", "a line for each queue: ready, delayed, leased, dead and its name, tab-separated")),
    )
    listed = "depths"

    def run(self, store: Store, options: Options) -> None:
        """Read the depths of all own queues in one transaction; count attached ones."""
        queues = [store.queue(name) for name in options["queue"]]
        ours = [queue for queue in queues if not queue.attached]
        if store.tended:
            known = store.read(lambda tr: {queue.id: queue.totals(tr=tr) for queue in ours})
        else:
            known = {queue.id: queue.totals() for queue in queues}
        depths = [
            (queue, known[queue.id], None) if queue.id in known else (queue, *_counted(store, queue))
            for queue in queues
        ]
        states = STATES if options["all"] else (options["state"],)
        named = options["all"] or len(depths) > 1
        lines = []
        for queue, totals, at in depths:
            numbers = (str(getattr(totals, state)) for state in states)
            lines.append("\t".join([*numbers, queue.name] if named else numbers))
            if at is not None and not options["json"]:
                self.tell(f"{queue.name} is attached: counted {clock(at)}.")
        self.answer({"depths": [depth_shape(queue.name, totals, at) for queue, totals, at in depths]}, *lines)


def _counted(store: Store, queue: Queue) -> tuple[Totals, datetime | None]:
    """Count an attached queue now; return the count and the time at which it began."""
    totals = queue.totals()
    count = store.counts.known(queue.id)
    return totals, None if count is None else count.counted_at
