"""`pqadmin pause`: stop taking from a queue."""

from pqadmin.commands.arguments import QUEUE, Argument, moment
from pqadmin.commands.store_command import Options, StoreCommand
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
        self.actions(store).pause(options["queue"], reason=options["reason"], until=options["until"])
        queue = store.queue(options["queue"])
        pause = pause_shape(queue.pause_state, store.now())
        self.answer({"queue": queue.name, "pause": pause}, f"Paused {queue.name}.")
