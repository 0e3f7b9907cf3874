"""Functions that take long in a transaction, and so hold up all other callers, are logged."""

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queues import Store, open_store
from queues.kv.embedded import transaction
from queues.kv.port import Transaction


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"lmdb:{tmp_path}/store") as opened:
        yield opened


def compute(seconds: float, tr: Transaction) -> None:
    """Use the processor for so long."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def wait(seconds: float, tr: Transaction) -> None:
    """Let time go by as on a machine whose processors are busy."""
    threading.Event().wait(seconds)


class Job:
    """A function that is an object, with an attribute that reads like one of a partial."""

    func = "jobs.send_mail"

    def __call__(self, tr: Transaction) -> None:
        compute(2 * transaction.SLOW, tr)


@pytest.mark.parametrize(
    ("function", "very_slow", "name"),
    [
        (functools.partial(compute, 2 * transaction.SLOW), transaction.VERY_SLOW, "compute"),
        (Job(), transaction.VERY_SLOW, "Job"),
        (functools.partial(wait, 3 * transaction.SLOW), 2 * transaction.SLOW, "wait"),
        (functools.partial(wait, 2 * transaction.SLOW), float("inf"), None),
        (functools.partial(compute, transaction.SLOW / 10), float("inf"), None),
    ],
    ids=["computes", "an object that computes", "waits for very long", "only waits for a busy machine", "is short"],
)
def test_a_function_that_blocks_callers_is_logged_by_name(
    store: Store,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    function: Callable[[Transaction], None],
    very_slow: float,
    name: str | None,
) -> None:
    monkeypatch.setattr(transaction, "VERY_SLOW", very_slow)
    with caplog.at_level(logging.WARNING, "queues.kv"):
        store.transact(function)
    if name is None:
        assert caplog.messages == []
    else:
        (said,) = caplog.messages
        assert said.startswith("A transaction took ")
        assert said.endswith(f" ms and held up all other callers: tests.queues.kv.test_slow_functions.{name}")
