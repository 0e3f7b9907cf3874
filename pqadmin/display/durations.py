"""Durations as people type them (90s, 15 min, 1 h 30 min), and as fields show them."""

import re

from django.utils.translation import gettext as _

#: Characters that are read.
MAX_DURATION = 40
#: Seconds of each unit, the largest first, by the word that is written; and the other words for it.
_UNITS = {"d": 86_400.0, "h": 3_600.0, "min": 60.0, "s": 1.0, "ms": 0.001}
_WORDS = {
    "w": 7 * 86_400.0,
    **_UNITS,
    **dict.fromkeys(("week", "weeks", "周"), 7 * 86_400.0),
    **dict.fromkeys(("day", "days", "天"), 86_400.0),
    **dict.fromkeys(("hr", "hour", "hours", "小时"), 3_600.0),
    **dict.fromkeys(("m", "mins", "minute", "minutes", "分", "分钟"), 60.0),
    **dict.fromkeys(("", "sec", "secs", "second", "seconds", "秒"), 1.0),
    "毫秒": 0.001,
}
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([^\W\d_]*)\s*")


class BadDuration(ValueError):
    """The text is no length of time; the message says what would be."""


def parse_duration(text: str) -> float:
    """Return the seconds of a duration; a bare number is seconds. Raise `BadDuration`.

    Each unit comes once, the larger one first, so that a slip is not added up.
    """
    at, seconds, last = 0, 0.0, float("inf")
    text = text.strip().lower()
    while at < len(text) and (part := _PART.match(text, at)) is not None:
        unit = _WORDS.get(part[2])
        alone = at == 0 and part.end() == len(text)
        if unit is None or unit >= last or (not part[2] and not alone):
            break
        at, seconds, last = part.end(), seconds + float(part[1]) * unit, unit
    if not text or at < len(text) or len(text) > MAX_DURATION:
        raise BadDuration(_("Give a length of time, such as 90 s, 15 min or 1 h 30 min."))
    return seconds


def duration(seconds: float) -> str:
    """Write a duration exactly, as it can be typed again: 15 min, 1 h 30 min, 250 ms."""
    parts, left = [], round(seconds * 1_000)
    for unit, size in _UNITS.items():
        n, left = divmod(left, round(size * 1_000))
        if n:
            parts.append(f"{n} {unit}")
    return " ".join(parts) or "0 s"
