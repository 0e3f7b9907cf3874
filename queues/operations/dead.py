"""Dead items: those that no worker could finish, and the verbs about them."""

from __future__ import annotations

from queues.items import transition
from queues.items.counters import CounterDelta
from queues.items.scan import page
from queues.items.stored_item import as_item, find
from queues.kv.port import ReadTransaction, Transaction
from queues.model import ids
from queues.model.config import Config
from queues.model.item import Item, Page
from queues.operations.delay import Delays

_WHY_NOT = "its items are never dead."


class Deaths(Delays):
    """The verbs of dead items."""

    def dead(
        self,
        *,
        limit: int = 50,
        after: str | None = None,
        preview: int | None = None,
        tr: ReadTransaction | None = None,
    ) -> Page:
        """Return a page of dead items, the first to die first, changing nothing.

        `after` is the cursor of the page before; values are cut to `preview` bytes.
        """
        self._own(_WHY_NOT)

        def look(tr: ReadTransaction, config: Config, behind: bytes | None, limit: int) -> list[tuple[bytes, Item]]:
            return page(tr, self._keys, config, "dead", after=behind, limit=limit, preview=preview)

        return self._state_page("dead", look, limit=limit, after=after, tr=tr)

    def retry_dead(self, item_id: str, *, tr: Transaction | None = None) -> Item | None:
        """Put a dead item back at its place, with all its attempts before it; None when no dead item has this id."""

        return self._end_death(item_id, "retry", tr)

    def delete_dead(self, item_id: str, *, tr: Transaction | None = None) -> Item | None:
        """Take a dead item out for good, and return it; None when no dead item has this id."""

        return self._end_death(item_id, "delete", tr)

    def _end_death(self, item_id: str, verb: str, tr: Transaction | None) -> Item | None:
        self._own(_WHY_NOT)
        rand = ids.parse(item_id)

        def write(tr: Transaction) -> Item | None:
            config = self._current(tr)
            (there,) = find(tr, self._keys, config, [rand], ["dead"])
            if there is None:
                return None
            after = transition.retried(there, config) if verb == "retry" else None
            if after is not None:
                transition.refuse_taken(tr, self._keys, config, [(there, after)])
            tr.use_reserve()
            delta = CounterDelta(self._keys, wake=False)
            delta.traffic(verb)
            transition.change(tr, self._keys, config, there, after, delta)
            delta.apply(tr)
            return as_item(after or there, fifo=config.fifo, codec=config.values)

        return self._context.transact(write, tr)
