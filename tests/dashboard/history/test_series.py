"""Columns of charts are exact: what is known at each moment, and nothing where it is not."""

from dataclasses import replace

import pytest

from pqadmin.dashboard.history.charts import forecast
from pqadmin.dashboard.history.ranges import Range
from pqadmin.dashboard.history.series import Heat, Series, course, heat, series
from queues.history import MINUTES, SECONDS, Point, Resolution, Stretch

IDLE = Point(at=100, ready=0, delayed=0, leased=0, dead=0, arrived=0, left=0)


def shown(since: int, until: int, now: int | None = None) -> Range:
    return Range(since=since, until=until, now=until if now is None else now)


def drawn(points: list[Point], since: int, until: int) -> Series:
    return series(points, shown(since, until), step=1)


def test_the_age_of_what_waits_grows_between_changes_too() -> None:
    pushed = replace(IDLE, at=200, ready=1, arrived=1, oldest_at=200)
    more, taken = replace(pushed, at=201, ready=2, arrived=2), replace(IDLE, at=500, arrived=2, left=2)
    found = drawn([IDLE, pushed, more, taken], 100, 500)
    assert found.times == [100, 200, 201, 499, 500]
    assert found.depth[0] == [0, 1, 2, 2, 0]
    assert found.oldest == [None, 0, 1, 299, None]


def test_rates_are_of_the_whole_time_since_the_change_before() -> None:
    points = [IDLE, replace(IDLE, at=110, ready=50, arrived=50), replace(IDLE, at=130, ready=10, arrived=70, left=60)]
    found = drawn(points, 100, 130)
    assert found.rates == [[None, 5.0, 1.0], [None, 0.0, 3.0]]


def test_what_was_not_recorded_is_a_gap_without_a_fall_and_a_spike() -> None:
    busy = replace(IDLE, at=110, ready=5, arrived=5)
    after = replace(IDLE, at=170, ready=9_000, arrived=9_005, left=5, gap=True)
    found = drawn([IDLE, busy, after, replace(after, at=180, gap=False)], 100, 180)
    assert found.times == [100, 110, 111, 170, 180]
    assert found.depth[0] == [0, 5, None, 9_000, 9_000]
    assert found.rates[0] == [None, 0.5, None, None, 0.0]
    assert found.rates[1] == [None, 0.0, None, None, 0.0]


def test_a_range_begins_and_ends_with_what_held_there() -> None:
    points = [IDLE, replace(IDLE, at=200, ready=10, arrived=10), replace(IDLE, at=400, arrived=10, left=10)]
    found = drawn(points, 150, 300)
    assert (found.times, found.depth[0]) == ([150, 200, 300], [0, 10, 10])
    assert found.rates == [[0.1, 0.1, 0.0], [0.0, 0.0, 0.05]]


def test_a_range_within_a_gap_shows_nothing() -> None:
    points = [IDLE, replace(IDLE, at=1_000, ready=3, arrived=3, gap=True)]
    found = drawn(points, 500, 600)
    assert found.times == []


def test_no_rate_is_known_over_a_purge() -> None:
    found = drawn([replace(IDLE, arrived=9, left=4), replace(IDLE, at=110)], 100, 110)
    assert found.rates == [[None, None], [None, None]]


@pytest.mark.parametrize(("recorded", "ago", "gap"), [(True, 60, False), (False, 60, True), (False, 5, False)])
def test_the_time_up_to_now_is_known_while_a_process_records(recorded: bool, ago: int, gap: bool) -> None:
    last = replace(IDLE, at=100 + ago, ready=1, arrived=1)
    points = course(Stretch(points=[IDLE], before=None), last, SECONDS, recorded=recorded)
    assert points[-1].gap is gap
    same = course(Stretch(points=[IDLE], before=None), replace(IDLE, at=100 + ago), SECONDS, recorded=recorded)
    assert not same[-1].gap, "it is as it was"


@pytest.mark.parametrize(("resolution", "seconds"), [(SECONDS, 12), (MINUTES, 60)])
def test_what_came_just_now_is_no_rate_of_the_quiet_time_before(resolution: Resolution, seconds: int) -> None:
    """The recorder writes each change within ten seconds: what is not written yet came since then."""
    last = replace(IDLE, at=4_000, ready=660, arrived=660)
    points = course(Stretch(points=[IDLE], before=None), last, resolution, recorded=True)
    found = series(points, shown(3_000, 4_000), resolution.step)
    assert found.rates[0][-1] == 660 / seconds
    assert found.depth[0][-2:] == [0, 660]
    assert found.times[-2] == 4_000 - seconds


def test_a_damaged_end_is_a_gap() -> None:
    stretch = Stretch(points=[IDLE], before=None, damaged=[7_200])
    assert course(stretch, replace(IDLE, at=7_300), MINUTES, recorded=True)[-1].gap


def mixed(points: list[Point], since: int, until: int) -> Heat:
    return heat(points, shown(since, until), step=60, bands=3)


def test_the_mix_is_what_each_column_ended_with() -> None:
    first = replace(IDLE, at=60, ready=1_102, mix=(2, 110, 990))
    points = [first, replace(first, at=180, ready=5, mix=(5, 0, 0)), replace(IDLE, at=240)]
    found = mixed(points, 60, 300)
    assert found.times == [60, 120, 180, 240, 300]
    assert found.bands == [[2, 5, 0, 0], [110, 0, 0, 0], [990, 0, 0, 0]]


def test_a_mix_that_is_not_kept_is_as_it_was_and_one_that_is_not_known_is_none() -> None:
    first = replace(IDLE, at=60, ready=3, mix=(1, 1, 1))
    points = [first, replace(first, at=130, mix=()), replace(first, at=400, mix=(), gap=True)]
    assert mixed(points, 60, 480).bands[0] == [1, None, None, None, None, None, None]


def test_a_long_range_has_no_more_columns_than_can_be_told_apart() -> None:
    found = mixed([replace(IDLE, at=0, ready=1, mix=(1, 0, 0))], 0, 90 * 86_400)
    assert len(found.times) <= 97
    assert found.times[-1] == 90 * 86_400


def test_the_forecast_goes_on_as_the_verdict_says() -> None:
    hour = shown(0, 3_600)
    assert forecast(600, hour, clears_in=300, grows_by=None) == [(3_600, 600), (3_900, 0)]
    assert forecast(600, hour, clears_in=7_200, grows_by=None) == [(3_600, 600), (4_320, 540)]
    assert forecast(600, hour, clears_in=None, grows_by=2.0) == [(3_600, 600), (4_320, 2_040)]
    assert forecast(600, hour, clears_in=None, grows_by=None) is None
    assert forecast(600, shown(0, 3_600, now=9_999), clears_in=300, grows_by=None) is None
