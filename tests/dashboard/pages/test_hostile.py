"""Hostile names, values, priorities and reasons on every page: shown, never obeyed."""

import base64
from collections.abc import Callable
from urllib.parse import quote

import pytest

from pqadmin.accounts.roles import Role
from queues import Store
from tests.dashboard.conftest import Desk

NAMES = ["x" * 200, "قائمة:الانتظار", "中文:队列", ":::", "-._", "é́́́", "new", "items", "a:b:c:"]
VALUES = [
    b"<script>alert(1)</script>",
    b"</textarea><img src=x onerror=alert(1)>",
    "\u202eright to left\u2066".encode(),
    b"\x00\x01\x1b[31m\x7f",
    bytes(range(256)),
    "👩‍👩‍👧 💩".encode(),
    b'{"<b>": "</script><script>alert(1)</script>", "k": [' + b"9" * 5_000 + b"]}",
    b"{" * 500,
]


@pytest.mark.parametrize("name", NAMES)
def test_every_page_of_a_queue_with_a_hostile_name(operator: Desk, store: Store, name: str) -> None:
    queue = store.create_queue(name)
    item = queue.push(b"value", priority=1)
    base = f"/queues/{quote(queue.name)}/"
    assert queue.name in operator.open("/").rows
    for page in ("", "push/", "pop/", "pause/", "rename/", "delete/", f"items/{item.id}/"):
        assert operator.open(base + page).status == 200
    operator.send(operator.open(base + "pop/"), "pop/")
    renamed = operator.send(operator.open(base + "rename/"), "rename/", name="plain")
    assert renamed.path == "/queues/plain/"
    for page in ("/audit/", "/trash/", f"/audit/?queue={quote(queue.name)}"):
        assert operator.open(page).status == 200


@pytest.mark.parametrize("value", VALUES)
def test_every_page_of_an_item_with_a_hostile_value(operator: Desk, store: Store, value: bytes) -> None:
    item = store.create_queue("jobs").push(value, priority=1)
    pages = ["/", "/queues/jobs/", "/queues/jobs/pop/", f"/queues/jobs/items/{item.id}/"]
    pages += [f"/queues/jobs/items/{item.id}/?as={view}" for view in ("json", "text", "hex")]
    for path in pages:
        page = operator.open(path)
        assert page.status == 200
        assert "<script>alert" not in page.html
        assert "\u202e" not in page.html
        assert "\x00" not in page.html
        assert "\x1b" not in page.html
    taken = operator.send(operator.open("/queues/jobs/pop/"), "pop/")
    assert "Taken from the queue" in taken
    operator.open("/trash/")


@pytest.mark.parametrize("priority", [10**400, -(10**400), 2**2039, 0])
def test_priorities_of_any_size_are_exact_on_the_item_page(operator: Desk, store: Store, priority: int) -> None:
    item = store.create_queue("jobs").push(b"x", priority=priority)
    assert str(priority) in operator.open(f"/queues/jobs/items/{item.id}/")
    assert operator.open("/").status == operator.open("/queues/jobs/?from=" + str(priority)).status == 200


def test_hostile_priorities_reasons_and_people_are_escaped(desk: Callable[..., Desk], store: Store) -> None:
    store.create_queue("strs", priority_type="str").push(b"x", priority="\u202e<b>\x07" + "p" * 150)
    store.actions("<script>alert(1)</script>\u202e").pause("strs", reason="</td><script>alert(1)</script>\u202e\x00")
    admin = desk(Role.ADMIN)
    for path in ("/", "/queues/strs/", "/audit/", "/styleguide/", "/queues/strs/pop/"):
        page = admin.open(path)
        assert page.status == 200
        assert "<script>alert" not in page.html
        assert "\u202e" not in page.text, path


def test_addresses_that_are_no_names(operator: Desk, store: Store) -> None:
    for name in ("%00", "a%0Ab", "%E2%80%AE", "x" * 3_000, "<script>", "%FF%FE"):
        page = operator.open(f"/queues/{name}/")
        assert page.status == 404
        assert operator.open(f"/audit/?queue={name}&actor={name}").status == 200
        assert operator.open(f"/?q={name}&after={name}").status == 200
        assert operator.open(f"/new/?name={name}").status == 200
        assert operator.open(f"/trash/?after={name}").status == 200


def test_a_name_that_fits_in_no_key_is_nobodys(operator: Desk) -> None:
    long = quote("中" * 200)
    for page in (operator.open(f"/audit/?queue={long}"), operator.open(f"/audit/?queue={long}&after=garbage")):
        assert "No queue has the name" in page or "damaged" in page
        assert "No act fits" in page
    assert "No act fits" in operator.open(f"/audit/?by={long}")
    assert operator.open(f"/queues/{long}/").status == 404
    assert operator.open(f"/queues/{long}/pop/").status == 404


def cursor_of(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode().rstrip("=")


NESTED_OR_CUT = ("[" * 2_990, "[" * 2_000, "{", '["x", 1', "[[[1]], 2]", "[1e999, 3]", "[]", '{"a":1}', "\ud800")


@pytest.mark.parametrize("cursor", ["garbage", "%00", "A" * 5_000, *map(cursor_of, NESTED_OR_CUT)])
def test_a_bad_cursor_shows_the_beginning_and_says_so(operator: Desk, store: Store, cursor: str) -> None:
    store.create_queue("jobs")
    page = operator.open(f"/?after={cursor}")
    assert page.status == 200
    assert page.order == ["jobs"]
    assert "does not continue this list" in page


def test_the_styleguide_is_for_admins(desk: Callable[..., Desk]) -> None:
    assert desk(Role.OPERATOR).open("/styleguide/").status == 403
    assert desk(Role.ADMIN).open("/styleguide/").status == 200


def test_a_name_that_looks_like_another_one_is_marked(operator: Desk, store: Store) -> None:
    store.create_queue("orders")
    store.create_queue("\u043erders")
    assert "looks like another name" not in operator.open("/queues/orders/")
    page = operator.open("/queues/\u043erders/")
    assert "looks like another name" in page
    assert "\u043e U+043E CYRILLIC SMALL LETTER O" in page
    assert operator.open("/").html.count('title="\u043e U+043E CYRILLIC SMALL LETTER O"') == 1


def test_letters_that_are_drawn_as_nothing_are_seen_in_values_and_priorities(operator: Desk, store: Store) -> None:
    item = store.create_queue("jobs", priority_type="str").push("a\u3164b".encode(), priority="p\u3164")
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert "⟨3164⟩" in page
    assert "\u3164" not in page.html
