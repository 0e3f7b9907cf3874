"""The words of rows change only when there is something new to say."""

from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from pqadmin.live.board.board import Board
from pqadmin.live.words import trend_words, verdict_words
from queues import Queue, Store, open_store
from tests.conftest import Clock

QUEUES, MOST = 33, 30


@pytest.fixture
def store(clock: Clock) -> Iterator[Store]:
    """A store whose time the test gives."""
    with open_store("memory:", clock=clock) as opened:
        yield opened


def second(queue: Queue, kind: int, random: Random) -> None:
    """Let a second of one queue's traffic pass: bursts, steady flow, failures, leaks, or no consumer."""
    if kind == 0:
        return
    pushes = random.choice((0, 0, 0, 12)) if kind == 1 else random.randint(0, 6)
    if pushes:
        queue.push_many([(b"x", random.randint(0, 9)) for _ in range(pushes)])
    if kind == 4:
        return
    takes = random.randint(0, 4 if kind == 2 else 7)
    if kind == 3:
        for lease in queue.lease_many(max(1, takes // 2), seconds=30):
            if random.random() < 0.5:
                queue.release(lease, reason="no", count_attempt=False)
            else:
                queue.ack(lease)
    elif takes:
        queue.pop_many(takes)


@pytest.mark.slow
def test_words_of_33_busy_rows_change_30_times_in_two_minutes_at_the_most(store: Store, clock: Clock) -> None:
    random, board = Random(7), Board()
    queues = [store.create_queue(f"q:{n:02}") for n in range(QUEUES)]
    for queue in queues:
        queue.push_many([(b"x", 1)] * 30)
        queue.pop_many(10)
    board.put_directory(store.directory(), 1)
    ids = [queue.id for queue in queues]
    recorder = store.recorder(count=clock)
    shown: dict[int, Any] = {}
    changes: list[int] = []
    for now in range(360):
        clock.advance(1)
        for n, queue in enumerate(queues):
            second(queue, n % 5, random)
        if not now % 10:
            store.context.presence.beat()  # its thread beats by the time of the machine, which is another one here
        recorder.look()
        board.apply(store.snapshot(ids, previous=board.previous(ids)), clock())
        at = datetime.fromtimestamp(clock(), UTC)
        for queue_id in ids:
            row = board.row(queue_id, clock())
            words = verdict_words(row, at), trend_words(row)
            if shown.get(queue_id, words) != words:
                changes.append(now)
            shown[queue_id] = words
    assert len({words for words, _trend in shown.values()}) > 4, "there was something to tell"
    later = [sum(start <= change < start + 120 for change in changes) for start in (240,)]
    assert max(later) <= MOST, later


@pytest.mark.parametrize(("burst", "pushed", "taken", "seed"), [(6, 0.5, 0.4, 0), (8, 0.8, 0.7, 3)])
def test_an_estimate_is_not_told_anew_because_the_recorder_told_another(
    store: Store, clock: Clock, burst: int, pushed: float, taken: float, seed: int
) -> None:
    random, board, jobs = Random(seed), Board(), store.create_queue("jobs")
    jobs.push_many([(b"x", n) for n in range(20)])
    jobs.pop_many(5)
    board.put_directory(store.directory(), 1)
    recorder = store.recorder(count=clock)
    told: list[tuple[int, str]] = []
    for second in range(420):
        for _ in range(5):
            clock.advance(0.2)
            if random.random() < pushed / burst / 5:
                jobs.push_many([(b"x", 1)] * burst)
            if random.random() < taken / 5:
                jobs.pop_min()
            board.apply(store.snapshot([jobs.id], previous=board.previous([jobs.id])), clock())
            row = board.row(jobs.id, clock())
        recorder.look()
        words = verdict_words(row, datetime.fromtimestamp(clock(), UTC))
        if not told or told[-1][1] != words:
            told.append((second, words))
    back = [told[n : n + 3] for n in range(len(told) - 2) if told[n][1] == told[n + 2][1]]
    assert len(told) > 3
    assert not [three for three in back if three[2][0] - three[1][0] < 15]
