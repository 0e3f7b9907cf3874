"""Ctrl-C, or an alarm, during a call: no other caller is harmed, and no later call gets its answer."""

import ctypes
import itertools
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

from queues.kv import group_commit, open_kv
from queues.kv.bells import Bell
from queues.kv.embedded import EmbeddedStore, environment, store, transaction
from queues.kv.embedded.transaction import Batch
from queues.kv.port import Transaction
from tests.queues.kv.writers import held_up

LONG = 120
ROOT = Path(__file__).parents[3]


@pytest.fixture
def kv(tmp_path: Path) -> Iterator[EmbeddedStore]:
    opened = open_kv(f"lmdb:{tmp_path / 'store'}")
    assert isinstance(opened, EmbeddedStore)
    yield opened
    opened.close()


def interrupt_this_thread() -> None:
    """Raise KeyboardInterrupt in this thread, as soon as it runs Python again."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(threading.get_ident()), ctypes.py_object(KeyboardInterrupt)
    )


class JobTimeout(Exception):
    """What a signal handler raises to end a job that takes too long."""


@pytest.mark.parametrize("committed", [False, True], ids=["before the commit", "after the commit"])
@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, JobTimeout, TimeoutError])
def test_an_interrupted_commit_is_done_or_not(
    kv: EmbeddedStore, monkeypatch: pytest.MonkeyPatch, committed: bool, interrupt: type[BaseException]
) -> None:
    environment = kv.engine.environment
    commit = environment.commit

    def interrupted(batch: Batch) -> None:
        monkeypatch.setattr(environment, "commit", commit)
        if committed:
            commit(batch)
        raise interrupt

    monkeypatch.setattr(environment, "commit", interrupted)
    with pytest.raises(interrupt):
        kv.transact(lambda tr: tr.add(b"n", 1))
    assert kv.transact(lambda tr: tr.get(b"n").wait()) == ((1).to_bytes(8, "little") if committed else None)


def test_a_function_that_is_interrupted_at_any_line_has_written_all_or_nothing(kv: EmbeddedStore) -> None:
    counts = {b"n%d" % n: 1 for n in range(3)}
    kv.transact(lambda tr: tr.set(b"key", b"before"))  # what a process writes once

    def write(tr: Transaction) -> None:
        tr.set(b"key", b"after")
        tr.add_all(counts)

    def interrupt_line(line: int) -> None:
        """Run it, and interrupt it at the n-th line of the engine that executes it."""
        left = line

        def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
            nonlocal left
            if event == "line" and frame.f_code.co_filename == transaction.__file__ and _within("_attempt", frame):
                left -= 1
                if not left:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            kv.transact(write)
        finally:
            sys.settrace(before)

    for line in itertools.count(1):
        done = True
        try:
            interrupt_line(line)
        except KeyboardInterrupt:
            done = False
        found = kv.read(lambda tr: [tr.get(key).wait() for key in (b"key", *counts)])
        assert found == ([b"after", *[(1).to_bytes(8, "little")] * 3] if done else [b"before", None, None, None]), line
        if done:
            break
    assert line > 20


def interrupt_at(place: int, module: ModuleType, within: str, call: Callable[[], Any]) -> None:
    """Call, and interrupt it at the n-th place of a module, below a function of this name.

    As the interpreter runs signal handlers: where a function begins, or has called one that is written in C.
    """
    left = place

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        if event in {"call", "c_return"} and frame.f_code.co_filename == module.__file__ and _within(within, frame):
            left -= 1
            if not left:
                sys.setprofile(None)
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize("module", [store, environment], ids=lambda module: module.__name__)
def test_an_interrupted_write_whose_error_is_kept_holds_up_no_other_process(
    kv: EmbeddedStore, module: ModuleType
) -> None:
    program = f"""
import sys
from queues.kv import open_kv
kv = open_kv("lmdb:{kv.engine.environment.path}")
for line in sys.stdin:
    kv.transact(lambda tr: tr.set(b"other", line.encode()))
    print("done", flush=True)
