"""Pushing on a page: what is typed arrives once, and is never lost when it is refused."""

import base64
from collections.abc import Callable

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from pqadmin.accounts.roles import Role
from queues import Actions, Store
from queues.errors import OutcomeUnknown, StoreFull
from tests.dashboard.conftest import Desk
from tests.dashboard.screen import Screen

pytestmark = pytest.mark.usefixtures("jobs")


def test_a_pushed_item_is_there_and_the_page_says_so(operator: Desk, store: Store) -> None:
    page = operator.open("/queues/jobs/")
    after = operator.send(page, "push/", value='{"order": 1}\r\nnext line', priority="-5")
    assert after.path == "/queues/jobs/"
    assert "Pushed 22 B with priority -5." in after
    item = store.queue("jobs").peek_min()
    assert (item.value, item.priority) == (b'{"order": 1}\nnext line', -5)
    assert f"/queues/jobs/items/{item.id}/" in after.links
    [entry] = store.audit.entries(queue="jobs").entries
    assert (entry.actor, entry.via, entry.verb) == ("ada", "web", "push")


@pytest.mark.parametrize("priority", ["", "abc", "1.5", "True", "NaN", "1e400", "9" * 1000, "٣", "1_000"])
def test_a_wrong_priority_keeps_what_was_typed(operator: Desk, store: Store, priority: str) -> None:
    page = operator.open("/queues/jobs/")
    refused = operator.send(page, "push/", value="\n <b>precious</b>\n", priority=priority)
    assert refused.status == 422
    assert refused.form("push/")[1]["value"] == "\n <b>precious</b>\n"
    assert refused.form("push/")[1]["priority"] == priority
    assert 'aria-invalid="true"' in refused.html
    assert store.queue("jobs").depth() == 0
    corrected = operator.send(refused, "push/", priority="1")
    assert "Pushed" in corrected
    assert store.queue("jobs").depth() == 1


def test_values_from_nothing_to_the_limit(operator: Desk, store: Store) -> None:
    operator.send(operator.open("/queues/jobs/push/"), "push/", value="", priority="1")
    operator.send(operator.open("/queues/jobs/push/"), "push/", value="x" * 90_000, priority="2")
    refused = operator.send(operator.open("/queues/jobs/push/"), "push/", value="x" * 90_001, priority="3")
    assert "at most 90,000 bytes" in refused
    assert refused.form("push/")[1]["value"] == "x" * 90_001
    assert [item.size for item in store.queue("jobs").items().items] == [0, 90_000]


def test_bytes_are_typed_as_base64(operator: Desk, store: Store) -> None:
    raw = bytes(range(256))
    page = operator.open("/queues/jobs/push/")
    operator.send(page, "push/", value=base64.encodebytes(raw).decode(), encoding="base64", priority="1")
    assert store.queue("jobs").peek_min().value == raw
    bad = operator.send(operator.open("/queues/jobs/push/"), "push/", value="%%%", encoding="base64", priority="1")
    assert "This is not base64." in bad


def test_a_form_pushes_once_however_often_it_is_sent(operator: Desk, store: Store) -> None:
    action, fields = operator.open("/queues/jobs/").form("push/")
    fields |= {"value": "once", "priority": "1"}
    operator.post(action, fields)
    again = operator.post(action, fields)
    assert again.path == "/queues/jobs/"
    assert "This form was already sent" in again
    assert "Nothing was done a second time." in again
    assert store.queue("jobs").depth() == 1


def test_a_changed_form_is_refused_with_what_was_typed_and_can_be_sent_then(operator: Desk, store: Store) -> None:
    action, fields = operator.open("/queues/jobs/").form("push/")
    operator.post(action, fields, value="first", priority="1")
    changed = operator.post(action, fields, value="second", priority="1")
    assert changed.status == 409
    assert "sent before with other content" in changed
    assert store.queue("jobs").depth() == 1
    assert changed.form("push/")[1]["value"] == "second"
    assert "Pushed" in operator.send(changed, "push/")
    assert store.queue("jobs").depth() == 2


def test_another_file_under_the_same_form_is_refused(operator: Desk, store: Store) -> None:
    action, fields = operator.open("/queues/jobs/push/many/").form("push/many/")

    def send(line: bytes) -> Screen:
        upload = SimpleUploadedFile("items.ndjson", line)
        return Screen(operator.client.post(action, {**fields, "file": upload}, follow=True))

    assert "Pushed 1 item." in send(b'{"value": "first", "priority": 1}')
    assert "already sent" in send(b'{"value": "first", "priority": 1}')
    assert "sent before with other content" in send(b'{"value": "second", "priority": 1}')
    assert store.queue("jobs").depth() == 1


