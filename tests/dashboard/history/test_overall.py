"""Charts of all queues: sums and movers of what a person sees, exact, bounded, and told when cut."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from pqadmin.accounts.models import Grant
from pqadmin.accounts.roles import Role
from pqadmin.dashboard.history import overall
from pqadmin.dashboard.history.overall import added
from queues import Store, Transaction
from queues.history import Point
from tests.dashboard.conftest import Desk
from tests.dashboard.history.test_history import data_of, record

HERE = "/charts/?span=1h"


def let_in(name: str, glob: str, role: Role) -> None:
    Grant.objects.create(user=User.objects.get(username=name), glob=glob, role=role, given_at=timezone.now())


IDLE = Point(at=100, ready=0, delayed=0, leased=0, dead=0, arrived=0, left=0)


def test_sums_are_those_of_all_queues_at_each_moment() -> None:
    first = [replace(IDLE, ready=5, arrived=50, left=45), replace(IDLE, at=120, ready=7, arrived=52, left=45)]
    second = [replace(IDLE, at=110, ready=1, arrived=1), replace(IDLE, at=120, ready=0, arrived=1, left=1)]
    found = added([first, second], step=1)
    assert [(point.at, point.ready) for point in found] == [(100, 5), (110, 6), (120, 7)]
    assert [(point.arrived, point.left) for point in found] == [(0, 0), (0, 0), (2, 1)]


def test_a_sum_is_unknown_while_one_queue_is() -> None:
    first = [IDLE, replace(IDLE, at=150, ready=4, arrived=4, gap=True), replace(IDLE, at=170, ready=4, arrived=4)]
    second = [replace(IDLE, at=at, ready=1, arrived=1) for at in (105, 130, 160)]
    found = added([first, second], step=10)
    assert [(point.at, point.ready, point.gap) for point in found] == [
        (100, 0, False),
        (105, 1, False),
        (150, 5, True),
        (160, 5, False),
        (170, 5, False),
    ]


def test_all_queues_together_and_which_changed_most(operator: Desk, store: Store) -> None:
    for name, depth in (("a", 5), ("b", 30), ("idle", 0)):
        store.create_queue(name).push_many([(b"x", 1)] * depth) if depth else store.create_queue(name)
    operator.open("/")
    record(store)
    page = operator.open(HERE)
    assert data_of(page)["charts"]["depth"]["columns"][0][-1:] == [35]
    assert page.status == 200
    assert operator.client.get("/charts/data/?span=1h").json()["charts"].keys() == {"depth", "rates"}
    assert operator.client.get("/charts/data/?from=never").status_code == 400
    part = operator.client.get(HERE, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert "data-numbers" in part


def test_a_person_sees_sums_and_movers_of_their_queues_only(desk: Callable[..., Desk], store: Store) -> None:
    for name in ("mine", "theirs"):
        store.create_queue(name).push_many([(b"x", 1)] * 10)
    record(store)
    store.queue("mine").push_many([(b"x", 1)] * 3)
    store.queue("theirs").push_many([(b"x", 1)] * 900)
    stranger = desk(Role.NONE, "stranger")
    let_in("stranger", "mine", Role.VIEWER)
    stranger.open("/")
    page = stranger.open(HERE)
    assert data_of(page)["charts"]["depth"]["columns"][0][-1] == 13
    assert "theirs" not in page
    assert "913" not in page


def test_sums_that_an_unreadable_queue_stops_name_it(desk: Callable[..., Desk], store: Store) -> None:
    store.create_queue("good").push(b"x", priority=1)
    bad = store.create_queue("bad")
    config = store.context.keyspace.config(bad.id)
    sound = store.read(lambda tr: tr.get(config).wait())
    admin, told = desk(Role.ADMIN), "The queue bad cannot be read, so sums over all queues are not known now."

    def write(record: bytes) -> None:
        def change(tr: Transaction) -> None:
            tr.set(config, record)
            tr.add(store.context.keyspace.queue(bad.id).change, 1)

        store.transact(change)

    write(b"\x07nonsense")
    record(store)
    assert told in admin.open(HERE)
    stranger = desk(Role.NONE, "stranger")
    let_in("stranger", "good", Role.VIEWER)
    assert "cannot be read" not in stranger.open(HERE)
    assert sound is not None
    write(sound)
    record(store)
    page = admin.open(HERE)
    assert told not in page
    assert data_of(page)["charts"]["depth"]["columns"][0][-1] == 1


def test_a_sum_of_too_many_queues_says_so(
    desk: Callable[..., Desk], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overall, "MAX_SUMMED", 2)
    for n in range(4):
        store.create_queue(f"q{n}").push_many([(b"x", 1)] * (n + 1))
    record(store)
    stranger = desk(Role.NONE, "stranger")
    let_in("stranger", "q*", Role.VIEWER)
    page = stranger.open(HERE)
    assert "The charts add up the 2 most used of the 4 queues that you see." in page
    assert data_of(page)["charts"]["depth"]["columns"][0][-1] == 7
    assert "most used of" not in desk(Role.VIEWER, "all").open(HERE)
