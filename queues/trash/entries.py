"""Entries of the trash as screens read them, each as far as its record can be read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Literal

from queues.catalog import attached_prefixes as prefixes
from queues.errors import NewerFormat, QueueError, StoreError, TrashNotFound, Unreadable
from queues.items import attached as attached_items
from queues.items.stored_item import StoredItem, as_item
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import last_element
from queues.kv.port import ReadTransaction, Ready, Result
from queues.model import ids, paging, records
from queues.model.attempt_log import LOG
from queues.model.codec import Codec
from queues.model.config import Config
from queues.model.foreign_tuples import parse_id
from queues.model.item import Item
from queues.model.paging import RecordPage
from queues.model.records import UNREADABLE, why

#: Parts of what lies beside a record, a change's places and the value before; the names sort so.
PLACES, VALUE = "k", "v"
#: Bytes of records that one page reads, or a step more.
_PAGE_BYTES = 8_000_000


class Looking:
    """Reads of the trash in one transaction; records that several entries need are read once."""

    def __init__(self, tr: ReadTransaction, keyspace: Keyspace) -> None:
        self._tr = tr
        self._keyspace = keyspace
        #: Configs of the entries' queues, and of the queues that have the entries' prefixes now.
        self._configs: dict[int, Result[bytes | None]] = {}
        self._owners: dict[str, Config | None] = {}

    def record(self, trash_id: bytes) -> tuple[dict[str, Any], bytes]:
        """Return header and value of an id; raise `TrashNotFound`."""
        header, value = self._header(trash_id)
        return header, self._value(trash_id, header, value).wait() or b""

    def entry(self, trash_id: bytes) -> "TrashEntry":
        """Return one entry; raise `TrashNotFound`, `Unreadable`."""
        with telling():
            return self._entry(trash_id, *self._header(trash_id))()

    def page(
        self,
        fits: Callable[[dict[str, Any]], bool],
        *,
        unreadable: bool,
        before: bytes | None,
        limit: int,
    ) -> RecordPage["TrashEntry"]:
        """Return the next entries that fit, newest first, at most `limit`, perhaps with those that are unreadable."""
        size = 0

        def read(before: bytes | None, n: int) -> tuple[list[tuple[bytes, bytes]], bool]:
            pairs = self._tr.get_range(*self._keyspace.trash.older(before), limit=n + 1, reverse=True).wait()
            return [(last_element(key), record) for key, record in pairs[:n]], len(pairs) > n

        def fitting(trash_id: bytes, record: bytes) -> "Callable[[], TrashEntry] | None":
            nonlocal size
            size += len(record)
            try:
                header, value = records.decode(record)
                if header["restored"] or header.get("deleting") or not fits(header):
                    return None
                return partial(_readable, trash_id, self._entry(trash_id, header, value))
            except UNREADABLE as error:
                return partial(_damaged, trash_id, error) if unreadable else None

        page = paging.page(read, fitting, before=before, limit=limit, enough=lambda: size >= _PAGE_BYTES)
        entries = tuple(finish() for finish in page.entries)
        return RecordPage(entries, page.cursor, looked=page.looked, certain=page.certain)

    def _header(self, trash_id: bytes) -> tuple[dict[str, Any], bytes]:
        record = self._tr.get(self._keyspace.trash.key(trash_id)).wait()
        header, value = records.decode(record) if record is not None else ({"deleting": True}, b"")
        if header.get("deleting"):
            raise TrashNotFound("Nothing of this id is in the trash; its time may have run out.")
        return header, value

    def _entry(self, trash_id: bytes, header: dict[str, Any], inline: bytes) -> "Callable[[], TrashEntry]":
        """Issue the reads of an entry, and return what waits for them."""
        value, config = self._value(trash_id, header, inline), self._config_of(header)
        reaches = self._reaches(header)
        return lambda: _entry_of(trash_id, header, value.wait() or b"", rules_of(header, config.wait()), reaches)

    def _reaches(self, header: dict[str, Any]) -> tuple[int, ...]:
        """Return the numbers of the queues that `restore` would change now."""
        if "foreign" in header:
            references = [{"id": header["queue_id"], "prefix": header["foreign"]["prefix"]}]
        else:
            default = {"id": header["queue_id"], "prefix": None}
            references = [each for each in (header.get("from", default), header.get("to")) if each is not None]
        found: list[int] = []
        for reference in references:
            prefix = reference["prefix"]
            if prefix is None:
                found.append(reference["id"])
                continue
            if prefix not in self._owners:
                self._owners[prefix] = prefixes.owner(self._tr, self._keyspace, bytes.fromhex(prefix))
            owner = self._owners[prefix]
            if owner is not None:
                found.append(owner.id)
        return tuple(found)

    def _value(self, trash_id: bytes, header: dict[str, Any], value: bytes) -> Result[bytes | None]:
        if header.get("apart"):
            return self._tr.get(self._keyspace.trash_parts.key(trash_id, 0, VALUE))
        return Ready(value)

    def _config_of(self, header: dict[str, Any]) -> Result[bytes | None]:
        queue_id = header["queue_id"]
        if queue_id not in self._configs:
            self._configs[queue_id] = self._tr.get(self._keyspace.configs.key(queue_id))
        return self._configs[queue_id]


#: Milliseconds for which entries are kept: a week, so that an action is undone after a long weekend too.
KEPT_MS = 7 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TrashEntry:
    """What one action removed or changed."""

    id: str
    #: `items`: changes of one or more items, undone as one. Of an `unreadable` entry only its id, its times and the
    #: damage are known.
    what: Literal["queue", "item", "items", "unreadable"]
    #: The queue's number, the same through renames.
    queue_id: int = 0
    #: The queue's name at the time.
    queue: str = ""
    #: The item, if it is the entry of one item.
    item: Item | None = None
    #: Items of the entry.
    count: int = 0
    by: str = ""
    at: datetime
    #: It may be swept afterwards.
    deadline: datetime
    restored: bool = False
    #: The action: pop, delete, move, reprioritize, edit, purge, push, delete_queue.
    act: str = ""
    #: The name of the queue that items were moved to.
    to: str | None = None
    #: The numbers of the queues that undoing it changes, as of now: an attached one may have been attached again.
    reaches: tuple[int, ...] = ()
    #: The queue's rules of redaction as they are now; of a deleted queue as they were.
    redact: tuple[str, ...] = ()
    #: It is of the bulk job that has the same id; undoing it is a job too.
    job: bool = False
    #: Why it cannot be read; empty: it can.
    damage: str = ""


def _readable(trash_id: bytes, entry: Callable[[], TrashEntry]) -> TrashEntry:
    """Return an entry; without its content if that cannot be read, or not be redacted by its queue's rules."""
    try:
        return entry()
    except UNREADABLE as error:
        return _damaged(trash_id, error)


