"""`pqadmin pause`: stop taking from a queue."""

from pqadmin.commands.arguments import QUEUE, Argument, moment
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.display.format import one_line, visible
from pqadmin.files.shapes import pause_shape
from queues import Store


class Command(StoreCommand):
    """Stop taking from a queue, with a reason; pushing continues."""

    arguments = (
        QUEUE,
        Argument("--reason", required=True, help="why, for all readers of the queue's page"),
        Argument(
            "--until", type=moment, metavar="TIME", help="resume at this time, ISO 8601; without a zone it is UTC"
        ),
    )

    def run(self, store: Store, options: Options) -> None:
        """Pause the queue."""
        before = store.queue(options["queue"]).pause_state
        self.actions(store).pause(options["queue"], reason=options["reason"], until=options["until"])
        queue, now = store.queue(options["queue"]), store.now()
        told = "" if before is None else f" This replaces the pause by {visible(before.by)}: {one_line(before.reason)}"
        self.answer(
            {
                "queue": queue.name,
                "pause": pause_shape(queue.pause_state, now),
                "replaced": pause_shape(before, now),
            },
            f"Paused {queue.name}.{told}",
        )