"""
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    other = subprocess.Popen([sys.executable, "-c", program], text=True, cwd=ROOT, bufsize=1, **pipes)
    with other:
        for place in itertools.count(1):
            kept: BaseException | None = None
            try:
                interrupt_at(place, module, "_execute", lambda: kv.transact(lambda tr: tr.add(b"n", 1)))
            except KeyboardInterrupt as error:
                kept = error
            other.stdin.write("now\n")
            if not select.select([other.stdout], [], [], 10)[0]:
                other.kill()
                pytest.fail(f"it waits for what was interrupted at place {place}")
            assert other.stdout.readline() == "done\n"
            if kept is None:
                break
        other.stdin.close()
    assert place > 10


def test_an_interrupted_lone_call_raises_at_once(kv: EmbeddedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(Bell, "listen_for", lambda bell, seconds: waits.append(seconds))
    for place in itertools.count(1):
        try:
            interrupt_at(place, group_commit, "serve", lambda: kv.transact(lambda tr: tr.add(b"n", 1)))
            break
        except KeyboardInterrupt:
            assert not waits, place
    assert place > 5


@pytest.mark.parametrize("of", [(os, "statvfs"), (environment, "file_status")], ids=["the room", "the file"])
def test_an_interrupted_look_at_the_disk_is_no_failure_of_it(
    kv: EmbeddedStore, monkeypatch: pytest.MonkeyPatch, of: tuple[Any, str]
) -> None:
    def interrupted(path: Any) -> None:
        monkeypatch.undo()
        raise TimeoutError("job took too long")

    monkeypatch.setattr(*of, interrupted)
    with pytest.raises(TimeoutError, match="job took too long"):
        kv.transact(lambda tr: tr.add(b"n", 1))
    kv.transact(lambda tr: tr.add(b"n", 1))
    assert kv.read(lambda tr: tr.get(b"n").wait()) == (1).to_bytes(8, "little")


def _within(name: str, frame: FrameType | None) -> bool:
    """Say whether a frame is of this function, or was called from it."""
    while frame is not None and frame.f_code.co_name != name:
        frame = frame.f_back
    return frame is not None


def test_what_a_function_raises_reaches_its_own_caller_only(kv: EmbeddedStore) -> None:
    ended: dict[str, object] = {}

    def interrupted(tr: Transaction) -> None:
        tr.add(b"n", 1)
        interrupt_this_thread()
        for _ in range(1_000):
            pass

    def call(name: str, fn: Callable[[Transaction], None]) -> None:
        try:
            ended[name] = kv.transact(fn)
        except BaseException as error:
            ended[name] = type(error)

    threads: list[threading.Thread] = []
    with held_up(kv) as until:
        for name, fn in [("adds", lambda tr: tr.add(b"n", 1)), ("interrupted", interrupted)]:
            threads.append(threading.Thread(target=call, args=(name, fn)))
            threads[-1].start()
            until(len(threads))
    for one in threads:
        one.join(LONG)
        assert not one.is_alive()
    assert ended == {"adds": None, "interrupted": KeyboardInterrupt}
    assert kv.read(lambda tr: tr.get(b"n").wait()) == (1).to_bytes(8, "little")


def test_an_interrupt_while_watchers_are_woken_keeps_none_of_them_asleep(
    kv: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = kv.engine.board
    notify, changed = board.notify, list[bool]()

    def interrupted(keys: Iterable[bytes]) -> None:
        monkeypatch.setattr(board, "notify", notify)
        raise KeyboardInterrupt

    watching = threading.Thread(target=lambda: changed.append(kv.watch({b"n": None}, timeout=10)))
    watching.start()
    while kv.reads() < 2:  # its own, and the first comparison with other processes' commits
        pass
    monkeypatch.setattr(board, "notify", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kv.transact(lambda tr: tr.add(b"n", 1))
    watching.join(LONG)
    assert changed == [True]
    assert kv.read(lambda tr: tr.get(b"n").wait()) == (1).to_bytes(8, "little")


def test_a_transaction_of_half_the_room_fits(tmp_path: Path) -> None:
    kv = open_kv(f"lmdb:{tmp_path / 'store'}", max_bytes=10_000_000)
    kv.transact(lambda tr: [tr.set(b"%d" % n, bytes(90_000)) for n in range(60)])
    assert kv.read(lambda tr: tr.get(b"59").wait()) == bytes(90_000)
    kv.close()
