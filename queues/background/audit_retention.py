"""Retention of the audit: actions older than so many days are removed, in small transactions.

Index entries go first and records last, so a sweep that is killed begins anew and finds the rest. The limit is the
beginning of a UTC day: a sweep that has run finds nothing more to do on that day.
"""

from collections.abc import Iterator
from functools import partial

from queues.errors import BadSetting
from queues.keys.keyspace import Keyspace, first_id
from queues.keys.queue_keys import last_element
from queues.kv.port import KeyValueStore, Transaction
from queues.model.tuples import Range

_DAY_MS = 86_400_000
#: Days: a hundred years, which no clock of a store reaches.
MOST_DAYS = 36_500
#: Keys of one transaction.
STEP = 500


def check_days(days: int) -> int:
    """Return for how many days actions are kept, 0 for ever; raise `BadSetting`."""
    if isinstance(days, bool) or not isinstance(days, int) or not 0 <= days <= MOST_DAYS:
        raise BadSetting(
            "The audit is kept for 0 (for ever) to {most:,} days, not {days}.",
            "audit_days",
            most=MOST_DAYS,
            days=f"{days!r:.40}",
        )
    return days


def sweep_audit(kv: KeyValueStore, keyspace: Keyspace, *, now_ms: int, days: int) -> Iterator[int]:
    """Remove actions that are older than `days`, one transaction a step. Yield how many records each step cleared.

    With `days=0` nothing is ever removed.
    """
    if not days:
        return
    limit = first_id(now_ms - now_ms % _DAY_MS - days * _DAY_MS)
    begin, end = keyspace.audits(before=limit)
    if kv.read(lambda tr: tr.get_key(begin, end).wait(), background=True) is None:
        return
    for index in (keyspace.audit_queues, keyspace.audit_actors, keyspace.audit_items):
        at: bytes | None = index.all[0]
        while at is not None:
            within = at, index.all[1]
            at = kv.transact(partial(_clear_listed, keyspace=keyspace, within=within, limit=limit), background=True)
            yield 0
    while True:
        cleared = kv.transact(lambda tr: _clear_records(tr, (begin, end)), background=True)
        yield cleared
        if cleared < STEP:
            return


def _clear_listed(tr: Transaction, keyspace: Keyspace, within: Range, limit: bytes) -> bytes | None:
    """Clear old entries among the next ones of an index. Return where to go on, None at its end."""
    begin, end = within
    keys = [key for key, _ in tr.snapshot.get_range(begin, end, limit=STEP).wait()]
    old = [key for key in keys if last_element(key) < limit]
    if old:
        tr.use_reserve()
    for key in old:
        tr.clear(key)
    if len(keys) < STEP:
        return None
    last = keys[-1]
    # Entries of one list are in order of time: behind a young one there are no old ones.
    return last + b"\0" if old and old[-1] == last else keyspace.behind_audit_list(last)


def _clear_records(tr: Transaction, within: Range) -> int:
    keys = [key for key, _ in tr.snapshot.get_range(*within, limit=STEP).wait()]
    if keys:
        tr.use_reserve()
    for key in keys:
        tr.clear(key)
    return len(keys)
