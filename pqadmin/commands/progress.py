"""The progress of an import on standard error: a bar on a terminal, JSON lines on demand, else nothing.

Of standard input alone each commit is a line everywhere: after a kill nothing else tells how far it came.
"""

from io import TextIOBase
from types import TracebackType
from typing import IO

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from pqadmin.commands.import_marks import ImportMark
from pqadmin.commands.importer import ImportReport
from pqadmin.commands.tables import console
from pqadmin.display.format import moment, number, visible
from pqadmin.files.entries import BadEntry
from pqadmin.files.plain_text import json_text
from pqadmin.files.shapes import Shape, time_shape

#: Bad lines that are shown with their reason; of the rest only the numbers.
SHOWN_BAD = 20
#: Ranges of line numbers that are printed in one line.
_RANGES = 100


class ImportProgress:
    """Shows the commits and the bad lines of an import. `total` is the file's size in bytes, None if unknown.

    With `as_json`, every line is a JSON object, on a terminal too. With `as_lines`, commits are lines where there is no
    terminal.
    """

    def __init__(
        self,
        stream: IO[str] | TextIOBase,
        *,
        total: int | None,
        quiet: bool,
        as_json: bool = False,
        as_lines: bool = False,
    ) -> None:
        self._stream = stream
        self._quiet = quiet
        self._as_json = as_json
        self._as_lines = as_lines or as_json
        self._total = total
        self._bad = 0
        #: First and last line of each range that is not printed yet.
        self._ranges: list[tuple[int, int]] = []
        self._bar: Progress | None = None
        self._task = TaskID(0)
        if not quiet and not as_json and stream.isatty():
            self._bar = Progress(
                BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn(), console=console(stream)
            )
            self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> "ImportProgress":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tell_ranges()
        if self._bar is not None:
            self._bar.stop()

    def resumed(self, mark: ImportMark) -> None:
        """Print the line after which an earlier import of the file is resumed."""
        if not self._quiet:
            at = f"committed {moment(mark.at)} by {visible(mark.actor)}"
            shape: Shape = {"last_line": mark.last_line, "at": time_shape(mark.at), "by": mark.actor}
            self._tell(f"Resuming after line {mark.last_line} ({at}).", {"resumed": shape})

    def unmarked(self) -> None:
        """Print, also with `--quiet`, that an import that was to be resumed begins at the first line."""
        told = "The audit has no mark of an earlier import of this file: beginning at the first line."
        self._tell(told, {"resumed": None})

    def committed(self, report: ImportReport, position: int | None) -> None:
        """Print a commit; `position` is how many bytes of the file are read."""
        if self._bar is not None:
            told = f"line {number(report.last_line)} · {number(report.items)} items"
            self._bar.update(self._task, completed=position or 0, description=told)
        elif self._as_lines and not self._quiet:
            items = "1 item" if report.items == 1 else f"{report.items} items"
            shape: Shape = {"last_line": report.last_line, "items": report.items}
            self._tell(f"Committed to line {report.last_line} ({items}).", {"committed": shape})

    def finished(self) -> None:
        """Show that the end of the file is reached."""
        if self._bar is not None and self._total is not None:
            self._bar.update(self._task, completed=self._total)

    def bad(self, entry: BadEntry) -> None:
        """Print a bad line, the first few at once with the reason, also with `--quiet`."""
        self._bad += 1
        if self._bad <= SHOWN_BAD:
            self._tell(f"{place(entry)}: {visible(entry.reason)}", _bad_shape(entry.first, entry.line, entry.reason))
        elif self._ranges and self._ranges[-1][1] + 1 == entry.first:
            self._ranges[-1] = (self._ranges[-1][0], entry.line)
        else:
            if len(self._ranges) == _RANGES:
                self._tell_ranges()
            self._ranges.append((entry.first, entry.line))

    def _tell_ranges(self) -> None:
        if self._as_json:
            for first, last in self._ranges:
                self._line(json_text(_bad_shape(first, last, None)))
            self._ranges = []
        told = [str(first) if first == last else f"{first}-{last}" for first, last in self._ranges]
        if told:
            one = len(told) == 1 and "-" not in told[0]
            self._line(f"Also bad: {'line' if one else 'lines'} {', '.join(told)}.")
        self._ranges = []

    def _tell(self, text: str, shape: Shape) -> None:
        self._line(json_text(shape) if self._as_json else text)

    def _line(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(Text(text))
        else:
            self._stream.write(text + "\n")
            self._stream.flush()


def _bad_shape(first: int, last: int, reason: str | None) -> Shape:
    return {"bad": {"first_line": first, "last_line": last, "reason": reason}}


def place(entry: BadEntry) -> str:
    """Name the line of an entry, or the lines of a CSV record."""
    return f"Line {entry.line}" if entry.first == entry.line else f"Lines {entry.first} to {entry.line}"
