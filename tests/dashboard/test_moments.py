"""Moments that people type: in their zone, exact where clocks are turned, the same for whoever opens an address."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.utils import timezone

from pqadmin.accounts.rights import Role
from pqadmin.dashboard.moments import BadMoment, BadZone, parse_moment, parse_past, parse_zone, write_moment
from queues import Store
from tests.dashboard.conftest import Desk
from tests.dashboard.screen import Screen

BERLIN, TOKYO = "Europe/Berlin", "Asia/Tokyo"
NOW = datetime(2026, 11, 20, 14, 2, 11, tzinfo=UTC)
#: Of 2027: clocks are turned back in Berlin on this day at 1:00 UTC, and forward on that one.
TWICE, NEVER = "2027-10-31T02:30", "2027-03-28T02:30"


@pytest.fixture
def berliner(operator: Desk, store: Store) -> Desk:
    """An operator who reads times in Berlin's zone, and a queue."""
    operator.client.cookies["pqadmin_time_zone"] = BERLIN
    store.create_queue("jobs")
    return operator


def test_times_that_come_twice_or_never_are_refused() -> None:
    berlin = parse_zone(BERLIN)
    with pytest.raises(BadMoment, match="never comes"):
        parse_moment("2026-03-29T02:30", berlin)
    with pytest.raises(BadMoment, match=r"comes twice, at 2026-10-25 00:30 and at 2026-10-25 01:30 UTC"):
        parse_moment("2026-10-25T02:30", berlin)
    for edge, utc in (("01:59:59", 23 * 3600 + 3599 - 86_400), ("03:00", 7_200)):  # just before and just after
        assert parse_moment(f"2026-10-25T{edge}", berlin) == datetime(2026, 10, 25, tzinfo=UTC) + timedelta(seconds=utc)
    assert parse_moment("2026-10-25T02:30+02:00", berlin) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert parse_moment("2026-10-25 02:30 UTC+1", berlin) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert parse_moment("2026-11-22T12:00", parse_zone("+05:30")) == datetime(2026, 11, 22, 6, 30, tzinfo=UTC)
    for wrong in ("+24:00", "Europe", "Nowhere", "\0"):
        with pytest.raises(BadZone):
            parse_zone(wrong)


def test_a_date_alone_is_the_beginning_of_its_day_whatever_clocks_do() -> None:
    assert parse_moment("2026-10-25", parse_zone(BERLIN)) == datetime(2026, 10, 24, 22, tzinfo=UTC)
    cairo, havana = parse_zone("Africa/Cairo"), parse_zone("America/Havana")
    assert parse_moment("2026-04-24", cairo) == datetime(2026, 4, 23, 22, tzinfo=UTC)  # no midnight: from 1:00 on
    assert parse_moment("2026-11-01", havana) == datetime(2026, 11, 1, 4, tzinfo=UTC)  # midnight comes twice
    with pytest.raises(BadMoment, match="never comes"):
        parse_moment("2026-04-24 00:00", cairo)


@pytest.mark.parametrize(
    "typed",
    ["2026-11-20 22:02:11 UTC+8", "2026-11-20 10:32:11 UTC−3:30", "2026-11-20 14:02:11 UTC", "2026-11-20 14:02:11"],
)
def test_a_moment_copied_from_a_page_is_understood_in_a_search(typed: str) -> None:
    assert parse_past(typed, NOW, "")[0] == NOW


@pytest.mark.parametrize("zone", ["UTC", BERLIN, "America/St_Johns", "Pacific/Chatham", "Africa/Cairo"])
def test_what_a_field_shows_is_the_very_moment_of_the_address(zone: str) -> None:
    start = datetime(2026, 10, 24, 23, 59, 59, 123_000, tzinfo=UTC)
    with timezone.override(zone):
        for step in range(200):  # over the turn of the clocks
            at = start + step * timedelta(minutes=7.5)
            (read, shown) = parse_past(write_moment(at), NOW, TOKYO)
            assert (read, shown.count("UTC")) == (at, 1)
            assert parse_past(shown, NOW, TOKYO) == (at, shown)
    assert parse_past("15 min", NOW, "Nowhere") == (NOW - timedelta(minutes=15), "15 min")
    with timezone.override(BERLIN):
        assert parse_past("2026-11-21 14:00", NOW, BERLIN)[1] == "2026-11-21 14:00 UTC+1"
        assert parse_past("2026-11-21 14:00", NOW, "")[1] == "2026-11-21 15:00 UTC+1"


