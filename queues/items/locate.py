"""Items found by their ids for an action, with etags of what a page showed.

An etag is a digest of all that a page shows of an item: its place, state, lease and value. An action on what was shown
passes the etags back, so that it leaves out or refuses items that have changed meanwhile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from queues.errors import BadLimit, ItemChanged, ItemNotFound, KeyTooLarge, TooLarge, some_are
from queues.items import attached as attached_items
from queues.items import stored_item
from queues.items.ready import MAX_BYTES, MAX_ITEMS
from queues.items.stored_item import ATTACHED, StoredItem, digest
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import AttachedKeys
from queues.kv.port import MAX_KEY_SIZE, ReadTransaction
from queues.model import ids
from queues.model.config import Config
from queues.model.foreign_tuples import parse_id
from queues.model.item import Item
from queues.model.records import encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """An item, and the etag to pass back."""

    item: Item
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Items found by their ids, in the order asked for, and the ids that were not found."""

    picked: tuple[Picked, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The items of an action."""

    stored_items: list[StoredItem]
    #: Ids that were not found, or those of items that have changed.
    missing: int


def check_number(item_ids: Sequence[str]) -> None:
    """Raise `BadLimit` for more ids than one transaction takes."""
    if not 1 <= len(item_ids) <= MAX_ITEMS:
        raise BadLimit("One act takes 1 to {most:,} items; act on more in chunks.", most=MAX_ITEMS)


def look(tr: ReadTransaction, keyspace: Keyspace, config: Config, item_ids: Sequence[str]) -> Selection:
    """Return items with their etags."""
    check_number(item_ids)
    wanted = list(dict.fromkeys(item_ids))
    found = _standings(tr, keyspace, config, wanted)
    return Selection(
        picked=tuple(Picked(item=item_of(there, config), etag=etag(there)) for there in found if there is not None),
        missing=tuple(item_id for item_id, there in zip(wanted, found, strict=True) if there is None),
    )


def find(
    tr: ReadTransaction,
    keyspace: Keyspace,
    config: Config,
    item_ids: Sequence[str],
    *,
    skip_missing: bool,
    expect: Mapping[str, str] | None = None,
) -> Found:
    """Return the items of an action. Raise `ItemNotFound` when some are not here, unless those are to be skipped.

    `expect` holds etags by id: an item that has another one now raises `ItemChanged`, or is skipped as well.
    """
    wanted = list(dict.fromkeys(item_ids))
    there = dict(zip(wanted, _standings(tr, keyspace, config, wanted), strict=True))
    stored_items = [found for found in there.values() if found is not None]
    foreign = None if config.prefix is None else AttachedKeys(config.prefix)
    if foreign is not None and any(len(foreign.at(found.suffix)) > MAX_KEY_SIZE for found in stored_items):
        raise KeyTooLarge(
            "A key of more than {most} bytes is among these: it could not be put back, so it is not "
            "taken by hand. Nothing was changed.",
            most=MAX_KEY_SIZE,
        )
    missing = len(wanted) - len(stored_items)
    if missing and (not skip_missing or not stored_items):
        what = some_are(missing, len(wanted))
        told = "{what} not in this queue: taken or moved meanwhile, or the id is wrong. Nothing was changed."
        raise ItemNotFound(told, what=what)
    if expect is not None:
        same = [
            found
            for item_id, found in there.items()
            if found is not None and expect.get(item_id) in (None, etag(found))
        ]
        changed = len(stored_items) - len(same)
        if changed and (not skip_missing or not same):
            what = some_are(changed, len(wanted))
            raise ItemChanged("{what} not as shown any more: changed meanwhile. Nothing was changed.", what=what)
        stored_items, missing = same, missing + changed
    if sum(found.weight for found in stored_items) > MAX_BYTES:
        raise TooLarge("These items hold more than 5 MB together: act on fewer at once.")
    return Found(stored_items=stored_items, missing=missing)


def arrived(tr: ReadTransaction, keyspace: Keyspace, config: Config, items: Sequence[Item]) -> list[StoredItem]:
    """Return the stored items of items that this transaction pushed."""
    return [there for there in _standings(tr, keyspace, config, [item.id for item in items]) if there is not None]


def etag(there: StoredItem) -> str:
    """Return the etag of an item. Extending a lease does not change it."""
    record = dict(there.header)
    record.pop("expires", None)
    place = {"state": there.state, "suffix": there.suffix.hex(), "attempts": there.attempts, "record": record}
    return digest(encode(place, there.value))


def item_of(there: StoredItem, config: Config) -> Item:
    """Return an item as callers see it, in an attached queue too."""
    if there.state == ATTACHED:
        return attached_items.as_item(there.suffix, there.stored, fifo=config.fifo, codec=config.values)
    return stored_item.as_item(there, fifo=config.fifo, codec=config.values)


def _standings(
    tr: ReadTransaction, keyspace: Keyspace, config: Config, wanted: Sequence[str]
) -> list[StoredItem | None]:
    if config.prefix is None:
        return stored_item.find(tr, keyspace.queue(config.id), config, [ids.parse(item_id) for item_id in wanted])
    return attached_items.find_all(tr, AttachedKeys(config.prefix), [parse_id(item_id) for item_id in wanted])
