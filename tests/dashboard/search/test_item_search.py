"""Search for items in all queues: by text, field and id, in what the reader may see, in steps."""

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from pqadmin.accounts.models import Grant
from pqadmin.accounts.rights import Role
from pqadmin.dashboard.palette import views as palette
from pqadmin.dashboard.search import views
from pqadmin.live import monitor as monitors
from queues import Store
from tests.dashboard.conftest import Desk

ROW = re.compile(r'<td class="wide mono"><a href="([^"]+)">(.*?)</a>', re.DOTALL)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a page look through all, however busy the machine is."""
    monkeypatch.setattr(views, "SECONDS", 60.0)


@pytest.fixture
def orders(store: Store) -> None:
    eu, us = store.create_queue("orders:eu"), store.create_queue("orders:us", kind="fifo", codec="json")
    eu.push(b'{"customer": {"id": 4711}, "text": "<b>Bold</b> words"}', 1)
    eu.push(b'{"customer": {"id": 47}}', 2, delay=3600)
    us.enqueue({"customer": {"id": "4711"}, "pin": "4711"})
    store.create_queue("mail", kind="fifo").enqueue(b"plain 4711 text")


def found(desk: Desk, query: str) -> list[tuple[str, str]]:
    """Return (queue, line) of what a query of the page finds."""
    rows = ROW.findall(desk.open(f"/search/?{query}").html)
    return [(unescape(url).split("/")[2], line) for url, line in rows]


def test_text_is_found_in_every_queue_and_state_with_its_hits_marked(operator: Desk, orders: None) -> None:
    assert [queue for queue, _ in found(operator, "q=4711")] == ["mail", "orders:eu", "orders:us"]
    assert found(operator, "q=PLAIN")[0] == ("mail", "<mark>plain</mark> 4711 text")
    ((_, line),) = found(operator, "q=" + quote("<b>bold"))
    assert "<mark>&lt;b&gt;Bold</mark>&lt;/b&gt;" in line
    assert len(found(operator, "q=customer")) == 3
    assert len(found(operator, "q=customer&state=delayed")) == 1
    assert [queue for queue, _ in found(operator, "q=4711&queue=orders")] == ["orders:eu", "orders:us"]
    assert [queue for queue, _ in found(operator, "q=4711&queue=*:us")] == ["orders:us"]
    page = operator.open("/search/?q=nowhere")
    assert "Nothing found" in page
    assert "searched 4 items in 3 of 3 queues · 0 found" in page


def test_a_field_is_found_whole_or_in_part(operator: Desk, orders: None, store: Store) -> None:
    assert [queue for queue, _ in found(operator, "q=customer.id:4711")] == ["orders:eu", "orders:us"]
    assert [queue for queue, _ in found(operator, "q=customer.id:47")] == ["orders:eu"]
    assert len(found(operator, "q=customer.id~47")) == 3
    store.queue("mail").enqueue(b"see customer.id:4711")
    assert [queue for queue, _ in found(operator, "q=" + quote('"customer.id:4711"'))] == ["mail"]
    assert [queue for queue, _ in found(operator, "q=" + quote("http://x"))] == []
    page = operator.open("/queues/orders:eu/?q=customer.id:4711")
    assert "1 found" in page
    assert "<mark>4711</mark>" in page.html


def test_a_large_msgpack_value_is_shown_decoded_with_its_hit(operator: Desk, store: Store) -> None:
    value = {"name": "ann\u202e", "pad": ["x" * 50] * 400}
    store.create_queue("packed", codec="msgpack").push(value, 1)
    ((_queue, line),) = found(operator, "q=" + quote("name:ann\u202e"))
    assert "&quot;name&quot;: &quot;<mark>ann" in line
    assert "82 a4 6e" not in line, "no hexadecimal digits"


def test_an_item_is_found_by_its_id(operator: Desk, orders: None, store: Store) -> None:
    item = store.fifo_queue("mail").peek()
    assert item
    assert [queue for queue, _ in found(operator, f"q={item.id}")] == ["mail"]


def test_what_is_redacted_is_not_found(operator: Desk, orders: None, store: Store) -> None:
    assert len(found(operator, "q=pin:4711")) == 1
    store.actions("ann").configure("orders:us", redact=["pin"])
    assert found(operator, "q=pin:4711") == []
    assert "4711" not in dict(found(operator, "q=customer.id:4711"))["orders:us"].partition("pin")[2]


def test_invisible_queues_are_neither_searched_nor_counted(
    desk: Callable[..., Desk], operator: Desk, orders: None
) -> None:
    eve = desk(Role.NONE, "eve")
    Grant.objects.create(user=User.objects.get(username="eve"), glob="mail", role=Role.VIEWER, given_at=timezone.now())
    assert [queue for queue, _ in found(eve, "q=4711")] == ["mail"]
    assert "in 1 of 1 queue " in eve.open("/search/?q=4711")
    assert found(eve, "q=4711&at=orders:eu&in=ready") == []


def test_a_long_search_goes_on_where_it_ended(operator: Desk, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "PAGE", 7)
    for name in ("a", "b", "c"):
        store.create_queue(name, kind="fifo").enqueue_many([b"item %s %d" % (name.encode(), n) for n in range(9)])
    address, lines = "/search/?q=item", list[str]()
    assert "searched 7 items in 1 of 3 queues · 7 found" in operator.open(address)
    for _ in range(9):
        page = operator.open(address)
        lines += [line for _, line in ROW.findall(page.html)]
        onward = re.search(r'data-search-next="([^"]+)"', page.html)
        if onward is None:
            break
        address = unescape(onward.group(1))
    assert len(lines) == len(set(lines)) == 27
    assert "searched 27 items in 3 of 3 queues · 27 found" in page
    store.actions("ann").delete_queue("b", confirm="b", reason="")
    assert operator.open(address).status == 200


def test_queues_that_were_not_read_yet_are_told(operator: Desk, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1_200):
        store.create_queue(f"team{number:04}", kind="fifo")
    store.queue("team1199").enqueue(b"needle")
    monkeypatch.setattr(monitors, "FIRST_PAGE", 0.0)
    page = operator.open("/search/?q=needle")
    assert "still being read" in page
    assert "were not searched yet" in page


@pytest.mark.parametrize(
    "query", ["q=%00", "q=x&in=nowhere&at=none&after=!!", "q=x&searched=-1&found=1e9", "state=x", ""]
)
def test_hostile_addresses_are_answered(query: str, operator: Desk, orders: None) -> None:
    assert operator.open(f"/search/?{query}").status == 200


def test_a_search_says_how_it_read_what_was_typed(operator: Desk, orders: None) -> None:
    for typed, read in (
        ("customer.id:4711", "customer.id is “4711”"),
        ("customer.id~47", "customer.id contains “47”"),
        ("customer.id~", "value or reason contains “customer.id~”"),
        ("customer.id: 4711", "value or reason contains “customer.id: 4711”"),
    ):
        assert f"{read} · searched 4 items" in operator.open(f"/search/?q={quote(typed)}").text, typed
    assert "value contains “mail”" in operator.open("/search/?q=mail&state=ready")
    page = operator.open(f"/search/?q={'a' * 3_000}")
    assert "One looks for at most 1 000 characters." in page
    assert "Nothing found" not in page


def test_the_palette_says_how_far_it_looked(operator: Desk, orders: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "looked through here" not in operator.open("/palette/?q=customer.id:9")
    monkeypatch.setattr(palette, "_HIT_SECONDS", 0.0)
    assert "in all queues: 0 of 3 were looked through here" in operator.open("/palette/?q=customer.id:4711")


def test_the_palette_finds_items_by_a_field_and_leads_to_the_search(operator: Desk, orders: None) -> None:
    page = operator.open("/palette/?q=customer.id:4711").html
    assert page.count('data-kind="item"') == 2
    assert "<mark>4711</mark>" in page
    assert "/search/?q=customer.id%3A4711" in page
    assert "/search/?q=mail" in operator.open("/palette/?q=mail").html
