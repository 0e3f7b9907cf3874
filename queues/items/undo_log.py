"""Undo of changes of items: a log of them beside the trash record of an action, and its reversal.

The log has each item's place before and after, and its value where that is in no queue any more. Undoing brings every
item from its place after to its place before. An item that has changed again since (taken, moved, edited, leased) is
not touched: its undo is refused, or left out when the caller asks for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from queues.errors import ItemGoneOn, PlaceTaken, some_have
from queues.items import attached as attached_items
from queues.items import transition
from queues.items.counters import CounterDelta
from queues.items.equal_ids import taken
from queues.items.ready import MAX_ITEMS
from queues.items.stored_item import ATTACHED, StoredItem, attached, find
from queues.items.transition import Change
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import AttachedKeys
from queues.kv.port import KeyValue, Result, Transaction
from queues.model import records
from queues.model.config import Config
from queues.model.foreign_tuples import item_id

#: Parts of what lies beside a trash record; the names sort so.
KEY, VALUE = "k", "v"


def id_of(there: StoredItem) -> str:
    """Return an item's id, in an attached queue too."""
    return item_id(there.suffix) if there.state == ATTACHED else there.rand.hex()


def note(tr: Transaction, keyspace: Keyspace, trash_id: bytes, changes: Sequence[Change]) -> None:
    """Write the changes of an action beside its trash record."""
    for n, change in enumerate(changes):
        before, after = change.before, change.after
        header = {"before": place_of(before), "record": record_of(before), "after": None}
        if after is not None:
            header["after"] = {**place_of(after), "digest": after.digest()}
        tr.set(keyspace.trash_part(trash_id, n, KEY), records.encode(header))
        if after is None or after.value != before.value:
            tr.set(keyspace.trash_part(trash_id, n, VALUE), before.value)


def note_arrivals(tr: Transaction, keyspace: Keyspace, trash_id: bytes, arrived: Sequence[StoredItem]) -> None:
    """Write the arrivals of an action beside its trash record: undoing it takes them out again."""
    for n, there in enumerate(arrived):
        header = {"before": None, "record": None, "after": {**place_of(there), "digest": there.digest()}}
        tr.set(keyspace.trash_part(trash_id, n, KEY), records.encode(header))


