"""Functions that take long in a transaction, and so hold up all other callers, are logged."""

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queues.kv import open_kv
from queues.kv.embedded import EmbeddedStore, transaction
from queues.kv.port import Transaction


@pytest.fixture
def kv(tmp_path: Path) -> Iterator[EmbeddedStore]:
    store = open_kv(f"lmdb:{tmp_path}/store")
    assert isinstance(store, EmbeddedStore)
    yield store
    store.close()


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
    kv: EmbeddedStore,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    function: Callable[[Transaction], None],
    very_slow: float,
    name: str | None,
) -> None:
    monkeypatch.setattr(transaction, "VERY_SLOW", very_slow)
    with caplog.at_level(logging.WARNING, "queues.kv"):
        kv.transact(function)
    if name is None:
        assert caplog.messages == []
    else:
        (said,) = caplog.messages
        assert said.startswith("A transaction took ")
        assert said.endswith(f" ms and held up all other callers: tests.queues.kv.test_slow_functions.{name}")
