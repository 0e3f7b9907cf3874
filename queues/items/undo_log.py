"""Undo of changes of items: a log of them beside the trash record of an action, and its reversal.

The log has each item's place before and after, and its value where that is in no queue any more. Undoing brings every
item from its place after to its place before. An item that has changed again since (taken, moved, edited, leased) is
not touched: its undo is refused, or left out when the caller asks for that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from queues.errors import ItemGoneOn, some_have
from queues.items import attached as attached_items
from queues.items import transition
from queues.items.counters import CounterDelta
from queues.items.equal_ids import taken
from queues.items.ready import MAX_ITEMS
from queues.items.stored_item import ATTACHED, StoredItem, find
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import AttachedKeys, last_element
from queues.kv.port import KeyValue, Result, Transaction
from queues.model import records
from queues.model.config import Config
from queues.model.foreign_tuples import item_id

#: Parts of what lies beside a trash record; the names sort so.
KEY, VALUE = "k", "v"


def id_of(there: StoredItem) -> str:
    """Return an item's id, in an attached queue too."""
    return item_id(there.suffix) if there.state == ATTACHED else there.rand.hex()


def log(
    tr: Transaction,
    keyspace: Keyspace,
    trash_id: bytes,
    changes: Iterable[tuple[StoredItem | None, StoredItem | None]],
    *,
    first: int = 0,
) -> None:
    """Write changes, each before and after, beside a trash record, from a number on; before is None for an arrival."""
    for n, (before, after) in enumerate(changes, first):
        header: dict[str, Any] = {"before": None if before is None else place_of(before), "after": None}
        if after is not None:
            # Its record is not needed, and would take the bytes of its log twice.
            header["after"] = {**place_of(replace(after, header={})), "digest": after.digest()}
        tr.set(keyspace.trash_parts.key(trash_id, n, KEY), records.encode(header))
        if before is not None and (after is None or after.value != before.value):
            tr.set(keyspace.trash_parts.key(trash_id, n, VALUE), before.value)


@dataclass(slots=True)
class _Logged:
    """One change of the log."""

    #: Places as `place_of` returns them; before is None for an arrival, after where the item is in no queue.
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
        return at_place(self.before, value or b"")


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
        if self.items:
            self._delta_of(self._source).traffic("restore", len(self.items))
        for delta in self._deltas.values():
            delta.apply(self._tr)
        return len(logged) - gone, gone

    def _read(self, trash_id: bytes, first: int) -> list[_Logged]:
        within = self._keyspace.trash_parts_from(trash_id, first)
        pairs: list[KeyValue] = self._tr.get_range(*within, limit=2 * MAX_ITEMS).wait()
        logged: list[_Logged] = []
        for key, stored in pairs:
            if last_element(key) == KEY:
                header = records.decode(stored)[0]
                logged.append(_Logged(header["before"], header["after"]))
            else:
                logged[-1].value = stored
        return logged

    def _find_now(self, logged: Sequence[_Logged]) -> None:
        """Find the items that still are where the action brought them; the rest are gone."""
        afters = [(at_place(one.after, b""), one.after["digest"]) for one in logged if one.after is not None]
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
        """Find the items whose place before another item has, which counts as gone; say whether there are any."""
        keys, same = self._keyspace.queue(self._source.id), self._source.id == self._target.id
        if self._source.attached:
            transition.refuse_taken(self._tr, keys, self._source, [(None, one.restored()) for one in logged])
            return False
        reads: list[tuple[_Logged, list[Result[bytes | None]]]] = []
        for one in logged:
            new = transition.new_keys(keys, self._source, one.now if same else None, one.restored())
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
        self.items.append(id_of(before))
        if one.now is not None and source.id != target.id:
            self._change(target, one.now, None)
            self._delta_of(target).traffic("move")
        self._change(source, one.now if source.id == target.id else None, before)

    def _change(self, config: Config, now: StoredItem | None, then: StoredItem | None) -> None:
        transition.change(self._tr, self._keyspace.queue(config.id), config, now, then, self._delta_of(config))

    def _delta_of(self, config: Config) -> CounterDelta:
        delta = self._deltas.get(config.id)
        if delta is None:
            delta = self._deltas[config.id] = CounterDelta(self._keyspace.queue(config.id), wake=True)
        return delta


def place_of(there: StoredItem) -> dict[str, Any]:
    """Return a place, and the record there, as trash records keep it."""
    place = {
        "state": there.state,
        "rand": there.rand.hex(),
        "generation": there.generation,
        "suffix": there.suffix.hex(),
        "attempts": there.attempts,
    }
    optional = {"nonce": there.nonce.hex(), "record": dict(there.header)}
    return place | {name: value for name, value in optional.items() if value}


def at_place(place: dict[str, Any], value: bytes) -> StoredItem:
    """Return an item at the place that a trash record keeps."""
    return StoredItem(
        state=place["state"],
        rand=bytes.fromhex(place["rand"]),
        generation=place["generation"],
        suffix=bytes.fromhex(place["suffix"]),
        attempts=place["attempts"],
        value=value,
        header=place.get("record", {}),
        nonce=bytes.fromhex(place.get("nonce", "")),
    )
