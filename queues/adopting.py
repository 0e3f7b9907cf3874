"""Mending orphans: a queue whose config is gone is adopted again, what names nothing is cleared.

Nothing that holds an item is ever cleared: what an adopted queue is, is guessed from its items.
"""

from __future__ import annotations

from dataclasses import replace

from queues import directory
from queues.bands import default_edges
from queues.config import Config
from queues.keyspace import Keyspace
from queues.kv.port import KeyValueStore, Transaction
from queues.names import display_name
from queues.orphans import ITEMS, STEP, Nameless, Orphan, StrayName, decode, kind_of, kinds_of
from queues.priority import PriorityType
from queues.queue_keys import QueueKeys
from queues.suffixes import ready_elements


def mend_orphan(kv: KeyValueStore, keyspace: Keyspace, orphan: Orphan, *, now_ms: int) -> str | None:
    """Mend an orphan and tell how; None when it can not be, or needs it no more."""
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
    """Give a queue without a config one again; None when it holds nothing, or it can not be told what it is."""
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
