"""Tables of queues, items and bulk jobs for terminals.

Names, priorities and values are untrusted text: they are written as visible characters, never as markup.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from io import TextIOBase
from typing import IO, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pqadmin.display import format as write
from pqadmin.display import items as foreign
from pqadmin.display.format import age_since, clock, counted, number, visible
from pqadmin.display.redaction import NOTHING
from pqadmin.live import words as live_words
from pqadmin.live.board.rows import Row, depth_of
from queues import Item, Job, QueueStatus
from queues.admin import HealthTrend, described_name, lookalikes
from queues.errors import display_name

#: Width of a table in a file or a pipe: nothing is folded.
_PIPE_WIDTH = 200
#: Characters of an item's value on its line.
_VALUE_WIDTH = 60


Stream = IO[str] | TextIOBase


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command, which ends the same way for all output."""
        raise BrokenPipeError


def console(stream: Stream) -> Console:
    """Return a console on a stream; into a pipe it writes plain text."""
    return _Console(
        file=cast(IO[str], stream),
        width=None if stream.isatty() else _PIPE_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )


def lookalike_text(name: str) -> Text | None:
    """Return the mark of a queue's name that looks like another name."""
    letters = lookalikes(name)
    return Text(f"(looks like another name: {described_name(letters)})", "yellow") if letters else None


def _name(name: str) -> Text:
    """Write a queue's name, with a mark behind one that looks like another name."""
    shown, mark = Text(display_name(name), "bold"), lookalike_text(name)
    return shown if mark is None else shown + Text("  ") + mark


#: How a level is shown: its shape and its color.
LEVEL_SIGNS = {"critical": ("■", "red"), "warning": ("▲", "yellow"), "unknown": ("◌", "dim"), "ok": ("●", "green")}


def queue_table(rows: Sequence[Row], now: datetime, *, rates: bool) -> Table:
    """Return a wide table with a line for each queue: states, ends, oldest age, consumers and verdict."""
    columns: list[tuple[str, Callable[[Row], Text]]] = [
        ("Queue", lambda row: _name(row.status.name)),
        ("Kind", lambda row: Text(_kind(row.status))),
        (">Ready", lambda row: Text(depth_text(row.status))),
        (">Delayed", lambda row: Text(number_text(row.status, row.status.totals.delayed))),
        (">Leased", lambda row: Text(number_text(row.status, row.status.totals.leased))),
        (">Dead", lambda row: dead_text(row.status)),
        (">In/s", lambda row: Text(write.rate(row.rate_in))),
        (">Out/s", lambda row: Text(write.rate(row.rate_out))),
        ("Min", lambda row: Text("" if row.status.min is None else foreign.priority_short(row.status.min))),
        ("Max", lambda row: Text("" if row.status.max is None else foreign.priority_short(row.status.max))),
        (">Oldest", lambda row: Text("" if row.status.oldest is None else write.age_since(row.status.oldest, now))),
        (">Consumers", lambda row: Text(number(row.status.live_consumers))),
        ("Verdict", lambda row: verdict_text(row, now)),
    ]
    shown = [(name, cell) for name, cell in columns if rates or not name.endswith("/s")]
    table = _table(name for name, _ in shown)
    table.columns[-1].no_wrap = False  # verdicts take more lines, so that names are whole
    for row in rows:
        table.add_row(*(cell(row) for _, cell in shown))
    return table


def verdict_text(row: Row, now: datetime) -> Text:
    """Write the verdict on a queue in one line: the shape and word of its level, its reasons, its trend."""
    sign, color = LEVEL_SIGNS[row.level]
    words = [sign + " " + live_words.verdict_words(row, now)]
    if row.status.attached:
        words.append(live_words.counted_words(row.status.counted_at, now))
    elif row.verdict.trend in _TOLD_TRENDS:
        words.append(live_words.trend_words(row))
    return Text(visible(" · ".join(words)), color)


#: Trends that no reason tells.
_TOLD_TRENDS = (HealthTrend.EMPTY, HealthTrend.STEADY, HealthTrend.DRAINING)


