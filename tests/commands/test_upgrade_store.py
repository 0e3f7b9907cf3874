"""Stores of other formats: refused by name, upgraded by a command, never touched otherwise."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from pqadmin.store import close_store
from queues import Store, open_store
from queues.catalog.store_record import FORMAT
from queues.errors import CopyUnfinished, NewerFormat, NotAStore, OlderFormat
from queues.keys.keyspace import Keyspace
from queues.kv import open_kv
from queues.model import records
from queues.model.ids import IdGenerator
from queues.tools import upgrading
from queues.tools.upgrading import STEPS, Step, upgrade
from tests.commands.conftest import Run, Shop


def write_format(store: Store, number: int) -> bytes:
    """Make the store one that another release has written."""
    record = records.encode({"format": number, "id": store.id})
    store.transact(lambda tr: tr.set(store._keyspace.store, record))
    return record


def record_of(store: Store) -> bytes | None:
    return store.read(lambda tr: tr.get(store._keyspace.store).wait())


def test_an_older_store_is_refused_with_the_command_that_helps(run: Run, shop: Shop) -> None:
    record = write_format(shop.store, 1)
    with pytest.raises(OlderFormat, match=r"format 1, .*manage\.py upgrade_store"):
        open_store(shop.url)
    answer = run("queues")
    assert (answer.code, answer.out) == (1, "")
    assert "upgrade_store" in answer.error
    assert record_of(shop.store) == record


def test_a_dry_run_tells_the_steps_and_changes_nothing(run: Run, shop: Shop) -> None:
    record = write_format(shop.store, 1)
    answer = run("upgrade_store", "--dry-run")
    assert answer.out.startswith(f"Would upgrade {shop.url} from store format 1 to {FORMAT}:\n  2: ")
    assert run("upgrade_store", "--dry-run", "--json").json == {
        "store": shop.url,
        "before": 1,
        "after": FORMAT,
        "dry_run": True,
        "steps": [{"format": step.format, "does": step.does} for step in STEPS],
    }
    assert record_of(shop.store) == record


def test_an_upgrade_keeps_the_store_and_is_done_once(run: Run, shop: Shop) -> None:
    shop.store.create_queue("jobs").push(b"x", priority=1)
    write_format(shop.store, 1)
    assert run("upgrade_store").out.startswith("Upgraded ")
    with open_store(shop.url) as store:
        assert store.id == shop.store.id
        assert store.queue("jobs").depth() == 1
    record = record_of(shop.store)
    again = run("upgrade_store", "--json")
    assert (again.code, again.json["steps"]) == (0, [])
    assert "nothing to do" in run("upgrade_store").out
    assert record_of(shop.store) == record


def test_a_newer_store_is_refused_and_untouched(run: Run, shop: Shop) -> None:
    record = write_format(shop.store, FORMAT + 1)
    answer = run("upgrade_store")
    assert answer.code == 1
    assert "no way back" in answer.error
    assert record_of(shop.store) == record
    with pytest.raises(NewerFormat):
        upgrade(shop.url, dry_run=True)


def test_an_interrupted_upgrade_goes_on_after_the_last_step_that_was_reached(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []

    def rewrite(number: int) -> None:
        ran.append(number)
        if ran == [1, FORMAT]:
            raise KeyboardInterrupt

    steps = tuple(
        Step(format=number, does="something", rewrite=lambda kv, keyspace, number=number: rewrite(number))
        for number in (1, FORMAT)
    )
    monkeypatch.setattr(upgrading, "STEPS", steps)
    write_format(shop.store, 0)
    with pytest.raises(KeyboardInterrupt):
        upgrade(shop.url)
    assert [step.format for step in upgrade(shop.url).steps] == [FORMAT]
    assert ran == [1, FORMAT, FORMAT], "the step that was done is not done again, the interrupted one is"


def marks(store: Store) -> list[tuple[int, int]]:
    """Return the (second, queue id) of all marks on the agenda."""
    keyspace = store._keyspace
    pairs = store.read(lambda tr: tr.get_range(*keyspace.agenda, limit=1_000).wait())
    return [keyspace.read_mark(key) for key, _ in pairs]


def test_queues_of_format_2_are_put_on_the_agenda(run: Run, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrading, "_PAGE", 2)
    names = ("idle", "ready", "delayed", "leased", "due")
    queues = {name: shop.store.create_queue(name) for name in names}
    queues["ready"].push(b"x", priority=1)
    queues["delayed"].push(b"x", priority=1, delay=timedelta(hours=1))
    queues["due"].push(b"x", priority=1, delay=timedelta(milliseconds=1))
    queues["leased"].push(b"x", priority=1)
    assert queues["leased"].lease(1, seconds=3600)
    shop.store.transact(lambda tr: tr.clear_range(*shop.store._keyspace.agenda))
    write_format(shop.store, 2)
    run("upgrade_store", "--dry-run")
    assert marks(shop.store) == []
    assert run("upgrade_store").out.startswith(f"Upgraded {shop.url} from store format 2 to {FORMAT}:\n  3: ")
    assert sorted(marks(shop.store)) == sorted((0, queues[name].id) for name in ("delayed", "leased", "due"))
    assert run("sweep", "--json").json["promoted"] == 1
    assert queues["due"].depth() == 1


def write_old_job(store: Store, **more: object) -> str:
    """Write a job as format 2 did, which has done three of ten items when its process died."""
    queue, job_id = store.queue("jobs"), IdGenerator(time.time).new_id()
    shape = {"act": "delete", "state": "ready", "by": "ann", "reason": "a test", "to": None, "to_id": None}
    shape |= {"priority": None, "shift": None, "total": 10, "done": 3, "chunks": 0, "status": "running"}
    header = shape | {"id": job_id.hex(), "queue_id": queue.id, "queue": "jobs"} | more
    store.transact(lambda tr: tr.set(store._keyspace.bulk(job_id), records.encode(header)))
    return job_id.hex()


@pytest.mark.parametrize("backwards", [False, True])
def test_jobs_of_format_2_are_canceled_and_resumed_where_they_were(
    run: Run, shop: Shop, monkeypatch: pytest.MonkeyPatch, backwards: bool
) -> None:
    monkeypatch.setattr(upgrading, "_PAGE", 1)
    jobs = shop.store.create_queue("jobs")
    jobs.push_many([(b"%d" % n, n) for n in range(10)])
    keys = shop.store._keyspace.queue(jobs.id).generation(1)
    pairs = shop.store.read(lambda tr: tr.get_range(*keys.ready_range, limit=100).wait())
    places = [keys.suffix_of(key) for key, _ in pairs]
    first, last = (places[2], places[6][:-1]) if backwards else (places[2] + b"\0", places[6])
    between = {"first": first.hex(), "last": last.hex(), "backwards": backwards}
    job_id = write_old_job(shop.store, **between)
    done = write_old_job(shop.store, **between | {"status": "done"})
    empty = write_old_job(shop.store, first="", last="", backwards=backwards, status="done", total=0, done=0)
    write_format(shop.store, 2)
    assert run("upgrade_store").code == 0
    acts = shop.store.acts("ben")
    assert {job.id: job.status for job in acts.jobs()} == {job_id: "canceled", done: "done", empty: "done"}
    assert run("jobs").code == 0
    assert acts.job(job_id).ended_at is not None
    # Interrupted before its end was noted, the step meets what it did already, and what somebody has gone on with.
    acts.resume_bulk(job_id)
    write_format(shop.store, 2)
    upgrade(shop.url)
    job = acts.run_bulk(job_id)
    left = {0, 1, 2, 7, 8, 9} - ({2} if backwards else set()) | ({6} if backwards else set())
    assert {int(item.value) for item in jobs.items().items} == left
    assert (job.status, job.by, job.met) == ("done", "ann", 3 + 10 - len(left))
    acts.undo_bulk(job_id)
    assert jobs.depth() == 10


def test_what_is_no_store_is_not_made_one(run: Run, tmp_path: Path) -> None:
    with open_store(f"lmdb:{tmp_path / 'other'}", root=("other",)):
        pass
    with pytest.raises(NotAStore, match="holds no pqadmin store"):
        upgrade(f"lmdb:{tmp_path / 'other'}")


def test_the_target_of_an_unfinished_copy_is_no_store_yet(tmp_path: Path) -> None:
    url = f"lmdb:{tmp_path / 'copy'}"
    kv = open_kv(url)
    mark = records.encode({"from": "lmdb:var/store"})
    kv.transact(lambda tr: tr.set(Keyspace(("pq",)).copy_mark, mark))
    kv.close()
    for use in (open_store, upgrade):
        with pytest.raises(CopyUnfinished, match="copy_store lmdb:var/store lmdb:"):
            use(url)


@pytest.mark.django_db
def test_the_site_says_so_on_every_page(client: Client, settings: Any, tmp_path: Path) -> None:
    close_store()
    settings.PQADMIN_STORE = f"lmdb:{tmp_path / 'store'}"
    with open_store(settings.PQADMIN_STORE) as store:
        write_format(store, 1)
    client.force_login(User.objects.create_superuser("ann"))
    try:
        page = client.get("/")
        assert (page.status_code, page.headers["Retry-After"]) == (503, "5")
        assert "manage.py upgrade_store" in page.content.decode()
        assert client.get("/readyz").status_code == 503
        upgrade(settings.PQADMIN_STORE)
        assert client.get("/").status_code == 200
    finally:
        close_store()
