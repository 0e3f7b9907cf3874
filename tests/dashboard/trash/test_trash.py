"""The trash on its page: every kind of entry, its author and deadline, and undone from there and from every answer."""

from collections.abc import Callable

import pytest

from pqadmin.accounts.rights import Role
from queues import Store
from tests.dashboard.conftest import Desk


@pytest.fixture(autouse=True)
def filled(store: Store) -> None:
    for name in ("jobs", "mail"):
        store.create_queue(name).push_many([(b'{"n": %d}' % n, n) for n in range(10)])


def values(store: Store, name: str = "jobs") -> list[bytes]:
    return [item.value for item in store.queue(name).items().items]


def do_everything(store: Store) -> None:
    ann = store.actions("ann")
    jobs = store.queue("jobs")
    items = jobs.items().items
    ann.pop("jobs")
    ann.delete_item("jobs", items[1].id)
    ann.move_items("jobs", [items[2].id, items[3].id], "mail")
    ann.reprioritize("jobs", [items[4].id], priority=99)
    ann.edit_item("jobs", items[5].id, b"edited", expect=items[5].value)
    ann.purge("jobs", confirm="jobs")
    ann.delete_queue("mail", confirm="mail")


def test_every_kind_of_entry_is_shown_in_words(operator: Desk, store: Store) -> None:
    do_everything(store)
    page = operator.open("/trash/")
    for words in ("popped", "deleted", "moved to mail", "re-prioritized", "edited", "purged", "deleted queue"):
        assert words in page
    assert "ann" in page
    assert "in 7 d" in page


def test_everything_is_undone_from_the_page_newest_first(operator: Desk, store: Store) -> None:
    before = values(store), values(store, "mail")
    do_everything(store)
    for _ in range(7):
        page = operator.open("/trash/")
        assert operator.send(page, "restore/").status == 200
    assert "The trash is empty" in operator.open("/trash/")
    assert (values(store), values(store, "mail")) == before


def test_entries_are_found_by_queue_person_and_act(operator: Desk, store: Store) -> None:
    do_everything(store)
    store.actions("bob").pop("jobs")
    assert "re-prioritized" not in operator.open("/trash/?act=pop").text.split("Undo ends")[1]
    assert "Nothing here fits" in operator.open("/trash/?by=carol")
    assert "Nothing here fits" in operator.open("/trash/?queue=" + "x" * 290)
    assert operator.open("/trash/?queue=mail").html.count("<tr>") == 2  # its deletion, beside the header
    assert operator.open("/trash/?act=%00&by=%00&queue=%00").status == 200


def test_what_was_restored_is_not_restored_again_and_its_person_is_shown(
    desk: Callable[..., Desk], store: Store
) -> None:
    ann, bob = desk(name="ann"), desk(name="bob")
    store.actions("carol").pop("jobs")
    hers, his = ann.open("/trash/"), bob.open("/trash/")
    assert "Put back in its old place." in ann.send(hers, "restore/")
    told = bob.send(his, "restore/")
    assert "Already put back" in told
    assert "by ann at" in told
    assert len(values(store)) == 10


def test_what_has_gone_on_since_is_said_and_the_rest_can_be_undone(operator: Desk, store: Store) -> None:
    items = store.queue("jobs").items().items[:4]
    store.actions("ann").move_items("jobs", [item.id for item in items], "mail")
    store.actions("bob").delete_item("mail", items[0].id)
    asked = operator.send(operator.open("/trash/?act=move"), "restore/")
    assert asked.status == 409
    assert "1 of 4 was popped, moved or changed after this. Nothing was undone." in asked
    assert len(values(store)) == 6
    done = operator.send(asked, "restore/")
    assert "Undone: 3 items are as they were, where they were. 1 has gone on since and was left alone." in done
    assert len(values(store)) == 9


def test_an_undo_from_the_page_of_an_item_stays_there(operator: Desk, store: Store) -> None:
    item = store.queue("jobs").items().items[0]
    here = f"/queues/jobs/items/{item.id}/"
    for page in (here, "/queues/mail/items/0/", "//evil/queues/jobs/items/0/", "", "https://[x"):
        store.actions("ann").reprioritize("jobs", [item.id], priority=99)
        action, fields = operator.open("/trash/").form("restore/")[:2]
        sent = operator.client.post(action, fields, headers={"Referer": f"http://testserver{page}" if page else ""})
        assert (sent.status_code, sent["Location"]) == (303, here if page == here else "/queues/jobs/")


def test_nothing_is_offered_when_all_have_gone_on(operator: Desk, store: Store) -> None:
    item = store.queue("jobs").items().items[0]
    store.actions("ann").move_items("jobs", [item.id], "mail")
    store.actions("bob").delete_item("mail", item.id)
    asked = operator.send(operator.open("/trash/?act=move"), "restore/")
    assert "All of these items have gone on since" in asked
    assert "Undo the other" not in asked


def test_hidden_values_stay_hidden_in_the_trash(operator: Desk, store: Store) -> None:
    store.queue("jobs").push(b'{"password": "hunter2"}', priority=-1)
    store.actions("ann").pop("jobs")
    store.queue("jobs").configure(redact=["password"])
    assert "hunter2" not in operator.open("/trash/").html


def test_the_heading_promises_the_undo_of_pushes_on_pages_alone(operator: Desk, store: Store) -> None:
    store.actions("ann").push("jobs", b"by command", priority=1)
    page = operator.open("/trash/")
    assert "The trash is empty" in page
    assert "what they pushed on pages" in page
    assert "Pushes and imports by command are not here." in page


def test_purge_is_beside_delete_for_those_that_may(operator: Desk, desk: Callable[..., Desk], store: Store) -> None:
    header = operator.open("/queues/jobs/").html.partition('class="qh"')[2].partition('class="why"')[0]
    assert header.index("/queues/jobs/purge/") < header.index("/queues/jobs/delete/")
    assert not [link for link in desk(Role.VIEWER, "vic").open("/queues/jobs/").links if "purge" in link]
