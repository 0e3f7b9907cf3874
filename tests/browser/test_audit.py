"""The audit and the trash in a browser: what is asked, what is undone, and files that no spreadsheet runs."""

import csv
import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from queues import Queue, Store
from tests.browser.conftest import NewPage, Strict
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


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_acts_are_found_by_what_is_asked(new_page: NewPage, jobs: Queue, scripts: bool) -> None:
    operator = Operator(new_page(java_script_enabled=scripts))
    operator.go("/audit/").page.get_by_label("Queue").fill(jobs.name)
    operator.page.get_by_label("What was done").select_option("move")
    operator.page.get_by_label("Since, UTC").fill("1 h")
    operator.page.get_by_role("button", name="Filter").click()
    table = operator.page.locator("table.acts tbody tr")
    expect(table).to_have_count(1)
    expect(table).to_contain_text("3 items")
    expect(table).to_contain_text("audit:review")
    operator.page.get_by_role("link", name="Clear").click()
    operator.page.get_by_role("link", name="ann", exact=True).first.click()
    expect(operator.page.locator("table.acts")).not_to_contain_text("popped min")
    operator.go("/audit/", since="yesterday").expect_words("Give a length of time", "No act fits")


def test_what_is_shown_is_what_the_file_holds(operator: Operator, jobs: Queue, tmp_path: Path) -> None:
    operator.go("/audit/", queue=jobs.name)
    found = {}
    for name in ("CSV", "NDJSON"):
        with operator.page.expect_download() as download:
            operator.page.get_by_role("link", name=name).click()
        found[name] = tmp_path / name
        download.value.save_as(found[name])
    with found["CSV"].open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = [json.loads(line) for line in found["NDJSON"].read_text("utf-8").splitlines()]
    assert (
        [row["verb"] for row in rows] == [line["verb"] for line in lines] == ["configure", "pop_min", "move", "create"]
    )
    assert lines[1]["actor"] == HOSTILE
    assert rows[1]["actor"] == f"'{HOSTILE}"
    assert rows[2]["reason"] == f"'{HOSTILE}"


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


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_the_trash_undoes_in_part_what_changed_since(
    new_page: NewPage, jobs: Queue, store: Store, strict: Strict, scripts: bool
) -> None:
    strict.allowed.append("409")
    operator = Operator(new_page(java_script_enabled=scripts))
    review = store.queue("audit:review")
    review.pop_min()
    operator.go("/trash/", queue=jobs.name, act="move").expect_words("moved", "audit:review", "ann")
    with operator.page.expect_navigation():
        operator.page.get_by_role("button", name="Undo: moved").first.click()
    operator.expect_refusal("Some items have gone on since", "1 of 3 was popped")
    operator.confirm().expect_toast("Undone: 2 items are as they were, where they were. 1 has gone on since")
    assert len(values_of(jobs)) == 6
    assert review.depth() == 0


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (768, "light"), (1440, "dark")])
def test_every_page_is_usable(new_page: NewPage, jobs: Queue, width: int, scheme: str) -> None:
    operator = Operator(new_page(viewport={"width": width, "height": 800}, color_scheme=scheme))
    operator.go("/audit/").expect_usable().expect_words("popped min", "<script>alert(1)</script>")
    operator.go("/audit/", queue="nobody", verb="push").expect_usable()
    operator.go("/trash/").expect_usable()
