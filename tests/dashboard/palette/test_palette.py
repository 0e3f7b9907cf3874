"""The palette: what a few letters find, for which person, and without a script."""

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from html import unescape
from urllib.parse import quote

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from pqadmin.accounts.models import Grant
from pqadmin.accounts.rights import Role
from pqadmin.dashboard.palette.views import _all_pages
from queues import Queue, Store
from tests.accounts.matrix import PAGES
from tests.dashboard.conftest import Desk

#: What is no page of its own: forms that are only sent, files, answers for programs, and the palette itself.
NOT_FOUND = {
    "accounts:login", "accounts:logout", "dashboard:arm", "dashboard:disarm",
    "dashboard:audit-export", "dashboard:favorite", "dashboard:fold", "dashboard:rows", "dashboard:charts-data",
    "dashboard:pause-group", "dashboard:resume-group", "dashboard:language", "dashboard:theme", "dashboard:time-zone",
    "dashboard:palette", "dashboard:start-sample", "dashboard:stop-sample", "wall:preview", "wall:enter", "styleguide",
}  # fmt: skip
#: An entry, but for the last one, which searches all queues for what was typed.
ENTRY = re.compile(r'<li><a href="((?!/search/\?)[^"]+)">.*?data-kind="(\w+)"')


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


def test_a_part_of_a_name_that_is_within_a_word_of_an_act_offers_no_act(operator: Desk, store: Store) -> None:
    for name in ("orders:eu:refunds", "orders:us:payments"):
        store.create_queue(name)
    assert "Delete the queue" not in operator.open("/palette/?q=orders+eu").text
    assert "Delete the queue" in operator.open("/palette/?q=orders+eu+del").text


def test_dead_items_are_retried_where_there_are_some(operator: Desk, store: Store) -> None:
    orders = store.create_queue("orders", kind="fifo")
    store.create_queue("mail").push(b"x", 1)
    orders.enqueue(b"x")
    store.actions("ann").configure("orders", max_attempts=1)
    orders = store.fifo_queue("orders")
    if (lease := orders.lease()) is not None:
        orders.release(lease)
    acts = [url for kind, url in found(operator, "retry dead") if kind == "act"]
    assert acts == ["/queues/orders/bulk/?state=dead&act=retry"]
    assert [url for kind, url in found(operator, "retry ord") if kind == "act"] == acts
    assert [url for _, url in found(operator, "dead", here="orders")][:1] == acts
    assert not [url for kind, url in found(operator, "retry mail") if kind == "act"]
    assert [url for kind, url in found(operator, "retry dead", here="mail") if kind == "act"] == acts
    assert not [url for kind, url in found(operator, "", here="mail") if url in acts]
    assert operator.open(acts[0]).status == 200


def test_many_queues_that_fit_are_counted(operator: Desk, store: Store) -> None:
    for number in range(12):
        store.create_queue(f"orders:{number}")
    assert len(found(operator, "orders")) == 8
    assert "12 queues fit, the best 8 are here" in operator.open("/palette/?q=orders").text
    assert len([url for kind, url in found(operator, "pause orders") if kind == "act"]) == 8


