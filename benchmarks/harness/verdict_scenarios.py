"""Labeled scenarios of queues: what happens in each, and what an operator would say of it.

`python -m benchmarks verdicts` plays all of them for hours; a test plays the short ones.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import pi, sin
from typing import NamedTuple

from benchmarks.harness.queue_world import TICK, World
from queues.health import Level, Trend

#: Seconds within which a verdict must be right, and within which a slow leak must be told.
SOON, LEAK = 120, 900
MINUTE, HOUR = 60, 3600
OK, WARNING, CRITICAL, UNKNOWN = Level.OK, Level.WARNING, Level.CRITICAL, Level.UNKNOWN
CALM = frozenset({OK})
NO_ALARM = frozenset({OK, WARNING})
TROUBLE = frozenset({WARNING, CRITICAL})
ALARM = TROUBLE | {UNKNOWN}

Levels = frozenset[Level]
Play = Callable[[World, int], None]


class Phase(NamedTuple):
    """What is right from a second of the scenario on."""

    since: int
    right: Levels
    #: Seconds within which the verdict must say so.
    within: int = SOON
    #: The code that must be among the reasons, if any.
    code: str = ""
    #: The trends that may be told from then on; any if empty.
    trends: frozenset[Trend] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One story of a queue."""

    name: str
    play: Play
    phases: Sequence[Phase]
    minutes: int = 120
    #: Played in tests too.
    short: bool = False
    begin: Callable[[World], None] = field(default=lambda world: None)
    #: Right only where consumers tell of themselves.
    told: bool = False


def is_at(second: int, at: int) -> bool:
    """Say whether this tick is the one at a second."""
    return at - TICK < second <= at


def is_between(second: int, first: int, last: int) -> bool:
    """Say whether this tick lies between two seconds."""
    return first < second <= last


def _steady(rate: float = 1.0, capacity: int = 30) -> Play:
    def play(world: World, second: int) -> None:
        world.push(world.randomly(rate))
        world.pop(capacity)

    return play


def _even(rate: float, taken: float) -> Play:
    """An even stream, and consumers that take as evenly."""
    owed = [0.0]

    def play(world: World, second: int) -> None:
        world.push(world.steadily(rate))
        owed[0] += taken * TICK
        world.pop(int(owed[0] + 1e-9))
        owed[0] -= int(owed[0] + 1e-9)

    return play


def _until(play: Play, second: int, then: Play) -> Play:
    return lambda world, now: (play if now <= second else then)(world, now)


def _pushes(rate: float) -> Play:
    return lambda world, second: world.push(world.randomly(rate))


def _nothing(world: World, second: int) -> None:
    pass


def _bursts(every: int, n: int, capacity: int) -> Play:
    def play(world: World, second: int) -> None:
        if second % every == 0:
            world.push(n)
        world.pop(capacity)

    return play


def _stuck(world: World, second: int) -> None:
    """Consumers take the highest priorities only; one low item comes each minute."""
    if second % MINUTE == 0:
        world.push(1, priority=1)
    n = world.randomly(1.0)
    world.push(n, priority=9)
    world.pop(n, end="max")


def _died_often(world: World, second: int) -> None:
    """An item a minute, taken at once, until the last worker ends."""
    if second % MINUTE == 0:
        world.push(1)
    if second <= HOUR:
        world.pop(5)


def _workers(rate: float, *, workers: int, work: int, lease: float) -> Play:
    def play(world: World, second: int) -> None:
        world.push(world.randomly(rate))
        world.finish()
        world.lease(workers - world.at_work, seconds=lease, work=work)

    return play


def _extending(world: World, second: int) -> None:
    """One worker, jobs of ten minutes, leases of a minute that are extended."""
    if second % (12 * MINUTE) == 0:
        world.push(1)
    world.finish()
    if second % 20 == 0:
        world.extend(60)
    world.lease(1 - world.at_work, seconds=60, work=10 * MINUTE)


