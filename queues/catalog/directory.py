"""The directory: names of queues, and their configs.

Every change of it adds 1 to the directory change key and to the change keys of its queues, so that viewers see that a
queue came, went or has another name.
"""

import difflib
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from queues.catalog import attached_prefixes as prefixes
from queues.errors import NotAttached, QueueExists, QueueNotFound, display_name
from queues.items.counters import wake
from queues.keys.keyspace import Keyspace
from queues.kv.port import ReadTransaction, Transaction
from queues.model.bands import check_edges, default_edges
from queues.model.codec import check_codec
from queues.model.config import Config, check_kind
from queues.model.names import MAX_BYTES, MAX_CHARACTERS, canonical, check_name
from queues.model.priority import Priority, check_type

#: Ids have 48 bits so that keys stay short. Whether one is taken is not checked: in one of some three million stores of
#: 10,000 queues two queues share one.
_ID_BITS = 48


def own_config(
    name: str, *, kind: str, priority_type: str, bands: Sequence[Priority] | None, codec: str, created_ms: int
) -> Config:
    """Return the config of a new queue; raise `BadName`, `BadQueueKind`, `BadPriority`."""
    name, kind, priority_type = check_name(name), check_kind(kind), check_type(priority_type)
    if kind == "fifo":
        edges: tuple[Priority, ...] = ()
    else:
        edges = default_edges(priority_type) if bands is None else check_edges(bands, priority_type)
    return Config(
        id=secrets.randbits(_ID_BITS) | 1 << (_ID_BITS - 1),
        name=name,
        kind=kind,
        priority_type=priority_type,
        generations=(1,),
        base=0,
        edges=edges,
        pause=None,
        closed=False,
        created_ms=created_ms,
        codec=check_codec(codec),
    )


def attached_config(
    name: str,
    *,
    prefix: bytes | tuple[Any, ...],
    root: bytes,
    kind: str,
    priority_type: str,
    codec: str,
    created_ms: int,
) -> Config:
    """Return the config of an attached queue; raise `BadName`, `BadQueueKind`, `BadPrefix`."""
    config = own_config(name, kind=kind, priority_type=priority_type, bands=None, codec=codec, created_ms=created_ms)
    return replace(config, generations=(), edges=(), prefix=prefixes.check_prefix(prefix, root))


def create(tr: Transaction, keyspace: Keyspace, config: Config, *, exist_ok: bool, any_bands: bool) -> Config:
    """Enter a new queue; raise `QueueExists`.

    With `exist_ok` an existing one of the same kind is returned; `any_bands` lets that one have other bands.
    """
    try:
        add(tr, keyspace, config)
        return config
    except QueueExists:
        if not exist_ok:
            raise
        there = find(tr, keyspace, config.name)
        check_same(there, config, any_bands=any_bands)
        return there


def check_same(there: Config, config: Config, *, any_bands: bool) -> None:
    """Raise `QueueExists` unless the existing queue is of the same kind as the new one."""
    same = (
        (there.kind, there.codec) == (config.kind, config.codec)
        and not there.attached
        and (config.kind == "fifo" or there.priority_type == config.priority_type)
    )
    if not same or (there.edges != config.edges and not any_bands):
        raise QueueExists(
            "A queue named “{queue}” exists already, of another kind: {kind}, {type}, codec {codec}.",
            queue=display_name(config.name),
            kind=there.kind,
            type=there.priority_type,
            codec=there.codec,
        ) from None


def attach(tr: Transaction, keyspace: Keyspace, config: Config) -> Config:
    """Enter an attached queue; raise `QueueExists`, `PrefixTaken`."""
    add(tr, keyspace, config)
    prefixes.claim(tr, keyspace, config)
    return config


def detach(tr: Transaction, keyspace: Keyspace, name: str) -> None:
    """Take an attached queue out of the directory; raise `QueueNotFound`, `NotAttached`."""
    config = find(tr, keyspace, name)
    if not config.attached:
        raise NotAttached("“{queue}” is this store's own queue, nothing attached: delete it.", queue=display_name(name))
    remove(tr, keyspace, config)
    prefixes.release(tr, keyspace, config)


#: Names looked through for near misses; an error message is not worth more.
_NEAR = 2_000
#: A directory larger than this is read in steps.
_STEP = 10_000


def find(tr: ReadTransaction, keyspace: Keyspace, name: str) -> Config:
    """Return the config of the queue of this name; raise `QueueNotFound`."""
    return Config.of(canonical(name), find_record(tr, keyspace, name))


def find_record(tr: ReadTransaction, keyspace: Keyspace, name: str) -> bytes | None:
    """Return the config of the queue of this name as it is stored; raise `QueueNotFound`."""
    return tr.get(keyspace.configs.key(find_id(tr, keyspace, name))).wait()


def find_id(tr: ReadTransaction, keyspace: Keyspace, name: str) -> int:
    """Return the id of the queue of this name; raise `QueueNotFound`."""
    found = tr.get(keyspace.names.key(canonical(name))).wait() if _storable(name) else None
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
        pairs = tr.get_range(*keyspace.names_from(canonical(prefix), after), limit=step).wait()
        for key, value in pairs:
            found[keyspace.names.elements(key)[0]] = int.from_bytes(value, "big")
        if len(pairs) < step:
            break
        after = keyspace.names.elements(pairs[-1][0])[0]
    return found


def add(tr: Transaction, keyspace: Keyspace, config: Config) -> None:
    """Write a queue's name and config; raise `QueueExists` when the name is taken."""
    key = keyspace.names.key(config.name)
    if tr.get(key).wait() is not None:
        raise QueueExists("A queue named “{queue}” exists already.", queue=display_name(config.name))
    tr.set(key, config.id.to_bytes(8, "big"))
    tr.set(keyspace.configs.key(config.id), config.encode())
    _tell(tr, keyspace, config)


def remove(tr: Transaction, keyspace: Keyspace, config: Config) -> None:
    """Remove a queue's name and config; its items stay where they are."""
    tr.use_reserve()
    tr.clear(keyspace.names.key(config.name))
    tr.clear(keyspace.configs.key(config.id))
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
        return 0 < len(canonical(name).encode()) <= MAX_BYTES
    except UnicodeEncodeError:
        return False


def look_alikes(tr: ReadTransaction, keyspace: Keyspace, name: str) -> tuple[str, ...]:
    """Return other names much like this one. Takes long (up to 50 ms): never inside a writing transaction."""
    known = [other for other in names(tr, keyspace, limit=_NEAR) if other != canonical(name)]
    return tuple(difflib.get_close_matches(canonical(name)[:MAX_CHARACTERS], known, n=3))
