"""Dead items by error in a browser: a group is retried and undone; an item's traceback is folded and can be copied."""

import re

import pytest
from playwright.sync_api import expect

from queues import Queue, Store
from tests.browser.axe import findings
from tests.browser.conftest import NewPage, open_live
from tests.waiting import await_true


@pytest.fixture
def jobs(store: Store) -> Queue:
    """A queue with dead items of two errors."""
    queue = store.create_queue("jobs")
    queue.configure(max_attempts=1)
    for n, error in enumerate(("Timeout: 1 s", "Timeout: 2 s", "KeyError: 'a'")):
        queue.push(b"x", priority=n)
        queue.release(queue.lease(worker="render-7"), reason=error, traceback=f"Traceback\n  {'long ' * 80}\n{error}")
    return queue


def test_a_group_is_retried_and_undone_without_scripts(new_page: NewPage, jobs: Queue) -> None:
    page = new_page(java_script_enabled=False)
    page.goto("/queues/jobs/?state=dead")
    group = page.locator(".dead-errors tbody tr", has_text="Timeout: # s")
    expect(group.locator("td").nth(1)).to_have_text("2")
    group.get_by_role("link", name="Retry").click()
    expect(page.locator(".reckoning .figure dd")).to_have_text("2")
    expect(page.locator(".scope")).to_contain_text("dead by “Timeout: # s”")
    page.locator("form.body").get_by_role("button", name=re.compile("^Retry")).click()
    expect(page.locator(".job-head")).to_be_visible()
    await_true(lambda: jobs.depth("dead") == 1)
    assert [item.reason for item in jobs.dead().items] == ["KeyError: 'a'"]
    page.reload()
    page.get_by_role("button", name="Undo").click()
    await_true(lambda: jobs.depth("dead") == 3)


@pytest.mark.parametrize("width", [390, 1440])
def test_a_group_is_deleted_over_the_list(width: int, new_page: NewPage, jobs: Queue) -> None:
    page = new_page(viewport={"width": width, "height": 900})
    open_live(page, "/queues/jobs/?state=dead")
    page.evaluate("window.same = true")
    page.locator("#items .pick input").last.check()
    group = page.locator(".dead-errors tbody tr", has_text="KeyError")
    delete = group.get_by_role("link", name="Delete")
    delete.focus()
    place = delete.bounding_box()
    page.keyboard.press("Enter")
    sheet = page.locator("#sheet")
    expect(sheet.locator(".reckoning .figure dd")).to_have_text("1")
    sheet.get_by_role("button", name=re.compile("^Delete")).press("Enter")
    expect(sheet.locator(".job-head .word")).to_have_text("done")
    expect(page.locator("#items tr[data-gone]")).to_have_count(1)
    expect(group.locator("td").nth(1)).to_have_text("0")
    expect(page.locator(".dead-errors small")).to_contain_text("of all 2")
    assert findings(page) == []
    sheet.get_by_role("button", name="Undo all of it").press("Enter")
    expect(sheet.locator("h1")).to_contain_text("Undo")
    expect(sheet.locator(".job-head .word")).to_have_text("done")
    expect(page.locator("#items tr[data-gone]")).to_have_count(0)
    expect(group.locator("td").nth(1)).to_have_text("1")
    page.keyboard.press("Escape")
    expect(delete).to_be_focused()
    expect(page.locator("[data-chosen]")).to_have_text("1 selected")
    assert page.evaluate("window.same")
    assert delete.bounding_box() == pytest.approx(place, abs=1)  # the words above may have another height by now
    assert jobs.depth("dead") == 3


def test_a_list_of_one_group_and_its_sample(new_page: NewPage, jobs: Queue) -> None:
    page = new_page()
    page.goto("/queues/jobs/?state=dead")
    page.get_by_role("link", name="Timeout: # s").click()
    expect(page.locator("#items table.dead tbody tr")).to_have_count(2)
    page.go_back()
    page.locator(".dead-errors tbody tr").first.get_by_role("link", name="Sample").click()
    attempt = page.locator(".attempts li")
    expect(attempt).to_contain_text("render-7 released; the item died")
    expect(attempt.locator("pre")).to_be_hidden()
    attempt.locator("summary").click()
    expect(attempt.locator("pre")).to_contain_text("Timeout: 2 s")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "a long line scrolls in its own box"
