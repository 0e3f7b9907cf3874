"""The directory: which names stand for which queues.

Every change of it adds 1 to the directory change key and to the change keys of the queues concerned, so that
whoever shows a queue learns that it came, went or has another name.
"""

from __future__ import annotations

import difflib
from dataclasses import replace

from queues.config import Config
from queues.errors import QueueExists, QueueNotFound
from queues.keyspace import Keyspace
from queues.kv.port import ReadTransaction, Transaction
from queues.names import MAX_BYTES, MAX_CHARACTERS, canonical, check_name, display_name
from queues.tally import wake

#: Names looked through for near misses; an error message is not worth more.
_NEAR = 2_000
#: A directory larger than this is read in steps.
_STEP = 10_000


def find(tr: ReadTransaction, keyspace: Keyspace, name: str) -> Config:
    """Return the config of the queue of this name; raise `QueueNotFound`."""
    record = tr.get(keyspace.config(find_id(tr, keyspace, name))).wait()
    if record is None:
        raise QueueNotFound(name)
    return Config.of(canonical(name), record)


def find_id(tr: ReadTransaction, keyspace: Keyspace, name: str) -> int:
    """Return the id of the queue of this name; raise `QueueNotFound`."""
    found = tr.get(keyspace.name(canonical(name))).wait() if _storable(name) else None
    if found is None:
        raise QueueNotFound(name)
    return int.from_bytes(found, "big")


def names(
    tr: ReadTransaction,
    keyspace: Keyspace,
    *,
    prefix: str = "",
    after: str | None = None,
    limit: int | None = None,
) -> dict[str, int]:
    """Return queue ids by name, in the order of names."""
    found: dict[str, int] = {}
    while limit is None or len(found) < limit:
        step = _STEP if limit is None else min(_STEP, limit - len(found))
        pairs = tr.get_range(*keyspace.names(canonical(prefix), after), limit=step).wait()
        for key, value in pairs:
            found[keyspace.name_of(key)] = int.from_bytes(value, "big")
        if len(pairs) < step:
            break
        after = keyspace.name_of(pairs[-1][0])
    return found


def add(tr: Transaction, keyspace: Keyspace, config: Config) -> None:
    """Write a queue's name and config; raise `QueueExists` when the name is taken."""
    key = keyspace.name(config.name)
    if tr.get(key).wait() is not None:
        raise QueueExists("A queue named “{queue}” exists already.", queue=display_name(config.name))
    tr.set(key, config.id.to_bytes(8, "big"))
    tr.set(keyspace.config(config.id), config.encode())
    _tell(tr, keyspace, config)


def remove(tr: Transaction, keyspace: Keyspace, config: Config) -> None:
    """Remove a queue's name and config; its items stay where they are."""
    tr.use_reserve()
    tr.clear(keyspace.name(config.name))
    tr.clear(keyspace.config(config.id))
    _tell(tr, keyspace, config)


def rename(tr: Transaction, keyspace: Keyspace, config: Config, new: str) -> Config:
    """Give a queue another name; raise `QueueExists` when that is taken."""
    new = check_name(new)
    if new == config.name:
        return config
    remove(tr, keyspace, config)
    config = replace(config, name=new)
    add(tr, keyspace, config)
    return config


def _tell(tr: Transaction, keyspace: Keyspace, config: Config) -> None:
    tr.add(keyspace.directory_change, 1)
    wake(tr, keyspace.queue(config.id))


def _storable(name: str) -> bool:
    """Say whether a name is short and valid enough to be looked up at all."""
    try:
        return bool(name) and len(canonical(name).encode()) <= MAX_BYTES
    except UnicodeEncodeError:
        return False


def look_alikes(tr: ReadTransaction, keyspace: Keyspace, name: str) -> tuple[str, ...]:
    """Return names much like this one. Takes long (up to 50 ms): never inside a writing transaction."""
    known = names(tr, keyspace, limit=_NEAR)
    return tuple(difflib.get_close_matches(canonical(name)[:MAX_CHARACTERS], known, n=3))
