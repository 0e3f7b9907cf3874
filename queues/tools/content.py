"""Content of a store, read in chunks that fit a transaction, and its digest.

A store of any size is read in short read transactions and about a megabyte of memory. Keys are given without the root,
so that two stores can be compared. Reading a store in use gives no snapshot: two equal seals prove that it was one.
"""

import hashlib
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from queues.errors import NewerFormat
from queues.keys.keyspace import Keyspace
from queues.kv.limits import KEYS_END
from queues.kv.port import KeyValue, KeyValueStore, ReadTransaction
from queues.model import records
from queues.model.range_in_steps import in_background, pairs, steps
from queues.model.tuples import Range

#: Limits of one chunk, but for its last step: keys, and bytes as a cluster counts them when they are written.
MAX_KEYS, MAX_BYTES = 2_000, 750_000
#: Keys of one read of a chunk, at least and at most: many when they are small.
_MIN_STEP, _MAX_STEP = 4, 250
#: Seconds after which a chunk ends where it is; a transaction has five.
_MAX_SECONDS = 1.0
#: The newest audit records and answers that a seal covers: processes may write a few out of order.
_NEWEST = 50
_FIRST_KEY = b"\x00"
_FRAME = struct.Struct(">HI")
#: Receives the keys and bytes read so far.
OnChunk = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A few consecutive keys with their values."""

    #: Keys are without the root.
    pairs: Sequence[KeyValue]
    #: The chunk holds all keys up to here, this one excluded; None: up to the end.
    end: bytes | None


def cost(changes: Sequence[tuple[bytes, bytes | None]]) -> int:
    """Return the bytes that writing pairs adds to a transaction. A conflict range holds the key twice more."""
    return sum([3 * len(key) + len(value or b"") + 50 for key, value in changes])


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
        #: The beginning of all keys, which chunks leave out.
        self._prefix = keyspace.root if prefix is None else prefix
        self._ranges = keyspace.content if ranges is None else tuple(ranges)
        self._step = _MIN_STEP

    def chunk(self, begin: bytes) -> Chunk:
        """Return the chunk that begins with the first key at or behind `begin`."""
        found, end = self._kv.read(lambda tr: self._read(tr, self._prefix + begin), background=True)
        root = len(self._prefix)
        if found:
            fitting = MAX_BYTES * len(found) // cost(found) // 4
            self._step = max(_MIN_STEP, min(_MAX_STEP, self._step * 4, fitting))
        return Chunk(pairs=[(key[root:], value) for key, value in found], end=None if end is None else end[root:])

    def chunks(self) -> Iterator[Sequence[KeyValue]]:
        """Yield the pairs of all chunks."""
        at: bytes | None = b""
        while at is not None:
            chunk = self.chunk(at)
            yield chunk.pairs
            at = chunk.end

    def _read(self, tr: ReadTransaction, begin: bytes) -> tuple[list[KeyValue], bytes | None]:
        held: list[KeyValue] = []
        size = 0
        until = time.monotonic() + _MAX_SECONDS
        for low, high in self._ranges:
            at = max(low, begin)
            while at < high:
                found = tr.get_range(at, high, limit=self._step).wait()
                held += found
                if len(found) < self._step:
                    break
                at = found[-1][0] + b"\0"
                size += cost(found)
                if size >= MAX_BYTES or len(held) >= MAX_KEYS or time.monotonic() > until:
                    return held, at
        return held, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """A store's content in three numbers; equal for a store and its copies."""

    keys: int
    #: Of keys without the root, and of values.
    size: int
    #: SHA-256 in hexadecimal digits, of all pairs in order.
    checksum: str


def outside(kv: KeyValueStore, keyspace: Keyspace) -> Walk:
    """Return a walk over the keys outside of the root."""
    begin, end = keyspace.range
    return Walk(kv, keyspace, ((_FIRST_KEY, begin), (end, KEYS_END)), prefix=b"")


def digest(kv: KeyValueStore, keyspace: Keyspace, *, on_chunk: OnChunk = lambda keys, size: None) -> Digest:
    """Return the digest of a whole store.

    It leaves out what differs between a store and its copy: the root, slots, the store record, the base of a queue.
    """
    root = len(keyspace.root)
    rebased = [(low[root:], high[root:]) for low, high in based(keyspace)]
    return digest_of(Walk(kv, keyspace), rebased, on_chunk=on_chunk)


def digest_of(walk: Walk, rebased: Sequence[Range] = (), *, on_chunk: OnChunk) -> Digest:
    """Return the digest of what a walk reads, without the base of queues in the ranges `rebased`."""
    total = hashlib.sha256()
    frame = _FRAME.pack
    keys = size = 0
    for found in walk.chunks():
        if found and any(low <= found[-1][0] and found[0][0] < high for low, high in rebased):
            found = [
                (key, with_base(value, lambda _: 0) if any(low <= key < high for low, high in rebased) else value)
                for key, value in found
            ]
        summed = b"".join([part for key, value in found for part in (frame(len(key), len(value)), key, value)])
        total.update(summed)
        size += len(summed) - _FRAME.size * len(found)
        keys += len(found)
        on_chunk(keys, size)
    return Digest(keys=keys, size=size, checksum=total.hexdigest())


def based(keyspace: Keyspace) -> tuple[Range, ...]:
    """Return the ranges of the records that hold a queue's base: configs and trash."""
    return keyspace.configs.all, keyspace.trash.all


def with_base(record: bytes, change: Callable[[int], int]) -> bytes:
    """Return a record with another base. A record without a base is returned as it is."""
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
    """Return a digest of all change keys, which differs as soon as a queue, a space or a bulk job changes.

    It differs, too, as soon as there is a newer audit record or answer to a request with an idempotency key.
    Two equal seals prove that nothing changed between the end of the first and the start of the second.
    """

    def read(tr: ReadTransaction, configs: list[KeyValue]) -> list[tuple[bytes, bytes]]:
        changes = [(key, tr.get(keyspace.queue(keyspace.configs.elements(key)[0]).change)) for key, _ in configs]
        return [(key, change.wait() or b"") for key, change in changes]

    def read_rest(tr: ReadTransaction) -> list[tuple[bytes, bytes]]:
        job = tr.get(keyspace.job_change)
        newest = [
            tr.get_range(*within.all, limit=_NEWEST, reverse=True) for within in (keyspace.audit, keyspace.answer_times)
        ]
        return [(keyspace.job_change, job.wait() or b""), *chain.from_iterable(found.wait() for found in newest)]

    look = in_background(kv)
    total = hashlib.sha256(look(lambda tr: tr.get(keyspace.directory_change).wait()) or b"")
    rest = [pairs(look, keyspace.space_changes.all), look(read_rest)]
    for some in chain(steps(look, keyspace.configs.all, read), rest):
        for key, change in some:
            total.update(_FRAME.pack(len(key), len(change)) + key + change)
    return total.hexdigest()


def count_spaces(kv: KeyValueStore, keyspace: Keyspace) -> dict[str, int]:
    """Return the number of keys in each space of the application."""
    names = [keyspace.space_changes.elements(key)[0] for key, _ in pairs(in_background(kv), keyspace.space_changes.all)]
    walks = {name: Walk(kv, keyspace, (keyspace.spaces.below(name),)) for name in names}
    return {name: sum(map(len, walk.chunks())) for name, walk in walks.items()}
