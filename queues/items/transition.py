"""Bringing items to another state by hand in one transaction: promote, reschedule, delay, retry, release, acknowledge.

Each returns what it changed, to be noted. The due times of delayed items, the places of dead ones and the leases of
leased ones stay in that note, so that undoing brings them back: a lease that was taken back is the same worker's again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from queues.errors import STATE_WORDS, Words, WrongState, some_are
from queues.items import dead, delayed, leased, located
from queues.items.counters import CounterDelta
from queues.items.located import StoredItem
from queues.items.undo_log import Change
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import OUTSIDE
from queues.keys.suffix import ready_elements, ready_suffix, timed_suffix
from queues.kv.port import Transaction
from queues.model.config import Config
from queues.model.records import decode


def promote(tr: Transaction, keyspace: Keyspace, config: Config, stored_items: Sequence[StoredItem]) -> list[Change]:
    """Make delayed items ready now, behind whatever was pushed before, in the order given."""
    _only(stored_items, "delayed", Words("only delayed items are promoted."))
    changes = [Change(before=there, after=_ready_now(tr, config, there)) for there in stored_items]
    _apply(tr, keyspace, config, changes, "promote")
    return changes


def reschedule(
    tr: Transaction, keyspace: Keyspace, config: Config, stored_items: Sequence[StoredItem], *, due_ms: int | None
) -> list[Change]:
    """Let delayed items be due at another time; None: now. Those that are due then already are left out."""
    if due_ms is None:
        return promote(tr, keyspace, config, stored_items)
    _only(stored_items, "delayed", Words("only delayed items are rescheduled."))
    changes = []
    for there in stored_items:
        after = replace(there, generation=config.generations[-1], suffix=timed_suffix(due_ms, there.rand))
        if after.suffix != there.suffix:
            changes.append(Change(before=there, after=after))
    _apply(tr, keyspace, config, changes, None)
    return changes


def delay(
    tr: Transaction, keyspace: Keyspace, config: Config, stored_items: Sequence[StoredItem], *, due_ms: int | None
) -> list[Change]:
    """Let ready items wait until they are due; None: that has passed, so nothing changes. Attempts stay with them."""
    _only(stored_items, "ready", Words("only ready items are delayed."))
    if due_ms is None:
        return []
    changes = []
    for there in stored_items:
        after = StoredItem(
            state="delayed",
            rand=there.rand,
            generation=config.generations[-1],
            suffix=timed_suffix(due_ms, there.rand),
            attempts=there.attempts,
            stored=delayed.record_of(there.priority(fifo=config.fifo), there.attempts, there.stored),
        )
        changes.append(Change(before=there, after=after))
    _apply(tr, keyspace, config, changes, None)
    return changes


def retry(tr: Transaction, keyspace: Keyspace, config: Config, stored_items: Sequence[StoredItem]) -> list[Change]:
    """Put dead items back at their places, with all their attempts before them."""
    _only(stored_items, "dead", Words("only dead items are retried."))
    changes = []
    for there in stored_items:
        header, value = decode(there.stored)
        suffix = ready_suffix(header["priority"], header["count"], there.rand)
        after = StoredItem(
            state="ready",
            rand=there.rand,
            generation=config.generations[-1],
            suffix=suffix,
            attempts=0,
            stored=value,
        )
        changes.append(Change(before=there, after=after))
    _apply(tr, keyspace, config, changes, "retry")
    return changes


def release(
    tr: Transaction,
    keyspace: Keyspace,
    config: Config,
    stored_items: Sequence[StoredItem],
    *,
    now_ms: int,
    reason: str,
) -> list[Change]:
    """Take items back from the workers who hold them: to their places, or to the dead after their last attempt."""
    _only(stored_items, "leased", Words("only leased items are released."))
    changes = [
        Change(before=there, after=_given_back(config, there, now_ms=now_ms, reason=reason)) for there in stored_items
    ]
    died = sum(change.after is not None and change.after.state == "dead" for change in changes)
    _apply(tr, keyspace, config, changes, "release", died=died)
    return changes


def acknowledge(tr: Transaction, keyspace: Keyspace, config: Config, there: StoredItem) -> None:
    """Take a leased item out of its queue as done."""
    _only([there], "leased", Words("only leased items are acknowledged."))
    tr.use_reserve()
    keys = keyspace.queue(config.id)
    delta = CounterDelta(keys, wake=False)
    located.lift(tr, keys, config, there, delta)
    delta.traffic("ack")
    delta.apply(tr)


def in_state(stored_items: Sequence[StoredItem], state: str) -> list[StoredItem]:
    """Return the items that are in a state."""
    return [there for there in stored_items if there.state == state]


def _only(stored_items: Sequence[StoredItem], state: str, rule: Words) -> None:
    others = [there for there in stored_items if there.state != state]
    if not others:
        return
    if len(stored_items) == 1:
        now, wanted = STATE_WORDS[others[0].state], STATE_WORDS[state]
        what = Words("The item is {now}, not {state}", now=now, state=wanted)
    else:
        what = Words("{items} not {state}", items=some_are(len(others), len(stored_items)), state=STATE_WORDS[state])
    raise WrongState("{what}: {rule} Nothing was changed.", what=what, rule=rule)


def _ready_now(tr: Transaction, config: Config, there: StoredItem) -> StoredItem:
    header, value = decode(there.stored)
    return StoredItem(
        state="ready",
        rand=there.rand,
        generation=config.generations[-1],
        suffix=ready_suffix(header["priority"], config.base + tr.stamp(), there.rand),
        attempts=there.attempts,
        stored=value,
    )


def _given_back(config: Config, there: StoredItem, *, now_ms: int, reason: str) -> StoredItem:
    entry = leased.decode(there.rand, there.stored)
    if not leased.is_last(entry, config):
        return StoredItem(
            state="ready",
            rand=there.rand,
            generation=config.generations[-1],
            suffix=entry.suffix,
            attempts=entry.attempts,
            stored=entry.value,
        )
    priority, count, _ = ready_elements(entry.suffix, fifo=config.fifo)
    died = dead.Entry(
        rand=there.rand,
        died_ms=now_ms,
        priority=priority,
        count=count,
        attempts=entry.attempts,
        worker=entry.worker,
        reason=reason or f"released at attempt {entry.attempts}",
        value=entry.value,
    )
    return StoredItem(
        state="dead",
        rand=there.rand,
        generation=OUTSIDE,
        suffix=died.suffix,
        attempts=entry.attempts,
        stored=died.encode(),
    )


def _apply(
    tr: Transaction,
    keyspace: Keyspace,
    config: Config,
    changes: Sequence[Change],
    verb: str | None,
    *,
    died: int = 0,
) -> None:
    if not changes:
        return
    tr.use_reserve()  # values move, they do not come in
    keys = keyspace.queue(config.id)
    delta = CounterDelta(keys, wake=True)
    if verb is not None:
        delta.traffic(verb, len(changes))
    if died:
        delta.traffic("dead", died)
    located.refuse_taken(tr, keys, config, [(each.before, each.after) for each in changes if each.after is not None])
    for change in changes:
        assert change.after is not None
        located.change(tr, keys, config, change.before, change.after, delta)
    delta.apply(tr)