def _long_jobs(world: World, second: int) -> None:
    """One worker, jobs of half an hour, leases of a minute that are extended; three more items wait."""
    if second % (30 * MINUTE) == 0:
        world.push(1)
    world.finish()
    if second % 20 == 0:
        world.extend(60)
    world.lease(1 - world.at_work, seconds=60, work=30 * MINUTE)


def _hanging(world: World, second: int) -> None:
    """Jobs of ten seconds, until all workers hang in theirs; their leases are extended as before."""
    world.push(world.randomly(0.5))
    if second <= HOUR:
        world.finish()
    if second % 20 == 0:
        world.extend(60)
    world.lease(12 - world.at_work, seconds=60, work=10)


def _dying_workers(world: World, second: int) -> None:
    world.push(world.randomly(0.5))
    if second <= HOUR:
        world.finish()
        world.lease(20 - world.at_work, seconds=30, work=10)
    elif is_at(second, HOUR + TICK):
        world.die()


def _slow_pops(world: World, second: int) -> None:
    if second % 200 == 0:
        world.push(1)
    if second % 180 == 0:
        world.pop(1)


def _paused(world: World, second: int) -> None:
    if is_at(second, HOUR):
        world.queue.pause(reason="deploy", by="ana")
    if is_at(second, 2 * HOUR):
        world.queue.resume()
    world.push(world.randomly(1.0))
    if not is_between(second, HOUR - TICK, 2 * HOUR - TICK):
        world.pop(50)


