"""What a store holds, key by key in order: read in chunks that fit a transaction, and summed up in a digest.

Whatever its size, a store is walked in short read transactions and about a megabyte of memory. Keys are told without
the root, so that two stores can be compared. A walk of a store in use is not one snapshot: `Seal` tells whether it was.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from queues.errors import NewerFormat
from queues.keys.keyspace import Keyspace
from queues.kv.limits import KEYS_END
from queues.kv.port import KeyValue, KeyValueStore, ReadTransaction
from queues.model import records
from queues.model.tuples import Range

#: What one chunk holds at most, but for its last step: keys, and bytes as a cluster counts them when they are written.
MAX_KEYS, MAX_BYTES = 2_000, 750_000
#: Keys of one read of a chunk, at least and at most: many when they are small.
_MIN_STEP, _MAX_STEP = 4, 250
#: Seconds after which a chunk ends where it is; a transaction has five.
_MAX_SECONDS = 1.0
#: Queues of one read.
_QUEUES = 500
#: The smallest key.
_FIRST_KEY = b"\x00"
_FRAME = struct.Struct(">HI")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A few keys that follow each other."""

    #: Keys are without the root.
    pairs: Sequence[KeyValue]
    #: The chunk holds all keys up to here, this one excluded; None: up to the end.
    end: bytes | None


def cost(pairs: Sequence[tuple[bytes, bytes | None]]) -> int:
    """Return the bytes that writing pairs adds to a transaction: a key stands in its conflict range again, twice."""
    return sum([3 * len(key) + len(value or b"") + 50 for key, value in pairs])


class Walk:
    """Reads the content of one store chunk by chunk; `ranges` chooses a part of it."""

    def __init__(
        self,
        kv: KeyValueStore,
        keyspace: Keyspace,
        ranges: Sequence[Range] | None = None,
        *,
        prefix: bytes | None = None,
    ) -> None:
        self._kv = kv
        #: What all keys begin with, and are told without.
        self._prefix = keyspace.root if prefix is None else prefix
        self._root = len(self._prefix)
        self._ranges = keyspace.content if ranges is None else tuple(ranges)
        self._step = _MIN_STEP

    def chunk(self, begin: bytes) -> Chunk:
        """Return the chunk that begins with the first key at or behind `begin`."""
        pairs, end = self._kv.read(lambda tr: self._read(tr, self._prefix + begin), background=True)
        root = self._root
        if pairs:
            fitting = MAX_BYTES * len(pairs) // cost(pairs) // 4
            self._step = max(_MIN_STEP, min(_MAX_STEP, self._step * 4, fitting))
        return Chunk(pairs=[(key[root:], value) for key, value in pairs], end=None if end is None else end[root:])

    def _read(self, tr: ReadTransaction, begin: bytes) -> tuple[list[KeyValue], bytes | None]:
        pairs: list[KeyValue] = []
        size = 0
        until = time.monotonic() + _MAX_SECONDS
        for low, high in self._ranges:
            at = max(low, begin)
            while at < high:
                found = tr.get_range(at, high, limit=self._step).wait()
                pairs += found
                if len(found) < self._step:
                    break
                at = found[-1][0] + b"\0"
                size += cost(found)
                if size >= MAX_BYTES or len(pairs) >= MAX_KEYS or time.monotonic() > until:
                    return pairs, at
        return pairs, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """What a store holds, in three numbers; equal for a store and its copies."""

    keys: int
    #: Of keys without the root, and of values.
    size: int
    #: SHA-256 in hexadecimal digits, of all pairs in order.
    checksum: str


def outside(kv: KeyValueStore, keyspace: Keyspace) -> Walk:
    """Return a walk over the keys that lie outside of the root: those of applications, and items of attached queues."""
    begin, end = keyspace.range
    return Walk(kv, keyspace, ((_FIRST_KEY, begin), (end, KEYS_END)), prefix=b"")


def digest_outside(
    kv: KeyValueStore, keyspace: Keyspace, *, on_chunk: Callable[[int, int], None] = lambda keys, size: None
) -> Digest:
    """Read the keys outside of the root and sum them up; `on_chunk` hears keys and bytes so far."""
    return _sum(outside(kv, keyspace), (), on_chunk)


