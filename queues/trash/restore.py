"""Restores entries of the trash: a queue, items, a purged generation, or changes of items, each undone.

The caller's transaction also marks the record as restored.
"""

from dataclasses import dataclass
from typing import Any

from queues.catalog import attached_prefixes as prefixes
from queues.catalog import directory
from queues.errors import QueueNotFound
from queues.items import generations, transition, undo_log
from queues.items.counters import CounterDelta
from queues.items.stored_item import StoredItem, as_item, attached
from queues.items.undo_log import Undoing
from queues.keys.item_suffix import ready_suffix
from queues.keys.keyspace import Keyspace
from queues.kv.port import Transaction
from queues.model.attempts import LOG
from queues.model.config import Config
from queues.model.item import Item
from queues.trash.entries import item_of, suffix_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a restore did."""

    #: Of the queue that is back, or that has the items.
    config: Config
    #: The item; None for a queue or a chunk.
    item: Item | None
    #: Items that are back.
    count: int
    #: Items that were left out, because they were taken or changed since.
    skipped: int = 0
    #: The ids of items that are as they were, or, of a push, that were removed.
    items: tuple[str, ...] = ()
    #: Items that were pushed and are removed now.
    lifted: tuple[StoredItem, ...] = ()


class Restoring:
    """The restoring of one entry inside one transaction."""

    def __init__(self, tr: Transaction, keyspace: Keyspace) -> None:
        self._tr = tr
        self._keyspace = keyspace

    def run(self, trash_id: bytes, header: dict[str, Any], value: bytes, *, partial: bool, first: int = 0) -> Restored:
        """Restore a record, or its changes from a number on; `partial` leaves out what was taken or changed since."""
        if header["what"] == "queue":
            return self._queue(header)
        if "foreign" in header:
            return self._foreign_item(header, value)
        if "from" in header:
            return self._undo(trash_id, header, partial=partial, first=first)
        config = self._config(header["queue_id"], header["queue"])
        if "generation" in header:
            depth = generations.bring_back(self._tr, self._keyspace, config, header["generation"])
            return Restored(config=config, item=None, count=depth)
        return self._item(config, header, value)

    def _queue(self, header: dict[str, Any]) -> Restored:
        config = Config.from_header(header["config"])
        directory.add(self._tr, self._keyspace, config)
        delta = CounterDelta(self._keyspace.queue(config.id), wake=True)
        delta.look_again()
        delta.apply(self._tr)
        return Restored(config=config, item=None, count=header["items"])

    def _item(self, config: Config, header: dict[str, Any], value: bytes) -> Restored:
        if "place" in header:
            there = undo_log.at_place(header["place"], value)
        else:
            item = item_of(header, value, config.values)
            log = {LOG: list(item.attempt_records)} if item.attempt_records else {}
            rand = bytes.fromhex(item.id)
            suffix = ready_suffix(item.priority, item.count, rand)
            there = transition.new_ready(
                rand, value, config, suffix, tried=item.attempts, log=log, since_ms=header.get("since")
            )
        transition.arrive(self._tr, self._keyspace, config, [there], "restore")
        return Restored(config=config, item=as_item(there, fifo=config.fifo, codec=config.values), count=1)

    def _foreign_item(self, header: dict[str, Any], value: bytes) -> Restored:
        """Write an item of an attached queue back; it may have been attached under another name since."""
        config = self._referred({"prefix": header["foreign"]["prefix"], "name": header["queue"]})
        there = attached(suffix_of(header["item"]), value)
        transition.arrive(self._tr, self._keyspace, config, [there], "restore")
        return Restored(config=config, item=item_of(header, value, config.values), count=1)

    def _undo(self, trash_id: bytes, header: dict[str, Any], *, partial: bool, first: int) -> Restored:
        source = self._referred(header["from"])
        target = None if header["to"] is None else self._referred(header["to"])
        undoing = Undoing(self._tr, self._keyspace, source, target)
        count, gone = undoing.run(trash_id, partial=partial, first=first)
        return Restored(
            config=source,
            item=None,
            count=count,
            skipped=gone,
            items=(*undoing.items, *map(undo_log.id_of, undoing.lifted)),
            lifted=tuple(undoing.lifted),
        )

    def _referred(self, reference: dict[str, Any]) -> Config:
        """Return the config of a queue of a record; an attached one may have another name now."""
        if reference["prefix"] is None:
            return self._config(reference["id"], reference["name"])
        config = prefixes.owner(self._tr, self._keyspace, bytes.fromhex(reference["prefix"]))
        if config is None:
            raise QueueNotFound(reference["name"])
        return config

    def _config(self, queue_id: int, name: str) -> Config:
        return Config.of(name, self._tr.get(self._keyspace.configs.key(queue_id)).wait())