def dead_text(status: QueueStatus) -> Text:
    """Write the number of dead items, red where there are any."""
    return Text(number_text(status, status.totals.dead), "red" if status.totals.dead else "")


def _kind(status: QueueStatus) -> str:
    return "" if status.unreadable else "fifo" if status.kind == "fifo" else status.priority_type


def print_items(output: Console, items: Iterable[Item], now: datetime) -> None:
    """Print one line for each item: priority, age, size, value, id, and what its state adds."""
    found = list(items)
    added = [(name, cell) for name, cell in _OF_STATES if any(cell(item, now) for item in found)]
    table = _table((">Priority", ">Age", ">Bytes", "Value", *(name for name, _ in added), "Id"))
    for column in table.columns:  # these shrink on a narrow terminal, so that ids are complete
        column.no_wrap = column.header not in ("Value", "Reason")
    for item in found:
        table.add_row(
            Text(foreign.priority_short(item)),
            Text(age_since(item.since, now)),
            Text(number(item.size)),
            _shrinking(foreign.preview(item, NOTHING, _VALUE_WIDTH)),
            *(_shrinking(cell(item, now)) for _, cell in added),
            Text(item.id, "dim"),
        )
    output.print(table)


def print_attempts(output: Console, item: Item) -> None:
    """Print the attempts of an item, the last one at the end."""
    for one in item.attempt_log:
        how = ("lease expired" if one.expired else "released") + (", dead" if one.died else "")
        began, ended = (at.isoformat(sep=" ", timespec="seconds")[:19] for at in (one.began_at, one.ended_at))
        output.print(_text(f"Attempt {one.number} of {one.worker}: {how}, {began} to {ended} UTC"), soft_wrap=True)
        for line in (one.error, *one.traceback.split("\n")):
            if line:
                output.print(Text("  ") + _text(line), soft_wrap=True)


def _moment(at: datetime | None, now: datetime) -> str:
    return "" if at is None else clock(at, now)


#: Columns that are shown where any item has something in them.
_OF_STATES: tuple[tuple[str, Callable[[Item, datetime], str]], ...] = (
    ("Due", lambda item, now: _moment(item.due_at, now)),
    ("Worker", lambda item, now: visible(item.worker)),
    ("Until", lambda item, now: _moment(item.expires_at, now)),
    ("Died", lambda item, now: _moment(item.died_at, now)),
    (">Attempts", lambda item, now: number(item.attempts) if item.attempts else ""),
    ("Reason", lambda item, now: visible(item.reason)),
)


def print_jobs(output: Console, jobs: Sequence[Job], now: datetime) -> None:
    """Print one line for each bulk job: its start, action, status and progress."""
    table = _table(("Began", "What", "Queue", "Status", ">Changed", ">Of", "By", "Id"))
    for job in jobs:
        to = "" if job.to is None else f" → {job.to}"
        table.add_row(
            Text(clock(job.began_at, now)),
            Text(f"{job.act} {job.state}"),
            _text(job.queue + to, "bold"),
            _text(job.status, "red" if job.status == "failed" else "yellow" if job.running else ""),
            Text(number(job.done)),
            Text(number(job.total)),
            _text(job.by),
            Text(job.id, "dim"),
        )
    output.print(table)


def depth_text(status: QueueStatus) -> str:
    """Write the number of ready items; of an attached queue, as counted."""
    return counted(depth_of(status)) if status.attached else number(depth_of(status))


def number_text(status: QueueStatus, depth: int) -> str:
    """Return a depth; attached and unreadable queues have none."""
    return "" if status.unreadable or status.attached else number(depth)


def _table(columns: Iterable[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left", no_wrap=True)
    return table


def _shrinking(text: str) -> Text:
    """Return text that is cut, not folded, when its column shrinks."""
    return Text(text, no_wrap=True, overflow="ellipsis")


def _text(text: str, style: str = "") -> Text:
    return Text(visible(text), style)
