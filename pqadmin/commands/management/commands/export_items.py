"""`pqadmin export_items`: write a queue's items to a file."""

import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from pqadmin.commands.arguments import FORMAT, QUEUE, Argument, flag
from pqadmin.commands.stop_signals import Interruption
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.commands.take_options import write_raw
from pqadmin.display.redaction import NOTHING
from pqadmin.files import formats
from pqadmin.files.items_export import lines
from pqadmin.files.plain_text import items
from queues import Query, Store

_STDOUT = "-"


class Command(StoreCommand):
    """Write the ready items of a queue to a file, as NDJSON or CSV.

    They are in the order in which they would be taken; none is taken. import_items of the file gives an equal sequence
    (with --end min). The queue is read step by step, so the export of a queue in use is not one snapshot. The file
    appears when it is complete.
    """

    arguments = (
        QUEUE,
        Argument("file", nargs="?", default=_STDOUT, help="default: -, standard output"),
        FORMAT,
        Argument("--end", choices=("min", "max"), default="min", help="the end to begin at"),
        flag("--quiet", "do not print how many items were written"),
    )
    has_json = False

    def run(self, store: Store, options: Options) -> None:
        """Write the items."""
        queue, name = store.queue(options["queue"]), options["file"]
        file_format = options["format"] or formats.format_of_name(name) or "ndjson"
        counts: list[tuple[int, int]] = []
        parts = lines(
            queue,
            Query(),
            end=options["end"],
            rules=NOTHING,
            file_format=file_format,
            hides=store.site is not None,
            count=lambda *parts: counts.append(parts),
        )
        if name == _STDOUT:
            write_raw(parts)
        else:
            with Interruption(), replacing(Path(name)) as stream:
                stream.writelines(parts)
        exported, hidden = (sum(numbers) for numbers in zip(*counts, strict=True))
        if not options["quiet"]:
            self.tell(f"Exported {'1 item' if exported == 1 else f'{exported} items'} of {queue.name}.")
        if hidden:
            self.tell(f"The server hides parts of {items(hidden)}: import_items refuses their lines (value_redacted).")


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
