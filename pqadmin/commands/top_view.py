"""The screen of `pqadmin top`: what is shown of the queues, and what keys change. It reads and writes nothing itself.

Names, priorities, values and reasons are untrusted text: they are written as visible characters.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from pqadmin.commands.queue_columns import WIDE, QueueColumns, right
from pqadmin.commands.tables import LEVEL_SIGNS, depth_text, verdict_text
from pqadmin.display import format as write
from pqadmin.display import items as foreign
from pqadmin.display.format import visible
from pqadmin.display.redaction import NOTHING
from pqadmin.live import words as live_words
from pqadmin.live.board.rows import Row
from pqadmin.live.board.sums import Summary, total_of
from queues import Consumer, Item, QueueStatus
from queues.errors import display_name

#: What rich asks for where text is wrapped; nothing is written to it.
_CONSOLE = Console(file=io.StringIO())
#: Lines of the block below the list, and of the head above it.
_BLOCK, _HEAD = 5, 3
#: Seconds without a reading after which the screen says how old it is.
_STALE = 5.0
_HELP = (
    ("↑ ↓ k j", "choose a queue; Page Up, Page Down, Home and End too"),
    ("Enter", "open the queue: its reasons, both ends, consumers"),
    ("Esc", "back; in the list: lift the filter"),
    ("p", "pause the queue, with a reason, or resume it"),
    ("/", "filter by a part of the name"),
    ("t", "only queues that are not ok"),
    ("s", "order: trouble, name, ready items, rate"),
    ("q", "quit, as Ctrl-C does"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The items at both ends of the queue that is open."""

    queue_id: int | None = None
    first: Sequence[Item] = ()
    last: Sequence[Item] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was read last."""

    rows: Sequence[Row] = ()
    now: datetime | None = None
    #: When that was, in seconds of a clock that does not go back.
    read: float = 0.0
    #: Why it could not be read since.
    failure: str = ""
    ends: Ends = field(default_factory=Ends)


#: Orders of the list by their names, each with its key.
ORDERS: dict[str, Callable[[Row], tuple[object, ...]]] = {
    "trouble": lambda row: (row.rank, row.status.name),
    "name": lambda row: (row.status.name,),
    "ready": lambda row: (-(row.ready or 0), row.status.name),
    "rate": lambda row: (-((row.rate_in or 0.0) + (row.rate_out or 0.0)), row.status.name),
}


@dataclass(slots=True, kw_only=True)
class View:
    """What the person at the terminal has chosen."""

    url: str = ""
    order: str = "trouble"
    only_trouble: bool = False
    pattern: str = ""
    chosen: int | None = None
    first: int = 0
    #: list, open or help; and what is typed: filter, reason, resume, or nothing.
    mode: str = "list"
    typing: str = ""
    typed: str = ""
    message: str = ""
    #: Asked for by a key: quit, suspend, pause or resume.
    wish: str = ""
    seen: Seen = field(default_factory=Seen)

    # What is shown

    def rows(self) -> list[Row]:
        """Return the rows of the list, in its order."""
        part = self.typed if self.typing == "filter" else self.pattern
        rows = [row for row in self.seen.rows if part.casefold() in row.status.name.casefold()]
        if self.only_trouble:
            rows = [row for row in rows if row.level != "ok" and row.mark != "attached"]
        return sorted(rows, key=ORDERS[self.order])

    def row(self) -> Row | None:
        """Return the chosen queue's row."""
        return next((row for row in self.seen.rows if row.status.id == self.chosen), None)

    # Keys

    def key(self, name: str, height: int) -> None:
        """Follow a key."""
        self.wish, self.message = "", ""
        if name == "suspend":
            self.wish = name
        elif self.typing:
            self._type(name)
        elif name in ("q", "Q"):
            self.wish = "quit"
        elif name == "?":
            self.mode = "list" if self.mode == "help" else "help"
        elif name in ("escape", "backspace"):
            self.mode, self.pattern = "list", self.pattern if self.mode != "list" else ""
        elif self.mode != "help":
            self._act(name, max(1, height - _HEAD - _BLOCK - 2))

    def _type(self, name: str) -> None:
        what = self.typing
        if name == "escape":
            self.typing = self.typed = ""
        elif what == "resume":
            self.typing = ""
            self.wish = "resume" if name in ("y", "Y", "enter") else ""
        elif name == "enter":
            if what == "filter":
                self.pattern, self.typing, self.typed = self.typed, "", ""
            elif self.typed.strip():
                self.typing, self.wish = "", "pause"
        elif name in ("backspace", "clear"):
            self.typed = self.typed[:-1] if name == "backspace" else ""
        elif len(name) == 1:
            self.typed += name

    def _act(self, name: str, page: int) -> None:
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page-up": -page, "page-down": page}
        steps |= {"home": -(10**9), "end": 10**9}
        row = self.row()
        if name in steps:
            self._choose(steps[name])
        elif name == "enter" and row is not None:
            self.mode = "open"
        elif name == "p" and row is not None:
            if row.status.attached or row.status.unreadable:
                self.message = "This queue cannot be paused."
            else:
                self.typing, self.typed = ("reason" if row.status.pause is None else "resume"), ""
        elif self.mode == "list" and name == "/":
            self.typing, self.typed = "filter", self.pattern
        elif self.mode == "list" and name == "t":
            self.only_trouble = not self.only_trouble
        elif self.mode == "list" and name == "s":
            names = [*ORDERS]
            self.order = names[(names.index(self.order) + 1) % len(names)]

    def _choose(self, step: int) -> None:
        ids = [row.status.id for row in self.rows()]
        if ids:
            at = ids.index(self.chosen) if self.chosen in ids else 0
            self.chosen = ids[min(max(at + step, 0), len(ids) - 1)]

    # Drawing

    def draw(self, width: int, height: int, clock: float) -> Text:
        """Return the whole screen: so many lines, none wider."""
        rows = self.rows()
        if self.mode != "open" and self.chosen not in {row.status.id for row in rows}:
            self.chosen = rows[0].status.id if rows else None
        body = height - _HEAD
        lines = [self._title(width, clock), self._sums(width)]
        if self.mode == "help":
            lines += [Text(), *(Text(f"  {keys:<10}{what}") for keys, what in _HELP)]
        elif self.mode == "open":
            lines += [Text(), *self._open(body - 1)]
        else:
            lines += self._list(rows, width, body)
        lines = lines[: height - 1]
        lines += [Text()] * (height - 1 - len(lines)) + [self._foot(width)]
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return Text("\n").join(lines)

    def _title(self, width: int, clock: float) -> Text:
        now, seen = self.seen.now, self.seen
        levels = live_words.levels_words(_sum(seen.rows, now).levels) if now is not None else ""
        left = Text.assemble((" pqadmin top", "bold"), f" · {_count(len(seen.rows), 'queue')} · {levels}")
        age = clock - seen.read
        right = "reading…" if now is None else f"{now:%H:%M:%S} UTC "
        if seen.failure or (now is not None and age > _STALE):
            right = f"{write.age(age)} old: {visible(seen.failure) or 'no answer'} "
        room = max(0, width - left.cell_len - cell_len(right))
        return left + Text(" " * room) + Text(right, "reverse red" if "old: " in right else "dim")

    def _sums(self, width: int) -> Text:
        if self.seen.now is None:
            return Text(f" {visible(self.url)}", "dim")
        total = _sum(self.seen.rows, self.seen.now)
        told = f" {write.number(total.ready)} ready · {write.number(total.delayed)} delayed · "
        told += f"{write.number(total.leased)} leased · {write.number(total.dead)} dead · "
        told += f"{write.rate(total.rate_in)}/s in · {write.rate(total.rate_out)}/s out"
        return Text(told if width < WIDE else f"{told} · {visible(self.url)}", "dim")

    def _list(self, rows: Sequence[Row], width: int, height: int) -> list[Text]:
        columns = QueueColumns(width, verdicts=width >= WIDE)
        room = max(1, height - 1 - _BLOCK)
        ids = [row.status.id for row in rows]
        at = ids.index(self.chosen) if self.chosen in ids else 0
        self.first = min(max(self.first, at - room + 1, 0), at, max(0, len(rows) - room))
        now = self.seen.now
        shown = [columns.line(row, now) for row in rows[self.first : self.first + room]] if now is not None else []
        if shown and self.chosen in ids:
            shown[at - self.first].stylize("reverse")
        if not shown:
            none = "Reading the queues…" if now is None else "No queues." if not self.seen.rows else "No queue fits."
            shown = [Text(f"  {none}", "dim")]
        return [columns.head, *shown, *[Text()] * (room - len(shown)), *self._block(width)]

    def _block(self, width: int) -> list[Text]:
        """Tell of the chosen queue what the list has no room for."""
        row, now = self.row(), self.seen.now
        if row is None or now is None:
            return []
        status = row.status
        kind = "unreadable" if status.unreadable else "fifo" if status.kind == "fifo" else status.priority_type
        known = status.live_consumers
        consumers = "consumers unknown" if known is None else _count(known, "consumer")
        title = f"── {display_name(status.name)} ── {kind} · {consumers} "
        verdict = verdict_text(row, now).wrap(_CONSOLE, max(1, width - 1))[:2]
        ends = [
            _item_line(word, item, now) for word, item in (("min", status.min), ("max", status.max)) if item is not None
        ]
        rule = Text(title + "─" * max(0, width - cell_len(title)), "dim")
        return [rule, *(Text(" ") + one for one in verdict), *ends][:_BLOCK]

    def _open(self, height: int) -> list[Text]:
        """Tell all of the chosen queue."""
        row, now = self.row(), self.seen.now
        if row is None or now is None:
            return [Text(" This queue was deleted.", "dim")]
        status = row.status
        lines = [*_standing(row, now)]
        consumers = [_consumer_line(one) for one in status.consumers.live]
        room = max(2, height - len(lines) - 3 - min(len(consumers), 4))
        names = ("Head", "Tail") if status.kind == "fifo" else ("Min end", "Max end")
        for name, items, share in zip(names, self._ends(status), (room // 2, room - room // 2), strict=True):
            if items:
                lines += [Text(f" {name}", "dim"), *(_item_line("", item, now) for item in items[:share])]
        if consumers:
            lines += [Text(f" {_count(len(consumers), 'consumer')}", "dim"), *consumers]
        return lines

    def _ends(self, status: QueueStatus) -> tuple[Sequence[Item], Sequence[Item]]:
        """Return the items at both ends; until they are read, the first of each."""
        ends = self.seen.ends
        if ends.queue_id == status.id:
            return ends.first, ends.last
        return [status.min] if status.min else [], [status.max] if status.max else []

    def _foot(self, width: int) -> Text:
        row = self.row()
        name = "" if row is None else display_name(row.status.name)
        asked = {"filter": " Filter: ", "reason": f" Pause {name}, because: ", "resume": f" Resume {name}? (y) "}
        if self.typing:
            question = asked[self.typing]
            room = max(10, width - cell_len(question) - 2)
            return Text.assemble((question, "bold"), visible(self.typed)[-room:], ("▏", "bold"))
        if self.message:
            return Text(f" {visible(self.message)}", "bold")
        if self.mode != "list":
            more = "" if self.mode == "help" else "  ↑↓ next queue  p pause or resume  q quit"
            return Text(f" Esc back{more}", "dim")
        trouble, part = "trouble only" * self.only_trouble, f"/{visible(self.pattern)}" if self.pattern else ""
        chosen = ", ".join(filter(None, [self.order, trouble, part]))
        keys = "⏎ open  p pause  / filter  t trouble  s order  ? help  q quit"
        return Text(f" {keys}  [{chosen}]" if chosen == self.order or width >= WIDE else f" [{chosen}]  {keys}", "dim")


def _standing(row: Row, now: datetime) -> Iterator[Text]:
    """Yield the verdict on a queue with all reasons, its numbers and its notes, a line each."""
    status, totals = row.status, row.status.totals
    sign, color = LEVEL_SIGNS[row.level]
    yield Text.assemble((f" {sign} {live_words.level_word(row.level)}  ", color), (display_name(status.name), "bold"))
    for reason in row.verdict.reasons:
        told = live_words.reason_words(row, reason, now, whole=True)
        since = live_words.detail_words(reason, now)
        yield Text(f"   {write.one_line(told)} · {since}", LEVEL_SIGNS[reason.level.name.lower()][1])
    yield Text("   " + " · ".join(filter(None, [live_words.trend_words(row), live_words.flag_words(row)])))
    yield Text(
        f"   {depth_text(status)} ready · {write.number(totals.delayed)} delayed · {write.number(totals.leased)} leased"
        f" · {write.number(totals.dead)} dead · {write.rate(row.rate_in)}/s in · {write.rate(row.rate_out)}/s out"
    )
    for word, at in (("next due", status.next_due), ("next expiry", status.next_expiry)):
        if at is not None:
            yield Text(f"   {word} {live_words.countdown_words(at, now)}", "dim")
    for word, text in (("note", status.note), ("runbook", status.runbook)):
        if text:
            yield Text(f"   {word}: {write.one_line(text)}", "dim")


def _consumer_line(one: Consumer) -> Text:
    """Write a consumer: where it runs, its name, its pace and its leases."""
    name = visible(one.worker or one.program)
    return Text(f"   {visible(one.host)}:{one.pid} {name} · {write.rate(one.rate)}/s · holds {write.number(one.holds)}")


def _item_line(word: str, item: Item, now: datetime) -> Text:
    """Write an item of an end: its priority, age and value."""
    priority, age = foreign.priority_short(item), write.age_since(item.since, now)
    told = f" {word:<4}{right(priority, write.PRIORITY_WIDTH + 1)}  {right(age, 7)}  "
    return Text.assemble((told, "dim"), foreign.preview(item, NOTHING, 200))


def _sum(rows: Sequence[Row], now: datetime) -> Summary:
    return total_of(rows, queues=len(rows), as_of=now)


def _count(n: int, what: str) -> str:
    return f"{write.number(n)} {what}{'' if n == 1 else 's'}"
