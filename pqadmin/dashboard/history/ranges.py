"""Ranges of time that charts show: a span up to now, or from one moment to another, as the address of a page says."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pqadmin.display.moments import BadMoment, BadZone, parse_moment, write_moment
from queues.admin import EPOCH, HOURS, MINUTES, SECONDS, HistoryResolution

#: Seconds of the shortest range, and how far back histories go.
SHORTEST, LONGEST = 10, HOURS.kept
#: Seconds and words of the ranges that end now.
SPANS: Mapping[str, tuple[int, object]] = {
    "10m": (600, gettext_lazy("10 min")),
    "1h": (3_600, gettext_lazy("1 h")),
    "6h": (6 * 3_600, gettext_lazy("6 h")),
    "24h": (86_400, gettext_lazy("24 h")),
    "7d": (7 * 86_400, gettext_lazy("7 d")),
    "90d": (90 * 86_400, gettext_lazy("90 d")),
}
DEFAULT = "10m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A range of time, in seconds since the epoch."""

    since: int
    until: int
    #: When it was asked for, by the store's clock.
    now: int
    #: The span that ends now; empty for a chosen range.
    span: str = ""

    @property
    def live(self) -> bool:
        """Return whether it goes up to now."""
        return self.until >= self.now

    @property
    def seconds(self) -> int:
        """Return how long it is."""
        return self.until - self.since

    @property
    def resolution(self) -> HistoryResolution:
        """Return the finest resolution that is kept for all of it."""
        ago = self.now - self.since
        return SECONDS if ago <= SECONDS.kept else MINUTES if ago <= MINUTES.kept else HOURS

    @property
    def query(self) -> str:
        """Return the query of an address that shows it, to every reader the same."""
        if self.span:
            return urlencode({"span": self.span})
        return urlencode({"from": write_moment(self.begins), "to": write_moment(self.ends)}, safe=":")

    @property
    def wider(self) -> str:
        """Return the query of the shortest span that holds it."""
        held = [name for name, (seconds, _label) in SPANS.items() if self.now - self.since <= seconds]
        return urlencode({"span": self.span or (held or list(SPANS)[-1:])[0]})

    @property
    def begins(self) -> datetime:
        """Return its first moment."""
        return datetime.fromtimestamp(self.since, UTC)

    @property
    def ends(self) -> datetime:
        """Return its last moment."""
        return datetime.fromtimestamp(self.until, UTC)


class BadRange(ValueError):
    """A range that cannot be shown, in words for the reader."""


def span_of(name: str, now: datetime) -> Range:
    """Return the range of a span that ends now, the default for an unknown one."""
    name = name if name in SPANS else DEFAULT
    until = _seconds(now)
    return Range(since=until - SPANS[name][0], until=until, now=until, span=name)


def parse(asked: Mapping[str, str], now: datetime, zone: str) -> Range:
    """Return the range that an address asks for; times without a zone are the reader's. Raise `BadRange`."""
    begins, ends = (asked.get(name, "").strip()[:100] for name in ("from", "to"))
    if not begins and not ends:
        return span_of(asked.get("span", ""), now)
    try:
        until = min(_seconds(parse_moment(ends, zone)) if ends else _seconds(now), _seconds(now))
        since = _seconds(parse_moment(begins, zone)) if begins else until - SPANS["1h"][0]
    except (BadMoment, BadZone) as error:
        raise BadRange(str(error)) from error
    if since >= _seconds(now):
        raise BadRange(_("This range begins in the future."))
    if since >= until:
        raise BadRange(_("This range ends before it begins."))
    since = min(max(since, _seconds(now) - LONGEST), until - SHORTEST)
    if until <= _seconds(now) - LONGEST:
        raise BadRange(_("Histories go back 90 days: nothing is kept of this range."))
    return Range(since=since, until=until, now=_seconds(now))


def is_local(asked: Mapping[str, str]) -> bool:
    """Say whether an address has times as a form sends them, which mean something else in another time zone."""
    return any(asked.get(name, "") and asked[name][-1:] not in ("Z", "z") for name in ("from", "to"))


def _seconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(seconds=1)
