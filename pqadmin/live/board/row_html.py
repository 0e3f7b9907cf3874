"""Rows of the overview as HTML, built by one function and no template.

A page of a busy site shows a hundred rows of forty values each; a template would take most of the request's time.
Everything but our own numbers goes through `_safe`. The markup is the contract with `static/pqadmin/js`: `data-field`
and `data-part` name what the live view writes to. It holds between server and scripts of one release only
(`pqadmin.live.asset_version`).

A row is built once for all readers as long as it stays the same; only ages and other texts that follow the clock are
written for each request.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from datetime import datetime
from html import escape
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, gettext_lazy

from pqadmin.display import format as write
from pqadmin.display import items
from pqadmin.display.addresses import queue_url
from pqadmin.display.redaction import NOTHING, Redaction, rules_of
from pqadmin.live.board.rows import Row
from pqadmin.live.board.sparklines import COLUMNS as COLUMNS_OF_LINE
from pqadmin.live.board.sparklines import HEIGHT
from pqadmin.live.words import attached_title, countdown_words, counted_words, tells_time, trend_words, verdict_words
from queues import Band, Item
from queues.admin import HealthCode, described_name, lookalikes

#: Reasons that say that nothing is taken or finished; row.js has the same.
STALLED = frozenset({HealthCode.NO_CONSUMER, HealthCode.NONE_TAKEN, HealthCode.NOTHING_DONE})
#: Columns of the table, without and with the actions.
COLUMNS = 7
_END_WIDTH = 64


#: Words that every row repeats.
_LABELS = {
    "ready": gettext_lazy("ready"),
    "rate_in": gettext_lazy("in/s"),
    "rate_out": gettext_lazy("out/s"),
    "oldest": gettext_lazy("oldest age"),
    "delayed": gettext_lazy("delayed"),
    "leased": gettext_lazy("leased"),
    "dead": gettext_lazy("dead"),
    "note": gettext_lazy("nothing ready"),
    "push": gettext_lazy("Push"),
    "enqueue": gettext_lazy("Enqueue"),
    "favorite": gettext_lazy("Favorite"),
    "no_rate": gettext_lazy("Unknown: what other programs push and take is not seen."),
    "no_age": gettext_lazy("Unknown: the keys of other programs do not say when an item was pushed."),
}


def _labels() -> SimpleNamespace:
    """Return the words in the reader's language, escaped."""
    return SimpleNamespace(**{name: escape(str(words)) for name, words in _LABELS.items()})


