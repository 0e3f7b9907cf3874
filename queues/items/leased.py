"""The leased set of one queue inside one transaction: lease, end a lease, look.

A lease is one record under the item's id, and one key by which its expiry is found. The record says at which place the
item stood, so that it goes back there, and holds a nonce that every new lease changes: whoever comes with another nonce
holds a lease that is over. Time never decides who holds a lease; it only decides when a sweep ends it. The nonce of a
lease that expired stays with the item until something else happens to it: see queues/items/expired.py.

Leases are outside of generations: a purge leaves them alone, and what comes back goes to the newest generation.

Conflicts: leasing conflicts as taking does. Whatever ends or extends a lease reads its record, so of two that would
end it one does, and the other finds it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from queues.errors import StaleLease
from queues.items import dead, ready
from queues.items.counters import CounterDelta
from queues.items.equal_ids import FreeIds
from queues.keys.queue_keys import OUTSIDE, QueueKeys
from queues.keys.suffix import place, read_place, ready_elements, timed_elements, timed_suffix, with_rand
from queues.kv.port import ReadTransaction, Transaction
from queues.model import records
from queues.model.config import Config
from queues.model.ids import at, minted_at
from queues.model.item import Item

#: The states that the item of an ended lease may come to.
RETURNING = ("ready", "delayed", "dead")
_KNOWN = frozenset({"nonce", "expires", "leased", "generation", "suffix", "attempts", "worker"})
#: Digits of a nonce that items tell.
TOLD = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A lease as it lies in the store."""

    rand: bytes
    nonce: bytes
    expires_ms: int
    leased_ms: int
    #: Where the item stood.
    generation: int
    suffix: bytes
    #: This one included.
    attempts: int
    worker: str
    value: bytes
    #: What a later build of this format keeps here besides: written again as it was read.
    unknown: dict[str, Any] = field(default_factory=dict, hash=False)

    def encode(self) -> bytes:
        """Return the lease as the store keeps it."""
        header = self.unknown | {
            "nonce": self.nonce.hex(),
            "expires": self.expires_ms,
            "leased": self.leased_ms,
            "generation": self.generation,
            "suffix": self.suffix.hex(),
            "attempts": self.attempts,
            "worker": self.worker,
        }
        return records.encode(header, self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a call minted for the leases that it makes, before the first try."""

    now_ms: int
    expires_ms: int
    worker: str
    nonces: tuple[bytes, ...]


def free_ids(tr: Transaction, keys: QueueKeys, config: Config, suffixes: Sequence[bytes]) -> FreeIds:
    """Issue the reads of whether the ids of items that stand at these places are leased already."""
    return FreeIds(tr, keys.lease, [ready_elements(suffix, fifo=config.fifo)[2] for suffix in suffixes])


def begin(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    entries: Sequence[ready.Entry],
    terms: Terms,
    delta: CounterDelta,
    ids: FreeIds,
) -> list[Entry]:
    """Lease these ready items, conflicting on exactly their keys; `ids` tell which ids are free."""
    tr.use_reserve()  # the value moves, it does not come in
    ready.take(tr, keys, config, entries, terms.now_ms, delta, verb="lease")
    leases = []
    for entry, nonce in zip(entries, terms.nonces, strict=False):
        rand = ready_elements(entry.suffix, fifo=config.fifo)[2]
        free = ids.give(rand, nonce)
        lease = Entry(
            rand=free,
            nonce=nonce,
            expires_ms=terms.expires_ms,
            leased_ms=terms.now_ms,
            generation=entry.generation,
            suffix=entry.suffix if free == rand else with_rand(entry.suffix, free, fifo=config.fifo),
            attempts=entry.attempts + 1,
            worker=terms.worker,
            value=entry.value,
        )
        insert(tr, keys, lease, delta)
        leases.append(lease)
    return leases


def insert(tr: Transaction, keys: QueueKeys, entry: Entry, delta: CounterDelta) -> None:
    """Write the lease of an item that `tr` takes."""
    write(tr, keys, entry)
    tr.set(keys.index("leased", entry.rand), place(entry.generation, entry.suffix, entry.attempts))
    delta.state(OUTSIDE, "leased", "in")
    delta.falls_due(entry.expires_ms, entry.leased_ms)


def write(tr: Transaction, keys: QueueKeys, entry: Entry) -> None:
    """Write a lease, new or extended."""
    tr.set(keys.lease(entry.rand), entry.encode())
    tr.set(keys.expiry(timed_suffix(entry.expires_ms, entry.rand)), b"")


class Return:
    """Reads of what stands under the id of a leased item where it may go, issued and not yet waited for."""

    def __init__(self, tr: ReadTransaction, keys: QueueKeys, rand: bytes, generation: int) -> None:
        self._tr = tr
        self._keys = keys
        self._generation = generation
        self._rand = rand
        self._reads = {state: FreeIds(tr, self._key_of(state, generation), [rand]) for state in RETURNING}

    def free(self, entry: Entry, state: str, config: Config) -> Entry:
        """Return the ended lease, under another id where another item of that state has its own."""
        ids, newest = self._reads[state], config.generations[-1]
        if newest != self._generation:
            ids = FreeIds(self._tr, self._key_of(state, newest), [self._rand])
        rand = ids.give(entry.rand, entry.nonce)
        if rand == entry.rand:
            return entry
        return replace(entry, rand=rand, suffix=with_rand(entry.suffix, rand, fifo=config.fifo))

    def _key_of(self, state: str, generation: int) -> Callable[[bytes], bytes]:
        return lambda rand: self._keys.index(state, rand, generation)


class HeldRead:
    """A read of the lease of this nonce, issued and not yet waited for; with `generation` of where it may go, too."""

    def __init__(
        self, tr: ReadTransaction, keys: QueueKeys, rand: bytes, nonce: bytes, generation: int | None = None
    ) -> None:
        self._back = None if generation is None else Return(tr, keys, rand, generation)
        self._rand = rand
        self._nonce = nonce
        self._read = tr.get(keys.lease(rand))

    def wait(self) -> Entry:
        """Return the lease; raise `StaleLease` when it is over."""
        record = self._read.wait()
        entry = None if record is None else decode(self._rand, record)
        if entry is None or entry.nonce != self._nonce:
            raise StaleLease("This lease is over: it ended before, and the item may have gone to another worker.")
        return entry

    @property
    def back(self) -> Return:
        """What stands where the item may go."""
        assert self._back is not None
        return self._back


def remove(tr: Transaction, keys: QueueKeys, entry: Entry, delta: CounterDelta) -> None:
    """End a lease, on whose record `tr` conflicts."""
    tr.use_reserve()  # the value moves or goes, it does not come in
    tr.clear(keys.lease(entry.rand))
    tr.clear(keys.expiry(timed_suffix(entry.expires_ms, entry.rand)))
    tr.clear(keys.index("leased", entry.rand))
    delta.state(OUTSIDE, "leased", "out")


def is_last(entry: Entry, config: Config) -> bool:
    """Say whether the item is dead when this lease ends without being acknowledged."""
    return config.max_attempts is not None and entry.attempts >= config.max_attempts


def give_back(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    entry: Entry,
    delta: CounterDelta,
    *,
    now_ms: int,
    reason: str,
    back: Return,
    expired: bool = False,
) -> Item:
    """Put the item of an ended lease back at its place, or to the dead after its last attempt.

    One that `expired` can still be acknowledged there: see queues/items/expired.py.
    """
    nonce = entry.nonce if expired else b""
    if not is_last(entry, config):
        return back_to_place(tr, keys, config, entry, delta, back=back, nonce=nonce)
    entry = back.free(entry, "dead", config)
    priority, count, _ = ready_elements(entry.suffix, fifo=config.fifo)
    delta.traffic("dead")
    return dead.insert(
        tr,
        keys,
        dead.Entry(
            rand=entry.rand,
            died_ms=now_ms,
            priority=priority,
            count=count,
            attempts=entry.attempts,
            worker=entry.worker,
            reason=reason,
            value=entry.value,
        ),
        delta,
        nonce=nonce,
    )


def back_to_place(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    entry: Entry,
    delta: CounterDelta,
    *,
    back: Return,
    nonce: bytes = b"",
) -> Item:
    """Make the item of an ended lease ready at its place, with the attempts that the entry says."""
    entry = back.free(entry, "ready", config)
    return ready.become_ready(
        tr, keys, config, delta, suffix=entry.suffix, value=entry.value, attempts=entry.attempts, nonce=nonce
    )


def expire_due(tr: Transaction, keys: QueueKeys, config: Config, *, until_ms: int, limit: int, budget: int) -> int:
    """End at most `limit` leases that have expired by `until_ms`, and so many bytes; return their number."""
    expiries = tr.snapshot.get_range(*keys.expired_by(until_ms), limit=limit).wait()
    delta = CounterDelta(keys, wake=False)
    ended = 0
    reads = []
    for key, _ in expiries:
        expires_ms, rand = timed_elements(keys.expiry_suffix_of(key))
        back = Return(tr, keys, rand, config.generations[-1])
        reads.append((key, expires_ms, rand, tr.get(keys.lease(rand)), back))
    for key, expires_ms, rand, read, back in reads:
        record = read.wait()
        entry = None if record is None else decode(rand, record)
        if entry is None or entry.expires_ms != expires_ms:
            tr.clear(key)  # nothing of ours writes one without the other, but a sweep must never stop at it
            continue
        budget -= len(entry.value)
        if budget < 0 and ended:
            break
        remove(tr, keys, entry, delta)
        reason = f"lease expired at attempt {entry.attempts}"
        give_back(tr, keys, config, entry, delta, now_ms=until_ms, reason=reason, back=back, expired=True)
        ended += 1
    if ended:
        delta.traffic("expire", ended)
        delta.apply(tr)
    return ended


def look(tr: ReadTransaction, keys: QueueKeys, *, after: bytes | None, limit: int) -> list[Entry]:
    """Return leases behind a place, the next to expire first."""
    begin, end = keys.expiries()
    if after is not None:
        begin = keys.expiry(after) + b"\x00"
    pairs = tr.get_range(begin, end, limit=limit).wait()
    rands = [timed_elements(keys.expiry_suffix_of(key))[1] for key, _ in pairs]
    reads = [(rand, tr.get(keys.lease(rand))) for rand in rands]
    return [decode(rand, record) for rand, read in reads if (record := read.wait()) is not None]


def at_place(tr: ReadTransaction, keys: QueueKeys, config: Config, where: bytes) -> Item | None:
    """Return the leased item that an index entry points to."""
    rand = ready_elements(read_place(where)[1], fifo=config.fifo)[2]
    record = tr.get(keys.lease(rand)).wait()
    return None if record is None else as_item(decode(rand, record), config)


def as_item(entry: Entry, config: Config, *, preview: int | None = None) -> Item:
    """Return a leased item, its value cut to `preview` bytes."""
    priority, count, rand = ready_elements(entry.suffix, fifo=config.fifo)
    return Item(
        id=rand.hex(),
        priority=priority,
        count=count,
        value=entry.value if preview is None else entry.value[:preview],
        pushed_at=minted_at(rand),
        size=len(entry.value),
        state="leased",
        attempts=entry.attempts,
        leased_at=at(entry.leased_ms),
        expires_at=at(entry.expires_ms),
        lease=entry.nonce.hex()[:TOLD],
        worker=entry.worker,
    )


def decode(rand: bytes, record: bytes) -> Entry:
    """Read a lease from the store."""
    header, value = records.decode(record)
    return Entry(
        rand=rand,
        nonce=bytes.fromhex(header["nonce"]),
        expires_ms=header["expires"],
        leased_ms=header["leased"],
        generation=header["generation"],
        suffix=bytes.fromhex(header["suffix"]),
        attempts=header["attempts"],
        worker=header["worker"],
        value=value,
        unknown=records.unknown(header, _KNOWN),
    )