def test_a_pause_ends_at_a_moment_of_the_readers_zone(berliner: Desk, store: Store) -> None:
    page = berliner.open("/queues/jobs/pause/")
    assert page.form("pause/")[1]["zone"] == BERLIN
    done = berliner.send(page, "pause/", reason="r", lasting="at", at="2031-07-01T12:00")
    assert "It resumes 2031-07-01 12:00:00 UTC+2 (2031-07-01 10:00:00 UTC)." in done
    pause = store.queue("jobs").pause_state
    assert pause is not None
    assert pause.until == datetime(2031, 7, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"at": TWICE}, "this time comes twice, at 2027-10-31 00:30 and at 2027-10-31 01:30 UTC."),
        ({"at": NEVER}, "this time never comes."),
        ({"at": "2031-07-01T12:00", "zone": "Mars/Base"}, "No time zone has this name."),
        ({"at": "2001-07-01T12:00"}, "That moment has passed."),
    ],
)
def test_a_wrong_moment_pauses_nothing_and_stands_there_as_typed(
    berliner: Desk, store: Store, typed: dict[str, str], words: str
) -> None:
    page = berliner.send(berliner.open("/queues/jobs/pause/"), "pause/", reason="r", lasting="at", **typed)
    assert page.status == 422
    assert words in page
    fields = page.form("pause/")[1]
    assert {name: fields[name] for name in ("at", "zone", "lasting")} == {"zone": BERLIN, "lasting": "at"} | typed
    assert store.queue("jobs").pause_state is None
    assert berliner.send(page, "pause/", at="2031-10-26T02:30", zone="+02:00").status == 200
    pause = store.queue("jobs").pause_state
    assert pause is not None
    assert pause.until == datetime(2031, 10, 26, 0, 30, tzinfo=UTC)


def test_what_is_pushed_or_rescheduled_is_told_in_utc_too(berliner: Desk, store: Store) -> None:
    both = "2031-07-01 12:00:00 UTC+2 (2031-07-01 10:00:00 UTC)"
    page = berliner.open("/queues/jobs/push/")
    assert page.form("push/")[1]["zone"] == BERLIN
    done = berliner.send(page, "push/", value="x", priority="1", when="due", due="2031-07-01T12:00")
    assert f"Pushed 1 B with priority 1, due {both}." in done
    many = berliner.open("/queues/jobs/push/many/")
    assert many.form("many/")[1]["zone"] == BERLIN
    line = '{"value": "y", "priority": 1}'
    assert f"They are due {both}." in berliner.send(many, "many/", items=line, when="due", due="2031-07-01T12:00")
    item = store.queue("jobs").delayed().items[0]
    form = berliner.open(f"/queues/jobs/act/?act=reschedule&id={item.id}")
    assert form.form("/act/")[1]["zone"] == BERLIN
    preview = berliner.send(form, "/act/", preview="1", when="at", at="2031-07-01T12:00")
    assert f"Due {both}, in " in preview
    twice = berliner.send(form, "/act/", preview="1", when="at", at=TWICE)
    assert "comes twice" in twice
    assert twice.form("/act/")[1]["at"] == TWICE


def test_a_template_without_a_zone_means_utc_to_whoever_opens_it(berliner: Desk, store: Store) -> None:
    page = berliner.open("/queues/jobs/push/")
    typed = {"when": "due", "due": "2031-07-01T12:00", "zone": "", "template_name": "noon", "keep": "template"}
    kept = berliner.send(page, "push/", value="x", priority="1", **typed)
    assert kept.form("push/")[1]["zone"] == "UTC"
    opened = berliner.open(next(link for link in kept.links if "template=" in link))
    assert opened.form("push/")[1]["zone"] == "UTC"
    assert "due 2031-07-01 14:00:00 UTC+2 (2031-07-01 12:00:00 UTC)." in berliner.send(opened, "push/")


