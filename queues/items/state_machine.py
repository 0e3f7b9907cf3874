"""The state machine of items: from one stored item to the next, with keys, indexes and counters.

A transition has two halves. A function says what the item becomes (`delayed_until`, `given_back` …). Then `change`
writes that: the item before, if there was one, and the item after, if there is one. Verbs, sweeps, actions of people,
undo and bulk jobs all go this way. Only pushes, pops, leases and acknowledgements have packed forms
(`queues.operations.push`, `queues.items.ready`, `queues.items.leased`, `queues.operations.settle`), which tests compare
with this one.

    before            after             by
    (nothing)         ready, delayed    push, move, restore
    ready             leased            lease
    ready             delayed           delay
    delayed           ready             promote, or when it is due
    delayed           delayed           reschedule
    leased            ready, delayed    release, or when the lease expires
    leased            dead              the same after the last attempt
    dead              ready             retry
    any               (nothing)         pop, acknowledge, delete, move

A caller of `change` has read the item in the same transaction, or conflicts on its key: so of two transactions that
change one item, one commits and the other begins anew.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from queues.errors import PlaceTaken
from queues.items import attached
from queues.items.counters import CounterDelta
from queues.items.equal_ids import taken
from queues.items.stored_item import ATTACHED, StoredItem, clear_entries, write_entries
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import (
    IN_GENERATIONS,
    OUTSIDE,
    SINCE,
    AttachedKeys,
    QueueKeys,
    Side,
    ready_elements,
    ready_suffix,
    timed_suffix,
)
from queues.kv.port import ReadTransaction, Transaction
from queues.model import attempt_log
from queues.model.bands import band_of
from queues.model.config import Config
from queues.model.ids import minted_ms
from queues.model.priority import Priority

# What an item becomes


def promoted(there: StoredItem, config: Config, count: int, since_ms: int) -> StoredItem:
    """Return a delayed item as ready, pushed last by this count."""
    return _as_ready(there, config, ready_suffix(there.header["priority"], count, there.rand), since_ms)


def delayed_until(there: StoredItem, config: Config, due_ms: int, *, reason: str = "") -> StoredItem:
    """Return a ready, delayed or leased item as delayed; a delayed one keeps its reason."""
    header: Mapping[str, Any] = there.header
    if there.state != "delayed":
        header = {"priority": there.priority(fifo=config.fifo), "attempts": there.attempts, **there.log}
        header |= {"reason": reason} if reason else {}
    suffix, newest = timed_suffix(due_ms, there.rand), config.generations[-1]
    return replace(there, state="delayed", generation=newest, suffix=suffix, header=header, nonce=b"")


def leased_until(there: StoredItem, expires_ms: int, *, now_ms: int, worker: str, nonce: bytes) -> StoredItem:
    """Return a ready item as leased, its attempts one more."""
    header = {
        "nonce": nonce.hex(),
        "expires": expires_ms,
        "leased": now_ms,
        "generation": there.generation,
        "suffix": there.suffix.hex(),
        "attempts": there.attempts + 1,
        "worker": worker,
        **there.log,
    }
    return replace(there, state="leased", attempts=there.attempts + 1, header=header, nonce=nonce)


def extended(there: StoredItem, expires_ms: int) -> StoredItem:
    """Return a leased item with another end of its lease."""
    return replace(there, header={**there.header, "expires": expires_ms})


def is_last(there: StoredItem, config: Config) -> bool:
    """Say whether a leased item is dead when its lease ends without being acknowledged."""
    return config.max_attempts is not None and there.attempts >= config.max_attempts


def with_attempt_logged(
    there: StoredItem, config: Config, *, now_ms: int, error: str = "", traceback: str = "", expired: bool = False
) -> StoredItem:
    """Return a leased item with this lease in the log of its attempts."""
    this = attempt_log.entry(
        number=there.attempts,
        worker=there.header["worker"],
        began_ms=there.header["leased"],
        ended_ms=now_ms,
        expired=expired,
        died=is_last(there, config),
        error=error,
        traceback=traceback,
    )
    log = attempt_log.fitted([*there.entries, this], len(there.value))
    return replace(there, header={**there.header, attempt_log.LOG: log})


def given_back(there: StoredItem, config: Config, *, now_ms: int, reason: str = "", dies: bool = True) -> StoredItem:
    """Return a leased item as ready at its place, or as dead after its last attempt if it `dies` by that."""
    return _given_back(there, config, b"", now_ms, now_ms, reason, dies=dies)


def expired(there: StoredItem, config: Config, *, now_ms: int) -> StoredItem:
    """Return an item with an expired lease as ready at its place, or as dead, with that lease in its log.

    The nonce stays with the item: it can still be acknowledged by that lease. It is ready since then, not since a sweep
    noticed it.
    """
    after = with_attempt_logged(there, config, now_ms=now_ms, expired=True)
    reason = f"lease expired at attempt {there.attempts}"
    return _given_back(after, config, there.nonce, now_ms, there.expires_ms, reason, dies=True)


def _given_back(
    there: StoredItem, config: Config, nonce: bytes, now_ms: int, since_ms: int, reason: str, *, dies: bool
) -> StoredItem:
    if not dies or not is_last(there, config):
        return _as_ready(there, config, there.suffix, since_ms, nonce=nonce)
    priority, count, _ = ready_elements(there.suffix, fifo=config.fifo)
    header = {
        "priority": priority,
        "count": count,
        "attempts": there.attempts,
        "worker": there.header["worker"],
        "reason": reason or f"released at attempt {there.attempts}",
        **there.log,
    }
    suffix = timed_suffix(now_ms, there.rand)
    return replace(there, state="dead", generation=OUTSIDE, suffix=suffix, header=header, nonce=nonce)


def retried(there: StoredItem, config: Config, now_ms: int) -> StoredItem:
    """Return a dead item as ready at its place, with all its attempts before it."""
    suffix = ready_suffix(there.header["priority"], there.header["count"], there.rand)
    return replace(_as_ready(there, config, suffix, now_ms), attempts=0)


def new_ready(
    rand: bytes,
    value: bytes,
    config: Config,
    suffix: bytes,
    *,
    tried: int = 0,
    log: Mapping[str, Any] | None = None,
    since_ms: int | None = None,
) -> StoredItem:
    """Return an item that arrives as ready, with the attempts that it had elsewhere; `since_ms` is None for a push."""
    return StoredItem(
        state="ready",
        rand=rand,
        generation=config.generations[-1],
        suffix=suffix,
        attempts=tried,
        value=value,
        header={**(log or {}), **({} if since_ms is None else {SINCE: since_ms})},
    )


def new_delayed(rand: bytes, value: bytes, config: Config, priority: Priority | None, due_ms: int) -> StoredItem:
    """Return an item that arrives as delayed."""
    return StoredItem(
        state="delayed",
        rand=rand,
        generation=config.generations[-1],
        suffix=timed_suffix(due_ms, rand),
        attempts=0,
        value=value,
        header={"priority": priority, "attempts": 0},
    )


def with_priority(there: StoredItem, config: Config, priority: Priority | None) -> StoredItem:
    """Return the item with another priority, its push order kept."""
    if there.state == "ready":
        count = ready_elements(there.suffix, fifo=config.fifo)[1]
        return at_suffix(there, ready_suffix(priority, count, there.rand))
    return replace(there, header={**there.header, "priority": priority}, nonce=b"")


def at_suffix(there: StoredItem, suffix: bytes) -> StoredItem:
    """Return the item at another place of its state."""
    return replace(there, suffix=suffix, nonce=b"")


def with_value(there: StoredItem, value: bytes) -> StoredItem:
    """Return the item with another value."""
    header = there.header
    if there.log:
        header = {**header, attempt_log.LOG: attempt_log.fitted(there.entries, len(value))}
    return replace(there, value=value, header=header, nonce=b"")


def _as_ready(there: StoredItem, config: Config, suffix: bytes, since_ms: int, *, nonce: bytes = b"") -> StoredItem:
    header, newest = {**there.log, SINCE: since_ms}, config.generations[-1]
    return replace(there, state="ready", generation=newest, suffix=suffix, header=header, nonce=nonce)


# Writing it


def change(
    tr: Transaction,
    keys: QueueKeys,
    config: Config,
    before: StoredItem | None,
    after: StoredItem | None,
    delta: CounterDelta,
    *,
    now_ms: int | None = None,
) -> None:
    """Bring an item from one state to the next. Before None it arrives, after None it leaves the queue.

    `now_ms` spares the workers and sweepers that need not learn of what falls due later.
    """
    if after is not None:
        after = settled(config, after)
    if before is not None:
        _clear(tr, keys, config, before)
    if after is not None:
        write(tr, keys, after, config.prefix)
        if after.state in ("ready", ATTACHED):
            delta.wake()
        elif after.state == "delayed":
            delta.falls_due(after.due_ms, now_ms)
        elif after.state == "leased":
            delta.falls_due(after.expires_ms, now_ms)
    stays = before is not None and after is not None and _counted_with(before) == _counted_with(after)
    if before is not None and after is not None and (before.state, after.state) == ("leased", "dead"):
        delta.traffic("dead")
    if before is not None:
        _count(config, before, delta, "out", whole=not stays)
    if after is not None:
        _count(config, after, delta, "in", whole=not stays)


def settled(config: Config, there: StoredItem) -> StoredItem:
    """Return an item in the newest generation if its own is no longer live."""
    if there.state in IN_GENERATIONS and there.generation not in config.generations:
        there = replace(there, generation=config.generations[-1])
    return with_time(there) if there.state == "ready" else there


def with_time(there: StoredItem) -> StoredItem:
    """Return an item with a time if it is ready and was tried: takers look for attempts where the times are."""
    if there.state == "ready" and (there.attempts or there.header) and there.since_ms is None:  # restored
        return replace(there, header={**there.header, SINCE: minted_ms(there.rand)})
    return there


def write(tr: Transaction, keys: QueueKeys, there: StoredItem, prefix: bytes | None = None) -> None:
    """Write an item and its indexes, counting nothing; `prefix` is that of an attached queue."""
    if prefix is not None:
        tr.set(AttachedKeys(prefix).at(there.suffix), there.value)
        return
    tr.set(there.key(keys), there.stored)
    if there.state == "ready":
        write_entries(tr, keys, there)
        return
    tr.set(there.index(keys), there.place)
    if there.state == "leased":
        tr.set(there.expiry(keys), b"")


def _clear(tr: Transaction, keys: QueueKeys, config: Config, there: StoredItem) -> None:
    if config.prefix is not None:
        attached.clear(tr, AttachedKeys(config.prefix), there.suffix)
        return
    tr.clear(there.key(keys))
    if there.state == "ready":
        clear_entries(tr, keys, there)
        return
    tr.clear(there.index(keys))
    if there.state == "leased":
        tr.clear(there.expiry(keys))


def _counted_with(there: StoredItem) -> tuple[str, int]:
    return there.state, there.generation if there.state in IN_GENERATIONS else OUTSIDE


def _count(config: Config, there: StoredItem, delta: CounterDelta, side: Side, *, whole: bool) -> None:
    """Count an item in or out; one that stays in its state and generation by its band alone."""
    if config.prefix is not None:
        return
    state, generation = _counted_with(there)
    if whole:
        delta.state(generation, state, side)
    priority = there.priority(fifo=config.fifo) if state == "ready" else None
    if priority is not None:
        delta.bands(generation, {band_of(config.edges, priority): 1}, side)


# Places that another item has


def refuse_taken(
    tr: ReadTransaction, keys: QueueKeys, config: Config, changes: Iterable[tuple[StoredItem | None, StoredItem]]
) -> None:
    """Raise `IdTaken` when another item has the place of one of the items after; `PlaceTaken` in an attached queue."""
    if config.prefix is None:
        new = [tr.get(key) for before, after in changes for key in new_keys(keys, config, before, after)]
        if any(read.wait() is not None for read in new):
            raise taken()
        return
    foreign = AttachedKeys(config.prefix)
    reads = [tr.get_range(*foreign.only(after.suffix), limit=1) for _, after in changes]
    if any(read.wait() for read in reads):
        raise PlaceTaken("Another item was written at the same key meanwhile: nothing was changed.")


def new_keys(keys: QueueKeys, config: Config, before: StoredItem | None, after: StoredItem) -> list[bytes]:
    """Return the keys by which the item after is found and the item before was not."""
    after = settled(config, after)
    had = () if before is None else (before.key(keys), before.index(keys))
    found_at = keys.found_at(after.state, after.generation, after.rand)
    return [key for key in (after.key(keys), *found_at) if key not in had]


# Several at once


class Change(NamedTuple):
    """One item, before an action and after it."""

    before: StoredItem
    #: None: the item is in no queue.
    after: StoredItem | None


#: A change, or an arrival: before it the item was in no queue.
AnyChange = tuple[StoredItem | None, StoredItem | None]
C = TypeVar("C", bound=AnyChange)


def apply(tr: Transaction, keyspace: Keyspace, config: Config, changes: list[C], verb: str | None = None) -> list[C]:
    """Write changes of items of one queue, counted under a verb, and return them. Raise `IdTaken`."""
    if not changes:
        return changes
    keys = keyspace.queue(config.id)
    delta = CounterDelta(keys, wake=False)
    if verb is not None:
        delta.traffic(verb, len(changes))
        delta.by_hand(verb, len(changes))
    refuse_taken(tr, keys, config, [(before, after) for before, after in changes if after is not None])
    for before, after in changes:
        change(tr, keys, config, before, after, delta)
    delta.apply(tr)
    return changes
