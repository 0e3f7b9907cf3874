"""Looking at queues, items and the audit."""

import json

import pytest

from queues import Store
from tests.dashboard.conftest import Desk

BIG = "123456789012345678901234567890123456789012345678901234567890"


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
