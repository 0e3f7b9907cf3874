"""Rates follow the totals, and fall to zero by themselves."""

import pickle

import pytest

from pqadmin.live.board.rates import WINDOW, Meter


def test_no_rate_is_told_before_a_second_was_watched() -> None:
    meter = Meter()
    assert meter.rates(0.0) is None
    meter.observe(100.0, 5, 0)
    assert meter.rates(100.9) is None
    assert meter.rates(101.0) == (0.0, 0.0)


def test_a_steady_flow_has_its_rate_whatever_the_steps() -> None:
    meter = Meter()
    for step in range(200):
        meter.observe(step / 10, step * 3, step * 2, held_until=(step - 1) / 10)
    rates = meter.rates(19.9)
    assert rates[0] == pytest.approx(30, rel=0.05)
    assert rates[1] == pytest.approx(20, rel=0.05)


def test_a_rate_falls_to_zero_without_another_reading() -> None:
    meter = Meter()
    meter.observe(0.0, 0, 0)
    meter.observe(2.0, 100, 0, held_until=1.9)
    seen = [meter.rates(float(now)) for now in range(2, 16)]
    falling = [rates[0] for rates in seen if rates is not None]
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] == 0.0


def test_a_burst_after_a_long_rest_is_not_spread_over_the_rest() -> None:
    meter = Meter()
    meter.observe(0.0, 0, 0)
    meter.observe(3600.0, 100, 0, held_until=3599.9)
    rates = meter.rates(3600.0)
    assert rates[0] == pytest.approx(100 / WINDOW)


def test_what_went_on_while_no_page_was_open_is_no_rate_of_now() -> None:
    meter = Meter()
    meter.observe(0.0, 0, 0)
    meter.observe(5.0, 50, 50, held_until=4.0)
    meter.observe(200.0, 9_000, 8_000, held_until=6.0)
    assert meter.rates(200.5) is None
    assert meter.rates(202.0) == (0.0, 0.0)


def test_totals_that_begin_anew_begin_the_meter_anew() -> None:
    meter = Meter()
    meter.observe(0.0, 1000, 500)
    meter.observe(5.0, 3, 0)
    assert meter.rates(5.5) is None
    assert meter.rates(6.0) == (0.0, 0.0)


def test_the_memory_of_a_meter_is_bounded() -> None:
    meter = Meter()
    for step in range(100_000):
        meter.observe(step / 100, step, step, held_until=(step - 1) / 100)
    assert len(pickle.dumps(meter)) < 1_000