def test_a_theme_is_chosen_where_a_script_can_press_its_button(operator: Desk, store: Store) -> None:
    assert "Dark theme" not in operator.open("/palette/?q=dark").text
    answer = operator.client.get("/palette/?q=dark", headers={"HX-Target": "div#palette-found"})
    assert 'data-press="theme=dark"' in answer.content.decode()


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
    assert found(operator, "orders de") == [  # the letters d and e are in "orders" too
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
    assert found(operator, item.id)[0] == ("item", f"/queues/mail/items/{item.id}/")
    store.actions("ann").delete_queue("mail", confirm="mail")
    page = operator.open(f"/palette/?q={item.id}")
    assert "No queue holds an item of this id now" in page
    assert f"/audit/?item={item.id}" in page.links


def test_what_one_may_not_see_or_do_is_not_found(viewer: Desk, store: Store) -> None:
    store.create_queue("orders")
    everything = [entry for text in ("orders", "", "pause orders", "people") for entry in found(viewer, text)]
    assert ("queue", "/queues/orders/") in everything
    assert not [url for kind, url in everything if kind == "act" and not url.endswith(("history/", "export/"))]
    assert not [url for _, url in everything if url.startswith(("/people/", "/new/", "/attach/", "/styleguide/"))]


def test_what_nothing_fits_is_looked_for_in_items(operator: Desk, store: Store) -> None:
    page = operator.open("/palette/?q=%00%E2%80%AEzzz")
    assert found(operator, "zzz") == []
    assert "Search items for “⟨202E⟩zzz”" in page


def test_the_sheet_of_keys_is_a_page_too(operator: Desk, store: Store) -> None:
    assert "next and previous row" in operator.open("/keys/")


def acts_of(desk: Desk, item_id: str, name: str = "jobs") -> list[str]:
    """Return the addresses of the buttons on an item's page."""
    html = desk.open(f"/queues/{name}/items/{item_id}/").html
    return [unescape(url) for url in re.findall(r'<a class="button" href="(/queues/[^"]+)"', html)]


def test_an_item_found_by_its_id_comes_with_the_acts_that_its_page_has(operator: Desk, store: Store) -> None:
    jobs = store.create_queue("jobs")
    jobs.push(b"held", priority=0)
    jobs.lease(seconds=60, worker="w")
    dead = jobs.push(b"dying", priority=0)
    jobs.configure(max_attempts=1)
    jobs.release(jobs.lease(seconds=60, worker="w"))
    later = jobs.push(b"later", priority=1, delay=timedelta(hours=1))
    ready, fifo = jobs.push(b"now", priority=1), store.create_queue("mail", kind="fifo").enqueue(b"x")
    held = jobs.leased().items[0]
    for name, item in (("jobs", ready), ("jobs", later), ("jobs", held), ("jobs", dead), ("mail", fifo)):
        (first, *acts) = found(operator, item.id)
        assert first == ("item", f"/queues/{name}/items/{item.id}/")
        assert {kind for kind, _url in acts} == {"act"}
        assert sorted(url for _kind, url in acts) == sorted(acts_of(operator, item.id, name)) != []
        assert operator.open(acts[0][1]).status == 200
    assert [url for _kind, url in found(operator, f"MOVE {ready.id}")] == [
        f"/queues/jobs/act/?act=move&id={ready.id}",
        f"/queues/jobs/items/{ready.id}/",
    ]
    assert "act=delete" in found(operator, ready.id)[-1][1]  # what takes it away is the last


def test_an_open_item_has_its_acts_first_and_by_their_words(operator: Desk, store: Store) -> None:
    item = store.create_queue("jobs").push(b"x", priority=1)
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert f"/palette/?here=jobs&item={item.id}" in page.links  # without a script
    everything = operator.open(f"/palette/?here=jobs&item={item.id}")
    urls = [url.replace("&amp;", "&") for url, _kind in ENTRY.findall(everything.html)]
    assert sorted(urls[:6]) == sorted(acts_of(operator, item.id))
    assert "this item" in everything

    def typed(text: str) -> list[str]:
        html = operator.open(f"/palette/?q={text}&here=jobs&item={item.id}").html
        return [url.replace("&amp;", "&") for url, _kind in ENTRY.findall(html)]

    assert typed("re-pri") == typed("repri")
    assert typed("repri")[0] == f"/queues/jobs/act/?act=reprioritize&id={item.id}"
    assert typed("delete this item") == [f"/queues/jobs/act/?act=delete&id={item.id}"]
    assert typed("delete")[:2] == [f"/queues/jobs/act/?act=delete&id={item.id}", "/queues/jobs/delete/"]
    store.queue("jobs").pop_min()
    assert typed("move") == []
    for nonsense in ("%00", "0" * 40, "key-00", "<script>", "x" * 9_000):
        assert operator.open(f"/palette/?here=jobs&item={nonsense}").status == 200


def ticked(desk: Desk, name: str, state: str, selected: str = "3", text: str = "") -> list[tuple[str, str]]:
    """Return (button, address) of the acts on ticked rows that the dialog of a list offers."""
    address = f"/palette/?q={text}&here={name}&state={state}&selected={selected}"
    html = desk.open(address, **{"HX-Target": "div#palette-found"}).html
    return [(press, url) for url, press in re.findall(r'<a href="([^"]+)" data-press="(\w+)"', html)]


def test_ticked_rows_have_the_acts_of_their_list(operator: Desk, store: Store, jobs: Queue) -> None:
    jobs.push(b"x", priority=1)
    jobs.push(b"later", priority=1, delay=timedelta(hours=1))
    store.create_queue("mail", kind="fifo").enqueue(b"x")
    for name, state in (("jobs", "ready"), ("jobs", "delayed"), ("mail", "ready")):
        html = operator.open(f"/queues/{name}/?state={state}").html
        buttons = re.findall(r'<button class="small[^"]*" name="act"\s+value="(\w+)"', html)
        assert [press for press, _url in ticked(operator, name, state)] == buttons != []
    assert ticked(operator, "jobs", "ready", text="delete")[0] == ("delete", "/queues/jobs/act/?act=delete")
    for state, selected in (("ready", ""), ("ready", "0"), ("ready", "x"), ("trash", "3"), ("nonsense", "3")):
        assert ticked(operator, "jobs", state, selected) == []
    assert "data-press" not in operator.open("/palette/?here=jobs&state=ready&selected=3").html  # a page has no list


def test_actions_on_items_are_hidden_without_the_right(desk: Callable[..., Desk], viewer: Desk, store: Store) -> None:
    item = store.create_queue("jobs").push(b"x", priority=1)
    assert found(viewer, item.id) == [("item", f"/queues/jobs/items/{item.id}/")]
    html = viewer.open(f"/palette/?here=jobs&item={item.id}").html
    assert "act=" not in html
    assert ticked(viewer, "jobs", "ready") == []
    store.create_queue("mail").push(b"x", priority=1)
    some = desk(Role.NONE, "bea")
    bea = User.objects.get(username="bea")
    Grant.objects.create(user=bea, glob="mail", role=Role.OPERATOR, given_at=timezone.now())
    assert [entry for entry in found(some, item.id) if "jobs" in entry[1]] == []
    assert ENTRY.findall(some.open(f"/palette/?here=jobs&item={item.id}&q=move+this").html) == []
    assert ticked(some, "jobs", "ready") == []
    assert ticked(some, "mail", "ready") != []
