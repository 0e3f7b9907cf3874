"""Acts of looking: a person has a value shown that the rules of redaction hide. Nothing changes but the audit."""

from __future__ import annotations

from queues.acting import Acting, Note
from queues.errors import ItemNotFound
from queues.item import Item
from queues.kv.port import Transaction


class RevealActs(Acting):
    """The acts of one person who looks."""

    def reveal(self, queue_name: str, item_id: str, *, reason: str = "", expect_id: int | None = None) -> Item:
        """Return one item with its whole value and note who saw it; raise `ItemNotFound`.

        The record holds the item's id and never a part of its value. Conflicts with nobody: an item that is taken
        meanwhile was seen as it was.
        """

        def act(tr: Transaction, audit: Note) -> Item:
            queue = self._queue(tr, queue_name, expect_id)
            item = queue.find(item_id, tr=tr.snapshot)
            if item is None:
                raise ItemNotFound("This item is not in the queue any more: nothing was revealed.")
            audit(queue, "reveal", item=item.id, reason=reason)
            return item

        return self._act(act)
