"""Chunks of an import, each written with its mark: the last line that is pushed.

The mark is the chunk's audit record, in the chunk's own transaction. So `--resume` continues at the exact line, even
after a kill between the commit and the printed line.

The last mark is the one with the highest push order of its items, not the newest by a clock, because an import may
continue in a process with a late clock. Attached queues have no push order; there the newest mark counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pqadmin.files.entries import Entry
from queues import AnyQueue, AuditEntry, FifoQueue, Queue, Raw, Store, Transaction
from queues.admin import IdGenerator

#: Audit records of the queue that are searched, newest first, for the last mark of a file.
_LOOK_BACK = 100_000
_PAGE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportMark:
    """How far an import of a file had come."""

    last_line: int
    at: datetime
    actor: str


class MarkedPusher:
    """Pushes the chunks of one file into one queue, with their marks. `source` is its absolute path."""

    def __init__(
        self,
        store: Store,
        queue: AnyQueue,
        *,
        actor: str,
        source: str,
        via: str = "cli",
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._store = store
        self._queue = queue
        self._actor = actor
        self._source = source
        self._via = via
        self._id_generator = IdGenerator(clock or (lambda: store.now().timestamp()))

    def push(self, entries: Sequence[Entry], last_line: int) -> None:
        """Push the entries as one transaction, or raise with nothing written."""
        if self._store.site is not None:
            values = [(entry.value, entry.priority) for entry in entries]
            self._store.site.push_chunk(self._queue, values, source=self._source, last_line=last_line)
            return
        audit_id = self.new_id()
        self._store.transact(lambda tr: self.write(tr, audit_id, entries, last_line))

    def new_id(self) -> bytes:
        """Return a new id for an audit record."""
        return self._id_generator.new_id()

    def write(self, tr: Transaction, audit_id: bytes, entries: Sequence[Entry], last_line: int) -> None:
        """Push the entries, with their mark, inside a transaction."""
        queue = self._queue
        if isinstance(queue, FifoQueue):
            pushed = queue.enqueue_many([Raw(entry.value) for entry in entries], tr=tr)
        else:
            pushed = queue.push_many(
                [(Raw(entry.value), entry.priority) for entry in entries if entry.priority is not None], tr=tr
            )
        mark = {"import": self._source, "last_line": last_line}
        if not queue.attached:
            mark["push_order"] = pushed[-1].count
        self._store.audit.write(
            tr,
            audit_id,
            actor=self._actor,
            via=self._via,
            verb="enqueue" if queue.kind == "fifo" else "push",
            queue_id=queue.id,
            queue=queue.name,
            count=len(entries),
            after=mark,
        )


def last_mark(store: Store, queue: Queue, source: str) -> ImportMark | None:
    """Return how far the last import of a file into a queue came; None without one in the audit."""
    last: tuple[int, ImportMark] | None = None
    cursor: str | None = None
    for _ in range(_LOOK_BACK // _PAGE):
        page = store.audit.entries(queue=queue.name, limit=_PAGE, after=cursor)
        for entry in page.entries:
            mark = _mark(entry, source)
            if mark is not None and (last is None or mark[0] > last[0]):  # of equal ones the newest
                last = mark
        cursor = page.cursor
        if cursor is None:
            break
    return None if last is None else last[1]


def _mark(entry: AuditEntry, source: str) -> tuple[int, ImportMark] | None:
    """Return the push order and the mark of a record about this file."""
    after = entry.after or {}
    if after.get("import") != source or not isinstance(after.get("last_line"), int):
        return None
    order = after.get("push_order")  # 0.1 wrote none
    return (order if isinstance(order, int) else -1), ImportMark(
        last_line=after["last_line"], at=entry.at, actor=entry.actor
    )
