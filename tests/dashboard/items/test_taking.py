"""Popping on a page: confirmed, exact, undone under the same key."""

import pytest

from queues import Store
from tests.dashboard.conftest import Desk


@pytest.fixture(autouse=True)
def jobs(store: Store) -> None:
    """A queue with three items."""
    store.create_queue("jobs").push_many([(b"low", 1), (b"middle", 5), (b"high", 9)])


def test_pop_shows_the_item_takes_it_and_offers_it_back(operator: Desk, store: Store) -> None:
    before = store.queue("jobs").items().items
    confirm = operator.open("/queues/jobs/pop/?end=max")
    assert "high" in confirm
    assert "Pop this item from the max end?" in confirm
    assert store.queue("jobs").depth() == 3
    answer = operator.send(confirm, "pop/", reason="customer called")
    assert "Taken from the queue" in answer
    assert "high" in answer
    assert store.queue("jobs").depth() == 2
    back = operator.send(answer, "put-back/")
    assert "Put back in its old place." in back
    assert store.queue("jobs").items().items == before
    verbs = [entry.verb for entry in store.audit.entries(queue="jobs").entries]
    assert verbs == ["put_back", "pop_max"]
    assert store.audit.entries(queue="jobs").entries[1].reason == "customer called"


def test_another_item_at_the_end_stops_the_pop(operator: Desk, store: Store) -> None:
    confirm = operator.open("/queues/jobs/pop/?end=min")
    store.queue("jobs").push(b"newcomer", priority=0)
    refused = operator.send(confirm, "pop/", reason="typed reason")
    assert refused.status == 409
    assert "Another item came to this end" in refused
    assert "newcomer" in refused
    assert refused.form("pop/")[1]["reason"] == "typed reason"
    assert store.queue("jobs").depth() == 4
    assert "newcomer" in operator.send(refused, "pop/")
    assert store.queue("jobs").depth() == 3


def test_a_paused_queue_gives_nothing_and_says_why(operator: Desk, store: Store) -> None:
    confirm = operator.open("/queues/jobs/pop/?end=min")
    store.queue("jobs").pause(reason="ledger closing", by="ops-2")
    refused = operator.send(confirm, "pop/")
    assert refused.status == 409
    assert "The queue is paused" in refused
    assert "Nothing was taken" in refused
    assert store.queue("jobs").depth() == 3


def test_a_pop_form_takes_one_item_however_often_it_is_sent(operator: Desk, store: Store) -> None:
    action, fields = operator.open("/queues/jobs/pop/?end=min").form("pop/")
    operator.post(action, fields)
    again = operator.post(action, fields)
    assert "Nothing was done a second time." in again
    assert "Taken from the queue" in again  # the answer of the first sending
    assert store.queue("jobs").depth() == 2


def test_nothing_ready_is_said_before_and_after(operator: Desk, store: Store) -> None:
    confirm = operator.open("/queues/jobs/pop/?end=min")
    store.queue("jobs").pop_many(3)
    refused = operator.send(confirm, "pop/")
    assert refused.status == 409
    assert "Nothing is ready any more" in refused
    assert "nothing was taken" in refused
    assert "Another item" not in refused
    assert "below" not in refused
    assert "Nothing is ready" in operator.open("/queues/jobs/pop/")


def test_an_item_is_put_back_once(operator: Desk, store: Store) -> None:
    answer = operator.send(operator.open("/queues/jobs/pop/?end=min"), "pop/")
    action, fields = answer.form("put-back/")
    other_tab = operator.open(f"/queues/jobs/?taken={fields['trash_id']}")
    operator.post(action, fields)
    twice = operator.post(action, fields)
    assert "Nothing was done a second time." in twice
    assert "This was restored already, by ada at" in operator.send(other_tab, "put-back/")
    assert store.queue("jobs").depth() == 3
    for forged in ("00" * 20, "<script>"):
        assert "This form has expired" in operator.post(action, fields, trash_id=forged)
    assert [entry.verb for entry in store.audit.entries(queue="jobs").entries] == ["put_back", "pop_min"]


def test_an_item_goes_back_only_from_the_page_of_its_queue(operator: Desk, store: Store) -> None:
    store.create_queue("other")
    answer = operator.send(operator.open("/queues/jobs/pop/?end=min"), "pop/")
    _, fields = answer.form("put-back/")
    assert "Taken from the queue" not in operator.open(f"/queues/other/?taken={fields['trash_id']}")
    refused = operator.post("/queues/other/put-back/", fields)
    assert "No longer in the trash" in refused
    assert store.queue("jobs").depth() == 2
    store.rename_queue("jobs", "tasks")
    renamed = operator.open(f"/queues/tasks/?taken={fields['trash_id']}")
    assert "Taken from the queue" in renamed
    assert "Put back in its old place." in operator.send(renamed, "put-back/")


def test_the_trash_leads_to_the_queue_that_got_the_item(operator: Desk, store: Store) -> None:
    operator.send(operator.open("/queues/jobs/pop/?end=min"), "pop/")
    store.rename_queue("jobs", "tasks")
    store.create_queue("jobs")
    back = operator.send(operator.open("/trash/"), "/restore/")
    assert "Put back in its old place." in back
    assert back.path == "/queues/tasks/"
    assert not [link for link in back.links if link.startswith("/queues/jobs/items/")]
    assert store.queue("tasks").depth() == 3


def test_a_restoring_form_works_once(operator: Desk, store: Store) -> None:
    operator.send(operator.open("/queues/jobs/pop/?end=min"), "pop/")
    action, fields = operator.open("/trash/").form("/restore/")
    operator.post(action, fields)
    again = operator.post(action, fields)
    assert "Nothing was done a second time." in again
    assert "This form has expired" in operator.post(action, {})
    assert [entry.verb for entry in store.audit.entries(queue="jobs").entries] == ["put_back", "pop_min"]


def test_a_fifo_queue_dequeues_its_head(operator: Desk, store: Store) -> None:
    store.create_queue("sms", kind="fifo").enqueue_many([b"first", b"second"])
    confirm = operator.open("/queues/sms/pop/?end=max")  # a FIFO queue has no other way out
    assert "Dequeue this item?" in confirm
    assert "first" in operator.send(confirm, "pop/")
    assert store.queue("sms").peek().value == b"second"


def test_an_older_page_of_the_trash_does_not_call_it_empty(operator: Desk, store: Store) -> None:
    assert "The trash is empty" in operator.open("/trash/")
    operator.send(operator.open("/queues/jobs/pop/?end=min"), "pop/")
    oldest = store.trash.entries().entries[-1].id
    older = operator.open(f"/trash/?after={oldest}")
    assert "Nothing on this page can be restored any more." in older
    assert "The trash is empty" not in older
    assert "Back to the newest" in older