def _hands_on_stalled(world: World, second: int) -> None:
    if second % 300 == 0 and second > HOUR:
        act = (second // 300) % 4
        if act == 0:
            world.person.pop("jobs")
        elif act == 1:
            world.person.push("jobs", b"x", priority=5)
        elif act == 2:
            moved = world.person.move_items("jobs", list(world.items(3)), to="other")
            world.person.undo(str(moved.trash_id))
        else:
            deleted = world.person.delete_items("jobs", list(world.items(5)))
            world.person.undo(str(deleted.trash_id))


def _hands_on_busy(world: World, second: int) -> None:
    world.push(world.randomly(2.0))
    if second % (20 * MINUTE) == 0:
        world.person.push_many("jobs", [(b"x", 5)] * 400)
    if second % (27 * MINUTE) == 0 and world.queue.depth():
        world.person.delete_items("jobs", list(world.items(20)))
    world.pop(40)


def _due_on_stalled(world: World, second: int) -> None:
    if is_at(second, TICK):
        for n in range(60):
            world.queue.push(b"x", 5, delay=timedelta(seconds=HOUR + n * 120))


def _day(peak: float, capacity: int, period: int = 4 * HOUR) -> Play:
    def play(world: World, second: int) -> None:
        world.push(world.randomly(peak * max(0.0, sin(2 * pi * second / period))))
        world.pop(capacity)

    return play


def _storm(share: float, since: int, until: int) -> Play:
    def play(world: World, second: int) -> None:
        world.push(world.randomly(0.5))
        world.fail(share=share if is_between(second, since, until) else 0.0)
        world.lease(40 - world.at_work, seconds=60, work=10)

    return play


def away(play: Play, since: int, until: int) -> Play:
    """The site is down for a while."""

    def played(world: World, second: int) -> None:
        if is_at(second, since):
            world.watched = False
        if is_at(second, until):
            world.watched = True
            world.restart()
        play(world, second)

    return played


def _skewed(play: Play, at: int, by: float) -> Play:
    def played(world: World, second: int) -> None:
        if is_at(second, at):
            world.skew += by
        play(world, second)

    return played


def _restarting(play: Play) -> Play:
    """The site restarts every ten minutes."""

    def played(world: World, second: int) -> None:
        if second % (10 * MINUTE) == 0:
            world.restart()
        play(world, second)

    return played


def _forgotten(play: Play) -> Play:
    """The record of the queue's health is damaged while the site restarts."""

    def played(world: World, second: int) -> None:
        if is_at(second, HOUR):
            key = world.store.context.keyspace.queue(world.queue.id).health
            world.store.transact(lambda tr: tr.set(key, b"\x01damaged"))
            world.restart()
        play(world, second)

    return played


def _used(world: World) -> None:
    """Some items were taken long ago, so that there has been a consumer."""
    world.push(20)
    world.pop(20)


def _ageless(world: World) -> None:
    """Items may wait for any time."""
    _used(world)
    world.store.targets.set("jobs", oldest=0)


def _ageless_backlog(world: World) -> None:
    _ageless(world)
    world.push(4)


def _waited_on(world: World) -> None:
    _used(world)
    world.wait()


def _other(world: World) -> None:
    _used(world)
    world.push(200)
    world.store.create_queue("other")


def _backlog(n: int) -> Callable[[World], None]:
    def begin(world: World) -> None:
        world.push(n)

    return begin


def _ten(world: World) -> None:
    world.push(10)


def _stock(world: World) -> None:
    _used(world)
    world.push(50)


def _dead(world: World, second: int) -> None:
    world.push(world.randomly(0.5))
    if is_between(second, HOUR, HOUR + 10 * TICK):
        world.push(12)
        for lease in world.queue.lease_many(12, seconds=60):
            world.queue.release(lease, reason="it cannot be read")
    world.pop(50)


def _few_attempts(world: World) -> None:
    world.queue.configure(max_attempts=1)


def _attached(world: World) -> None:
    world.queue = world.store.attach("foreign", prefix=("elsewhere",))


def _damaged(world: World, second: int) -> None:
    if is_at(second, 30 * MINUTE):
        key = world.store.context.keyspace.configs.key(world.queue.id)
        world.store.transact(lambda tr: tr.set(key, b"\x01\x00\x00\x02{}"))


def _drifted(world: World, second: int) -> None:
    _steady()(world, second)
    if is_at(second, 30 * MINUTE):
        keys = world.store.context.keyspace.queue(world.queue.id)

        def lose(tr: object) -> None:
            tr.add(keys.generation(1).counters.key("ready", "in"), 3)

        world.store.transact(lose)
        world.queue.pop_many(1_000)


def _recovers(world: World, second: int) -> None:
    world.push(world.randomly(10.0))
    world.pop(70 if is_between(second, HOUR, 80 * MINUTE) else 150)


def _dies(since: int, until: int, rate: float = 2.0, capacity: int = 100) -> Play:
    def play(world: World, second: int) -> None:
        world.push(world.randomly(rate))
        if not is_between(second, since, until):
            world.pop(capacity)

    return play


def _cron(world: World, second: int) -> None:
    world.push(world.randomly(0.2))
    if second % (10 * MINUTE) == 0:
        world.pop(2_000)


def _cron_target(world: World) -> None:
    world.store.targets.set("job*", no_consumer=1_200, growing=900)


def _deep(world: World, second: int) -> None:
    """A level of 120 items that neither grows nor drains, for twenty minutes."""
    if is_at(second, HOUR + 2 * MINUTE):
        world.push(120)
    n = world.randomly(1.0)
    world.push(n)
    world.pop(n if is_between(second, HOUR, 80 * MINUTE) else 100)


def _deep_target(world: World) -> None:
    world.queue.configure(target_depth=100)


def _own_depth(world: World) -> None:
    world.store.targets.set("*", depth=20, dead=0)
    world.store.targets.set("job*", depth=50)
    world.queue.configure(target_depth=500)


def _edited(world: World, second: int) -> None:
    """A queue that is only looked at: a person gives it a target, and takes it away again."""
    if is_at(second, TICK):
        world.push(40)
        world.pop(1)
    if is_at(second, HOUR):
        world.person.configure("jobs", target_oldest=1_200)
    if is_at(second, 90 * MINUTE):
        world.person.configure("jobs", target_oldest=0)


def _no_alarms(world: World) -> None:
    world.store.targets.set("jo?s", no_consumer=0, growing=0, oldest=0)


def _late(world: World, second: int) -> None:
    """A backlog of ten minutes, kept for half an hour."""
    n = world.steadily(1.0)
    world.push(n)
    if is_at(second, HOUR):
        world.push(450)
    world.pop(100 if second <= HOUR or second > 90 * MINUTE else n)


def _wait_target(world: World) -> None:
    world.store.targets.set("*", growing=0, oldest=0)
    world.queue.configure(target_wait=300)


def _flood(world: World, second: int) -> None:
    world.push(world.steadily(50.0) if second > HOUR else world.randomly(5.0))
    world.pop(300)


def _killed(world: World, second: int) -> None:
    """A consumer that waits for an item every three minutes, and is killed after an hour."""
    if second % 180 == 0:
        world.push(1)
        if second < HOUR:
            world.pop(5)
    if is_at(second, HOUR - TICK):
        world.die()


def _one_stops(world: World, second: int) -> None:
    """Two processes take in turn; one of them ends after an hour."""
    world.push(world.randomly(2.0))
    taken = world.pop(60)
    if second < HOUR:
        world.other.of(world.queue.id).took(taken // 2)
    if is_at(second, HOUR):
        world.other.stop()


def _both_stop(world: World, second: int) -> None:
    """Two processes take; one is stopped after an hour, and the other killed half an hour later."""
    if second <= 90 * MINUTE:
        _one_stops(world, second)
    else:
        world.push(world.randomly(2.0))
        world.killed = True


def _untold(world: World, second: int) -> None:
    """A process of an older release takes, until it ends."""
    world.push(world.randomly(2.0))
    if second <= HOUR:
        world.pop_untold(100)


def _downgraded(world: World, second: int) -> None:
    """After an hour, a process of an older release takes instead."""
    world.push(world.randomly(0.2))
    if second <= HOUR:
        world.pop(100)
    else:
        world.pop_untold(100)


def scenarios() -> Iterator[Scenario]:
    """Yield every scenario; each is played once, as some remember where they are."""
    calm = (Phase(0, CALM),)
    stalled = (Phase(0, frozenset({CRITICAL}), code="no-consumer"),)
    yield Scenario(name="steady", play=_steady(), phases=calm)
    yield Scenario(name="busy, near its capacity", play=_steady(17.0, 200), phases=calm)
    yield Scenario(name="trickle", play=_bursts(10 * MINUTE, 1, 5), phases=calm, minutes=240)
    yield Scenario(name="bursts every ten minutes", play=_bursts(10 * MINUTE, 500, 50), phases=calm)
    yield Scenario(name="one burst an hour", play=_bursts(HOUR, 3_000, 50), phases=calm, minutes=180)
    yield Scenario(name="batches every minute", play=_bursts(MINUTE, 200, 50), phases=calm)
    yield Scenario(
        name="leak of one a minute",
        play=_until(_even(1.0, 1.0), HOUR, _even(61 / 60, 1.0)),
        phases=(Phase(0, CALM), Phase(HOUR, frozenset({WARNING}), LEAK, "growing")),
        minutes=180,
        short=True,
    )
    yield Scenario(
        name="one a minute gets stuck",
        play=_until(_steady(), HOUR, _stuck),
        phases=(Phase(0, CALM), Phase(HOUR, TROUBLE, LEAK, "growing")),
        minutes=180,
    )
    yield Scenario(
        name="steady growth",
        play=_until(_steady(3.0, 100), HOUR, _even(3.0, 1.0)),
        phases=(Phase(0, CALM), Phase(HOUR, TROUBLE, code="growing")),
    )
    yield Scenario(name="flood", play=_flood, phases=(Phase(0, CALM), Phase(HOUR, TROUBLE, code="growing")), minutes=80)
    yield Scenario(
        name="grows, then recovers",
        play=_recovers,
        phases=(
            Phase(0, CALM),
            Phase(HOUR, TROUBLE, code="growing"),
            Phase(80 * MINUTE, NO_ALARM),
            Phase(110 * MINUTE, CALM),
        ),
    )
    yield Scenario(
        name="backlog draining",
        play=_even(1.0, 4.0),
        phases=(Phase(0, NO_ALARM), Phase(8_000, CALM)),
        begin=_backlog(20_000),
        minutes=150,
    )
    yield Scenario(
        name="backlog draining after a stall",
        play=_dies(HOUR, 2 * HOUR),
        phases=(
            Phase(0, CALM),
            Phase(HOUR, frozenset({CRITICAL}), code="no-consumer"),
            Phase(2 * HOUR, NO_ALARM),
            Phase(2 * HOUR + 1_200, CALM),
        ),
        minutes=180,
        short=True,
    )
    yield Scenario(
        name="consumer dies",
        play=_dies(HOUR, 99 * HOUR),
        phases=(Phase(0, CALM), Phase(HOUR, frozenset({CRITICAL}), code="no-consumer")),
    )
    yield Scenario(
        name="consumer of a trickle dies",
        play=_died_often,
        phases=(Phase(0, CALM), Phase(HOUR + MINUTE, frozenset({CRITICAL}), code="no-consumer")),
    )
    yield Scenario(
        name="workers die with their leases",
        play=_dying_workers,
        phases=(Phase(0, CALM), Phase(HOUR + TICK, frozenset({CRITICAL}))),
    )
    yield Scenario(
        name="workers hang in what they hold",
        play=_hanging,
        phases=(
            Phase(0, CALM),
            Phase(HOUR, TROUBLE, code="growing"),
            Phase(HOUR + 5 * MINUTE, TROUBLE, code="none-taken"),
            # Beyond twice the age that is allowed.
            Phase(HOUR + 31 * MINUTE, frozenset({CRITICAL}), code="none-taken"),
        ),
        told=True,
    )
    yield Scenario(
        name="slow consumer that pops",
        play=_slow_pops,
        phases=(Phase(0, NO_ALARM),),
        begin=_waited_on,
        minutes=240,
        told=True,
    )
    yield Scenario(
        name="slow consumer that extends", play=_extending, phases=(Phase(0, NO_ALARM),), begin=_used, minutes=240
    )
    yield Scenario(
        name="long jobs",
        play=_long_jobs,
        phases=(Phase(0, NO_ALARM), Phase(HOUR, CALM)),
        begin=_ageless_backlog,
        minutes=360,
        short=True,
    )
    yield Scenario(
        name="slow consumers with long leases",
        play=_workers(0.006, workers=4, work=9 * MINUTE, lease=1_200),
        phases=(Phase(0, NO_ALARM),),
        begin=_used,
        minutes=240,
    )
    yield Scenario(
        name="slow consumer with a backlog",
        play=_workers(1 / 300, workers=1, work=4 * MINUTE, lease=600),
        phases=calm,
        begin=_ageless,
        minutes=240,
        told=True,
    )
    yield Scenario(name="workers keep up", play=_workers(1.0, workers=40, work=20, lease=60), phases=calm)
    yield Scenario(
        name="pause and resume",
        play=_paused,
        phases=(
            Phase(0, CALM),
            Phase(HOUR, frozenset({WARNING}), code="paused"),
            Phase(2 * HOUR, NO_ALARM),
            Phase(2 * HOUR + 1_500, CALM),
        ),
        minutes=180,
        short=True,
    )
    yield Scenario(name="stalled", play=_nothing, phases=stalled, begin=_stock)
    yield Scenario(
        name="people act on a stalled queue",
        play=_hands_on_stalled,
        phases=stalled,
        begin=_other,
        minutes=180,
        short=True,
    )
    yield Scenario(name="people act on a busy queue", play=_hands_on_busy, phases=calm, minutes=180)
    yield Scenario(
        name="items fall due in a stalled queue", play=_due_on_stalled, phases=stalled, begin=_stock, minutes=180
    )
    yield Scenario(name="idle night", play=_until(_steady(), HOUR, _nothing), phases=calm, minutes=480)
    yield Scenario(name="day and night", play=_day(8.0, 120), phases=calm, minutes=480)
    yield Scenario(name="sharp mornings", play=_day(15.0, 200, HOUR), phases=calm, minutes=240)
    yield Scenario(
        name="retry storm",
        play=_storm(1.0, HOUR, 99 * HOUR),
        phases=(Phase(0, CALM), Phase(HOUR, TROUBLE)),
        short=True,
    )
    yield Scenario(
        name="retry storm that ends",
        play=_storm(1.0, HOUR, 80 * MINUTE),
        phases=(Phase(0, CALM), Phase(HOUR, TROUBLE), Phase(80 * MINUTE, NO_ALARM), Phase(100 * MINUTE, CALM)),
    )
    yield Scenario(
        name="three of four come back",
        play=_storm(0.75, HOUR, 99 * HOUR),
        phases=(Phase(0, CALM), Phase(HOUR, TROUBLE, code="retries")),
    )
    yield Scenario(
        name="every second comes back",
        play=_storm(0.5, HOUR, 99 * HOUR),
        phases=(Phase(0, CALM), Phase(HOUR, TROUBLE, 5 * MINUTE, "retries")),
    )
    yield Scenario(name="one of three comes back", play=_storm(0.33, 0, 99 * HOUR), phases=calm)
    yield Scenario(name="one of ten comes back", play=_storm(0.1, 0, 99 * HOUR), phases=calm)
    yield Scenario(name="site restarts often", play=_restarting(_steady(3.0, 100)), phases=calm)
    yield Scenario(
        name="site restarts often, stalled", play=_restarting(_nothing), phases=stalled, begin=_stock, short=True
    )
    yield Scenario(name="site away for half an hour", play=away(_steady(3.0, 100), HOUR, 90 * MINUTE), phases=calm)
    yield Scenario(
        name="consumer dies while the site is away",
        play=away(_dies(70 * MINUTE, 99 * HOUR), HOUR, 90 * MINUTE),
        phases=(
            Phase(0, CALM),
            Phase(90 * MINUTE, ALARM, 0),
            Phase(90 * MINUTE + SOON, frozenset({CRITICAL}), code="no-consumer"),
        ),
        short=True,
    )
    yield Scenario(
        name="stalled before any process watches",
        play=away(_nothing, TICK, HOUR),
        phases=(
            Phase(HOUR, ALARM, 0),
            Phase(HOUR + SOON, frozenset({CRITICAL}), code="no-consumer"),
        ),
        begin=_stock,
        short=True,
    )
    yield Scenario(
        name="what was recorded is damaged, stalled",
        play=_forgotten(_nothing),
        phases=(
            Phase(0, frozenset({CRITICAL}), code="no-consumer"),
            Phase(HOUR, ALARM, 0),
            Phase(HOUR + SOON, frozenset({CRITICAL}), code="no-consumer"),
        ),
        begin=_stock,
        short=True,
    )
    yield Scenario(name="what was recorded is damaged, steady", play=_forgotten(_steady(3.0, 100)), phases=calm)
    yield Scenario(name="clock steps back", play=_skewed(_steady(3.0, 100), HOUR, -HOUR), phases=calm)
    yield Scenario(name="clock steps forward", play=_skewed(_steady(3.0, 100), HOUR, HOUR), phases=calm, short=True)
    yield Scenario(name="clock steps back, stalled", play=_skewed(_nothing, HOUR, -HOUR), phases=stalled, begin=_stock)
    yield Scenario(
        name="clock steps forward, stalled", play=_skewed(_nothing, HOUR, HOUR), phases=stalled, begin=_stock
    )
    yield Scenario(
        name="attached",
        play=_nothing,
        phases=(Phase(0, frozenset({UNKNOWN}), code="attached"),),
        begin=_attached,
        minutes=30,
        short=True,
    )
    yield Scenario(
        name="dead items",
        play=_dead,
        phases=(Phase(0, CALM), Phase(HOUR + TICK, frozenset({WARNING}), code="dead")),
        begin=_few_attempts,
        short=True,
    )
    yield Scenario(
        name="damaged records",
        play=_damaged,
        phases=(Phase(0, CALM), Phase(30 * MINUTE, frozenset({UNKNOWN}), code="unreadable")),
        minutes=60,
        short=True,
    )
    yield Scenario(
        name="counts drift",
        play=_drifted,
        phases=(Phase(0, CALM), Phase(30 * MINUTE, frozenset({WARNING}), code="drift")),
        minutes=60,
    )
    yield Scenario(
        name="consumer is alive and takes nothing",
        play=_dies(HOUR, 99 * HOUR),
        phases=(Phase(0, CALM), Phase(HOUR, TROUBLE, code="none-taken"), Phase(HOUR + 300, frozenset({CRITICAL}))),
        begin=_waited_on,
        told=True,
    )
    yield Scenario(
        name="cron job every ten minutes, with a target",
        play=_cron,
        phases=calm,
        begin=_cron_target,
        minutes=240,
    )
    yield Scenario(
        name="deep by a pattern, within the queue's own target",
        play=_deep,
        phases=calm,
        begin=_own_depth,
    )
    yield Scenario(
        name="a person sets a target, and takes it away",
        play=_edited,
        phases=(Phase(0, CALM), Phase(HOUR, frozenset({CRITICAL}), code="old"), Phase(90 * MINUTE, CALM)),
        begin=_no_alarms,
        short=True,
    )
    yield Scenario(
        name="waits beyond the queue's target",
        play=_late,
        phases=(
            Phase(0, CALM),
            Phase(HOUR, NO_ALARM),
            Phase(75 * MINUTE, frozenset({WARNING}), code="waits"),
            Phase(90 * MINUTE, NO_ALARM),
            Phase(95 * MINUTE, CALM),
        ),
        begin=_wait_target,
    )
    yield Scenario(
        name="depth beyond its target",
        play=_deep,
        phases=(
            Phase(0, CALM),
            Phase(HOUR + 2 * MINUTE, frozenset({WARNING}), code="deep"),
            Phase(80 * MINUTE, CALM),
        ),
        begin=_deep_target,
    )
    yield Scenario(
        name="ten items of a test",
        play=_nothing,
        phases=(Phase(0, CALM), Phase(HOUR, frozenset({CRITICAL}), code="no-consumer")),
        begin=_ten,
        short=True,
    )
    yield Scenario(
        name="pushes before the first consumer",
        play=_pushes(1.0),
        phases=(Phase(0, TROUBLE, code="growing"),),
        minutes=50,
    )
    yield Scenario(
        name="consumer that waits is killed",
        play=_killed,
        phases=(Phase(0, CALM), Phase(HOUR, frozenset({CRITICAL}), code="no-consumer")),
        begin=_waited_on,
        short=True,
        told=True,
    )
    yield Scenario(name="one of two processes stops", play=_one_stops, phases=calm)
    yield Scenario(
        name="one of two processes stops, the other is killed",
        play=_both_stop,
        phases=(Phase(0, CALM), Phase(90 * MINUTE, frozenset({CRITICAL}), code="no-consumer")),
    )
    yield Scenario(
        name="process of an older release",
        play=_untold,
        phases=(Phase(0, CALM), Phase(HOUR, frozenset({CRITICAL}), code="no-consumer")),
        short=True,
    )
    yield Scenario(name="process of an older release takes over", play=_downgraded, phases=calm)
