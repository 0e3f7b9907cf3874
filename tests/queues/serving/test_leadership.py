"""Leadership: the process that may take a role, by what a process has seen of its record."""

import pytest

from queues.serving.leadership import SLACK_MS, Holding, Leadership
from tests.conftest import Clock

SECONDS = 4.0


@pytest.fixture
def count() -> Clock:
    """Seconds of a monotonic clock."""
    return Clock(10.0)


def process(clock: Clock, count: Clock, slack_ms: int = SLACK_MS) -> Leadership:
    return Leadership(seconds=SECONDS, now_ms=lambda: int(clock() * 1000), monotonic=count, slack_ms=slack_ms)


def test_a_role_is_taken_renewed_and_released(clock: Clock, count: Clock) -> None:
    one, two = process(clock, count), process(clock, count)
    assert one.is_free(None)
    held = one.taken(None)
    assert (one.holds(held), two.holds(held), held.term) == (True, False, 1)
    assert not two.is_free(held)
    renewed = one.renewed(held)
    assert renewed != held, "each renewal changes the record, even at the same time"
    assert two.is_free(one.released(renewed))
    assert two.taken(one.released(renewed)).term == 2


def test_a_record_that_stays_the_same_is_of_a_holder_that_died(clock: Clock, count: Clock) -> None:
    one, two = process(clock, count), process(clock, count)
    held = one.taken(None)
    for _ in range(5):
        assert not two.is_free(held)
        count.advance(SECONDS - 0.1)
        held = one.renewed(held)
    assert not two.is_free(held)
    assert two.until_lapse == pytest.approx(SECONDS)
    count.advance(SECONDS)
    assert two.is_free(held)


def test_a_record_that_expired_long_ago_is_free_at_once(clock: Clock, count: Clock) -> None:
    held = process(clock, count).taken(None)
    clock.advance(SECONDS + 1)
    assert process(clock, count, slack_ms=0).is_free(held)
    assert not process(clock, count).is_free(held), "clocks may be apart"
    clock.advance(SLACK_MS / 1000)
    assert process(clock, count).is_free(held)


def test_a_record_that_cannot_be_read_is_of_another_holder(clock: Clock, count: Clock) -> None:
    one = process(clock, count)
    newer = b"\xff" + one.taken(None).encode()[1:]
    held = Holding.decode(newer)
    assert not one.is_free(held)
    assert not one.holds(held)
    count.advance(SECONDS)
    assert one.is_free(held), "it was not renewed"
