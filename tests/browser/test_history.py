"""A queue's history in a browser: drawn at once, newer after a change, silent without one, readable without scripts."""

from playwright.sync_api import expect

from queues import Store
from tests.browser.axe import findings
from tests.browser.conftest import NewPage, wait_live

HERE = "/queues/jobs/history/"


def test_charts_are_drawn_at_once_and_anew_after_a_change_only(new_page: NewPage, store: Store) -> None:
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"x", 1)] * 50)
    recorder = store.recorder()
    recorder.look()
    recorder.flush()
    page = new_page()
    page.goto(HERE)
    expect(page.locator(".chart canvas").first).to_be_visible()
    wait_live(page)
    assert findings(page) == []
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_response(lambda response: "/history/data/" in response.url) as answer:
        jobs.pop_min()
    assert answer.value.json()["charts"]["depth"]["columns"][0][-1] == 49
    expect(page.locator("[data-field=ready]")).to_have_text("49")
    assert len(asked) == 1
    page.keyboard.press("Tab")
    page.locator("summary").first.press("Enter")
    expect(page.locator(".numbers table").first).to_be_visible()

    phone = new_page(viewport={"width": 320, "height": 700}, java_script_enabled=False)
    phone.goto(HERE)
    phone.locator("summary").first.click()
    expect(phone.locator(".numbers td").first).to_have_text("49")
    assert phone.evaluate("document.documentElement.scrollWidth") <= 320
