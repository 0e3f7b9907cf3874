"""Times as users type them, in a time zone where clocks may be turned.

Forms take them in the reader's zone unless another is chosen beside the field. A time that comes twice or never is
refused and never guessed. The address of a page holds a time in UTC, or with its zone, so that it means the same time
to every reader.
"""

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from django.utils.translation import gettext as _

from pqadmin.display import format as write

#: Names of time zones that fields suggest; any other is taken too.
ZONES = (
    "UTC",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Paris",
    "Europe/Madrid",
    "Europe/Warsaw",
    "Europe/Kyiv",
    "Africa/Cairo",
    "Africa/Johannesburg",
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "Asia/Dubai",
    "Asia/Kolkata",
    "Asia/Singapore",
    "Asia/Shanghai",
    "Asia/Tokyo",
    "Australia/Sydney",
    "Pacific/Auckland",
)
#: Characters of a zone's name that are read.
MAX_ZONE = 100
#: How far a zone is from UTC, as pages write it and as people do.
_SPAN = r"(?P<sign>[+−-])(?P<hours>[01]?[0-9]|2[0-3])(?::?(?P<minutes>[0-5][0-9]))?"
_OFFSET = re.compile(rf"(?:UTC|Z)?{_SPAN}", re.IGNORECASE)
#: A zone behind a moment.
_WRITTEN = re.compile(rf"\s+UTC(?:{_SPAN})?$", re.IGNORECASE)
#: What Python reads nevertheless: an offset right behind a date as its time, and one with 60 minutes or more.
_GUESSED = re.compile(r"^[0-9]{4}(-?)[0-9]{2}\1[0-9]{2}[^Tt ]|[+-][0-9]{2}:?[6-9][0-9]$")
_LENGTH = re.compile(r"([0-9]{1,9})\s*([^\W\d_]+?)s?(?:\s+ago|前)?", re.IGNORECASE)
#: Units of lengths of time: those that forms offer, and those that are read too.
UNITS = {"s": timedelta(seconds=1), "min": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_NAMED = {
    UNITS["s"]: ("s", "sec", "second", "秒"),
    UNITS["min"]: ("m", "min", "minute", "分", "分钟"),
    UNITS["h"]: ("h", "hour", "小时"),
    UNITS["d"]: ("d", "day", "天"),
    timedelta(weeks=1): ("w", "week", "周"),
}
_UNITS = {name: unit for unit, names in _NAMED.items() for name in names}
#: Days before today, by their names.
_DAYS = {"today": 0, "今天": 0, "yesterday": 1, "昨天": 1}
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
#: A day before the calendar's ends, so that every moment is there in every zone.
_FIRST = datetime.min.replace(tzinfo=UTC) + timedelta(days=1)
_LAST = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)


class BadZone(ValueError):
    """The text names no time zone; the message says what would."""