def test_plain_lines_are_values_of_one_priority(operator: Desk, store: Store) -> None:
    store.create_queue("mail", kind="fifo")
    text = "first\r\n\r\n{not json\r\n  two words  "
    page = operator.open("/queues/jobs/push/many/")
    refused = operator.send(page, "push/many/", items=text, format="lines", priority="")
    assert refused.status == 422
    assert store.queue("jobs").depth() == 0
    assert "Pushed 3 items." in operator.send(refused, "push/many/", priority="7")
    assert [(item.value, item.priority) for item in store.queue("jobs").peek_many(9)] == [
        (b"first", 7), (b"{not json", 7), (b"  two words  ", 7),
    ]  # fmt: skip
    fifo = operator.open("/queues/mail/push/many/")
    assert "Enqueued 3 items." in operator.send(fifo, "push/many/", items=text, format="lines")
    assert store.queue("mail").depth() == 3


def test_a_form_of_another_person_or_of_another_queue_is_refused(
    desk: Callable[..., Desk], operator: Desk, store: Store
) -> None:
    store.create_queue("other")
    other = desk(Role.OPERATOR, "eve")
    _, stolen = operator.open("/queues/jobs/").form("push/")
    stolen |= {"value": "kept", "priority": "1"}
    for who, where in ((other, "jobs"), (operator, "other")):
        refused = who.post(f"/queues/{where}/push/", stolen)
        assert refused.status == 409
        assert "This form has expired" in refused or "Another queue has this name now" in refused
        assert refused.form("push/")[1]["value"] == "kept"
    forged = operator.post("/queues/jobs/push/", {"value": "x", "priority": "1", "form_number": "forged"})
    assert "This form has expired" in forged
    assert store.queue("jobs").depth() == store.queue("other").depth() == 0


def test_json_is_checked_by_the_server_with_and_without_script(operator: Desk) -> None:
    page = operator.open("/queues/jobs/")
    whole = operator.send(page, "push/", value='{"a": 1}', priority="x", check="json")
    assert "This is JSON. 8 B" in whole
    assert whole.form("push/")[1]["value"] == '{"a": 1}'
    action, fields = page.form("push/")
    fragment = operator.post(action.replace("push/", "check/"), fields, value='{"a":\n 01}')
    assert "Line 2, column 3 is not JSON." in fragment
    assert "<html" not in fragment.html


def test_a_fifo_queue_speaks_of_head_tail_and_enqueue(operator: Desk, store: Store) -> None:
    store.create_queue("sms", kind="fifo")
    page = operator.open("/queues/sms/")
    for words in ("first in, first out", "Head", "Tail", "Enqueue an item"):
        assert words in page
    for words in ("Pop max", "Priority mix", "Min end"):
        assert words not in page
    after = operator.send(page, "push/", value="hello")
    assert "Enqueued 5 B." in after
    assert store.queue("sms").depth() == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (StoreFull("No room is left in the store."), "The store could not do this"),
        (OutcomeUnknown("The store failed during commit."), "Send this form again: it is not done a second time."),
    ],
)
def test_a_store_that_fails_loses_nothing_that_was_typed(
    operator: Desk, store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    action, fields = operator.open("/queues/jobs/").form("push/")
    fields |= {"value": "precious", "priority": "1"}
    with monkeypatch.context() as broken:
        broken.setattr(Actions, "push_undoably", fail)
        refused = operator.post(action, fields)
    assert refused.status == 503
    assert refused.response["Retry-After"]
    assert words in refused
    assert refused.form("push/")[1]["value"] == "precious"
    # Sent again, from the old page or from this one, it is pushed once at most.
    same = refused.form("push/")[1]["form_number"] == fields["form_number"]
    assert same is isinstance(error, OutcomeUnknown)
    assert "Pushed" in operator.post(action, fields)
    assert ("already sent" in operator.post(*refused.form("push/"))) is same
    assert store.queue("jobs").depth() == (1 if same else 2)


def test_a_fragment_of_a_missing_queue_leads_to_its_page(operator: Desk) -> None:
    answer = operator.client.get("/queues/gone/pop/", headers={"HX-Request": "true", "HX-Target": "div#act"})
    assert answer["HX-Redirect"] == "/queues/gone/"


def test_a_queue_that_is_not_there_names_its_neighbors(operator: Desk) -> None:
    page = operator.open("/queues/jbos/")
    assert page.status == 404
    assert "No queue has this name" in page
    assert "/queues/jobs/" in page.links
    assert operator.post("/queues/jbos/push/", {}).status == 404
