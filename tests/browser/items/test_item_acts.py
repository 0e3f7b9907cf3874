"""Actions on items in a browser, one or a selection, with and without scripts: told before, and undone after."""

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from queues import Queue, Store
from tests.browser.conftest import NewPage
from tests.browser.operator import Operator, values_of

HOSTILE = "<script>alert(1)</script>\u202e\" onload=alert(1) '"


@pytest.fixture
def jobs(store: Store) -> Queue:
    """A queue with items in every state."""
    queue = store.create_queue("orders:eu")
    queue.configure(max_attempts=2)
    queue.push(b"dying", priority=0)
    for _ in range(2):
        queue.release(queue.lease(seconds=60, worker="w"), reason="no such customer")
    queue.push(b"held", priority=0)
    queue.lease(seconds=3600, worker="worker-1")
    queue.push(b"later", priority=3, delay=timedelta(hours=1))
    queue.push_many([(b'{"order": %d}' % n, n) for n in range(1, 7)])
    return queue


def address(queue: Queue, act: str, *item_ids: str) -> str:
    return f"/queues/{queue.name}/act/?act={act}&" + "&".join(f"id={item_id}" for item_id in item_ids)


def of(queue: Queue, *places: int) -> list[str]:
    items = queue.items().items
    return [items[n].id for n in places]


def test_one_item_is_moved_from_its_page_and_comes_back(operator: Operator, jobs: Queue, store: Store) -> None:
    review = store.create_queue("review")
    (item_id,) = of(jobs, 2)
    operator.open_item(item_id, jobs.name).begin("move").fill(to="review").preview()
    operator.expect_words("review holds 0 ready; its priorities are int.", "The item has priority 3 there.")
    operator.confirm().expect_toast("Moved the item to review.")
    assert of(review, 0) == [item_id]
    operator.follow().expect_words("Item of priority 3")
    operator.act("move", to=jobs.name, reason="back by hand").undo().expect_row("review", depth=1)
    assert len(values_of(jobs)) == 5


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_every_act_from_the_page_of_its_item(new_page: NewPage, jobs: Queue, scripts: bool) -> None:
    operator = Operator(new_page(java_script_enabled=scripts))
    ready, later = of(jobs, 4)[0], jobs.delayed().items[0].id
    dead, held = jobs.dead().items[0].id, jobs.leased().items[0].id
    operator.open_item(ready, jobs.name).begin("reprioritize").fill(how="front").preview()
    operator.expect_words("First of all, before priority 1", "number 5 of 6 now, number 1 then")
    operator.confirm().expect_toast("Re-prioritized the item.")
    assert of(jobs, 0) == [ready]
    operator.undo()
    assert of(jobs, 4) == [ready]
    operator.open_item(later).act("reschedule", when="in", amount="90", unit="min").expect_toast(
        "Rescheduled the item."
    )
    operator.undo().open_item(later).act("promote").expect_toast("Promoted the item: it is ready.").undo()
    operator.open_item(dead).act("retry", reason="mended").expect_toast("Retried the item").undo()
    operator.open_item(held).begin("release").expect_words("worker-1 loses the lease")
    operator.confirm().expect_toast("Took the item back").undo()
    operator.open_item(ready).act("delete").expect_toast("Deleted the item.").undo()
    operator.go(f"/queues/{jobs.name}/items/{ready}/edit/").fill(value='{"order": 5, "checked": true}').confirm()
    operator.expect_toast("Saved the value").undo()
    assert values_of(jobs) == [b'{"order": %d}' % n for n in range(1, 7)]
    assert [item.id for item in jobs.dead().items] == [dead]


def test_a_selection_of_the_list(operator: Operator, jobs: Queue, store: Store) -> None:
    review = store.create_queue("review")
    operator.open(jobs.name, state="ready").select('"order": 2', '"order": 5').act("move", to="review")
    operator.expect_toast("Moved 2 items to review.").expect_items(*(f'"order": {n}' for n in (1, 3, 4, 6)))
    operator.undo()
    assert review.depth() == 0
    operator.open(jobs.name, state="dead").select("dying").act("retry").expect_toast("Retried the item")
    assert "state=dead" in operator.page.url or "/items/" in operator.page.url
    operator.go(f"/queues/{jobs.name}/act/?act=delete").expect_toast("No item was selected")


