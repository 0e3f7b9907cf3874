"""The push and settings pages in a browser: with scripts and without, by keyboard, small and large, in both themes."""

from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from queues import Queue, Store
from tests.browser.conftest import Strict
from tests.browser.operator import Operator, values_of

HOSTILE = "<script>alert(1)</script>\u202e\" onload=alert(1) '"


@pytest.fixture
def jobs(store: Store) -> Queue:
    return store.create_queue("orders:eu")


def test_items_are_pushed_now_later_and_again(operator: Operator, jobs: Queue) -> None:
    operator.push(HOSTILE, 5, queue=jobs.name).expect_toast("with priority 5")
    (item,) = jobs.items().items
    assert item.value == HOSTILE.encode()
    operator.go("/queues/orders:eu/push/", like=item.id).expect_words("A duplicate of the item, not pushed yet.")
    operator.fill(priority="6", when="delay", delay="2", unit="h").confirm().expect_toast("due")
    assert [each.value for each in jobs.delayed().items] == [HOSTILE.encode()]
    operator.push("at a moment", 7, when="due", due="2099-07-01T12:00:00", zone="Asia/Tokyo")
    assert [each.due_at for each in jobs.delayed().items][1:] == [datetime(2099, 7, 1, 3, 0, tzinfo=UTC)]


def test_json_is_checked_at_its_field_without_leaving_the_page(operator: Operator, jobs: Queue) -> None:
    operator.go("/queues/orders:eu/push/").fill(value='{"a": 1,\n  "b": }')
    operator.form.get_by_role("button", name="Check as JSON").click()
    expect(operator.page.locator("#push-check")).to_contain_text("Line 2, column 8 is not JSON.")
    operator.fill(value='{"a": 1}')
    operator.form.get_by_role("button", name="Check as JSON").click()
    expect(operator.page.locator("#push-check")).to_contain_text("This is JSON. 8 B.")
    assert jobs.totals().traffic == {}


def test_what_is_typed_at_a_choice_chooses_it(operator: Operator, jobs: Queue) -> None:
    operator.go("/queues/orders:eu/push/").fill(value="x", priority="1")
    operator.page.get_by_label("Delay", exact=True).fill("5")
    operator.confirm().expect_toast("due")
    assert jobs.depth("delayed") == 1


def test_templates_by_keyboard_alone(operator: Operator, jobs: Queue) -> None:
    keyboard = operator.go("/queues/orders:eu/push/").page.keyboard
    operator.reach(operator.page.get_by_label("Value"))
    keyboard.type('{"job": "nightly"}')
    operator.reach(operator.page.get_by_label("Priority"))
    keyboard.type("3")
    operator.reach(operator.page.get_by_text("Keep this as a template"))
    keyboard.press("Enter")
    operator.reach(operator.page.get_by_label("Name of the template"))
    keyboard.type("nightly run")
    keyboard.press("Tab")
    keyboard.press("Enter")
    operator.expect_words("Kept as the template “nightly run”. Nothing was pushed.")
    operator.page.get_by_role("link", name="nightly run").click()
    operator.expect_words("From the template “nightly run”.").confirm().expect_toast("Pushed")
    assert values_of(jobs) == [b'{"job": "nightly"}']


def test_every_page_is_usable(operator: Operator, jobs: Queue, strict: Strict) -> None:
    strict.allowed.append("422")
    looks = ((360, "dark"), (1440, "light"))
    jobs.configure(note=HOSTILE * 3, runbook="https://wiki.example/" + "x" * 300, redact=["k" * 64])
    operator.go("/queues/orders:eu/settings/").expect_usable(*looks)
    operator.fill(max_depth="soon", runbook="javascript:alert(1)").confirm().expect_usable(*looks)
    operator.go("/queues/orders:eu/push/").fill(value="{" * 300, when="due", due="2099-01-01T00:00:00", zone="Moon")
    operator.confirm().expect_words("No time zone has this name").expect_usable(*looks)
    operator.go("/queues/orders:eu/push/many/").fill(items="x" * 300 + "\n" + HOSTILE).confirm().expect_usable(*looks)
    operator.go("/queues/orders:eu/export/").expect_usable(*looks)
    jobs.push(HOSTILE.encode(), priority=1)
    operator.go("/queues/orders:eu/purge/").expect_usable(*looks)
