"""An import: entries pushed in chunks, each one transaction, in the order of the file.

At most one chunk is in memory. After every commit the last handled line is known; a later run that skips to that line
pushes nothing twice and leaves nothing out.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from pqadmin.files.entries import BadEntry, Entry, Outcome

#: Items in one transaction: enough to share a flush, few enough that other writers wait little.
CHUNK_ITEMS = 500
#: Bytes of values in one transaction: the soft budget of every bulk write.
CHUNK_BYTES = 1_000_000


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """How far an import came."""

    items: int = 0
    bad: int = 0
    blank: int = 0
    #: Every line up to this one is handled: pushed, reported as bad, or blank. 0 before the first.
    last_line: int = 0


class StoppedAtBadEntry(Exception):
    """A strict import found a bad line; everything before it is committed."""

    def __init__(self, entry: BadEntry) -> None:
        self.entry = entry
        super().__init__(entry.reason)


class Importer:
    """Push entries in chunks and count them.

    `push(entries, last_line)` commits one chunk in one transaction, or raises with nothing written. `report` is what is
    committed, after an error too. `hold()` delays a stop signal until that is known; `on_commit` is not held.
    """

    def __init__(
        self,
        push: Callable[[list[Entry], int], None],
        *,
        on_commit: Callable[[ImportReport], None],
        on_bad: Callable[[BadEntry], None],
        hold: Callable[[], AbstractContextManager[None]] = nullcontext,
        strict: bool = False,
        start_line: int = 0,
        chunk_items: int = CHUNK_ITEMS,
    ) -> None:
        self.report = ImportReport(last_line=start_line)
        #: The same of what is read, committed or not.
        self._read = ImportReport(last_line=start_line)
        self._push = push
        self._on_commit = on_commit
        self._on_bad = on_bad
        self._hold = hold
        self._strict = strict
        self._chunk_items = chunk_items
        self._waiting: list[Entry] = []
        self._waiting_bytes = 0

    def run(self, outcomes: Iterable[Outcome]) -> ImportReport:
        """Handle every outcome; raise `StoppedAtBadEntry` when strict, or the errors of `push`."""
        for outcome in outcomes:
            if isinstance(outcome, Entry):
                if self._waiting and self._waiting_bytes + len(outcome.value) > CHUNK_BYTES:
                    self._commit()
                self._waiting.append(outcome)
                self._waiting_bytes += len(outcome.value)
                self._read.items += 1
            elif isinstance(outcome, BadEntry):
                if self._strict:
                    self._read.last_line = outcome.first - 1
                    self._commit()
                    raise StoppedAtBadEntry(outcome)
                self._read.bad += 1
                self._on_bad(outcome)
            else:
                self._read.blank += 1
            self._read.last_line = outcome.line
            if len(self._waiting) >= self._chunk_items:
                self._commit()
        self._commit()
        return self.report

    def _commit(self) -> None:
        with self._hold():
            if self._waiting:
                self._push(self._waiting, self._read.last_line)
            self.report = replace(self._read)
            pushed, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if pushed:
            self._on_commit(self.report)
