"""The palette: what a few letters find, for whom, and without a script."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from urllib.parse import quote

from django.urls import reverse

from pqadmin.accounts.rights import Role
from pqadmin.dashboard.palette import _all_pages
from queues import Store
from tests.accounts.matrix import PAGES
from tests.dashboard.conftest import Desk

#: What is no page of its own: forms that are only sent, files, answers for programs, and the palette itself.
NOT_FOUND = {
    "livez", "readyz", "accounts:login", "accounts:logout", "dashboard:arm", "dashboard:disarm",
    "dashboard:audit-export", "dashboard:favourite", "dashboard:language", "dashboard:theme", "dashboard:time-zone",
    "dashboard:palette", "dashboard:start-sample", "dashboard:stop-sample", "wall:preview",
}  # fmt: skip
ENTRY = re.compile(r'<li><a href="([^"]+)">.*?data-kind="(\w+)"')


def found(desk: Desk, text: str, here: str = "") -> Sequence[tuple[str, str]]:
    """Return (kind, address) of what a text finds, in order."""
    html = desk.open(f"/palette/?q={quote(text)}&here={quote(here)}").html
    return [(kind, url.replace("&amp;", "&")) for url, kind in ENTRY.findall(html)]


def test_queues_are_found_by_parts_of_their_names_best_first(operator: Desk, store: Store) -> None:
    for name in ("orders:eu:new", "reorder", "orders", "mail"):
        store.create_queue(name)
    queues = [url for kind, url in found(operator, "ord") if kind == "queue"]
    assert queues == ["/queues/orders/", "/queues/orders:eu:new/", "/queues/reorder/"]
    assert ("queue", "/queues/orders:eu:new/") in found(operator, "EU ord")


def test_acts_on_the_queue_that_is_open_and_on_those_that_are_named(operator: Desk, store: Store) -> None:
    store.create_queue("orders")
    store.create_queue("mail", kind="fifo")
    assert found(operator, "pop", here="orders")[:2] == [
        ("act", "/queues/orders/pop/?end=min"),
        ("act", "/queues/orders/pop/?end=max"),
    ]
    assert found(operator, "purge mail")[0] == ("act", "/queues/mail/purge/")
    assert ("act", "/queues/mail/pop/?end=min") in found(operator, "dequeue ma")
    assert not any(url.startswith("/queues/mail/pop") for _, url in found(operator, "pop max mail"))


def test_a_paused_queue_is_resumed_on_its_page(operator: Desk, store: Store) -> None:
    store.create_queue("orders").pause(reason="why", by="ops")
    store.create_queue("orders:eu")
    acts = [url for kind, url in found(operator, "resume orders") if kind == "act"]
    assert acts == ["/queues/orders/"]
    assert "Resume" in operator.open(acts[0]).text


def test_every_page_that_needs_no_name_is_found(desk: Callable[..., Desk], store: Store) -> None:
    views = {view for _label, view, _right in _all_pages()}
    assert {name for name, row in PAGES.items() if not row.arguments} - views == NOT_FOUND
    admin = desk(Role.ADMIN)
    for label, view, _right in _all_pages():
        assert ("page", reverse(view)) in found(admin, label), label


def test_queues_come_before_acts_on_them_and_what_takes_much_away_comes_last(operator: Desk, store: Store) -> None:
    for name in ("orders:eu:new", "orders:eu:old"):
        store.create_queue(name)
    assert found(operator, "orders eu") == [  # the letters e and u are in "Delete the queue" too
        ("queue", "/queues/orders:eu:new/"),
        ("queue", "/queues/orders:eu:old/"),
        ("act", "/queues/orders:eu:new/delete/"),
        ("act", "/queues/orders:eu:old/delete/"),
    ]
    store.create_queue("pu")
    urls = [url for _kind, url in found(operator, "pu", here="pu")]
    assert urls == ["/queues/pu/", "/queues/pu/push/", "/queues/pu/push/many/", "/queues/pu/purge/"]


def test_an_item_is_found_by_its_id_in_whatever_queue_and_state(operator: Desk, store: Store) -> None:
    store.create_queue("orders")
    item = store.create_queue("mail", kind="fifo").enqueue(b"x", delay=timedelta(hours=1))
    assert found(operator, item.id) == [("item", f"/queues/mail/items/{item.id}/")]
    store.acts("ann").delete_queue("mail", confirm="mail")
    page = operator.open(f"/palette/?q={item.id}")
    assert "No queue holds an item of this id now" in page
    assert f"/audit/?item={item.id}" in page.links


def test_what_one_may_not_see_or_do_is_not_found(desk: Callable[..., Desk], store: Store) -> None:
    viewer = desk(Role.VIEWER)
    store.create_queue("orders")
    everything = [entry for text in ("orders", "", "pause orders", "people") for entry in found(viewer, text)]
    assert ("queue", "/queues/orders/") in everything
    assert not [url for kind, url in everything if kind == "act" and not url.endswith(("history/", "export/"))]
    assert not [url for _, url in everything if url.startswith(("/people/", "/new/", "/attach/", "/styleguide/"))]


def test_nothing_that_fits_says_what_to_type(operator: Desk, store: Store) -> None:
    assert "Nothing fits" in operator.open("/palette/?q=%00%E2%80%AEzzz")


def test_the_sheet_of_keys_is_a_page_too(operator: Desk, store: Store) -> None:
    assert "next and previous row" in operator.open("/keys/")
