"""The pop path broken on purpose, each safeguard in turn: crowds of threads and processes must notice.

Mutants of the retry loop and of counters are in `test_mutants`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from queues.keys.queue_keys import QueueKeys
from queues.kv.port import Transaction
from queues.kv.simulated import SimulatedTransaction
from queues.serving import staging, staging_records
from queues.serving.staging import Staging
from tests.simulation.crowds import CALM, Crowd
from tests.simulation.schedules import Weather, noticed, without_conflict
from tests.simulation.test_mutants import miscounted

#: Schedules within which every mutant must be noticed.
WITHIN = 150
#: What keys of ready items and of staged requests hold behind the queue's id.
READY, REQUEST = b"\x02i\x00", b"\x02r\x00\x02q\x00"


def unsafe(weather: Weather | None = None, *, says: str = "") -> str:
    """Return what the first crowd that fails, saying this, says."""
    return noticed(partial(Crowd, weather=weather), range(WITHIN), says=says)


@pytest.fixture(autouse=True)
def crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes take for each other after the first conflict."""
    monkeypatch.setattr(staging, "CONFLICTS", 1)


def test_notices_an_item_that_is_taken_without_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedTransaction, "add_read_conflict_key", without_conflict(lambda key: READY in key))
    assert miscounted(unsafe())


def test_notices_a_request_that_is_served_without_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process gives it up while it is served: its result has no owner."""
    monkeypatch.setattr(SimulatedTransaction, "add_read_conflict_key", without_conflict(lambda key: REQUEST in key))
    assert "lost" in unsafe(CALM)


def test_notices_a_result_that_is_handed_out_and_not_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handed out and not cleared, it looks unclaimed later."""

    def look_only(tr: Transaction, keys: QueueKeys, *, ms: int, request: bytes) -> bytes | None:
        parts = tr.get_range(*keys.results.below(ms, request), limit=200).wait()
        return b"".join(part for _, part in parts) or None

    monkeypatch.setattr(staging_records, "collect", look_only)
    assert unsafe(CALM, says="twice")


def test_notices_a_result_that_is_handed_out_before_its_clear_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clear lost, the item is in the trash as well."""
    collect = staging_records.collect

    def hand_out(self: Staging, transact: Callable[..., Any], request: bytes, ms: int) -> bytes | None:
        kept: list[bytes] = []

        def look(tr: Transaction) -> None:
            found = collect(tr, self._keys, ms=ms, request=request)
            if found is not None:
                kept.append(found)
                raise LookupError  # as if the process took what it has read, and the commit were refused

        for _ in range(200):
            self._aside.sleep(0.0)
            try:
                transact(look)
            except LookupError:
                return kept[0]
        return None

    monkeypatch.setattr(Staging, "_await", hand_out)
    assert unsafe(CALM, says="twice")


def test_notices_an_end_that_is_cleared_as_a_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cleared as a range, the end takes along what other callers push to it meanwhile."""
    clear = SimulatedTransaction.clear

    def clear_all_before(tr: SimulatedTransaction, key: bytes) -> None:
        clear(tr, key)
        if READY in key:
            tr.clear_range(key[: key.index(READY) + len(READY)], key)

    monkeypatch.setattr(SimulatedTransaction, "clear", clear_all_before)
    assert unsafe(CALM, says="lost")
