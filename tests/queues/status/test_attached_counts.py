"""The counting of attached queues: how often, how much at once, and when it ends."""

import logging
import threading
from math import inf

import pytest

from queues import Store, open_store
from queues.errors import StoreUnavailable, TransactionTooOld
from queues.model.log_limit import LogLimit
from queues.status import attached_counts
from queues.status.attached_counts import AttachedCounts, Pace
from tests.waiting import await_true

#: The logger of the counts.
LOGGER = "queues.status.attached_counts"


def counting_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "pqadmin-count"}


@pytest.mark.parametrize("sharers", [1, 20])
def test_counts_of_large_queues_together_take_a_twentieth_of_the_time_however_they_change(sharers: int) -> None:
    pace = Pace(due=0.0)
    pace.counted(100.0, took=10.0, same=False, sharers=sharers)
    assert not pace.hurry()
    assert sharers * 10.0 / (pace.due - 100.0) == pytest.approx(0.05)


def test_counting_ends_without_viewers_and_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store("memory:") as store:
        queue = store.attach("legacy", prefix=("legacy",))
        queue.push_many([(b"x", n) for n in range(5)])
        others = counting_threads()
        for _ in range(2):
            monkeypatch.setattr(attached_counts, "LINGER", inf)
            store.counts.want([queue.id])
            assert counting_threads() - others
            await_true(lambda: store.counts.known(queue.id))
            monkeypatch.setattr(attached_counts, "LINGER", 0.0)  # there are no viewers
            await_true(lambda: not counting_threads() - others)
            assert store.counts.known(queue.id).depth == 5


def test_closing_the_store_ends_the_thread(store_of_one: Store) -> None:
    others = counting_threads()
    store_of_one.counts.want([store_of_one.queue("legacy").id])
    store_of_one.close()
    assert not counting_threads() - others
    store_of_one.counts.want([1])
    assert not counting_threads() - others


@pytest.mark.parametrize("record", [b"\x02newer", b"\x01\x00\x00\x02{}", b"\x01\x00\x00\x02[]", b"\x01\x00\x00\x03no!"])
def test_a_config_that_cannot_be_read_hinders_no_other_count(
    store_of_one: Store, monkeypatch: pytest.MonkeyPatch, record: bytes
) -> None:
    monkeypatch.setattr(attached_counts, "LINGER", inf)
    broken, whole = store_of_one.attach("broken", prefix=("broken",)).id, store_of_one.queue("legacy").id
    store_of_one.transact(lambda tr: tr.set(store_of_one.context.keyspace.configs.key(broken), record))
    fresh = AttachedCounts(store_of_one.context.kv, store_of_one.context.keyspace, lambda: 0.0)
    fresh.want([broken, whole])  # the broken one is the first that is tried
    await_true(lambda: fresh.known(whole))
    fresh.close()
    assert fresh.known(whole).depth == 1
    assert fresh.known(broken) is None


@pytest.fixture
def store_of_one():
    with open_store("memory:") as store:
        store.attach("legacy", prefix=("legacy",)).push(b"x", priority=1)
        yield store


class Failing:
    """A store whose reads fail as told."""

    def __init__(self, kv) -> None:
        self.kv = kv
        self.error: Exception | None = None
        self.failed = 0

    def read(self, fn, *, background: bool = False):
        if self.error is not None:
            self.failed += 1
            raise self.error
        return self.kv.read(fn, background=background)


@pytest.mark.parametrize("error", [StoreUnavailable("The disk is away."), TransactionTooOld("It took too long.")])
def test_a_count_that_keeps_failing_is_logged_once_a_minute_with_the_name_of_its_queue(
    store_of_one: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    monkeypatch.setattr(attached_counts, "LINGER", inf)
    monkeypatch.setattr(attached_counts, "LONGEST", 0.0)
    failing, now = Failing(store_of_one.context.kv), [1_000.0]
    fresh = AttachedCounts(failing, store_of_one.context.keyspace, lambda: 0.0, monotonic=lambda: now[0])
    queue_id = store_of_one.queue("legacy").id
    fresh.want([queue_id])
    await_true(lambda: fresh.known(queue_id))
    with caplog.at_level(logging.WARNING):
        failing.error = error
        now[0] += 10
        fresh.want([queue_id])
        await_true(lambda: failing.failed > 20)
        lines = [record.getMessage() for record in caplog.records if record.name == LOGGER]
        assert len(lines) == 1
        assert "legacy" in lines[0]
        assert str(error) in lines[0]
        assert "tried again" in lines[0]
        now[0] += 61
        await_true(lambda: len([record for record in caplog.records if record.name == LOGGER]) == 2)
    fresh.close()


def test_repeated_warnings_say_how_many_were_left_out(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    repeats = LogLimit(logging.getLogger(LOGGER), monotonic=lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            repeats.warn("a", "It failed: %s", "x")
        repeats.warn("b", "Another one")
        now[0] = 61.0
        repeats.warn("a", "It failed: %s", "y")
        repeats.forget("a")
        repeats.warn("a", "It failed: %s", "z")
    assert [record.getMessage() for record in caplog.records] == [
        "It failed: x",
        "Another one",
        "It failed: y (4 more like this since the last line)",
        "It failed: z",
    ]
