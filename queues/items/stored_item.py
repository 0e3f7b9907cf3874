"""Stored items: one item in any state, as it lies in the store, found by id or read from its record.

Reads are serializable: of two transactions that change the same item one commits, and the other begins anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from queues.keys.queue_keys import (
    IN_GENERATIONS,
    SINCE,
    STATES,
    QueueKeys,
    by_age,
    expired_nonce,
    place,
    place_header,
    read_place,
    ready_elements,
    timed_elements,
)
from queues.kv.port import ReadTransaction, Transaction
from queues.model import records
from queues.model.attempt_log import LOG, Entry, size_of
from queues.model.codec import Codec
from queues.model.config import Config
from queues.model.foreign_tuples import item_id
from queues.model.ids import at, minted_at
from queues.model.item import Item
from queues.model.priority import Priority

#: The state of items of attached queues: their suffix is their key behind the prefix.
ATTACHED = "attached"
#: States in which the value lies alone in the store, without a record around it.
_BARE = ("ready", ATTACHED)
#: Digits of a lease's nonce that items tell.
TOLD = 8


class StoredItem(Struct, frozen=True, kw_only=True):
    """One item in one state: its place, its record and its value."""

    state: str
    rand: bytes
    #: That of the index. A leased item has the generation of its old place.
    generation: int
    #: What orders the item in its state; of a leased item, its old place.
    suffix: bytes
    #: Leases that were not acknowledged; of a leased item, with this one.
    attempts: int
    value: bytes
    #: The fields of the record around the value; of a ready item, which has no record, of its index entry.
    header: Mapping[str, Any] = {}
    #: That of the lease; of an item with an expired lease, that of the expired one until something else happens to it.
    nonce: bytes = b""

    @property
    def id(self) -> str:
        """The item's id, in an attached queue too."""
        return item_id(self.suffix) if self.state == ATTACHED else self.rand.hex()

    @property
    def stored(self) -> bytes:
        """The bytes under the item's key: the value, in its record."""
        return self.value if self.state in _BARE else records.encode(self.header, self.value)

    @property
    def place(self) -> bytes:
        """The bytes under the item's key in the index."""
        ready = self.state == "ready"
        nonce, header = b"" if self.state == "leased" else self.nonce, self.header if ready else None
        return place(self.generation, self.suffix, self.attempts, nonce, header)

    @property
    def since_ms(self) -> int | None:
        """When a ready item became so, in milliseconds. None: with its push, as far as is known."""
        return self.header.get(SINCE) if self.state == "ready" else None

    @property
    def ready_at(self) -> datetime | None:
        """Since when a ready item can be taken; None where that is unknown."""
        return minted_at(self.rand) if self.since_ms is None else at(self.since_ms)

    @property
    def log(self) -> Mapping[str, Any]:
        """The field of the header with the log of its attempts. Empty where there is none."""
        return {LOG: self.header[LOG]} if LOG in self.header else {}

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The attempts of the log, the oldest first."""
        return tuple(self.header.get(LOG, ()))

    @property
    def weight(self) -> int:
        """About how many bytes it takes to bring it from one state to another, the trash included."""
        return len(self.value) + 2 * size_of(self.entries)

    @property
    def expires_ms(self) -> int:
        """When the lease of a leased item ends."""
        expires_ms: int = self.header["expires"]
        return expires_ms

    @property
    def due_ms(self) -> int:
        """When a delayed item is due, or when a dead one died."""
        return timed_elements(self.suffix)[0]

    def priority(self, *, fifo: bool) -> Priority | None:
        """Return the item's priority; None in a FIFO queue."""
        if self.state in ("ready", "leased"):
            return ready_elements(self.suffix, fifo=fifo)[0]
        priority: Priority | None = self.header["priority"]
        return priority

    def digest(self) -> str:
        """Return a short name of the stored bytes: it changes when they change."""
        return digest(self.stored)

    def same_place(self, other: "StoredItem") -> bool:
        """Say whether both have one place; generations aside, as they are merged."""
        return (self.state, self.suffix, self.attempts) == (other.state, other.suffix, other.attempts)

    def key(self, keys: QueueKeys) -> bytes:
        """Return the key of the stored bytes."""
        if self.state == "ready":
            return keys.generation(self.generation).ready.at(self.suffix)
        if self.state == "delayed":
            return keys.generation(self.generation).delayed.at(self.suffix)
        return keys.leases.key(self.rand) if self.state == "leased" else keys.dead.at(self.suffix)

    def index(self, keys: QueueKeys) -> bytes:
        """Return the key by which the item is found by its id; mostly also by its age."""
        if self.state == "ready" and SINCE in self.header:
            return keys.generation(self.generation).later.key(self.rand)
        return keys.index(self.state, self.generation).key(self.rand)

    def by_age(self, keys: QueueKeys) -> tuple[bytes, bytes] | None:
        """Return the index entry by age, if the item has another one than by its id."""
        since_ms = self.since_ms
        if since_ms is None:
            return None
        key = keys.index("ready", self.generation).key(by_age(self.rand, since_ms))
        return key, place(self.generation, self.suffix, self.attempts, header={SINCE: since_ms})

    def expiry(self, keys: QueueKeys) -> bytes:
        """Return the key by which the expiry of a leased item is found."""
        return keys.expiries.key(self.expires_ms, self.rand)

    def header_of_place(self, *, record: bool = True) -> dict[str, Any]:
        """Return its place, and perhaps the record there, as plain JSON values."""
        place = {
            "state": self.state,
            "rand": self.rand.hex(),
            "generation": self.generation,
            "suffix": self.suffix.hex(),
            "attempts": self.attempts,
        }
        optional = {"nonce": self.nonce.hex(), "record": dict(self.header) if record else {}}
        return place | {name: value for name, value in optional.items() if value}

    @classmethod
    def of_place(cls, place: Mapping[str, Any], value: bytes) -> "StoredItem":
        """Return the item with this value at the place that `header_of_place` returned."""
        return cls(
            state=place["state"],
            rand=bytes.fromhex(place["rand"]),
            generation=place["generation"],
            suffix=bytes.fromhex(place["suffix"]),
            attempts=place["attempts"],
            value=value,
            header=place.get("record", {}),
            nonce=bytes.fromhex(place.get("nonce", "")),
        )


