"""Moments as people type them: in a time zone, and what is said where its clocks are turned.

Forms take them in the reader's zone unless another is chosen beside the field. A time that comes twice or never is
refused and never guessed. The address of a page holds a moment in UTC, or the zone with it, so that it means the same
one to whoever opens it.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils.timezone import get_current_timezone
from django.utils.translation import gettext as _

from pqadmin.dashboard import format as write

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
_OFFSET = re.compile(r"(?:UTC|Z)?([+-])(\d{1,2}):?(\d{2})?")
#: A zone behind a moment, as pages write it.
_WRITTEN = re.compile(r"\s+UTC(?:(?P<sign>[+−-])(?P<hours>[0-9]{1,2})(?::(?P<minutes>[0-9]{2}))?)?$")
_LENGTH = re.compile(r"([0-9]{1,9})\s*(s|sec|m|min|h|d|w)", re.IGNORECASE)
_UNITS = {
    "s": timedelta(seconds=1),
    "sec": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


class BadZone(ValueError):
    """The text names no time zone; the message says what would."""


class BadMoment(ValueError):
    """The text is no moment, or none that is there exactly once; the message says why."""


def parse_zone(text: str) -> tzinfo:
    """Read a time zone: a name such as Europe/Berlin, an offset such as +01:00, or nothing for UTC."""
    text = text.strip()
    if text.upper() in ("", "UTC", "Z"):
        return UTC
    if (offset := _OFFSET.fullmatch(text)) is not None:
        hours, minutes = int(offset[2]), int(offset[3] or 0)
        if hours < 24 and minutes < 60:
            span = timedelta(hours=hours, minutes=minutes)
            return timezone(-span if offset[1] == "-" else span)
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: a name that is a folder, or far too long
        raise BadZone(_("No time zone has this name. Give one such as Europe/Berlin, +01:00 or UTC.")) from None


def parse_moment(text: str, zone: tzinfo) -> datetime:
    """Read a date and a time of a zone, or with an offset of its own; raise `BadMoment`.

    Where clocks are turned, some times come twice and some never: those are no moment. A date alone is its day's
    beginning, whatever the clocks do there.
    """
    text = _with_offset(text.strip())
    try:
        typed = datetime.fromisoformat(text)
    except ValueError:
        raise BadMoment(_("Give a date and a time, such as 2026-11-22T14:00.")) from None
    if typed.tzinfo is not None:
        return _in_utc(typed)
    first, second = typed.replace(tzinfo=zone, fold=0), typed.replace(tzinfo=zone, fold=1)
    if first.utcoffset() == second.utcoffset() or _is_date(text):
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
    """Read a length of time before now (15 min), or a moment of a zone; raise `BadMoment`, `BadZone`.

    Returns with it what a field shows of it: a length as it was typed, a moment with its offset in the reader's zone.
    """
    text = text.strip()
    try:
        if length := _LENGTH.fullmatch(text):
            return max(now - int(length[1]) * _UNITS[length[2].lower()], _EARLIEST), text
        datetime.fromisoformat(_with_offset(text))
    except (ValueError, OverflowError):
        raise BadMoment(_("Give a length of time (15 min, 2 h, 3 d) or a moment (2026-11-21 14:00).")) from None
    at = parse_moment(text, parse_zone(zone))
    return at, _as_typed(at)


def write_moment(at: datetime) -> str:
    """Write a moment for an address, so that it is read as the same one by everybody."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _as_typed(at: datetime) -> str:
    """Write a moment as its reader would type it, with the offset, and no finer than it is."""
    try:
        local = at.astimezone(get_current_timezone())
    except OverflowError:
        local = at
    finest = "milliseconds" if local.microsecond else "seconds" if local.second else "minutes"
    return f"{local.replace(tzinfo=None).isoformat(' ', finest)} {write.offset(local)}"


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _with_offset(text: str) -> str:
    """Put a zone as pages write it (UTC, UTC+8, UTC−3:30) as an offset that Python reads."""
    zone = _WRITTEN.search(text)
    if zone is None:
        return text
    sign = "-" if zone["sign"] in ("-", "−") else "+"
    return f"{text[: zone.start()]}{sign}{int(zone['hours'] or 0):02}:{int(zone['minutes'] or 0):02}"


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise BadMoment(_("This is too far away.")) from None
