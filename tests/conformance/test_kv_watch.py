"""Watching keys: no wake-up is lost, and none takes longer than its timeout."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from queues.kv.errors import StoreClosed
from queues.kv.port import KeyValueStore

LONG = 30.0


def put(kv: KeyValueStore, key: bytes, value: bytes) -> None:
    kv.transact(lambda tr: tr.set(key, value))


def begin_watch(kv: KeyValueStore, known: dict[bytes, bytes | None]) -> Future[bool]:
    """Begin to watch in a thread, which may or may not have got there when this returns."""
    watching: Future[bool] = Future()

    def work() -> None:
        try:
            watching.set_result(kv.watch(known, timeout=LONG))
        except BaseException as error:
            watching.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return watching


def test_the_time_is_up(kv: KeyValueStore) -> None:
    put(kv, b"a", b"1")
    begun = time.monotonic()
    assert not kv.watch({b"a": b"1", b"b": None}, timeout=0.05)
    assert 0.04 < time.monotonic() - begun < 5


@pytest.mark.parametrize("known", [b"0", None])
def test_a_change_before_the_watch_returns_at_once(kv: KeyValueStore, known: bytes | None) -> None:
    put(kv, b"a", b"1")
    begun = time.monotonic()
    assert kv.watch({b"a": known}, timeout=LONG)
    assert time.monotonic() - begun < 5


def test_an_infinite_timeout_is_allowed(kv: KeyValueStore) -> None:
    put(kv, b"a", b"1")
    assert kv.watch({b"a": None}, timeout=float("inf"))


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
    begun = time.monotonic()
    kv.transact(change)  # type: ignore[arg-type]
    assert watching.result(LONG)
    assert time.monotonic() - begun < 5


def test_no_wake_up_is_lost_between_reading_and_watching(kv: KeyValueStore) -> None:
    """A chain of threads that each wait for the one before: one lost wake-up would stop it."""
    rounds, threads = 40, 4
    put(kv, b"turn", b"0")

    def work(me: int) -> None:
        for n in range(me, rounds, threads):
            while (turn := kv.read(lambda tr: tr.get(b"turn").wait())) != b"%d" % n:
                assert kv.watch({b"turn": turn}, timeout=LONG)
            put(kv, b"turn", b"%d" % (n + 1))

    begun = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    assert kv.read(lambda tr: tr.get(b"turn").wait()) == b"%d" % rounds
    assert time.monotonic() - begun < LONG


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
        tr.set(b"a", b"1")  # type: ignore[attr-defined]
        raise LookupError

    with pytest.raises(LookupError):
        kv.transact(fail)
    assert not kv.watch({b"a": None}, timeout=0.02)


def test_interrupt_wakes_everybody(kv: KeyValueStore) -> None:
    watching = [begin_watch(kv, {b"a": None}) for _ in range(3)]
    while not all(one.done() for one in watching):  # a thread that comes late is woken by the next one
        kv.interrupt()
    assert all(one.result() for one in watching)


def test_close_ends_a_watch(kv: KeyValueStore) -> None:
    watching = begin_watch(kv, {b"a": None})
    kv.close()
    with pytest.raises(StoreClosed):
        watching.result(LONG)
