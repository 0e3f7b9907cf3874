"""Staging round by round: one process executes pops for all, for any requests and any clocks of other processes."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from queues import Queue, Store, open_store
from queues.errors import TooLarge
from queues.model.ids import at
from queues.operations.open_queue import OpenQueue
from queues.operations.pop import PopRequest
from queues.serving import staging, staging_records
from queues.serving.background import BackgroundThreads
from queues.serving.staging import Staging
from tests import cluster
from tests.conftest import Clock
from tests.step_by_step import CONCURRENT

LARGE = 90_000


@pytest.fixture
def theirs() -> Clock:
    """The clock of the process that asks, two minutes behind."""
    return Clock(Clock().now - 120)


@pytest.fixture(params=CONCURRENT)
def processes(request: pytest.FixtureRequest, clock: Clock, theirs: Clock) -> Iterator[tuple[Store, Store]]:
    """Two stores on the same keys, as two processes have them open whose clocks differ."""
    url = cluster.fresh() if request.param == "cluster" else f"memory:{secrets.token_hex(8)}"
    with open_store(url, clock=clock) as first, open_store(url, clock=theirs) as second:
        yield first, second


@pytest.fixture
def jobs(processes: tuple[Store, Store]) -> tuple[Queue, Queue]:
    """The same queue in both."""
    first, second = processes
    return first.create_queue("jobs"), second.queue("jobs")


class Rounds(BackgroundThreads):
    """No rounds but those of the test, in no time."""

    def start(self, work: Callable[[], None], name: str) -> None:
        """Start nothing."""

    def now(self) -> float:
        return 0.0


class Fulfilling:
    """A process that executes pops for all, one round after the other."""

    def __init__(self, queue: Queue) -> None:
        opened = OpenQueue(replace(queue.opened.context, background_threads=Rounds()), queue.config)
        found = opened.batch(PopRequest)
        assert isinstance(found, Staging)
        self.part, self.queue = found, queue
        queue.push(b"conflict", priority=-1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(staging, "CONFLICTS", 0)
            assert self.round(take(queue)) == [[b"c"]]

    def round(self, *takes: PopRequest) -> list[list[bytes]]:
        """Serve its own takes, and requests of other processes; return the values that the takes got."""
        idle = PopRequest(self.queue.id, 0, "min", self.queue.opened.context.clock.now_ms())
        answers = self.part.conduct(self.queue.opened.context.kv.transact, takes or (idle,))
        return [[item.value[:1] for item in taken or ()] for taken in answers]


def take(queue: Queue, n: int = 1) -> PopRequest:
    return PopRequest(queue.id, n, "min", queue.opened.context.clock.now_ms())


def ask(queue: Queue, n: int = 1, *, later_ms: int = 0) -> tuple[int, bytes]:
    """Write down that a process wants so many, as if the request after those made before."""
    ms, request = queue.opened.context.clock.now_ms() + later_ms, secrets.token_bytes(16)
    record, _ = staging_records.encode_takes([take(queue, n)])
    queue.opened.context.kv.transact(
        lambda tr: staging_records.ask(tr, queue.opened.keys, ms=ms, request=request, record=record)
    )
    return ms, request


def got(queue: Queue, asked: tuple[int, bytes]) -> list[bytes] | None:
    """Collect what a request got; None when it was not answered."""
    ms, request = asked
    found = queue.opened.context.kv.transact(
        lambda tr: staging_records.collect(tr, queue.opened.keys, ms=ms, request=request)
    )
    if found is None:
        return None
    (answer,) = staging_records.decode_answers(found, [take(queue)], queue.config)
    return [item.value[:1] for item in answer or ()]


def values(numbers: Sequence[int], size: int = 1) -> list[tuple[bytes, int]]:
    return [(bytes([65 + n]) * size, n) for n in numbers]


def letters(numbers: Sequence[int]) -> list[bytes]:
    return [bytes([65 + n]) for n in numbers]


def test_a_request_of_more_than_a_megabyte_holds_nothing_up(jobs: tuple[Queue, Queue]) -> None:
    first, second = jobs
    first.push_many(values(range(13), LARGE))
    first.push_many(values(range(13, 17)))
    fulfilling = Fulfilling(first)
    large, small = ask(second, 13), ask(second, later_ms=1)
    assert fulfilling.round() == [[]], "there is no room for it behind other requests"
    assert fulfilling.round(take(first)) == [], "so it comes before them"
    assert fulfilling.round(take(first)) == [letters([13])]
    assert got(second, large) == letters(range(13))
    assert got(second, small) == letters([14])


def test_what_is_left_for_want_of_room_does_not_keep_out_our_own(jobs: tuple[Queue, Queue]) -> None:
    first, second = jobs
    for begin in range(0, 39, 13):
        first.push_many([(bytes([65 + n]) * LARGE, n) for n in range(begin, begin + 13)])
    first.push_many(values(range(39, 42)))
    fulfilling = Fulfilling(first)
    asked = [ask(second, 13, later_ms=n) for n in range(2)]
    own = [fulfilling.round(take(first)) for _ in range(4)]
    assert [len(answers) for answers in own] == [1, 0, 1, 0], "every other round is ours first"
    assert [len(got(second, one) or ()) for one in asked] == [13, 13]


def test_a_request_that_cannot_be_served_fails_its_own_process_only(jobs: tuple[Queue, Queue]) -> None:
    first, second = jobs
    for n in range(60):
        first.push(b"L" * LARGE, priority=n)
    fulfilling = Fulfilling(first)
    asked = ask(second, 60)
    assert [fulfilling.round(take(first)) for _ in range(3)] == [[[b"L"]], [], [[b"L"]]]
    ms, request = asked
    keys = second.opened.keys
    found = second.opened.context.kv.transact(lambda tr: staging_records.collect(tr, keys, ms=ms, request=request))
    assert found is not None
    assert staging_records.decode_answers(found, [take(second)], second.config) == [], "it is to try by itself"
    with pytest.raises(TooLarge):
        second.pop_many(58)
    assert first.depth() == 58


def test_a_process_whose_clock_is_behind_is_served(jobs: tuple[Queue, Queue]) -> None:
    first, second = jobs
    first.push_many(values(range(3)))
    fulfilling = Fulfilling(first)
    asked = ask(second)
    fulfilling.round()
    assert got(second, asked) == [b"A"]


def test_what_lay_there_for_long_when_a_process_becomes_fulfiller_is_left(
    jobs: tuple[Queue, Queue], theirs: Clock
) -> None:
    first, second = jobs
    first.push_many(values(range(3)))
    asked = ask(second)
    fulfilling = Fulfilling(first)
    assert [fulfilling.round(take(first)) for _ in range(2)] == [[[b"A"]], [[b"B"]]]
    assert got(second, asked) is None


def test_a_pause_that_ends_is_judged_by_the_fulfillers_clock(jobs: tuple[Queue, Queue], clock: Clock) -> None:
    first, second = jobs
    first.push_many(values(range(3)))
    fulfilling = Fulfilling(first)
    first.pause(reason="a minute", until=at(int((clock.now + 60) * 1000)))
    clock.advance(61)
    asked = ask(second)
    assert fulfilling.round(take(first)) == [[b"A"]]
    assert got(second, asked) == [b"B"]
