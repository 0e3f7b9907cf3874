"""What an empty store offers: a queue, a file, or traffic to look at."""

import multiprocessing
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from pqadmin.accounts.models import Grant
from pqadmin.accounts.rights import Role
from pqadmin.load.plan import push, take
from pqadmin.load.run import create_queues
from pqadmin.load.sample import PUSHED, sample_load, sample_plans, start_sample, take_rate
from queues import Store
from tests.conftest import store_url
from tests.dashboard.conftest import Desk
from tests.sites import site_store
from tests.waiting import await_true


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> Iterator[Store]:
    """The site's store, one that the processes of a load can open."""
    with site_store(store_url("embedded", tmp_path), settings, monkeypatch) as opened:
        yield opened
        sample_load.stop()


def test_an_empty_store_explains_itself_and_offers_three_ways(operator: Desk, store: Store) -> None:
    page = operator.open("/")
    for words in ("Create a queue", "Import a file", "Run the sample load", "smallest priority", "largest priority"):
        assert words in page
    assert "never early" in page
    assert "acknowledges" in page


def test_the_lines_of_python_run_as_they_are(operator: Desk, store: Store, tmp_path: Path) -> None:
    (shown,) = re.findall(r"<code\s*>(from queues .*?)</code>", operator.open("/").html, re.DOTALL)
    lines = unescape(re.sub(r"<br\s*>", "\n", shown))
    for _ in range(2):
        subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, check=True, timeout=120)
    assert [item.value for item in store.queue("jobs").items().items] == [b"hello", b"hello"]


