"""Records of targets in the store: one for each pattern, and one for the defaults.

Every change of them counts as a change of the directory, which all screens and the recorder watch.
"""

from typing import Any

from queues.errors import BadGlob
from queues.health.targets import TargetRules
from queues.keys.keyspace import Keyspace
from queues.kv.port import ReadTransaction, Transaction
from queues.model import records
from queues.model.limits import LIMIT_NAMES, UNSET, Limits, check_limits
from queues.model.records import UNREADABLE

#: Patterns in one store.
MAX_PATTERNS = 200
_KNOWN = frozenset(LIMIT_NAMES)


def read_rules(tr: ReadTransaction, keyspace: Keyspace) -> TargetRules:
    """Read all patterns and the defaults; what cannot be read is left out, and told."""
    listed = tr.get_range(*keyspace.target_patterns.all, limit=MAX_PATTERNS + 1)
    stored = tr.get(keyspace.target_defaults).wait()
    found = {"": stored} if stored is not None else {}
    found |= {keyspace.target_patterns.elements(key)[0]: record for key, record in listed.wait()}
    limits: dict[str, Limits] = {}
    unreadable = []
    for glob, record in found.items():
        try:
            limits[glob] = _limits(record)
        except UNREADABLE as error:
            unreadable.append((glob, records.why(error)))
    defaults = limits.pop("", UNSET)
    return TargetRules(limits, defaults, unreadable=unreadable)


def write_pattern(tr: Transaction, keyspace: Keyspace, glob: str, limits: Limits) -> None:
    """Set the limits of a pattern; raise `BadGlob` beyond the most patterns."""
    key = keyspace.target_patterns.key(glob)
    before = tr.get(key).wait()
    if before is None:
        there = tr.get_range(*keyspace.target_patterns.all, limit=MAX_PATTERNS).wait()
        if len(there) >= MAX_PATTERNS:
            raise BadGlob("A store has targets for at most {most} patterns.", most=MAX_PATTERNS)
    _write(tr, keyspace, key, before, limits)


def clear_pattern(tr: Transaction, keyspace: Keyspace, glob: str) -> bool:
    """Remove a pattern, also one that cannot be read; return whether it was there."""
    key = keyspace.target_patterns.key(glob)
    if tr.get(key).wait() is None:
        return False
    tr.use_reserve()
    tr.clear(key)
    tr.add(keyspace.directory_change, 1)
    return True


def write_defaults(tr: Transaction, keyspace: Keyspace, limits: Limits) -> Limits | None:
    """Set the defaults of the store; return those before if they differed, else None."""
    before = tr.get(keyspace.target_defaults).wait()
    was = UNSET if before is None else _readable(before)
    if was is not None and TargetRules(defaults=was).resolve("") == TargetRules(defaults=limits).resolve(""):
        return None
    _write(tr, keyspace, keyspace.target_defaults, before, limits)
    return was or UNSET


def _write(tr: Transaction, keyspace: Keyspace, key: bytes, before: bytes | None, limits: Limits) -> None:
    tr.use_reserve()
    tr.set(key, records.encode(_unknown(before) | limits.given))
    tr.add(keyspace.directory_change, 1)


def _limits(record: bytes) -> Limits:
    header = records.decode(record)[0]
    return check_limits({name: header[name] for name in LIMIT_NAMES if name in header})


def _readable(record: bytes | None) -> Limits | None:
    if record is None:
        return None
    try:
        return _limits(record)
    except UNREADABLE:
        return None


def _unknown(record: bytes | None) -> dict[str, Any]:
    """Return the fields that a later release wrote, which are written again as they were read."""
    if record is None:
        return {}
    try:
        return records.unknown(records.decode(record)[0], _KNOWN)
    except UNREADABLE:
        return {}
