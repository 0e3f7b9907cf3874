"""Labeled scenarios of everyday operations: batches, deploys, retries with backoff, starvation, acts of people, clocks.

Labeled by what an operator would say of the queue itself, whatever the model tells.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Unpack

from benchmarks.harness.queue_world import World
from benchmarks.harness.verdict_scenarios import (
    ALARM,
    CALM,
    CRITICAL,
    HOUR,
    LEAK,
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
from queues.health import Trend
from queues.model.limits import LimitArguments

_WARNING, _CRITICAL = frozenset({WARNING}), frozenset({CRITICAL})


def _used(world: World) -> None:
    world.push(20)
    world.pop(20)


def _with_targets(**limits: Unpack[LimitArguments]) -> Callable[[World], None]:
    def begin(world: World) -> None:
        _used(world)
        world.store.targets.set("jobs", **limits)

    return begin


def _batch(n: int, *, every: int, capacity: int, steady: float = 0.0) -> Play:
    """So many items at once again and again, and consumers that take at most so many in ten seconds."""

    def play(world: World, second: int) -> None:
        world.push(world.randomly(steady))
        if second % every == 0:
            world.push(n)
        world.pop(capacity)

    return play


def _weekly(world: World, second: int) -> None:
    """A program that runs once in six hours pushes 2,000 items; another one takes them ten minutes later, and ends."""
    if second % (6 * HOUR) == HOUR:
        world.push(2_000)
    if is_between(second % (6 * HOUR), HOUR + 10 * MINUTE, HOUR + 20 * MINUTE):
        world.pop(50)


def _on_demand(world: World, second: int) -> None:
    """200 items each hour; consumers are started 90 seconds after the first of them, and end when it is empty."""
    if second % HOUR == 0:
        world.push(200)
    if is_between(second % HOUR, 90, 10 * MINUTE):
        world.pop(20)


def _deploys(world: World, second: int) -> None:
    """Each half hour the consumers stop for 40 seconds."""
    world.push(world.randomly(2.0))
    if second % (30 * MINUTE) >= 40 or second < MINUTE:
        world.pop(100)


def _one_hangs(world: World, second: int) -> None:
    """Ten workers with jobs of ten seconds; after an hour one of them hangs, and its lease is extended for ever."""
    world.push(world.randomly(0.5))
    world.finish()
    if is_at(second, HOUR):
        world.lease(1, seconds=60, work=99 * HOUR)
    if second % 20 == 0:
        world.extend(60)
    world.lease(10 - world.at_work, seconds=60, work=10)


def _backoff(since: int, until: int) -> Play:
    """Every attempt fails for a while, and comes back after a delay that doubles up to five minutes."""
    delays: dict[str, int] = {}

    def delay_of(item: str) -> int:
        delays[item] = min(300, 2 * delays.get(item, 5))
        return delays[item]

    def play(world: World, second: int) -> None:
        world.push(world.randomly(0.5))
        world.fail(share=float(is_between(second, since, until)), delay_of=delay_of)
        world.lease(40 - world.at_work, seconds=60, work=10)

    return play


def _poison(every: int) -> Play:
    """A good item each so many seconds; after an hour one comes that always fails, in ten seconds."""

    def play(world: World, second: int) -> None:
        if second % every == 0:
            world.push(1)
        if is_at(second, HOUR):
            world.push(1, priority=1)
        for lease in world.over():
            if lease.item.priority == 1:
                world.queue.release(lease, reason="no such user", count_attempt=False)
            else:
                world.queue.ack(lease)
        world.lease(2 - world.at_work, seconds=60, work=10)

    return play


def _starved(stuck: int) -> Play:
    """Consumers take the highest priorities only, and are never done with these; after an hour low ones come."""

    def play(world: World, second: int) -> None:
        if is_at(second, HOUR):
            world.push(stuck, priority=1)
        world.push(world.steadily(2.0), priority=9)
        world.pop(20, end="max")

    return play


def _starved_then_not(world: World, second: int) -> None:
    """For two hours the high priorities need all consumers; then they become fewer."""
    world.push(world.randomly(0.1), priority=1)
    busy = is_between(second, HOUR, 3 * HOUR)
    n = 50 if busy else world.randomly(2.0)
    world.push(n, priority=9)
    world.pop(50, end="max")


def _at_its_maximum(world: World, second: int) -> None:
    """The consumers take 100 in ten seconds, as they do when they are busiest; after an hour 103 come in on average."""
    world.push(world.randomly(10.3 if second > HOUR else 7.0))
    world.pop(100)


def _half_of_them(world: World, second: int) -> None:
    """Two processes take 10 a second; one of them is gone after an hour, for an hour, and 6 a second come in."""
    world.push(world.randomly(6.0))
    world.pop(50 if is_between(second, HOUR, 2 * HOUR) else 100)


def _one_an_hour(world: World, second: int) -> None:
    """A busy queue in which one item an hour is never taken."""
    if second % HOUR == 0:
        world.push(1, priority=1)
    n = world.randomly(5.0)
    world.push(n, priority=9)
    world.pop(n, end="max")


def _maintenance(world: World, second: int) -> None:
    """An operator pauses it for two hours; the consumers are stopped, and start again 40 seconds after the resume."""
    world.push(world.randomly(1.0))
    if is_at(second, HOUR):
        world.person.pause("jobs", reason="the database is upgraded")
    if is_at(second, 3 * HOUR):
        world.person.resume("jobs")
    if not is_between(second, HOUR - 10, 3 * HOUR + 40):
        world.pop(60)


def _pause_that_ends(world: World, second: int) -> None:
    """A pause of half an hour that ends by itself, of a queue with live consumers."""
    world.push(world.randomly(1.0))
    if is_at(second, HOUR):
        until = datetime.fromtimestamp(world.store.now().timestamp() + 30 * MINUTE, world.store.now().tzinfo)
        world.person.pause("jobs", reason="deploy", until=until)
    if not is_between(second, HOUR - 10, 90 * MINUTE):
        world.pop(60)


def _due_at_once(world: World, second: int) -> None:
    if is_at(second, MINUTE):
        world.queue.push_many([(b"x", 5)] * 1_000, delay=timedelta(seconds=2 * HOUR - MINUTE))
        for _ in range(4):
            world.queue.push_many([(b"x", 5)] * 1_000, delay=timedelta(seconds=2 * HOUR - MINUTE))
    world.push(world.randomly(0.5))
    world.pop(90)


def _buffer(world: World, second: int) -> None:
    """What came in seven minutes is kept in the buffer, about 2,000 items: the rest is taken."""
    world.push(world.randomly(5.0))
    world.pop(max(0, world.queue.depth() - 2_000 - world.random.randrange(60)))


def _deep_buffer(n: int, **limits: Unpack[LimitArguments]) -> Callable[[World], None]:
    def begin(world: World) -> None:
        _used(world)
        world.push(n)
        if limits:
            world.store.targets.set("jobs", **limits)

    return begin


def _rare(world: World, second: int) -> None:
    """One item in four hours, taken at once by a consumer that waits; it is killed while nothing is there."""
    if second % (4 * HOUR) == HOUR:
        world.push(1)
    if second <= 6 * HOUR:
        world.pop(1)
    if is_at(second, 6 * HOUR):
        world.die()


def _short_of_patience(world: World, second: int) -> None:
    """A target of 30 seconds, and a consumer that comes by every 20."""
    world.push(world.randomly(1.0))
    if second % 20 == 0:
        world.pop(200)


def _two_clocks(play: Play) -> Play:
    """Two sites with clocks five seconds apart are elected in turn."""

    def played(world: World, second: int) -> None:
        if second % 20 == 0:
            world.skew = 5.0 - world.skew
            world.restart()
        play(world, second)

    return played


def _stepping_back(play: Play) -> Play:
    """The clock is set back by a minute again and again."""

    def played(world: World, second: int) -> None:
        if second % (20 * MINUTE) == 0:
            world.skew -= 60.0
        play(world, second)

    return played


def _cron_an_hour_late(world: World, second: int) -> None:
    """A consumer comes by each half hour; once, after daylight saving, an hour late."""
    world.push(world.randomly(0.2))
    if second % (30 * MINUTE) == 0 and not is_between(second, 3 * HOUR, 4 * HOUR):
        world.pop(5_000)


def _foreign(every: int) -> Play:
    """A program of another kind pops one item again and again, and tells nothing of itself."""

    def play(world: World, second: int) -> None:
        if second % every == 0:
            world.push(1)
            world.pop_untold(1)

    return play


def _peeks(world: World, second: int) -> None:
    """A program only looks."""
    world.push(world.randomly(0.1))
    world.queue.peek_min()


def _purged(world: World, second: int) -> None:
    """A backlog that consumers do not get down; after an hour an operator purges it."""
    n = world.steadily(2.0)
    world.push(n)
    if is_at(second, HOUR):
        world.person.purge("jobs", confirm="jobs")
    world.pop(n)


def _purged_by_mistake() -> Play:
    """A purge that is undone after ten minutes; it comes back with what it held."""
    trash_ids: list[str] = []

    def play(world: World, second: int) -> None:
        world.push(world.randomly(1.0))
        if is_at(second, HOUR):
            trash_ids.extend(world.person.purge("jobs", confirm="jobs").trash_ids)
        if is_at(second, 70 * MINUTE):
            world.person.undo(trash_ids[0])
        world.pop(12 if second <= HOUR else 30)

    return play


def _moved_in(world: World, second: int) -> None:
    """A person moves 1,000 items of two hours of age into a busy queue, and half an hour later 100 out of it."""
    world.push(world.randomly(2.0))
    if is_at(second, 2 * HOUR):
        other = world.store.queue("other")
        world.person.move_items("other", [item.id for item in other.peek_many(1_000)], to="jobs")
    world.pop(60)


def _other_queue(world: World) -> None:
    _used(world)
    world.store.create_queue("other").push_many([(b"x", 5)] * 1_000)


def _imported(world: World, second: int) -> None:
    """A person imports 60,000 items in ten minutes; the consumers need 50 minutes for them."""
    if is_between(second, HOUR, HOUR + 10 * MINUTE):
        world.person.push_many("jobs", [(b"x", 5)] * 1_000)
    world.push(world.randomly(1.0))
    world.pop(220)


def _imported_by_a_program(world: World, second: int) -> None:
    """The same by a program, a million in miniature: 100 a second for ten minutes."""
    if is_between(second, HOUR, HOUR + 10 * MINUTE):
        world.push(1_000)
    world.push(world.randomly(1.0))
    world.pop(220)


def _renamed(world: World, second: int) -> None:
    world.push(world.randomly(2.0))
    if is_at(second, HOUR):
        world.person.rename_queue("jobs", "tasks")
    world.pop(60)


def _made_anew(world: World, second: int) -> None:
    """A stalled queue that is deleted after an hour, and created anew with a consumer."""
    if is_at(second, HOUR):
        world.store.delete_queue("jobs")
        world.queue = world.store.create_queue("jobs")
        world.restart()
    if second > HOUR:
        world.push(world.randomly(2.0))
        world.pop(60)


def _stocked(world: World) -> None:
    _used(world)
    world.push(50)


def _held_for_ever(world: World, second: int) -> None:
    """Four workers take one item each and hang, extending their leases; nothing else waits."""
    if is_at(second, HOUR):
        world.push(4)
    world.lease(4 - world.at_work, seconds=60, work=99 * HOUR)
    if second % 20 == 0:
        world.extend(60)


def _six_hours_each(world: World, second: int) -> None:
    """Two workers with jobs of six hours, which extend their leases; three more jobs wait each time."""
    if second % (3 * HOUR) == 0:
        world.push(1)
    world.finish()
    if second % 20 == 0:
        world.extend(60)
    world.lease(2 - world.at_work, seconds=60, work=6 * HOUR)


def _six_hours_backlog(world: World) -> None:
    world.push(5)
    world.store.targets.set("jobs", oldest=0)


def _prefetching(world: World, second: int) -> None:
    """One worker leases 100 items at once, and acknowledges one in five seconds; it asks again after the last one."""
    world.push(world.randomly(0.15))
    world.finish()
    if second % 20 == 0:
        world.extend(60)
    if not world.at_work:
        for n in range(50):
            world.lease(2, seconds=60, work=10 * (n + 1))


def _killed_again_and_again(world: World, second: int) -> None:
    """From an hour on each worker is killed in its first job, which takes two minutes, and is started again."""
    world.push(world.randomly(0.05))
    world.finish()
    if second > HOUR and second % 180 == 60:
        world.die()
    if second <= HOUR:
        world.lease(20 - world.at_work, seconds=30, work=20)
    elif second % 180 >= 120 or second % 180 < 60:
        world.lease(4 - world.at_work, seconds=30, work=120)


def _one_sick(world: World, second: int) -> None:
    """Ten workers finish one item in ten seconds each; after an hour one more fails four a second, for an hour."""
    world.push(world.randomly(0.7))
    world.finish()
    if is_between(second, HOUR, 2 * HOUR):
        for lease in world.queue.lease_many(40, seconds=60):
            world.queue.release(lease, reason="disk full", count_attempt=False)
    world.lease(10 - world.at_work, seconds=60, work=10)


def _dead_retried(world: World, second: int) -> None:
    """Twelve items die; half an hour later a person retries them, and they are done."""
    world.push(world.randomly(0.5))
    if is_at(second, HOUR):
        world.push(12, priority=1)
        for lease in world.queue.lease_many(12, seconds=60):
            world.queue.release(lease, reason="no such table")
    if is_at(second, 90 * MINUTE):
        world.person.retry_dead("jobs", [item.id for item in world.queue.dead().items])
    world.pop(50)


def _few_attempts(world: World) -> None:
    _used(world)
    world.queue.configure(max_attempts=1)


def _closed(world: World, second: int) -> None:
    """A queue that is retired: closed for pushes, and emptied."""
    if is_at(second, HOUR):
        world.person.configure("jobs", closed=True)
    if second < HOUR:
        world.push(world.steadily(2.0))
    world.pop(20 if second < HOUR else 5)


def _steady(world: World, second: int) -> None:
    world.push(world.randomly(3.0))
    world.pop(100)


def _nothing(world: World, second: int) -> None:
    pass


def scenarios() -> Iterator[Scenario]:
    """Yield every scenario; each is played once, as some remember where they are."""
    calm = (Phase(0, CALM),)
    stalled = (Phase(0, _CRITICAL, code="no-consumer"),)
    yield Scenario(
        name="cron burst an hour that outlasts the oldest age",
        play=_batch(3_000, every=HOUR, capacity=25, steady=0.1),
        phases=(Phase(0, CALM), Phase(HOUR, NO_ALARM), Phase(HOUR + 1_500, CALM), Phase(2 * HOUR, NO_ALARM)),
        begin=_used,
        minutes=150,
    )
    yield Scenario(
        name="nightly batch done by morning, as targeted",
        play=_batch(50_000, every=11 * HOUR, capacity=24),
        phases=calm,
        begin=_deep_buffer(50_000, oldest=8 * HOUR),
        minutes=480,
    )
    yield Scenario(
        name="nightly batch that is late",
        play=_batch(50_000, every=11 * HOUR, capacity=24),
        phases=(Phase(0, CALM), Phase(4 * HOUR, _WARNING, code="old"), Phase(20_840, CALM)),
        begin=_deep_buffer(50_000, oldest=4 * HOUR),
        minutes=420,
    )
    yield Scenario(
        name="used once a week, with a target",
        play=_weekly,
        phases=calm,
        begin=_with_targets(no_consumer=30 * MINUTE, oldest=HOUR),
        minutes=900,
    )
    yield Scenario(
        name="consumers that are started on demand",
        play=_on_demand,
        phases=calm,
        begin=_with_targets(no_consumer=180),
        minutes=360,
    )
    yield Scenario(name="deploys of 40 seconds", play=_deploys, phases=calm, begin=_used, minutes=180)
    yield Scenario(name="one of ten workers hangs", play=_one_hangs, phases=calm, begin=_used, minutes=180)
    yield Scenario(
        name="every attempt fails, with backoff",
        play=_backoff(HOUR, 2 * HOUR),
        phases=(
            Phase(0, CALM),
            Phase(HOUR, TROUBLE),
            Phase(HOUR + 5 * MINUTE, _CRITICAL, code="nothing-done"),
            Phase(2 * HOUR, TROUBLE | CALM, 0),
            Phase(2 * HOUR + 15 * MINUTE, CALM),
        ),
        minutes=180,
    )
    yield Scenario(name="one poison item among many", play=_poison(10), phases=(Phase(0, NO_ALARM),), begin=_used)
    yield Scenario(
        name="one poison item among few",
        play=_poison(10 * MINUTE),
        phases=(Phase(0, CALM), Phase(HOUR, _WARNING)),
        begin=_used,
        minutes=180,
        short=True,
    )
    yield Scenario(
        name="one item stuck in a busy queue",
        play=_starved(1),
        phases=(
            Phase(0, CALM),
            Phase(HOUR + 15 * MINUTE, TROUBLE, code="old"),
            Phase(HOUR + 30 * MINUTE, _CRITICAL, 180, "old"),
        ),
        begin=_used,
        minutes=480,
    )
    yield Scenario(
        name="low priorities starve, then do not",
        play=_starved_then_not,
        phases=(
            Phase(0, CALM),
            Phase(HOUR, CALM | TROUBLE, 0),
            Phase(HOUR + LEAK, TROUBLE),
            Phase(HOUR + 2_000, _CRITICAL, code="old"),
            Phase(3 * HOUR, NO_ALARM, 180),
            Phase(3 * HOUR + 900, CALM),
        ),
        begin=_used,
        minutes=240,
    )
    yield Scenario(
        name="more than consumers take at their maximum",
        play=_at_its_maximum,
        phases=(Phase(0, CALM), Phase(HOUR, _WARNING, LEAK, "growing")),
        begin=_used,
        minutes=150,
    )
    yield Scenario(
        name="half of the consumers are gone for an hour",
        play=_half_of_them,
        phases=(
            Phase(0, CALM),
            Phase(HOUR, TROUBLE, 3 * MINUTE, "growing"),
            Phase(2 * HOUR, NO_ALARM, 180),
            Phase(2 * HOUR + 1_500, CALM),
        ),
        begin=_used,
        minutes=180,
    )
    yield Scenario(
        name="one item an hour is never taken",
        play=_one_an_hour,
        phases=(Phase(0, CALM), Phase(HOUR + 15 * MINUTE, TROUBLE, code="old")),
        begin=_used,
        minutes=600,
    )
    yield Scenario(
        name="paused for maintenance",
        play=_maintenance,
        phases=(
            Phase(0, CALM),
            Phase(HOUR, _WARNING, 10, "paused"),
            Phase(3 * HOUR, NO_ALARM, 10),
            Phase(3 * HOUR + 1_700, CALM),
        ),
        begin=_used,
        minutes=240,
    )
    yield Scenario(
        name="pause that ends by itself",
        play=_pause_that_ends,
        phases=(
            Phase(0, CALM),
            Phase(HOUR, _WARNING, 10, "paused"),
            Phase(90 * MINUTE - 10, NO_ALARM, 10),
            Phase(90 * MINUTE + 600, CALM),
        ),
        begin=_used,
    )
    yield Scenario(name="5,000 fall due at once", play=_due_at_once, phases=calm, begin=_used, minutes=180)
    yield Scenario(
        name="buffer that is always deep",
        play=_buffer,
        phases=(Phase(0, CALM, trends=frozenset({Trend.STEADY})),),
        begin=_deep_buffer(2_000),
        minutes=480,
    )
    yield Scenario(
        name="buffer within its depth and age",
        play=_buffer,
        phases=calm,
        begin=_deep_buffer(2_000, oldest=2 * HOUR, depth=4_000),
        minutes=240,
    )
    yield Scenario(
        name="one item in four hours, and the consumer is killed",
        play=_rare,
        phases=(Phase(0, CALM), Phase(9 * HOUR, _CRITICAL, code="no-consumer")),
        begin=_used,
        minutes=600,
    )
    yield Scenario(
        name="oldest age of 30 seconds, polled every 20",
        play=_short_of_patience,
        phases=calm,
        begin=_with_targets(oldest=30),
        minutes=180,
    )
    yield Scenario(
        name="retry storm begins while the site is away for an hour",
        play=away(_backoff(90 * MINUTE, 99 * HOUR), HOUR, 2 * HOUR),
        phases=(Phase(0, CALM), Phase(2 * HOUR, TROUBLE, 5 * MINUTE)),
        begin=_used,
        minutes=180,
    )
    yield Scenario(
        name="half of the consumers are gone while the site is away",
        play=away(_half_of_them, HOUR, 2 * HOUR),
        phases=(Phase(0, CALM), Phase(2 * HOUR, NO_ALARM), Phase(2 * HOUR + 1_500, CALM)),
        begin=_used,
        minutes=180,
    )
    yield Scenario(name="sites with clocks 5 seconds apart", play=_two_clocks(_steady), phases=calm, begin=_used)
    yield Scenario(
        name="sites with clocks 5 seconds apart, stalled", play=_two_clocks(_nothing), phases=stalled, begin=_stocked
    )
    yield Scenario(
        name="clock steps back again and again, stalled",
        play=_stepping_back(_nothing),
        phases=stalled,
        begin=_stocked,
        minutes=180,
    )
    yield Scenario(
        name="cron consumer comes an hour late",
        play=_cron_an_hour_late,
        phases=(
            Phase(0, CALM),
            Phase(3 * HOUR + 40 * MINUTE, _CRITICAL, code="no-consumer"),
            Phase(4 * HOUR + 30 * MINUTE, CALM),
        ),
        begin=_with_targets(no_consumer=40 * MINUTE, growing=HOUR, oldest=HOUR),
        minutes=360,
    )
    yield Scenario(
        name="foreign program pops every four minutes",
        play=_foreign(4 * MINUTE),
        phases=(Phase(0, ALARM | CALM), Phase(30 * MINUTE, CALM)),
        begin=_foreign_backlog,
        minutes=240,
    )
    yield Scenario(name="a program only peeks", play=_peeks, phases=stalled, begin=_stocked)
    yield Scenario(
        name="purged by an operator",
        play=_purged,
        phases=(Phase(0, CALM | TROUBLE, 0), Phase(40 * MINUTE, _CRITICAL, code="old"), Phase(HOUR, CALM)),
        begin=_deep_buffer(5_000),
    )
    yield Scenario(
        name="purge that is undone",
        play=_purged_by_mistake(),
        phases=(Phase(0, CALM | TROUBLE, 0), Phase(HOUR, CALM), Phase(70 * MINUTE, NO_ALARM, 10)),
        begin=_deep_buffer(4_000),
        minutes=150,
    )
    yield Scenario(
        name="old items are moved in",
        play=_moved_in,
        phases=(Phase(0, CALM), Phase(2 * HOUR, NO_ALARM, 10), Phase(2 * HOUR + 6 * MINUTE, CALM)),
        begin=_other_queue,
        minutes=180,
    )
    yield Scenario(
        name="a person imports 60,000 items",
        play=_imported,
        phases=(Phase(0, CALM), Phase(HOUR, NO_ALARM, 10), Phase(2 * HOUR, CALM)),
        begin=_used,
        minutes=150,
    )
    yield Scenario(
        name="a program imports 60,000 items",
        play=_imported_by_a_program,
        phases=(Phase(0, CALM), Phase(HOUR, NO_ALARM, 10), Phase(HOUR + 900, NO_ALARM), Phase(2 * HOUR, CALM)),
        begin=_used,
        minutes=150,
    )
    yield Scenario(name="renamed", play=_renamed, phases=calm, begin=_used)
    yield Scenario(
        name="deleted while it is stalled, and created anew",
        play=_made_anew,
        phases=(Phase(0, _CRITICAL, code="no-consumer"), Phase(HOUR, CALM, 10)),
        begin=_stocked,
    )
    yield Scenario(
        name="all items are held for ever, none waits", play=_held_for_ever, phases=(Phase(0, NO_ALARM),), begin=_used
    )
    yield Scenario(
        name="jobs of six hours",
        play=_six_hours_each,
        phases=(Phase(0, NO_ALARM), Phase(6 * HOUR + MINUTE, CALM)),
        begin=_six_hours_backlog,
        minutes=1_500,
    )
    yield Scenario(name="worker that takes 100 at once", play=_prefetching, phases=calm, begin=_used, minutes=180)
    yield Scenario(
        name="workers are killed in each job",
        play=_killed_again_and_again,
        phases=(Phase(0, CALM), Phase(HOUR, TROUBLE, 10 * MINUTE)),
        begin=_used,
        minutes=180,
    )
    yield Scenario(
        name="one sick worker fails what the rest would do",
        play=_one_sick,
        phases=(
            Phase(0, CALM),
            Phase(HOUR, TROUBLE, 5 * MINUTE, "retries"),
            Phase(2 * HOUR, NO_ALARM),
            Phase(7_800, CALM),
        ),
        begin=_used,
        minutes=180,
    )
    yield Scenario(
        name="dead items are retried",
        play=_dead_retried,
        phases=(Phase(0, CALM), Phase(HOUR, _WARNING, code="dead"), Phase(90 * MINUTE, CALM)),
        begin=_few_attempts,
    )
    yield Scenario(name="closed, and emptied", play=_closed, phases=calm, begin=_deep_buffer(200))


def _foreign_backlog(world: World) -> None:
    world.push(3)
    world.pop_untold(1)
