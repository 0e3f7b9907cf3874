"""Charts of all queues: sums and movers of what a person sees, exact, bounded, and told when cut."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from pqadmin.accounts.models import Grant
from pqadmin.accounts.roles import Role
from pqadmin.accounts.scope import forget
from pqadmin.dashboard.history import overall
from pqadmin.dashboard.history.overall import added
from pqadmin.dashboard.history.ranges import Range, span_of
from pqadmin.dashboard.history.series import Rates, course, series
from queues import Queue, Store, Transaction, open_store
from queues.admin import as_history_point
from queues.background.leader import Candidate
from queues.history import Point
from queues.serving.leadership import UPKEEP
from tests.conftest import Clock
from tests.dashboard.conftest import Desk
from tests.dashboard.history.test_history import data_of, record
from tests.waiting import await_true

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
    assert "Attached queues" not in page
    store.attach("theirs", prefix=b"\x15theirs")
    operator.open("/")
    assert "Attached queues are not in these charts" in operator.open(HERE)
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
    config = store.context.keyspace.configs.key(bad.id)
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
    let_in("stranger", "bad", Role.VIEWER)
    forget(User.objects.get(username="stranger"))
    assert "The queue bad cannot be read: the sums leave it out for the whole time." in stranger.open(HERE)
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
    assert "10 ready now in all 4 queues; the charts add up the 2 most used" in page
    assert "most used of" not in desk(Role.VIEWER, "all").open(HERE)


def test_the_number_of_ready_items_says_that_attached_queues_are_in_it(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    record(store)
    told = "with attached queues, which are not in the charts"
    assert told not in operator.open(HERE)
    store.attach("legacy", prefix=b"old")
    assert told in operator.open(HERE)


def test_sums_have_a_gap_before_a_process_that_was_elected_has_written_what_it_missed(clock: Clock) -> None:
    with open_store("memory:", clock=clock) as store:
        jobs = store.create_queue("jobs")
        jobs.push(b"x", priority=1)
        record(store)

        def last_has_gap() -> bool:
            shown = span_of("1h", store.now())
            return overall.summed(store, [jobs.status()], shown, everything=True)[-1].gap

        clock.advance(3_000)
        assert Candidate(store.context, UPKEEP, seconds=60).step()
        assert not last_has_gap(), "nothing has changed"
        jobs.push(b"x", priority=1)
        assert last_has_gap()
        record(store)
        assert last_has_gap()


@pytest.mark.parametrize("span", ["10m", "6h"])
def test_rates_of_all_queues_do_not_fall_to_0_before_the_newest_points_are_written(clock: Clock, span: str) -> None:
    with open_store("memory:", clock=clock) as store:
        jobs = store.create_queue("jobs")
        assert Candidate(store.context, UPKEEP, seconds=600).step()
        recorder = store.recorder(count=clock)
        for _ in range(120):
            clock.advance(1)
            jobs.push_many([(b"x", 1)] * 7)
            recorder.look()
        shown = span_of(span, store.now())

        def rates_in(latest: Rates) -> list[float | None]:
            points = overall.summed(store, [jobs.status()], shown, everything=True)
            return list(series(points, shown, shown.resolution.step, latest=latest).rates[0])

        *recorded, newest = rates_in((None, None))
        assert newest is None
        assert {rate for rate in recorded if rate is not None} == {7.0}
        assert rates_in((6.8, 0.0))[-1] == 6.8
        recorder.flush()
        clock.advance(60)
        shown = span_of(span, store.now())
        assert rates_in((0.0, 0.0))[-2:] == [0.0, 0.0], "nothing came since"


def test_the_newest_rates_of_all_queues_are_those_of_the_overview(operator: Desk, store: Store, jobs: Queue) -> None:
    assert Candidate(store.context, UPKEEP, seconds=600).step()
    operator.open("/")
    jobs.push_many([(b"x", 1)] * 90)
    record(store)

    def newest_rate() -> float | None:
        rate: float | None = operator.client.get("/charts/data/?span=10m").json()["charts"]["rates"]["columns"][0][-1]
        return rate

    await_true(newest_rate)


@pytest.mark.parametrize("span", ["1h", "24h", "90d"])
def test_movers_where_recording_began_in_the_range_are_those_since_then_or_since_made(clock: Clock, span: str) -> None:
    with open_store("memory:", clock=clock) as store:
        moved, idle = store.create_queue("moved"), store.create_queue("idle")
        for queue in (moved, idle):
            queue.push_many([(b"x", 1)] * 10)
        clock.advance(100 * 86_400)
        early = store.create_queue("early")
        early.push_many([(b"x", 1)] * 10)
        recorder = store.recorder(count=clock)
        recorder.look()
        clock.advance(1_200)
        moved.push_many([(b"x", 1)] * 7)
        later = store.create_queue("later")
        later.push(b"x", 1)
        recorder.look()
        recorder.flush()
        statuses = [each.status() for each in (moved, idle, early, later)]
        found = overall.movers(store, statuses, span_of(span, store.now()))
        assert [(one.name, one.before, one.after) for one in found] == [
            ("early", 0, 10),
            ("moved", 10, 17),
            ("later", 0, 1),
        ]


@pytest.mark.parametrize(("span", "rest"), [("10m", 1_800), ("10m", 4 * 86_400), ("24h", 4 * 86_400)])
def test_a_queue_that_rested_for_long_moved_from_where_it_was(clock: Clock, span: str, rest: int) -> None:
    with open_store("memory:", clock=clock) as store:
        rested, busy = store.create_queue("rested"), store.create_queue("busy")
        rested.push_many([(b"x", 1)] * 10)
        recorder = store.recorder(count=clock)
        for seconds in (60, rest, 60):
            busy.push(b"x", 1)
            recorder.look()
            recorder.flush()
            clock.advance(seconds)
        rested.push_many([(b"x", 1)] * 3)
        recorder.look()
        recorder.flush()
        (found,) = [
            one
            for one in overall.movers(store, [rested.status(), busy.status()], span_of(span, store.now()))
            if one.name == "rested"
        ]
        assert (found.before, found.after, found.came, found.went) == (10, 13, 3, 0)


def test_sums_that_were_kept_go_on_as_if_added_up_anew(clock: Clock) -> None:
    with open_store("memory:", clock=clock) as store:
        queues = [store.create_queue(f"q{n}") for n in range(3)]
        recorder = store.recorder(count=clock)
        rng = Random(7)
        for turn in range(240):
            clock.advance(rng.choice((20, 20, 20, 45)) if turn != 150 else 1_500)
            if turn == 150:
                queues[1].push(b"x", 1)
                recorder = store.recorder(count=clock)  # of another process, after a time without any
            queue = rng.choice(queues)
            queue.push_many([(b"x", 1)] * rng.randrange(6))
            queue.pop_many(rng.randrange(1, 5))
            recorder.look()
            if turn % 7 == 0:
                recorder.flush()
                for span in ("1h", "6h"):
                    compare(store, queues[: 2 + turn % 2], span_of(span, store.now()))


def test_a_queue_that_rested_is_in_the_sums_of_the_time_before_its_first_point(clock: Clock) -> None:
    with open_store("memory:", clock=clock) as store:
        idle, busy = store.create_queue("idle"), store.create_queue("busy")
        recorder = store.recorder(count=clock)
        idle.push_many([(b"x", 1)] * 50)
        for turn in range(120):
            clock.advance(20)
            busy.push(b"x", 1)
            if turn == 110:
                idle.push(b"x", 1)
            recorder.look()
        recorder.flush()
        shown = span_of("10m", store.now())
        points = overall.summed(store, [idle.status(), busy.status()], shown, everything=False)
        ready = [depth for depth in series(points, shown, shown.resolution.step).depth[0] if depth is not None]
        assert ready == sorted(ready)
        assert ready[0] > 50


def compare(store: Store, queues: Sequence[Queue], shown: Range) -> None:
    statuses = [queue.status() for queue in queues]
    resolution, recorded = shown.resolution, store.history.is_recorded()
    found = store.history.of_many([one.id for one in statuses], resolution.name, since=shown.since, until=shown.now)
    courses = [
        course(found[one.id], as_history_point(one, shown.now), resolution, recorded=recorded) for one in statuses
    ]
    anew = series(added(courses, resolution.step), shown, resolution.step)
    points = overall.summed(store, statuses, shown, everything=False)
    assert series(points, shown, resolution.step) == anew


def test_sums_that_were_kept_are_not_shown_to_a_person_whose_grant_is_gone(
    desk: Callable[..., Desk], store: Store
) -> None:
    for name in ("mine", "theirs"):
        store.create_queue(name).push_many([(b"x", 1)] * 10)
    record(store)
    stranger = desk(Role.NONE, "stranger")
    for name in ("mine", "theirs"):
        let_in("stranger", name, Role.VIEWER)
    shown = "/charts/data/?span=1h"
    assert stranger.client.get(shown).json()["charts"]["depth"]["columns"][0][-1] == 20
    Grant.objects.filter(glob="theirs").delete()
    forget(User.objects.get(username="stranger"))
    store.queue("theirs").push(b"x", 1)
    assert stranger.client.get(shown).json()["charts"]["depth"]["columns"][0][-1] == 10
