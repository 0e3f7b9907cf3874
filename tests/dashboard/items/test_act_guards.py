"""What acts on items turn away: addresses that are none, items that are not as they were shown, more than one."""

import pytest

from pqadmin.pages import toasts
from queues import Actions, Queue, Store
from queues.errors import ItemChanged, OutcomeUnknown
from tests.dashboard.conftest import Desk


@pytest.fixture
def jobs(store: Store) -> Queue:
    queue = store.create_queue("jobs")
    queue.push_many([(b"one", 1), (b"two", 2)])
    return queue


@pytest.mark.parametrize("bad", ["http://[x", "//[", "http://\uff0f["])
def test_an_address_that_is_none_leads_to_the_queue(operator: Desk, jobs: Queue, bad: str) -> None:
    item = jobs.items().items[0]
    form = operator.client.get("/queues/jobs/act/", {"act": "delete", "id": item.id, "back": bad})
    assert form.status_code == 200
    page = operator.open(f"/queues/jobs/act/?act=delete&id={item.id}", referer=bad.encode().decode("latin-1"))
    assert page.form("/act/")[1]["back"] == "/queues/jobs/"


@pytest.mark.parametrize("opened", ["/queues/jobs/act/?act=lease&id={id}", "/queues/jobs/pop/?end=min"])
def test_an_item_that_was_changed_since_it_was_shown_is_not_leased(
    operator: Desk, store: Store, jobs: Queue, opened: str
) -> None:
    item = jobs.items().items[0]
    form = operator.open(opened.format(id=item.id))
    store.actions("bob").edit_item("jobs", item.id, b"of bob", expect=b"one")
    refused = operator.send(form, "/act/", seconds="60")
    assert refused.status == 409
    assert "The item has changed" in refused
    assert jobs.depth("leased") == 0
    again = operator.open(f"/queues/jobs/act/?act=lease&id={item.id}")
    assert operator.send(again, "/act/", seconds="60").status == 200
    assert jobs.depth("leased") == 1


def test_a_lease_compares_the_mark_in_its_own_transaction(store: Store, jobs: Queue) -> None:
    acts, item = store.actions("ada"), jobs.items().items[0]
    mark = acts.pick("jobs", [item.id]).picked[0].etag
    store.actions("bob").edit_item("jobs", item.id, b"of bob", expect=b"one")
    with pytest.raises(ItemChanged):
        acts.lease("jobs", seconds=60, expect=item.id, etag=mark)
    assert jobs.depth("leased") == 0


@pytest.mark.parametrize("act", ["lease", "ack"])
def test_acts_for_one_item_turn_many_away(operator: Desk, store: Store, jobs: Queue, act: str) -> None:
    if act == "ack":
        for _ in range(2):
            store.actions("ada").lease("jobs", seconds=600)
    items = (jobs.leased if act == "ack" else jobs.items)().items
    query = "&".join(f"id={item.id}" for item in items)
    page = operator.open(f"/queues/jobs/act/?act={act}&{query}")
    assert page.status == 422
    assert "This act takes one item at a time" in page
    assert not page.has_form("/act/")
    forms = [operator.open(f"/queues/jobs/act/?act={act}&id={item.id}").form("/act/") for item in items]
    both = " ".join(fields["picked"] for _, fields in forms)
    refused = operator.post(forms[0][0], forms[0][1], picked=both, seconds="60")
    assert refused.status == 422
    assert "Nothing was changed." in refused
    assert jobs.depth("leased") == (2 if act == "ack" else 0)
    assert operator.send(operator.open(f"/queues/jobs/act/?act={act}&id={items[0].id}"), "/act/").status == 200


@pytest.mark.parametrize(
    ("address", "form", "action"),
    [
        ("/queues/jobs/act/?act=delete&id={id}", "/act/", "delete_item"),
        ("/queues/jobs/items/{id}/edit/", "/edit/", "edit_item"),
    ],
)
def test_a_form_keeps_its_number_while_its_outcome_is_unknown(
    operator: Desk, jobs: Queue, monkeypatch: pytest.MonkeyPatch, address: str, form: str, action: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OutcomeUnknown("The store failed during commit.")

    page = operator.open(address.format(id=jobs.items().items[0].id))
    with monkeypatch.context() as broken:
        broken.setattr(Actions, action, fail)
        refused = operator.send(page, form)
    assert "Send this form again: it is not done a second time." in refused
    assert refused.form(form)[1]["form_number"] == page.form(form)[1]["form_number"]


def test_a_form_whose_first_sending_broke_is_executed_once_when_it_is_sent_again(
    operator: Desk, jobs: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    form = operator.open(f"/queues/jobs/act/?act=delete&id={jobs.items().items[0].id}")
    operator.client.raise_request_exception = False
    with monkeypatch.context() as broken:
        broken.setattr(toasts, "undoable", fail)
        assert operator.client.post(*form.form("/act/")).status_code == 500
    assert jobs.depth() == 1
    again = operator.send(form, "/act/")
    assert "This form was already sent" in again
    assert jobs.depth() == 1
