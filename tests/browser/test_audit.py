"""The audit and the trash in a browser: what is asked, what is undone, and files that no spreadsheet runs."""

from pathlib import Path

import pytest

from queues import Queue, Store
from tests.browser.operator import Operator, values_of

HOSTILE = '=HYPERLINK("http://x")<script>alert(1)</script>\u202e'


@pytest.fixture
def jobs(store: Store) -> Queue:
    """A queue to which two people did things."""
    ann, bob = store.actions("ann"), store.actions(HOSTILE, via="cli")
    queue = ann.create_queue("audit:eu")
    store.create_queue("audit:review")
    queue.push_many([(b'{"n": %d}' % n, n) for n in range(8)])
    items = queue.items().items
    ann.move_items(queue.name, [item.id for item in items[:3]], "audit:review", reason=HOSTILE)
    bob.pop(queue.name, reason="by hand")
    ann.configure(queue.name, note=HOSTILE.replace("\u202e", ""))
    return queue


def test_items_of_the_page_are_exported_and_come_back(
    operator: Operator, jobs: Queue, store: Store, tmp_path: Path
) -> None:
    jobs.push(HOSTILE.encode(), priority=99)
    operator.open(jobs.name, low=6).page.get_by_role("link", name="Export these").click()
    with operator.page.expect_download() as download:
        operator.page.get_by_role("link", name="CSV").first.click()
    file = tmp_path / "items.csv"
    download.value.save_as(file)
    operator.go("/queues/audit:review/push/many/").page.get_by_label("Or a file").set_input_files(file)
    operator.confirm().expect_toast("Pushed 3 items.")
    assert values_of(store.queue("audit:review"))[-3:] == values_of(jobs)[-3:]


def test_every_page_is_usable(operator: Operator, store: Store, jobs: Queue) -> None:
    named = store.actions("ann").create_queue("audit:" + "a-long-name-" * 8)
    named.push(b"x", 1)
    store.actions("ann").pop(named.name, reason="by hand")
    looks = ((360, "dark"), (768, "light"), (1440, "dark"))
    operator.go("/audit/").expect_usable(*looks).expect_words("popped min", "<script>alert(1)</script>")
    operator.go("/audit/", queue="nobody", verb="push").expect_usable(*looks)
    operator.go("/trash/").expect_usable(*looks)
