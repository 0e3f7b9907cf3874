"""The model of health: what is told, what it waits for, and what it never does."""

from itertools import pairwise
from random import Random

import msgspec
import pytest

from queues import open_store
from queues.health import Code, Health, Level, Observation, Targets, Trend, Verdict, advance, decode, encode
from queues.health.growth import Marks, tau
from queues.health.health import STALE, born
from queues.health.rounding import told
from queues.health.verdict import at
from queues.status.health_observation import observation_of

BEGIN = 1_790_000_000.0


def watched(*seen: Observation, targets: Targets | None = None) -> list[Verdict]:
    """Return the verdicts on these observations, one after the other."""
    health: Health | None = None
    verdicts = []
    for observation in seen:
        health = advance(health, observation, targets or Targets())
        verdicts.append(health.verdict)
    return verdicts


def stalled(seconds: int, **more: object) -> list[Observation]:
    """Return observations of a queue that was used, every ten seconds, from which nothing is taken."""
    values = {"ready": 9, "pushed": 20, "taken": 11, "done": 11, "oldest": BEGIN} | more
    return [Observation(BEGIN + second, **values) for second in range(0, seconds + 1, 10)]


def test_a_stalled_queue_is_critical_and_says_since_when() -> None:
    verdict = watched(*stalled(300))[-1]
    assert (verdict.level, verdict.codes, verdict.trend) == (Level.CRITICAL, (Code.NO_CONSUMER,), Trend.STALLED)
    assert verdict.reasons[0].since == BEGIN


def resumed(stall: int, *later: Observation) -> list[Verdict]:
    """Return the verdicts from a pause of five minutes on, in a stall that began so many seconds before it."""
    before = stalled(stall)
    pause = [msgspec.structs.replace(before[0], at=BEGIN + stall + n, paused=BEGIN + stall) for n in range(1, 300, 10)]
    return watched(*before, *pause, *later)[len(before) :]


def after_pause(stall: int, seconds: int, **more: object) -> list[Observation]:
    """Return observations after that pause, every two seconds."""
    begin = BEGIN + stall + 300
    return [msgspec.structs.replace(stalled(0, **more)[0], at=begin + n) for n in range(0, seconds + 1, 2)]


@pytest.mark.parametrize("stall", [90, 420])
def test_a_stalled_queue_is_stalled_again_soon_after_a_pause(stall: int) -> None:
    """The pause itself counts against no consumer, but nothing was taken before it either."""
    verdicts = resumed(stall, *after_pause(stall, 60))
    paused, later = verdicts[:30], verdicts[30:]
    assert {verdict.codes for verdict in paused} == {(Code.PAUSED,)}, "what a person does is followed at once"
    assert {verdict.trend for verdict in later} == {Trend.UNKNOWN, Trend.STALLED}
    assert {verdict.codes for verdict in later[7:]} == {(Code.NO_CONSUMER,)}
    assert later[-1].reasons[0].since == BEGIN


def test_consumers_that_take_soon_after_a_pause_are_no_stall() -> None:
    waits = after_pause(420, 8, consumers=2)
    takes = [
        msgspec.structs.replace(seen, taken=20 + n, done=20 + n, ready=9 - n % 2, consumers=2)
        for n, seen in enumerate(after_pause(420, 120)[5:])
    ]
    assert {verdict.level for verdict in resumed(420, *waits, *takes)[30:]} == {Level.OK}


def test_the_time_of_a_pause_counts_against_no_consumer() -> None:
    """It is silent for half a minute before it, and for as long after it."""
    took = Observation(BEGIN - 10, ready=10, pushed=20, taken=10, done=10, oldest=BEGIN - 11)
    before = [took, *stalled(30)]
    pause = [msgspec.structs.replace(before[-1], at=BEGIN + n, paused=BEGIN + 31) for n in range(40, 640, 10)]
    later = [msgspec.structs.replace(before[-1], at=BEGIN + 640 + n) for n in range(0, 25, 2)]
    assert {verdict.level for verdict in watched(*before, *pause, *later)[-len(later) :]} == {Level.OK}


