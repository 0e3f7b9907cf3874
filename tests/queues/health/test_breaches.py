"""Time in breach: the share of the last day in which a queue was beyond a target, and what is unknown of it."""

from functools import cache

import msgspec
import pytest

from queues.health import Health, Observation, Targets, advance, decode, encode
from queues.health.breaches import Share
from queues.health.health import STALE

BEGIN, HOUR = 497_222 * 3_600.0, 3_600
CALM = Observation(BEGIN, pushed=9, taken=9, done=9)
TARGETS = Targets(wait=5.0)


def played(*parts: tuple[float, Observation], every: float = 60.0, health: Health | None = None) -> Health:
    """Return the health after watching each observation for so many hours."""
    now = BEGIN if health is None else health.seen.at
    for hours, seen in parts:
        for _ in range(int(hours * HOUR / every)):
            now += every
            health = advance(health, msgspec.structs.replace(seen, at=now), TARGETS)
            health = decode(encode(health))
    assert health is not None
    return health


@cache
def calm() -> Health:
    """Return the health after more than a day of calm."""
    return played((30, CALM))


def share(health: Health, limit: str = "dead") -> tuple[float, float]:
    """Return the hours in breach, and the unknown ones, of the last day."""
    found = health.breaches.share(limit, health.seen.at)
    return round(found.beyond * 24, 1), round(found.unknown * 24, 1)


def dead(n: int) -> Observation:
    return msgspec.structs.replace(CALM, dead=n)


def test_the_time_beyond_a_target_is_added_up_over_a_day() -> None:
    health = played((3, dead(1)), (2, CALM), (1, dead(4)), (0.5, CALM), health=calm())
    assert share(health) == (4.0, 0.0)
    assert share(health, "oldest") == (0.0, 0.0)
    later = share(played((20, CALM), health=health))
    assert later == (pytest.approx(1.5, abs=0.2), 0.0), "the first breach is a day ago, but for half an hour"
    assert share(played((30, CALM), health=health)) == (0.0, 0.0)


def test_what_was_before_the_first_look_is_unknown() -> None:
    assert share(played((2, dead(1)))) == (2.0, 22.0)
    assert share(played((2, CALM))) == (0.0, 22.0)


def test_a_queue_that_changed_unwatched_is_unknown_meanwhile() -> None:
    down = played((1, dead(1)), health=calm())
    later = msgspec.structs.replace(dead(1), at=down.seen.at + 5 * HOUR, pushed=20, taken=20, done=20)
    assert share(advance(down, later, TARGETS)) == (1.0, 5.0)


@pytest.mark.parametrize(("number", "beyond"), [(0, 0.0), (1, 6.0)])
def test_a_queue_that_did_not_change_at_all_stayed_as_it_was(number: int, beyond: float) -> None:
    down = played((1, dead(number)), health=calm())
    later = msgspec.structs.replace(dead(number), at=down.seen.at + 5 * HOUR, consumers=0)
    assert share(advance(down, later, TARGETS)) == (beyond, 0.0)


def test_a_restart_within_two_minutes_hides_nothing() -> None:
    down = played((1, dead(1)), health=calm())
    later = msgspec.structs.replace(dead(2), at=down.seen.at + STALE, pushed=20)
    assert share(advance(down, later, TARGETS)) == (1.0, 0.0)


def test_a_stalled_queue_may_have_become_too_old_unwatched() -> None:
    waiting = msgspec.structs.replace(CALM, ready=1, pushed=10, oldest=BEGIN + 30 * HOUR, consumers=0)
    down = played((0.2, waiting), health=calm())
    assert down.settled
    back = advance(down, msgspec.structs.replace(waiting, at=down.seen.at + 5 * HOUR), TARGETS)
    assert share(back, "oldest") == (0.0, 5.0)
    assert share(back, "no_consumer") == (pytest.approx(5.2, abs=0.1), 0.0)