def test_the_path_of_the_store_is_whole_and_for_those_that_act_on_all_queues(
    desk: Callable[..., Desk], settings: Any, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings.PQADMIN_STORE = "lmdb:queues/here"
    assert f'open_store("lmdb:{tmp_path}/queues/here")' in unescape(desk(Role.OPERATOR).open("/").html)
    bob = desk(Role.NONE, "bob")
    user = User.objects.get(username="bob")
    Grant.objects.create(user=user, glob="orders:*", role=Role.OPERATOR, given_at=timezone.now())
    page = bob.open("/")
    assert "open_store" not in page.html
    assert str(tmp_path) not in page.html


def test_a_viewer_is_offered_nothing_that_is_refused(desk: Callable[..., Desk], store: Store) -> None:
    page = desk(Role.VIEWER).open("/")
    assert not page.has_form("/sample-load/start/")
    assert "Import a file" not in page


def test_a_person_with_some_queues_is_shown_those_and_offered_nothing_that_is_refused(
    desk: Callable[..., Desk], store: Store
) -> None:
    eve = desk(Role.NONE, "eve")
    user = User.objects.get(username="eve")
    Grant.objects.create(user=user, glob="orders:*", role=Role.OPERATOR, given_at=timezone.now())
    store.create_queue("mail")
    page = eve.open("/")
    assert "You may see queues named orders:*; none is there yet." in page
    assert "No queues yet" not in page
    assert not page.has_form("/sample-load/start/")
    assert "pqadmin load" not in page
    assert "Create a queue" in page, "of the names that she may act on"
    Grant.objects.create(user=user, glob="demo:*", role=Role.OPERATOR, given_at=timezone.now())
    assert eve.open("/").has_form("/sample-load/start/")


def test_a_file_comes_after_its_queue(operator: Desk, store: Store) -> None:
    form = operator.open("/new/?then=file")
    assert operator.send(form, "/new/", name="orders").path == "/queues/orders/push/many/"


def test_the_sample_load_moves_items_until_it_is_stopped(operator: Desk, store: Store) -> None:
    page = operator.send(operator.open("/"), "/sample-load/start/")
    assert "The sample load runs for 5 minutes" in page
    acts = store.audit.entries(verb="create", limit=100).entries
    created = [entry for entry in acts if (entry.queue or "").startswith("demo:")]
    assert {entry.actor for entry in created} == {"ada"}
    assert len(created) == 24
    assert store.queue("demo:orders:eu:payments").lease(wait=120), "nothing was pushed"
    again = operator.open("/")
    assert "The sample load is running" in again
    assert "has stopped" in operator.send(again, "/sample-load/stop/")
    assert sample_load.ends_at is None


def test_an_ended_sample_load_can_be_run_again_while_its_queues_are_alone(
    operator: Desk, desk: Callable[..., Desk], store: Store
) -> None:
    operator.send(operator.open("/"), "/sample-load/start/")
    assert not operator.open("/").has_form("/sample-load/start/")
    sample_load.stop()
    page = operator.open("/")
    assert "This site runs no sample load now" in page
    assert not desk(Role.VIEWER).open("/").has_form("/sample-load/start/")
    operator.send(operator.open("/new/"), "/new/", name="orders")
    assert not operator.open("/").has_form("/sample-load/start/")
    store.actions("ada").delete_queue("orders", confirm="orders", reason="")
    assert "runs for 5 minutes" in operator.send(page, "/sample-load/start/")


def test_a_load_that_a_command_runs_has_not_ended(operator: Desk, store: Store, settings: Any) -> None:
    planned = sample_plans()
    create_queues(store, planned)
    assert "This site runs no sample load now" in operator.open("/")
    load = start_sample(settings.PQADMIN_STORE, planned)
    try:
        await_true(lambda: "runs no sample load" not in operator.open("/"))
        assert not operator.open("/").has_form("/sample-load/start/")
    finally:
        load.stop()


def test_the_sample_load_has_a_queue_of_each_trouble(store: Store) -> None:
    planned = {plan.name: plan for plan in sample_plans()}
    create_queues(store, list(planned.values()))
    random = Random(1)
    for plan in planned.values():
        queue = store.queue(plan.name)
        for _ in range(40):
            push(queue, plan, random, 1)
        taken = take(queue, plan, random, 40)
        assert taken <= 40
        totals = queue.totals()
        assert (totals.delayed > 0) == (plan.delayed > 0), plan.name
        assert totals.leased == 0
        if plan.failing:
            for _ in range(5):
                take(queue, plan, random, 40)
            assert queue.totals().dead > 0
    assert [plan.name for plan in planned.values() if plan.served_for] == ["demo:orders:apac:payments"]


def test_queues_of_the_sample_load_are_served_clearly_faster_or_slower_than_they_fill() -> None:
    planned = sample_plans()
    filled, served = sum(plan.push_weight for plan in planned), sum(plan.pop_weight for plan in planned)
    takes = take_rate(planned)
    shares = [takes * plan.pop_weight / served / (PUSHED * plan.push_weight / filled) for plan in planned]
    assert all(share >= 1.4 or share < 0.9 for share in shares), shares
    assert sum(share < 0.9 for share in shares) == 3


def test_only_one_sample_load_runs(operator: Desk, store: Store) -> None:
    late = operator.open("/")
    operator.send(operator.open("/"), "/sample-load/start/")
    other = operator.open("/?q=none")  # a page that was opened before the first was started
    assert not other.has_form("/sample-load/start/")
    assert "is running already" in operator.post(*late.form("/sample-load/start/"))
    assert sample_load.stop()
    assert "runs for 5 minutes" in operator.post(*late.form("/sample-load/start/")), "the refused form is used up"


def test_a_store_with_queues_of_its_own_is_left_alone(operator: Desk, store: Store) -> None:
    page = operator.open("/")  # before the queue was there
    store.create_queue("orders")
    assert "for a store without other queues" in operator.post(*page.form("/sample-load/start/"))
    assert [*store.directory()] == ["orders"]
    assert sample_load.ends_at is None


def test_the_sample_load_is_shown_and_stopped_by_rights_on_its_queues(
    operator: Desk, desk: Callable[..., Desk], store: Store
) -> None:
    operator.send(operator.open("/"), "/sample-load/start/")
    other, seeing = desk(Role.NONE, "eve"), desk(Role.NONE, "vic")
    for name, glob, role in (("eve", "orders:*", Role.OPERATOR), ("vic", "demo:*", Role.VIEWER)):
        user = User.objects.get(username=name)
        Grant.objects.create(user=user, glob=glob, role=role, given_at=timezone.now())
    Grant.objects.create(user=User.objects.get(username="vic"), glob="x", role=Role.OPERATOR, given_at=timezone.now())
    assert "The sample load is running" not in other.open("/")
    page = seeing.open("/")
    assert "The sample load is running" in page
    assert not page.has_form("/sample-load/stop/")
    for each in (other, seeing):
        assert "You may act on queues with these names" in each.post("/sample-load/stop/", {})
    assert sample_load.ends_at is not None


def test_a_sample_load_whose_processes_died_is_over(operator: Desk, store: Store) -> None:
    operator.send(operator.open("/"), "/sample-load/start/")
    processes = [one for one in multiprocessing.active_children() if one.name.startswith("SpawnProcess")]
    assert len(processes) == 2
    # It is killed while it waits for its next push, as most of the time: the other one must not wait for it.
    await_true(lambda: any(store.queue(name).depth() for name in store.directory()))
    processes[0].kill()
    processes[0].join(120.0)
    assert "The sample load is running" not in operator.open("/")
    for thread in [one for one in threading.enumerate() if one.name == "pqadmin-sample-ends"]:
        thread.join(20.0)
    assert processes[1].exitcode is not None, "the other one goes on"
    assert not sample_load.stop()
