"""Orphans: names without queues, queues without names, and keys of unknown queues."""

from collections.abc import Callable, Iterator, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from queues.catalog import attached_prefixes as prefixes
from queues.catalog import directory
from queues.errors import display_name
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import OUTSIDE, QueueKeys, ready_elements
from queues.kv.port import KeyValue, KeyValueStore, ReadTransaction, Transaction
from queues.model import records
from queues.model.bands import default_edges
from queues.model.config import Config, decode
from queues.model.priority import PriorityType
from queues.model.range_in_steps import first_keys, in_background, pairs, steps
from queues.model.records import UNREADABLE

#: Keys cleared in one transaction.
_STEP = 500
#: Totals outside of generations, which a detached or lost queue leaves behind.
_TOTALS = frozenset("Tfhpvw")
#: Items of all states.
_ITEMS = frozenset("idlz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A name without its queue, a queue without its name, or keys of an unknown queue."""

    kind: Literal["name", "orphan"]
    #: The finding, in words.
    says: str
    #: Repairs it, and returns what was done; None when nothing was.
    repair: Callable[[int], str | None]


def find_orphans(kv: KeyValueStore, keyspace: Keyspace) -> tuple[list[Orphan], list[int] | None]:
    """Return the orphans, and the ids of queues of which only totals are left.

    None for the latter: a record in the trash cannot be read, so that a lost queue may be in the trash.
    """
    orphans = [*_stray_names(kv, keyspace), *_nameless(kv, keyspace)]
    queues = keyspace.queues
    keys = first_keys(in_background(kv), queues.all, lambda key: queues.below(queues.elements(key)[0])[1])
    found = [queues.elements(key)[0] for key in keys]
    owned = _owned(kv, keyspace)  # later than the keys: a queue may have been created or deleted meanwhile
    if owned is None:
        return orphans, None
    leftovers: list[int] = []
    for queue_id in found:
        kinds = set() if queue_id in owned else _kinds(kv, keyspace.queue(queue_id))
        if kinds and kinds <= _TOTALS:
            leftovers.append(queue_id)
        elif kinds:  # none: it is known, or a sweep has cleared it since
            orphans.append(_unknown(kv, keyspace, queue_id, items=bool(kinds & _ITEMS)))
    return orphans, leftovers


def _unknown(kv: KeyValueStore, keyspace: Keyspace, queue_id: int, *, items: bool) -> Orphan:
    """Return the orphan of a queue that has neither a config nor a trash record, but items or counters."""

    def repair(now_ms: int) -> str | None:
        if items:
            name, purged = f"recovered-{queue_id:x}", _purged(kv, keyspace, queue_id)
            return kv.transact(lambda tr: _recover(tr, keyspace, queue_id, name, purged, now_ms), background=True)
        cleared = clear_rest(kv, keyspace, queue_id)
        return f"Cleared what was left of queue number {queue_id}: counters and no item." if cleared else None

    what = "Items and counters" if items else "Counters"
    says = f"{what} are left of queue number {queue_id}, which has lost its record and is not in the trash."
    return Orphan(kind="orphan", says=says, repair=repair)


def _stray_names(kv: KeyValueStore, keyspace: Keyspace) -> Iterator[Orphan]:
    """Yield names of no queue, or of one that has another name."""

    def read(tr: ReadTransaction, found: list[KeyValue]) -> list[tuple[str, int]]:
        names = [(keyspace.names.elements(key)[0], int.from_bytes(value, "big")) for key, value in found]
        reads = [(name, queue_id, tr.get(keyspace.configs.key(queue_id))) for name, queue_id in names]
        return [(name, queue_id) for name, queue_id, record in reads if _leads_astray(record.wait(), name)]

    for some in steps(in_background(kv), keyspace.names.all, read):
        for name, queue_id in some:
            repair = partial(_repair_name, kv=kv, keyspace=keyspace, name=name, queue_id=queue_id)
            says = f"The name “{display_name(name)}” leads to no queue of that name."
            yield Orphan(kind="name", says=says, repair=repair)


def _leads_astray(record: bytes | None, name: str) -> bool:
    """Say whether a name's queue is gone or has another name. An unreadable queue may have this one."""
    config = decode(record)
    return record is None if config is None else config.name != name


def _nameless(kv: KeyValueStore, keyspace: Keyspace) -> Iterator[Orphan]:
    """Yield queues with a name that leads nowhere, or to another queue."""

    def read(tr: ReadTransaction, found: list[KeyValue]) -> list[Config]:
        configs = [config for _, record in found if (config := decode(record)) is not None]
        reads = [(config, tr.get(keyspace.names.key(config.name))) for config in configs]
        return [config for config, read in reads if read.wait() != config.id.to_bytes(8, "big")]

    for some in steps(in_background(kv), keyspace.configs.all, read):
        for config in some:
            repair = partial(_repair_nameless, keyspace=keyspace, queue_id=config.id)
            says = f"“{display_name(config.name)}” (queue number {config.id}) cannot be found by its name."
            yield Orphan(kind="name", says=says, repair=partial(_transact, kv, repair))


def _owned(kv: KeyValueStore, keyspace: Keyspace) -> set[int] | None:
    """Return the ids of queues with a config or a restorable trash record.

    None: a trash record cannot be read, and may be that of any queue.
    """

    def configs() -> set[int]:
        return {keyspace.configs.elements(key)[0] for key, _ in pairs(in_background(kv), keyspace.configs.all)}

    owned = configs()
    for _, record in pairs(in_background(kv), keyspace.trash.all):
        try:
            header = records.decode(record)[0]
            if header["what"] == "queue" and not header["restored"]:
                owned.add(header["queue_id"])
        except UNREADABLE:
            return None
    return owned | configs()  # again: one may have been restored from the trash meanwhile


def _purged(kv: KeyValueStore, keyspace: Keyspace, queue_id: int) -> set[int]:
    """Return the generations of a queue that are in the trash."""
    found = set()
    for _, record in pairs(in_background(kv), keyspace.trash.all):
        with suppress(*UNREADABLE):
            header = records.decode(record)[0]
            if header["queue_id"] == queue_id and "generation" in header and not header["restored"]:
                found.add(header["generation"])
    return found


def _kinds(kv: KeyValueStore, keys: QueueKeys) -> set[str]:
    """Return the kinds of keys that a queue has. The letters of the table in `queues.keys.keyspace`."""

    def behind(key: bytes) -> bytes:
        elements = keys.elements(key)
        return keys.behind(*elements[: 2 if isinstance(elements[0], int) else 1])

    return {_kind(keys, key) for key in first_keys(in_background(kv), keys.everything, behind)}


def _kind(keys: QueueKeys, key: bytes) -> str:
    """Return the kind of a key: its letter in the table in `queues.keys.keyspace`."""
    elements = keys.elements(key)
    if not isinstance(elements[0], int):
        return str(elements[0])
    return str(elements[1])


def _transact(kv: KeyValueStore, repair: Callable[..., str | None], now_ms: int) -> str | None:
    return kv.transact(lambda tr: repair(tr, now_ms=now_ms), background=True)


def clear_rest(kv: KeyValueStore, keyspace: Keyspace, queue_id: int) -> int:
    """Clear the keys of a lost queue without items; return their number.

    Its claim of a prefix is cleared too, so that this can be attached anew.
    """
    keys = keyspace.queue(queue_id)

    def clear(tr: Transaction) -> int:
        tr.use_reserve()
        if tr.get(keyspace.configs.key(queue_id)).wait() is not None:
            return 0
        found = [key for key, _ in tr.get_range(*keys.everything, limit=_STEP).wait()]
        if any(_kind(keys, key) in _ITEMS for key in found):
            return 0
        claimed = [key for key, owner in prefixes.claims(tr, keyspace).items() if owner == queue_id]
        for key in (*found, *claimed):
            tr.clear(key)
        return len(found)

    if _kinds(kv, keys) & _ITEMS:
        return 0
    return sum(iter(lambda: kv.transact(clear, background=True), 0))


def _repair_name(now_ms: int, *, kv: KeyValueStore, keyspace: Keyspace, name: str, queue_id: int) -> str | None:
    purged = _purged(kv, keyspace, queue_id)

    def repair(tr: Transaction) -> str | None:
        tr.use_reserve()
        key = keyspace.names.key(name)
        there = tr.get(key).wait()
        if there is None or int.from_bytes(there, "big") != queue_id:
            return None
        record = tr.get(keyspace.configs.key(queue_id)).wait()
        if not _leads_astray(record, name):
            return None
        tr.clear(key)
        tr.add(keyspace.directory_change, 1)
        recovered = _recover(tr, keyspace, queue_id, name, purged, now_ms) if record is None else None
        return recovered or f"Cleared the name “{display_name(name)}”, which led to no queue of that name."

    return kv.transact(repair, background=True)


def _repair_nameless(tr: Transaction, keyspace: Keyspace, queue_id: int, now_ms: int) -> str | None:
    tr.use_reserve()
    config = decode(tr.get(keyspace.configs.key(queue_id)).wait())
    if config is None:
        return None
    there = tr.get(keyspace.names.key(config.name)).wait()
    if there == config.id.to_bytes(8, "big"):
        return None
    if there is not None:
        config = replace(config, name=f"{config.name[:60]}-{config.id:x}")
        if tr.get(keyspace.names.key(config.name)).wait() is not None:
            return None
    directory.add(tr, keyspace, config)
    return f"“{display_name(config.name)}” (queue number {config.id}) is found by its name again."


def _recover(
    tr: Transaction, keyspace: Keyspace, queue_id: int, name: str, purged: Set[int], now_ms: int
) -> str | None:
    """Give a queue without a config a new one, purged generations left out. None when its kind is unknown."""
    tr.use_reserve()
    if tr.get(keyspace.configs.key(queue_id)).wait() is not None or tr.get(keyspace.names.key(name)).wait() is not None:
        return None
    keys = keyspace.queue(queue_id)
    firsts = first_keys(lambda fn: fn(tr), keys.everything, lambda key: keys.behind(keys.elements(key)[0]))
    generations = sorted(
        first for key in firsts if isinstance(first := keys.elements(key)[0], int) and first != OUTSIDE
    )
    guess = _guess(tr, keys, generations)
    if guess is None:
        return None
    fifo, priority_type = guess
    last = max(generations, default=0)
    config = Config(
        id=queue_id,
        name=name,
        kind="fifo" if fifo else "priority",
        priority_type=priority_type,
        generations=tuple(each for each in generations if each not in purged) or (last + 1,),
        last_generation=last,
        base=0,
        edges=() if fifo else default_edges(priority_type),
        pause=None,
        closed=False,
        created_ms=now_ms,
    )
    directory.add(tr, keyspace, config)
    return f"Queue number {queue_id} had lost its record: it is “{display_name(name)}” now, with all its items."


def _guess(tr: Transaction, keys: QueueKeys, generations: list[int]) -> tuple[bool, PriorityType] | None:
    """Infer whether a queue is FIFO, and its priority type, from its ready items."""
    guesses = set()
    for generation in generations:
        ready = keys.generation(generation)
        for reverse in (False, True):
            key = tr.get_key(*ready.ready.all, reverse=reverse).wait()
            if key is not None:
                guesses.add(_guess_item(ready.ready.suffix_of(key)))
    return guesses.pop() if len(guesses) == 1 else None


def _guess_item(suffix: bytes) -> tuple[bool, PriorityType] | None:
    types: dict[type, PriorityType] = {int: "int", float: "float", str: "str"}
    try:
        return False, types[type(ready_elements(suffix, fifo=False)[0])]
    except (ValueError, KeyError):
        pass
    try:
        ready_elements(suffix, fifo=True)
        return True, "int"
    except ValueError:
        return None