def _damaged(trash_id: bytes, error: Exception) -> TrashEntry:
    at, deadline = (ids.at(ids.minted_ms(trash_id) + ms) for ms in (0, KEPT_MS))
    return TrashEntry(id=trash_id.hex(), what="unreadable", at=at, deadline=deadline, damage=why(error))


@contextmanager
def telling() -> Iterator[None]:
    """Raise `Unreadable` for an entry that cannot be read."""
    try:
        yield
    except UNREADABLE as error:
        if isinstance(error, (QueueError, StoreError)) and not isinstance(error, NewerFormat):
            raise
        raise Unreadable("This entry of the trash cannot be read. {why}", why=why(error)) from error


def _entry_of(
    trash_id: bytes, header: dict[str, Any], value: bytes, redact: tuple[str, ...], reaches: tuple[int, ...]
) -> TrashEntry:
    return TrashEntry(
        id=trash_id.hex(),
        what=header["what"],
        queue_id=header["queue_id"],
        queue=header["queue"],
        item=item_of(header, value, None) if header["what"] == "item" else None,
        count=header["items"],
        by=header["by"],
        at=ids.at(ids.minted_ms(trash_id)),
        deadline=ids.at(header["deadline"]),
        restored=header["restored"],
        act=header.get("act", ""),
        job=header.get("job", False),
        to=header["to"]["name"] if header.get("to") else None,
        reaches=reaches,
        redact=redact,
    )


def item_of(header: dict[str, Any], value: bytes, codec: Codec | None) -> Item:
    """Return the item of a record."""
    if "foreign" in header:
        return attached_items.as_item(suffix_of(header["item"]), value, fifo=header["foreign"]["fifo"], codec=codec)
    if "place" in header and header["place"]["state"] != "ready":
        there = StoredItem.of_place(header["place"], value)
        item = as_item(there, fifo=header["priority"] is None, codec=codec)
        return replace(item, priority=header["priority"])
    pushed_at = ids.minted_at(bytes.fromhex(header["item"]))
    since_ms = header.get("since", header.get("place", {}).get("record", {}).get("since"))
    return Item(
        id=header["item"],
        priority=header["priority"],
        count=header["count"],
        raw=value,
        pushed_at=pushed_at,
        size=len(value),
        ready_at=pushed_at if since_ms is None else ids.at(since_ms),
        attempts=header["attempts"],
        attempt_records=tuple(header.get(LOG, header.get("place", {}).get("record", {}).get(LOG, ()))),
        codec=codec,
    )


def rules_of(header: dict[str, Any], config: bytes | None) -> tuple[str, ...]:
    """Return the redaction rules of an entry's queue, by its config or by the one in the entry."""
    if config is not None:
        return Config.decode(config).redact
    return tuple(header.get("config", {}).get("redact", ())) or tuple(header.get("redact", ()))


def suffix_of(item_id: str) -> bytes:
    """Return the key of an item of an attached queue behind its prefix."""
    suffix = parse_id(item_id)
    assert suffix is not None
    return suffix
