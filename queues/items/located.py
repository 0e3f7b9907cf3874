"""Items where they stand, in any state: found by id, lifted out, and put at a place again, byte for byte.

What an act changes about an item is two standings, before and after: undoing it puts the one for the other. Reads are
serializable, so of two that act on the same item one does, and the other meets what the first left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b

from queues.items import equal_ids, leased
from queues.items.counters import CounterDelta
from queues.items.ready import PlaceRead
from queues.keys.queue_keys import IN_GENERATIONS, OUTSIDE, STATES, QueueKeys, Side
from queues.keys.suffix import (
    expired_nonce,
    place,
    read_place,
    ready_elements,
    ready_suffix,
    timed_elements,
    timed_suffix,
    with_rand,
)
from queues.kv.port import ReadTransaction, Transaction
from queues.model import records
from queues.model.bands import band_of
from queues.model.config import Config
from queues.model.ids import another, at, minted_at
from queues.model.item import Item
from queues.model.priority import Priority


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem:
    """Where an item stands, and what lies there."""

    state: str
    rand: bytes
    #: As the index says it.
    generation: int
    suffix: bytes
    attempts: int
    #: The value, or the record around it.
    stored: bytes
    #: Of the lease that expired, when nothing has happened to the item since.
    nonce: bytes = field(default=b"", compare=False)

    @property
    def value(self) -> bytes:
        """The item's value."""
        return self.stored if self.state == "ready" else records.decode(self.stored)[1]

    def priority(self, *, fifo: bool) -> Priority | None:
        """Return the item's priority; None in a FIFO queue."""
        if self.state in ("ready", "leased"):
            return ready_elements(self.suffix, fifo=fifo)[0]
        priority: Priority | None = records.decode(self.stored)[0]["priority"]
        return priority

    def digest(self) -> str:
        """Return a short name of what lies here: another one when that was changed."""
        return digest(self.stored)

    def same_place(self, other: StoredItem) -> bool:
        """Say whether the other stands at this place; generations aside, as they are merged."""
        return (self.state, self.suffix, self.attempts) == (other.state, other.suffix, other.attempts)


def digest(stored: bytes) -> str:
    """Return a short name of bytes: others have another one."""
    return blake2b(stored, digest_size=16).hexdigest()


def find(
    tr: ReadTransaction, keys: QueueKeys, config: Config, rands: Sequence[bytes | None]
) -> list[StoredItem | None]:
    """Return where the items of these ids stand; None for those that are not here."""
    places: list[tuple[str, bytes] | None] = [None] * len(rands)
    for state in STATES:
        reads = [
            (n, PlaceRead(tr, keys, config.generations, rand, state))
            for n, rand in enumerate(rands)
            if rand is not None and places[n] is None
        ]
        for n, read in reads:
            where = read.wait()
            if where is not None:
                places[n] = (state, where)
    stored = [
        None if rand is None or there is None else tr.get(_key(keys, there[0], *read_place(there[1])[:2], rand))
        for rand, there in zip(rands, places, strict=True)
    ]
    found: list[StoredItem | None] = []
    for rand, there, read_of in zip(rands, places, stored, strict=True):
        bytes_there = None if read_of is None else read_of.wait()
        if rand is None or there is None or bytes_there is None:
            found.append(None)
            continue
        state, where = there
        generation, suffix, attempts = read_place(where)
        found.append(
            StoredItem(
                state=state,
                rand=rand,
                generation=generation,
                suffix=suffix,
                attempts=attempts,
                stored=bytes_there,
                nonce=expired_nonce(where),
            )
        )
    return found


def refuse_taken(
    tr: ReadTransaction, keys: QueueKeys, config: Config, moves: Iterable[tuple[StoredItem | None, StoredItem]]
) -> None:
    """Raise `IdTaken` when another item stands where one of these is to stand: each before, if here, and after."""
    equal_ids.refuse_taken(tr, [key for before, after in moves for key in new_keys(keys, config, before, after)])


