"""Ctrl-C while a thread hands a function to the writer: that call is never answered to the thread's next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from queues.kv import open_kv
from queues.kv.embedded.calls import Calls


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