def test_a_selection_is_previewed_while_it_is_typed(operator: Operator, jobs: Queue) -> None:
    operator.go(address(jobs, "reprioritize", *of(jobs, 3, 4))).fill(priority="1")
    operator.page.keyboard.press("Tab")
    operator.expect_words("The first of them: between priority 1 (pushed", "number 4 of 6 now, number 2 then.")
    operator.form.locator("[name=how][value=back]").check()
    operator.expect_words("last of all, behind priority 6")
    expect(operator.form.locator("[name=priority]")).to_be_hidden()
    operator.confirm().expect_toast("Re-prioritized 2 items.").undo()
    assert values_of(jobs) == [b'{"order": %d}' % n for n in range(1, 7)]


def test_a_preview_that_comes_while_the_button_is_pressed_moves_nothing_under_the_finger(
    operator: Operator, jobs: Queue, store: Store
) -> None:
    """Leaving the field asks for the preview, and pressing the button leaves the field."""
    review = store.create_queue("review")
    page = operator.page
    operator.go(address(jobs, "move", *of(jobs, 1, 4))).fill(to="review")
    place = operator.form.locator("button.primary").bounding_box()
    page.mouse.move(place["x"] + 5, place["y"] + place["height"] - 2)
    with page.expect_response(lambda answer: answer.request.method == "POST") as preview:
        page.mouse.down()
    assert "review" in preview.value.text()
    page.evaluate("new Promise(seen => requestAnimationFrame(() => requestAnimationFrame(seen)))")
    expect(page.locator("#act-preview")).to_be_empty()
    with page.expect_navigation():
        page.mouse.up()
    operator.expect_toast("Moved 2 items to review.")
    assert review.depth() == 2


def test_with_the_keyboard_alone(operator: Operator, jobs: Queue, store: Store) -> None:
    review = store.create_queue("review")
    operator.open_item(of(jobs, 0)[0], jobs.name)
    keys = operator.page.keyboard
    operator.reach(operator.page.locator("a[href*='act=move']"))
    keys.press("Enter")
    expect(operator.page.locator("#act-to")).to_be_focused()
    keys.type("review")
    keys.press("Tab")
    operator.expect_words("review holds 0 ready")
    operator.reach(operator.form.locator("button.primary"))
    with operator.page.expect_navigation():
        keys.press("Enter")
    operator.expect_toast("Moved the item to review.")
    operator.reach(operator.page.locator(".toast form button"))
    keys.press("Space")
    operator.expect_toast("Undone: 1 item is as it was")
    assert review.depth() == 0


def test_pages_of_acts_are_usable(operator: Operator, store: Store, jobs: Queue) -> None:
    evil = store.create_queue("evil:" + "x" * 190, priority_type="str")
    evil.push(HOSTILE.encode() * 20, priority=HOSTILE)
    evil.push(b"\xff" * 9_000, priority="z" * 200)
    evil.push(b"x", priority="0")
    evil.lease(seconds=3600, worker=HOSTILE * 4)
    leased, others = evil.leased().items[0].id, of(evil, 0, 1)
    pages = [
        address(evil, "move", leased, *others, "0" * 40),
        address(evil, "release", leased),
        address(jobs, "reprioritize", *of(jobs, 0)),
        address(jobs, "reschedule", jobs.delayed().items[0].id),
        address(evil, "reprioritize", *others),
        *(f"/queues/{evil.name}/{page}/" for page in (f"items/{others[0]}/edit", "delete", "purge", "pop", "pause")),
    ]
    for path in pages:
        operator.go(path).expect_usable((360, "dark"), (1440, "light"))
        assert operator.page.locator("main script, main [onload]").count() == 0
