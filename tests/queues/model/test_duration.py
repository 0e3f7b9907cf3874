"""Durations are numbers of seconds or timedeltas; anything else is refused before anything happens."""

import math
from datetime import timedelta

import pytest

from queues.errors import BadTime
from queues.model.duration import DELAY, TIMEOUT, delay_of, seconds_of


@pytest.mark.parametrize(("duration", "seconds"), [(0, 0), (1.5, 1.5), (timedelta(minutes=1), 60), (timedelta(0), 0)])
def test_a_number_of_seconds_and_a_timedelta_mean_the_same(duration: float | timedelta, seconds: float) -> None:
    assert seconds_of(duration, DELAY) == seconds
    assert delay_of(duration) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (True, "A timeout is a number of seconds or a timedelta, not True."),
        (math.nan, "A timeout is a number of seconds or a timedelta, not nan."),
        ("5", "A timeout is a number of seconds or a timedelta, not '5'."),
        (None, "A timeout is a number of seconds or a timedelta, not None."),
        (-1, "A timeout is 0 seconds or more, not -1."),
        (-(10**400), "A timeout is 0 seconds or more, not -1000"),
        (timedelta(seconds=-1), "A timeout is 0 seconds or more, not datetime.timedelta"),
        (math.inf, "A timeout has an end: infinity is no number of seconds here."),
        (10**400, "A timeout has an end"),
    ],
)
def test_what_is_no_duration_is_refused(wrong: object, says: str) -> None:
    with pytest.raises(BadTime) as caught:
        seconds_of(wrong, TIMEOUT)
    assert str(caught.value).startswith(says)
    assert isinstance(caught.value, ValueError)


def test_some_durations_are_endless_and_some_never_zero() -> None:
    assert seconds_of(math.inf, TIMEOUT, endless=True) == math.inf
    for nothing in (0, 0.0, timedelta(0), -1):
        with pytest.raises(BadTime, match="more than 0 seconds"):
            seconds_of(nothing, TIMEOUT, above_zero=True)


def test_a_delay_that_no_timedelta_holds_is_refused() -> None:
    with pytest.raises(BadTime, match="year 10000"):
        delay_of(1e300)
