"""Restores entries of the trash: a queue, items, a purged generation, or changes of items, each undone.

The caller's transaction also marks the record as restored. Undoing changes brings every item from its place after to
its place before. An item that has changed again since (taken, moved, edited, leased) is not touched: its undo is
refused, or left out when the caller asks for that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from queues.catalog import attached_prefixes as prefixes
from queues.catalog import directory
from queues.errors import ItemGoneOn, QueueNotFound, some_have
from queues.items import attached as attached_items
from queues.items import generations, state_machine
from queues.items.counters import CounterDelta
from queues.items.equal_ids import taken
from queues.items.ready import MAX_ITEMS
from queues.items.stored_item import StoredItem, as_item, attached, find
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import AttachedKeys, last_element, ready_suffix
from queues.kv.port import KeyValue, Result, Transaction
from queues.model import records
from queues.model.attempt_log import LOG
from queues.model.config import Config
from queues.model.item import Item
from queues.trash.entries import PLACES, item_of, suffix_of


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
            there = StoredItem.of_place(header["place"], value)
        else:
            item = item_of(header, value, config.values)
            log = {LOG: list(item.attempt_records)} if item.attempt_records else {}
            rand = bytes.fromhex(item.id)
            suffix = ready_suffix(item.priority, item.count, rand)
            there = state_machine.new_ready(
                rand, value, config, suffix, tried=item.attempts, log=log, since_ms=header.get("since")
            )
        state_machine.apply(self._tr, self._keyspace, config, [(None, there)], "restore")
        return Restored(config=config, item=as_item(there, fifo=config.fifo, codec=config.values), count=1)

    def _foreign_item(self, header: dict[str, Any], value: bytes) -> Restored:
        """Write an item of an attached queue back. It may have been attached under another name since."""
        config = self._referred({"prefix": header["foreign"]["prefix"], "name": header["queue"]})
        there = attached(suffix_of(header["item"]), value)
        state_machine.apply(self._tr, self._keyspace, config, [(None, there)], "restore")
        return Restored(config=config, item=item_of(header, value, config.values), count=1)

    def _undo(self, trash_id: bytes, header: dict[str, Any], *, partial: bool, first: int) -> Restored:
        source = self._referred(header["from"])
        target = None if header["to"] is None else self._referred(header["to"])
        undoing = _Undoing(self._tr, self._keyspace, source, target)
        count, gone = undoing.run(trash_id, partial=partial, first=first)
        return Restored(
            config=source,
            item=None,
            count=count,
            skipped=gone,
            items=(*undoing.items, *(there.id for there in undoing.lifted)),
            lifted=tuple(undoing.lifted),
        )

    def _referred(self, reference: dict[str, Any]) -> Config:
        """Return the config of a queue of a record. An attached one may have another name now."""
        if reference["prefix"] is None:
            return self._config(reference["id"], reference["name"])
        config = prefixes.owner(self._tr, self._keyspace, bytes.fromhex(reference["prefix"]))
        if config is None:
            raise QueueNotFound(reference["name"], gone=True)
        return config

    def _config(self, queue_id: int, name: str) -> Config:
        return Config.of(name, self._tr.get(self._keyspace.configs.key(queue_id)).wait())


# Changes of items


@dataclass(slots=True)
class _Logged:
    """One change of the log."""

    #: Places as `header_of_place` returns them; before is None for an arrival, after where the item is in no queue.
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    #: The value before, unless it is the same after.
    value: bytes | None = None
    #: The item, if it still is where the action brought it.
    now: StoredItem | None = None
    #: The item has changed since, or another one has its place before.
    gone: bool = False

    def restored(self) -> StoredItem:
        """Return the item before."""
        assert self.before is not None
        value = self.now.value if self.value is None and self.now is not None else self.value
        return StoredItem.of_place(self.before, value or b"")


class _Undoing:
    """The undo of one action inside one transaction."""

    def __init__(self, tr: Transaction, keyspace: Keyspace, source: Config, target: Config | None) -> None:
        self._tr = tr
        self._keyspace = keyspace
        self._source = source
        self._target = target or source
        self._deltas: dict[int, CounterDelta] = {}
        #: The ids of the items that came back.
        self.items: list[str] = []
        #: Arrivals that were taken out again.
        self.lifted: list[StoredItem] = []

    def run(self, trash_id: bytes, *, partial: bool, first: int = 0) -> tuple[int, int]:
        """Undo what can be undone from a number on, and return (items undone, items that have changed since).

        Unless `partial`, one item that has changed raises `ItemGoneOn`.
        """
        logged = self._read(trash_id, first)
        self._find_now([one for one in logged if one.after is not None])
        if self._find_blocked([one for one in logged if one.before is not None and not one.gone]) and not partial:
            raise taken()
        gone = sum(one.gone for one in logged)
        if gone and not partial:
            what = some_have(gone, len(logged))
            raise ItemGoneOn(
                "{what} gone on since: taken, moved or changed meanwhile. Nothing was undone.",
                gone,
                len(logged),
                what=what,
            )
        for one in logged:
            if not one.gone:
                self._undo(one)
        for delta in self._deltas.values():
            delta.apply(self._tr)
        return len(logged) - gone, gone

    def _read(self, trash_id: bytes, first: int) -> list[_Logged]:
        within = self._keyspace.trash_parts_from(trash_id, first)
        pairs: list[KeyValue] = self._tr.get_range(*within, limit=2 * MAX_ITEMS).wait()
        logged: list[_Logged] = []
        for key, stored in pairs:
            if last_element(key) == PLACES:
                header = records.decode(stored)[0]
                logged.append(_Logged(header["before"], header["after"]))
            elif logged:  # else the sweep of the trash has cleared the places before
                logged[-1].value = stored
        return logged

    def _find_now(self, logged: Sequence[_Logged]) -> None:
        """Find the items that still are where the action brought them; the rest are gone."""
        afters = [(StoredItem.of_place(one.after, b""), one.after["digest"]) for one in logged if one.after is not None]
        if self._target.prefix is None:
            keys = self._keyspace.queue(self._target.id)
            now = find(self._tr, keys, self._target, [after.rand for after, _ in afters])
        else:
            now = attached_items.find_all(
                self._tr, AttachedKeys(self._target.prefix), [one.suffix for one, _ in afters]
            )
        for one, there, (after, expected) in zip(logged, now, afters, strict=True):
            if there is not None and there.digest() == expected and there.same_place(after):
                one.now = there
            one.gone = one.now is None

    def _find_blocked(self, logged: Sequence[_Logged]) -> bool:
        """Find the items with places that other items have now; they count as gone. Say whether there are any."""
        keys, same = self._keyspace.queue(self._source.id), self._source.id == self._target.id
        if self._source.attached:
            state_machine.refuse_taken(self._tr, keys, self._source, [(None, one.restored()) for one in logged])
            return False
        reads: list[tuple[_Logged, list[Result[bytes | None]]]] = []
        for one in logged:
            new = state_machine.new_keys(keys, self._source, one.now if same else None, one.restored())
            reads.append((one, [self._tr.get(key) for key in new]))
        blocked = [one for one, found in reads if any(read.wait() is not None for read in found)]
        for one in blocked:
            one.gone = True
        return bool(blocked)

    def _undo(self, one: _Logged) -> None:
        source, target = self._source, self._target
        if one.before is None:
            assert one.now is not None  # or the arrival is gone
            self._change(target, one.now, None)
            self._delta_of(target).traffic("delete")
            self.lifted.append(one.now)
            return
        before = one.restored()
        self.items.append(before.id)
        if one.now is None or source.id != target.id:
            self._delta_of(source).traffic("restore")
        if one.now is not None and source.id != target.id:
            self._change(target, one.now, None)
            self._delta_of(target).traffic("move")
        self._change(source, one.now if source.id == target.id else None, before)

    def _change(self, config: Config, now: StoredItem | None, then: StoredItem | None) -> None:
        state_machine.change(self._tr, self._keyspace.queue(config.id), config, now, then, self._delta_of(config))

    def _delta_of(self, config: Config) -> CounterDelta:
        delta = self._deltas.get(config.id)
        if delta is None:
            delta = self._deltas[config.id] = CounterDelta(self._keyspace.queue(config.id), wake=True)
        return delta