def digest(
    kv: KeyValueStore, keyspace: Keyspace, *, on_chunk: Callable[[int, int], None] = lambda keys, size: None
) -> Digest:
    """Read a whole store and sum it up; `on_chunk` hears keys and bytes so far.

    Left out is what differs between a store and its copy: the root, slots, the store record, the base of a queue.
    """
    root = len(keyspace.root)
    return _sum(Walk(kv, keyspace), [(low[root:], high[root:]) for low, high in based(keyspace)], on_chunk)


def _sum(walk: Walk, rebased: Sequence[Range], on_chunk: Callable[[int, int], None]) -> Digest:
    total = hashlib.sha256()
    frame = _FRAME.pack
    keys = size = 0
    at: bytes | None = b""
    while at is not None:
        chunk = walk.chunk(at)
        pairs = chunk.pairs
        if pairs and any(low <= pairs[-1][0] and pairs[0][0] < high for low, high in rebased):
            pairs = [
                (key, with_base(value, lambda _: 0) if any(low <= key < high for low, high in rebased) else value)
                for key, value in pairs
            ]
        summed = b"".join([part for key, value in pairs for part in (frame(len(key), len(value)), key, value)])
        total.update(summed)
        size += len(summed) - _FRAME.size * len(pairs)
        keys += len(pairs)
        at = chunk.end
        on_chunk(keys, size)
    return Digest(keys=keys, size=size, checksum=total.hexdigest())


def based(keyspace: Keyspace) -> tuple[Range, ...]:
    """Return the ranges of the records that hold a queue's base: configs, and deleted queues in the trash."""
    return keyspace.all_configs, keyspace.all_trash()


def with_base(record: bytes, change: Callable[[int], int]) -> bytes:
    """Return a record with another base; the same record where it holds none."""
    try:
        header, value = records.decode(record)
    except (NewerFormat, ValueError):
        return record
    config: dict[str, Any] | None = header if "base" in header else header.get("config")
    if not isinstance(config, dict) or "base" not in config:
        return record
    config["base"] = change(config["base"])
    return records.encode(header, value)


def seal(kv: KeyValueStore, keyspace: Keyspace) -> str:
    """Return what differs as soon as a queue or a space changed: a digest of all their change keys.

    Two equal seals say that nothing changed from when the first was finished until the second was begun.
    """
    total = hashlib.sha256()
    begin, end = keyspace.all_configs
    while True:

        def look(tr: ReadTransaction, begin: bytes = begin) -> tuple[list[bytes], list[bytes | None]]:
            directory = tr.get(keyspace.directory_change)
            configs = [key for key, _ in tr.get_range(begin, end, limit=_QUEUES).wait()]
            changes = [tr.get(keyspace.queue(keyspace.id_of_config(key)).change) for key in configs]
            return configs, [directory.wait(), *(change.wait() for change in changes)]

        configs, values = kv.read(look, background=True)
        for part in (*configs, *values):
            total.update(_FRAME.pack(0, len(part or b"")) + (part or b""))
        if len(configs) < _QUEUES:
            break
        begin = configs[-1] + b"\0"
    for key, change in spaces(kv, keyspace):
        total.update(_FRAME.pack(len(key), len(change)) + key + change)
    return total.hexdigest()


def spaces(kv: KeyValueStore, keyspace: Keyspace) -> Iterator[KeyValue]:
    """Yield the change key of every space of the application, and its value."""
    begin, end = keyspace.all_space_changes
    while True:
        pairs = kv.read(lambda tr, begin=begin: tr.get_range(begin, end, limit=_QUEUES).wait(), background=True)  # type: ignore[misc]
        yield from pairs
        if len(pairs) < _QUEUES:
            return
        begin = pairs[-1][0] + b"\0"


def count_space(kv: KeyValueStore, keyspace: Keyspace, name: str) -> int:
    """Return the number of keys in a space of the application."""
    walk = Walk(kv, keyspace, (keyspace.space(name).below(b""),))
    keys = 0
    at: bytes | None = b""
    while at is not None:
        chunk = walk.chunk(at)
        keys += len(chunk.pairs)
        at = chunk.end
    return keys