def new_keys(keys: QueueKeys, config: Config, before: StoredItem | None, after: StoredItem) -> list[bytes]:
    """Return the keys that an item gets, of those by which it is found, where it has not had them before."""
    after = settled(config, after)
    had = () if before is None else _found_by(keys, before)
    return [key for key in _found_by(keys, after) if key not in had]


def settled(config: Config, there: StoredItem) -> StoredItem:
    """Return where an item comes to stand: in the newest generation if its own is no longer live."""
    if there.state in IN_GENERATIONS and there.generation not in config.generations:
        return replace(there, generation=config.generations[-1])
    return there


def lift(tr: Transaction, keys: QueueKeys, config: Config, there: StoredItem, delta: CounterDelta) -> None:
    """Take an item that `find` found in this transaction out of its place."""
    _clear(tr, keys, there)
    _count(config, there, delta, "out")


def put(tr: Transaction, keys: QueueKeys, config: Config, stored: StoredItem, delta: CounterDelta) -> StoredItem:
    """Let an item stand at a place, in the newest generation if its own is no longer live."""
    stored = settled(config, stored)
    write(tr, keys, stored)
    delta.wake()
    _put_on_agenda(stored, delta)
    _count(config, stored, delta, "in")
    return stored


def write(tr: Transaction, keys: QueueKeys, stored: StoredItem) -> None:
    """Write what lies at a place and the index of it, counting nothing."""
    generation = stored.generation
    tr.set(_key(keys, stored.state, generation, stored.suffix, stored.rand), stored.stored)
    where = place(generation, stored.suffix, stored.attempts, stored.nonce)
    tr.set(keys.index(stored.state, stored.rand, generation), where)
    if stored.state == "ready" and stored.attempts:
        tr.set(keys.generation(generation).tried, b"")
    if stored.state == "leased":
        tr.set(keys.expiry(_expiry(stored)), b"")


def change(
    tr: Transaction, keys: QueueKeys, config: Config, before: StoredItem, after: StoredItem, delta: CounterDelta
) -> None:
    """Let an item that `find` found in this transaction stand elsewhere in its queue, or another value lie there."""
    after = settled(config, after)
    _clear(tr, keys, before)
    write(tr, keys, after)
    delta.wake()
    _put_on_agenda(after, delta)
    if (before.state, before.generation) != (after.state, after.generation):
        _count(config, before, delta, "out")
        _count(config, after, delta, "in")
        return
    _count_band(config, before, delta, "out")  # nothing came or went
    _count_band(config, after, delta, "in")


def give_id(tr: Transaction, keys: QueueKeys, there: StoredItem, *, fifo: bool) -> bool:
    """Give an item another id where it stands; False when it is not there any more.

    `there` says state, generation, suffix and id; what lies there and how often it was tried are read.
    """
    key = _key(keys, there.state, there.generation, there.suffix, there.rand)
    index = keys.index(there.state, there.rand, there.generation or 1)
    read, shown = tr.get(key), tr.get(index).wait()
    stored = read.wait()
    if stored is None:
        return False
    attempts = 0 if there.state == "ready" else records.decode(stored)[0].get("attempts", 0)
    tr.clear(key)
    if shown is not None and read_place(shown)[1] == there.suffix:
        attempts = read_place(shown)[2]
        tr.clear(index)
    rand = another(there.rand, key)
    if there.state == "ready":
        suffix = with_rand(there.suffix, rand, fifo=fifo)
    else:
        suffix = timed_suffix(timed_elements(there.suffix)[0], rand)
    write(tr, keys, replace(there, rand=rand, suffix=suffix, attempts=attempts, stored=stored))
    return True