def test_consumers_that_fail_after_a_pause_too_are_told_with_the_next_item_that_comes_back() -> None:
    fails = [
        Observation(BEGIN + n, ready=9, pushed=9, taken=n // 2, released=n // 2, consumers=1, oldest=BEGIN)
        for n in range(0, 300, 10)
    ]
    pause = [msgspec.structs.replace(fails[-1], at=BEGIN + 290 + n, paused=BEGIN + 291) for n in range(10, 310, 10)]
    waits = msgspec.structs.replace(fails[-1], at=BEGIN + 610)
    again = msgspec.structs.replace(fails[-1], at=BEGIN + 620, taken=146, released=146)
    told = [verdict.codes for verdict in watched(*fails, *pause, waits, again)]
    assert Code.NOTHING_DONE in told[len(fails) - 1]
    assert {Code.NOTHING_DONE in codes for codes in told[len(fails) : -1]} == {False}
    assert Code.NOTHING_DONE in told[-1]


def test_health_that_was_stored_and_read_goes_on_the_same() -> None:
    once = stored = None
    for observation in stalled(600):
        once = advance(once, observation)
        stored = advance(stored, observation)
        stored = msgspec.msgpack.decode(msgspec.msgpack.encode(stored), type=Health)
        assert stored == once


@pytest.mark.parametrize("taken", [1, 400])
def test_a_single_take_does_not_calm_a_stalled_queue_at_once(taken: int) -> None:
    back = Observation(BEGIN + 310, ready=8, pushed=20, taken=11 + taken, done=11 + taken, oldest=BEGIN)
    assert watched(*stalled(300), back)[-1].level is Level.CRITICAL


def test_a_stall_that_just_ended_is_told_with_its_end_and_is_no_stall_any_more() -> None:
    takes = [
        Observation(BEGIN + 300 + n, ready=9, pushed=20 + n, taken=11 + n, done=11 + n, consumers=1, oldest=BEGIN + n)
        for n in range(10, 100, 10)
    ]
    verdicts = watched(*stalled(300), *takes)
    held, later = verdicts[31:37], verdicts[37:]
    assert {verdict.level for verdict in held} == {Level.CRITICAL}
    assert {reason.until for verdict in held for reason in verdict.reasons} == {BEGIN + 310}
    assert {verdict.trend for verdict in held} == {Trend.UNKNOWN}
    assert {verdict.level for verdict in later} == {Level.OK}
    assert verdicts[30].reasons[0].until is None


def test_a_stall_that_goes_on_after_a_single_take_is_told_without_an_end_again() -> None:
    took = Observation(BEGIN + 310, ready=8, pushed=20, taken=12, done=12, oldest=BEGIN, consumers=1)
    lost = msgspec.structs.replace(took, consumers=0, ended=BEGIN + 311, lost=True)
    back = [msgspec.structs.replace(lost, at=BEGIN + 310 + n) for n in range(10, 130, 10)]
    verdicts = watched(*stalled(300), took, *back)
    assert verdicts[31].reasons[0].until == BEGIN + 310
    assert (verdicts[-1].codes, verdicts[-1].reasons[0].until) == ((Code.NO_CONSUMER,), None)


def test_acts_of_people_change_no_verdict() -> None:
    acted = [msgspec.structs.replace(seen, hands=n * 3, ready=9 - n % 3) for n, seen in enumerate(stalled(1_200))]
    levels = [verdict.level for verdict in watched(*acted)]
    assert [(one, two) for one, two in pairwise(levels) if one is not two] == [(Level.OK, Level.CRITICAL)]


def test_an_old_item_is_told_no_longer_than_it_waits() -> None:
    old = [Observation(BEGIN + n, ready=1, pushed=1, extended=n, oldest=BEGIN - 900) for n in range(0, 200, 10)]
    young = Observation(BEGIN + 200, ready=1, pushed=2, taken=1, done=1, extended=200, oldest=BEGIN + 199)
    later = [msgspec.structs.replace(young, at=BEGIN + 200 + n, extended=200 + n) for n in (10, 20)]
    empty = msgspec.structs.replace(young, ready=0, oldest=None)
    assert Code.OLD in watched(*old)[-1].codes
    assert Code.OLD not in watched(*old, young, *later)[-1].codes
    assert Code.OLD not in watched(*old, empty)[-1].codes


def test_without_consumers_it_is_not_said_that_they_take_nothing() -> None:
    idle = [msgspec.structs.replace(seen, consumers=1 if n < 70 else 0) for n, seen in enumerate(stalled(1_200))]
    codes = [verdict.codes for verdict in watched(*idle)]
    assert any(Code.NONE_TAKEN in each for each in codes)
    assert any(Code.NO_CONSUMER in each for each in codes)
    assert not any({Code.NONE_TAKEN, Code.NO_CONSUMER} <= set(each) for each in codes)


def at_work(hours: int, *, job: int) -> list[Verdict]:
    """Return the verdicts on one consumer with jobs of so many seconds, whose lease is extended; more items wait."""
    return watched(
        *(
            Observation(
                BEGIN + n, ready=3, leased=1, pushed=4 + n // job, taken=1 + n // job, done=n // job, extended=n // 10,
                consumers=1, oldest=BEGIN + n - 9,
            )
            for n in range(0, hours * 3_600, 10)
        )
    )  # fmt: skip


def test_long_jobs_are_a_warning_at_most_until_their_time_is_learned() -> None:
    verdicts = at_work(6, job=1_800)
    assert {verdict.level for verdict in verdicts[:180]} == {Level.OK, Level.WARNING}
    assert {verdict.level for verdict in verdicts[190:]} == {Level.OK}
    assert Trend.STALLED not in {verdict.trend for verdict in verdicts}


def test_workers_that_begin_long_jobs_one_after_the_other_and_idle_between_them_are_no_stall() -> None:
    """Twelve begin a job of half an hour within half a minute, and again as long after all have ended."""
    seen = []
    for n in range(0, 6 * 3_600, 2):
        began, ended = (12 * (late // 1_860) + min(12, late % 1_860 // 2) for late in (n, max(0, n - 1_800)))
        seen.append(
            Observation(
                BEGIN + n, ready=3, leased=began - ended, pushed=began + 3, taken=began, done=ended,
                extended=began + n // 20, consumers=12, oldest=BEGIN + n - 9,
            )
        )  # fmt: skip
    verdicts = watched(*seen)
    assert {verdict.level for verdict in verdicts[2_000:]} == {Level.OK}
    assert Trend.STALLED not in {verdict.trend for verdict in verdicts}


def test_a_job_that_never_ends_is_not_said_to_keep_up() -> None:
    verdict = at_work(6, job=99 * 3_600)[-1]
    assert (verdict.level, verdict.codes, verdict.trend) == (Level.WARNING, (Code.NONE_TAKEN,), Trend.UNKNOWN)


def test_a_queue_from_which_nothing_moves_is_not_said_to_keep_up() -> None:
    """A program that tells nothing of itself took some and holds two: it may be at work, or be gone."""
    taken = Observation(BEGIN, ready=24, leased=2, pushed=30, taken=2, done=0, consumers=0, oldest=BEGIN)
    later = [msgspec.structs.replace(taken, at=BEGIN + n, taken=6, done=4) for n in range(10, 1_800, 10)]
    verdicts = watched(msgspec.structs.replace(taken, at=BEGIN - 10, taken=0, leased=0), taken, *later)
    assert verdicts[3].trend is Trend.STEADY
    assert {verdict.trend for verdict in verdicts[35:]} == {Trend.UNKNOWN}
    assert {verdict.level for verdict in verdicts[35:90]} == {Level.OK}
    assert verdicts[-1].level is Level.WARNING


def test_a_queue_whose_workers_were_killed_is_not_said_to_keep_up() -> None:
    """Ten a second were taken; then nothing is, while their leases and heartbeats last for a minute more."""
    busy = [
        Observation(
            BEGIN + n,
            ready=20,
            leased=4,
            pushed=10 * n + 24,
            taken=10 * n + 4,
            done=10 * n,
            consumers=4,
            oldest=BEGIN + n - 2,
        )
        for n in range(0, 300, 2)
    ]
    last = busy[-1]
    killed = [
        msgspec.structs.replace(last, at=last.at + n, ready=20 + 10 * n, pushed=last.pushed + 10 * n)
        for n in range(2, 60, 2)
    ]
    verdicts = watched(*busy, *killed)
    assert {verdict.trend for verdict in verdicts[30 : len(busy)]} == {Trend.STEADY}
    assert {verdict.trend for verdict in verdicts[len(busy) + 10 :]} == {Trend.UNKNOWN}


def test_a_new_queue_that_grows_is_not_said_to_keep_up() -> None:
    """Ten a second come and eight are taken, which growth is said of after two minutes."""
    seen = [
        Observation(
            BEGIN + n,
            ready=2 * n + 8,
            leased=2,
            pushed=10 * n + 10,
            taken=8 * n + 2,
            done=8 * n,
            consumers=2,
            oldest=BEGIN + n / 5,
        )
        for n in range(0, 300, 2)
    ]
    verdicts = watched(*seen)
    assert Trend.STEADY not in {verdict.trend for verdict in verdicts[1:]}
    assert verdicts[-1].trend is Trend.GROWING


def test_a_new_queue_that_keeps_up_is_soon_said_to() -> None:
    seen = [
        Observation(
            BEGIN + n,
            ready=n % 8,
            leased=2,
            pushed=10 * n + 8,
            taken=10 * n + 8 - n % 8,
            done=10 * n,
            consumers=2,
            oldest=BEGIN + n,
        )
        for n in range(0, 300, 2)
    ]
    assert {verdict.trend for verdict in watched(*seen)[8:]} == {Trend.STEADY}


def failing(second: int, finished: int = 0) -> Observation:
    """Return a queue of which an item comes back every two seconds."""
    back = second // 2
    return Observation(
        BEGIN + second, ready=57, leased=3, dead=back // 3, pushed=60, taken=3 + back, done=finished, released=back,
        consumers=6, oldest=BEGIN,
    )  # fmt: skip


def test_a_queue_of_which_every_attempt_fails_is_not_said_to_keep_up() -> None:
    new = watched(*map(failing, range(0, 90, 2)))
    assert {verdict.trend for verdict in new[1:]} == {Trend.UNKNOWN}
    older = watched(*(failing(second, min(second, 300)) for second in range(0, 390, 2)))
    assert {verdict.trend for verdict in older[16:150]} == {Trend.STEADY}
    assert {verdict.trend for verdict in older[157:]} == {Trend.UNKNOWN}


def test_a_long_failure_teaches_no_long_jobs() -> None:
    """Jobs of ten seconds hang for five hours, until another process takes; then they hang again."""
    many = [(n, n // 10) for n in range(0, 3_600, 10)]
    hung = [(n, 360) for n in range(3_600, 21_600, 10)]
    again = [(n, 361) for n in range(21_600, 23_400, 10)]
    verdicts = watched(
        *(
            Observation(
                BEGIN + n, ready=3, leased=1, pushed=4 + taken, taken=1 + taken, done=min(taken, 359), extended=n,
                consumers=1, oldest=BEGIN + n - 9,
            )
            for n, taken in many + hung + again
        )
    )  # fmt: skip
    assert verdicts[-1].codes == (Code.NONE_TAKEN,)
    assert verdicts[-1].since > BEGIN + 21_600


@pytest.mark.parametrize(("more", "why"), [({}, {Code.NO_CONSUMER}), ({"consumers": 1}, {Code.NONE_TAKEN})])
def test_growth_is_no_reason_of_its_own_where_nothing_is_taken(more: dict[str, int], why: set[Code]) -> None:
    """The queue grows by one item a second all the time: first beside a consumer that takes, then without."""
    taken = [
        Observation(BEGIN + n, ready=1 + n, pushed=1 + 2 * n, taken=n, done=n, consumers=1, oldest=BEGIN)
        for n in range(0, 600, 10)
    ]
    left = [
        Observation(BEGIN + n, ready=1 + n, pushed=1 + n + 590, taken=590, done=590, oldest=BEGIN, **more)
        for n in range(600, 1_800, 10)
    ]
    verdicts = watched(*taken, *left)
    assert verdicts[50].codes == (Code.GROWING,)
    assert {*verdicts[-1].codes} - {Code.OLD} == why


def test_growth_that_has_stopped_is_told_no_more() -> None:
    """What is pushed stays, and neither pushes nor takes go on: it is a backlog, and grows no longer."""
    grown = [min(second, 900) for second in range(0, 1_201, 10)]
    verdicts = watched(
        *(Observation(BEGIN + n * 10, ready=1 + ready, pushed=1 + ready, extended=n) for n, ready in enumerate(grown))
    )
    growing = [Code.GROWING in verdict.codes for verdict in verdicts]
    assert all(growing[30:90])
    assert not any(growing[-10:]), "two minutes without a change, and one until it is told"


def test_growth_that_ended_is_told_with_its_end_while_the_queue_shrinks() -> None:
    """It grows by five a second for ten minutes; then more workers come, and it shrinks by twenty a second."""
    grows = [
        Observation(BEGIN + n, ready=5 * n, pushed=9 * n, taken=4 * n, done=4 * n, consumers=1, oldest=BEGIN + n - 9)
        for n in range(0, 600, 10)
    ]
    shrinks = [
        Observation(
            BEGIN + 590 + n, ready=2_950 - 20 * n, pushed=5_310 + 9 * n, taken=2_360 + 29 * n, done=2_360 + 29 * n,
            consumers=1, oldest=BEGIN + 590,
        )
        for n in range(10, 140, 10)
    ]  # fmt: skip
    verdicts = watched(*grows, *shrinks)
    held, later = verdicts[len(grows) - 1], verdicts[len(grows) + 3 :]
    assert (held.codes, held.trend, held.reasons[0].until) == ((Code.GROWING,), Trend.GROWING, None)
    ends = {reason.until for verdict in later for reason in verdict.reasons}
    assert Trend.GROWING not in {verdict.trend for verdict in later}
    assert len(ends) == 1, ends
    assert BEGIN + 590 < ends.pop() <= BEGIN + 630
    assert {verdict.grows_by for verdict in later} == {None}


def test_bursts_that_are_worked_off_are_no_end_of_growth() -> None:
    """A burst of 300 comes each minute, and 240 of it are worked off: the lows rise, though the depth mostly falls."""
    bursts = []
    for n in range(0, 1_800, 10):
        minute, second = divmod(n, 60)
        pushed, ready = 300 * (minute + 1), 60 * minute + 300 - 4 * second
        took = pushed - ready
        bursts.append(
            Observation(BEGIN + n, ready=ready, pushed=pushed, taken=took, done=took, consumers=1, oldest=BEGIN + n - 9)
        )
    later = watched(*bursts)[90:]
    assert {verdict.trend for verdict in later} == {Trend.GROWING}
    assert {reason.until for verdict in later for reason in verdict.reasons} == {None}


@pytest.mark.parametrize("step", [-7_200.0, 7_200.0])
def test_a_step_of_the_clock_is_no_alarm(step: float) -> None:
    calm = [Observation(BEGIN + n, ready=1, pushed=n, taken=n, done=n, oldest=BEGIN + n) for n in range(0, 300, 10)]
    late = [
        Observation(BEGIN + n + step, ready=1, pushed=n, taken=n, done=n, oldest=BEGIN + n + step)
        for n in range(300, 600, 10)
    ]
    assert {verdict.level for verdict in watched(*calm, *late)} == {Level.OK}


def test_totals_that_begin_anew_are_another_life_of_the_queue() -> None:
    anew = [Observation(BEGIN + 310 + n, ready=1, pushed=n, taken=n, done=n) for n in range(0, 200, 10)]
    verdict = watched(*stalled(300, ready=0), *anew)[-1]
    assert (verdict.level, verdict.reasons) == (Level.OK, ())


def test_unreadable_records_are_unknown_and_forget_nothing() -> None:
    hidden = Observation(BEGIN + 310, unreadable=True)
    again = stalled(320)[-1:]
    verdicts = watched(*stalled(300), hidden, *again)
    assert (verdicts[-2].level, verdicts[-2].codes) == (Level.UNKNOWN, (Code.UNREADABLE,))
    assert (verdicts[-1].level, verdicts[-1].reasons[0].since) == (Level.CRITICAL, BEGIN)


def test_what_was_not_observed_for_long_is_unknown_where_it_may_have_changed() -> None:
    waits = empty = None
    for observation in stalled(40):
        waits = advance(waits, observation)
        empty = advance(empty, msgspec.structs.replace(observation, ready=0, oldest=None))
    assert waits is not None
    assert empty is not None
    soon, late = BEGIN + 40 + STALE, BEGIN + 41 + STALE
    assert [at(health, soon).level for health in (waits, empty)] == [Level.OK, Level.OK]
    assert (at(waits, late).level, at(waits, late).codes) == (Level.UNKNOWN, (Code.STALE,))
    assert at(empty, late).level is Level.OK


def test_what_was_watched_too_shortly_is_told_apart_from_what_nothing_recorded() -> None:
    """A gap of ten minutes, and then a watch of half an hour of the hour that is allowed without a consumer."""
    before = [Observation(BEGIN + n, ready=5, pushed=n + 5, taken=n, done=n, oldest=BEGIN - 7_200) for n in range(10)]
    after = [msgspec.structs.replace(before[-1], at=BEGIN + 610 + n) for n in range(0, 1_801, 10)]
    (reason,) = watched(*before, *after, targets=Targets(oldest=0, no_consumer=3_600))[-1].reasons
    assert (reason.code, reason.since, reason.value) == (Code.STALE, BEGIN + 610, 3_600)
    (silent,) = at(advance(None, before[-1]), BEGIN + 610).reasons
    assert (silent.code, silent.value) == (Code.STALE, None)


def deep(ready: int) -> list[Observation]:
    """Return five minutes of a queue of this depth that keeps up."""
    return [
        Observation(BEGIN + n, ready=ready, pushed=n, taken=n, done=n, oldest=BEGIN + n - 5) for n in range(0, 310, 10)
    ]


@pytest.mark.parametrize(
    ("ready", "level"),
    [
        (89, Level.OK),
        (99, Level.OK),
        (100, Level.WARNING),
        (190, Level.WARNING),
        (200, Level.CRITICAL),
    ],
)
def test_a_target_is_a_warning_and_twice_the_target_critical(ready: int, level: Level) -> None:
    verdict = watched(*deep(ready), targets=Targets(depth=100))[-1]
    assert verdict.level is level
    assert [(reason.value, reason.limit) for reason in verdict.reasons] == ([(ready, 100)] if level else [])


@pytest.mark.parametrize(
    ("many", "told"), [({"ready": 100, "dead": 3}, (100, 3)), ({"ready": 104, "dead": 17}, (100, 10))]
)
def test_trouble_that_just_ended_is_told_by_the_number_that_it_had(many: dict[str, int], told: tuple[int, int]) -> None:
    beyond = [
        Observation(BEGIN + n, pushed=n, taken=n, done=n, oldest=BEGIN + n - 5, **many) for n in range(0, 310, 10)
    ]
    ended = msgspec.structs.replace(beyond[-1], at=BEGIN + 301, ready=40, dead=0, pushed=301, taken=365, done=365)
    last, now = watched(*beyond, ended, targets=Targets(depth=100))[-2:]
    assert [reason.value for reason in last.reasons] == list(told)
    assert now.reasons == last.reasons


def test_zero_switches_a_target_off() -> None:
    none = Targets(oldest=0, dead=0, no_consumer=0, growing=0)
    assert {verdict.level for verdict in watched(*stalled(7_200, dead=9), targets=none)} == {Level.OK}


def test_a_number_of_dead_items_is_told_as_a_lower_bound_that_seldom_changes() -> None:
    one_by_one = [Observation(BEGIN + n, dead=n) for n in range(1_001)]
    shown = [verdict.reasons[0].value for verdict in watched(*one_by_one)[1:]]
    assert shown[:9] == list(range(1, 10))
    assert all(value <= n < 2.5 * value for n, value in enumerate(shown, start=1) if value)
    assert sorted(set(shown[9:])) == [10, 20, 50, 100, 200, 500, 1_000]


def test_numbers_keep_what_was_told_while_they_are_close() -> None:
    shown = told(1_234.0, None)
    assert shown == 1_200
    assert {told(value, shown) for value in (1_000.0, 1_300.0, 1_500.0)} == {1_200}
    assert told(1_600.0, shown) == 1_600


def test_marks_are_independent_of_bursts_and_moved_by_hands() -> None:
    marks, before = Marks(), 0
    for n in range(200):
        now = 500 if n % 12 == 0 else max(0, before - 60)
        marks, before = marks.after(10.0, before, now), now
    assert not marks.rises(0)
    assert not marks.creeps()
    assert marks.shifted(7).marks == tuple(mark + 7 for mark in marks.marks)


@pytest.mark.parametrize(("slots", "creeps"), [(8, False), (6, True)])
def test_a_few_items_more_in_thirteen_minutes_are_no_growth(slots: int, creeps: bool) -> None:
    """The lowest depth rises by one each so many quarters of a minute: by six and by eight items."""
    assert Marks(tuple(n // slots for n in range(52))).creeps() is creeps


def test_tau_counts_pairs() -> None:
    assert (tau([1, 2, 3]), tau([3, 2, 1]), tau([2, 2, 2])) == (1.0, -1.0, 0.0)


def consumed(*consumers: int | None, taken: bool = True, **more: object) -> list[Observation]:
    """Return observations of a queue with items, every ten seconds, with so many live consumers each."""
    return [
        Observation(BEGIN + 10 * n, ready=9, pushed=99, taken=50 + n * taken, consumers=number, **more)
        for n, number in enumerate(consumers)
    ]


def number_of(seen: list[Observation]) -> int | None:
    """Return the number of consumers after these observations."""
    health: Health | None = None
    for observation in seen:
        health = advance(health, observation)
    return health.consumers


@pytest.mark.parametrize(
    ("consumers", "number"),
    [
        ([None] * 9, None),
        ([2] * 9, 2),
        ([2, 2, 2, 0], 0),  # the last one ended since
        ([0] * 9, None),  # programs of an older release
        ([0, 0, 1, 1, 0], 0),  # its first heartbeat comes some seconds after its first take
        ([0, 0, 0, 0, 1], 1),
    ],
)
def test_takes_that_no_consumer_tells_make_the_number_unknown(consumers: list[int | None], number: int | None) -> None:
    assert number_of(consumed(*consumers)) == number


def test_a_process_that_ended_between_two_looks_did_tell() -> None:
    seen = [msgspec.structs.replace(each, ended=each.at - 1) for each in consumed(0, 0, 0, 0, 0, 0)]
    assert number_of(seen) == 0


def test_the_number_is_known_again_an_hour_after_the_last_untold_take() -> None:
    seen = consumed(*[0] * 9)
    quiet = [msgspec.structs.replace(seen[-1], at=seen[-1].at + 60 * n) for n in range(1, 62)]
    assert [number_of(seen + quiet[:n]) for n in (1, 58, 61)] == [None, None, 0]


@pytest.mark.parametrize(("lost", "level"), [(True, Level.CRITICAL), (False, Level.OK)])
def test_a_consumer_that_ended_by_itself_may_come_again(lost: bool, level: Level) -> None:
    """One that comes by every three minutes has none missed after 100 seconds; one that was killed has."""
    seen: list[Observation] = []
    for second in range(0, 1_900, 10):
        here = second % 180 == 0
        seen.append(
            Observation(
                BEGIN + second,
                ready=9,
                pushed=999,
                taken=1 + second // 180,
                done=1 + second // 180,
                consumers=int(here),
                ended=None if second < 10 else BEGIN + second // 180 * 180 + 5,
                lost=lost and second > 1_800,
            )
        )
    assert watched(*seen)[-1].level is level


def test_what_is_far_beyond_its_target_is_a_warning_before_it_is_critical() -> None:
    seen = [Observation(BEGIN + n, ready=50, pushed=50 + n, taken=n, done=n, oldest=BEGIN) for n in range(1, 200, 10)]
    levels = [verdict.level for verdict in watched(*seen, targets=Targets(depth=20))]
    assert levels[:3] == [Level.OK] * 3
    assert levels[3:12] == [Level.WARNING] * 9
    assert levels[12:] == [Level.CRITICAL] * 8


def test_what_is_about_twice_beyond_its_target_is_a_warning() -> None:
    seen = [msgspec.structs.replace(one, ready=195 + 10 * (n % 2)) for n, one in enumerate(deep(0))]
    levels = [verdict.level for verdict in watched(*seen, targets=Targets(depth=100))]
    assert levels == [Level.OK] * 3 + [Level.WARNING] * (len(seen) - 3)


@pytest.mark.parametrize(("rate", "seconds"), [(1, 100), (0.1, 400)])
def test_attempts_that_fail_are_told_the_sooner_the_more_there_are(rate: float, seconds: int) -> None:
    def seen(second: int) -> Observation:
        taken = int(second * rate)
        failed = int(max(0, second - 1_800) * rate * 0.8)
        return Observation(BEGIN + second, pushed=taken, taken=taken, done=taken - failed, released=failed, consumers=1)

    verdicts = watched(*map(seen, range(0, 3_600, 10)))
    first = next(n for n, verdict in enumerate(verdicts) if verdict.codes)
    assert verdicts[first].codes == (Code.RETRIES,)
    assert first * 10 - 1_800 <= seconds


@pytest.mark.parametrize(("waiting", "level"), [(0, Level.WARNING), (3, Level.WARNING), (40, Level.CRITICAL)])
def test_a_few_items_that_always_fail_are_no_outage(waiting: int, level: Level) -> None:
    """One item fails every ten seconds, and so many more wait; nothing is finished."""
    seen = [
        Observation(
            BEGIN + n, ready=waiting, leased=1, pushed=99, taken=50 + n // 10, done=49, released=n // 10, consumers=1,
            dead=30, oldest=BEGIN + n - 9,
        )
        for n in range(10, 600, 10)
    ]  # fmt: skip
    before = msgspec.structs.replace(seen[0], at=BEGIN, done=48)
    reason = watched(before, *seen, targets=Targets(dead=0))[-1].reasons[0]
    assert (reason.code, reason.level) == (Code.NOTHING_DONE, level)


@pytest.mark.parametrize("delayed", [0, 9])
def test_items_that_die_or_wait_for_their_next_attempt_are_not_finished(delayed: int) -> None:
    seen = [
        Observation(
            BEGIN + n, delayed=delayed, dead=0 if delayed else n // 10, pushed=99, taken=50 + n // 10, done=50,
            released=n // 10, consumers=1,
        )
        for n in range(0, 600, 10)
    ]  # fmt: skip
    assert watched(*seen)[-1].level is Level.CRITICAL


def leveled(*ready: int, rate: int = 10) -> list[Verdict]:
    """Return the verdicts on a queue with these ready items every ten seconds, into which `rate` a second come."""
    return watched(
        *(
            Observation(
                BEGIN + 10 * n, ready=depth, pushed=10 * rate * n + depth, taken=10 * rate * n, done=10 * rate * n,
                consumers=1, oldest=BEGIN + 10 * n - 5,
            )
            for n, depth in enumerate(ready)
        )
    )  # fmt: skip


@pytest.mark.parametrize(("fall", "growing"), [(3, True), (30, False)])
def test_a_dip_within_the_noise_of_traffic_ends_no_growth(fall: int, growing: bool) -> None:
    """It grows by 20 items in ten seconds for ten minutes, and falls for three by so many."""
    grown = [20 * n for n in range(60)]
    verdicts = leveled(*grown, *(grown[-1] - fall * n for n in range(1, 19)))
    assert Code.GROWING in verdicts[59].codes
    assert (Code.GROWING in verdicts[-1].codes) is growing
    assert (verdicts[-1].trend is Trend.DRAINING) is not growing


@pytest.mark.parametrize(("depth", "growing"), [(100, True), (5_000, False)])
def test_two_minutes_of_a_deep_queue_say_little(depth: int, growing: bool) -> None:
    """It rises by 80 items in two minutes."""
    verdicts = leveled(*[depth] * 30, *(depth + 7 * n for n in range(13)))
    assert (Code.GROWING in verdicts[-1].codes) is growing


def test_attempts_that_fail_no_more_are_told_no_more() -> None:
    """Four of five failed for ten minutes, one a second; since then all are finished."""
    verdicts = watched(
        *(
            Observation(
                BEGIN + n, pushed=n, taken=n, done=n - (failed := min(n, 600) * 4 // 5), released=failed, consumers=1
            )
            for n in range(0, 800, 10)
        )
    )
    assert Code.RETRIES in verdicts[60].codes
    assert Code.RETRIES not in verdicts[-1].codes


def test_a_queue_with_items_and_no_consumer_is_not_said_to_keep_up() -> None:
    """Its consumer ends by itself, before an hour without one is too long."""
    seen = [msgspec.structs.replace(each, consumers=0, ended=BEGIN) for each in stalled(30)]
    took = msgspec.structs.replace(seen[0], at=BEGIN - 10, consumers=1, taken=10, done=10, ended=None)
    verdicts = watched(took, *seen, targets=Targets(no_consumer=3_600))
    assert {verdict.trend for verdict in verdicts[2:]} == {Trend.UNKNOWN}


def test_the_share_of_attempts_that_fail_is_of_those_that_ended() -> None:
    """Of 30 leases that three workers took at once, 20 expired after 20 seconds, and 10 still run."""
    runs = Observation(BEGIN, ready=70, leased=30, pushed=100, taken=30, consumers=3, oldest=BEGIN)
    seen = [
        msgspec.structs.replace(runs, at=BEGIN + n, leased=10, ready=90, expired=20)
        if n >= 20
        else msgspec.structs.replace(runs, at=BEGIN + n)
        for n in range(2, 80, 2)
    ]
    before = msgspec.structs.replace(runs, at=BEGIN, ready=100, leased=0, taken=0)
    reasons = [reason for verdict in watched(before, *seen) for reason in verdict.reasons]
    assert {(reason.code, reason.value) for reason in reasons} - {(Code.QUIET, None)} == {(Code.RETRIES, 1.0)}


def test_growth_is_told_by_the_time_for_which_it_grew() -> None:
    """It keeps up for ten minutes; then five a second more come in than are taken, for two minutes."""
    verdicts = leveled(*[0] * 60, *(50 * n for n in range(14)))
    rates = {verdict.grows_by for verdict in verdicts if verdict.trend is Trend.GROWING}
    told = {reason.value for verdict in verdicts for reason in verdict.reasons}
    assert rates == told == {5.0}


@pytest.mark.parametrize("paused", [None, BEGIN + 1])
def test_items_without_a_consumer_are_not_said_to_keep_up_from_the_first_look_on(paused: float | None) -> None:
    """The first item comes into a queue that was used long ago, and perhaps the queue is paused for a while."""
    used = Observation(BEGIN, pushed=20, taken=20, done=20, consumers=0, ended=BEGIN - 9_000)
    waits = msgspec.structs.replace(used, ready=9, pushed=29, oldest=BEGIN + 1)
    before = [msgspec.structs.replace(waits, at=BEGIN + n, paused=paused) for n in (2, 90)] if paused else []
    later = [msgspec.structs.replace(waits, at=BEGIN + 92 + n) for n in range(0, 20, 2)]
    assert {verdict.trend for verdict in watched(used, *before, *later)[-10:]} == {Trend.UNKNOWN}


def test_delayed_items_of_which_none_was_ever_taken_are_not_said_to_keep_up() -> None:
    """A queue is made, and 20,000 delayed items are pushed into it in twenty seconds."""
    health = born(BEGIN)
    trends = set()
    for n in range(2, 900, 2):
        many = min(20_000, 1_000 * n)
        health = advance(health, Observation(BEGIN + n, pushed=many, delayed=many))
        trends.add(health.verdict.trend)
    assert trends == {Trend.UNKNOWN}


def test_a_queue_that_refuses_pushes_is_told_until_there_is_room_again() -> None:
    """It holds 400 items, its limit, of which 100 are delayed; then 100 are gone, and the limit is raised."""
    full = [
        Observation(
            BEGIN + n, ready=300, delayed=100, pushed=400 + n, taken=n, done=n, consumers=1, oldest=BEGIN + n - 9,
            most=400,
        )
        for n in range(0, 60, 2)
    ]  # fmt: skip
    later = [
        msgspec.structs.replace(full[-1], at=BEGIN + 60 + n, ready=200, taken=160 + n, done=160 + n, most=800)
        for n in range(0, 40, 2)
    ]
    verdicts = watched(*full, *later)
    told = verdicts[len(full) - 1]
    assert (told.level, told.trend) == (Level.WARNING, Trend.UNKNOWN)
    assert [(reason.code, reason.limit, reason.until) for reason in told.reasons] == [(Code.FULL, 400, None)]
    ended = verdicts[len(full)].reasons
    assert [(reason.code, reason.limit, reason.until) for reason in ended] == [(Code.FULL, 400, BEGIN + 60)]
    assert (verdicts[-1].level, verdicts[-1].reasons) == (Level.OK, ())


def test_a_queue_near_its_limit_is_told_and_then_that_it_reached_it() -> None:
    """It grows to its limit of 400; from then on 20 are taken before each look, for two minutes."""
    seen = [
        Observation(
            BEGIN + n, ready=ready, pushed=ready + 10 * n, taken=10 * n, done=10 * n, consumers=1, most=400
        )
        for n, ready in ((2 * n, min(400, 2 * n) if n < 201 else 380) for n in range(260))
    ]  # fmt: skip
    told = [[each for each in verdict.reasons if each.code is Code.FULL] for verdict in watched(*seen)]
    assert not any(told[:180])
    assert {(reason.value, reason.limit) for each in told[186:200] for reason in each} == {(None, 400)}
    assert {(reason.value, reason.limit) for each in told[200:] for reason in each} == {(400, 400)}
    assert all(told[186:])


def test_a_burst_that_just_fits_is_no_warning() -> None:
    burst = [Observation(BEGIN + n, ready=max(0, 400 - 50 * n), pushed=400, taken=50 * n, most=400) for n in range(9)]
    assert {verdict.level for verdict in watched(*burst)} == {Level.OK}


def test_the_limit_of_items_counts_those_that_are_ready_and_delayed() -> None:
    with open_store("memory:") as store:
        queue = store.create_queue("jobs")
        queue.configure(max_depth=2)
        queue.push(b"x", 1)
        room = observation_of(queue.status(), BEGIN)
        queue.push(b"x", 1, delay=9_999)
        assert (room.is_full, observation_of(queue.status(), BEGIN).is_full) == (False, True)


def test_a_few_items_less_end_no_critical_age_of_a_queue_that_grows() -> None:
    """Ten more come each minute for 40 minutes; once, for two minutes, one less is there every twenty seconds."""
    grown = [n * 10 // 6 for n in range(240)]
    depths = [*grown, *(grown[-1] - n // 2 for n in range(1, 13)), *(grown[-1] + n for n in range(1, 60))]
    seen = [
        Observation(
            BEGIN + 10 * n, ready=ready, pushed=9 * n + ready, taken=9 * n, done=9 * n, consumers=1, oldest=BEGIN
        )
        for n, ready in enumerate(depths, start=1)
    ]
    levels = [verdict.level for verdict in watched(*seen)]
    assert set(levels[-80:]) == {Level.CRITICAL}


def test_a_buffer_that_is_never_still_is_not_said_to_drain() -> None:
    """It holds about 2,000 items for eight hours, and up to 60 more."""
    random = Random(1)
    trends = {verdict.trend for verdict in leveled(*(2_000 + random.randrange(60) for _ in range(2_880)), rate=5)}
    assert not trends & {Trend.DRAINING, Trend.GROWING}


@pytest.mark.parametrize(("less", "within"), [(40, 120), (2, 900)])
def test_a_backlog_that_drains_is_told_once_until_it_is_gone(less: int, within: int) -> None:
    """It shrinks by so many items in ten seconds, of which a quarter go up and down."""
    depths = [n * less + (less // 4 + 1) * (n % 3 - 1) for n in range(200 + 3_000 // less, 0, -1)]
    trends = [verdict.trend for verdict in leveled(*depths)]
    begin = trends.index(Trend.DRAINING)
    assert 10 * begin <= within
    assert set(trends[begin : -2_000 // less // 10 - 1]) == {Trend.DRAINING}


def test_workers_that_are_started_for_each_burst_are_no_outage() -> None:
    """Each quarter of an hour 200 items come; 150 seconds later a worker is started, takes four a second, and ends."""
    health, levels = born(BEGIN), []
    pushed = taken = 0
    ended, since = BEGIN, BEGIN
    for n in range(2, 3 * 3_600, 2):
        at = BEGIN + n
        if n % 900 == 0:
            pushed, since = pushed + 200, at
        works = n % 900 >= 150 and n % 900 < 300
        if works:
            taken, ended = min(pushed, taken + 8), at
        ready = pushed - taken
        health = advance(
            health,
            Observation(
                at, ready=ready, pushed=pushed, taken=taken, done=taken, consumers=int(works), ended=ended,
                oldest=since if ready else None,
            ),
        )  # fmt: skip
        levels.append(health.verdict.level)
    assert set(levels[1_800:]) == {Level.OK}, "after an hour it is known how long workers need"


def batches(*fails: bool, dead: bool = False) -> list[Verdict]:
    """Return the verdicts on ten items that come each hour, of which the first five of an hour may fail once.

    Each of five workers needs ten seconds for an item, and one to fail. The last item of an hour may be dead. A look is
    taken each second for two minutes, while there is work, and then each ten.
    """
    health, verdicts = born(BEGIN - 1), []
    taken = done = returned = lost = 0
    ready, held = 0, dict[int, int]()
    for second in range(len(fails) * 3_600):
        hour, n = divmod(second, 3_600)
        if not n:
            ready += 10
            failing = 5 if fails[hour] else 0
        for worker in [worker for worker, end in held.items() if abs(end) == second]:
            if held.pop(worker) < 0:
                returned += 1
                ready += 1
            elif dead and ready == 0 and not held:
                returned += 1
                lost += 1
            else:
                done += 1
        for worker in range(5):
            if ready and worker not in held:
                ready -= 1
                taken += 1
                held[worker] = -(second + 1) if failing else second + 10
                failing = max(0, failing - 1)
        if n >= 120 and n % 10:
            continue
        seen = Observation(
            BEGIN + second, ready=ready, leased=len(held), dead=lost, pushed=10 * hour + 10, taken=taken, done=done,
            released=returned, consumers=1, oldest=BEGIN + hour * 3_600 if ready else None,
        )  # fmt: skip
        health = advance(health, seen, Targets(dead=0))
        verdicts.append(health.verdict)
    return verdicts


@pytest.mark.parametrize("dead", [False, True])
def test_a_batch_that_fails_at_first_is_no_outage_as_nothing_came_before_it(dead: bool) -> None:
    """The connections of all workers are stale after an hour without items."""
    verdicts = batches(False, True, True, dead=dead)
    assert {verdict.level for verdict in verdicts} == {Level.OK}


def test_nothing_finished_is_told_since_the_first_item_came_back() -> None:
    """A queue that was empty for an hour gets items that all fail, one every two seconds."""
    used = [Observation(BEGIN - n, pushed=20, taken=20, done=20, consumers=1) for n in range(3_600, 0, -10)]
    fails = [
        Observation(
            BEGIN + n, ready=30, pushed=50, taken=20 + n // 2, done=20, released=n // 2, consumers=1, oldest=BEGIN
        )
        for n in range(0, 200, 2)
    ]  # fmt: skip
    verdicts = watched(*used, *fails)[len(used) :]
    began = next(n for n, verdict in enumerate(verdicts) if Code.NOTHING_DONE in verdict.codes)
    assert 90 <= 2 * began <= 94
    assert [(each.code, each.since) for each in verdicts[-1].reasons] == [(Code.NOTHING_DONE, BEGIN + 2)]


def acted(change: int, hands: int, *, every: int = 1) -> list[Verdict]:
    """Return the verdicts on twenty minutes of a queue that changes by so many items a second; people touch some."""
    return watched(
        *(
            Observation(
                BEGIN + n, ready=100_000 + change * n, pushed=100_000 + 60 * n, taken=60 * n - change * n,
                done=60 * n - change * n, consumers=4, hands=hands * n, oldest=BEGIN + n - 5,
            )
            for n in range(0, 1_200, every)
        )
    )  # fmt: skip


@pytest.mark.parametrize("every", [1, 10])
@pytest.mark.parametrize(("hands", "trend"), [(0, Trend.GROWING), (5, Trend.GROWING), (30, Trend.STEADY)])
def test_people_that_act_on_a_few_items_hide_no_growth(hands: int, trend: Trend, every: int) -> None:
    """A bulk job of a person goes on beside programs that push 30 a second more than are taken."""
    verdict = acted(30, hands, every=every)[-1]
    assert verdict.trend is trend
    assert (Code.GROWING in verdict.codes) is (trend is Trend.GROWING)


def test_people_that_act_on_a_few_items_hide_no_drain() -> None:
    verdict = acted(-20, 5)[-1]
    assert verdict.trend is Trend.DRAINING
    assert verdict.clears_in is not None
    assert 0.5 <= verdict.clears_in / (76_000 / 15) <= 2, "of the 20 that leave a second, people may have moved 5"


def grown(hands: int) -> list[Trend]:
    """Return the trends of a queue that grows for ten minutes, and of which people delete so many a second later."""
    seen, ready, acted = [], 0, 0
    for n in range(800):
        by_hand = hands if n >= 620 else 0
        ready, acted = ready + (30 if n < 600 else 0) - by_hand, acted + by_hand
        taken = 60 * n - ready - acted
        seen.append(
            Observation(
                BEGIN + n, ready=ready, pushed=60 * n, taken=taken, done=taken, consumers=4, hands=acted,
                oldest=BEGIN + n - 5,
            )
        )  # fmt: skip
    return [verdict.trend for verdict in watched(*seen)]


def test_people_that_delete_items_end_no_growth() -> None:
    assert grown(20) == grown(0)
    assert Trend.GROWING in grown(0)


@pytest.mark.parametrize("gap", [90, 600, 3_600, 7_200])
@pytest.mark.parametrize("rate", [-10, 1])
def test_a_time_without_a_recorder_distorts_no_forecast(gap: int, rate: int) -> None:
    """A queue of 150,000 items grows or shrinks evenly; nothing watches it for a while."""

    def seen(second: int) -> Observation:
        taken = (11 - rate) * second
        return Observation(
            BEGIN + second, ready=150_000 + rate * second, pushed=200_000 + 11 * second, taken=taken, done=taken,
            consumers=4, oldest=BEGIN - 100,
        )  # fmt: skip

    before = [seen(n) for n in range(0, 1_800, 5)]
    after = [seen(1_800 + gap + n) for n in range(0, 1_500, 5)]
    for observation, verdict in zip(after, watched(*before, *after)[len(before) :], strict=True):
        if rate > 0:
            assert verdict.grows_by == 1.0
        else:
            assert verdict.clears_in is not None
            assert 0.4 <= verdict.clears_in / (observation.ready / 10) <= 2.5


def near(*parts: tuple[int, int], targets: Targets | None = None) -> list[Verdict]:
    """Return the verdicts on so many ready items for so many minutes, seen every ten seconds; the target is 100."""
    depths = [ready for minutes, ready in parts for _ in range(minutes * 6)]
    return watched(
        *(
            Observation(
                BEGIN + 10 * n, ready=ready, pushed=20 * n + ready, taken=20 * n, done=20 * n, consumers=2,
                oldest=BEGIN + 10 * n - 2,
            )
            for n, ready in enumerate(depths)
        ),
        targets=targets or Targets(depth=100),
    )  # fmt: skip


@pytest.mark.parametrize("peak", [105, 150])
def test_a_number_that_rests_close_to_its_target_is_told_for_ten_minutes_and_no_longer(peak: int) -> None:
    verdicts = near((10, 50), (3, peak), (30, 95))
    close = verdicts[13 * 6 :]
    assert {verdict.level for verdict in close[:59]} == {Level.WARNING}
    assert {verdict.level for verdict in close[61:]} == {Level.OK}
    assert {verdict.reasons[0].value for verdict in close[:59]} == {95}, "what is told is of now"


def test_a_number_that_goes_up_and_down_about_its_target_is_told_all_the_time() -> None:
    verdicts = near((10, 50), *[(3, 105), (5, 95)] * 10)
    assert {verdict.level for verdict in verdicts[11 * 6 :]} == {Level.WARNING}


def test_what_rests_close_to_twice_its_target_is_critical_for_ten_minutes_and_then_a_warning() -> None:
    close = near((10, 50), (3, 210), (30, 185))[13 * 6 :]
    assert {verdict.level for verdict in close[:59]} == {Level.CRITICAL}
    assert {verdict.level for verdict in close[61:]} == {Level.WARNING}


def test_what_was_critical_and_is_close_to_its_target_is_a_warning_soon() -> None:
    close = near((10, 50), (3, 210), (30, 95))[13 * 6 :]
    assert {verdict.level for verdict in close[:6]} == {Level.CRITICAL}
    assert {verdict.level for verdict in close[8:65]} == {Level.WARNING}
    assert {verdict.level for verdict in close[69:]} == {Level.OK}


def test_a_queue_that_was_full_and_has_some_room_is_told_for_ten_minutes_and_no_longer() -> None:
    """Its limit is 400; it rests at 350."""
    full = Observation(BEGIN, ready=400, pushed=400, consumers=1, most=400)
    rests = [msgspec.structs.replace(full, at=BEGIN + n, ready=350, pushed=400 + n, taken=50 + n, done=50 + n,
        oldest=BEGIN + n - 9) for n in range(20, 1_200, 10)]  # fmt: skip
    verdicts = watched(full, msgspec.structs.replace(full, at=BEGIN + 10), *rests)[2:]
    told = [[(each.code, each.value, each.until) for each in verdict.reasons] for verdict in verdicts]
    assert {tuple(each) for each in told[:59]} == {((Code.FULL, 400, None),)}
    assert not any(told[61:])


def waiting(job: int, *, ready: int = 6, until: float = 9e9) -> list[Verdict]:
    """Return the verdicts on a queue of which a worker takes an item each `job` seconds, for four hours.

    The waits of a minute are known for two. Items that wait are gone from a second on.
    """
    return watched(
        *(
            Observation(
                BEGIN + n, ready=ready if n < until else 0, leased=1, pushed=1 + ready + n // job, taken=1 + n // job,
                done=n // job, extended=n // 10, consumers=1, oldest=BEGIN + n - 100 if n < until else None,
                wait=ready * float(job) if 60 <= n % job < 180 and job < n < until else None,
            )
            for n in range(0, 4 * 3_600, 10)
        ),
        targets=Targets(wait=60, oldest=0, no_consumer=0, growing=0),
    )  # fmt: skip


@pytest.mark.parametrize("job", [190, 300, 600, 1_500])
def test_a_wait_that_is_unknown_while_items_wait_is_as_it_was(job: int) -> None:
    verdicts = waiting(job)
    levels = [verdict.level for verdict in verdicts]
    first = next(n for n, level in enumerate(levels) if level)
    assert Level.OK not in levels[first:]
    assert {reason.value for verdict in verdicts[first:] for reason in verdict.reasons} == {float(f"{6 * job:.2g}")}


def test_a_wait_that_is_unknown_ends_where_no_item_waits() -> None:
    assert {verdict.level for verdict in waiting(600, until=3_600)[370:]} == {Level.OK}


def test_items_that_died_long_ago_make_no_outage_of_a_few_that_fail() -> None:
    """Nothing was recorded of it before, and 30 items are dead; one fails every ten seconds."""
    seen = [
        Observation(
            BEGIN + n, leased=1, pushed=99, taken=50 + n // 10, done=40, released=n // 10, consumers=1, dead=30
        )
        for n in range(0, 600, 10)
    ]  # fmt: skip
    reason = watched(*seen, targets=Targets(dead=0))[-1].reasons[0]
    assert (reason.code, reason.level) == (Code.NOTHING_DONE, Level.WARNING)


@pytest.mark.parametrize(
    ("leased", "lost", "trend"), [(200, True, Trend.UNKNOWN), (0, True, Trend.EMPTY), (1, False, Trend.EMPTY)]
)
def test_a_queue_is_not_said_to_be_empty_where_a_killed_consumer_holds_its_items(
    leased: int, lost: bool, trend: Trend
) -> None:
    """A person may hold some as well, as after a consumer that ended by itself: that is no alarm."""
    held = Observation(
        BEGIN, leased=leased, pushed=200, taken=200, done=200 - leased, consumers=0, ended=BEGIN, lost=lost
    )
    verdict = watched(*(msgspec.structs.replace(held, at=BEGIN + n) for n in range(0, 1_200, 10)))[-1]
    assert (verdict.level, verdict.trend) == (Level.OK, trend)


def test_health_of_an_earlier_or_a_later_release_is_read() -> None:
    """One more field is appended, or the last one is not known yet."""
    health = advance(None, stalled(0)[0])
    fields = msgspec.msgpack.decode(encode(health)[1:])
    for other in (fields[:-1], [*fields, 7]):
        assert decode(b"\x01" + msgspec.msgpack.encode(other)) == health