def render_rows(
    rows: Iterable[Row],
    *,
    now: datetime,
    can_act: bool,
    acts_on: Callable[[str], bool] = lambda _: True,
    stars: Container[int] = (),
    lines: Mapping[int, str] = MappingProxyType({}),
) -> SafeString:
    """Render rows of the overview's table.

    `can_act` says whether there is a column of acts, `acts_on` in which row, `stars` which queues are favorites.
    `lines` are the paths of their sparklines.
    """
    language = get_language() or ""
    labels: SimpleNamespace | None = None
    html: list[str] = []
    for row in rows:
        status = row.status
        acts = acts_on(status.name) if can_act else None
        key = (status.id, language, acts, status.id in stars)
        line = lines.get(status.id, "")
        drawn = _drawn.get(key)
        if drawn is None or drawn.row is not row or drawn.line != line:
            labels = labels or _labels()
            drawn = _draw(row, labels, acts, key[3], line)
            if len(_drawn) >= _MAX_DRAWN:
                for oldest in tuple(_drawn)[: _MAX_DRAWN // 4]:
                    _drawn.pop(oldest, None)
            _drawn[key] = drawn
        html.append(drawn.at(now))
    return mark_safe("".join(html))  # noqa: S308 # escaped piece by piece


class _Pen:
    """Collects the texts that follow the clock, with a mark in the place of each."""

    def __init__(self) -> None:
        self.moments: list[tuple[Callable[[Any, datetime], str], Any]] = []

    def __call__(self, words: Callable[[Any, datetime], str], of: object) -> str:
        self.moments.append((words, of))
        return f"{_MARK}{len(self.moments) - 1}{_MARK}"


class _Drawn(NamedTuple):
    """A row as HTML: pieces, and in every second place the number of what follows the clock."""

    row: Row
    line: str
    pieces: tuple[str, ...]
    moments: tuple[tuple[Callable[[Any, datetime], str], Any], ...]

    def at(self, now: datetime) -> str:
        """Return the row as of now."""
        words = [escape(tell(of, now)) for tell, of in self.moments]
        pieces = list(self.pieces)
        for place in range(1, len(pieces), 2):
            pieces[place] = words[int(pieces[place])]
        return "".join(pieces)


#: Rows as they were built last, by queue, language, right to act, and star.
_drawn: dict[tuple[int, str, bool | None, bool], _Drawn] = {}
#: Some 2 kB each.
_MAX_DRAWN = 4_000
#: In no HTML: `_safe` removes it from text.
_MARK = "\0"


def _safe(text: str) -> str:
    return escape(text).replace(_MARK, "\ufffd")


def _safe_between_tags(text: str) -> str:
    """As `_safe`, but with quotes as they are: values have many of them."""
    return escape(text, quote=False).replace(_MARK, "\ufffd")


def _draw(row: Row, labels: SimpleNamespace, acts: bool | None, starred: bool, line: str) -> _Drawn:
    pen = _Pen()
    html = _row(row, pen, labels, acts, starred, line)
    return _Drawn(row, line, tuple(html.split(_MARK)), tuple(pen.moments))


def render_blank_row(*, can_act: bool, acts_on_all: bool = True) -> SafeString:
    """Render the row that the live view copies for a queue that comes new."""
    labels = _labels()
    push = f'<a class="button small" href="" data-part="push">{labels.push}</a>'
    cells = _cells(
        labels,
        counted='<small class="counted" data-field="counted" hidden></small>',
        oldest='<time data-age hidden datetime=""></time>',
        ends=(_end("min", None, None), _end("max", None, None)),
        mix=_mix(()),
        name=_named('<a href="" data-part="link"><bdi data-part="name"></bdi></a>', _star(labels, "", starred=False)),
        action=(push if acts_on_all else "") if can_act else None,
    )
    return mark_safe(f'<tr data-queue="" data-level="unknown" data-mark="">{cells}</tr>')  # noqa: S308 # as a drawn row


def _alike(name: str) -> str:
    """Return the mark of a name that looks like another one; `rename` in row.js makes the same."""
    letters = lookalikes(name)
    if not letters:
        return ""
    words = _safe(described_name(letters))
    return f'<small class="tag" data-part="alike" role="img" title="{words}" aria-label="{words}">≈</small>'


def _star(labels: SimpleNamespace, queue_id: object, starred: bool) -> str:
    verb, sign = ("off", "★") if starred else ("on", "☆")
    pressed = "true" if starred else "false"
    return (
        f'<button class="star" form="stars" name="{verb}" value="{queue_id}" aria-pressed="{pressed}" '
        f'title="{labels.favorite}"><span aria-hidden="true">{sign}</span></button>'
    )


def _named(link: str, star: str) -> str:
    """Name a star by the link beside it: a hundred names in attributes are 400 bytes a page."""
    return f"<label>{link}{star}</label>"


def _line(path: str) -> str:
    if not path:
        return ""
    return (
        f'<svg class="spark" viewBox="0 0 {COLUMNS_OF_LINE} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f'<path d="{_area(path)}"/></svg>'
    )


def _area(path: str) -> str:
    """Return the outline of the area under a line, each part closed at the ground."""
    parts = [part.split(" ", 1) for part in path.split("M")[1:]]
    return "".join(f"M{start} {HEIGHT}V{line}V{HEIGHT}z" for start, line in parts)


def _row(row: Row, pen: _Pen, labels: SimpleNamespace, acts: bool | None, starred: bool, line: str) -> str:
    status, totals, rules = row.status, row.status.totals, rules_of(row.status.redact)
    group, rest = write.split_name(status.name)
    url, shown = _safe(queue_url(status.name)), _safe(group + rest)
    verb = labels.enqueue if status.kind == "fifo" else labels.push
    push = f'<a class="button small" href="{url}push/" data-part="push" aria-label="{verb}: {shown}">{verb}</a>'
    cells = _cells(
        labels,
        words=pen(verdict_words, row) if tells_time(row) else _safe(verdict_words(row, row.as_of)),
        ready=row.ready,
        counted=_counted(row, pen) if status.attached else "",
        rates=(row.rate_in, row.rate_out),
        oldest=write.UNKNOWN if status.oldest is None else _age(status.oldest, pen),
        also=(totals.delayed, totals.leased, totals.dead),
        moments=(status.next_due, status.next_expiry),
        pen=pen,
        ends=tuple(
            _end(end, item, pen, rules, status.preview) for end, item in (("min", status.min), ("max", status.max))
        ),
        mix=_mix(status.bands),
        trend=(row.trend, _safe(trend_words(row))),
        name=_named(
            f'<a href="{url}" data-part="link">'
            f'<bdi data-part="name">{_safe(group)}{"<wbr>" if group else ""}<b>{_safe(rest)}</b></bdi></a>'
            f"{_alike(status.name)}",
            _star(labels, status.id, starred),
        ),
        action=None if acts is None else push if acts else "",
        line=_line(line),
        attached=_safe(attached_title(status.prefix)) if status.attached else "",
    )
    going_on = (reason.code for reason in row.verdict.reasons if reason.until is None)
    stalled = " data-stalled" if STALLED.intersection(going_on) else ""
    name = _safe(status.name)
    return f'<tr data-queue="{name}" data-level="{row.level}" data-mark="{row.mark}"{stalled}>{cells}</tr>\n'


def _cells(
    labels: SimpleNamespace,
    *,
    counted: str,
    oldest: str,
    ends: tuple[str, ...],
    mix: str,
    name: str,
    action: str | None,
    words: str = "",
    ready: int | None = 0,
    rates: tuple[float | None, float | None] = (None, None),
    also: tuple[int, int, int] = (0, 0, 0),
    moments: tuple[datetime | None, datetime | None] = (None, None),
    pen: _Pen | None = None,
    trend: tuple[str, str] = ("unknown", ""),
    attached: str = "",
    line: str = "",
) -> str:
    rate_in, rate_out = rates
    written = write.counted(ready) if attached else write.number(ready)
    nothing = ' data-ready="0"' if ready == 0 else ""
    # Rates and ages are dashes then, for these reasons.
    why, no_age = (f' title="{labels.no_rate}"', f' title="{labels.no_age}"') if attached else ("", "")
    actions = "" if action is None else f'<td class="actions">{action}</td>'
    return (
        f'<th scope="row" class="name"><i class="shape" aria-hidden="true"></i>{name}'
        f'<small data-field="verdict" title="{attached}">{words}</small></th>'
        f'<td class="r ready"><span data-field="ready"{_zero(ready)}>{written}</span>'
        f"{counted}"
        f"{_also('delayed', also[0], labels.delayed, _countdown('due', moments[0], pen))}"
        f"{_also('leased', also[1], labels.leased, _countdown('expiry', moments[1], pen))}"
        f"{_also('dead', also[2], labels.dead)}{line}</td>"
        f'<td class="r num" data-field="rate-in"{_zero(rate_in)} data-label="{labels.rate_in}"{why}>'
        f"{write.rate(rate_in)}</td>"
        f'<td class="r num" data-field="rate-out"{_zero(rate_out)} data-label="{labels.rate_out}"{why}>'
        f"{write.rate(rate_out)}</td>"
        f'<td class="r num" data-field="oldest" data-label="{labels.oldest}"{no_age}>{oldest}</td>'
        f'<td class="ends"><div class="rail"{nothing}>{ends[0]}{mix}{ends[1]}'
        f'<span class="rail-note">{labels.note}</span></div></td>'
        f'<td class="out" data-field="trend" data-value="{trend[0]}">{trend[1]}</td>{actions}'
    )


def _counted(row: Row, pen: _Pen) -> str:
    at = row.status.counted_at
    moment = "" if at is None else at.isoformat()
    words = pen(counted_words, at)
    return f'<small class="counted" data-field="counted" data-counted="{moment}">{words}</small>'


def _zero(number: float | None) -> str:
    """Mark a zero, which looks different."""
    return ' data-value="0"' if number == 0 else ""


def _also(field: str, n: int, label: str, moment: str = "") -> str:
    if not n:  # the live view makes it when there are some
        return ""
    count = f'<span data-field="{field}">{write.number(n)}</span>'
    return f'<small class="also">{count} {label}{moment}</small>'


def _countdown(field: str, at: datetime | None, pen: _Pen | None) -> str:
    if at is None or pen is None:
        return f' <time data-field="{field}" data-countdown datetime="" hidden></time>'
    words = pen(countdown_words, at)
    return f' <time data-field="{field}" data-countdown datetime="{at.isoformat()}">{words}</time>'


def _age(at: datetime, pen: _Pen) -> str:
    # Whole seconds are enough for an age, and half as many bytes: they are what compresses least in a row.
    return f'<time data-age datetime="{at.replace(microsecond=0).isoformat()}">{pen(write.age_since, at)}</time>'


def _end(
    which: str, item: Item | None, pen: _Pen | None, rules: Redaction = NOTHING, fields: tuple[str, ...] = ()
) -> str:
    if item is None or pen is None:
        return (
            f'<span class="end {which}" data-field="{which}"><b data-part="priority"></b><q data-part="value"></q>'
            '<time data-age datetime=""></time></span>'
        )
    priority = _safe(items.priority_short(item))
    value = _safe_between_tags(items.preview(item, rules, _END_WIDTH, fields=fields))
    age = '<time data-age datetime=""></time>' if item.since is None else _age(item.since, pen)
    return (
        f'<span class="end {which}" data-field="{which}"><b data-part="priority">{priority}</b>'
        f'<q data-part="value">{value}</q>{age}</span>'
    )


#: The columns of all possible heights, made once.
_COLUMN = tuple(f'<i class="h{write.mix_step(level)}"></i>' for level in range(101))


def _mix(bands: tuple[Band, ...]) -> str:
    if not bands:
        return '<span class="mix flow" data-field="mix" aria-hidden="true"></span>'
    columns = "".join([_COLUMN[level] for level in write.mix_levels([band.depth for band in bands])])
    return f'<span class="mix" data-field="mix" aria-hidden="true">{columns}</span>'
