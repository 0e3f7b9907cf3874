"""Moments that people type: in their zone, exact where clocks are turned, the same for all readers of an address."""

import html
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.utils import timezone

from pqadmin.accounts.rights import Role
from pqadmin.display.moments import BadMoment, BadZone, parse_moment, parse_past, parse_zone, write_moment
from queues import Store
from tests.dashboard.conftest import Desk
from tests.dashboard.screen import Screen

BERLIN, TOKYO = "Europe/Berlin", "Asia/Tokyo"
NOW = datetime(2026, 11, 20, 14, 2, 11, tzinfo=UTC)
#: Of 2027: clocks are turned back in Berlin on this day at 1:00 UTC, and forward on that one.
TWICE, NEVER = "2027-10-31T02:30", "2027-03-28T02:30"


@pytest.fixture
def berliner(operator: Desk, store: Store) -> Desk:
    """An operator that reads times in Berlin's zone, and a queue."""
    operator.client.cookies["pqadmin_time_zone"] = BERLIN
    store.create_queue("jobs")
    return operator


def test_times_that_come_twice_or_never_are_refused() -> None:
    berlin = BERLIN
    with pytest.raises(BadMoment, match="never comes"):
        parse_moment("2026-03-29T02:30", berlin)
    with pytest.raises(BadMoment, match=r"comes twice, at 2026-10-25 00:30 and at 2026-10-25 01:30 UTC"):
        parse_moment("2026-10-25T02:30", berlin)
    for edge, utc in (("01:59:59", 23 * 3600 + 3599 - 86_400), ("03:00", 7_200)):  # just before and just after
        assert parse_moment(f"2026-10-25T{edge}", berlin) == datetime(2026, 10, 25, tzinfo=UTC) + timedelta(seconds=utc)
    assert parse_moment("2026-10-25T02:30+02:00", berlin) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert parse_moment("2026-10-25 02:30 UTC+1", berlin) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert parse_moment("2026-11-22T12:00", "+05:30") == datetime(2026, 11, 22, 6, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "wrong",
    ["+24:00", "UTC+5:75", "+1:", "Europe", "Nowhere", "\0", "localtime", "Factory", "posixrules", "right/Asia/Tokyo"],
)
def test_what_names_no_zone_is_refused(wrong: str) -> None:
    with pytest.raises(BadZone):
        parse_zone(wrong)
    with pytest.raises(BadZone):
        parse_past("2026-11-20 14:02", NOW, wrong)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("UTC−3:30", -210), ("UTC-3:30", -210), ("+5", 300), ("+0530", 330), ("Z+8", 480), ("utc+8", 480), ("", 0)],
)
def test_offsets_are_understood_as_pages_write_them(text: str, minutes: int) -> None:
    assert parse_zone(text).utcoffset(None) == timedelta(minutes=minutes)
    typed = "2026-11-20 14:02"
    assert parse_moment(typed, text) == datetime(2026, 11, 20, 14, 2, tzinfo=UTC) - timedelta(minutes=minutes)


@pytest.mark.parametrize(
    "typed",
    ["2026-11-20 14:02 UTC+5:75", "2026-11-20T14:02+05:75", "2026-11-20 14:02 UTC+24", "2026-11-20+05:30"],
)
def test_an_offset_that_is_none_is_refused_and_never_guessed(typed: str) -> None:
    with pytest.raises(BadMoment):
        parse_moment(typed, "")
    with pytest.raises(BadMoment):
        parse_past(typed, NOW, "")


def test_days_and_lengths_of_time_are_understood_as_people_type_them() -> None:
    evening = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)  # the 21st in Tokyo
    for text, zone, at in (
        ("today", "", datetime(2026, 11, 20, tzinfo=UTC)),
        ("Yesterday", "", datetime(2026, 11, 19, tzinfo=UTC)),
        ("yesterday", TOKYO, datetime(2026, 11, 19, 15, tzinfo=UTC)),
        ("昨天", "", datetime(2026, 11, 19, tzinfo=UTC)),
        ("2 hours ago", TOKYO, evening - timedelta(hours=2)),
        ("1 week", "", evening - timedelta(weeks=1)),
        ("15 Minutes", "", evening - timedelta(minutes=15)),
        ("3天前", "", evening - timedelta(days=3)),
    ):
        assert parse_past(text, evening, zone)[0] == at, text
    for wrong in ("tomorrow", "2 fortnights", "s", "-1 h", "1 h 2"):
        with pytest.raises(BadMoment, match="yesterday"):
            parse_past(wrong, evening, "")