def field(page: Screen, name: str) -> str:
    """Return what a field of a search shows."""
    found = re.search(rf'<input[^>]* name="{name}" value="([^"]*)"', page.html)
    assert found is not None
    return html.unescape(found.group(1))


def test_a_search_by_a_moment_means_the_same_to_whoever_opens_its_address(
    berliner: Desk, desk: Callable[..., Desk], store: Store
) -> None:
    item = store.queue("jobs").push(b"x", priority=1)
    assert item.pushed_at is not None
    kolkata = "Asia/Kolkata"  # where no clock is ever turned
    berliner.client.cookies["pqadmin_time_zone"] = kolkata
    just_after = (item.pushed_at + timedelta(minutes=1)).astimezone(parse_zone(kolkata))
    page = berliner.open("/queues/jobs/")
    assert f"a moment in {kolkata}" in page
    address = "/queues/jobs/?" + urlencode({"until": f"{just_after:%Y-%m-%d %H:%M:%S}", "zone": field(page, "zone")})
    mine = berliner.open(address)
    assert "1 found" in mine
    assert field(mine, "until").endswith(" UTC+5:30")
    other = desk(Role.VIEWER, "in-tokyo")
    other.client.cookies["pqadmin_time_zone"] = TOKYO
    theirs = other.open(address)
    assert "1 found" in theirs
    assert field(theirs, "until").endswith(" UTC+9")
    assert field(theirs, "zone") == TOKYO
    again = other.open("/queues/jobs/?" + urlencode({name: field(theirs, name) for name in ("until", "zone")}))
    assert field(again, "until") == field(theirs, "until")
    assert "0 found" in other.open("/queues/jobs/?" + urlencode({"since": field(theirs, "until")}))
    utc = desk(Role.VIEWER, "in-utc").open("/queues/jobs/?until=2031-07-01+12:00")
    assert field(utc, "until") == "2031-07-01 12:00 UTC"
    assert 'name="zone" value="UTC"' not in utc.html.split('class="finder"')[1]  # addresses stay as they are


def test_a_search_by_a_time_that_comes_twice_or_never_says_so(berliner: Desk) -> None:
    for text, zone, words in (
        (TWICE, BERLIN, "comes twice, at 2027-10-31 00:30 and at 2027-10-31 01:30 UTC"),
        (NEVER, BERLIN, "never comes"),
        ("2027-07-01 12:00", "Mars/Base", "No time zone has this name"),
    ):
        asked = urlencode({"until": text, "zone": zone})
        page = berliner.open(f"/queues/jobs/?{asked}")
        assert words in page
        assert field(page, "until") == text
        audit = berliner.open(f"/audit/?{asked}")
        assert words in audit
        assert field(audit, "until") == text
    assert "comes twice" not in berliner.open("/queues/jobs/?" + urlencode({"until": TWICE}))  # in UTC it is one


def test_the_audit_is_asked_in_the_readers_zone_and_files_and_further_pages_in_utc(
    berliner: Desk, store: Store
) -> None:
    store.acts("eve").pause("jobs", reason="why")
    asked = {"since": "2026-01-01 01:00", "until": "2041-07-01 12:00", "zone": BERLIN}
    page = berliner.open("/audit/?" + urlencode(asked))
    assert "eve" in page
    assert BERLIN in page
    assert (field(page, "since"), field(page, "until")) == ("2026-01-01 01:00 UTC+1", "2041-07-01 12:00 UTC+2")
    link = html.unescape(next(link for link in page.links if "format=csv" in link))
    assert "since=2026-01-01T00%3A00%3A00.000Z&until=2041-07-01T10%3A00%3A00.000Z" in link
    assert "zone" not in link
