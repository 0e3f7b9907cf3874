"""One store, one time: processes whose own clocks are wrong neither end leases nor release delays early."""

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from queues import Store, open_store
from queues.errors import StaleLease, StoreFull
from queues.keys.keyspace import Keyspace
from queues.kv import open_kv
from queues.kv.port import Count
from queues.serving.background import BackgroundThreads
from queues.serving.clock import StoreClock
from tests.conftest import Clock, store_url
from tests.programs import run_to_end
from tests.sweeps import sweep_slots

HOUR, DAY, YEAR = 3_600.0, 86_400.0, 365 * 86_400.0
START = 1_800_000_000.0


class Machines:
    """A database whose count all processes read, and processes on it with clocks of their own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.epoch = "first"
        #: Seconds that have really passed; what the database counts; and each process's machine.
        self.passed, self.counted = 1_000.0, 5_000.0
        self._open = ExitStack()

    def count(self) -> Count:
        """Return what the database counts."""
        return Count(epoch=self.epoch, micros=int(self.counted * 1e6))

    def advance(self, seconds: float) -> None:
        """Let time pass, for all alike."""
        self.passed += seconds
        self.counted += seconds

    def process(self, *, ahead: float = 0.0, wall: Callable[[], float] | None = None) -> Store:
        """Open the store in a process whose wall clock is so many seconds ahead."""
        began = self.passed
        return self._open.enter_context(
            open_store(
                self.url,
                wall=wall or (lambda: START + self.passed - 1_000.0 + ahead),
                count=self.count,
                elapsed=lambda: self.passed - began + 77.0,
            )
        )

    def restart(self) -> None:
        """End all processes."""
        self._open.close()

    def true(self, seconds: float = 0.0) -> float:
        """Return what a clock that is right shows, so many seconds later."""
        return START + self.passed - 1_000.0 + seconds


@pytest.fixture
def machines(engine: str, tmp_path: Path) -> Iterator[Machines]:
    """A fresh store on each engine, which tests open as several processes."""
    if engine != "simulated":
        made = Machines(store_url(engine, tmp_path))
        yield made
        made.restart()
        return
    url = f"memory:{tmp_path.name}"
    kept = open_kv(url)  # while no process has it open
    made = Machines(url)
    yield made
    made.restart()
    kept.close()


def at(store: Store) -> float:
    """Return the time by a store's clock."""
    return store.now().timestamp()


def close(store: Store, expected: float, within: float = 0.01) -> None:
    """Assert what a store's clock shows."""
    assert at(store) == pytest.approx(expected, abs=within)


def calibrate(*stores: Store) -> None:
    """Have processes read the store's clock now."""
    for store in stores:
        store.clock.calibrate()


def anchor(store: Store) -> bytes | None:
    """Return the anchor as it lies in the store."""
    return store.read(lambda tr: tr.get(Keyspace(("pq",)).clock).wait())


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
@pytest.mark.parametrize("first", ["right", "wrong"])
def test_a_lease_stays_with_its_holder_whatever_other_clocks_say(machines: Machines, ahead: float, first: str) -> None:
    if first == "right":
        right, wrong = machines.process(), machines.process(ahead=ahead)
    else:
        wrong, right = machines.process(ahead=ahead), machines.process()
    here, there = right.create_queue("jobs"), wrong.queue("jobs")
    here.push(b"once", priority=1)
    lease = here.lease(seconds=600)
    for _ in range(11):
        machines.advance(54.0)
        calibrate(right, wrong)
        wrong.sweep()
        assert not there.lease(seconds=600)
        assert there.pop_min() is None
        assert here.depth("leased") == 1
    here.ack(lease)
    assert here.find(lease.item.id) is None


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_a_lease_expires_for_all_at_the_same_time(machines: Machines, ahead: float) -> None:
    right, wrong = machines.process(), machines.process(ahead=ahead)
    here, there = right.create_queue("jobs"), wrong.queue("jobs")
    here.push(b"once", priority=1)
    there.push(b"twice", priority=2)
    mine, theirs = here.lease(seconds=600), there.lease(seconds=600)
    machines.advance(599.0)
    assert (here.expire(), there.expire()) == (0, 0)
    machines.advance(1.1)
    assert there.expire() == 2
    assert len(there.lease_many(seconds=600, n=2)) == 2
    for queue, lease in ((here, mine), (there, theirs)):
        with pytest.raises(StaleLease):
            queue.ack(lease)


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_a_delay_ends_for_all_at_the_same_time(machines: Machines, ahead: float) -> None:
    right, wrong = machines.process(), machines.process(ahead=ahead)
    here, there = right.create_queue("jobs"), wrong.queue("jobs")
    here.push(b"a", priority=1, delay=timedelta(seconds=600))
    there.push(b"b", priority=2, delay=timedelta(seconds=600))
    there.push(b"c", priority=3, due=right.now() + timedelta(seconds=600))
    machines.advance(599.0)
    wrong.sweep()
    assert (here.promote(), there.pop_min()) == (0, None)
    machines.advance(1.1)
    right.sweep()
    assert [there.pop_min().value for _ in range(3)] == [b"a", b"b", b"c"]


