"""Looking at queues, items and the audit."""

import json

import pytest

from queues import Store
from tests.dashboard.conftest import Desk

BIG = "123456789012345678901234567890123456789012345678901234567890"


def test_pages_of_items_from_both_ends_and_from_a_priority(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push_many([(f"value-{n:03}".encode(), n) for n in range(120)])
    first = operator.open("/queues/jobs/")
    assert "value-049" in first
    assert "value-050" not in first
    following = next(link for link in first.links if "after=" in link)
    assert "value-050" in operator.open("/queues/jobs/" + following)
    last = operator.open("/queues/jobs/?end=max")
    assert "value-070" in last
    assert "value-069" not in last
    middle = operator.open("/queues/jobs/?from=60")
    assert "value-060" in middle
    assert "value-059" not in middle
    assert first.title == "(120) jobs · pqadmin"


def test_a_foreign_cursor_or_priority_shows_the_beginning_and_says_so(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"first", priority=1)
    store.create_queue("other").push_many([(b"x", 1)] * 60)
    foreign = next(link for link in operator.open("/queues/other/").links if "after=" in link)
    for query in (foreign, "?after=garbage", "?after=%00", "?after=" + "f" * 5_000):
        page = operator.open("/queues/jobs/" + query)
        assert page.status == 200
        assert "does not continue this list" in page
        assert "first" in page
    wrong = operator.open("/queues/jobs/?from=1.5")
    assert "is not" in wrong
    assert "first" in wrong


def test_json_is_a_tree_with_exact_numbers(operator: Desk, store: Store) -> None:
    value = b'{"big": %s, "rate": 1.10, "twice": 1, "twice": 2, "\\u202e": [null, true]}' % BIG.encode()
    item = store.create_queue("jobs").push(value, priority=1)
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert BIG in page
    assert "1.10" in page
    assert page.text.count('"twice"') == 2
    assert "⟨202E⟩" in page
    assert item.id in page
    raw = operator.open(f"/queues/jobs/items/{item.id}/?as=hex")
    assert "000000  7b 22 62 69 67" in raw.html
    text = operator.open(f"/queues/jobs/items/{item.id}/?as=text")
    assert '"rate": 1.10' in text


@pytest.mark.parametrize(
    ("value", "view", "words"),
    [
        (b"", "text", "empty value"),
        ("Grüße\x07".encode(), "text", "Grüße"),
        (b"\xff\xfe\x00", "hex", "ff fe 00"),
        (b"[" * 40_000 + b"]" * 40_000, "text", "Only the beginning is shown."),
        (b"x" * 90_000, "text", "Only the beginning is shown."),
        (json.dumps(list(range(9_000))).encode(), "json", "more are not drawn"),
        (b"NaN", "text", "NaN"),
        (b"\xed\xa0\x80", "hex", "ed a0 80"),
    ],
)
def test_each_value_is_shown_in_the_view_that_fits(
    operator: Desk, store: Store, value: bytes, view: str, words: str
) -> None:
    item = store.create_queue("jobs").push(value, priority=1)
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert words in page
    assert f'?as={view}" aria-current="true"' in page.html
    for other in ("json", "text", "hex", "nonsense"):
        assert operator.open(f"/queues/jobs/items/{item.id}/?as={other}&all").status == 200


def test_a_download_is_only_bytes(operator: Desk, store: Store) -> None:
    item = store.create_queue("jobs").push(b"<script>alert(1)</script>", priority=1)
    response = operator.client.get(f"/queues/jobs/items/{item.id}/download/")
    assert response.content == b"<script>alert(1)</script>"
    assert response["Content-Type"] == "application/octet-stream"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"].startswith("attachment;")


def test_an_item_that_is_gone_says_so(operator: Desk, store: Store) -> None:
    item = store.create_queue("jobs").push(b"x", priority=1)
    store.queue("jobs").pop_min()
    for item_id in (item.id, "0" * 40, "<script>", "x" * 500):
        page = operator.open(f"/queues/jobs/items/{item_id}/")
        assert page.status == 404
        assert "a program has taken it since, or it never was here." in page
    assert operator.open(f"/queues/jobs/items/{item.id}/download/").status == 404


def test_the_audit_shows_actor_time_action_and_reason(operator: Desk, store: Store) -> None:
    acts = store.actions("eve", via="cli")
    acts.create_queue("jobs")
    acts.push("jobs", b"12345", priority=7)
    acts.pause("jobs", reason="ledger closing")
    store.actions("ada").create_queue("other")
    page = operator.open("/audit/")
    for words in ("eve cli", "paused", "ledger closing", "pushed", "priority 7", "created the queue"):
        assert words in page
    assert "No act fits" in operator.open("/audit/?by=nobody")
    assert "No act fits" in operator.open("/audit/?queue=nowhere")
    assert "is damaged" in operator.open("/audit/?after=garbage")


def test_the_audit_goes_on_by_cursor(operator: Desk, store: Store) -> None:
    acts = store.actions("eve")
    acts.create_queue("jobs")
    for n in range(60):
        acts.push("jobs", b"x", priority=n)
    first = operator.open("/audit/")
    assert "priority 59" in first
    older = operator.open("/audit/" + next(link for link in first.links if "after=" in link))
    assert "priority 0 " in older
    assert "priority 59" not in older