def with_priority(there: StoredItem, config: Config, priority: Priority) -> StoredItem:
    """Return the item of another priority, its push order kept."""
    if there.state != "ready":
        return with_header(there, priority)
    count = ready_elements(there.suffix, fifo=config.fifo)[1]
    return at_suffix(there, ready_suffix(priority, count, there.rand))


def at_suffix(there: StoredItem, suffix: bytes) -> StoredItem:
    """Return the item at another place of its state."""
    return replace(there, suffix=suffix, nonce=b"")


def with_header(there: StoredItem, priority: Priority | None) -> StoredItem:
    """Return an item that is not ready with another priority in its record."""
    header, value = records.decode(there.stored)
    return replace(there, stored=records.encode({**header, "priority": priority}, value), nonce=b"")


def with_value(there: StoredItem, value: bytes) -> StoredItem:
    """Return the item with another value."""
    if there.state == "ready":
        return replace(there, stored=value, nonce=b"")
    return replace(there, stored=records.encode(records.decode(there.stored)[0], value), nonce=b"")


def as_item(there: StoredItem, *, fifo: bool) -> Item:
    """Return an item as it stands."""
    header, value = ({}, there.stored) if there.state == "ready" else records.decode(there.stored)
    count = header.get("count")
    if there.state in ("ready", "leased"):
        count = ready_elements(there.suffix, fifo=fifo)[1]
    timed_ms = timed_elements(there.suffix)[0] if there.state in ("delayed", "dead") else None
    return Item(
        id=there.rand.hex(),
        priority=there.priority(fifo=fifo),
        count=count,
        value=value,
        pushed_at=minted_at(there.rand),
        size=len(value),
        state=there.state,
        attempts=there.attempts,
        due_at=_at(timed_ms) if there.state == "delayed" else None,
        leased_at=_at(header.get("leased")),
        expires_at=_at(header.get("expires")),
        lease=header.get("nonce", "")[: leased.TOLD],
        worker=header.get("worker", ""),
        died_at=_at(timed_ms) if there.state == "dead" else None,
        reason=header.get("reason", ""),
    )


def _at(ms: int | None) -> datetime | None:
    return None if ms is None else at(ms)


def _key(keys: QueueKeys, state: str, generation: int, suffix: bytes, rand: bytes) -> bytes:
    if state == "ready":
        return keys.generation(generation).ready(suffix)
    if state == "delayed":
        return keys.generation(generation).delayed(suffix)
    return keys.lease(rand) if state == "leased" else keys.dead_item(suffix)


def _found_by(keys: QueueKeys, there: StoredItem) -> tuple[bytes, bytes]:
    return (
        _key(keys, there.state, there.generation, there.suffix, there.rand),
        keys.index(there.state, there.rand, there.generation),
    )


def _expiry(stored: StoredItem) -> bytes:
    return timed_suffix(records.decode(stored.stored)[0]["expires"], stored.rand)


def _put_on_agenda(there: StoredItem, delta: CounterDelta) -> None:
    if there.state == "delayed":
        delta.falls_due(timed_elements(there.suffix)[0])
    elif there.state == "leased":
        delta.falls_due(records.decode(there.stored)[0]["expires"])


def _clear(tr: Transaction, keys: QueueKeys, there: StoredItem) -> None:
    tr.clear(_key(keys, there.state, there.generation, there.suffix, there.rand))
    tr.clear(keys.index(there.state, there.rand, there.generation))
    if there.state == "leased":
        tr.clear(keys.expiry(_expiry(there)))


def _count(config: Config, there: StoredItem, delta: CounterDelta, side: Side) -> None:
    delta.state(there.generation if there.state in IN_GENERATIONS else OUTSIDE, there.state, side)
    _count_band(config, there, delta, side)


def _count_band(config: Config, there: StoredItem, delta: CounterDelta, side: Side) -> None:
    priority = there.priority(fifo=config.fifo) if there.state == "ready" else None
    if priority is not None:
        delta.band(there.generation, band_of(priority, config.edges), side)
