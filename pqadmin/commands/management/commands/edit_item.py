"""`pqadmin edit_item`: give an item another value."""

from typing import Any

from pqadmin.commands.arguments import QUEUE, REASON, VALUE, VALUE_FILE, Argument, read_value_for
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.files.shapes import changed_shape
from queues import Store
from queues.errors import ItemNotFound


class Command(StoreCommand):
    """Give an item another value; it keeps its place. A concurrent edit is not overwritten."""

    arguments = (QUEUE, Argument("id", metavar="ID"), VALUE, VALUE_FILE, REASON)

    def run(self, store: Store, options: Options) -> None:
        """Edit the item."""
        queue = store.queue(options["queue"])
        value = read_value_for(queue, options)
        acts = self.actions(store)
        if not (picked := acts.pick(queue.name, [options["id"]]).picked):
            raise ItemNotFound("{queue} has no item {id}.", queue=queue.name, id=options["id"])
        seen: Any = {"expect": picked[0].item.raw, "etag": picked[0].etag, "expect_id": queue.id}
        changed = acts.edit_item(queue.name, options["id"], value, reason=options["reason"], **seen)
        same = changed.trash_id is None
        self.answer(
            changed_shape(queue, changed),
            "The item has this value already." if same else f"{queue.name}: the item has its new value.",
            *self.undo_line(changed.trash_id),
        )
