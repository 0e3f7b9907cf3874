"""How numbers, ages, priorities and values are written for people.

Functions of plain values: no request, no store, no translation; only moments follow the reader's time zone, which
`pqadmin.pages.reader_preferences` makes Django's current one. The browser writes the same things with
`static/pqadmin/js/format.js`: both are held to `tests/format_vectors.json`, so a number never changes its looks
between the first HTML and the first frame. Rounding is by floor after adding a half, never by the platform's own rule,
because Python rounds halves to even and JavaScript does not.
"""

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from django.utils.timezone import get_current_timezone

from queues.errors import display_name, is_invisible

#: Narrow no-break space: groups thousands without looking like two numbers, never breaks over a line.
THIN = "\u202f"
#: Thin space: groups the thousands of numbers so long that narrow places break them, between groups and nowhere else.
BREAKABLE = "\u2009"
#: From here on a number may be broken.
LONG = 10**9
#: Stands for "not known", so that it can never be read as zero.
UNKNOWN = "–"
ELLIPSIS = "…"
#: Longest priority shown in a table; longer ones keep their first and last characters and say how long they are.
PRIORITY_WIDTH = 18
#: Longest one-line value preview, in characters.
PREVIEW_WIDTH = 120
#: Python refuses to write longer ints in decimal; an int priority (255 bytes) stays far below it.
_DIGITS_LIMIT = 4000

#: A line break with the blanks around it.
_BREAK = re.compile(r"[ \t]*\r?\n\s*")
#: Controls that text does not hold: all but tab and line breaks.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")

_BRIEF_UNITS = "kMGTPE"
_BYTE_UNITS = ("kB", "MB", "GB", "TB", "PB", "EB")


def number(n: int | None) -> str:
    """Write a whole number with its thousands apart: 12 408."""
    if n is None:
        return UNKNOWN
    return f"{n:,}".replace(",", THIN if abs(n) < LONG else BREAKABLE).replace("-", "−")


