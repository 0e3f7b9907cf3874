"""Prefixes of attached queues: which may be attached, and which queue has one."""

from typing import Any

from queues.catalog.store_record import StoreRecord
from queues.errors import BadPrefix, PrefixTaken, Words, display_name
from queues.keys.keyspace import Keyspace, packed_prefix
from queues.kv.port import ReadTransaction, Transaction
from queues.model.config import Config
from queues.model.records import UNREADABLE

#: Bytes; leaves room in a key for a priority, a count and a random element.
MAX_SIZE = 256
#: Attached queues of one read: more than any store has.
_MOST_ATTACHED = 100_000


def check_prefix(prefix: bytes | tuple[Any, ...], root: bytes) -> bytes:
    """Return the prefix as bytes, a tuple packed. Raise `BadPrefix`, or `PrefixTaken` where our own keys lie."""
    if isinstance(prefix, tuple):
        try:
            prefix = packed_prefix(prefix)
        except ValueError as error:
            raise BadPrefix("The prefix cannot be packed as a tuple: {error}.", error=str(error)) from error
    if isinstance(prefix, bytearray | memoryview):
        prefix = bytes(prefix)
    if not isinstance(prefix, bytes):
        raise BadPrefix("A prefix is bytes or a tuple, not {type}.", type=type(prefix).__name__)
    if not prefix:
        raise BadPrefix("An empty prefix is the whole store: name the subspace to attach.")
    if prefix[0] == 0xFF:
        raise BadPrefix("A prefix that begins with byte 0xff belongs to the store's own system.")
    if prefix[0] == 0xFE:
        raise BadPrefix("A prefix that begins with byte 0xfe belongs to FoundationDB's directory layer.")
    if len(prefix) > MAX_SIZE:
        raise BadPrefix("A prefix has at most {most} bytes; this one has {size:,}.", most=MAX_SIZE, size=len(prefix))
    if prefix.startswith(root) or root.startswith(prefix):
        raise PrefixTaken(
            "The prefix overlaps the keys of this store itself: only what other programs write can be attached."
        )
    return prefix


def claim(tr: Transaction, keyspace: Keyspace, config: Config) -> None:
    """Note that a queue attaches its prefix. Raise `PrefixTaken` when it overlaps one attached already, or a store.

    No two attached prefixes overlap, so one that is the beginning of ours can only be the last one before it.
    """
    prefix = config.attached_prefix
    before = tr.get_key(*keyspace.attached_before(prefix), reverse=True)
    within = tr.get_key(*keyspace.attached_within(prefix))
    for key in (before.wait(), within.wait()):
        other = None if key is None else keyspace.prefix_of(key)
        if other is not None and (prefix.startswith(other) or other.startswith(prefix)):
            raise PrefixTaken(
                "The prefix overlaps that of {owner}, which is attached already.", owner=_owner(tr, keyspace, other)
            )
    _refuse_stores(tr, prefix)
    tr.set(keyspace.attached(prefix), config.id.to_bytes(8, "big"))


def release(tr: Transaction, keyspace: Keyspace, config: Config) -> None:
    """Let a queue's prefix be attached anew, and forget what we counted of it."""
    tr.clear(keyspace.attached(config.attached_prefix))
    tr.clear_range(*keyspace.queue(config.id).traffic.all)


def owner(tr: ReadTransaction, keyspace: Keyspace, prefix: bytes) -> Config | None:
    """Return the config of the queue that has attached exactly this prefix."""
    found = tr.get(keyspace.attached(prefix)).wait()
    record = None if found is None else tr.get(keyspace.configs.key(int.from_bytes(found, "big"))).wait()
    return None if record is None else Config.decode(record)


def claims(tr: ReadTransaction, keyspace: Keyspace) -> dict[bytes, int]:
    """Return the ids of the queues that have attached a prefix, by the key of the claim."""
    pairs = tr.get_range(*keyspace.attached_within(b""), limit=_MOST_ATTACHED).wait()
    return {key: int.from_bytes(owner, "big") for key, owner in pairs}


def _refuse_stores(tr: ReadTransaction, prefix: bytes) -> None:
    """Raise `PrefixTaken` where the prefix is the root of another pqadmin store, or lies under one."""
    found = [tr.get(Keyspace.store_at(prefix[:size])) for size in range(len(prefix) + 1)]
    if any(_is_store(one.wait()) for one in found):
        raise PrefixTaken("Another pqadmin store lies there: open it as a store. Only that store changes its keys.")


def _is_store(record: bytes | None) -> bool:
    """Say whether this is a store's record: other programs may well have a key of the same name."""
    if record is None:
        return False
    try:
        StoreRecord.decode(record)
    except UNREADABLE:
        return False
    return True


def _owner(tr: ReadTransaction, keyspace: Keyspace, prefix: bytes) -> str:
    config = owner(tr, keyspace, prefix)
    return Words("another queue") if config is None else f"“{display_name(config.name)}”"
