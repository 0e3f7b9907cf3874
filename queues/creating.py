"""New queues inside one transaction: what their configs are, and how they come into the directory and leave it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from queues import directory
from queues.attached import prefix as prefixes
from queues.bands import check_edges, default_edges
from queues.config import Config, check_kind
from queues.errors import NotAttached, QueueExists
from queues.keyspace import Keyspace
from queues.kv.port import Transaction
from queues.names import check_name, display_name
from queues.priority import Priority, check_type

#: Ids keep to 48 bits so that keys stay short. Nobody looks whether one is taken: in a store of 10,000 queues two share
#: one once in some three million such stores.
_ID_BITS = 48


def own_config(
    name: str, *, kind: str, priority_type: str, bands: Sequence[Priority] | None, created_ms: int
) -> Config:
    """Return the config of a new queue of our own; raise what is wrong with what is asked for."""
    name, kind, priority_type = check_name(name), check_kind(kind), check_type(priority_type)
    if kind == "fifo":
        edges: tuple[Priority, ...] = ()
    else:
        edges = default_edges(priority_type) if bands is None else check_edges(bands, priority_type)
    return Config(
        id=_new_id(),
        name=name,
        kind=kind,
        priority_type=priority_type,
        generations=(1,),
        base=0,
        edges=edges,
        pause=None,
        closed=False,
        created_ms=created_ms,
    )


def attached_config(
    name: str,
    *,
    prefix: bytes | tuple[Any, ...],
    root: bytes,
    kind: str,
    priority_type: str,
    created_ms: int,
) -> Config:
    """Return the config of a queue of what others keep under a prefix; raise what is wrong with what is asked for."""
    return Config(
        id=_new_id(),
        name=check_name(name),
        kind=check_kind(kind),
        priority_type=check_type(priority_type),
        generations=(),
        base=0,
        edges=(),
        pause=None,
        closed=False,
        created_ms=created_ms,
        prefix=prefixes.check_prefix(prefix, root),
    )


def create(tr: Transaction, keyspace: Keyspace, config: Config) -> Config:
    """Enter a new queue of our own; raise `QueueExists`."""
    directory.add(tr, keyspace, config)
    return config


def create_or_find(tr: Transaction, keyspace: Keyspace, config: Config, *, any_bands: bool) -> Config:
    """Enter a new queue of our own, or return the one that is there; raise `QueueExists` when that is of another kind.

    `any_bands` lets that one have other bands.
    """
    try:
        return create(tr, keyspace, config)
    except QueueExists:
        there = directory.find(tr, keyspace, config.name)
        same = (
            there.kind == config.kind
            and not there.attached
            and (config.kind == "fifo" or there.priority_type == config.priority_type)
        )
        if not same or (there.edges != config.edges and not any_bands):
            raise QueueExists(
                "A queue named “{queue}” exists already, of another kind: {kind}, {type}.",
                queue=display_name(config.name),
                kind=there.kind,
                type=there.priority_type,
            ) from None
        return there


def attach(tr: Transaction, keyspace: Keyspace, config: Config) -> Config:
    """Enter a queue of what others keep; raise `QueueExists`, `PrefixTaken`."""
    directory.add(tr, keyspace, config)
    prefixes.claim(tr, keyspace, config)
    return config


def detach(tr: Transaction, keyspace: Keyspace, name: str) -> None:
    """Take an attached queue out of the directory; raise `QueueNotFound`, `NotAttached`."""
    config = directory.find(tr, keyspace, name)
    if not config.attached:
        raise NotAttached("“{queue}” is this store's own queue, nothing attached: delete it.", queue=display_name(name))
    directory.remove(tr, keyspace, config)
    prefixes.release(tr, keyspace, config)


def _new_id() -> int:
    return secrets.randbits(_ID_BITS) | 1 << (_ID_BITS - 1)
