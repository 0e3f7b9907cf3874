"""What comes late, or by itself, takes nothing of what the reader typed, ticked or looks at."""

import re
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from queues import Queue, Store
from tests.browser.conftest import NewPage, Site, Strict, open_live, sign_in, until

#: What a browser says of answers that refuse.
REFUSED = [r"status of 40[1349]", r"WebSocket .* 403"]


@pytest.fixture
def jobs(store: Store) -> Queue:
    """A few items."""
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"v%d" % n, n) for n in range(9)])
    return jobs


def hold(page: Page, address: str, *, post: bool = True) -> list[Route]:
    """Hold back what is sent to these addresses, or what is read from them, and return it as it comes."""
    held: list[Route] = []

    def decide(route: Route) -> None:
        if (route.request.method == "POST") is post:
            held.append(route)
        else:
            route.continue_()

    page.route(re.compile(address), decide)
    return held


def menu(page: Page, words: str) -> None:
    """Open the sheet of an act in the menu."""
    page.locator("summary.button", has_text="More").click()
    page.get_by_role("link", name=words).click()
    expect(page.locator("#sheet form.body")).to_be_visible()


@pytest.fixture
def ended(new_page: NewPage, site: Site, strict: Strict) -> Page:
    """A page with a session of its own, which the test ends."""
    strict.allowed += REFUSED
    page = new_page(storage_state=None)
    sign_in(page, "admin", site.password)
    return page


def test_a_page_stays_with_what_is_typed_when_its_session_ends(ended: Page, site: Site, jobs: Queue) -> None:
    page = ended
    open_live(page, "/queues/jobs/")
    page.locator("[data-drawer]").click()
    page.fill("#push-value", "{typed with care}")
    page.context.clear_cookies(name="pqadmin_session")
    polls: list[int] = []
    page.on("response", lambda answer: polls.append(answer.status) if "/jobs/jobs/" in answer.url else None)
    until(page, lambda: 401 in polls)
    page.get_by_role("button", name="Check as JSON").click()
    alert = page.locator("#drawer [role=alert]")
    expect(alert).to_contain_text("you are not logged in any more")
    expect(alert.get_by_role("link")).to_have_attribute("href", re.compile("^/accounts/login/"))
    expect(page.locator("#push-value")).to_have_value("{typed with care}")
    sign_in(page.context.new_page(), "admin", site.password)
    page.get_by_role("button", name="Check as JSON").click()
    expect(page.locator("#push-check")).not_to_be_empty()
    expect(alert).to_have_count(0)


def test_a_rename_of_the_page_itself_is_no_news(page: Page, jobs: Queue) -> None:
    """The frame with the new name comes before the answer."""
    open_live(page, "/queues/jobs/")
    done: list[tuple[Route, APIResponse]] = []
    page.route(
        re.compile("/rename/$"),
        lambda route: done.append((route, route.fetch())) if route.request.method == "POST" else route.continue_(),
    )
    menu(page, "Rename…")
    page.fill("#sheet [name=name]", "work")
    page.locator("#sheet form button.primary").click()
    expect(page.locator("section[data-other]")).to_be_attached()
    assert page.locator("[data-part=other-queue]").count() == 0
    route, answer = done.pop()
    route.fulfill(response=answer)
    expect(page.locator("h1")).to_have_text("work")


def test_the_palette_says_that_the_session_has_ended(ended: Page, site: Site, jobs: Queue) -> None:
    page = ended
    page.goto("/trash/")
    page.context.clear_cookies(name="pqadmin_session")
    page.keyboard.press("Control+k")
    page.locator("#palette [data-palette-field]").fill("jo")
    alert = page.locator("#palette [role=alert]")
    expect(alert).to_contain_text("You are not logged in any more")
    assert page.url.endswith("/trash/")
    sign_in(page.context.new_page(), "admin", site.password)
    page.locator("#palette [data-palette-field]").fill("job")
    expect(page.locator("#palette-found a").first).to_contain_text("jobs")
    expect(alert).to_have_count(0)


def test_a_page_of_a_deleted_queue_stays_and_says_so(page: Page, jobs: Queue, store: Store, strict: Strict) -> None:
    strict.allowed += REFUSED
    open_live(page, "/queues/jobs/")
    page.locator("[data-drawer]").click()
    page.fill("#push-value", "typed with care")
    polls: list[int] = []
    page.on("response", lambda answer: polls.append(answer.status) if "/jobs/jobs/" in answer.url else None)
    trash = store.delete_queue("jobs")
    expect(page).to_have_title(re.compile("^gone · jobs"))
    expect(page.locator("[data-fresh]")).to_contain_text("reload the page")
    until(page, lambda: 404 in polls)
    page.wait_for_timeout(200)
    expect(page.locator("#push-value")).to_have_value("typed with care")
    expect(page).to_have_title(re.compile("^gone · jobs"))
    store.restore(trash)
    expect(page).to_have_title(re.compile(r"\(9\) · jobs"))
    expect(page.locator("[data-fresh]")).to_have_text("live")


def test_a_preview_of_an_ended_session_leads_nowhere(ended: Page, jobs: Queue) -> None:
    page = ended
    page.goto(f"/queues/jobs/act/?act=reprioritize&id={jobs.peek_min().id}")
    page.fill("[name=reason]", "typed with care")
    page.context.clear_cookies(name="pqadmin_session")
    page.fill("[name=priority]", "7")
    page.keyboard.press("Tab")
    expect(page.locator("main [role=alert]")).to_contain_text("you are not logged in any more")
    expect(page.locator("[name=reason]")).to_have_value("typed with care")