class BadMoment(ValueError):
    """The text is no moment, or none that is there exactly once. The message says why."""


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return the names of all time zones but those that only one machine knows."""
    return frozenset(available_timezones() - {"localtime", "Factory"}) | {"UTC"}


def parse_zone(text: str) -> tzinfo:
    """Read a time zone: a name such as Europe/Berlin, an offset such as +01:00 or UTC−3:30, or nothing for UTC."""
    text = text.strip()
    if text.upper() in ("", "UTC", "Z"):
        return UTC
    if (offset := _OFFSET.fullmatch(text)) is not None:
        return timezone(_span(offset))
    if text not in zone_names():
        raise BadZone(_("No time zone has this name. Give one such as Europe/Berlin, +01:00 or UTC."))
    return ZoneInfo(text)


def kept_zone(zone: str) -> str:
    """Return the zone of a refused time, which its field keeps. Empty for an unknown zone."""
    try:
        parse_zone(zone)
    except BadZone:
        return ""
    return zone.strip() or "UTC"


def parse_moment(text: str, zone: str) -> datetime:
    """Read a date and time, in a zone or with an offset; raise `BadMoment`, `BadZone`.

    Where clocks are turned, some times come twice and some never: those are no moment. A date alone is its day's
    beginning, whatever the clocks do there.
    """
    text = text.strip()
    try:
        typed = _read(text)
    except ValueError:
        raise BadMoment(_("Give a date and a time, such as 2026-11-22T14:00.")) from None
    return _of_zone(typed, zone, is_date=_is_date(text))


def _of_zone(typed: datetime, name: str, *, is_date: bool) -> datetime:
    if typed.tzinfo is not None:
        return _in_utc(typed)
    zone = parse_zone(name)
    first, second = typed.replace(tzinfo=zone, fold=0), typed.replace(tzinfo=zone, fold=1)
    if first.utcoffset() == second.utcoffset() or is_date:
        return _in_utc(first)
    if _in_utc(first).astimezone(zone).replace(tzinfo=None) != typed:
        raise BadMoment(_("Clocks are turned there that day: this time never comes. Give another one, or one in UTC."))
    both = {name: f"{_in_utc(each):%Y-%m-%d %H:%M}" for name, each in (("first", first), ("second", second))}
    raise BadMoment(
        _(
            "Clocks are turned there that day: this time comes twice, at %(first)s and at %(second)s UTC."
            " Give the one that you mean in UTC."
        )
        % both
    )


def parse_past(text: str, now: datetime, zone: str) -> tuple[datetime, str]:
    """Read a length of time before now, a day (yesterday) or a moment of a zone; raise `BadMoment`, `BadZone`.

    Returns with it what a field shows of it: a length as it was typed, a moment with its offset in the reader's zone.
    """
    text = text.strip()
    try:
        if (length := _LENGTH.fullmatch(text)) and (unit := _UNITS.get(length[2].lower())):
            return max(now - int(length[1]) * unit, _EARLIEST), text
        if (ago := _DAYS.get(text.casefold())) is not None:
            text = f"{now.astimezone(parse_zone(zone)).date() - timedelta(days=ago)}"
        typed = _read(text)
    except (ValueError, OverflowError):
        raise BadMoment(
            _("Give a length of time (15 min, 2 h, 3 d), a day (today, yesterday) or a moment (2026-11-21 14:00).")
        ) from None
    at = _of_zone(typed, zone, is_date=_is_date(text))
    return at, _as_typed(at)


def write_moment(at: datetime) -> str:
    """Write a time for an address, so that it means the same to every reader."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _as_typed(at: datetime) -> str:
    """Write a time as its reader would type it, with the offset, without zeros."""
    local = write.local(at)
    if (local.utcoffset() or timedelta()) % timedelta(minutes=1):  # the sun's time, of long ago
        local = at.astimezone(UTC)
    finest = "milliseconds" if local.microsecond else "seconds" if local.second else "minutes"
    return f"{local.replace(tzinfo=None).isoformat(' ', finest)} {write.offset(local)}"


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _read(text: str) -> datetime:
    """Read a date, or a date and a time; with a zone as pages write it (UTC, UTC+8, UTC−3:30); raise `ValueError`."""
    if (zone := _WRITTEN.search(text)) is not None:
        typed = datetime.fromisoformat(text[: zone.start()])
        if typed.tzinfo is not None:
            raise ValueError(text)
        return typed.replace(tzinfo=timezone(_span(zone)))
    if _GUESSED.search(text):
        raise ValueError(text)
    return datetime.fromisoformat(text)


def _span(offset: re.Match[str]) -> timedelta:
    span = timedelta(hours=int(offset["hours"] or 0), minutes=int(offset["minutes"] or 0))
    return -span if offset["sign"] in ("-", "−") else span


def _in_utc(moment: datetime) -> datetime:
    try:
        at = moment.astimezone(UTC)
    except OverflowError:
        at = None
    if at is None or not _FIRST <= at <= _LAST:
        raise BadMoment(_("This is too far away."))
    return at
