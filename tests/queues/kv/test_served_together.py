"""Requests that one embedded server answers together: order, refusals, failures, landings, wake-ups."""

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from queues.kv import open_kv
from queues.kv.bells import Bell
from queues.kv.embedded import EmbeddedStore, transaction
from queues.kv.errors import StoreFull, TransactionTooLarge
from queues.kv.group_commit import Call, deliver
from queues.kv.port import Refused, Ticket, Transaction
from tests.queues.kv.tickets import submitted
from tests.queues.kv.writers import held_up
from tests.waiting import LONG

MANY = 40


class Numbering:
    """Writes what it is asked to and answers with it; remembers what it was asked together."""

    contended = False
    wire = None

    def __init__(self, at_once: int = MANY) -> None:
        self.at_once = at_once
        self.served: list[list[Any]] = []

    def prepare(self, requests: Sequence[Any]) -> Sequence[Any]:
        return requests

    def execute(self, tr: Transaction, requests: Sequence[Any]) -> list[Any]:
        self.served.append(list(requests))
        for request in requests[: self.at_once]:
            if callable(request):
                request(tr)
            else:
                tr.set(b"n%d" % request, b"")
        return list(requests[: self.at_once])

    def conduct(self, transact: Callable[..., Any], requests: Sequence[Any]) -> list[Any]:
        raise AssertionError("no other process writes to an embedded store meanwhile")