class Undoing:
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

    def run(self, trash_id: bytes, *, partial: bool) -> tuple[int, int]:
        """Undo what can be undone, and return (items undone, items that have changed since).

        Unless `partial`, one item that has changed raises `ItemGoneOn`.
        """
        noted = self._noted(trash_id)
        there = self._there([after for _, after, _ in noted if after is not None])
        undone = gone = 0
        in_the_way = self._in_the_way(noted, there)
        if in_the_way and not partial:
            raise taken()
        for n, (header, after, value) in enumerate(noted):
            now = there.get(_name(after)) if after is not None else None
            if n in in_the_way or (after is not None and now is None):
                gone += 1
                continue
            undone += 1
            if header["before"] is None:
                assert now is not None  # an arrival is in the queue, or was counted as gone
                self._lift(self._target, now)
                self._delta_of(self._target).traffic("delete")
                self.lifted.append(now)
                continue
            self._undo(header, now, value)
            self.items.append(header["before"]["rand"] or item_id(bytes.fromhex(header["before"]["suffix"])))
        if gone and not partial:
            what = some_have(gone, len(noted))
            raise ItemGoneOn(
                "{what} gone on since: taken, moved or changed by somebody. Nothing was undone.",
                gone,
                len(noted),
                what=what,
            )
        if self.items:
            self._delta_of(self._source).traffic("restore", len(self.items))
        for delta in self._deltas.values():
            delta.apply(self._tr)
        return undone, gone

    def _noted(self, trash_id: bytes) -> list[tuple[dict[str, Any], dict[str, Any] | None, bytes | None]]:
        pairs: list[KeyValue] = self._tr.get_range(*self._keyspace.trash_parts(trash_id), limit=2 * MAX_ITEMS).wait()
        noted: list[tuple[dict[str, Any], dict[str, Any] | None, bytes | None]] = []
        for key, stored in pairs:
            if self._keyspace.part_of(key) == KEY:
                header = records.decode(stored)[0]
                noted.append((header, header["after"], None))
            else:
                noted[-1] = (*noted[-1][:2], stored)
        return noted

    def _there(self, afters: Sequence[dict[str, Any]]) -> dict[str, StoredItem]:
        """Return the items that still are where the action brought them."""
        config = self._target
        if config.prefix is not None:
            foreign = AttachedKeys(config.prefix)
            reads = [
                (after, self._tr.get_range(*foreign.only(bytes.fromhex(after["suffix"])), limit=1)) for after in afters
            ]
            found = [
                (after, attached(foreign.suffix_of(key), value)) for after, read in reads for key, value in read.wait()
            ]
        else:
            keys = self._keyspace.queue(config.id)
            rands = [bytes.fromhex(after["rand"]) for after in afters]
            stored_items = find(self._tr, keys, config, rands)
            found = [(after, now) for after, now in zip(afters, stored_items, strict=True) if now is not None]
        return {
            _name(after): now
            for after, now in found
            if now.digest() == after["digest"] and now.same_place(standing_of(after, None, b""))
        }

    def _in_the_way(
        self,
        noted: Sequence[tuple[dict[str, Any], dict[str, Any] | None, bytes | None]],
        there: dict[str, StoredItem],
    ) -> set[int]:
        """Return the numbers of the items whose place before is taken by another item."""
        if self._source.prefix is not None:
            return set()
        keys = self._keyspace.queue(self._source.id)
        reads: dict[int, list[Result[bytes | None]]] = {}
        for n, (header, after, _) in enumerate(noted):
            now = None if after is None else there.get(_name(after))
            if header["before"] is None or (after is not None and now is None):
                continue
            here = now if self._source.id == self._target.id else None
            before = standing_of(header["before"], header["record"], b"")
            reads[n] = [self._tr.get(key) for key in transition.new_keys(keys, self._source, here, before)]
        return {n for n, found in reads.items() if any(read.wait() is not None for read in found)}

    def _undo(self, header: dict[str, Any], now: StoredItem | None, value: bytes | None) -> None:
        if value is None:
            assert now is not None  # an item that is in no queue has its value in the log
            value = now.value
        before = standing_of(header["before"], header["record"], value)
        source, target = self._source, self._target
        if now is not None and source.id == target.id and before.state != ATTACHED:
            transition.change(self._tr, self._keyspace.queue(source.id), source, now, before, self._delta_of(source))
            return
        if now is not None:
            self._lift(target, now)
        self._put(source, before)

    def _lift(self, config: Config, now: StoredItem) -> None:
        delta = self._delta_of(config)
        if config.prefix is None:
            transition.change(self._tr, self._keyspace.queue(config.id), config, now, None, delta)
        else:
            attached_items.clear(self._tr, AttachedKeys(config.prefix), now.suffix)

    def _put(self, config: Config, before: StoredItem) -> None:
        delta = self._delta_of(config)
        if config.prefix is None:
            transition.change(self._tr, self._keyspace.queue(config.id), config, None, before, delta)
            return
        foreign = AttachedKeys(config.prefix)
        if self._tr.get_range(*foreign.only(before.suffix), limit=1).wait():
            raise PlaceTaken("Somebody wrote another item at the very same key meanwhile: nothing was undone.")
        self._tr.set(foreign.key(before.suffix), before.stored)

    def _delta_of(self, config: Config) -> CounterDelta:
        delta = self._deltas.get(config.id)
        if delta is None:
            delta = self._deltas[config.id] = CounterDelta(self._keyspace.queue(config.id), wake=True)
        return delta


def record_of(there: StoredItem) -> dict[str, Any] | None:
    """Return the fields of the record around an item's value; None where the value lies alone."""
    return dict(there.header) or None


def place_of(there: StoredItem) -> dict[str, Any]:
    """Return a place as trash records keep it."""
    where = {
        "state": there.state,
        "rand": there.rand.hex(),
        "generation": there.generation,
        "suffix": there.suffix.hex(),
        "attempts": there.attempts,
    }
    return where | ({"nonce": there.nonce.hex()} if there.nonce else {})


def standing_of(header: dict[str, Any], record: dict[str, Any] | None, value: bytes) -> StoredItem:
    """Return an item at the place that a trash record keeps."""
    return StoredItem(
        state=header["state"],
        rand=bytes.fromhex(header["rand"]),
        generation=header["generation"],
        suffix=bytes.fromhex(header["suffix"]),
        attempts=header["attempts"],
        value=value,
        header=record or {},
        nonce=bytes.fromhex(header.get("nonce", "")),
    )


def _name(header: dict[str, Any]) -> str:
    name: str = header["rand"] or header["suffix"]
    return name
