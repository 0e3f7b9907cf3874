"""Damaged records of the trash, the audit and of jobs: their pages say so, and everything else goes on."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from pqadmin.accounts.models import Grant
from pqadmin.accounts.roles import Role
from queues import Actions, Queue, Store
from queues.background.sweeper import Sweeper
from queues.bulk.runner import JobRunner
from queues.errors import Unreadable
from queues.items.scan import Query
from queues.trash.trash import KEPT_MS
from tests.dashboard.conftest import Desk
from tests.health import probe

DAMAGED = [b"\x01garbage", b"\xff\x00\x00\x02{}", b"\x01\x00\x00\x02{}", b"\x01\x00\x00\x02[]", b""]


#: Of queues: of a later release, and damaged.
OF_QUEUES = [b"\x07nonsense", b"\x01\x00\x00\x02[]"]


@pytest.fixture
def jobs(store: Store) -> Queue:
    queue = store.create_queue("jobs")
    queue.push_many([(b"%d" % n, n) for n in range(10)])
    return queue


def write(store: Store, key: bytes, record: bytes) -> None:
    store.transact(lambda tr: tr.set(key, record))


def let_in(name: str, glob: str, role: Role) -> None:
    Grant.objects.create(user=User.objects.get(username=name), glob=glob, role=role, given_at=timezone.now())


@pytest.mark.parametrize("record", DAMAGED)
def test_an_entry_of_the_trash_that_cannot_be_read_is_told_and_the_rest_are_undone(
    operator: Desk, store: Store, ann: Actions, jobs: Queue, record: bytes
) -> None:
    first, second, third = (ann.delete_item("jobs", item.id).trash_id for item in jobs.items().items[:3])
    write(store, store.context.keyspace.trash.key(bytes.fromhex(second)), record)
    page = operator.open("/trash/")
    assert page.status == 200
    assert "cannot be read" in page
    assert second in page
    assert [form for form in (first, second, third) if page.has_form(f"{form}/restore/")] == [first, third]
    refused = operator.post(f"/trash/{second}/restore/", operator.open("/trash/").form(f"{first}/restore/")[1])
    assert refused.status < 500
    assert jobs.depth() == 7
    for trash_id in (third, first):
        operator.send(operator.open("/trash/"), f"{trash_id}/restore/")
    assert jobs.depth() == 9
    assert operator.open("/trash/?queue=jobs").status == 200
    assert operator.open("/queues/jobs/?state=trash").status == 200
    with pytest.raises(Unreadable, match="cannot be read"):
        ann.undo(second)


def test_what_an_act_noted_beside_a_damaged_part_is_not_undone_by_half(
    operator: Desk, store: Store, jobs: Queue
) -> None:
    taken = [item.id for item in jobs.items().items[:4]]
    trash_id = store.actions("ann").delete_items("jobs", taken).trash_id
    parts = store.read(
        lambda tr: tr.get_range(*store.context.keyspace.trash_parts.below(bytes.fromhex(trash_id)), limit=9).wait()
    )
    write(store, parts[2][0], b"\x01garbage")
    answer = operator.send(operator.open("/trash/"), "restore/")
    assert "This cannot be read" in answer
    assert jobs.depth() == 6


def test_an_act_that_cannot_be_read_is_told_with_its_time(viewer: Desk, store: Store, jobs: Queue) -> None:
    ann = store.actions("ann")
    for item in jobs.items().items[:3]:
        ann.delete_item("jobs", item.id, reason="tidy")
    middle = store.audit.entries().entries[1].id
    write(store, store.context.keyspace.audit.key(bytes.fromhex(middle)), b"\x01garbage")
    for address in ("/audit/", "/audit/?queue=jobs", "/audit/?by=ann"):
        page = viewer.open(address)
        assert page.status == 200
        assert "cannot be read" in page
        assert middle in page
        assert "tidy" in page
    assert "cannot be read" not in viewer.open("/audit/?verb=delete"), "it is unknown whether it was one"
    file = b"".join(viewer.client.get("/audit/export/?format=csv"))
    assert middle.encode() in file
    assert b"unreadable" in file


def test_a_job_that_cannot_be_read_is_told_and_the_rest_are_done(
    operator: Desk, store: Store, ann: Actions, jobs: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_queue("review")
    broken = ann.begin_bulk("delete", "jobs", low=9)
    whole = ann.begin_bulk("move", "jobs", to="review", high=4)
    write(store, store.context.keyspace.bulk.key(bytes.fromhex(broken.id)), b"\x01garbage")
    page = operator.open("/jobs/")
    assert page.status == 200
    assert f"The job {broken.id} cannot be read" in page
    assert "Move ready items from jobs to review" in page
    assert operator.open(f"/jobs/{broken.id}/").status == 409
    runner = JobRunner(store.context)
    for _ in range(20):
        runner.round()
    assert ann.job(whole.id).status == "done"
    assert store.queue("review").depth() == 5
    later_ms = store.context.clock.now_ms() + 2 * KEPT_MS
    monkeypatch.setattr(type(store.context.clock), "now_ms", lambda self: later_ms)
    Sweeper(store.context).sweep()
    assert f"The job {broken.id} cannot be read" in operator.open("/jobs/"), "it stays for a release that can read it"
    assert [job.id for job in ann.jobs()] == []


@pytest.mark.parametrize(
    ("record", "why"),
    [(b"\x07nonsense", "was written by a newer pqadmin"), (b"\x01\x00\x00\x02[]", "Its bytes are damaged")],
)
def test_the_pages_of_a_queue_that_cannot_be_read_say_so_and_nothing_of_the_store(
    desk: Callable[..., Desk], store: Store, jobs: Queue, record: bytes, why: str
) -> None:
    operator = desk(Role.OPERATOR)
    store.create_queue("mail").push(b"x", priority=1)
    form = operator.open("/queues/jobs/").form("/push/")
    write(store, store.context.keyspace.configs.key(jobs.id), record)
    for address in ("", "push/", "history/", "settings/", "pause/", "push/many/", f"items/{'0' * 40}/", "export/"):
        page = operator.open(f"/queues/jobs/{address}")
        assert page.status == 409, address
        assert "This queue cannot be read" in page
        assert why in page
        assert "the store and all other queues go on as usual" in page
        assert "pqadmin doctor" in page
        assert "cannot be reached" not in page
    answer = operator.post(*form, value="x", priority="1")
    assert answer.status == 409
    assert "Nothing was changed" in answer
    assert operator.open("/queues/mail/").status == 200
    stranger = desk(Role.NONE, "stranger")
    let_in("stranger", "mail", Role.OPERATOR)
    assert stranger.open("/queues/mail/").status == 200
    for address in ("", "push/", "history/", "export/"):
        page = stranger.open(f"/queues/jobs/{address}")
        assert page.status == 404, "without the right, nothing is shown"
        assert "cannot be read" not in page
        assert why not in page


@pytest.mark.parametrize("record", OF_QUEUES)
def test_the_site_is_ready_beside_a_queue_that_cannot_be_read(operator: Desk, store: Store, record: bytes) -> None:
    first = store.create_queue("a")
    write(store, store.context.keyspace.configs.key(first.id), record)
    answer = probe()
    assert (answer.status, answer.json["checks"]["store"]) == (200, "ok")


@pytest.mark.parametrize("record", OF_QUEUES)
def test_the_palette_finds_an_item_beside_a_queue_that_cannot_be_read(
    operator: Desk, store: Store, jobs: Queue, record: bytes
) -> None:
    mail = store.create_queue("mail")
    mail.push(b"x", priority=1)
    (item,), (lost,) = mail.items().items, jobs.items(limit=1).items
    write(store, store.context.keyspace.configs.key(jobs.id), record)
    for headers in ({}, {"HX-Request": "true"}):
        page = operator.open(f"/palette/?q={item.id}", **headers)
        assert page.status == 200
        assert f"/queues/mail/items/{item.id}/" in page.html
        assert "Looked for this id in 1 of 2 queues" in page
    page = operator.open(f"/palette/?q={lost.id}")
    assert "Looked for this id in 1 of 2 queues" in page
    assert "No queue holds an item of this id now" not in page, "not all of them were looked into"


@pytest.mark.parametrize("record", OF_QUEUES)
def test_jobs_of_a_queue_that_cannot_be_read_are_canceled_and_fail_with_the_reason(
    operator: Desk, store: Store, ann: Actions, jobs: Queue, record: bytes
) -> None:
    job = ann.begin_bulk("delete", "jobs")
    write(store, store.context.keyspace.configs.key(jobs.id), record)
    page = operator.send(operator.open(f"/jobs/{job.id}/"), "/cancel/")
    assert page.status == 200
    assert ann.job(job.id).status == "canceled"
    assert operator.send(operator.open(f"/jobs/{job.id}/"), "/resume/").status == 200
    assert ann.job(job.id).running
    runner = JobRunner(store.context)
    for _ in range(5):
        runner.round()
    assert ann.job(job.id).status == "failed"
    assert "The queue “jobs” cannot be read" in operator.open(f"/jobs/{job.id}/")


@pytest.mark.parametrize("state", ["delayed", "leased", "dead"])
def test_a_list_with_a_damaged_record_of_an_item_says_so(operator: Desk, store: Store, jobs: Queue, state: str) -> None:
    jobs.push(b"later", priority=1, delay=timedelta(hours=1))
    jobs.configure(max_attempts=1)
    jobs.release(jobs.lease(seconds=600))
    jobs.lease(seconds=600)
    (item,) = jobs.search(Query(state=state)).items
    keys = jobs.opened.keys
    begin, end = {"delayed": keys.generation(1).delayed.all, "leased": keys.leases.all, "dead": keys.dead.all}[state]
    ((key, _),) = store.read(lambda tr: tr.get_range(begin, end, limit=2).wait())
    write(store, key, b"\x01\x00\x00\x02[]")
    assert operator.open("/queues/jobs/?state=ready").status == 200
    for address in (f"?state={state}", f"?state={state}&q=x", f"items/{item.id}/"):
        page = operator.open(f"/queues/jobs/{address}")
        assert page.status == 409, address
        assert "This queue cannot be read" in page
        assert "Its bytes are damaged" in page
    assert "Looked for this id in 0 of 1 queues" in operator.open(f"/palette/?q={item.id}")
