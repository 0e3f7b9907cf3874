"""Broken on purpose, each safeguard in turn: the schedules must notice.

These are the mutants of the simulation. `tests/queues/kv/test_exactly_once.py` names what else notices those of the
slots, `tests/conformance/operations/test_conflicts.py` those of the conflicts.
"""

from functools import partial

import pytest

from queues.items.counters import CounterDelta as Totals
from queues.items.ready import Heads
from queues.kv.errors import StoreUnavailable
from queues.kv.exactly_once import _Sequence
from queues.kv.simulated import SimulatedTransaction
from queues.kv.simulated.history import VERSION_STEP, History
from queues.kv.watching import WatchBoard
from tests.simulation.schedules import STORM, Schedule, Weather, noticed, without_conflict

SLOT = b"\x02slot\x00"
#: Schedules within which every mutant must be noticed.
WITHIN = 200
#: What is said of an item or a count that is there twice, or of one that is not there at all.
MISCOUNTED = ("twice", " is at ", "lost", " differ", " at QueueStatus", "were counted")


def unsafe(weather: Weather | None = None, *, says: str = "") -> str:
    """Return what the first schedule that fails, saying this, says."""
    return noticed(partial(Schedule, weather=weather), range(WITHIN), says=says)


def miscounted(said: str) -> bool:
    """Tell whether a failure is of an item or a count, lost or doubled."""
    return any(words in said for words in MISCOUNTED)


def test_notices_a_commit_in_doubt_that_is_not_looked_up_by_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Sequence, "_applied", lambda self, tr: None)
    assert miscounted(unsafe(STORM))


def test_notices_a_slot_that_is_read_without_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedTransaction, "add_read_conflict_key", without_conflict(lambda key: SLOT in key))
    assert miscounted(unsafe(STORM))


def test_notices_an_item_that_is_taken_without_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedTransaction, "add_read_conflict_key", without_conflict(lambda key: SLOT not in key))
    assert miscounted(unsafe())


def test_notices_an_error_in_doubt_that_is_raised_before_its_commit_is_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    def unfenced(self, attempt):
        tr = self._begin()
        try:
            return self._try_in(tr, attempt)
        finally:
            tr.cancel()

    monkeypatch.setattr(_Sequence, "_try", unfenced)
    assert unsafe(STORM, says="in spite of the answer")


def test_notices_an_unknown_outcome_that_is_told_as_nothing_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Sequence, "_unknown", lambda self: StoreUnavailable("nothing was written"))
    said = unsafe(STORM)
    assert "in spite of the answer" in said or miscounted(said)


def test_notices_a_read_version_that_is_not_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Serializable still, and every count exact: only a check of linearizability can tell."""

    def stale(self: History) -> int:
        with self._lock:
            version = max(self.version - VERSION_STEP, min(self._readers, default=self.version))
            self._readers[version] += 1
            return version

    monkeypatch.setattr(History, "begin", stale)
    assert unsafe(says="not linearizable")


def test_notices_a_take_that_skips_the_first_item(monkeypatch: pytest.MonkeyPatch) -> None:
    """An item of the right end, but not the very first of several."""
    pairs = Heads.wait

    def second(self):
        self._limit = 2
        return pairs(self)[-1:]

    monkeypatch.setattr(Heads, "wait", second)
    assert unsafe(says="not linearizable")


def test_notices_a_commit_that_wakes_no_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WatchBoard, "notify", lambda self, keys: None)
    assert unsafe(says="a wake-up was lost")


def test_notices_a_counter_that_misses_items_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    state = Totals.state

    def short(self, generation, name, side, n=1):
        state(self, generation, name, side, min(n, 2))

    monkeypatch.setattr(Totals, "state", short)
    assert miscounted(unsafe())
