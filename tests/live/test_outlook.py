"""The rules: state, outlook, problem."""

from typing import Any

import pytest

from pqadmin.live.board.health import Problem, Rules, judge


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"ready": 0}, ("empty", "empty", "")),
        ({"ready": 0, "rate_in": 0.0, "rate_out": 0.0}, ("empty", "empty", "")),
        ({"ready": 0, "rate_in": 61.0, "rate_out": 61.0}, ("ok", "steady", "")),
        ({"ready": 5}, ("ok", "unknown", "")),
        ({"ready": 5, "rate_in": 0.0, "rate_out": 0.0, "quiet_for": 59.0}, ("ok", "unknown", "")),
        ({"ready": 5, "rate_in": 0.0, "rate_out": 0.0, "quiet_for": 60.0}, ("stalled", "stalled", "stalled")),
        ({"ready": 5, "rate_in": 9.0, "rate_out": 0.0, "quiet_for": 61.0}, ("stalled", "stalled", "stalled")),
        ({"ready": 0, "rate_in": 0.0, "rate_out": 0.0, "quiet_for": 99.0}, ("empty", "empty", "")),
        ({"ready": 5, "rate_in": 10.0, "rate_out": 10.2}, ("ok", "steady", "")),
        ({"ready": 5, "rate_in": 0.02, "rate_out": 0.0}, ("ok", "steady", "")),
        ({"ready": 5, "rate_in": 640.0, "rate_out": 428.0}, ("ok", "growing", "")),
        ({"ready": 5, "rate_in": 640.0, "rate_out": 428.0, "growing_for": 119.0}, ("ok", "growing", "")),
        ({"ready": 5, "rate_in": 640.0, "rate_out": 428.0, "growing_for": 120.0}, ("growing", "growing", "growing")),
        ({"ready": 100, "rate_in": 1.0, "rate_out": 11.0}, ("ok", "draining", "")),
        ({"ready": 5, "paused": True, "quiet_for": 900.0, "oldest_for": 9e9}, ("paused", "paused", "paused")),
        ({"ready": 5, "paused": True, "drift": True}, ("paused", "paused", "drift")),
        ({"ready": 0, "drift": True}, ("empty", "empty", "drift")),
        ({"ready": 0, "dead": 1}, ("empty", "empty", "dead")),
        ({"ready": 1, "rate_in": 5.0, "rate_out": 5.0, "oldest_for": 899.0}, ("ok", "steady", "")),
        ({"ready": 1, "rate_in": 5.0, "rate_out": 5.0, "oldest_for": 900.0}, ("ok", "steady", "old")),
    ],
)
def test_rules(known: dict[str, Any], expected: tuple[str, str, str]) -> None:
    verdict = judge(**known)
    assert (verdict.state, verdict.outlook, verdict.problem) == expected


def test_a_draining_queue_says_when_it_is_clear() -> None:
    assert judge(ready=100, rate_in=1.0, rate_out=11.0).clears_in == pytest.approx(10)


def test_a_growing_queue_says_how_fast() -> None:
    assert judge(ready=100, rate_in=30.0, rate_out=10.0).grows_by == pytest.approx(20)


def test_all_reasons_are_told_the_worst_first() -> None:
    verdict = judge(ready=5, quiet_for=99.0, drift=True, dead=3, oldest_for=1e4)
    assert (verdict.problem, *verdict.more) == (Problem.STALLED, Problem.DRIFT, Problem.OLD, Problem.DEAD)


def test_a_rule_that_is_switched_off_finds_nothing() -> None:
    off = Rules(stalled_after=0, growing_after=0, old_after=0, dead_from=0)
    assert not judge(ready=5, quiet_for=1e9, dead=3, oldest_for=1e9, rules=off).problem
    assert not judge(ready=5, rate_in=9.0, rate_out=1.0, growing_for=1e9, rules=off).problem
