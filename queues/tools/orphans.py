"""Orphans: names without queues, queues without names, and keys of queues that nobody knows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from queues.catalog import directory
from queues.errors import display_name
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import QueueKeys
from queues.keys.suffix import ready_elements
from queues.kv.port import KeyValueStore, ReadTransaction, Transaction
from queues.model import records
from queues.model.bands import default_edges
from queues.model.config import Config, decode
from queues.model.priority import PriorityType
from queues.model.records import UNREADABLE
from queues.tools.content import Walk


def mend_orphan(kv: KeyValueStore, keyspace: Keyspace, orphan: Orphan, *, now_ms: int) -> str | None:
    """Mend an orphan and tell how; None when it cannot be, or needs it no more."""
    if isinstance(orphan, StrayName):
        return kv.transact(lambda tr: _mend_name(tr, keyspace, orphan, now_ms), background=True)
    if isinstance(orphan, Nameless):
        return kv.transact(lambda tr: _mend_nameless(tr, keyspace, orphan), background=True)
    if orphan.items:
        name = f"recovered-{orphan.queue_id:x}"
        return kv.transact(lambda tr: _adopt(tr, keyspace, orphan.queue_id, name, now_ms), background=True)
    cleared = clear_rest(kv, keyspace, orphan.queue_id)
    return f"Cleared what was left of queue number {orphan.queue_id}: counters and no item." if cleared else None


def clear_rest(kv: KeyValueStore, keyspace: Keyspace, queue_id: int) -> int:
    """Clear the keys of a queue that is gone and holds nothing; return how many they were."""
    keys = keyspace.queue(queue_id)
    begin, end = keys.everything

    def clear(tr: Transaction) -> int:
        tr.use_reserve()
        if tr.get(keyspace.config(queue_id)).wait() is not None:
            return 0
        found = [key for key, _ in tr.get_range(begin, end, limit=STEP).wait()]
        if any(kind_of(keys, key) in ITEMS for key in found):
            return 0
        for key in found:
            tr.clear(key)
        return len(found)

    cleared = 0
    if kinds_of(kv, keys) & ITEMS:
        return 0
    while n := kv.transact(clear, background=True):
        cleared += n
    return cleared


def _mend_name(tr: Transaction, keyspace: Keyspace, orphan: StrayName, now_ms: int) -> str | None:
    tr.use_reserve()
    key, shown = keyspace.name(orphan.name), display_name(orphan.name)
    there = tr.get(key).wait()
    if there is None or int.from_bytes(there, "big") != orphan.queue_id:
        return None
    record = tr.get(keyspace.config(orphan.queue_id)).wait()
    config = decode(record)
    if record is not None and (config is None or config.name == orphan.name):
        return None
    tr.clear(key)
    tr.add(keyspace.directory_change, 1)
    if record is None:
        adopted = _adopt(tr, keyspace, orphan.queue_id, orphan.name, now_ms)
        if adopted is not None:
            return adopted
    return f"Cleared the name “{shown}”, which led to no queue of that name."


def _mend_nameless(tr: Transaction, keyspace: Keyspace, orphan: Nameless) -> str | None:
    tr.use_reserve()
    config = decode(tr.get(keyspace.config(orphan.config.id)).wait())
    if config is None:
        return None
    there = tr.get(keyspace.name(config.name)).wait()
    if there == config.id.to_bytes(8, "big"):
        return None
    if there is not None:
        config = replace(config, name=f"{config.name[:60]}-{config.id:x}")
        if tr.get(keyspace.name(config.name)).wait() is not None:
            return None
    directory.add(tr, keyspace, config)
    return f"“{display_name(config.name)}” (queue number {config.id}) is found by its name again."


def _adopt(tr: Transaction, keyspace: Keyspace, queue_id: int, name: str, now_ms: int) -> str | None:
    """Give a queue without a config one again; None when it holds nothing, or it cannot be told what it is."""
    tr.use_reserve()
    if tr.get(keyspace.config(queue_id)).wait() is not None or tr.get(keyspace.name(name)).wait() is not None:
        return None
    keys = keyspace.queue(queue_id)
    generations = _generations(tr, keys)
    guess = _guess(tr, keys, generations)
    if guess is None:
        return None
    kind, priority_type = guess
    config = Config(
        id=queue_id,
        name=name,
        kind="fifo" if kind == "fifo" else "priority",
        priority_type=priority_type,
        generations=tuple(generations) or (1,),
        base=0,
        edges=() if kind == "fifo" else default_edges(priority_type),
        pause=None,
        closed=False,
        created_ms=now_ms,
    )
    directory.add(tr, keyspace, config)
    return f"Queue number {queue_id} had lost its record: it is “{display_name(name)}” now, with all its items."


def _generations(tr: Transaction, keys: QueueKeys) -> list[int]:
    found: list[int] = []
    begin, end = keys.everything
    while (key := tr.get_key(begin, end).wait()) is not None:
        first = keys.elements(key)[0]
        if isinstance(first, int):
            found.append(first)
        begin = keys.behind(first)
    return sorted(found)


def _guess(tr: Transaction, keys: QueueKeys, generations: list[int]) -> tuple[str, PriorityType] | None:
    """Guess the kind of a queue and the type of its priorities from the ends of its ready items."""
    guesses = set()
    for generation in generations:
        ready = keys.generation(generation)
        for reverse in (False, True):
            key = tr.get_key(*ready.ready_range, reverse=reverse).wait()
            if key is not None:
                guesses.add(_guess_item(ready.suffix_of(key)))
    if len(guesses) != 1:
        return None
    return guesses.pop()


def _guess_item(suffix: bytes) -> tuple[str, PriorityType] | None:
    types: dict[type, PriorityType] = {int: "int", float: "float", str: "str"}
    try:
        priority = ready_elements(suffix, fifo=False)[0]
        return ("priority", types[type(priority)])
    except (ValueError, KeyError):
        pass
    try:
        ready_elements(suffix, fifo=True)
        return ("fifo", "int")
    except ValueError:
        return None


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
        return f"“{display_name(self.config.name)}” (queue number {self.config.id}) cannot be found by its name."


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

    None for the latter: a record in the trash cannot be read, so that what looks lost may be in the trash.
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
    """Say whether a name's queue is gone or has another name; one that cannot be read may have this one."""
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

    None when there is a trash record that cannot be read: nobody can tell then whose keys are still needed.
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
    """Return which kinds of keys a queue has: the letters of the table in `queues.keys.keyspace`."""
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
    """Return which kind a key is: its letter in the table in `queues.keys.keyspace`."""
    elements = keys.elements(key)
    if not isinstance(elements[0], int):
        return str(elements[0])
    return str(elements[1]) if len(elements) > 2 else "mark"
