"""Orphans: names without queues, queues without names, and keys of queues that nobody knows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from queues import records
from queues.config import Config
from queues.content import Walk
from queues.errors import NewerFormat
from queues.keyspace import Keyspace
from queues.kv.port import KeyValueStore, ReadTransaction
from queues.names import display_name
from queues.queue_keys import QueueKeys
from queues.unreadable import UNREADABLE

#: Names or configs of one transaction; keys cleared in one.
STEP = 500
#: What a queue that was detached or lost leaves behind and nobody needs: totals outside of generations.
_TOTALS = frozenset("Tfhvw")
#: Items of all states.
ITEMS = frozenset("idlz")


@dataclass(frozen=True, slots=True, kw_only=True)
class StrayName:
    """A name that stands for no queue, or for one that has another name."""

    name: str
    queue_id: int

    @property
    def says(self) -> str:
        """What is wrong, in words."""
        return f"The name “{display_name(self.name)}” leads to no queue of that name."


@dataclass(frozen=True, slots=True, kw_only=True)
class Nameless:
    """A queue whose name stands for nothing, or for another queue."""

    config: Config

    @property
    def says(self) -> str:
        """What is wrong, in words."""
        return f"“{display_name(self.config.name)}” (queue number {self.config.id}) can not be found by its name."


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Keys of a queue that has neither a config nor a trash record."""

    queue_id: int
    #: Whether there are items among them, or only what counted them.
    items: bool

    @property
    def says(self) -> str:
        """What is wrong, in words."""
        what = "Items and counters" if self.items else "Counters"
        return f"{what} are left of queue number {self.queue_id}, which has lost its record and is not in the trash."


Orphan = StrayName | Nameless | Unknown


def find_orphans(kv: KeyValueStore, keyspace: Keyspace) -> tuple[list[Orphan], list[int] | None]:
    """Return the orphans, and the queues of which only totals are left, as detaching leaves them.

    None for the latter: a record in the trash can not be read, so that what looks lost may be in the trash.
    """
    orphans: list[Orphan] = [*_stray_names(kv, keyspace), *_nameless(kv, keyspace)]
    leftovers: list[int] = []
    owned = _owned(kv, keyspace)
    if owned is None:
        return orphans, None
    lost = [queue_id for queue_id in _with_keys(kv, keyspace) if queue_id not in owned]
    if lost:
        owned = _owned(kv, keyspace)  # one may have been created or deleted since
        if owned is None:
            return orphans, None
    for queue_id in lost:
        if queue_id in owned:
            continue
        kinds = kinds_of(kv, keyspace.queue(queue_id))
        if kinds <= _TOTALS:
            leftovers.append(queue_id)
        else:
            orphans.append(Unknown(queue_id=queue_id, items=bool(kinds & ITEMS)))
    return orphans, leftovers


def _stray_names(kv: KeyValueStore, keyspace: Keyspace) -> Iterator[StrayName]:
    begin, end = keyspace.names()
    while True:

        def look(tr: ReadTransaction, begin: bytes = begin) -> tuple[int, bytes, list[StrayName]]:
            pairs = tr.get_range(begin, end, limit=STEP).wait()
            reads = [(key, value, tr.get(keyspace.config(int.from_bytes(value, "big")))) for key, value in pairs]
            stray = [
                StrayName(name=keyspace.name_of(key), queue_id=int.from_bytes(value, "big"))
                for key, value, read in reads
                if _leads_astray(read.wait(), keyspace.name_of(key))
            ]
            return len(pairs), pairs[-1][0] if pairs else b"", stray

        number, last, stray = kv.read(look, background=True)
        yield from stray
        if number < STEP:
            return
        begin = last + b"\0"


def _leads_astray(record: bytes | None, name: str) -> bool:
    """Say whether a name's queue is gone or has another name; one that can not be read may have this one."""
    config = decode(record)
    return record is None if config is None else config.name != name


def _nameless(kv: KeyValueStore, keyspace: Keyspace) -> Iterator[Nameless]:
    begin, end = keyspace.all_configs
    while True:

        def look(tr: ReadTransaction, begin: bytes = begin) -> tuple[int, bytes, list[Nameless]]:
            pairs = tr.get_range(begin, end, limit=STEP).wait()
            configs = [config for _, record in pairs if (config := decode(record)) is not None]
            reads = [(config, tr.get(keyspace.name(config.name))) for config in configs]
            lost = [Nameless(config=config) for config, read in reads if read.wait() != config.id.to_bytes(8, "big")]
            return len(pairs), pairs[-1][0] if pairs else b"", lost

        number, last, lost = kv.read(look, background=True)
        yield from lost
        if number < STEP:
            return
        begin = last + b"\0"


def _owned(kv: KeyValueStore, keyspace: Keyspace) -> set[int] | None:
    """Return the ids of queues that have a config, or a trash record from which they can be restored.

    None when there is a trash record that can not be read: nobody can tell then whose keys are still needed.
    """
    owned = set()
    for ranges in ((keyspace.all_configs,), (keyspace.all_trash(),)):
        walk = Walk(kv, keyspace, ranges)
        at: bytes | None = b""
        while at is not None:
            chunk = walk.chunk(at)
            for key, record in chunk.pairs:
                if ranges == (keyspace.all_configs,):
                    owned.add(keyspace.id_of_config(keyspace.root + key))
                else:
                    try:
                        header = records.decode(record)[0]
                        if header["what"] == "queue" and not header["restored"]:
                            owned.add(header["queue_id"])
                    except UNREADABLE:
                        return None
            at = chunk.end
    return owned


def _with_keys(kv: KeyValueStore, keyspace: Keyspace) -> Iterator[int]:
    """Yield the id of every queue of which there is a key."""
    queue_id: int | None = None
    while True:
        begin, end = keyspace.queues_behind(queue_id)
        key = kv.read(lambda tr, begin=begin, end=end: tr.get_key(begin, end).wait(), background=True)  # type: ignore[misc]
        if key is None:
            return
        queue_id = keyspace.id_of_queue(key)
        yield queue_id


def kinds_of(kv: KeyValueStore, keys: QueueKeys) -> set[str]:
    """Return which kinds of keys a queue has: the letters of the table in `queues.keyspace`."""
    begin, end = keys.everything
    kinds: set[str] = set()
    while True:
        key = kv.read(lambda tr, begin=begin: tr.get_key(begin, end).wait(), background=True)  # type: ignore[misc]
        if key is None:
            return kinds
        kind = kind_of(keys, key)
        kinds.add(kind)
        elements = keys.elements(key)
        behind = keys.behind(*elements[: 2 if isinstance(elements[0], int) else 1])
        begin = key + b"\0" if kind == "mark" else behind  # delayed items lie behind the mark


def kind_of(keys: QueueKeys, key: bytes) -> str:
    """Return which kind a key is: its letter in the table in `queues.keyspace`."""
    elements = keys.elements(key)
    if not isinstance(elements[0], int):
        return str(elements[0])
    return str(elements[1]) if len(elements) > 2 else "mark"


def decode(record: bytes | None) -> Config | None:
    """Return a config; None when there is none, or it can not be read."""
    if record is None:
        return None
    try:
        return Config.decode(record)
    except (NewerFormat, ValueError, KeyError, TypeError):
        return None
