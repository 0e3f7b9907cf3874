"""Actions on items by form, one or a selection: what they do, tell and undo; what the second of two operators meets."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from pqadmin.accounts.roles import Role
from queues import Item, Queue, Store
from tests.dashboard.conftest import Desk
from tests.dashboard.screen import Screen
from tests.dumps import dump, states
from tests.others import PREFIX, Others


@pytest.fixture
def jobs(store: Store) -> Queue:
    """A queue with two items in every state, but ready ones of priority 1 to 6."""
    queue = store.create_queue("jobs")
    queue.configure(max_attempts=2)
    for n in range(2):
        queue.push(b"dying%d" % n, priority=0)
        for _ in range(2):
            queue.release(queue.lease(seconds=60, worker="w"), reason="no such customer")
    for n in range(2):
        queue.push(b"held%d" % n, priority=0)
        queue.lease(seconds=600, worker=f"worker-{n}")
    for n in range(1, 7):
        queue.push(b"ready%d" % n, priority=n)
    for n in range(2):
        queue.push(b"later%d" % n, priority=2, delay=timedelta(hours=1))
    return queue


def of(queue: Queue, state: str) -> list[Item]:
    pages = {"ready": queue.items, "delayed": queue.delayed, "leased": queue.leased, "dead": queue.dead}
    return list(pages[state](limit=100).items)


def path(act: str, *items: Item, queue: str = "jobs") -> str:
    return f"/queues/{queue}/act/?act={act}&" + "&".join(f"id={item.id}" for item in items)


def do(desk: Desk, act: str, *items: Item, queue: str = "jobs", **typed: str) -> Screen:
    return desk.send(desk.open(path(act, *items, queue=queue)), "/act/", **typed)


CASES: list[tuple[str, str, int, dict[str, str], str]] = [
    ("move", "ready", 2, {"to": "review"}, "Moved 2 items to review."),
    ("move", "delayed", 1, {"to": "review"}, "Moved the item to review."),
    ("move", "dead", 2, {"to": "review", "priority": "9"}, "Moved 2 items to review."),
    ("reprioritize", "ready", 2, {"how": "set", "priority": "4"}, "Re-prioritized 2 items."),
    ("reprioritize", "ready", 2, {"how": "shift", "shift": "-5"}, "Re-prioritized 2 items."),
    ("reprioritize", "ready", 1, {"how": "back"}, "Re-prioritized the item."),
    ("reprioritize", "dead", 2, {"how": "set", "priority": "4"}, "Re-prioritized 2 items."),
    ("delete", "ready", 1, {}, "Deleted the item."),
    ("delete", "leased", 2, {}, "Deleted 2 items."),
    ("promote", "delayed", 2, {}, "Promoted 2 items"),
    ("reschedule", "delayed", 2, {"amount": "5", "unit": "min"}, "Rescheduled 2 items."),
    ("delay", "ready", 2, {"amount": "5", "unit": "min"}, "Delayed 2 items until they are due."),
    ("retry", "dead", 2, {}, "Retried 2 items"),
    ("release", "leased", 1, {}, "Took the item back"),
]


@pytest.mark.parametrize(("act", "state", "n", "typed", "words"), CASES)
def test_an_act_is_done_told_audited_and_undone(
    operator: Desk, jobs: Queue, store: Store, act: str, state: str, n: int, typed: dict[str, str], words: str
) -> None:
    review = store.create_queue("review")
    before, items = dump(store, jobs, review), of(jobs, state)[:n]
    page = do(operator, act, *items, reason="by hand", **typed)
    assert words in page
    assert dump(store, jobs, review) != before
    entry = store.audit.entries(queue="jobs").entries[0]
    assert (entry.verb, entry.actor, entry.count, entry.reason) == (act, "ada", n, "by hand")
    assert all(store.audit.entries(item=item.id).entries[0].id == entry.id for item in items)
    operator.send(page, "/restore/")
    assert dump(store, jobs, review) == before


def test_what_was_done_is_found_where_it_is(operator: Desk, jobs: Queue, store: Store) -> None:
    store.create_queue("review")
    item = of(jobs, "ready")[0]
    page = do(operator, "move", item, to="review")
    assert page.path == "/queues/jobs/"
    assert f"/queues/review/items/{item.id}/" in page.links
    page = do(operator, "reprioritize", of(jobs, "ready")[0], how="front")
    assert page.path == f"/queues/jobs/items/{of(jobs, 'ready')[0].id}/"


def test_the_answer_leads_back_to_the_list_as_it_was(operator: Desk, jobs: Queue) -> None:
    items = of(jobs, "dead")
    form = operator.open(path("retry", *items), referer="http://testserver/queues/jobs/?state=dead&q=dying")
    page = operator.send(form, "/act/")
    assert (page.path, page.response.request["QUERY_STRING"]) == ("/queues/jobs/", "state=dead&q=dying")
    for hostile in ("http://elsewhere.example/queues/review/", "//elsewhere.example/", "javascript:alert(1)"):
        form = operator.open(path("delete", of(jobs, "ready")[0]), referer=hostile)
        assert form.form("/act/")[1]["back"] == "/queues/jobs/"


def test_both_of_two_operators_learn_the_winner(desk: Callable[..., Desk], jobs: Queue, store: Store) -> None:
    ada, bob = desk(Role.OPERATOR, "ada"), desk(Role.OPERATOR, "bob")
    store.create_queue("review")
    items = of(jobs, "ready")[:5]
    form = ada.open(path("delete", *items))
    do(bob, "move", items[0], to="review")
    do(bob, "reprioritize", items[1], how="set", priority="40")
    store.actions("cleo").pop("jobs")
    before = dump(store, jobs)
    page = ada.send(form, "/act/", reason="mine")
    assert page.status == 409
    assert dump(store, jobs) == before
    assert "2 of 5 are gone: 1 was moved, 1 was removed by a person. 1 item is not as it was shown." in page
    assert "bob moved it to review at" in page
    assert "bob re-prioritized it at" in page
    assert "It is ready with priority 40 now." in page
    assert "cleo popped min it at" in page
    assert f"/queues/review/items/{items[0].id}/" in page.links
    page = ada.send(page, "/act/", reason="mine")
    assert "Deleted 2 items." in page
    assert [item.value for item in of(jobs, "ready")] == [b"ready6", b"ready2"]


def test_acts_on_many_items_are_named_where_items_are_gone(operator: Desk, jobs: Queue, store: Store) -> None:
    items = of(jobs, "ready")[:3]
    form = operator.open(path("delete", *items))
    assert 'id="fates"' not in form
    store.actions("ann").purge("jobs", confirm="jobs")
    page = operator.send(form, "/act/")
    assert (
        "3 of 3 are gone: of 3 no act on them alone is recorded. Acts on many items of this queue: a purge by ann at"
        in page
    )
    assert "a purge by ann at" in operator.open(path("delete", *items))
    more = jobs.push(b"more", 1)
    shown_at = int(operator.open("/queues/jobs/").form("/act/")[1]["shown_at"])
    assert abs(shown_at / 1000 - store.now().timestamp()) < 60
    later = operator.open(f"{path('delete', *items)}&shown_at={shown_at + 3_600_000}")
    assert "3 of 3 are gone" in later
    assert "a purge by ann at" not in later, "the list was shown after it"
    form = operator.open(path("delete", more))
    bob = store.actions("bob")
    bob.run_bulk(bob.begin_bulk("delete", "jobs", state="ready", reason="").id)
    page = operator.send(form, "/act/")
    assert (
        "1 of 1 is gone: of 1 no act on it alone is recorded. Acts on many items of this queue: a bulk job by bob at"
        in page
    )
    assert "(deleted)" in page


def test_what_a_program_took_is_told(operator: Desk, jobs: Queue, store: Store) -> None:
    store.create_queue("review")
    item = of(jobs, "ready")[0]
    form = operator.open(path("move", item))
    assert jobs.pop_min() == item
    page = operator.send(form, "/act/", to="review")
    assert page.status == 409
    assert "No act on it alone is recorded: a program" in page
    assert not page.has_form("/act/")
    again = operator.open(path("move", item))
    assert "a program or an act on many items took it" in again


def test_a_lease_that_another_worker_got_is_not_taken_from_it(operator: Desk, jobs: Queue) -> None:
    (item, _) = of(jobs, "leased")
    form = operator.open(path("release", item))
    assert "worker-0 loses the lease" in form
    operator.send(operator.open(path("release", item)), "/act/")
    lease = jobs.lease(seconds=60, worker="worker-9")
    assert lease.item.id == item.id
    page = operator.send(form, "/act/")
    assert page.status == 409
    assert "It is leased by worker-9 now." in page
    jobs.ack(lease)


def test_taking_items_back_shows_which_of_them_become_dead(operator: Desk, jobs: Queue) -> None:
    first, second = of(jobs, "leased")
    assert "They go back to their old places." in operator.open(path("release", first, second))
    jobs.configure(max_attempts=1)
    assert "This was its last attempt: it goes to the dead." in operator.open(path("release", first))
    done = operator.send(operator.open(path("release", first)), "/act/")
    assert "Took the item back from its worker. This was its last attempt: it goes to the dead." in done
    assert jobs.find(first.id).state == "dead"


def test_items_that_the_act_is_not_for_stay_out_of_it(operator: Desk, jobs: Queue, store: Store) -> None:
    store.create_queue("review")
    ready, (first, second) = of(jobs, "ready")[0], of(jobs, "leased")
    page = operator.open(path("move", ready, first, second))
    assert "2 items are in workers’ hands: worker-0, worker-1" in page
    assert path("release", first, second).removeprefix("/queues/jobs") in " ".join(page.links)
    page = operator.send(page, "/act/", to="review")
    assert "Moved the item to review." in page
    assert states(store, jobs)["leased"] == 2
    page = operator.open(path("promote", of(jobs, "ready")[0]))
    assert page.status == 409
    assert "Only delayed items are promoted." in page
    assert not page.has_form("/act/")


MISFITS = [
    ("words", {}, "The priorities of words are str, these are not: say which one they get there."),
    ("mail", {"priority": "3"}, "That is a fifo queue: its items have no priority."),
    ("nowhere", {}, "No queue has this name."),
    ("jobs", {}, "The items are in jobs already"),
    ("", {}, "Say which queue the items move to."),
    ("words ?", {}, "name"),
    ("review", {"priority": "high"}, "“high” is not a whole number."),
]


@pytest.mark.parametrize(("to", "typed", "words"), MISFITS)
def test_what_does_not_fit_is_told_before_and_refused(
    operator: Desk, jobs: Queue, store: Store, to: str, typed: dict[str, str], words: str
) -> None:
    store.create_queue("review")
    store.create_queue("words", priority_type="str")
    store.create_queue("mail", kind="fifo")
    before = dump(store, jobs)
    form = operator.open(path("move", *of(jobs, "ready")[:2]))
    assert words in operator.send(form, "/act/", to=to, preview="1", **typed)
    page = operator.send(form, "/act/", to=to, **typed)
    assert page.status in (409, 422)
    assert dump(store, jobs) == before
    fixed = operator.send(page, "/act/", to="review", priority="3")
    assert "Moved 2 items to review." in fixed, "what was refused can be corrected and sent"


def test_items_are_moved_into_queues_of_other_kinds(operator: Desk, jobs: Queue, store: Store) -> None:
    words, mail = store.create_queue("words", priority_type="str"), store.create_queue("mail", kind="fifo")
    items = of(jobs, "ready")
    page = operator.send(operator.open(path("move", items[0])), "/act/", to="words", priority="zeta", preview="1")
    assert "words holds 0 ready; its priorities are str. The item has priority zeta there." in page
    operator.send(page, "/act/", to="words", priority="zeta")
    assert of(words, "ready")[0].priority == "zeta"
    page = do(operator, "move", items[1], items[2], to="mail")
    assert [item.value for item in of(mail, "ready")] == [b"ready2", b"ready3"]
    page = operator.send(operator.open(path("move", *of(mail, "ready"), queue="mail")), "/act/", to="jobs", preview="1")
    assert "say which one they get there" in page
    page = operator.send(page, "/act/", to="jobs", priority="7")
    assert jobs.depth() == 5


def test_a_preview_says_between_which_items_it_goes(operator: Desk, jobs: Queue) -> None:
    form = operator.open(path("reprioritize", of(jobs, "ready")[5]))
    page = operator.send(form, "/act/", how="set", priority="3", preview="1")
    assert "Priority 6 → 3." in page
    assert "Between priority 3 (pushed" in page
    assert ") and priority 4 (pushed" in page
    assert "By pop min: number 6 of 6 now, number 4 then." in page
    assert "First of all, before priority 1" in operator.send(form, "/act/", how="front", preview="1")
    assert "Nothing would change" in operator.send(form, "/act/", how="set", priority="6", preview="1")
    assert "A priority is needed." in operator.send(form, "/act/", how="set", preview="1")
    fragment = operator.client.post(
        form.form("/act/")[0],
        {**form.form("/act/")[1], "how": "set", "preview": "auto"},
        headers={"HX-Target": "div#act-preview", "HX-Request": "true"},
    )
    assert fragment.content.decode().strip() == "", "what is not typed yet is no mistake"
    assert of(jobs, "ready")[5].priority == 6


def test_due_times_are_read_in_the_typed_time_zone(operator: Desk, jobs: Queue) -> None:
    item = of(jobs, "delayed")[0]
    form = operator.open(path("reschedule", item))
    typed = {"when": "at", "at": "2031-07-01T12:00", "zone": "Europe/Berlin"}
    assert "Due 2031-07-01 10:00:00 UTC" in operator.send(form, "/act/", preview="1", **typed)
    operator.send(form, "/act/", **typed)
    found = jobs.find(item.id)
    assert found.due_at.isoformat() == "2031-07-01T10:00:00+00:00"
    form = operator.open(path("reschedule", found))
    for wrong in ({"when": "at", "at": "soon"}, {**typed, "zone": "Mars/Base"}, {"amount": "-1"}, {"amount": "nan"}):
        assert operator.send(form, "/act/", **wrong).status == 422
    page = operator.send(form, "/act/", when="at", at="2001-01-01T00:00", zone="UTC")
    assert "Rescheduled the item." in page
    assert jobs.find(item.id).state == "ready"


def test_leasing_an_item_and_saying_that_it_is_done(desk: Callable[..., Desk], jobs: Queue, store: Store) -> None:
    ada, bob = desk(Role.OPERATOR, "ada"), desk(Role.OPERATOR, "bob")
    item = of(jobs, "ready")[0]
    pop = ada.open("/queues/jobs/pop/")
    page = ada.send(pop, "/act/", seconds="900")
    assert page.path == f"/queues/jobs/items/{item.id}/"
    assert "You hold the item until" in page
    held = jobs.find(item.id)
    assert (held.worker, held.state) == ("ada", "leased")
    assert f"/queues/jobs/act/?act=ack&id={item.id}" in page.links
    other = bob.open(path("ack", item))
    assert "Another worker holds it: ada" in other
    assert not other.has_form("/act/")
    before = dump(store, jobs)
    page = do(ada, "ack", item)
    assert "The item is done" in page
    assert jobs.find(item.id) is None
    ada.send(page, "/restore/")
    assert dump(store, jobs) == before
    do(ada, "release", item)
    assert jobs.find(item.id).state == "ready"


def test_leasing_what_a_person_took_since_takes_nothing_else(operator: Desk, jobs: Queue) -> None:
    pop = operator.open("/queues/jobs/pop/")
    jobs.pop_min()
    assert operator.send(pop, "/act/", seconds="60").status == 409
    assert len(of(jobs, "leased")) == 2


def test_fifo_items_go_to_the_front(operator: Desk, store: Store) -> None:
    mail = store.create_queue("mail", kind="fifo")
    items = mail.enqueue_many([b"1", b"2", b"3"])
    form = operator.open(path("reprioritize", items[2], queue="mail"))
    assert "Set the priority" not in form
    assert "First of all" in operator.send(form, "/act/", how="front", preview="1")
    operator.send(form, "/act/", how="front")
    assert [item.value for item in of(mail, "ready")] == [b"3", b"1", b"2"]


def test_the_items_of_attached_queues_are_moved_and_deleted(operator: Desk, store: Store) -> None:
    others = Others(store)
    others.push((5, b"five"), (1, b"one"))
    legacy, review = store.attach("legacy", prefix=PREFIX), store.create_queue("review")
    items = list(legacy.items().items)
    page = do(operator, "move", *items, queue="legacy", to="review")
    assert "Moved 2 items to review." in page
    assert review.depth() == 2
    operator.send(page, "/restore/")
    assert [item.id for item in legacy.items().items] == [item.id for item in items]
    page = do(operator, "delete", *items, queue="legacy")
    assert legacy.depth() == 0
    operator.send(page, "/restore/")
    for act, why in (("promote", "never delayed"), ("release", "respect a lease"), ("reprioritize", "not re-prior")):
        page = operator.open(path(act, items[0], queue="legacy"))
        assert page.status == 409
        assert why in page
    page = operator.open(f"/queues/legacy/items/{items[0].id}/edit/")
    assert page.status == 409
    assert "not edited" in page


def test_a_form_is_sent_once_for_the_queue_that_it_was_made_for(operator: Desk, jobs: Queue, store: Store) -> None:
    form = operator.open(path("promote", *of(jobs, "delayed")))
    assert "Promoted 2 items" in operator.send(form, "/act/")
    assert "already sent" in operator.send(form, "/act/")
    form = operator.open(path("retry", *of(jobs, "dead")))
    store.rename_queue("jobs", "old")
    store.create_queue("jobs")
    page = operator.send(form, "/act/")
    assert "Another queue has this name now" in page
    assert states(store, store.queue("old"))["dead"] == 2
    action, fields = operator.open(path("retry", *of(store.queue("old"), "dead"), queue="old")).form("/act/")
    page = operator.post(action, fields | {"picked": " ".join(p.partition(":")[0] for p in fields["picked"].split())})
    assert "This form has expired" in page


def test_a_thousand_items_are_moved_at_once(operator: Desk, store: Store) -> None:
    bulk, review = store.create_queue("bulk"), store.create_queue("review")
    items = bulk.push_many([(b"x", n) for n in range(1_000)])
    form = Screen(
        operator.client.post("/queues/bulk/act/", {"act": "move", "ids": " ".join(item.id for item in items)})
    )
    assert "and 988 other items" in form
    page = operator.send(form, "/act/", to="review")
    assert review.depth() == 1_000
    operator.send(page, "/restore/")
    assert bulk.depth() == 1_000
    many = " ".join(f"{n:040x}" for n in range(1_001))
    assert operator.client.post("/queues/bulk/act/", {"act": "move", "ids": many}).status_code == 303


def test_an_act_without_items_or_of_an_unknown_kind_is_refused(operator: Desk, jobs: Queue) -> None:
    assert "No item was selected" in operator.open("/queues/jobs/act/?act=move")
    assert "knows no such act" in operator.open(path("explode", of(jobs, "ready")[0]))
    assert operator.open("/queues/nowhere/act/?act=move&id=1").status == 404
    page = operator.open("/queues/jobs/act/?act=move&id=<script>alert(1)</script>")
    assert page.status == 409
    assert "<script>alert" not in page.html


HOSTILE = "<script>alert(1)</script>\u202e\" onload=alert(1) '"


@pytest.mark.parametrize("act", ["move", "reprioritize", "delete", "release", "retry", "promote", "reschedule"])
def test_hostile_text_stays_text(operator: Desk, store: Store, act: str) -> None:
    evil = store.create_queue("evil", priority_type="str")
    evil.configure(max_attempts=1)
    evil.push(HOSTILE.encode(), priority="1")
    evil.release(evil.lease(worker=HOSTILE), reason=HOSTILE)
    evil.push(HOSTILE.encode(), priority="1")
    evil.lease(seconds=600, worker=HOSTILE)
    evil.push(HOSTILE.encode(), priority=HOSTILE)
    evil.push(HOSTILE.encode(), priority=HOSTILE, delay=timedelta(hours=1))
    items = [item for state in ("ready", "delayed", "leased", "dead") for item in of(evil, state)]
    pages = [operator.open(path(act, *items, queue="evil"))]
    pages += [operator.open(path(act, item, queue="evil")) for item in items]
    for page in pages:
        assert "<script>alert" not in page.html
        assert "\u202e" not in page.html
    if pages[0].has_form("/act/"):
        page = operator.send(pages[0], "/act/", how="front", to=HOSTILE, amount=HOSTILE, reason=HOSTILE, preview="1")
        assert "<script>alert" not in page.html


def test_viewers_do_not_act(viewer: Desk, jobs: Queue) -> None:
    item = of(jobs, "ready")[0]
    assert viewer.open(path("delete", item)).status == 403
    assert viewer.open(f"/queues/jobs/items/{item.id}/edit/").status == 403


def test_a_value_is_edited_and_undone(operator: Desk, jobs: Queue, store: Store) -> None:
    item = of(jobs, "ready")[0]
    before = dump(store, jobs)
    form = operator.open(f"/queues/jobs/items/{item.id}/edit/")
    assert form.form("/edit/")[1]["value"] == "ready1"
    checked = operator.send(form, "/edit/", value='{"a": 1', check="json")
    assert checked.form("/edit/")[1]["value"] == '{"a": 1'
    assert jobs.find(item.id) == item
    page = operator.send(checked, "/edit/", value='{"a":\r\n1}', reason="typo")
    assert "Saved the value, 8 B." in page
    assert jobs.find(item.id).value == b'{"a":\n1}'
    operator.send(page, "/restore/")
    assert dump(store, jobs) == before
    page = operator.send(operator.open(f"/queues/jobs/items/{item.id}/edit/"), "/edit/")
    assert "Nothing was changed" in page


@pytest.mark.parametrize(
    "value", [b"\xff\x00\r\n", b"a\rb", b"\n\nlines\n", b"", "ünï".encode(), b"<b>&amp;</textarea>"]
)
def test_any_bytes_survive_the_editor(operator: Desk, store: Store, value: bytes) -> None:
    queue = store.create_queue("jobs")
    item = queue.push(value, priority=1)
    page = operator.send(operator.open(f"/queues/jobs/items/{item.id}/edit/"), "/edit/")
    assert "Nothing was changed" in page
    page = operator.send(operator.open(f"/queues/jobs/items/{item.id}/edit/"), "/edit/", value="%%%", encoding="base64")
    assert page.status == 422
    assert "not base64" in page


def test_the_second_of_two_editors_sees_both_values(desk: Callable[..., Desk], jobs: Queue) -> None:
    ada, bob = desk(Role.OPERATOR, "ada"), desk(Role.OPERATOR, "bob")
    item = of(jobs, "ready")[0]
    form = ada.open(f"/queues/jobs/items/{item.id}/edit/")
    bob.send(bob.open(f"/queues/jobs/items/{item.id}/edit/"), "/edit/", value="of bob")
    page = ada.send(form, "/edit/", value="of ada")
    assert page.status == 409
    assert "bob saved another value at" in page
    assert "of bob" in page
    assert page.form("/edit/")[1]["value"] == "of ada"
    ada.send(page, "/edit/")
    assert jobs.find(item.id).value == b"of ada"
    form = ada.open(f"/queues/jobs/items/{item.id}/edit/")
    jobs.remove(item.id)
    assert "This item is not in the queue" in ada.send(form, "/edit/", value="too late")


def test_a_leased_item_is_not_edited(operator: Desk, jobs: Queue) -> None:
    page = operator.open(f"/queues/jobs/items/{of(jobs, 'leased')[0].id}/edit/")
    assert page.status == 409
    assert "release the lease first" in page


def test_what_is_redacted_is_revealed_before_it_is_edited(operator: Desk, store: Store) -> None:
    secret = store.create_queue("secret")
    item = secret.push(b'{"user": "ann", "password": "hunter2"}', priority=1)
    store.actions("ann").configure("secret", redact=("password",))
    for act in ("move", "delete", "reprioritize"):
        assert "hunter2" not in operator.open(path(act, item, queue="secret")).html
        assert "hunter2" not in operator.open(path(act, item, secret.push(item.value, priority=2), queue="secret")).html
    form = operator.open(f"/queues/secret/items/{item.id}/edit/")
    assert "hunter2" not in form.html
    page = operator.send(form, "/edit/")
    assert "hunter2" in page.form("/edit/")[1]["value"]
    entry = store.audit.entries(item=item.id).entries[0]
    assert (entry.verb, entry.actor) == ("reveal", "ada")
    operator.send(page, "/edit/", value='{"user": "ann", "password": "hunter3"}')
    found = secret.find(item.id)
    assert b"hunter3" in found.value
