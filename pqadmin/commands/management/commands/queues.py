"""`pqadmin queues`: list the queues of a store with their verdicts."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol

from rich.console import RenderableType
from rich.live import Live

from pqadmin.commands.arguments import Argument, flag
from pqadmin.commands.board_reader import BoardReader
from pqadmin.commands.queue_columns import queue_list
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.commands.tables import console
from pqadmin.files.plain_text import json_text
from pqadmin.files.shapes import Shape, status_shape
from pqadmin.live.board.rows import Row
from queues import Store
from queues.admin import HealthLevel, canonical_name

#: Seconds that the list waits for the counts of attached queues.
_PATIENCE = 3.0


class _Show(Protocol):
    def __call__(self, before: Sequence[Row], rows: Sequence[Row], now: datetime, /) -> None: ...


class Command(StoreCommand):
    """List the queues: their verdicts, items in each state, both ends, oldest ages and consumers."""

    arguments = (
        Argument("--prefix", default="", help="only queues with a name that begins with this"),
        flag("--trouble", "only queues that are not ok, the worst first"),
        flag("--watch", "stay, and show every change until Ctrl-C; with --jsonl a line for each changed queue"),
    )
    listed = "queues"
    uses_models = True

    def run(self, store: Store, options: Options) -> None:
        """List the queues by name, or the worst first."""
        prefix = canonical_name(options["prefix"])
        reader = BoardReader(store, prefix)
        if options["watch"]:
            self._watch(reader, options)
            return
        rows, now = reader.counted(_PATIENCE)
        shown = _chosen(rows, options)
        if shown and not options["json"]:
            output = console(self.stdout)
            output.print(queue_list(shown, now, width=output.width, rates=False))
            return
        self.answer({"queues": _shapes(shown, now)}, _none(options))

    def _watch(self, reader: BoardReader, options: Options) -> None:
        before: Sequence[Row] | None = None
        with self.until_stopped(), self._screen(options) as show:
            for rows, now in reader.changes():
                chosen = _chosen(rows, options)
                if self.on_terminal or before is None or [*map(id, chosen)] != [*map(id, before)]:
                    show(before or (), chosen, now)
                before = chosen

    @property
    def on_terminal(self) -> bool:
        """Return whether the list is kept in place on a terminal, where ages go on."""
        return self.stdout.isatty() and not self._json

    @contextmanager
    def _screen(self, options: Options) -> Iterator[_Show]:
        """Yield what shows the queues: in place on a terminal, else anew, or as JSON."""
        output = console(self.stdout)

        def table(rows: Sequence[Row], now: datetime) -> RenderableType:
            return queue_list(rows, now, width=output.width, rates=True) if rows else _none(options)

        if options["json"]:
            yield self._tell
        elif self.on_terminal:
            with Live(console=output, auto_refresh=False, vertical_overflow="crop") as live:
                yield lambda before, rows, now: live.update(table(rows, now), refresh=True)
        else:
            yield lambda before, rows, now: output.print(table(rows, now))

    def _tell(self, before: Sequence[Row], rows: Sequence[Row], now: datetime) -> None:
        """Print a document of all, or a line for each queue that changed, is new or left the list."""
        if self.lines:
            known = {row.status.id: row for row in before}
            changed = [row for row in rows if known.pop(row.status.id, None) is not row]
            self.answer(
                {
                    "queues": [
                        *_shapes(changed, now),
                        *({"queue": row.status.name, "gone": True} for row in known.values()),
                    ]
                }
            )
        else:
            self.stdout.write(json_text({"queues": _shapes(rows, now)}))
        self.stdout.flush()


def _chosen(rows: Sequence[Row], options: Options) -> Sequence[Row]:
    """Return the rows that are asked for, in their order."""
    return sorted(filter(troubled, rows), key=lambda row: row.rank) if options["trouble"] else rows


def troubled(row: Row) -> bool:
    """Return whether a queue is not ok; nothing is known of attached ones, which is no trouble."""
    return row.verdict.level > HealthLevel.OK and row.mark != "attached"


def _shapes(rows: Sequence[Row], now: datetime) -> list[Shape]:
    return [status_shape(row.status, row.verdict, now, rate_in=row.rate_in, rate_out=row.rate_out) for row in rows]


def _none(options: Options) -> str:
    if options["trouble"]:
        return "No queue is in trouble."
    return "No queue begins with that." if options["prefix"] else "No queues."
