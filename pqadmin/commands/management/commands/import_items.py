"""`pqadmin import_items`: push what a file holds."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from pqadmin.commands.import_marks import ImportMark, MarkedPusher, last_mark
from pqadmin.commands.importing import CHUNK_ITEMS, Importer, ImportReport, StoppedAtBadEntry
from pqadmin.commands.interruption import Interrupted, Interruption
from pqadmin.commands.progress import ImportProgress, place
from pqadmin.commands.store_command import (
    EXIT_INTERRUPTED,
    StoreCommand,
    line_number,
    os_user,
    stdin_bytes,
    whole_number,
)
from pqadmin.display.format import visible
from pqadmin.files import formats
from queues import Queue, Store
from queues.errors import OutcomeUnknown, QueueError, QueueNotFound, StoreError
from queues.model.priority import TYPES

#: Some lines were bad, all others are pushed.
EXIT_SOME_BAD = 3
_STDIN = "-"
#: How every file begins that gzip has packed; no text does.
_GZIP = b"\x1f\x8b"


class BadLines(CommandError):
    """Some lines of the file could not be pushed."""


class Command(StoreCommand):
    """Push every line of an NDJSON or CSV file, in chunks, so that it can be resumed after any stop."""

    help = (
        "Push what a file of NDJSON or CSV holds: a line of NDJSON is "
        '{"value" | "value_base64" | "value_json": …, "priority": …}, and CSV has columns of these names. '
        "Bad lines are reported by number and left out. Exit code 0: all is pushed; "
        "3: all but some bad lines; 1: failed, or all lines were bad."
    )

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("file", help="- reads standard input")
        parser.add_argument("--format", choices=("ndjson", "csv"), help="default: by the file's ending or first byte")
        start = parser.add_mutually_exclusive_group()
        start.add_argument("--skip", type=line_number, default=0, metavar="N", help="begin after line N")
        start.add_argument(
            "--resume", action="store_true", help="begin where the audit says that the last import of this file ended"
        )
        parser.add_argument("--strict", action="store_true", help="stop at the first bad line")
        parser.add_argument("--create", action="store_true", help="create the queue when it is not there")
        parser.add_argument("--kind", choices=("priority", "fifo"), default="priority", help="with --create")
        parser.add_argument("--priority-type", choices=TYPES, default="int", help="with --create")
        parser.add_argument(
            "--chunk", type=whole_number, default=CHUNK_ITEMS, metavar="N", help="items a commit (default: %(default)s)"
        )
        parser.add_argument("--quiet", action="store_true", help="no progress; bad lines and the result are shown")

    def may_make_store(self, options: dict[str, Any]) -> bool:
        """Say whether a store that is not there is made."""
        return bool(options["create"])

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Push the file's items."""
        if options["chunk"] > 1_000:
            raise CommandError("--chunk: one transaction pushes at most 1,000 items.")
        with _opened(options["file"]) as stream, Interruption() as interruption:
            if stream.peek(2).startswith(_GZIP):
                raise CommandError(
                    "The file is packed by gzip: unpack it first, "
                    f"as in zcat FILE | pqadmin import_items {visible(options['queue'])} -"
                )
            file_format = options["format"] or formats.format_of_name(options["file"]) or formats.sniff(stream)
            queue = self._queue(store, options)
            source = "stdin" if options["file"] == _STDIN else os.path.realpath(options["file"])
            mark = self._mark(store, queue, source, options)
            start: int = options["skip"] if mark is None else mark.last_line
            total = None if options["file"] == _STDIN else os.fstat(stream.fileno()).st_size
            how = {"quiet": options["quiet"], "as_json": options["json"]}
            with ImportProgress(self.progress_stream(), total=total, **how) as progress:
                if mark is not None:
                    progress.resumed(mark)
                importer = Importer(
                    MarkedPusher(store, queue, actor=os_user(), source=source).push,
                    on_commit=lambda report: progress.committed(report, _position(stream)),
                    on_bad=progress.bad,
                    hold=interruption.held,
                    strict=options["strict"],
                    start_line=start,
                    chunk_items=options["chunk"],
                )
                outcomes = formats.read(
                    stream,
                    file_format,
                    priority_type=None if queue.kind == "fifo" else queue.priority_type,
                    skip=start,
                )
                failure = _failure(importer, outcomes)
                if failure is None or isinstance(failure, BadLines):
                    progress.finished()
        self._tell_result(queue, importer.report, options)
        if failure is not None:
            raise failure from failure.__cause__

    def _queue(self, store: Store, options: dict[str, Any]) -> Queue:
        try:
            return store.queue(options["queue"])
        except QueueNotFound:
            if not options["create"]:
                raise
        return self.acts(store).create_queue(
            options["queue"], kind=options["kind"], priority_type=options["priority_type"]
        )

    def _mark(self, store: Store, queue: Queue, source: str, options: dict[str, Any]) -> ImportMark | None:
        """Return how far an earlier import of the file came, when it is to be gone on with."""
        if not options["resume"]:
            return None
        if options["file"] == _STDIN:
            raise CommandError("--resume needs a file to recognize; with standard input use --skip.")
        return last_mark(store, queue, source)

    def _tell_result(self, queue: Queue, report: ImportReport, options: dict[str, Any]) -> None:
        if options["json"]:
            self.print_json(
                {
                    "queue": queue.name,
                    "items": report.items,
                    "bad": report.bad,
                    "blank": report.blank,
                    "last_line": report.last_line,
                }
            )
        else:
            items = "1 item" if report.items == 1 else f"{report.items} items"
            self.stdout.write(f"Imported {items} into {queue.name}. Last committed line: {report.last_line}.")


def _failure(importer: Importer, outcomes: Iterator[Any]) -> CommandError | None:
    """Run the import; return what the command ends with, None when all is well."""
    error: BaseException
    returncode = 1
    try:
        report = importer.run(outcomes)
    except StoppedAtBadEntry as stop:
        error, message = stop, f"{place(stop.entry)}: {visible(str(stop))}. Stopped (--strict)."
    except OutcomeUnknown as unknown:
        error, message = unknown, f"{unknown} Look with --resume: the audit tells whether the last chunk is in."
    except (QueueError, StoreError, formats.BadFormat, OSError) as failed:
        error, message = failed, str(failed)
    except Interrupted as stop:
        error, message, returncode = stop, "Interrupted.", EXIT_INTERRUPTED
    else:
        if not report.bad:
            return None
        lines = "1 bad line was" if report.bad == 1 else f"{report.bad} bad lines were"
        return BadLines(f"{lines} left out.", returncode=EXIT_SOME_BAD if report.items else 1)
    told = f"{message} {_how_to_go_on(importer.report, sure=not isinstance(error, OutcomeUnknown))}".rstrip()
    failure = CommandError(told, returncode=returncode)
    failure.__cause__ = error
    return failure


def _how_to_go_on(report: ImportReport, *, sure: bool) -> str:
    line = report.last_line
    if line:
        return f"Committed to line {line}: go on with --skip {line}."
    return "Nothing was committed." if sure else ""


@contextmanager
def _opened(name: str) -> Iterator[io.BufferedReader]:
    if name == _STDIN:
        yield stdin_bytes()
        return
    with Path(name).open("rb") as stream:
        yield stream


def _position(stream: io.BufferedReader) -> int | None:
    with suppress(OSError):
        return stream.tell()
    return None
