"""Histories: recorded in steps of seconds, minutes and hours, only where something happens, by the elected process."""

import zlib

import pytest

from queues import Queue, Store
from queues.background.leader import Candidate
from queues.errors import NotElected
from queues.history import ALL_QUEUES, HOURS, MINUTES, SECONDS, Point, turns
from queues.history.pending_writes import FLUSH
from queues.history.points import RESOLUTIONS
from queues.history.recorder import Recorder
from queues.kv.port import ReadTransaction, Transaction
from queues.serving.leadership import UPKEEP
from tests.conftest import Clock
from tests.sweeps import sweep_trash

#: Queues of one look: those that change, the rest, and those that were never looked at; a tenth of what they are.
HOT = OTHERS = FIRST = 20


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at few queues at once, so that few are many."""
    for name in ("HOT", "OTHERS", "FIRST"):
        monkeypatch.setattr(turns, name, HOT)


def everything(store: Store) -> list[tuple[bytes, bytes]]:
    return store.context.kv.read(lambda tr: list(tr.get_range(b"", b"\xff", limit=100_000).wait()))


class Writer:
    """A recorder that writes at once what it saw."""

    def __init__(self, store: Store) -> None:
        self.recorder = store.recorder()

    def look(self) -> int:
        found = self.recorder.look()
        self.recorder.flush()
        return found


def depths(store: Store, queue_id: int, resolution: str) -> list[tuple[int, int]]:
    points = store.history.of(queue_id, resolution, since=0, until=2**40).points
    return [(point.at, point.ready) for point in points]


def test_seconds_are_recorded_where_something_changed(store: Store, clock: Clock) -> None:
    jobs, idle = store.create_queue("jobs"), store.create_queue("idle")
    writer, began = Writer(store), int(clock.now)
    for _ in range(3):
        jobs.push_many([(b"x", 1)] * 10)
        assert writer.look() == 1
        assert writer.look() == 0  # the same second
        clock.advance(1)
    assert depths(store, jobs.id, "s") == [(began, 10), (began + 1, 20), (began + 2, 30)]
    clock.advance(97)
    jobs.pop_min()
    writer.look()
    # A second before it changed it still was as it had been: the rate of the last second is not smeared over the rest.
    assert depths(store, jobs.id, "s")[-2:] == [(began + 99, 30), (began + 100, 29)]
    assert depths(store, idle.id, "s") == depths(store, idle.id, "m") == []


def test_a_queue_that_does_nothing_writes_nothing(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push(b"x", priority=1)
    writer = Writer(store)
    for _ in range(8):  # until the verdict is that the item waits too long
        clock.advance(3_600)
        writer.look()
    before = everything(store)
    for _ in range(3):
        clock.advance(3_600)
        assert writer.look() == 0
    assert Writer(store).look() == 0  # its successor finds it written
    assert everything(store) == before


def test_minutes_and_hours_tell_what_waited_how_long_and_the_mix(store: Store, clock: Clock) -> None:
    jobs = store.create_queue("jobs", bands=[10])
    writer = Writer(store)
    jobs.push_many([(b"x", 1), (b"y", 50), (b"z", 60)])
    writer.look()
    clock.advance(60)
    jobs.pop_min()
    writer.look()
    (_, point) = store.history.of(jobs.id, "m", since=0, until=2**40).points
    assert (point.ready, point.arrived, point.left, point.mix) == (2, 3, 1, (0, 2))
    assert all(60_000 <= wait <= 90_000 for wait in point.waits_ms)
    assert point.oldest_at == int(clock.now) - 60
    assert len(depths(store, jobs.id, "h")) == 1
    clock.advance(3_600)
    jobs.pop_min()
    writer.look()
    assert [ready for _, ready in depths(store, jobs.id, "h")] == [3, 1]


def zlib_of(stream: bytes) -> bytes:
    return b"\x02" + zlib.compress(stream)


def points_of(store: Store, queue_id: int, resolution: str) -> list[Point]:
    return list(store.history.of(queue_id, resolution, since=0, until=2**40).points)


def test_the_mix_is_exact_however_small_a_share_is(store: Store) -> None:
    jobs = store.create_queue("jobs", bands=[10, 20])
    jobs.push_many([(b"x", 1)] * 2 + [(b"x", 15)] * 98 + [(b"x", 30)] * 900)
    Writer(store).look()
    (point,) = points_of(store, jobs.id, "m")
    assert point.mix == (2, 98, 900)


@pytest.mark.parametrize(("resolution", "outage"), [("s", 30), ("m", 300), ("h", 8_000)])
def test_what_happened_while_no_process_recorded_is_a_gap(
    store: Store, jobs: Queue, clock: Clock, resolution: str, outage: int
) -> None:
    jobs.push_many([(b"x", 1)] * 10)
    Writer(store).look()
    began = int(clock.now)
    clock.advance(outage)  # all processes are stopped; items come and go
    jobs.push_many([(b"x", 1)] * 1_000)
    jobs.pop_many(400)
    successor = Writer(store)
    successor.look()
    clock.advance(RESOLUTIONS[resolution].step)
    jobs.pop_min()
    successor.look()
    before, after, last = points_of(store, jobs.id, resolution)
    assert (before.at, before.ready, before.gap) == (began, 10, False)
    assert (after.at, after.ready, after.gap) == (began + outage, 610, True), "no depth before it, so no spike"
    assert (last.ready, last.gap) == (609, False)


def test_a_queue_that_stayed_as_it_was_has_no_gap(store: Store, clock: Clock) -> None:
    idle, busy = store.create_queue("idle"), store.create_queue("busy")
    idle.push(b"x", priority=1)
    writer = Writer(store)
    writer.look()
    clock.advance(600)
    busy.push(b"x", priority=1)
    writer.look()
    stopped = int(clock.now)
    clock.advance(60)
    successor = Writer(store)
    successor.look()
    clock.advance(60)
    idle.pop_min()
    successor.look()
    assert not any(point.gap for point in points_of(store, idle.id, "s"))
    # The next one changes while nothing records; until the sums were written last it was as before.
    clock.advance(60)
    idle.push(b"x", priority=1)
    busy.push(b"x", priority=1)
    Writer(store).look()
    ends = [(point.at, point.gap) for point in points_of(store, busy.id, "s")]
    assert ends == [(stopped, False), (stopped + 120, False), (stopped + 180, True)]


def test_a_short_restart_is_no_gap_between_points_that_are_further_apart(store: Store, clock: Clock) -> None:
    clock.advance(3_600 - clock.now % 3_600)
    jobs = store.create_queue("jobs")
    jobs.push(b"x", priority=1)
    Writer(store).look()
    clock.advance(20)
    jobs.push(b"x", priority=1)
    successor = Writer(store)
    successor.look()
    assert [point.gap for point in points_of(store, jobs.id, "s")] == [False, True]
    clock.advance(3_600)
    jobs.push(b"x", priority=1)
    successor.look()
    for resolution in ("m", "h"):
        assert not any(point.gap for point in points_of(store, jobs.id, resolution))


def test_sums_over_all_queues_go_on_across_recorders(store: Store, clock: Clock) -> None:
    first, second = store.create_queue("first"), store.create_queue("second")
    first.push_many([(b"x", 1)] * 10)
    second.push_many([(b"x", 1)] * 5)
    writer = Writer(store)
    writer.look()
    clock.advance(1)
    first.pop_many(4)
    second.push(b"x", priority=1)
    writer.look()
    late = store.create_queue("late")
    late.push(b"x", priority=1)
    clock.advance(1)
    writer.look()
    store.delete_queue("late")
    clock.advance(1)
    writer.look()
    points = points_of(store, ALL_QUEUES, "s")
    assert [point.ready for point in points] == [15, 12, 13, 12]
    assert [(point.arrived, point.left) for point in points] == [(0, 0), (1, 4), (1, 4), (1, 4)]
    clock.advance(60)
    first.pop_many(6)  # while nothing records
    successor = Writer(store)
    successor.look()
    clock.advance(1)
    second.pop_many(2)
    successor.look()
    *_, gap, last = points_of(store, ALL_QUEUES, "s")
    assert (gap.ready, gap.gap, gap.left) == (6, True, 4)
    assert (last.ready, last.gap, last.left) == (4, False, 6)
    assert len(points_of(store, ALL_QUEUES, "m")) == 2


def test_sums_begin_when_every_queue_was_read(store: Store, clock: Clock) -> None:
    queues = _create(store, FIRST + 5)
    _push_to(store, queues)
    writer = Writer(store)
    writer.look()
    assert points_of(store, ALL_QUEUES, "s") == []
    clock.advance(1)
    writer.look()
    assert [point.ready for point in points_of(store, ALL_QUEUES, "s")] == [FIRST + 5]


def test_sums_leave_out_no_queue_that_cannot_be_read(store: Store, clock: Clock) -> None:
    """After a restart: before, its last numbers are known."""
    first, second = store.create_queue("first"), store.create_queue("second")
    for queue in (first, second):
        queue.push_many([(b"x", 1)] * 10)
    Writer(store).look()
    keyspace = store.context.keyspace
    key = keyspace.configs.key(second.id)
    config = store.read(lambda tr: tr.get(key).wait())
    assert config is not None

    def write(record: bytes) -> None:
        def change(tr: Transaction) -> None:
            tr.set(key, record)
            tr.add(keyspace.queue(second.id).change, 1)

        store.transact(change)

    write(b"\xff")
    successor = Writer(store)
    for _ in range(5):
        clock.advance(1)
        first.pop_min()
        successor.look()
    assert [point.ready for point in points_of(store, ALL_QUEUES, "s")] == [20]
    write(config)
    clock.advance(1)
    successor.look()
    *_, last = points_of(store, ALL_QUEUES, "s")
    assert (last.ready, last.gap) == (15, True)


@pytest.mark.parametrize("damage", [b"\x02garbage", b"\x02", zlib_of(b"\x05\xff")])
def test_a_damaged_block_costs_its_own_time_only(store: Store, clock: Clock, damage: bytes) -> None:
    jobs, other = store.create_queue("jobs"), store.create_queue("other")
    jobs.push(b"x", priority=1)
    writer, began = Writer(store), int(clock.now)
    writer.look()
    clock.advance(7_200)
    jobs.push(b"x", priority=1)
    writer.look()
    blocks = store.context.kv.read(
        lambda tr: tr.get_range(*store.context.keyspace.history.below(jobs.id, "m"), limit=9).wait()
    )
    store.transact(lambda tr: tr.set(blocks[-1][0], damage))
    stretch = store.history.of(jobs.id, "m", since=began, until=began + 9_000)
    assert ([point.ready for point in stretch.points], len(stretch.damaged)) == ([1, 1], 1)
    clock.advance(60)
    jobs.push(b"x", priority=1)
    other.push(b"x", priority=1)
    successor = Writer(store)
    assert successor.look() == 2
    stretch = store.history.of(jobs.id, "m", since=began, until=began + 9_000)
    assert [(point.ready, point.gap) for point in stretch.points] == [(1, False), (1, False), (3, True)]
    assert store.history.at([jobs.id, other.id], "m", began + 30)[jobs.id].ready == 1


def test_how_queues_were_at_a_moment(store: Store, jobs: Queue, clock: Clock) -> None:
    writer, began = Writer(store), int(clock.now)
    for _ in range(3):
        jobs.push(b"x", priority=1)
        writer.look()
        clock.advance(7_200)
    for after, ready in ((0, 1), (7_199, 1), (7_200, 2), (99_999, 3)):
        assert store.history.at([jobs.id], "m", began + after)[jobs.id].ready == ready
    assert store.history.at([jobs.id], "m", began - 1) == {}


def test_whether_a_process_records_is_known(store: Store, clock: Clock) -> None:
    assert not store.history.is_recorded()
    elected = Candidate(store.context, UPKEEP, seconds=4)
    elected.step()
    assert store.history.is_recorded()
    clock.advance(60)
    assert not store.history.is_recorded(), "it has died"
    elected.step()
    elected.resign()
    assert not store.history.is_recorded()


def test_a_successor_continues_the_same_block(store: Store, jobs: Queue, clock: Clock) -> None:
    first = Writer(store)
    jobs.push(b"x", priority=1)
    first.look()
    clock.advance(1)
    jobs.push(b"x", priority=1)
    assert Writer(store).look() == 1
    assert [ready for _, ready in depths(store, jobs.id, "s")] == [1, 2]


def test_old_points_go(store: Store, jobs: Queue, clock: Clock) -> None:
    writer = Writer(store)
    for _ in range(40):
        jobs.push(b"x", priority=1)
        writer.look()
        clock.advance(60)
    seconds = depths(store, jobs.id, "s")
    assert clock.now - seconds[0][0] <= SECONDS.kept + 2 * SECONDS.block
    assert len(depths(store, jobs.id, "m")) == 40
    for _ in range(30):
        clock.advance(7_200)
        jobs.push(b"x", priority=1)
        writer.look()
    minutes = depths(store, jobs.id, "m")
    assert clock.now - minutes[0][0] <= MINUTES.kept + 2 * MINUTES.block
    assert store.history.size(jobs.id) < 64 * 1024


def test_a_stretch_says_how_the_queue_was_when_it_begins(store: Store, jobs: Queue, clock: Clock) -> None:
    writer, began = Writer(store), int(clock.now)
    jobs.push(b"x", priority=1)
    writer.look()
    clock.advance(500)
    stretch = store.history.of(jobs.id, "s", since=began + 100, until=began + 500)
    assert (list(stretch.points), stretch.before.ready) == ([], 1)


def test_a_clock_that_steps_back_leaves_no_points_of_the_future(store: Store, jobs: Queue, clock: Clock) -> None:
    writer = Writer(store)
    jobs.push(b"x", priority=1)
    clock.advance(86_400)
    writer.look()
    clock.advance(-86_400)
    jobs.push(b"x", priority=1)
    writer.look()
    clock.advance(1)
    jobs.push(b"x", priority=1)
    writer.look()
    assert [at <= clock.now for at, _ in depths(store, jobs.id, "s")] == [True, True]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("back", [61, 3_600, 3 * 3_600, 50 * 3_600])
def test_a_clock_that_steps_back_leaves_the_past(
    store: Store, jobs: Queue, clock: Clock, back: int, restarted: bool
) -> None:
    clock.advance(HOURS.block - clock.now % HOURS.block + 36 * 3_600 + 5)
    writer = Writer(store)
    for seconds in (3_600,) * 60 + (300,) * 13:
        clock.advance(seconds)
        jobs.push(b"x", priority=1)
        writer.look()
    before = {(of, r): depths(store, of, r) for of in (jobs.id, ALL_QUEUES) for r in RESOLUTIONS}
    clock.advance(-back)
    if restarted:
        writer = Writer(store)
    now = int(clock.now)
    for seconds in (0, 3_600):
        clock.advance(seconds)
        jobs.push(b"x", priority=1)
        writer.look()
    for (of, name), points in before.items():
        oldest = clock.now - RESOLUTIONS[name].kept
        kept = [point for point in depths(store, of, name) if point[0] >= oldest]
        past = [point for point in points if oldest <= point[0] < now]
        assert kept[: len(past)] == past
        assert kept[-1] == (int(clock.now), 75)
        assert [at for at, _ in kept] == sorted({at for at, _ in kept})


def test_of_many_queues_those_that_change_come_first_and_all_in_turn(store: Store, clock: Clock) -> None:
    many = HOT + OTHERS + 5
    _create(store, many)
    busy = store.queue("q7")
    writer = Writer(store)
    busy.push(b"x", priority=1)
    for _ in range(3):  # by then each had its turn
        writer.look()
        clock.advance(1)
    for _ in range(4):
        busy.push(b"x", priority=1)
        assert writer.look() == 1
        clock.advance(1)
    assert len(depths(store, busy.id, "s")) >= 5
    late = store.queue(f"q{many - 1}")
    late.push(b"x", priority=1)
    for _ in range(2):
        writer.look()
        clock.advance(1)
    assert len(depths(store, late.id, "s")) == 1


def test_the_first_round_over_many_queues_takes_its_time(store: Store, clock: Clock) -> None:
    queues = _create(store, HOT + OTHERS + FIRST)
    _push_to(store, queues)
    recorder, found = store.recorder(), []
    for _ in range(4):
        found.append(recorder.look())
        clock.advance(1)
    assert max(found) == FIRST
    assert sum(found) == len(queues), "each had its turn"


def test_what_a_screen_has_read_is_not_read_again(store: Store, clock: Clock) -> None:
    jobs, recorder = store.create_queue("jobs"), store.recorder()

    def cost_of_a_look() -> int:
        clock.advance(1)
        before = store.context.kv.reads()
        assert recorder.look() == 1
        return store.context.kv.reads() - before

    clock.advance(60 - clock.now % 60)  # what is due once a minute comes with the first look
    jobs.push(b"x", priority=1)
    cost_of_a_look()
    jobs.push(b"x", priority=1)
    alone = cost_of_a_look()
    jobs.push(b"x", priority=1)
    screen = store.snapshot([jobs.id])
    shared = cost_of_a_look()
    assert screen.queues[jobs.id].totals.ready == 3
    assert shared <= 3, "whether there are other queues, and the change of this one"
    jobs.push(b"x", priority=1)
    assert cost_of_a_look() == alone > shared, "it has changed since"
    recorder.flush()
    assert [ready for _, ready in depths(store, jobs.id, "s")] == [1, 2, 3, 4]


def test_a_queue_that_a_screen_saw_change_is_looked_at_next(store: Store, clock: Clock) -> None:
    queues = _create(store, 2 * (HOT + OTHERS))
    recorder = store.recorder()
    recorder.look()
    last = queues[-1]
    last.push(b"x", priority=1)
    screen = store.snapshot([last.id])
    last.push(b"x", priority=1)
    screen = store.snapshot([last.id], previous=screen)
    clock.advance(1)
    assert recorder.look() == 1
    recorder.flush()
    assert [ready for _, ready in depths(store, last.id, "s")] == [screen.queues[last.id].totals.ready]


def test_attached_and_deleted_queues_take_no_place_of_busy_ones(store: Store, clock: Clock) -> None:
    queues = sorted(_create(store, 2 * (HOT + OTHERS)), key=lambda queue: queue.id)  # in the order of their turns
    busy, gone = queues[0], queues[-HOT:]
    others = [store.attach(f"legacy{n}", prefix=("legacy", n)) for n in range(HOT)]
    recorder = store.recorder()
    _push_to(store, [busy])
    recorder.look()  # the rest have their turns for a while
    for queue in others:
        queue.push(b"x", priority=1)
    seen = [queue.id for queue in (*others, *gone)]
    before = store.snapshot(seen)
    for queue in others:
        queue.push(b"x", priority=0)
    _push_to(store, [busy, *gone])
    screen = store.snapshot(seen, previous=before)
    for queue in gone:
        store.delete_queue(queue.name)
    clock.advance(1)
    assert recorder.look() == 1
    recorder.flush()
    assert [ready for _, ready in depths(store, busy.id, "s")] == [1, 2]
    assert len(screen.queues) == 2 * HOT, "they were read and are kept"


@pytest.mark.parametrize("seen", [False, True])
def test_nothing_is_written_of_a_queue_that_was_swept(store: Store, clock: Clock, *, seen: bool) -> None:
    """It would stay for ever, and the doctor would take it for damage."""
    jobs, recorder = store.create_queue("jobs"), store.recorder()
    for _ in range(2):
        jobs.push_many([(b"x", 1)] * 1_000)
        recorder.look()
        clock.advance(3_600)
    store.actions("ann", keep=0).delete_queue("jobs", confirm="jobs")
    sweep_trash(store)
    if seen:
        recorder.look()
    recorder.flush()
    assert not store.history.of(jobs.id, "s", since=0, until=2**40).points
    assert store.doctor.examine().findings == store.doctor.examine().notes == ()


def test_what_was_read_in_a_transaction_that_never_was_is_not_recorded(store: Store) -> None:
    jobs, recorder = store.create_queue("jobs"), store.recorder()
    kept = []

    def push_in_vain(tr: Transaction) -> None:
        jobs.push_many([(b"x", 1)] * 5, tr=tr)
        kept.extend(store.snapshot([jobs.id], tr=reads) for reads in (tr, tr.snapshot))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.transact(push_in_vain)
    jobs.push(b"x", priority=1)
    recorder.look()
    recorder.flush()
    assert [ready for _, ready in depths(store, jobs.id, "s")] == [1]
    assert kept[0].queues[jobs.id].totals.ready == 5


def _push_to(store: Store, queues: list[Queue]) -> None:
    store.transact(lambda tr: [queue.push(b"x", priority=1, tr=tr) for queue in queues])


def _create(store: Store, many: int) -> list[Queue]:
    return store.transact(lambda tr: [store.create_queue(f"q{n}", tr=tr) for n in range(many)])


def test_a_queue_that_is_gone_for_good_takes_its_history_along(store: Store, jobs: Queue, clock: Clock) -> None:
    writer = Writer(store)
    jobs.push(b"x", priority=1)
    writer.look()
    store.actions("ann").delete_queue("jobs", confirm="jobs")
    clock.advance(1)
    writer.look()
    assert store.history.size(jobs.id) > 0  # it may come back
    clock.advance(40 * 86_400)
    while sweep_trash(store, limit=1_000):
        pass
    assert store.history.size(jobs.id) == 0


def test_points_wait_and_are_written_together_with_a_later_look(store: Store, jobs: Queue, clock: Clock) -> None:
    count = Clock(0.0)
    writer = Recorder(store.context, count=count)
    for _ in range(3):
        jobs.push(b"x", priority=1)
        writer.look()
        clock.advance(1)
        count.advance(1)
    assert depths(store, jobs.id, "s") == []
    count.advance(FLUSH)
    writer.look()
    assert [ready for _, ready in depths(store, jobs.id, "s")] == [1, 2, 3]


def test_a_recorder_that_is_no_longer_elected_writes_nothing(store: Store, jobs: Queue) -> None:
    def check(tr: ReadTransaction) -> None:
        raise NotElected("not you")

    writer = Recorder(store.context, check=check)
    jobs.push(b"x", priority=1)
    writer.look()
    with pytest.raises(NotElected):
        writer.flush()
    assert store.history.size(jobs.id) == 0
