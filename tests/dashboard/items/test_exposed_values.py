"""Values that rules hide stay hidden: from editors, from people that lift rules, from moves to where fewer hold."""

from collections.abc import Callable
from typing import Any

import pytest

from pqadmin.accounts.roles import Role
from pqadmin.display.values import what_searchers_see
from queues import Item, Queue, Store
from queues.items.stored_item import digest
from tests.dashboard.conftest import Desk
from tests.dashboard.screen import Screen

VALUE = b'{"pin": "4711"}'
SETTINGS = "/queues/secret/settings/"


@pytest.fixture
def secret(store: Store) -> Queue:
    """A queue that hides pins, one that hides more, and one that hides nothing."""
    for name, rules in (("secret", ("pin",)), ("safe", ("pin", "iban")), ("open", ())):
        store.create_queue(name)
        if rules:
            store.actions("root").configure(name, redact=rules)
    return store.queue("secret")


@pytest.fixture
def item(secret: Queue) -> Item:
    return secret.push(VALUE, priority=1)


def editing(desk: Desk, item: Item) -> Screen:
    """Open the editor of a hidden value, revealing it."""
    return desk.send(desk.open(f"/queues/secret/items/{item.id}/edit/"), "/edit/")


def test_no_page_of_the_editor_tells_a_name_of_a_hidden_value(operator: Desk, store: Store, item: Item) -> None:
    action, fields = operator.open(f"/queues/secret/items/{item.id}/edit/").form("/edit/")
    told = digest(VALUE)
    for typed in ("nope", told):
        blind = {name: text for name, text in fields.items() if name != "reveal"}
        page = operator.post(action, {**blind, "value": "typed over it", "encoding": "text", "digest": typed})
        assert page.status == 409
        assert "digest" not in page.form("/edit/")[1]
        assert "Reveal and edit" in page
        assert "typed over it" in page.html, "what was typed is not lost"
        assert "4711" not in page.html
        assert page.html.count(told) == 0
    assert [entry.verb for entry in store.audit.entries(item=item.id).entries] == []
    assert store.queue("secret").find(item.id).value == VALUE


def test_what_the_editor_holds_of_a_value_is_of_one_item_and_one_person(
    desk: Callable[..., Desk], secret: Queue, item: Item
) -> None:
    ada, bob = desk(name="ada"), desk(name="bob")
    twin = secret.push(VALUE, priority=2)
    seals = {editing(who, which).form("/edit/")[1]["digest"] for who in (ada, bob) for which in (item, twin)}
    assert len(seals) == 4
    assert digest(VALUE) not in seals
    action, fields = editing(ada, item).form("/edit/")
    refused = ada.post(action, fields, value="{}", digest=editing(bob, item).form("/edit/")[1]["digest"])
    assert refused.status == 409


def test_a_conflict_over_a_hidden_value_covers_it_until_it_is_revealed_again(
    desk: Callable[..., Desk], secret: Queue, store: Store, item: Item
) -> None:
    ada, bob = desk(name="ada"), desk(name="bob")
    hers, his = editing(ada, item), editing(bob, item)
    bob.send(his, "/edit/", value='{"pin": "0815"}')
    page = ada.send(hers, "/edit/", value='{"pin": "of ada"}')
    assert page.status == 409
    assert "bob saved another value at" in page
    assert "0815" not in page.html
    assert "digest" not in page.form("/edit/")[1]
    again = ada.send(page, "/edit/")
    assert "0815" in again.form("/edit/")[1]["value"]
    assert [e.actor for e in store.audit.entries(item=item.id).entries if e.verb == "reveal"] == ["ada", "bob", "ada"]
    ada.send(again, "/edit/", value='{"pin": "of ada"}')
    found = secret.find(item.id)
    assert b"of ada" in found.value


@pytest.mark.parametrize("rules", ["", "iban", "pin\n!pin", "pin\n!*"])
def test_only_admins_lift_rules(desk: Callable[..., Desk], secret: Queue, store: Store, rules: str) -> None:
    operator = desk(Role.OPERATOR, "ada")
    refused = operator.send(operator.open(SETTINGS), "settings/", redact=rules, note="kept")
    assert refused.status == 403
    assert "Only an admin lifts rules of redaction" in refused
    assert "Nothing was saved." in refused
    assert refused.form("settings/")[1]["note"] == "kept"
    assert store.queue("secret").config.redact == ("pin",)
    admin = desk(Role.ADMIN, "root")
    assert "Saved: redaction rules" in admin.send(admin.open(SETTINGS), "settings/", redact=rules)
    assert store.queue("secret").config.redact == tuple(rules.split())


