"""Functions that take long in a transaction, and so hold up all other callers, are logged."""

import functools
import logging
import threading
import time
from collections.abc import Iterator
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


def test_a_function_that_computes_for_long_is_told_by_name(kv: EmbeddedStore, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "queues.kv"):
        kv.transact(functools.partial(compute, 2 * transaction.SLOW))
    (said,) = caplog.messages
    assert said.startswith("A transaction took ")
    assert said.endswith(" ms and held up all other callers: tests.queues.kv.test_slow_functions.compute")


class Job:
    """A function that is an object, with an attribute that reads like one of a partial."""

    func = "jobs.send_mail"

    def __call__(self, tr: Transaction) -> None:
        compute(2 * transaction.SLOW, tr)


def test_a_function_that_is_an_object_is_told_by_its_class(kv: EmbeddedStore, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "queues.kv"):
        kv.transact(Job())
    (said,) = caplog.messages
    assert said.endswith("tests.queues.kv.test_slow_functions.Job")


def test_a_function_that_only_waited_for_a_busy_machine_is_not_told(
    kv: EmbeddedStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "VERY_SLOW", float("inf"))
    with caplog.at_level(logging.WARNING, "queues.kv"):
        kv.transact(functools.partial(wait, 2 * transaction.SLOW))
        kv.transact(functools.partial(compute, transaction.SLOW / 10))
    assert caplog.messages == []


def test_a_function_that_waits_for_very_long_is_told(
    kv: EmbeddedStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "VERY_SLOW", 2 * transaction.SLOW)
    with caplog.at_level(logging.WARNING, "queues.kv"):
        kv.transact(functools.partial(wait, 3 * transaction.SLOW))
    (said,) = caplog.messages
    assert said.endswith("tests.queues.kv.test_slow_functions.wait")
