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
        recorder.look()
        board.apply(store.snapshot(ids, previous=board.previous(ids)), clock())
        at = datetime.fromtimestamp(clock(), UTC)
        for queue_id in ids:
            row = board.row(queue_id, clock())
            assert row is not None
            words = verdict_words(row, at), trend_words(row)
            if shown.get(queue_id, words) != words:
                changes.append(now)
            shown[queue_id] = words
    assert len({words for words, _trend in shown.values()}) > 4, "there was something to tell"
    later = [sum(start <= change < start + 120 for change in changes) for start in (240,)]
    assert max(later) <= MOST, later