def test_the_back_button_ticks_no_other_items(page: Page, jobs: Queue) -> None:
    open_live(page, "/queues/jobs/")
    boxes = page.locator("#items input[type=checkbox]")
    boxes.nth(1).check()
    page.locator("#items tbody tr").nth(1).locator("a[href*='/items/']").first.click()
    page.wait_for_url("**/items/**")
    jobs.pop_min()
    jobs.pop_min()
    page.go_back()
    expect(boxes).to_have_count(7)
    expect(page.locator("#items :checked")).to_have_count(0)


def test_a_page_says_that_its_queue_was_renamed_and_acts_on_no_other(page: Page, jobs: Queue, store: Store) -> None:
    open_live(page, "/queues/jobs/")
    page.locator("[data-drawer]").click()
    page.fill("#push-value", "typed with care")
    store.actions("eve").rename_queue("jobs", "old-jobs")
    store.create_queue("jobs").push_many([(b"new", n) for n in range(77)])
    notice = page.locator("[data-part=other-queue]")
    expect(notice).to_have_count(2)
    expect(page.locator("#drawer [data-part=other-queue]")).to_be_visible()
    notice = notice.first
    expect(notice).to_contain_text("This queue has another name now: old-jobs")
    expect(page.locator("[data-fresh]")).to_contain_text("reload the page")
    expect(page.locator("#push-value")).to_have_value("typed with care")
    expect(page.locator("#drawer button.primary")).to_be_disabled()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.locator("summary.button", has_text="More").click(force=True)
    expect(page.get_by_role("link", name="Purge…")).to_be_hidden()
    page.wait_for_timeout(5_500)  # a poll comes every 5 seconds
    assert [url for url in asked if "/queues/jobs/" in url] == []
    page.locator("#drawer [data-close]").click()
    notice.get_by_role("link").click()
    expect(page.locator("h1")).to_have_text("old-jobs")
    assert store.queue("jobs").depth() == 77


def test_a_page_whose_name_another_queue_has_says_so(page: Page, jobs: Queue, store: Store, strict: Strict) -> None:
    strict.allowed += REFUSED
    away: list[bool] = []

    def through(route: Any) -> None:
        server = route.connect_to_server()
        route.on_message(server.send)
        server.on_message(lambda text: None if away else route.send(text))
        sockets.append(route)

    sockets: list[Any] = []
    page.route_web_socket(re.compile("/live/"), through)
    open_live(page, "/queues/jobs/")
    away.append(True)
    store.actions("eve").delete_queue("jobs", confirm="jobs")
    store.create_queue("jobs").push_many([(b"new", n) for n in range(77)])
    away.clear()
    sockets[0].close()
    expect(page.locator("[data-part=other-queue]")).to_contain_text("Another queue has this name now: jobs")
    expect(page.locator("dd[data-field=ready]").first).to_have_text("9")
    page.locator("[data-part=other-queue]").get_by_role("link").click()
    expect(page.locator("dd[data-field=ready]").first).to_have_text("77")
    expect(page.locator("[data-part=other-queue]")).to_have_count(0)


def test_a_late_answer_leaves_the_sheet_that_is_shown_by_then(page: Page, jobs: Queue) -> None:
    open_live(page, "/queues/jobs/")
    held = hold(page, "/queues/jobs/pop/")
    page.get_by_role("link", name="Pop min…").click()
    page.locator("#sheet form.body button.primary").first.click(no_wait_after=True)
    until(page, lambda: held)
    page.keyboard.press("Escape")
    menu(page, "Purge…")
    page.locator("#sheet [name=reason]").fill("typed for the purge")
    held.pop().continue_()
    expect(page.locator(".toast")).to_contain_text("Taken from the queue")
    expect(page.locator("#sheet [name=reason]")).to_have_value("typed for the purge")
    expect(page.locator("#sheet [name=reason]")).to_be_focused()
    assert jobs.depth() == 8


def test_a_late_refusal_leaves_the_sheet_that_is_shown_by_then(page: Page, jobs: Queue, store: Store) -> None:
    store.create_queue("taken")
    open_live(page, "/queues/jobs/")
    held = hold(page, "/queues/jobs/rename/")
    menu(page, "Rename…")
    page.fill("#sheet [name=name]", "taken")
    page.keyboard.press("Enter")
    until(page, lambda: held)
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Pause…").click()
    page.locator("#sheet [name=reason]").fill("incident 42")
    held.pop().continue_()
    expect(page.locator(".toast")).to_contain_text("taken")
    expect(page.locator("#sheet [name=reason]")).to_have_value("incident 42")


def test_the_drawer_takes_no_text_until_it_is_empty_again(page: Page, jobs: Queue) -> None:
    open_live(page, "/queues/jobs/")
    page.locator("[data-drawer]").click()
    page.fill("#push-value", "first")
    page.fill("#push-priority", "30")
    posts: list[str] = []
    page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
    held: list[Route] = []

    def decide(route: Route) -> None:
        if route.request.headers.get("hx-target") == "div#toasts":
            held.append(route)
        else:
            route.continue_()

    address = re.compile("/queues/jobs/")
    page.route(address, decide)
    page.keyboard.press("Enter")
    until(page, lambda: held)
    page.keyboard.press("Enter")
    page.locator("#push-value").focus()
    page.keyboard.type("lost")
    expect(page.locator("#push-value")).to_have_value("first")
    held.pop().continue_()
    page.unroute(address, decide)
    expect(page.locator("#drawer")).to_be_hidden()
    page.keyboard.press("p")
    expect(page.locator("#push-value")).to_have_value("")
    page.keyboard.type("second")
    page.fill("#push-priority", "31")
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("with priority 31")
    assert [item.value for item in jobs.peek_many(20)][-2:] == [b"first", b"second"]
    assert len(posts) == 2