class Landed:
    """Collects what lands, batch by batch."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.some = threading.Semaphore(0)

    def land(self, tickets: Sequence[Any]) -> None:
        self.batches.append(list(tickets))
        self.some.release(len(tickets))

    def wait(self, tickets: int) -> None:
        for _ in range(tickets):
            assert self.some.acquire(timeout=LONG)


@pytest.fixture
def kv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedStore]:
    monkeypatch.setattr(
        transaction, "MAX_SECONDS", float("inf")
    )  # what waits together is a batch on a slow machine too
    opened = open_kv(f"lmdb:{tmp_path}/store")
    assert isinstance(opened, EmbeddedStore)
    yield opened
    opened.close()


def keys(kv: EmbeddedStore) -> int:
    return len(kv.read(lambda tr: tr.get_range(b"n", b"o", limit=1_000).wait()))


def test_what_waits_together_is_served_at_once_in_order_and_every_thread_wakes(kv: EmbeddedStore) -> None:
    server = Numbering()
    with ThreadPoolExecutor(MANY) as pool:
        with held_up(kv) as until:
            futures = []
            for n in range(MANY):
                futures.append(pool.submit(kv.serve, server, n))
                until(n + 1)
        assert [future.result(LONG) for future in futures] == list(range(MANY))
    assert server.served == [list(range(MANY))]
    assert keys(kv) == MANY


def test_what_a_server_leaves_is_asked_again_in_the_same_commit(kv: EmbeddedStore) -> None:
    server, landed = Numbering(at_once=3), Landed()
    with held_up(kv):
        for n in range(8):
            submitted(kv, server, n, landed)
    landed.wait(8)
    assert [len(asked) for asked in server.served] == [8, 5, 2]
    assert [[ticket.answer for ticket in batch] for batch in landed.batches] == [list(range(8))]


def test_what_conflicts_with_nothing_comes_first(kv: EmbeddedStore) -> None:
    pushes, pops, landed = Numbering(), Numbering(), Landed()
    pops.contended = True
    order = []
    with held_up(kv):
        submitted(kv, pops, lambda tr: order.append("pop"), landed)
        submitted(kv, pushes, lambda tr: order.append("push"), landed)
    landed.wait(2)
    assert order == ["push", "pop"]


def test_a_refusal_is_its_own_callers_error(kv: EmbeddedStore) -> None:
    class Refusing(Numbering):
        def execute(self, tr: Transaction, requests: Sequence[Any]) -> list[Any]:
            return [Refused(ValueError(n)) if n % 2 else n for n in super().execute(tr, requests)]

    server = Refusing()
    with ThreadPoolExecutor(4) as pool:
        with held_up(kv) as until:
            futures = [pool.submit(kv.serve, server, n) for n in range(4)]
            until(4)
        for n, future in enumerate(futures):
            if n % 2:
                with pytest.raises(ValueError, match=str(n)):
                    future.result(LONG)
            else:
                assert future.result(LONG) == n
    assert len(server.served) == 1


def fail(tr: Transaction) -> None:
    tr.set(b"n-failed", b"")
    raise ZeroDivisionError


def too_much(tr: Transaction) -> None:
    for n in range(120):
        tr.set(b"n-much-%d" % n, bytes(90_000))


@pytest.mark.parametrize(("guilty", "error"), [(fail, ZeroDivisionError), (too_much, TransactionTooLarge)])
def test_a_failure_is_told_to_the_guilty_alone_and_undone(
    kv: EmbeddedStore, guilty: Callable[[Transaction], None], error: type[Exception]
) -> None:
    server, landed = Numbering(), Landed()
    with held_up(kv):
        for request in (1, 2, guilty, 3):
            submitted(kv, server, request, landed)
    landed.wait(4)
    (batch,) = landed.batches
    assert [type(ticket.error) for ticket in batch] == [type(None), type(None), error, type(None)]
    assert [ticket.answer for ticket in batch] == [1, 2, None, 3]
    assert keys(kv) == 3


def test_only_a_thread_that_grows_a_full_store_is_refused(tmp_path: Path) -> None:
    kv = open_kv(f"lmdb:{tmp_path / 'small'}", max_bytes=1_000_000)
    assert isinstance(kv, EmbeddedStore)
    server, landed = Numbering(), Landed()
    with held_up(kv):
        submitted(kv, server, 1, landed)
        submitted(kv, server, lambda tr: [tr.set(b"n-%d" % n, bytes(90_000)) for n in range(30)], landed)
        submitted(kv, server, lambda tr: tr.clear(b"absent"), landed)
    landed.wait(3)
    (batch,) = landed.batches
    assert [type(ticket.error) for ticket in batch] == [type(None), StoreFull, type(None)]
    kv.close()


def test_a_server_that_answers_no_thread_fails_each(kv: EmbeddedStore) -> None:
    with pytest.raises(RuntimeError, match="answered 0 of 1"):
        kv.serve(Numbering(at_once=0), 1)
    assert kv.serve(Numbering(), 2) == 2


def test_what_is_withdrawn_in_time_is_never_served(kv: EmbeddedStore) -> None:
    server, landed = Numbering(), Landed()
    with held_up(kv):
        first, second = submitted(kv, server, 1, landed), submitted(kv, server, 2, landed)
        assert kv.withdraw(first)
        assert not kv.withdraw(first)
    landed.wait(1)
    assert server.served == [[2]]
    assert not kv.withdraw(second)
    assert landed.batches == [[second]]


def test_an_interrupted_thread_leaves_no_thread_asleep(kv: EmbeddedStore) -> None:
    """Its neighbors in the batch count on it to wake the next; it is gone when its turn comes."""
    server = Numbering()
    interrupted: list[BaseException] = []
    answers: list[Any] = []

    def ask(n: int) -> None:
        try:
            answers.append(kv.serve(server, n))
        except KeyboardInterrupt as error:
            interrupted.append(error)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(MANY)]
    with held_up(kv) as until:
        for started, thread in enumerate(threads):
            thread.start()
            until(started + 1)
        for thread in threads[:8]:  # raised as each wakes up: before it could wake the next one, or just after
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt)
            )
    for thread in threads:
        thread.join(LONG)
    assert not any(thread.is_alive() for thread in threads)
    assert len(interrupted) == 8
    assert sorted(answers) == list(range(8, MANY))


@pytest.mark.parametrize("gone", [{0, 1}, {0, 1, 2, 3, 4}, {9}, set(range(10))])
def test_calls_that_no_thread_waits_for_any_more_break_no_chain(gone: set[int]) -> None:
    calls = [Call(Bell()) for _ in range(10)]
    for n in gone:
        calls[n].abandoned = True
    deliver(calls, 1)
    woken: set[int] = set()
    while True:
        now = {n for n in range(10) if n not in gone | woken and calls[n].bell.listen_for(0)}
        if not now:
            break
        woken |= now
        for n in now:
            next(calls[n].others, None)
    assert woken == set(range(10)) - gone


def test_a_landing_that_fails_leaves_no_thread_asleep() -> None:
    class Broken:
        def land(self, tickets: Sequence[Any]) -> None:
            raise OSError("broken")

    call = Call(Bell())
    with pytest.raises(OSError, match="broken"):
        deliver([Ticket(None, None, Broken()), call], 1)
    assert call.bell.listen_for(LONG)
