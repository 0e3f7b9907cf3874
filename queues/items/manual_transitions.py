"""Changes of state that people ask for: promote, reschedule, delay, retry, release, acknowledge.

Each returns its changes, for the trash: undoing brings back due times, places of dead items and leases. A lease that
was taken back is the same worker's again.
"""

from collections.abc import Callable, Sequence

from queues.errors import STATE_WORDS, Words, WrongState, some_are
from queues.items import state_machine
from queues.items.state_machine import Change
from queues.items.stored_item import StoredItem
from queues.keys.keyspace import Keyspace
from queues.kv.port import Transaction
from queues.model.config import Config


def promote(
    tr: Transaction, keyspace: Keyspace, config: Config, stored_items: Sequence[StoredItem], *, now_ms: int
) -> list[Change]:
    """Make delayed items ready now, behind all items pushed before, in the order given."""
    _only(stored_items, "delayed", Words("only delayed items are promoted."))

    def become(there: StoredItem) -> StoredItem:
        return state_machine.promoted(there, config, config.base + tr.stamp(), now_ms)

    return _change(tr, keyspace, config, stored_items, become, "promote")


def reschedule(
    tr: Transaction,
    keyspace: Keyspace,
    config: Config,
    stored_items: Sequence[StoredItem],
    *,
    due_ms: int | None,
    now_ms: int,
) -> list[Change]:
    """Give delayed items another due time, None: now. Items that are due then already are left out."""
    if due_ms is None:
        return promote(tr, keyspace, config, stored_items, now_ms=now_ms)
    _only(stored_items, "delayed", Words("only delayed items are rescheduled."))
    others = [there for there in stored_items if there.due_ms != due_ms]
    return _change(tr, keyspace, config, others, lambda there: state_machine.delayed_until(there, config, due_ms))


def delay(
    tr: Transaction, keyspace: Keyspace, config: Config, stored_items: Sequence[StoredItem], *, due_ms: int | None
) -> list[Change]:
    """Make ready items delayed; None: that time has passed, so nothing changes. Attempts stay with them."""
    _only(stored_items, "ready", Words("only ready items are delayed."))
    if due_ms is None:
        return []
    return _change(tr, keyspace, config, stored_items, lambda there: state_machine.delayed_until(there, config, due_ms))


def retry(
    tr: Transaction, keyspace: Keyspace, config: Config, stored_items: Sequence[StoredItem], *, now_ms: int
) -> list[Change]:
    """Put dead items back at their places, with all their attempts before them."""
    _only(stored_items, "dead", Words("only dead items are retried."))
    return _change(
        tr, keyspace, config, stored_items, lambda there: state_machine.retried(there, config, now_ms), "retry"
    )


def release(
    tr: Transaction,
    keyspace: Keyspace,
    config: Config,
    stored_items: Sequence[StoredItem],
    *,
    now_ms: int,
    reason: str,
) -> list[Change]:
    """Take items back from workers: to their places, or to the dead after the last attempt."""
    _only(stored_items, "leased", Words("only leased items are released."))

    def become(there: StoredItem) -> StoredItem:
        tried = state_machine.with_attempt_logged(there, config, now_ms=now_ms, error=reason)
        return state_machine.given_back(tried, config, now_ms=now_ms, reason=reason)

    return _change(tr, keyspace, config, stored_items, become, "release")


def acknowledge(tr: Transaction, keyspace: Keyspace, config: Config, there: StoredItem) -> None:
    """Take a leased item out of its queue as done."""
    _only([there], "leased", Words("only leased items are acknowledged."))
    tr.use_reserve()
    state_machine.apply(tr, keyspace, config, [Change(there, None)], "ack")


def in_state(stored_items: Sequence[StoredItem], state: str) -> list[StoredItem]:
    """Return the items that are in a state."""
    return [there for there in stored_items if there.state == state]


def _change(
    tr: Transaction,
    keyspace: Keyspace,
    config: Config,
    stored_items: Sequence[StoredItem],
    become: Callable[[StoredItem], StoredItem],
    verb: str | None = None,
) -> list[Change]:
    tr.use_reserve()  # values move, they do not come in
    changes = [Change(there, become(there)) for there in stored_items]
    return state_machine.apply(tr, keyspace, config, changes, verb)


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