def test_ids_and_the_audit_have_the_time_of_the_store(machines: Machines) -> None:
    machines.process()
    wrong = machines.process(ahead=HOUR)
    queue = wrong.create_queue("jobs")
    pushed = queue.push(b"value", priority=1)
    assert pushed.pushed_at.timestamp() == pytest.approx(machines.true(), abs=0.01)
    wrong.actions("boss").pause("jobs", reason="")
    entry = wrong.audit.entries().entries[0]
    assert entry.at.timestamp() == pytest.approx(machines.true(), abs=0.01)


def test_a_clock_that_is_days_ahead_sweeps_no_slot_of_a_living_client(machines: Machines) -> None:
    """Slots tell a client of a cluster the result of its commits: a lost one has work done twice."""
    store = machines.process()
    wrong = machines.process(ahead=3 * DAY)
    store.create_queue("jobs").push(b"value", priority=1)
    assert sweep_slots(wrong) == 0
    machines.advance(DAY + 60.0)
    assert (sweep_slots(wrong) > 0) == (store.size()[1] == 0), "an embedded store has none"


def test_the_time_goes_on_through_restarts(machines: Machines) -> None:
    machines.process()
    for ahead in (HOUR, -HOUR, YEAR):
        machines.advance(120.0)
        machines.restart()
        machines.advance(300.0)
        close(machines.process(ahead=ahead), machines.true())


def test_setting_the_clock_of_a_running_process_changes_nothing(machines: Machines) -> None:
    wall = Clock(machines.true())
    store = machines.process(wall=wall)
    before = at(store)
    for step in (HOUR, -2 * HOUR, YEAR):
        wall.advance(step)
        machines.advance(20.0)
        calibrate(store)
    assert at(store) == pytest.approx(before + 60.0, abs=0.01)
    assert store.skew == pytest.approx(wall.now - at(store))


# Reboots and recoveries


def reboot(machines: Machines) -> None:
    """Begin another epoch, with no process left."""
    machines.restart()
    machines.epoch, machines.counted = machines.epoch + "'", 3.0


def test_after_a_reboot_the_machines_clock_counts(machines: Machines) -> None:
    machines.process()
    reboot(machines)
    machines.advance(HOUR)
    close(machines.process(), machines.true())


def test_after_a_reboot_with_its_clock_in_the_past_time_goes_on_from_where_it_was(machines: Machines) -> None:
    queue = machines.process().create_queue("jobs")
    queue.push(b"once", priority=1)
    queue.lease(seconds=600)
    last = machines.true()
    reboot(machines)
    machines.advance(30.0)
    store = machines.process(wall=lambda: 0.0)
    close(store, last)
    assert store.queue("jobs").expire() == 0
    machines.advance(601.0)
    assert store.queue("jobs").expire() == 1


def test_a_count_that_begins_anew_without_saying_so_sets_no_time_back(machines: Machines) -> None:
    """Some systems do not tell one start of the machine from another."""
    machines.process()
    machines.advance(HOUR)
    machines.restart()
    machines.counted = 3.0
    close(machines.process(), machines.true())