def write_entries(tr: Transaction, keys: QueueKeys, there: StoredItem) -> None:
    """Write the index entries of an item."""
    tr.set(there.index(keys), there.place)
    if (entry := there.by_age(keys)) is not None:
        tr.set(*entry)


def clear_entries(tr: Transaction, keys: QueueKeys, there: StoredItem) -> None:
    """Clear the index entries of an item."""
    tr.clear(there.index(keys))
    if (entry := there.by_age(keys)) is not None:
        tr.clear(entry[0])


def digest(stored: bytes) -> str:
    """Return a short name of bytes: other bytes have another one."""
    return blake2b(stored, digest_size=16).hexdigest()


def attached(suffix: bytes, value: bytes) -> StoredItem:
    """Return an item of an attached queue."""
    return StoredItem(state=ATTACHED, rand=b"", generation=0, suffix=suffix, attempts=0, value=value)


#: The fields of the record around a value that every release writes.
_FIELDS = {
    "delayed": ("priority", "attempts"),
    "leased": ("nonce", "expires", "leased", "generation", "suffix", "attempts", "worker"),
    "dead": ("priority", "count", "attempts", "worker", "reason"),
}


def _decode(state: str, record: bytes) -> tuple[dict[str, Any], bytes]:
    """Return (fields, value) of a record; raise one of `UNREADABLE` where a field is missing."""
    header, value = records.decode(record)
    for name in _FIELDS[state]:
        header[name]
    return header, value


def from_lease(rand: bytes, record: bytes) -> StoredItem:
    """Return the leased item of a lease's record."""
    header, value = _decode("leased", record)
    return StoredItem(
        state="leased",
        rand=rand,
        generation=header["generation"],
        suffix=bytes.fromhex(header["suffix"]),
        attempts=header["attempts"],
        value=value,
        header=header,
        nonce=bytes.fromhex(header["nonce"]),
    )


_TYPES = {"int": int, "float": float, "str": str}
#: What a lease's header has as numbers.
_NUMBERS = ("expires", "generation", "attempts")


def sound(there: StoredItem, config: Config) -> StoredItem:
    """Return a delayed, leased or dead item; raise one of `UNREADABLE` where its priority is none of its queue.

    Of a lease, its end, generation and attempts are looked at, too.
    """
    if not isinstance(there.priority(fifo=config.fifo), type(None) if config.fifo else _TYPES[config.priority_type]):
        raise TypeError("a priority of another type than the queue's")
    if there.state == "leased" and any(type(there.header[name]) is not int for name in _NUMBERS):
        raise TypeError("a lease without a number that it needs")
    return there


