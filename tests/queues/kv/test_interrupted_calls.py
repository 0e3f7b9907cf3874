"""Ctrl-C while a thread hands a function to the writer: that call is never answered to the thread's next one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from queues.kv import open_kv
from queues.kv.embedded import EmbeddedStore
from queues.kv.embedded.calls import Calls
from queues.kv.port import Transaction

LONG = 120


def test_an_interrupt_before_the_wait_leaves_nothing_in_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls()
    calls._wake_at = 1

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(calls, "wake", interrupt)
    with pytest.raises(KeyboardInterrupt):
        calls.run(lambda tr: "first")
    assert calls.take() is None


def test_the_next_call_gets_its_own_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kv = open_kv(f"lmdb:{tmp_path / 'store'}")
    calls = kv._engine.writer._calls
    wake = calls.wake

    def interrupt() -> None:
        monkeypatch.setattr(calls, "wake", wake)
        wake()
        raise KeyboardInterrupt

    monkeypatch.setattr(calls, "wake", interrupt)
    with pytest.raises(KeyboardInterrupt):
        kv.transact(lambda tr: tr.set(b"first", b"1") or "first")

    assert kv.transact(lambda tr: tr.set(b"second", b"2") or "second") == "second"
    assert kv.read(lambda tr: tr.get(b"second").wait()) == b"2"
    kv.close()


def test_a_transaction_of_half_the_room_fits(tmp_path: Path) -> None:
    kv = open_kv(f"lmdb:{tmp_path / 'store'}", max_bytes=10_000_000)
    kv.transact(lambda tr: [tr.set(b"%d" % n, bytes(90_000)) for n in range(60)])
    assert kv.read(lambda tr: tr.get(b"59").wait()) == bytes(90_000)
    kv.close()


class Slow:
    """A server that says when it serves several, and goes on when it is told to."""

    contended = False

    def __init__(self) -> None:
        self.serving, self.go_on = threading.Event(), threading.Event()

    def serve(self, tr: Transaction, requests: Sequence[int]) -> list[int]:
        if len(requests) > 1:
            self.serving.set()
            assert self.go_on.wait(LONG)
        for number in requests:
            tr.set(b"%d" % number, b"")
        return list(requests)

    def conduct(self, transact: Callable[..., Any], requests: Sequence[int]) -> list[int]:
        raise AssertionError("no other process writes to an embedded store meanwhile")


def test_a_thread_that_is_interrupted_twice_leaves_no_thread_asleep_and_gets_no_old_answer(tmp_path: Path) -> None:
    """Ctrl-C, and again while the outcome of the interrupted call is waited for."""
    kv = open_kv(f"lmdb:{tmp_path / 'store'}")
    assert isinstance(kv, EmbeddedStore)
    server, held, release, others_went_on = Slow(), threading.Event(), threading.Event(), threading.Event()
    answers: list[int] = []

    def hold(tr: Transaction) -> None:
        held.set()
        assert release.wait(LONG)

    def interrupted() -> None:
        bell = kv._engine.writer._calls._own.call.bell
        listen = bell.listen

        def interrupt(*seconds: float) -> None:
            bell.listen = listen
            assert server.serving.wait(LONG)
            raise KeyboardInterrupt

        bell.listen, bell._within = interrupt, interrupt  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            kv.serve(server, 0)
        server.go_on.set()
        assert others_went_on.wait(LONG)
        answers.append(kv.serve(server, 100))

    kv.transact(lambda tr: tr.set(b"before", b""))
    threads = [threading.Thread(target=kv.transact, args=(hold,), daemon=True)]
    threads[0].start()
    assert held.wait(LONG)
    calls = kv._engine.writer._calls
    for target in (interrupted, *(lambda n=n: answers.append(kv.serve(server, n)) for n in range(1, 9))):
        before = len(calls)
        threads.append(threading.Thread(target=target, daemon=True))
        threads[-1].start()
        while len(calls) == before:  # in this order, so that the interrupted one is to wake the next
            pass
    release.set()
    for thread in (threads[0], *threads[2:]):
        thread.join(LONG)
        assert not thread.is_alive(), "it is still asleep"
    others_went_on.set()
    threads[1].join(LONG)
    assert sorted(answers) == [*range(1, 9), 100]
    kv.close()
