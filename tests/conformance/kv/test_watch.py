"""Watching keys: no wake-up is lost, and a watch ends when its time is up.

How soon a watch wakes is measured by `benchmarks/wake_up.py`. Here watches have no timeout of their own, so one that
does not wake is seen as such, and LONG is only when a test gives up.
"""

import time
from concurrent.futures import Future
from typing import TypeVar

import pytest

from queues.kv.errors import StoreClosed
from queues.kv.port import KeyValueStore
from tests.waiting import LONG, begin

T = TypeVar("T")

FOREVER = float("inf")


def put(kv: KeyValueStore, key: bytes, value: bytes) -> None:
    kv.transact(lambda tr: tr.set(key, value))


def begin_watch(kv: KeyValueStore, known: dict[bytes, bytes | None]) -> Future[bool]:
    return begin(lambda: kv.watch(known, timeout=FOREVER))


def test_a_watch_ends_when_its_time_is_up(kv: KeyValueStore) -> None:
    put(kv, b"a", b"1")
    begun = time.monotonic()
    assert not begin(lambda: kv.watch({b"a": b"1", b"b": None}, timeout=0.05)).result(LONG)
    assert time.monotonic() - begun > 0.04


@pytest.mark.parametrize("known", [b"0", None])
def test_a_change_before_the_watch_ends_it(kv: KeyValueStore, known: bytes | None) -> None:
    put(kv, b"a", b"1")
    assert begin_watch(kv, {b"a": known}).result(LONG)


@pytest.mark.parametrize(
    "change",
    [
        lambda tr: tr.set(b"a", b"2"),
        lambda tr: tr.clear(b"a"),
        lambda tr: tr.clear_range(b"", b"z"),
        lambda tr: tr.add(b"a", 1),
        lambda tr: tr.max(b"a", 2**60),
    ],
)
def test_every_kind_of_write_wakes(kv: KeyValueStore, change: object) -> None:
    put(kv, b"a", b"1")
    watching = begin_watch(kv, {b"a": b"1"})
    kv.transact(change)
    assert watching.result(LONG)


def test_no_wake_up_is_lost_between_reading_and_watching(kv: KeyValueStore) -> None:
    """A chain of threads that each wait for the one before: one lost wake-up would stop it."""
    rounds, threads = 40, 4
    put(kv, b"turn", b"0")

    def work(me: int) -> None:
        for n in range(me, rounds, threads):
            while (turn := kv.read(lambda tr: tr.get(b"turn").wait())) != b"%d" % n:
                assert kv.watch({b"turn": turn}, timeout=FOREVER)
            put(kv, b"turn", b"%d" % (n + 1))

    for working in [begin(lambda me=n: work(me)) for n in range(threads)]:
        working.result(LONG)
    assert kv.read(lambda tr: tr.get(b"turn").wait()) == b"%d" % rounds


def test_many_watchers_of_one_key_all_wake(kv: KeyValueStore) -> None:
    watching = [begin_watch(kv, {b"a": None}) for _ in range(20)]
    put(kv, b"a", b"1")
    assert all(one.result(LONG) for one in watching)


def test_a_write_of_another_key_ends_no_watch(kv: KeyValueStore) -> None:
    watching = begin_watch(kv, {b"a": None})
    for n in range(20):
        put(kv, b"b", b"%d" % n)
    put(kv, b"a", b"1")
    assert watching.result(LONG)


def test_a_failed_transaction_leaves_the_watch_waiting(kv: KeyValueStore) -> None:
    def fail(tr: object) -> None:
        tr.set(b"a", b"1")
        raise LookupError

    with pytest.raises(LookupError):
        kv.transact(fail)
    assert not kv.watch({b"a": None}, timeout=0.02)


def test_interrupt_wakes_all_callers(kv: KeyValueStore) -> None:
    watching = [begin_watch(kv, {b"a": None}) for _ in range(3)]
    while not all(one.done() for one in watching):  # a thread that comes late is woken by the next one
        kv.interrupt()
    assert all(one.result() for one in watching)


def test_close_ends_a_watch(kv: KeyValueStore) -> None:
    watching = begin_watch(kv, {b"a": None})
    kv.close()
    with pytest.raises(StoreClosed):
        watching.result(LONG)
