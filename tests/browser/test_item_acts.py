"""Acts on items in a browser, one or a selection, with and without scripts: what they do, told before and undone after."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from queues import Queue, Store
from tests.browser.conftest import NewPage
from tests.browser.operator import Operator, values_of


@pytest.fixture
def jobs(store: Store) -> Queue:
    """A queue with ready items."""
    queue = store.create_queue("orders:eu")
    queue.push_many([(b'{"order": %d}' % n, n) for n in range(1, 9)])
    return queue


def ids(queue: Queue, *places: int) -> list[str]:
    items = queue.items().items
    return [items[n].id for n in places]


def address(queue: Queue, act: str, *item_ids: str) -> str:
    return f"/queues/{queue.name}/act/?act={act}&" + "&".join(f"id={item_id}" for item_id in item_ids)


def test_one_item_is_moved_from_its_page_and_comes_back(operator: Operator, jobs: Queue, store: Store) -> None:
    review = store.create_queue("review")
    item = jobs.items().items[2]
    operator.open_item(item.id, jobs.name).begin("move").fill(to="review").preview()
    operator.expect_words("review holds 0 ready; its priorities are int.", "The item has priority 3 there.")
    operator.confirm().expect_toast("Moved the item to review.")
    assert [left.id for left in review.items().items] == [item.id]
    operator.follow().expect_words("Item of priority 3")
    operator.expect_row("review", depth=1).expect_row(jobs.name, depth=7)
    operator.open_item(item.id, "review").act("move", to=jobs.name, reason="back by hand").undo()
    assert review.depth() == 1
