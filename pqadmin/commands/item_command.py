"""The base of commands that act on items, named by their ids."""

from typing import Any

from pqadmin.commands.arguments import QUEUE, REASON, Argument, OneOf, flag
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.files.plain_text import items
from pqadmin.files.shapes import changed_shape
from queues import Actions, Changed, Queue, Store


class ItemCommand(StoreCommand):
    """Act on at most 1,000 items in one audited transaction."""

    arguments: tuple[Argument | OneOf, ...] = (
        QUEUE,
        Argument("ids", nargs="+", metavar="ID", help="at most 1,000 items; all are changed, or none"),
        flag("--skip-missing", "act on the items that are still there"),
        REASON,
    )
    #: The action's verb, and the options that are passed to it.
    verb = ""
    passed: tuple[str, ...] = ()
    #: What is said of the items, after their number; and where nothing can be undone.
    done = ""
    done_for_good = ""

    def run(self, store: Store, options: Options) -> None:
        """Act on the items and print what was done."""
        queue = store.queue(options["queue"])
        acts = self.actions(store, keep=options.get("keep"))
        changed = self.change(acts, queue, options)
        done = self.done_for_good if changed.count and changed.trash_id is None else self.done
        skipped = [f"{changed.skipped:,} were not there, or did not need it."] if changed.skipped else []
        self.answer(
            changed_shape(queue, changed),
            f"{queue.name}: {items(changed.count, done)}.",
            *skipped,
            *self.undo_line(changed.trash_id),
        )

    def change(self, acts: Actions, queue: Queue, options: Options, **more: Any) -> Changed:
        """Act on the items."""
        shared = {name: options[name] for name in ("reason", "skip_missing", *self.passed)}
        changed: Changed = getattr(acts, self.verb)(queue.name, options["ids"], **shared, **more)
        return changed