def test_a_clock_that_was_a_year_ahead_once_does_not_stay_so(machines: Machines) -> None:
    close(machines.process(ahead=YEAR), machines.true(YEAR))
    reboot(machines)
    close(machines.process(), machines.true())


def test_a_recovery_of_the_cluster_moves_no_times(machines: Machines) -> None:
    """Its versions go a hundred seconds ahead at once, and count anew from there."""
    one, two = machines.process(), machines.process()
    queue = one.create_queue("jobs")
    queue.push(b"once", priority=1)
    queue.lease(seconds=110)
    machines.advance(5.0)
    machines.epoch, machines.counted = "second", machines.counted + 100.0
    machines.advance(5.0)
    calibrate(one)
    for store in (one, two, machines.process(ahead=HOUR)):
        calibrate(store)
        close(store, machines.true())
        store.sweep()
        assert queue.depth("leased") == 1
    machines.advance(100.1)
    assert queue.expire() == 1


def test_a_process_that_knew_the_time_all_along_overrules_one_that_begins_anew(machines: Machines) -> None:
    """After a recovery the first process to read the clock was just started, and its own clock is wrong."""
    known = machines.process()
    machines.advance(5.0)
    machines.epoch, machines.counted = "second", machines.counted + 100.0
    wrong = machines.process(ahead=HOUR)
    machines.advance(5.0)
    calibrate(known, wrong)
    close(known, machines.true())
    close(wrong, machines.true())


def test_a_process_whose_machine_was_stopped_moves_no_times(machines: Machines) -> None:
    """A paused virtual machine counts no time, the cluster does."""
    stopped = machines.process()
    machines.advance(5.0)
    before = at(stopped)
    machines.counted += 90.0
    calibrate(stopped)
    assert at(stopped) == pytest.approx(before + 90.0, abs=0.1)
    close(machines.process(ahead=90.0), machines.true(90.0), within=0.1)


# Following, and setting


def test_time_follows_clocks_that_are_nearly_right_slowly_and_never_goes_back(machines: Machines) -> None:
    first = machines.process(ahead=20.0)
    second = machines.process()
    previous, gone = at(second), second.skew
    for _ in range(60):
        machines.advance(61.0)
        calibrate(second, first)
        assert at(second) >= previous + 60.9, "by at most 0.5 ms a second"
        previous = at(second)
    assert gone == pytest.approx(-20.0, abs=0.01)
    assert -19.0 < second.skew < -18.0


def test_a_step_back_is_waited_for(machines: Machines) -> None:
    store, other = machines.process(), machines.process(ahead=-1.0)
    before = at(store)
    other.clock.set()
    calibrate(store)
    assert at(store) == before
    machines.advance(0.5)
    assert at(store) == before
    machines.advance(1.0)
    close(store, machines.true(-1.0))


