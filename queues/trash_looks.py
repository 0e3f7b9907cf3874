"""Looking into the trash inside one transaction: at one entry, or through those that fit what is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from queues import changes, directory, ids, records
from queues.attached import prefix as prefixes
from queues.config import Config
from queues.errors import KeyTooLarge, QueueNotFound, TrashNotFound
from queues.keyspace import Keyspace
from queues.kv.port import ReadTransaction, Result
from queues.kv.results import Ready
from queues.trash_entries import TrashEntry, TrashPage, entry_of, readable, rules_of, telling
from queues.unreadable import UNREADABLE

#: Reads of one page before it is handed out as it is, when most of the trash was restored; and bytes of records.
#: What follows a full page is looked for as far again, as a page may become full only at the end of that.
_STEPS, _STEP_BYTES = 20, 4_000_000
#: An entry's id, its header or why it can not be read, its value, and the numbers of the queues that it reaches.
_Read = tuple[bytes, dict[str, Any] | Exception, Result[bytes | None], tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which entries are asked for; None: all."""

    #: Of the queue that has this name, or had it when they were written.
    queue: str | None
    by: str | None
    act: str | None
    #: Of every act but this one.
    but: str | None = None
    #: Says by the name that a queue had whether it is listed.
    visible: Callable[[str], bool] | None = None

    @property
    def everything(self) -> bool:
        """Whether all are asked for, those too that can not be read."""
        return self == _EVERYTHING

    def fits(self, header: dict[str, Any], queue_id: int | None) -> bool:
        """Say whether an entry is asked for and can be restored; `queue_id` is of the queue that has the name now."""
        return (
            not (header["restored"] or header.get("doomed"))
            and (self.by is None or header["by"] == self.by)
            and (self.act is None or header.get("act") == self.act)
            and (self.but is None or header.get("act") != self.but)
            and (self.visible is None or self.visible(header["queue"]))
            and (self.queue is None or header["queue_id"] == queue_id or header["queue"] == self.queue)
        )


_EVERYTHING = Asked(queue=None, by=None, act=None)


class Looking:
    """One look into the trash, inside one transaction; what several entries need is read once."""

    def __init__(self, tr: ReadTransaction, keyspace: Keyspace) -> None:
        self._tr = tr
        self._keyspace = keyspace
        #: Configs of the entries' queues, and whose the prefixes are that entries reach.
        self._configs: dict[int, Result[bytes | None]] = {}
        self._owners: dict[str, Config | None] = {}

    def record(self, trash_id: bytes) -> tuple[dict[str, Any], bytes]:
        """Return what lies under an id: header and value; raise `TrashNotFound`."""
        record = self._tr.get(self._keyspace.trash(trash_id)).wait()
        header, value = records.decode(record) if record is not None else ({"doomed": True}, b"")
        if header.get("doomed"):
            raise TrashNotFound("Nothing of this id is in the trash; its time may have run out.")
        return header, self._value(trash_id, header, value).wait() or b""

    def entry(self, trash_id: bytes) -> TrashEntry:
        """Return one entry; raise `TrashNotFound`, `Unreadable`."""
        with telling():
            header, value = self.record(trash_id)
            rules = rules_of(header, self._config_of(header).wait())
            return entry_of(trash_id, header, value, rules, self._reaches(header))

    def page(self, asked: Asked, *, before: bytes | None, limit: int) -> TrashPage:
        """Return the entries that are asked for among the next ones, newest first, at most `limit`."""
        queue_id = None if asked.queue is None else self._id_of(asked.queue)
        found: list[_Read] = []
        seen, following = before, None
        looked = size = steps = full = 0
        over = False
        while not over and following is None and steps < _STEPS and size < _STEP_BYTES:
            steps += 1
            pairs = self._tr.get_range(*self._keyspace.all_trash(seen), limit=limit + 1, reverse=True).wait()
            for key, record in pairs:
                trash_id, size = self._keyspace.last_id(key), size + len(record)
                fitting: _Read | None = None
                try:
                    header, value = records.decode(record)
                    if asked.fits(header, queue_id):
                        # Of one that follows a full page only its place is wanted.
                        fitting = self._read(trash_id, header, value, whole=not full)
                except UNREADABLE as error:
                    fitting = (trash_id, error, Ready(None), ()) if asked.everything else None
                if fitting is not None and full:
                    following = trash_id
                    break
                if fitting is not None:
                    found.append(fitting)
                seen, looked = trash_id, looked + 1
                if len(found) == limit and not full:
                    full, steps, size = looked, 0, 0  # what follows is looked for as far again
            over = following is None and len(pairs) <= limit
        rules = {queue_id: read.wait() for queue_id, read in self._configs.items()}
        entries = tuple(
            readable(trash_id, header, read.wait() or b"", rules, reaches) for trash_id, header, read, reaches in found
        )
        if not over and following is None:
            over = self._tr.get_key(*self._keyspace.all_trash(seen)).wait() is None
        cursor = None if over else seen if following is None else ids.above(following)
        return TrashPage(
            entries=entries,
            cursor=None if cursor is None else cursor.hex(),
            looked=full or looked,
            certain=cursor is None or following is not None,
        )

    def _read(self, trash_id: bytes, header: dict[str, Any], value: bytes, *, whole: bool) -> _Read:
        self._config_of(header)
        reaches = self._reaches(header)
        return trash_id, header, self._value(trash_id, header, value) if whole else Ready(None), reaches

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
            return self._tr.get(self._keyspace.trash_part(trash_id, 0, changes.VALUE))
        return Ready(value)

    def _config_of(self, header: dict[str, Any]) -> Result[bytes | None]:
        queue_id = header["queue_id"]
        if queue_id not in self._configs:
            self._configs[queue_id] = self._tr.get(self._keyspace.config(queue_id))
        return self._configs[queue_id]

    def _id_of(self, name: str) -> int | None:
        try:
            return directory.find_id(self._tr, self._keyspace, name)
        except (QueueNotFound, KeyTooLarge):
            return None
