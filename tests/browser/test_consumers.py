"""The consumers on a queue's page change while it is open: one comes, tells what it does, and is gone."""

from playwright.sync_api import Page, expect

from queues import Store
from queues.consumers.presence import Presence
from queues.serving.background import BackgroundThreads
from tests.browser.conftest import NewPage, open_live


def test_consumers_come_and_go_while_the_page_is_open(page: Page, store: Store) -> None:
    jobs, context = store.create_queue("jobs"), store.context
    open_live(page, "/queues/jobs/")
    panel = page.locator("#consumers")
    expect(panel.locator("[data-none=unknown]")).to_be_visible()

    presence = Presence(context.kv, context.keyspace, context.clock, BackgroundThreads())
    taking = presence.of(jobs.id)
    taking.leased({b"12345678": context.clock.now_ms() + 600_000}, "press <b>7</b>")
    presence.beat()
    row = panel.locator("tr[data-consumer]")
    expect(row).to_have_count(1)
    expect(row.locator("[data-part=worker]")).to_have_text("press <b>7</b>")
    expect(row.locator("[data-part=holds]")).to_have_text("1")
    expect(panel.locator("[data-none=unknown]")).to_be_hidden()

    row.evaluate("row => { row.dataset.same = 'yes'; }")
    with taking.waits(12):
        presence.beat()  # changes nothing of the queue
        expect(row.locator("[data-part=waiting]")).to_have_text("12")
    expect(panel.locator("tr[data-same=yes]")).to_have_count(1)

    presence.stop()
    expect(row).to_have_count(0)
    expect(panel.locator("[data-none=closed]")).to_be_visible()
    expect(panel.locator("[data-part=ended]")).to_contain_text("press <b>7</b>")


def test_a_long_host_leaves_the_process_in_sight_on_a_phone(new_page: NewPage, store: Store) -> None:
    jobs, context = store.create_queue("jobs"), store.context
    presence = Presence(context.kv, context.keyspace, context.clock, BackgroundThreads())
    presence.of(jobs.id).leased({b"12345678": context.clock.now_ms() + 600_000}, "worker-" * 20)
    presence.beat()
    page = new_page(viewport={"width": 390, "height": 844})
    page.goto("/queues/jobs/")
    panel = page.locator("#consumers .table-card")
    panel.locator("[data-part=host]").evaluate("host => { host.textContent = 'invoice-worker-'.repeat(9); }")
    assert panel.evaluate("panel => panel.scrollWidth - panel.clientWidth") == 0
    presence.stop()


def test_the_focus_stays_in_a_row_while_those_around_it_end(page: Page, store: Store) -> None:
    """In one that ends, too, until it leaves by itself."""
    jobs, context = store.create_queue("jobs"), store.context
    presences = []
    for n in range(3):
        presences.append(presence := Presence(context.kv, context.keyspace, context.clock, BackgroundThreads()))
        presence.of(jobs.id).leased({b"1234567%d" % n: context.clock.now_ms() + 600_000}, f"w{n}")
        presence.beat()
    open_live(page, "/queues/jobs/")
    rows = page.locator("tr[data-consumer]:not([data-gone])")
    expect(rows).to_have_count(3)
    names = [row.locator("[data-part=worker]").inner_text() for row in rows.all()]
    rows.nth(1).get_by_role("link").focus()
    presences[int(names[0][1:])].stop()
    expect(rows).to_have_count(2)
    expect(rows.first.get_by_role("link")).to_be_focused()
    presences[int(names[1][1:])].stop()
    expect(rows.locator("[data-part=worker]")).to_have_text([names[2]])
    ended = page.locator("tr[data-consumer][data-gone]")
    expect(ended.get_by_role("link")).to_be_focused()
    presences[int(names[2][1:])].stop()
    expect(rows).to_have_count(0)
    expect(ended.get_by_role("link")).to_be_focused()
    page.keyboard.press("Tab")
    expect(ended).to_have_count(0)
    expect(page.locator("#consumers table")).to_be_hidden()