def brief(n: int | None) -> str:
    """Write a whole number in at most four characters, where there is little room: 999, 1.2k, 15k; cut, never up."""
    if n is None or n < 1_000:
        return number(n)
    power = min((len(str(n)) - 1) // 3, len(_BRIEF_UNITS))
    tenths = n * 10 // 1000**power
    unit = _BRIEF_UNITS[power - 1]
    return f"{tenths // 10}.{tenths % 10}{unit}" if tenths < 100 and tenths % 10 else f"{number(tenths // 10)}{unit}"


def counted(n: int | None) -> str:
    """Write a depth that was counted some time ago: ≈ 12 408. 0 and 1 are seen, not counted; … is not counted yet."""
    if n is None:
        return ELLIPSIS
    return number(n) if n < 2 else f"≈{THIN}{number(n)}"


def rate(per_second: float | None) -> str:
    """Write a rate per second: one decimal below 10, whole above, `<0.1` for what is not zero but rounds to it."""
    if per_second is None or not math.isfinite(per_second):
        return UNKNOWN
    if per_second <= 0:
        return "0"
    tenths = math.floor(per_second * 10 + 0.5)
    if tenths == 0:
        return "<0.1"
    if tenths < 100:
        return f"{tenths // 10}.{tenths % 10}" if tenths % 10 else str(tenths // 10)
    return number(math.floor(per_second + 0.5))


def share(part: float) -> str:
    """Write a share of a whole in percent. What rounds to none or to all of it, and is not, says so."""
    percent = math.floor(100 * part + 0.5)
    if percent in (0, 100) and part not in (0, 1):
        return f"<{THIN}1{THIN}%" if part < 0.5 else f">{THIN}99{THIN}%"
    return f"{percent}{THIN}%"


def age(seconds: float | None) -> str:
    """Write a length of time in its one fitting unit. It is cut, never rounded up. Negative (clocks apart) is 0.0 s."""
    if seconds is None:
        return UNKNOWN
    if seconds < 10:
        tenths = max(0, math.floor(seconds * 10))
        return f"{tenths // 10}.{tenths % 10} s"
    if seconds < 120:
        return f"{math.floor(seconds)} s"
    if seconds < 120 * 60:
        return f"{math.floor(seconds / 60)} min"
    if seconds < 48 * 3600:
        return f"{math.floor(seconds / 3600)} h"
    return f"{number(math.floor(seconds / 86400))} d"


#: Steps of a length of time that is told roughly, each about a half above the one before: seconds.
_STEPS = (10, 20, 30, *(60 * n for n in (1, 2, 3, 5, 8, 12, 15, 20, 30, 45)))
_STEPS += tuple(3_600 * n for n in (1, 2, 3, 5, 8, 12, 18, 24, 36))


def about(seconds: float) -> str:
    """Write a length of time in coarse steps, so that words with it seldom change. It is cut, never rounded up."""
    if seconds < _STEPS[0]:
        return f"<{_STEPS[0]} s"
    if seconds >= 48 * 3600:
        return age(seconds)
    step = _STEPS[bisect_right(_STEPS, seconds) - 1]
    return f"{step} s" if step < 60 else f"{step // 60} min" if step < 3600 else f"{step // 3600} h"


def age_since(moment: datetime | None, now: datetime) -> str:
    """Write how long ago a moment was."""
    return UNKNOWN if moment is None else age((now - moment).total_seconds())


def countdown(seconds: float | None) -> str:
    """Write the time that is left until a moment, to the second and rounded up: 0:04, 12:30, 1:02:03.

    From 48 hours on it is rounded to the nearest day: 3 d.
    """
    if seconds is None:
        return UNKNOWN
    left = max(0, math.ceil(seconds))
    if left >= 48 * 3600:
        return age(left + 12 * 3600)
    minutes, rest = divmod(left, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def size(n: int | None) -> str:
    """Write a number of bytes in decimal units: 90.0 kB."""
    if n is None:
        return UNKNOWN
    if n < 1000:
        return f"{n} B"
    tenths = 0
    for power, unit in enumerate(_BYTE_UNITS, start=1):
        tenths = (n * 10 + 1000**power // 2) // 1000**power
        if tenths < 10_000 or unit == _BYTE_UNITS[-1]:
            return f"{number(tenths // 10)}.{tenths % 10} {unit}"
    raise AssertionError("unreachable: the last unit takes every size")


def local(at: datetime) -> datetime:
    """Return a moment in the reader's time zone; in UTC at the calendar's ends, where that zone has it no more."""
    try:
        return at.astimezone(get_current_timezone())
    except OverflowError:
        return at.astimezone(UTC)


def moment(at: datetime | None) -> str:
    """Write a moment in the reader's time zone to the second: 2026-11-20 14:02:11 UTC, or … UTC+5:30."""
    if at is None:
        return UNKNOWN
    there = local(at)
    return f"{there:%Y-%m-%d %H:%M:%S} {offset(there)}"


def moment_and_utc(at: datetime | None) -> str:
    """Write a time in the reader's time zone and, if different, in UTC, for a hover."""
    if at is None:
        return ""
    there, universal = moment(at), f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return there if there == universal else f"{there} · {universal}"


def moment_with_utc(at: datetime | None) -> str:
    """Write a moment within a sentence: in the reader's time zone and, where that is another, in UTC behind it."""
    there, more, universal = moment_and_utc(at).partition(" · ")
    return f"{there} ({universal})" if more else there or UNKNOWN


def clock(at: datetime | None, now: datetime | None = None) -> str:
    """Write a moment with its date where that is not today's: 14:02:11 UTC, or 2026-11-21 14:02:11 UTC."""
    if at is None:
        return UNKNOWN
    there, today = local(at), local(now or datetime.now(UTC)).date()
    return f"{there:%H:%M:%S} {offset(there)}" if there.date() == today else moment(at)


def offset(there: datetime) -> str:
    """Write how far the zone of a moment is from UTC then: UTC+5:30."""
    span = there.utcoffset() or timedelta()
    minutes = abs(span) // timedelta(minutes=1)
    if not minutes:
        return "UTC"
    part = f":{minutes % 60:02}" if minutes % 60 else ""
    return f"UTC{'−' if span < timedelta() else '+'}{minutes // 60}{part}"


def iso(at: datetime | None) -> str:
    """Write a moment for a `datetime` attribute; empty when unknown."""
    return "" if at is None else at.astimezone(UTC).isoformat()


def visible(text: str) -> str:
    """Replace control and bidirectional characters by visible signs."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible_char(char) for char in text)


def _visible_char(char: str) -> str:
    code = ord(char)
    if char == "\n":
        return "↵"
    # Few fonts have the pictures of controls (U+2400 …). Cf holds the bidirectional ones and all else that is not seen.
    if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp", "Cs"):
        # A joiner between emoji or letters is part of the text and harmless.
        return char if char in "\u200c\u200d" else f"⟨{code:04X}⟩"
    # Letters that are drawn as nothing; selectors of a variation belong to the sign before them.
    if unicodedata.category(char) == "Lo" and is_invisible(char):
        return f"⟨{code:04X}⟩"
    return char


def hides(char: str) -> bool:
    """Return whether a character is one that `visible` replaces."""
    return _visible_char(char) != char


def split_name(name: str) -> tuple[str, str]:
    """Split a queue's name, as shown, at the last colon that leaves something behind it."""
    shown = display_name(name)
    cut = shown.rstrip(":").rfind(":") + 1
    return shown[:cut], shown[cut:]


def shorten(text: str, width: int) -> str:
    """Cut a text to a width in characters, with an ellipsis for what is gone."""
    return text if len(text) <= width else text[: width - 1] + ELLIPSIS


def priority(p: int | float | str | None) -> str:
    """Write a priority exactly; the empty text is written as \"\" so that it can be seen."""
    if p is None:
        return ""
    if isinstance(p, str):
        return visible(p) if p else '""'
    if isinstance(p, float):
        return repr(p)
    if not isinstance(p, int):  # of a damaged key, as bytes and tuples
        return visible(repr(p))
    if p.bit_length() > 3.3 * _DIGITS_LIMIT:
        return hex(p)
    return str(p)


def priority_short(p: int | float | str | None) -> str:
    """Write a priority in at most `PRIORITY_WIDTH` characters."""
    return middle(priority(p))


def middle(text: str) -> str:
    """Cut a priority's text to `PRIORITY_WIDTH` characters: both its start and its end stay."""
    if len(text) <= PRIORITY_WIDTH:
        return text
    return f"{text[:10]}{ELLIPSIS}{text[-5:]}"


def band(low: int | float | str | None, high: int | float | str | None) -> str:
    """Write the range of a priority band in few characters: `< 0`, `5`, `10–19`, `1k–100k`, `≥ 10M`."""
    if low is None:
        return "–" if high is None else f"<{_edge(high)}"
    if high is None:
        return f"≥{_edge(low)}"
    if isinstance(low, int) and isinstance(high, int):
        if high == low + 1:
            return _edge(low)
        return f"{_edge(low)}–{_edge(high - 1 if high <= 1_000 else high)}"
    return f"{_edge(low)}{ELLIPSIS}{_edge(high)}"


def _edge(p: int | float | str) -> str:
    if isinstance(p, str):
        return shorten(visible(p), 6) or '""'
    if isinstance(p, float):
        return f"{p:.4g}"
    for scale, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if abs(p) >= scale and p % scale == 0 and abs(p) < scale * 1_000:
            return f"{p // scale}{unit}"
    return shorten(str(p), 7) if abs(p) < 10**_DIGITS_LIMIT else ELLIPSIS


def one_line(text: str) -> str:
    """Write text on one line: line breaks and hidden characters as signs, tabs as spaces."""
    return visible(_BREAK.sub(" ↵ ", text).replace("\t", " "))


def preview(value: bytes, *, width: int = PREVIEW_WIDTH, more: bool = False) -> str:
    """Write a value on one line: text if it is UTF-8, else hex; `more` says that bytes were already cut off its end."""
    if not value:
        return ""
    text = as_text(value, cut=more)
    if text is None:
        room = width // 3
        shown = value[:room].hex(" ")
        return shown + (f" {ELLIPSIS}" if more or len(value) > room else "")
    # Only the first characters are shown, so only they are looked at: values may be 90 kB.
    sample = text[: 4 * width + 1]
    head = one_line(sample)
    if len(text) == len(sample) and len(head) <= width:
        return head + (ELLIPSIS if more else "")
    return head[: width - 1] + ELLIPSIS


def as_text(value: bytes, *, cut: bool = False) -> str | None:
    """Decode bytes as text, or None if they are binary; with `cut` a broken last character is dropped."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as error:
        if not (cut and error.start >= len(value) - 3 and error.reason == "unexpected end of data"):
            return None
        text = value[: error.start].decode("utf-8")
    sample = text[:512]
    controls = len(_CONTROL.findall(sample))
    return None if controls > 2 and controls * 10 > len(sample) else text


def mix_levels(depths: Sequence[int]) -> list[int]:
    """Turn band depths into true heights, in percent of the fullest band. 0 only for an empty one."""
    top = max(depths, default=0)
    if top <= 0:
        return [0] * len(depths)
    return [0 if depth <= 0 else max(1, 100 * depth // top) for depth in depths]


#: In percent.
_HEIGHTS = (0, 1, 3, 6, 12, 25, 37, 50, 62, 75, 87, 100)


def mix_step(level: int) -> int:
    """Return the height that style sheets have for a level, until a script sets the exact one: few pack well."""
    return _HEIGHTS[bisect_right(_HEIGHTS, level) - 1]
