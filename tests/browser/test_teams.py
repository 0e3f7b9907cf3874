"""What teams rely on, in a browser: people and their grants, the window for writes, an overview of many queues."""

import re
import secrets
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from queues import Store, open_store
from tests.browser.conftest import (
    PATIENCE,
    NewPage,
    Site,
    Strict,
    create_queues,
    open_live,
    reload_until_shown,
    sign_in,
    wait_live,
)
from tests.browser.operator import Operator
from tests.browser.wall.test_wall import LIVE, make_board


def test_an_admin_makes_a_person_whose_open_pages_follow_every_grant(
    new_page: NewPage, store: Store, strict: Strict
) -> None:
    strict.allowed.append(r"Failed to load resource: .* (403|404)")
    strict.allowed.append(r"WebSocket .* 403")  # it may try once more before it has asked why
    for name in ("orders:eu", "orders:us", "mail"):
        store.create_queue(name)
    admin = new_page()
    admin.goto("/people/new/")
    admin.get_by_label("Name to sign in with").fill("nora")
    admin.locator("input[name=role][value=none]").check()
    admin.get_by_label("Queues", exact=True).fill("orders:*")
    admin.get_by_role("button", name="Which queues?").click()
    expect(admin.locator("main")).to_contain_text("orders:eu")
    expect(admin.get_by_label("Name to sign in with")).to_have_value("nora")
    admin.get_by_role("button", name="Create").click()
    password = admin.locator("#password").inner_text()
    expect(admin.get_by_role("button", name="Copy")).to_be_visible()
    Operator(admin).expect_usable()

    nora = new_page(storage_state=None)
    sign_in(nora, "nora", password)
    nora.goto("/")
    wait_live(nora)
    rows = nora.locator("tr[data-queue]:not([data-gone])")
    expect(rows).to_have_count(2)
    wall = nora.context.new_page()
    wall.goto(f"/wall/{make_board(admin, 'Teams')}")
    wall.wait_for_selector(LIVE)
    assert nora.goto("/queues/mail/").status == 404
    nora.goto("/")
    wait_live(nora)

    admin.goto("/people/")
    admin.get_by_role("link", name="nora").click()
    admin.get_by_label("Queues", exact=True).fill("mail")
    admin.get_by_role("button", name="Grant", exact=True).click()
    expect(nora.locator('tr[data-queue="mail"]')).to_be_visible()
    admin.get_by_role("button", name="Take away: orders:*").click()
    expect(nora.locator('tr[data-queue="orders:eu"]:not([data-gone])')).to_have_count(0)
    admin.get_by_role("button", name="Take away: mail").click()
    expect(admin.locator("#grants")).to_contain_text("this person sees no queue")
    fresh = nora.locator("[data-fresh]")
    expect(fresh).to_contain_text("no access")
    expect(fresh).to_have_attribute("data-state", "offline")
    assert "Log in" not in str(fresh.get_attribute("title")), "nora is signed in"
    expect(wall.locator("[data-part=veil-why]")).to_contain_text("You may not look at queues any more.")
    expect(wall.locator(".tiles")).to_be_hidden()


@pytest.fixture
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A production site that is read-only until a person arms it."""
    settings = {"PQADMIN_ENVIRONMENT": "production", "PQADMIN_ARM_MINUTES": "15"}
    made = Site(tmp_path_factory.mktemp("guarded"), settings=settings)
    made.start()
    with open_store(made.store_url) as store:
        store.create_queue("jobs")
    yield made
    made.stop()


def test_writes_wait_until_the_site_is_armed_and_nothing_typed_is_lost(
    guarded: Site, chromium: Browser, strict: Strict
) -> None:
    strict.allowed.append(r"Failed to load resource: .* (403|422)")
    context = chromium.new_context(base_url=guarded.address, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE * 1000)
    page = context.new_page()
    strict.watch(page)
    sign_in(page, "admin", guarded.password)
    operator = Operator(page)
    expect(page.locator("header .env, .env").first).to_contain_text("production")
    for width in (929, 993, 1280):
        page.set_viewport_size({"width": width, "height": 700})
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
    operator.push('{"order": "typed by hand"}', 7, queue="jobs")
    operator.expect_words("read-only until you arm it")
    button = page.get_by_role("button", name="Arm for 15 minutes")
    page.get_by_label("To confirm, type the environment's name:").fill("staging")
    with page.expect_navigation():
        button.click()
    operator.expect_words("read-only until you arm it")
    page.get_by_label("To confirm, type the environment's name:").fill("production")
    with page.expect_navigation():
        button.click()
    with open_store(guarded.store_url) as store:
        assert store.queue("jobs").depth() == 0, "arming sends nothing by itself"
        page.get_by_role("button", name="Send it now").click()
        operator.expect_toast("Pushed")
        item = store.queue("jobs").peek_min()
        assert (item.value, item.priority) == (b'{"order": "typed by hand"}', 7)
    left = page.locator(".arming [data-countdown]")
    expect(left).to_have_text(re.compile(r"1[45] min"))
    page.get_by_role("button", name="Disarm").click()
    expect(page.locator(".arming[data-armed=no]")).to_contain_text("Read-only")
    operator.push("again", 1, queue="jobs").expect_words("read-only until you arm it")
    context.close()
    strict.check()


@pytest.fixture
def many(store: Store) -> int:
    """More queues than one window of the overview holds, of names that no page of an earlier test shows."""
    label = secrets.token_hex(4)
    return len(create_queues(store, [f"{label}-{n:03}" for n in range(130)]))


def shown(page: Page) -> list[str]:
    """Return the names of the rows from top to bottom."""
    return page.eval_on_selector_all("tr[data-queue]", "rows => rows.map(row => row.dataset.queue)")


def test_an_overview_of_many_queues_goes_on_below_by_itself_and_nothing_moves(page: Page, many: int) -> None:
    open_live(page, "/?sort=name")
    rows = page.locator("tr[data-queue]")
    expect(rows.nth(99)).to_be_attached()
    before = shown(page)
    top = rows.first.bounding_box()
    page.locator("#queues .pager").scroll_into_view_if_needed()
    expect(rows).to_have_count(many)
    after = shown(page)
    assert (len(before) >= 100, after[: len(before)], len(set(after))) == (True, before, many)
    page.evaluate("scrollTo(0, 0)")
    assert rows.first.bounding_box() == top


def test_an_overview_of_many_queues_goes_on_by_links_without_scripts(
    new_page: NewPage, many: int, store: Store
) -> None:
    page = new_page(java_script_enabled=False)
    page.goto("/?sort=name")
    rows = page.locator("tr[data-queue]")
    reload_until_shown(page, page.locator(f'tr[data-queue] a[href="/queues/{min(store.directory())}/"]'))
    reload_until_shown(page, page.locator(f'[data-total=queues][data-value="{many}"]'))
    expect(rows).to_have_count(100)
    first = shown_in(page)
    page.get_by_role("link", name="Next 100").click()
    expect(rows).to_have_count(many - 100)
    assert not set(first) & set(shown_in(page))
    page.get_by_role("link", name="Back to the first").click()
    expect(rows).to_have_count(100)
    assert shown_in(page) == first


def shown_in(page: Page) -> list[str]:
    """Return the names of the rows of a page without scripts."""
    return page.locator("tr[data-queue] th bdi").all_inner_texts()