def test_setting_the_stores_clock_reaches_running_processes(
    machines: Machines, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = machines.process(ahead=YEAR)
    right = machines.process()
    close(right, machines.true(YEAR))
    assert right.clock.set() == pytest.approx(-YEAR, abs=0.1)
    calibrate(wrong)
    close(wrong, machines.true())
    close(right, machines.true())
    close(machines.process(), machines.true())
    assert "The store's clock was set back by 365 d 0 h." in caplog.text


def test_time_follows_clocks_that_all_agree_for_an_hour(machines: Machines) -> None:
    """The clock of the first process was wrong: that must not last for ever."""
    first = machines.process(ahead=-DAY)
    machines.restart()
    first, second = machines.process(), machines.process(ahead=0.5)
    for _ in range(58):
        machines.advance(61.0)
        calibrate(first, second)
        close(first, machines.true(-DAY), within=1.0)
    for _ in range(4):
        machines.advance(61.0)
        calibrate(first, second)
    close(first, machines.true(), within=1.0)
    close(second, machines.true(), within=1.0)


def test_one_process_that_agrees_with_the_store_is_enough_to_keep_its_time(machines: Machines) -> None:
    right, wrong = machines.process(), machines.process(ahead=HOUR)
    for n in range(180):
        machines.advance(61.0)
        calibrate(wrong, *([right] if n % 20 == 0 else []))
    calibrate(right, wrong)
    close(right, machines.true(), within=1.0)
    close(wrong, machines.true(), within=1.0)


def test_a_skewed_process_says_so_once(machines: Machines, caplog: pytest.LogCaptureFixture) -> None:
    machines.process()
    wrong = machines.process(ahead=HOUR)
    for _ in range(5):
        machines.advance(61.0)
        calibrate(wrong)
    assert wrong.skew == pytest.approx(HOUR, abs=1.0)
    says = "This process's clock is 1 h 0 min ahead of the store's; times follow the store's clock."
    assert [record.message for record in caplog.records].count(says) == 1


# When it is read and written


def test_a_process_that_is_idle_reads_and_writes_nothing(machines: Machines) -> None:
    store = machines.process()
    kv, before = store.context.kv, anchor(store)
    reads = kv.reads()
    machines.advance(DAY)
    assert kv.reads() == reads
    assert anchor(store) == before


def test_a_process_that_uses_the_store_reads_its_clock_behind_the_callers_back(machines: Machines) -> None:
    store, other = machines.process(), machines.process(ahead=-10.0)
    other.clock.set()
    machines.advance(11.0)
    until = time.monotonic() + 30.0
    store.transact(lambda tr: store.now())  # inside a transaction too
    while at(store) > machines.true(-9.9):
        assert time.monotonic() < until, "the clock was never read"
        time.sleep(0.001)


class Later(BackgroundThreads):
    """Work that is begun beside the callers, and never gets its turn."""

    def start(self, work: Callable[[], None], name: str) -> None:
        """Leave the work where it is."""


def test_a_clock_that_is_set_while_a_call_wants_a_reading_stays_set(machines: Machines) -> None:
    keyspace, wall, meanwhile = Keyspace(("pq",)), Clock(), list[Callable[[], object]]()

    def elapsed() -> float:
        if meanwhile:
            meanwhile.pop(0)()
        return machines.passed

    with closing(open_kv(machines.url, slots=keyspace.slots)) as kv:
        clock = StoreClock(kv, keyspace, wall=wall, count=machines.count, elapsed=elapsed, background_threads=Later())
        clock.open()
        machines.advance(11.0)
        wall.advance(HOUR)
        meanwhile += [lambda: None, clock.set]
        clock()
        assert not meanwhile
        assert clock() == pytest.approx(wall(), abs=0.01)


def test_an_anchor_that_cannot_be_written_is_told_once_a_minute(
    machines: Machines, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **how: object) -> None:
        raise StoreFull("The disk is full.")

    store = machines.process()
    machines.advance(61.0)
    monkeypatch.setattr(store.context.kv, "transact", refuse)
    for _ in range(13):
        calibrate(store)
        machines.advance(10.0)
    close(store, machines.true())
    assert caplog.text.count("could not be written") == 3


def test_a_forked_child_closes_the_store_though_a_reading_was_under_way(tmp_path: Path) -> None:
    reading, forked = threading.Event(), threading.Event()
    slow = False

    def count() -> Count:
        if slow:
            reading.set()
            forked.wait(30.0)
        return Count(epoch="first", micros=1)

    with open_store(f"lmdb:{tmp_path / 'store'}", count=count) as store:
        slow = True
        thread = threading.Thread(target=calibrate, args=(store,))
        thread.start()
        assert reading.wait(30.0)
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # ends it where it hangs
            store.now()
            store.close()
            os._exit(0)
        forked.set()
        assert os.waitpid(child, 0)[1] == 0
        thread.join()


def test_the_anchor_is_written_at_most_once_a_minute(machines: Machines) -> None:
    stores = [machines.process(ahead=n / 10) for n in range(3)]
    written = {anchor(stores[0])}
    for _ in range(60):
        machines.advance(10.0)
        calibrate(*stores)
        written.add(anchor(stores[0]))
    assert 8 <= len(written) <= 12


def test_an_anchor_that_two_refresh_at_once_is_one_time(machines: Machines) -> None:
    stores = [machines.process(ahead=ahead) for ahead in (0.0, 1.0, -HOUR, HOUR)]
    for _ in range(5):
        machines.advance(120.0)
        together = threading.Barrier(len(stores))

        def refresh(store: Store, together: threading.Barrier = together) -> None:
            together.wait()
            calibrate(store)

        threads = [threading.Thread(target=refresh, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        calibrate(*stores)
        times = [at(store) for store in stores]
        assert max(times) - min(times) < 0.001
    close(stores[0], machines.true(), within=1.0)


@pytest.mark.parametrize("damage", [b"", b"\x01", b"\xff" * 40, b"\x01\x00\x00\x02{}", b"\x01\x00\x00\x02[]"])
def test_a_damaged_anchor_is_written_anew(machines: Machines, damage: bytes) -> None:
    store = machines.process(ahead=HOUR)
    queue = store.create_queue("jobs")
    queue.push(b"once", priority=1)
    queue.lease(seconds=600)

    def spoil() -> None:
        store.transact(lambda tr: tr.set(Keyspace(("pq",)).clock, damage))

    spoil()
    machines.advance(20.0)
    calibrate(store)
    close(store, machines.true(HOUR))  # it knows the time
    assert anchor(store) != damage
    spoil()
    machines.restart()
    opened = machines.process()
    close(opened, machines.true())  # no process does
    assert opened.queue("jobs").depth("leased") == 1


def test_a_copy_begins_a_time_of_its_own(engine: str, tmp_path: Path) -> None:
    from queues.tools.copy import copy_store

    source, target = f"lmdb:{tmp_path / 'a'}", f"lmdb:{tmp_path / 'b'}"
    with open_store(source, wall=lambda: time.time() + HOUR) as store:
        store.create_queue("jobs").push(b"value", priority=1)
        copy_store(source, target)
        assert abs(store.skew) < 0.5, "the first process begins the time"
    with open_store(target) as copied:
        assert abs(copied.skew) < 0.5
        assert copied.queue("jobs").depth() == 1


# The counts of the engines


def test_all_openers_of_a_store_read_one_count(engine: str, tmp_path: Path) -> None:
    url = f"memory:{tmp_path.name}" if engine == "simulated" else store_url(engine, tmp_path)
    with open_store(url) as one, open_store(url) as two:
        counts = [store.context.kv.count() for store in (one, two, one, two)]
        assert len({count.epoch for count in counts}) == 1
        assert [count.micros for count in counts] == sorted(count.micros for count in counts)
        began, first, between = time.monotonic(), one.context.kv.count().micros, time.monotonic()
        time.sleep(0.2)
        later, last, ended = time.monotonic(), two.context.kv.count().micros, time.monotonic()
        assert later - between - 0.1 < (last - first) / 1e6 < ended - began + 0.1


PROGRAM = """
import sys, time
from queues import open_store
with open_store(sys.argv[1]) as store:
    queue = store.queue("jobs")
    store.sweep()
    skew = time.time() - store.now().timestamp()
    print(len(queue.lease_many(1, seconds=600)), queue.pop_min(), round(store.skew), round(skew))
"""


@pytest.mark.skipif(shutil.which("faketime") is None, reason="no faketime")
@pytest.mark.parametrize(("offset", "skew"), [("+1h", 3600), ("-1h", -3600)])
def test_a_program_on_a_machine_with_a_wrong_clock_steals_nothing(url: str, offset: str, skew: int) -> None:
    with open_store(url) as store:
        queue = store.create_queue("jobs")
        queue.push(b"leased", priority=1)
        queue.push(b"later", priority=2, delay=timedelta(seconds=600))
        lease = queue.lease(seconds=600)
        done = run_to_end(
            ["faketime", "-f", offset, sys.executable, "-c", PROGRAM, url],
            env=os.environ | {"DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"},
            check=True,
        )
        assert done.stdout.split() == ["0", "None", str(skew), str(skew)]
        queue.ack(lease)
        assert datetime.now(UTC) - store.now() < timedelta(seconds=1)
