"""Dead items: those that no worker could finish, and the verbs about them."""

from __future__ import annotations

from collections.abc import Callable

from queues.items import dead, ready
from queues.items.counters import CounterDelta
from queues.items.dead import Entry
from queues.items.equal_ids import refuse_taken
from queues.keys.suffix import ready_suffix
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
            entries = dead.look(tr, self._keys, after=behind, limit=limit)
            return [(entry.suffix, dead.as_item(entry, preview=preview)) for entry in entries]

        return self._state_page("dead", look, limit=limit, after=after, tr=tr)

    def retry_dead(self, item_id: str, *, tr: Transaction | None = None) -> Item | None:
        """Put a dead item back at its place, with all its attempts before it; None when no dead item has this id."""

        def revive(tr: Transaction, config: Config, entry: Entry, delta: CounterDelta) -> Item:
            delta.traffic("retry")
            suffix = ready_suffix(entry.priority, entry.count, entry.rand)
            refuse_taken(tr, [self._keys.index("ready", entry.rand, config.generations[-1])])
            return ready.become_ready(tr, self._keys, config, delta, suffix=suffix, value=entry.value, attempts=0)

        return self._end_death(item_id, revive, tr)

    def delete_dead(self, item_id: str, *, tr: Transaction | None = None) -> Item | None:
        """Take a dead item out for good, and return it; None when no dead item has this id."""

        def bury(tr: Transaction, config: Config, entry: Entry, delta: CounterDelta) -> Item:
            delta.traffic("delete")
            return dead.as_item(entry)

        return self._end_death(item_id, bury, tr)

    def _end_death(
        self,
        item_id: str,
        then: Callable[[Transaction, Config, Entry, CounterDelta], Item],
        tr: Transaction | None,
    ) -> Item | None:
        self._own(_WHY_NOT)
        rand = ids.parse(item_id)

        def write(tr: Transaction) -> Item | None:
            config = self._current(tr)
            entry = None if rand is None else dead.entry_of(tr, self._keys, rand)
            if entry is None:
                return None
            delta = CounterDelta(self._keys, wake=False)
            dead.remove(tr, self._keys, entry, delta)
            item = then(tr, config, entry, delta)
            delta.apply(tr)
            return item

        return self._context.transact(write, tr)