def test_a_zone_is_read_only_where_a_moment_has_no_offset_of_its_own() -> None:
    for typed in ("2026-11-20 14:02:11 UTC", "2026-11-20T14:02:11Z", "2026-11-20 15:02:11 UTC+1"):
        assert parse_moment(typed, "Mars/Base") == NOW
        assert parse_past(typed, NOW, "Mars/Base")[0] == NOW


@pytest.mark.parametrize("zone", ["UTC", TOKYO, "America/New_York"])
@pytest.mark.parametrize("end", ["9999-12-31T23:30Z", "9999-12-31T15:00", "0001-01-01T00:00Z", "0001-01-01"])
def test_the_ends_of_the_calendar_are_too_far_away(zone: str, end: str) -> None:
    with timezone.override(zone):
        with pytest.raises(BadMoment, match="too far away"):
            parse_moment(end, zone)
        with pytest.raises(BadMoment, match="too far away"):
            parse_past(end, NOW, zone)
        for near in ("9999-12-30T12:00", "0001-01-03T12:00"):
            at, shown = parse_past(near, NOW, zone)
            assert parse_past(shown, NOW, "")[0] == at


def test_a_date_alone_is_the_beginning_of_its_day_whatever_clocks_do() -> None:
    assert parse_moment("2026-10-25", BERLIN) == datetime(2026, 10, 24, 22, tzinfo=UTC)
    cairo, havana = "Africa/Cairo", "America/Havana"
    assert parse_moment("2026-04-24", cairo) == datetime(2026, 4, 23, 22, tzinfo=UTC)  # no midnight: from 1:00 on
    assert parse_moment("2026-11-01", havana) == datetime(2026, 11, 1, 4, tzinfo=UTC)  # midnight comes twice
    with pytest.raises(BadMoment, match="never comes"):
        parse_moment("2026-04-24 00:00", cairo)
    assert parse_moment("2026-10-25 UTC", BERLIN) == datetime(2026, 10, 25, tzinfo=UTC)
    assert parse_past("2026-10-25 UTC+5:30", NOW, BERLIN)[0] == datetime(2026, 10, 24, 18, 30, tzinfo=UTC)


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
def test_a_wrong_moment_pauses_nothing_and_is_there_as_typed(
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
    assert pause.until == datetime(2031, 10, 26, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(("zone", "end"), [(TOKYO, "9999-12-31T23:30"), ("America/New_York", "0001-01-01T00:00")])
def test_a_moment_at_the_calendars_end_is_refused(berliner: Desk, store: Store, zone: str, end: str) -> None:
    berliner.client.cookies["pqadmin_time_zone"] = zone
    for form, typed, field in (
        ("pause/", {"reason": "r", "lasting": "at"}, "at"),
        ("push/", {"value": "x", "priority": "1", "when": "due"}, "due"),
    ):
        page = berliner.send(berliner.open(f"/queues/jobs/{form}"), form, zone="UTC", **typed, **{field: end})
        assert page.status == 422
        assert "This is too far away." in page
    for field in ("since", "until"):
        asked = urlencode({"act": "move", field: f"{end}Z"})
        assert berliner.open(f"/queues/jobs/bulk/?{asked}").status < 500
        assert "This is too far away." in berliner.open(f"/queues/jobs/?{asked}")
    # By programs, such a moment is pushed nevertheless.
    if end > "2026":
        jobs = store.queue("jobs")
        jobs.push(b"x", priority=1, due=datetime.fromisoformat(f"{end}+00:00"))
        store.actions("eve").pause("jobs", reason="why", until=datetime.fromisoformat(f"{end}+00:00"))
        for address in ("/", "/queues/jobs/", "/queues/jobs/?state=delayed", "/audit/"):
            assert berliner.open(address).status == 200
        assert "9999-12-31 23:30:00 UTC" in berliner.open("/queues/jobs/?state=delayed")


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


def test_a_template_without_a_zone_means_utc_to_every_reader(berliner: Desk) -> None:
    page = berliner.open("/queues/jobs/push/")
    typed = {"when": "due", "due": "2031-07-01T12:00", "zone": "", "template_name": "noon", "keep": "template"}
    kept = berliner.send(page, "push/", value="x", priority="1", **typed)
    assert kept.form("push/")[1]["zone"] == "UTC"
    opened = berliner.open(next(link for link in kept.links if "template=" in link))
    assert opened.form("push/")[1]["zone"] == "UTC"
    assert "due 2031-07-01 14:00:00 UTC+2 (2031-07-01 12:00:00 UTC)." in berliner.send(opened, "push/")


def field(page: Screen, name: str) -> str:
    """Return what a field of a search shows."""
    found = re.search(rf'<input[^>]*\sname="{name}"\s+value="([^"]*)"', page.html)
    return html.unescape(found.group(1))


def hidden_zone(page: Screen) -> str:
    """Return the zone that a search goes out with; empty: none is named, as for UTC."""
    found = re.search(r'<input\s+type="hidden"\s+name="zone"\s+value="([^"]*)"', page.html)
    return html.unescape(found.group(1)) if found else ""


def test_a_search_by_a_moment_means_the_same_to_every_readers_address(
    berliner: Desk, desk: Callable[..., Desk], store: Store
) -> None:
    item = store.queue("jobs").push(b"x", priority=1)
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


def test_files_and_pages_of_the_audit_refuse_what_the_page_refuses(berliner: Desk, store: Store) -> None:
    for _ in range(2):
        store.actions("mallory").pause("jobs", reason="why")
    for text, zone in ((NEVER, BERLIN), ("2027-07-01 12:00", "Mars/Base")):
        asked = {"since": text, "zone": zone}
        page = berliner.open("/audit/?" + urlencode(asked))
        assert not [link for link in page.links if "format=" in link]
        assert berliner.open("/audit/export/?" + urlencode({**asked, "format": "csv"})).status == 400
        inside = berliner.open("/audit/?" + urlencode({**asked, "after": "x"}))
        newest = next(link for link in inside.links if "since=" in link)
        assert "mallory" not in berliner.open("/audit/" + html.unescape(newest))
    good = berliner.open("/audit/?" + urlencode({"since": "2026-01-01 01:00", "zone": BERLIN}))
    assert len([link for link in good.links if "format=" in link]) == 2


@pytest.mark.parametrize("address", ["/queues/jobs/", "/audit/"])
def test_a_refused_moment_keeps_its_zone_until_it_is_right(
    berliner: Desk, desk: Callable[..., Desk], address: str
) -> None:
    other = desk(Role.VIEWER, "in-tokyo")
    other.client.cookies["pqadmin_time_zone"] = TOKYO
    page = other.open(f"{address}?" + urlencode({"since": NEVER, "zone": BERLIN}))
    assert (field(page, "since"), hidden_zone(page)) == (NEVER, BERLIN)
    assert BERLIN in page.html.split('role="search"')[1].split("</form>")[0].replace(
        f'value="{BERLIN}"', ""
    )  # and says so
    again = other.open(f"{address}?" + urlencode({"since": field(page, "since"), "zone": hidden_zone(page)}))
    assert "never comes" in again
    right = other.open(f"{address}?" + urlencode({"since": "2027-03-28T03:30", "zone": hidden_zone(page)}))
    assert (field(right, "since"), hidden_zone(right)) == ("2027-03-28 10:30 UTC+9", TOKYO)
    utc = other.open(f"{address}?since=2027-13-28")  # an address without a zone is in UTC
    assert hidden_zone(utc) == ""
    assert hidden_zone(other.open(f"{address}?since=2027-13-28&zone=Mars/Base")) == TOKYO  # nothing to keep


def test_the_audit_is_asked_in_the_readers_zone_and_files_and_further_pages_in_utc(
    berliner: Desk, store: Store
) -> None:
    store.actions("eve").pause("jobs", reason="why")
    asked = {"since": "2026-01-01 01:00", "until": "2041-07-01 12:00", "zone": BERLIN}
    page = berliner.open("/audit/?" + urlencode(asked))
    assert "eve" in page
    assert BERLIN in page
    assert (field(page, "since"), field(page, "until")) == ("2026-01-01 01:00 UTC+1", "2041-07-01 12:00 UTC+2")
    link = html.unescape(next(link for link in page.links if "format=csv" in link))
    assert "since=2026-01-01T00%3A00%3A00.000Z&until=2041-07-01T10%3A00%3A00.000Z" in link
    assert "zone" not in link