def from_record(state: str, suffix: bytes, record: bytes, *, generation: int) -> StoredItem:
    """Return the delayed or dead item of a record."""
    header, value = _decode(state, record)
    return StoredItem(
        state=state,
        rand=timed_elements(suffix)[1],
        generation=generation,
        suffix=suffix,
        attempts=header["attempts"],
        value=value,
        header=header,
    )


def find(
    tr: ReadTransaction,
    keys: QueueKeys,
    config: Config,
    rands: Sequence[bytes | None],
    states: Sequence[str] = STATES,
) -> list[StoredItem | None]:
    """Return the items of these ids in these states. None for those that are not here. Raise `QueueUnreadable`."""
    places: dict[int, tuple[str, bytes]] = {}
    for state in states:
        reads = [
            (n, PlaceRead(tr, keys, config.generations, rand, state))
            for n, rand in enumerate(rands)
            if rand is not None and n not in places
        ]
        places |= {n: (state, where) for n, read in reads if (where := read.wait()) is not None}
    items = {n: ItemRead(tr, keys, rands[n] or b"", *place) for n, place in places.items()}
    with records.reading(config.name):
        return [items[n].wait() if n in items else None for n in range(len(rands))]


class PlaceRead:
    """A read of the place of an item in one state, issued and not yet waited for."""

    def __init__(
        self, tr: ReadTransaction, keys: QueueKeys, generations: Iterable[int], rand: bytes, state: str = "ready"
    ) -> None:
        where = generations if state in IN_GENERATIONS else (1,)
        self._reads = [tr.get(key) for generation in where for key in keys.found_at(state, generation, rand)]

    def wait(self) -> bytes | None:
        """Return the place, or None when no item of the state has this id."""
        return next((where for read in self._reads if (where := read.wait()) is not None), None)


class ItemRead:
    """A read of the item that an index value tells of, issued and not yet waited for."""

    def __init__(self, tr: ReadTransaction, keys: QueueKeys, rand: bytes, state: str, where: bytes) -> None:
        self._there = at_place(rand, state, where)
        self._read = tr.get(self._there.key(keys))

    def wait(self) -> StoredItem | None:
        """Return the item; None when nothing lies there."""
        stored = self._read.wait()
        return None if stored is None else with_stored(self._there, stored)


def at_place(rand: bytes, state: str, where: bytes) -> StoredItem:
    """Return the item that an index value tells of, without record and value."""
    generation, suffix, tried = read_place(where)
    nonce = expired_nonce(where)
    return StoredItem(
        state=state,
        rand=rand,
        generation=generation,
        suffix=suffix,
        attempts=tried,
        value=b"",
        header=place_header(where),
        nonce=nonce,
    )


def with_stored(there: StoredItem, stored: bytes) -> StoredItem:
    """Return the item with the record and value of these stored bytes."""
    header, value = (there.header, stored) if there.state in _BARE else _decode(there.state, stored)
    nonce = bytes.fromhex(header["nonce"]) if there.state == "leased" else there.nonce
    return replace(there, value=value, header=header, nonce=nonce)


def as_item(there: StoredItem, *, fifo: bool, codec: Codec | None, preview: int | None = None) -> Item:
    """Return the item as callers see it, its value cut to `preview` bytes."""
    header, state = there.header, there.state
    timed = state in ("delayed", "dead")
    leased = state == "leased"
    when = at(there.due_ms) if timed else None
    if timed:
        priority, count = header["priority"], header.get("count")
    else:
        priority, count, _ = ready_elements(there.suffix, fifo=fifo)
    return Item(
        id=there.rand.hex(),
        priority=priority,
        count=count,
        raw=there.value if preview is None else there.value[:preview],
        pushed_at=minted_at(there.rand),
        size=len(there.value),
        state=state,
        ready_at=there.ready_at if state == "ready" else None,
        attempts=there.attempts,
        attempt_records=there.entries,
        due_at=when if state == "delayed" else None,
        leased_at=at(header["leased"]) if leased else None,
        expires_at=at(header["expires"]) if leased else None,
        lease=header["nonce"][:TOLD] if leased else "",
        worker=header.get("worker", ""),
        died_at=when if state == "dead" else None,
        reason=header.get("reason", ""),
        codec=codec,
    )
