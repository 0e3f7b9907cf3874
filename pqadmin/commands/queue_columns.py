"""Lines of queues for terminals of any width: the shape of the level, the name, and numbers in columns."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from pqadmin.commands.tables import LEVEL_SIGNS, depth_text, lookalike_text, number_text, queue_table, verdict_text
from pqadmin.display import format as write
from pqadmin.live.board.rows import Row
from queues.errors import display_name

#: The narrowest screen with verdicts on the lines of queues.
WIDE = 110
#: The narrowest one for a table with kinds, ends and consumers.
_TABLE = 130
#: The fewest cells of a name for which all columns are shown; for less room these are left out, the first one first.
_LEAST_NAME = 14
_LEFT_OUT = ("Delayed", "Leased", "Out/s", "In/s", "Oldest", "Dead")
_Column = tuple[str, int, Callable[[Row, datetime], str]]


def _depth_column(state: str, size: int) -> _Column:
    """Return the column of a state's depths, in short where the digits have no room."""

    def cell(row: Row, now: datetime) -> str:
        n = getattr(row.status.totals, state)
        told = depth_text(row.status) if state == "ready" else number_text(row.status, n)
        return told if cell_len(told) < size else ("≈" if row.status.attached else "") + write.brief(n)

    return state.capitalize(), size, cell


_COLUMNS: tuple[_Column, ...] = (
    _depth_column("ready", 9),
    _depth_column("delayed", 8),
    _depth_column("leased", 7),
    _depth_column("dead", 6),
    ("In/s", 7, lambda row, now: write.rate(row.rate_in)),
    ("Out/s", 7, lambda row, now: write.rate(row.rate_out)),
    ("Oldest", 8, lambda row, now: "" if row.status.oldest is None else write.age_since(row.status.oldest, now)),
)


class QueueColumns:
    """The columns of a screen: with rates or without, and with or without verdicts on the lines."""

    def __init__(self, width: int, *, verdicts: bool, rates: bool = True) -> None:
        self._columns = [column for column in _COLUMNS if rates or not column[0].endswith("/s")]
        self._verdicts = verdicts
        for left_out in _LEFT_OUT:
            if self._room(width) < _LEAST_NAME:
                self._columns = [column for column in self._columns if column[0] != left_out]
        room = self._room(width)
        self._name = max(8, min(40, room // 2) if verdicts else room)

    def _room(self, width: int) -> int:
        return width - 3 - sum(size for _, size, _ in self._columns)

    @property
    def head(self) -> Text:
        """The names of the columns."""
        names = "   " + _fitted("Queue", self._name) + "".join(right(name, size) for name, size, _ in self._columns)
        return Text(names + ("  Verdict" if self._verdicts else ""), "dim")

    def line(self, row: Row, now: datetime) -> Text:
        """Return the line of a queue."""
        sign, color = LEVEL_SIGNS[row.level]
        text = Text.assemble((f" {sign} ", color), _fitted(display_name(row.status.name), self._name))
        for name, size, cell in self._columns:
            text.append(right(cell(row, now), size), "red" if name == "Dead" and row.status.totals.dead else "")
        return text + Text("  ") + verdict_text(row, now) if self._verdicts else text


def queue_list(rows: Sequence[Row], now: datetime, *, width: int, rates: bool) -> RenderableType:
    """Return the list of queues that fits a width: a table, or lines."""
    if width >= _TABLE:
        return queue_table(rows, now, rates=rates)
    return Group(*_lines(rows, now, width=width, rates=rates))


def _lines(rows: Sequence[Row], now: datetime, *, width: int, rates: bool) -> Iterator[RenderableType]:
    """Yield a line for each queue, and below it why it is not ok."""
    columns = QueueColumns(width, verdicts=False, rates=rates)
    yield columns.head
    for row in rows:
        yield columns.line(row, now)
        if row.level != "ok":
            yield Padding(verdict_text(row, now), (0, 0, 0, 5))
        if looks := lookalike_text(row.status.name):
            yield Padding(looks, (0, 0, 0, 5))


def _fitted(text: str, width: int) -> str:
    """Return text in exactly so many cells; a long one loses its middle, as names differ at their ends."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    half = (width - 1) // 2
    begin = set_cell_size(text, half).rstrip()
    return set_cell_size(f"{begin}{write.ELLIPSIS}{text[-(width - cell_len(begin) - 1) :]}", width)


def right(text: str, width: int) -> str:
    """Return text at the right of so many cells; one that is too long is cut, and says so."""
    if cell_len(text) >= width:
        text = set_cell_size(text, width - 2).rstrip() + write.ELLIPSIS
    return " " * (width - cell_len(text)) + text
