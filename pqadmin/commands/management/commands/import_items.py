"""`pqadmin import_items`: push the items of a file."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from pqadmin.commands.arguments import (
    CODEC,
    FORMAT,
    KIND,
    PRIORITY_TYPE,
    QUEUE,
    Argument,
    OneOf,
    flag,
    line_number,
    stdin_bytes,
    whole_number,
)
from pqadmin.commands.exit_codes import Exit
from pqadmin.commands.import_marks import ImportMark, MarkedPusher, last_mark
from pqadmin.commands.importer import CHUNK_ITEMS, Importer, ImportReport, StoppedAtBadEntry
from pqadmin.commands.progress import ImportProgress, place
from pqadmin.commands.stop_signals import Interrupted, Interruption
from pqadmin.commands.store_command import Options, StoreCommand, os_user
from pqadmin.display.format import visible
from pqadmin.files import formats
from pqadmin.files.entries import BadFormat, FewerLines
from queues import AnyQueue, Queue, Store
from queues.errors import OutcomeUnknown, QueueError, QueueNotFound, StoreError

_STDIN = "-"
#: The first bytes of every gzip file; no text begins with them.
_GZIP = b"\x1f\x8b"


class BadLines(CommandError):
    """Some lines of the file could not be pushed."""


class Command(StoreCommand):
    """Push the items of an NDJSON or CSV file.

    A line of NDJSON is {"value" | "value_base64" | "value_json": …, "priority": …}, and CSV has columns of these names.
    Bad lines are reported by number and left out. Exit code 0: all is pushed; 3: all but some bad lines; 1: failed, or
    all lines were bad.
    """

    arguments = (
        QUEUE,
        Argument("file", help="- reads standard input"),
        FORMAT,
        OneOf(
            Argument("--skip", type=line_number, default=0, metavar="N", help="begin after line N"),
            flag(
                "--resume",
                "begin where the last import of this file ended, by the audit; without a mark there at line 1",
            ),
        ),
        flag("--strict", "stop at the first bad line"),
        flag("--create", "create the queue when it does not exist, of this --kind, --priority-type and --codec"),
        KIND,
        PRIORITY_TYPE,
        CODEC,
        Argument(
            "--chunk", type=whole_number, default=CHUNK_ITEMS, metavar="N", help="items a commit (default: %(default)s)"
        ),
        flag("--quiet", "no progress; bad lines and the result are shown"),
    )

    def run(self, store: Store, options: Options) -> None:
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
            how = {"quiet": options["quiet"], "as_json": bool(options["json"]), "as_lines": options["file"] == _STDIN}
            with ImportProgress(self.progress_stream(), total=total, **how) as progress:
                if mark is not None:
                    progress.resumed(mark)
                elif options["resume"]:
                    progress.unmarked()
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
                    codec=queue.config.values,
                    skip=start,
                )
                failure = _failure(importer, outcomes)
                if failure is None or isinstance(failure, BadLines):
                    progress.finished()
        report = importer.report
        items = "1 item" if report.items == 1 else f"{report.items} items"
        self.answer(
            {"queue": queue.name, **asdict(report)},
            f"Imported {items} into {queue.name}. Last committed line: {report.last_line}.",
        )
        if failure is not None:
            raise failure from failure.__cause__

    def _queue(self, store: Store, options: Options) -> AnyQueue:
        try:
            return store.queue(options["queue"])
        except QueueNotFound:
            if not options["create"]:
                raise
        return self.create(store, options)

    def _mark(self, store: Store, queue: Queue, source: str, options: Options) -> ImportMark | None:
        """Return the mark of an earlier import of the file, if it is resumed."""
        if not options["resume"]:
            return None
        if options["file"] == _STDIN:
            raise CommandError("--resume needs a file to recognize; with standard input use --skip.")
        return last_mark(store, queue, source)


def _failure(importer: Importer, outcomes: Iterator[Any]) -> CommandError | None:
    """Run the import; return the error that ends the command, None when all is well."""
    error: BaseException
    returncode = 1
    try:
        report = importer.run(outcomes)
    except FewerLines:
        raise
    except StoppedAtBadEntry as stop:
        error, message = stop, f"{place(stop.entry)}: {visible(str(stop))}. Stopped (--strict)."
    except OutcomeUnknown as unknown:
        error, message = unknown, f"{unknown} Look with --resume: the audit tells whether the last chunk is in."
    except (QueueError, StoreError, BadFormat, OSError) as failed:
        error, message = failed, str(failed)
    except Interrupted as stop:
        error, message, returncode = stop, "Interrupted.", Exit.INTERRUPTED
    else:
        if not report.bad:
            return None
        lines = "1 bad line was" if report.bad == 1 else f"{report.bad} bad lines were"
        return BadLines(f"{lines} left out.", returncode=Exit.SOME_BAD if report.items else Exit.FAILED)
    told = f"{message} {_how_to_continue(importer.report, sure=not isinstance(error, OutcomeUnknown))}".rstrip()
    failure = CommandError(told, returncode=returncode)
    failure.__cause__ = error
    return failure


def _how_to_continue(report: ImportReport, *, sure: bool) -> str:
    line = report.last_line
    if line:
        return f"Committed to line {line}: continue with --skip {line}."
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