def test_no_wait_was_kept_where_nothing_was_taken() -> None:
    slow = msgspec.structs.replace(CALM, wait=7.0)
    health = played((30, msgspec.structs.replace(CALM, wait=1.0)), (2, slow), (3, CALM))
    assert share(health, "wait") == (pytest.approx(2.0, abs=0.1), pytest.approx(3.0, abs=0.1))
    assert share(health) == (0.0, 0.0)


def test_the_time_in_which_records_cannot_be_read_is_unknown() -> None:
    lost = Observation(BEGIN, unreadable=True)
    health = played((1, dead(1)), (4, lost), (1, dead(1)), health=calm())
    assert share(health) == (2.0, 4.0)
    hidden = msgspec.structs.replace(TARGETS, unreadable=True)
    seen = health.seen
    for second in range(0, 2 * HOUR + 60, 60):
        health = advance(health, msgspec.structs.replace(seen, at=seen.at + second), hidden)
    assert share(health, "oldest")[1] == pytest.approx(6.0, abs=0.1)
    assert share(health)[0] == pytest.approx(4.0, abs=0.1), "what is seen to be beyond is beyond"


def test_a_limit_that_is_off_is_neither_beyond_nor_unknown() -> None:
    off, health = Targets(dead=0), None
    for second in range(0, 30 * HOUR, 60):
        health = advance(health, msgspec.structs.replace(dead(5), at=BEGIN + second), off)
    assert health is not None
    assert share(health) == (0.0, 0.0)
    assert share(health, "wait") == (0.0, 0.0)


def test_health_of_an_earlier_release_is_known_from_then_on() -> None:
    fields = msgspec.msgpack.decode(encode(played((3, dead(1))))[1:])
    earlier = decode(b"\x01" + msgspec.msgpack.encode(fields[: Health.__struct_fields__.index("breaches")]))
    assert earlier.breaches.share("dead", earlier.seen.at) == Share(0.0, 1.0)
    assert share(played((2, dead(1)), health=earlier)) == (2.0, 22.0)


@pytest.mark.parametrize("step", [-40 * HOUR, -HOUR, 40 * HOUR, 10 * 365 * 24 * HOUR])
def test_a_clock_that_steps_invents_no_breach(step: float) -> None:
    health = played((1, dead(1)), (1, CALM), health=calm())
    busy = msgspec.structs.replace(CALM, at=health.seen.at + step, pushed=50, taken=50, done=50)
    after = advance(health, busy, TARGETS)
    beyond, unknown = share(after)
    assert beyond <= 1.0
    assert 0 <= unknown <= 24 - beyond
    beyond, unknown = share(played((25, busy), health=after))
    assert (beyond, unknown <= 8.0) == (0.0, True)


def test_a_record_stays_small() -> None:
    health = played((30, msgspec.structs.replace(CALM, dead=3, ready=9, oldest=BEGIN, wait=99.0)), every=30)
    assert len(encode(health)) < 2_000


@pytest.mark.parametrize(("over", "every"), [(20, 120), (40, 120), (60, 300), (120, 600)])
def test_time_in_breach_is_that_beyond_the_limit_and_not_that_of_the_warning(over: int, every: int) -> None:
    """A queue is beyond its target for a while, again and again."""
    health = None
    for n in range(0, 6 * HOUR, 10):
        seen = Observation(BEGIN + n, ready=150 if n % every < over else 10, pushed=n, taken=n, done=n, consumers=1)
        health = advance(health, msgspec.structs.replace(seen, oldest=BEGIN + n - 1), Targets(depth=100))
    assert health is not None
    assert share(health, "depth")[0] == pytest.approx(6 * over / every, abs=0.2)


def test_the_time_of_an_unknown_wait_is_not_in_breach_though_the_last_one_is_told() -> None:
    waits = Observation(BEGIN, ready=5, leased=1, pushed=99, taken=90, done=90, consumers=1, oldest=BEGIN - 9)
    known = msgspec.structs.replace(waits, wait=7.0)
    health = played((2, known), (1, msgspec.structs.replace(waits)))
    assert "wait" in health.missed
    assert share(health, "wait") == (pytest.approx(2.0, abs=0.1), pytest.approx(22.0, abs=0.1))
