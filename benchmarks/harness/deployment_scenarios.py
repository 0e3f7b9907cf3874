"""Labeled scenarios of deployments: limits, autoscaling, deploys, rate limits, sleeping machines, long pauses.

Labeled by hand, before they were played, by what an operator would say of the queue.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from math import pi, sin
from typing import Unpack

from benchmarks.harness.queue_world import World
from benchmarks.harness.verdict_scenarios import (
    CALM,
    CRITICAL,
    HOUR,
    MINUTE,
    NO_ALARM,
    TROUBLE,
    WARNING,
    Phase,
    Play,
    Scenario,
    away,
    is_at,
    is_between,
)
from queues.errors import QueueFull
from queues.health import Trend
from queues.model.limits import LimitArguments

_WARNING, _CRITICAL = frozenset({WARNING}), frozenset({CRITICAL})
#: What may be said of a queue that shrinks all the time.
_SHRINKS = frozenset({Trend.DRAINING})
_DAY = 24 * HOUR


def _used(world: World) -> None:
    world.push(20)
    world.pop(20)


def _with(items: int = 0, limit: int | None = None, **targets: Unpack[LimitArguments]) -> Callable[[World], None]:
    """Begin with a queue that was used, so many items, a limit of items, and targets."""

    def begin(world: World) -> None:
        _used(world)
        world.push(items)
        if limit is not None:
            world.queue.configure(max_depth=limit)
        if targets:
            world.store.targets.set("jobs", **targets)

    return begin


def _offer(world: World, n: int, *, delay: timedelta | None = None) -> None:
    """Push items until the queue is full: the producers drop the rest."""
    together = n
    while n > 0 and together > 0:
        try:
            world.queue.push_many([(b"x", 5, delay)] * together)
            n -= together
        except QueueFull:
            together //= 2
        together = min(together, n)


# Limits of items


def _fills(world: World, second: int) -> None:
    """From an hour on 3 a second come and 2 are taken, until it is full; from two hours on 10 are taken."""
    _offer(world, world.steadily(3.0))
    world.pop(20 if is_between(second, HOUR, 2 * HOUR) else 100)


def _fills_stalled(world: World, second: int) -> None:
    """The consumers are killed after an hour; the limit is reached five minutes later."""
    _offer(world, world.steadily(2.0))
    if second <= HOUR:
        world.pop(100)
    if is_at(second, HOUR):
        world.die()


def _fills_with_delayed(world: World, second: int) -> None:
    """Items are pushed for the next day until it is full; those for now are refused too."""
    if second > HOUR:
        _offer(world, 20, delay=timedelta(days=1))
    _offer(world, world.steadily(1.0))
    world.pop(100)


def _backpressure(world: World, second: int) -> None:
    """Producers that are faster than the consumers fill it to its limit again and again, and wait."""
    _offer(world, 100)
    world.pop(50)


def _just_below(world: World, second: int) -> None:
    """A buffer that is kept at 95 % of its limit."""
    _offer(world, world.randomly(3.0))
    world.pop(max(0, world.queue.depth() - 950))


# Consumers that come and go


def _cold_start(delay: int) -> Play:
    """200 items each quarter of an hour; a worker is started so many seconds later, and ends when all are done."""

    def play(world: World, second: int) -> None:
        if second % (15 * MINUTE) == 0:
            world.push(200)
        if is_between(second % (15 * MINUTE), delay, 10 * MINUTE):
            world.pop(40)

    return play


def _autoscaled(patience: int) -> Play:
    """Traffic of a day in four hours; each half minute a worker per 20 items is started, which takes 0.5 a second.

    Workers end when fewer were needed for so many seconds.
    """
    needed = [2]

    def play(world: World, second: int) -> None:
        world.push(world.randomly(6.0 * max(0.05, sin(2 * pi * second / (4 * HOUR)))))
        if second % 30 == 0:
            needed.append(max(2, min(20, -(-world.queue.depth() // 20))))
        world.pop(5 * max(needed[-max(1, patience // 30) :]))

    return play


def _deploys(world: World, second: int) -> None:
    """A deploy each half hour pauses it for three minutes; workers are there again 20 seconds after the resume."""
    world.push(world.randomly(1.0))
    if second % (30 * MINUTE) == 0:
        world.person.pause("jobs", reason="deploy")
    if second % (30 * MINUTE) == 3 * MINUTE:
        world.person.resume("jobs")
    if second % (30 * MINUTE) >= 200 or second < 30 * MINUTE:
        world.pop(60)


def _rate_limited(world: World, second: int) -> None:
    """An interface allows 60 calls a minute, which are made at once; 45 a minute come, and 300 more after an hour."""
    world.push(world.randomly(0.75))
    if is_at(second, HOUR):
        world.push(300)
    if second % MINUTE == 0:
        world.pop(60)


def _flapping(world: World, second: int) -> None:
    """Each worker is killed after five minutes with ten leases; the next one starts at once."""
    world.push(world.randomly(1.0))
    world.finish()
    if second % (5 * MINUTE) == 0:
        world.die()
    world.lease(30 - world.at_work, seconds=60, work=10)


# Failures


def _blocked(world: World, second: int) -> None:
    """One worker, in strict order; after an hour the first item fails for ever, and is tried again at once."""
    world.push(world.steadily(0.5))
    if is_at(second, HOUR):
        world.push(1, priority=1)
    for lease in world.over():
        if lease.item.priority == 1:
            world.queue.release(lease, reason="no such user", count_attempt=False)
        else:
            world.queue.ack(lease)
    world.lease(10 if second <= HOUR else 1 - world.at_work, seconds=60, work=10)


def _looked_at(world: World, second: int) -> None:
    """A script leases an item each minute to look at it, and gives it back; after an hour the workers are gone."""
    world.push(world.randomly(1.0))
    if second <= HOUR:
        world.pop(60)
    if second % MINUTE == 0:
        for lease in world.queue.lease_many(1, seconds=30):
            world.queue.release(lease, count_attempt=False)


def _outage(world: World, second: int) -> None:
    """Workers stop for 25 minutes while the site restarts each two minutes, for one of them."""
    if second > HOUR:
        world.watched = not is_between(second % (2 * MINUTE), 0, MINUTE) or second > 90 * MINUTE
        if second % (2 * MINUTE) == 0:
            world.restart()
    world.push(world.randomly(1.0))
    if not is_between(second, 65 * MINUTE, 90 * MINUTE):
        world.pop(60)
    if is_at(second, 65 * MINUTE):
        world.die()


# Releases, batches, people


def _newsletter(world: World, second: int) -> None:
    """16,000 items fall due within ten seconds; 20 a second are taken."""
    if is_at(second, MINUTE):
        for n in range(16):
            world.queue.push_many([(b"x", 5)] * 1_000, delay=timedelta(seconds=2 * HOUR - MINUTE - n % 10))
    world.push(world.randomly(0.5))
    world.pop(200)


def _fan_in(world: World, second: int) -> None:
    """Six systems import 5,000 items an hour each, one after another; 12 a second are taken."""
    if second % (10 * MINUTE) == 0:
        world.push(5_000)
    world.push(world.randomly(0.5))
    world.pop(120)


def _billing(world: World, second: int) -> None:
    """30,000 items are pushed in five minutes; eight workers do ten a second."""
    if is_between(second, HOUR, HOUR + 5 * MINUTE):
        world.push(1_000)
    world.pop(100)


def _long_drain(world: World, second: int) -> None:
    """A backlog that shrinks by four a second while six a second come: 100 minutes."""
    world.push(world.randomly(6.0))
    world.pop(world.randomly(10.0))


def _by_hand(world: World, second: int) -> None:
    """A queue of failures, one each ten minutes; a person looks each four hours, and takes all."""
    if second % (10 * MINUTE) == 0:
        world.push(1)
    if second % (4 * HOUR) == 0:
        while world.person.pop("jobs") is not None:
            pass


def _for_days(world: World, second: int) -> None:
    """Paused after an hour for more than a day, while an item a minute comes and the site restarts each eight hours."""
    if second % MINUTE == 0:
        world.push(1)
    if is_at(second, HOUR):
        world.person.pause("jobs", reason="the supplier is closed")
    if is_at(second, _DAY + HOUR):
        world.person.resume("jobs")
    if second % (8 * HOUR) == 0:
        world.restart()
    if not is_between(second, HOUR - 10, _DAY + HOUR):
        world.pop(10)


def _random_walk(world: World, second: int) -> None:
    """As many come as are taken, each at random, so that the depth wanders."""
    world.push(world.randomly(5.0))
    world.pop(world.randomly(5.0))


# Clocks


def _sleeps(play: Play, at: int, seconds: int) -> Play:
    """The machine sleeps, with all that runs on it: its clock jumps, and nothing else happened."""

    def played(world: World, second: int) -> None:
        if is_at(second, at):
            world.skew += seconds
        play(world, second)

    return played


def _leasing(world: World, second: int) -> None:
    world.push(world.randomly(0.5))
    world.finish()
    world.lease(20 - world.at_work, seconds=60, work=20)


def _stepped(play: Play) -> Play:
    """The clock is set forward by 30 seconds, and back again, each quarter of an hour."""

    def played(world: World, second: int) -> None:
        if second % (15 * MINUTE) == 0:
            world.skew = 30.0 - world.skew
        play(world, second)

    return played


def _polled(world: World, second: int) -> None:
    world.push(world.randomly(1.0))
    if second % 20 == 0:
        world.pop(200)


def _two_sites(play: Play) -> Play:
    """Two sites of one store, with clocks two seconds apart, are elected in turn each minute."""

    def played(world: World, second: int) -> None:
        if second % MINUTE == 0:
            world.skew = 2.0 - world.skew
            world.restart()
        play(world, second)

    return played


def _grows(world: World, second: int) -> None:
    """From an hour on, 0.4 a second more come than are taken."""
    world.push(world.steadily(1.4 if second > HOUR else 0.9))
    world.pop(10)


def scenarios() -> Iterator[Scenario]:
    """Yield every scenario; each is played once, as some remember where they are."""
    calm = (Phase(0, CALM),)
    yield Scenario(
        name="grows until it is full, and recovers",
        play=_fills,
        phases=(
            Phase(0, CALM),
            Phase(HOUR, _WARNING, code="growing"),
            Phase(HOUR + 1_000, _WARNING, code="full"),
            Phase(2 * HOUR, NO_ALARM, 10),
            Phase(2 * HOUR + 5 * MINUTE, CALM),
        ),
        begin=_with(limit=1_000, oldest=HOUR),
        minutes=150,
        short=True,
    )
    yield Scenario(
        name="full as its consumers are gone",
        play=_fills_stalled,
        phases=(
            Phase(0, CALM),
            Phase(HOUR, _CRITICAL, code="no-consumer"),
            Phase(HOUR + 5 * MINUTE, _CRITICAL, code="full"),
        ),
        begin=_with(limit=600),
    )
    yield Scenario(
        name="full of delayed items",
        play=_fills_with_delayed,
        phases=(Phase(0, CALM), Phase(HOUR + 450, _WARNING, code="full")),
        begin=_with(limit=1_000),
    )
    yield Scenario(
        name="producers fill it to its limit again and again",
        play=_backpressure,
        phases=(Phase(0, _WARNING, code="full"),),
        begin=_with(limit=500),
        minutes=60,
    )
    yield Scenario(
        name="buffer at 95 % of its limit",
        play=_just_below,
        # Room for a burst of seventeen seconds.
        phases=(Phase(0, _WARNING, code="full"),),
        begin=_with(950, limit=1_000),
        minutes=240,
    )
    yield Scenario(
        name="workers started 45 seconds after each burst", play=_cold_start(45), phases=calm, begin=_used, minutes=180
    )
    yield Scenario(
        name="workers started 150 seconds after each burst",
        play=_cold_start(150),
        phases=(
            # The first times it is not known that they come.
            *(Phase(at, CALM | TROUBLE) for at in range(0, HOUR, MINUTE)),
            Phase(HOUR + MINUTE, CALM),
        ),
        begin=_used,
        minutes=240,
    )
    # As many items wait as workers are to be started for: it grows while the traffic does, for half an hour.
    yield Scenario(
        name="autoscaled workers, with a target",
        play=_autoscaled(5 * MINUTE),
        phases=calm,
        begin=_with(growing=45 * MINUTE),
        minutes=480,
    )
    yield Scenario(
        name="autoscaled workers that end too soon, with a target",
        play=_autoscaled(0),
        phases=calm,
        begin=_with(growing=45 * MINUTE),
        minutes=480,
    )
    yield Scenario(
        name="deploys that pause for three minutes",
        play=_deploys,
        phases=(
            Phase(0, CALM),
            *(
                phase
                for at in range(30 * MINUTE, 3 * HOUR, 30 * MINUTE)
                for phase in (Phase(at, _WARNING, 10, "paused"), Phase(at + 3 * MINUTE, CALM, MINUTE))
            ),
        ),
        begin=_used,
        minutes=175,
    )
    yield Scenario(
        name="60 calls a minute, and a burst of five minutes' work",
        play=_rate_limited,
        phases=(Phase(0, CALM), Phase(HOUR, NO_ALARM), Phase(HOUR + 30 * MINUTE, CALM)),
        begin=_used,
        minutes=180,
    )
    yield Scenario(name="workers are killed each five minutes", play=_flapping, phases=calm, begin=_used)
    yield Scenario(
        name="the first item fails for ever, and blocks the rest",
        play=_blocked,
        phases=(Phase(0, CALM), Phase(HOUR, TROUBLE), Phase(HOUR + MINUTE, _CRITICAL, code="nothing-done")),
        begin=_used,
    )
    yield Scenario(
        name="a script looks, and the workers are gone",
        play=_looked_at,
        phases=(
            Phase(0, CALM),
            Phase(HOUR, TROUBLE, 3 * MINUTE),
            Phase(HOUR + 6 * MINUTE, _CRITICAL, code="nothing-done"),
        ),
        begin=_used,
    )
    yield Scenario(
        name="site restarts during an outage",
        play=_outage,
        phases=(
            Phase(0, CALM),
            Phase(65 * MINUTE, _CRITICAL, 3 * MINUTE, "no-consumer"),
            Phase(90 * MINUTE, NO_ALARM),
            Phase(105 * MINUTE, CALM),
        ),
        begin=_used,
        minutes=150,
    )
    yield Scenario(
        name="site away for three minutes of an outage",
        play=away(lambda world, second: None, HOUR, HOUR + 3 * MINUTE),
        phases=(Phase(0, _CRITICAL, code="no-consumer"),),
        begin=_with(50),
    )
    yield Scenario(
        name="newsletter at nine",
        play=_newsletter,
        phases=(Phase(0, CALM), Phase(2 * HOUR + 14 * MINUTE, NO_ALARM), Phase(2 * HOUR + 16 * MINUTE, CALM)),
        begin=_used,
        minutes=180,
    )
    yield Scenario(name="fan-in of imports", play=_fan_in, phases=calm, begin=_used, minutes=240)
    yield Scenario(
        name="billing of a month",
        play=_billing,
        phases=(
            Phase(0, CALM),
            Phase(HOUR, NO_ALARM),
            Phase(HOUR + 7 * MINUTE, CALM, trends=_SHRINKS),
            Phase(HOUR + 48 * MINUTE, CALM),
        ),
        begin=_with(oldest=2 * HOUR),
        minutes=150,
    )
    yield Scenario(
        name="backlog that drains for 100 minutes",
        play=_long_drain,
        phases=(Phase(0, CALM, trends=_SHRINKS), Phase(90 * MINUTE, CALM)),
        begin=_with(24_000, oldest=3 * HOUR),
        minutes=150,
    )
    yield Scenario(
        name="failures that a person takes",
        play=_by_hand,
        phases=calm,
        begin=_with(no_consumer=0, growing=0, oldest=8 * HOUR),
        minutes=720,
    )
    yield Scenario(
        name="paused for a day",
        play=_for_days,
        phases=(
            Phase(0, CALM),
            Phase(HOUR, _WARNING, 10, "paused"),
            Phase(_DAY + HOUR, NO_ALARM, 10),
            Phase(_DAY + HOUR + 30 * MINUTE, CALM),
        ),
        begin=_used,
        minutes=26 * 60,
    )
    yield Scenario(
        name="depth that wanders, with a target",
        play=_random_walk,
        phases=(Phase(0, NO_ALARM),),
        begin=_with(4_000, oldest=HOUR, growing=15 * MINUTE),
        minutes=480,
    )
    yield Scenario(
        name="laptop that sleeps for eight hours",
        play=_sleeps(_leasing, HOUR, 8 * HOUR),
        phases=calm,
        begin=_used,
    )
    yield Scenario(
        name="clock steps by 30 seconds, oldest age of a minute",
        play=_stepped(_polled),
        phases=calm,
        begin=_with(oldest=60),
    )
    yield Scenario(
        name="clock steps by 30 seconds, stalled",
        play=_stepped(lambda world, second: None),
        phases=(Phase(0, _CRITICAL, code="no-consumer"),),
        begin=_with(50),
    )
    yield Scenario(
        name="two sites in turn, growing",
        play=_two_sites(_grows),
        phases=(Phase(0, CALM), Phase(HOUR, _WARNING, code="growing")),
        begin=_with(oldest=2 * HOUR),
    )
