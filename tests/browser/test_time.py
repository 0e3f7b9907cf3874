"""What falls due: counted down on pages without a request, and done by the site itself, without any worker."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from pqadmin.pages import reader_preferences
from queues import Queue, Store
from tests.browser.conftest import NewPage, Site, Strict, open_live, ready_of, wait_value
from tests.browser.operator import Operator

TILE = "dl.sum dd [data-{kind}={what}]"


def test_an_item_of_an_idle_queue_is_counted_down_and_becomes_ready_by_itself(new_page: NewPage, store: Store) -> None:
    page = new_page(reduced_motion="no-preference")
    jobs = store.create_queue("jobs")
    open_live(page, "/")
    tile = page.locator(TILE.format(kind="total", what="due"))
    row = page.locator('tr[data-queue="jobs"] [data-field=due]')
    expect(tile).to_be_hidden()
    expect(page.locator("dl.sum .otherwise").first).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    later = jobs.push(b"later", priority=1, delay=timedelta(minutes=50))
    jobs.push(b"held", priority=2)
    lease = jobs.lease(seconds=3600)
    expect(tile).to_have_text(re.compile(r"^next due\s+in (50:00|4\d:\d\d)$"))
    expect(row).to_have_text(re.compile(r"^in (50:00|4\d:\d\d)$"))
    expect(page.locator("dl.sum .otherwise").first).to_be_hidden()
    expect(page.locator(TILE.format(kind="total", what="expiry"))).to_have_text(re.compile(r"in (1:00:00|5\d:\d\d)$"))
    expect(tile).not_to_have_text(tile.inner_text())
    jobs.push(b"soon", priority=1, delay=timedelta(seconds=2))
    wait_value(page, ready_of("jobs"), 1)
    expect(tile).to_have_text(re.compile(r"^next due\s+in 4\d:\d\d$"))
    store.actions("ann").promote("jobs", [later.id])
    wait_value(page, ready_of("jobs"), 2)
    expect(tile).to_be_hidden()
    expect(row).to_be_hidden()

    jobs.extend(lease, seconds=1)
    wait_value(page, ready_of("jobs"), 3)
    assert len(asked) < 4, asked  # a page asks anew when it lost its connection; a countdown would each second
    assert page.evaluate("document.querySelector('time[data-countdown]').closest('[aria-live], [role=status]')") is None


def test_a_queues_page_counts_down_too_and_calmly_for_those_that_want_less_motion(
    new_page: NewPage, jobs: Queue
) -> None:
    jobs.push(b"later", priority=1, delay=timedelta(seconds=115))
    jobs.push(b"held", priority=1)
    jobs.lease(seconds=600)
    page = new_page()
    page.goto("/queues/jobs/")
    expect(page.locator(TILE.format(kind="field", what="due"))).to_have_text(re.compile(r"^next due\s+in \d+0 s$"))
    expect(page.locator(TILE.format(kind="field", what="expiry"))).to_have_text(
        re.compile(r"^next expiry\s+in [5-9] min\s*$")
    )
    plain = new_page(java_script_enabled=False)
    plain.goto("/queues/jobs/")
    expect(plain.locator(TILE.format(kind="field", what="due"))).to_have_text(re.compile(r"^next due\s+in [01]:\d\d$"))


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_moments_are_typed_in_the_zone_that_was_chosen(
    new_page: NewPage, site: Site, strict: Strict, store: Store, scripts: bool
) -> None:
    strict.allowed.append("422")
    store.create_queue("jobs").push(b"x", priority=1)
    page = new_page(java_script_enabled=scripts, viewport={"width": 360, "height": 800})
    page.context.add_cookies([{"name": reader_preferences.TIME_ZONE, "value": "Europe/Berlin", "url": site.address}])
    operator = Operator(page).go("/queues/jobs/pause/")
    expect(operator.form.get_by_label("Time zone")).to_have_value("Europe/Berlin")
    operator.fill(reason="r", lasting="at", at="2027-10-31T02:30").confirm()
    operator.expect_words("this time comes twice, at 2027-10-31 00:30 and at 2027-10-31 01:30 UTC.")
    if scripts:
        operator.expect_usable()
    expect(operator.form.get_by_label("Moment")).to_have_value("2027-10-31T02:30")
    expect(operator.form.get_by_label("Time zone")).to_have_value("Europe/Berlin")
    operator.fill(at="2027-10-31T00:30", zone="UTC").confirm()
    operator.expect_toast("It resumes 2027-10-31 02:30:00 UTC+2 (2027-10-31 00:30:00 UTC).")

    operator.go("/audit/")
    if scripts:
        operator.expect_usable()
    page.get_by_label("Since, Europe/Berlin").fill("2026-07-01 12:00")
    page.get_by_label("Since, Europe/Berlin").press("Enter")
    page.wait_for_url("**/audit/?*since=2026-07-01*")
    expect(page.get_by_label("Since, Europe/Berlin")).to_have_value("2026-07-01 12:00 UTC+2")
    theirs = new_page()
    theirs.goto(page.url)
    expect(theirs.get_by_label("Since, UTC")).to_have_value("2026-07-01 10:00 UTC")

    operator.open("jobs", since="2026-07-01 12:00", zone="Europe/Berlin").expect_words("1 found")
    if scripts:
        operator.expect_usable()
    expect(page.get_by_label("Younger than")).to_have_value("2026-07-01 12:00 UTC+2")
    expect(page.get_by_label("Younger than")).to_have_accessible_description(re.compile("a moment in Europe/Berlin"))


def test_the_longest_names_and_moments_are_read_to_their_ends(page: Page, site: Site, store: Store) -> None:
    store.create_queue("jobs")
    longest = "America/Argentina/ComodRivadavia"
    page.context.add_cookies([{"name": reader_preferences.TIME_ZONE, "value": longest, "url": site.address}])
    whole = "input => input.scrollWidth <= input.clientWidth"
    page.goto("/queues/jobs/push/")
    zone = page.locator("main input.zone")
    expect(zone).to_have_value(longest)
    for width in (1280, 820):
        page.set_viewport_size({"width": width, "height": 800})
        assert zone.evaluate(whole, timeout=5000), width
    page.goto("/audit/?since=2026-10-25T00:30:59.123Z&until=2026-12-25T22:30:59.123Z")
    for width in (1280, 820):
        page.set_viewport_size({"width": width, "height": 800})
        for name in ("since", "until"):
            assert page.locator(f"main input[name={name}]").evaluate(whole, timeout=5000), (name, width)
