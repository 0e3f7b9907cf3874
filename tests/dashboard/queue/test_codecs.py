"""Codecs on pages: chosen when a queue is created, used to check and to show values."""

from collections.abc import Callable

import pytest

from pqadmin.accounts.roles import Role
from queues import Store
from tests.dashboard.conftest import Desk


@pytest.mark.parametrize("codec", ["json", "msgpack", "text"])
def test_a_queue_is_created_with_a_codec(operator: Desk, store: Store, codec: str) -> None:
    page = operator.send(operator.open("/new/"), "/new/", name="mail", kind="priority", codec=codec)
    assert store.queue("mail").codec == codec
    assert f"values are {codec}" in page


def test_a_value_that_does_not_decode_is_refused_and_kept(operator: Desk, store: Store) -> None:
    mail = store.create_queue("mail", codec="json")
    refused = operator.send(operator.open("/queues/mail/push/"), "push/", value="{no", priority="1")
    assert refused.status == 422
    assert "mail has the codec json" in refused
    assert refused.form("push/")[1]["value"] == "{no"
    operator.send(refused, "push/", value='{"n": 1}')
    assert mail.pop_min().value == {"n": 1}


def test_values_are_shown_by_the_codec(operator: Desk, store: Store) -> None:
    for codec, value in (("msgpack", [1, "one"]), ("text", "[1, 2]"), ("json", [1, "one"])):
        item = store.create_queue(codec, codec=codec).push(value, 1)
        page = operator.open(f"/queues/{codec}/items/{item.id}/")
        assert ('class="tree' in page.html) == (codec != "text")


def test_an_item_that_does_not_decode_is_shown_as_its_bytes(operator: Desk, store: Store) -> None:
    item = store.create_queue("old").push(b"{no", 1)
    store.create_queue("mail", codec="msgpack")
    store.actions("ada").move_items("old", [item.id], to="mail")
    assert operator.open(f"/queues/mail/items/{item.id}/").status == 200
    assert operator.open("/queues/mail/").status == 200


@pytest.mark.parametrize("deep", [201, 900, 40_000])
@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_an_item_that_is_nested_too_deeply_is_shown(operator: Desk, store: Store, codec: str, deep: int) -> None:
    value = b"[" * deep + b"]" * deep if codec == "json" else b"\x91" * deep + b"\x90"
    item = store.create_queue("old").push(value, 1)
    store.create_queue("mail", codec=codec)
    store.actions("ada").configure("mail", redact=("iban",), preview=("a", "b"))
    store.actions("ada").move_items("old", [item.id], to="mail")
    for path in ("", f"items/{item.id}/", f"items/{item.id}/edit/", "?field=a&text=x", "?text=]"):
        assert operator.open(f"/queues/mail/{path}").status == 200, path
    page = operator.send(operator.open("/queues/mail/push/"), "push/", value="[" * deep + "]" * deep, priority="1")
    assert page.status == 422
    assert store.queue("mail").depth() == 1


def test_a_prefix_is_attached_with_a_codec(desk: Callable[..., Desk], store: Store) -> None:
    admin = desk(Role.ADMIN)
    seen = admin.send(
        admin.open("/attach/"), "/attach/#main", name="legacy", prefix_text='("legacy",)', codec="json", step="look"
    )
    admin.send(seen, "/attach/")
    assert store.queue("legacy").codec == "json"
