"""An export: a queue's ready items read page by page, in order, and the file they go to.

No read transaction lasts longer than one page, so an export of a queue that is in use is not one snapshot: an item
pushed or taken behind the cursor is missed or kept, none is written twice.
"""

import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from pqadmin.files.entries import Entry
from queues import Queue

#: Items of one page: at 90,000 B each the most that is held in memory is 9 MB.
PAGE_ITEMS = 100


def entries(queue: Queue, *, end: str) -> Iterator[Entry]:
    """Yield the queue's ready items from one end, in order."""
    cursor: str | None = None
    number = 0
    while True:
        page = queue.items(end=end, limit=PAGE_ITEMS, after=cursor)
        for item in page.items:
            number += 1
            yield Entry(line=number, value=item.raw, priority=item.priority)
        cursor = page.cursor
        if cursor is None:
            return


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that replaces the one of this name only when the block succeeds.

    It is readable by its owner alone, whatever the umask and the old file's rights are.

    A pipe or device is written directly: it has nothing to replace.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        with target.open("wb") as stream:
            yield stream
        return
    waiting = target.with_name(f".{target.name[:100]}.{uuid.uuid4().hex}.part")
    try:
        with _made(waiting) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        waiting.replace(target)
    except BaseException:
        with suppress(OSError):  # what went wrong first is told
            waiting.unlink(missing_ok=True)
        raise


def _made(waiting: Path) -> IO[bytes]:
    """Create a file under a name that no other process knows; an error names its folder."""
    try:
        return os.fdopen(os.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(waiting.parent)) from error
