"""The labels of the sample load: they name what is wrong by design, and find a color that is not right."""

import pytest

from benchmarks.harness.sample_labels import LABELS, Shown, right, wrong
from pqadmin.load.sample import sample_plans

DIES, SERVED = "demo:orders:apac:payments", "demo:orders:eu:payments"


def test_the_labels_name_the_queues_that_are_not_served_well() -> None:
    plans = sample_plans(33)
    unserved = {
        plan.name for plan in plans if plan.served_for is not None or plan.failing or plan.pop_weight < plan.push_weight
    }
    assert set(LABELS) == unserved


@pytest.mark.parametrize(
    ("queue", "at", "allowed"),
    [
        (SERVED, 400, {"ok"}),
        (DIES, 29, {"ok"}),
        (DIES, 152, {"ok", "warning", "critical"}),
        (DIES, 153, {"critical"}),
        ("demo:mail:outbound", 122, {"ok", "warning"}),
        ("demo:mail:outbound", 123, {"warning"}),
        ("demo:labels:print", 600, {"ok", "warning"}),
    ],
)
def test_a_change_may_be_noticed_two_minutes_late(queue: str, at: float, allowed: set[str]) -> None:
    assert set(right(queue, at)) == allowed


def test_wrong_colors_and_words_are_told_with_their_time() -> None:
    recording = [
        *(Shown(at, SERVED, "warning" if 40 <= at < 45 else "ok", "ok") for at in range(60)),
        *(Shown(at, DIES, "critical", "critical") for at in range(35, 300)),
        Shown(200, DIES, "unknown", "unknown"),
    ]
    assert [tuple(one) for one in wrong(recording)] == [
        (SERVED, 40, 44, "warning, in words ok", "ok"),
        (DIES, 200, 200, "unknown", "critical"),
    ]