def test_operators_add_rules_and_hide_again_what_was_shown(operator: Desk, secret: Queue, store: Store) -> None:
    assert "Saved" in operator.send(operator.open(SETTINGS), "settings/", redact="iban\npin")
    store.actions("root").configure("secret", redact=("pin", "!pin"))
    assert "Saved" in operator.send(operator.open(SETTINGS), "settings/", redact="pin")
    assert store.queue("secret").config.redact == ("pin",)


def move(desk: Desk, item: Item, to: str, **typed: str) -> Screen:
    return desk.send(desk.open(f"/queues/secret/act/?act=move&id={item.id}"), "/act/", to=to, **typed)


def test_the_preview_of_a_move_says_what_becomes_visible(operator: Desk, store: Store, item: Item) -> None:
    action, fields = operator.open(f"/queues/secret/act/?act=move&id={item.id}").form("/act/")
    told = operator.post(action, {**fields, "to": "open", "preview": "auto"})
    assert "open shows what is hidden here: pin." in told
    store.actions("root").configure("open", redact=("pin",))
    assert "hidden here" not in operator.post(action, {**fields, "to": "open", "preview": "auto"})


def test_moving_to_where_less_is_hidden_is_ticked_and_audited(
    operator: Desk, viewer: Desk, store: Store, secret: Queue, item: Item
) -> None:
    refused = move(operator, item, "open", reason="by hand")
    assert refused.status == 422
    assert "open shows what is hidden here: pin." in refused
    assert "Values become visible there" in refused
    assert secret.find(item.id) is not None
    assert "4711" not in refused.html
    fields = refused.form("/act/")[1]
    page = operator.post("/queues/secret/act/", {k: v for k, v in fields.items() if k != "uncover"})
    assert page.status == 422, "the tick alone lets it go on"
    page = operator.send(page, "/act/", uncover="on")
    assert "Moved the item to open." in page
    entry = store.audit.entries(verb="move").entries[0]
    assert entry.reason == "Hidden values become visible there (pin). by hand"
    assert "4711" in viewer.open(f"/queues/open/items/{item.id}/").html


def test_moving_to_where_as_much_is_hidden_asks_nothing(operator: Desk, store: Store, item: Item) -> None:
    page = move(operator, item, "safe", reason="by hand")
    assert "Moved the item to safe." in page
    assert store.audit.entries(verb="move").entries[0].reason == "by hand"


def test_a_rule_of_the_target_that_shows_again_is_asked_for_too(
    operator: Desk, store: Store, item: Item, settings: Any
) -> None:
    store.actions("root").configure("safe", redact=("pin", "!PIN"))
    assert "safe shows what is hidden here: !PIN." in move(operator, item, "safe")
    settings.PQADMIN_REDACT = ("p*",)
    store.actions("root").configure("secret", redact=())
    assert "safe shows what is hidden here: !PIN." in move(operator, item, "safe")
    settings.PQADMIN_REDACT = ()
    assert "Moved the item to safe." in move(operator, item, "safe"), "nothing is hidden here at all"


def test_moving_all_to_where_less_is_hidden_is_ticked_and_audited(
    operator: Desk, store: Store, secret: Queue, item: Item
) -> None:
    page = operator.open("/queues/secret/bulk/?act=move&state=ready")
    refused = operator.send(page, "state=ready", to="open", reason="by hand")
    assert refused.status == 422
    assert "open shows what is hidden here: pin." in refused
    assert store.actions("").jobs() == []
    action, fields = refused.form("state=ready")
    assert operator.post(action, {k: v for k, v in fields.items() if k != "uncover"}).status == 422
    begun = operator.send(refused, "state=ready", uncover="on")
    (job,) = store.actions("").jobs()
    assert begun.path == f"/jobs/{job.id}/"
    assert job.reason == "Hidden values become visible there (pin). by hand"
    store.actions("").run_bulk(job.id, shown=what_searchers_see)
    assert store.queue("open").depth() == 1
    assert "become visible there (pin)" in store.audit.entries(queue="secret").entries[0].reason
