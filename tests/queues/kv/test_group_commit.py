"""Many functions per commit, none of which can harm its neighbors."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import lmdb
import pytest

from queues.kv import open_kv
from queues.kv.embedded import EmbeddedStore, transaction
from queues.kv.embedded.transaction import Batch
from queues.kv.errors import OutcomeUnknown, StoreFull, StoreUnavailable
from queues.kv.port import Transaction
from queues.kv.watching import Watcher
from tests.queues.kv.writers import held_up
from tests.waiting import LONG

MANY = 40


@pytest.fixture
def kv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedStore]:
    monkeypatch.setattr(
        transaction, "MAX_SECONDS", float("inf")
    )  # what waits together is a batch on a slow machine too
    opened = open_kv(f"lmdb:{tmp_path}/store")
    assert isinstance(opened, EmbeddedStore)
    yield opened
    opened.close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(MANY + 1) as threads:
        yield threads


@contextmanager
def one_batch(kv: EmbeddedStore, pool: ThreadPoolExecutor) -> Iterator[Callable[..., Future[object]]]:
    """Collect calls while the writer is held up, so that it runs them all in the same batch, in order."""
    count = 0
    with held_up(kv) as until:

        def submit(fn: Callable[[Transaction], object]) -> Future[object]:
            nonlocal count
            count += 1
            future = pool.submit(kv.transact, fn)
            until(count)
            return future

        yield submit


def version(kv: EmbeddedStore) -> int:
    return kv.read(lambda tr: tr.get_read_version())


def content(kv: EmbeddedStore) -> dict[bytes, bytes]:
    return dict(kv.read(lambda tr: tr.get_range(b"", b"\xff", limit=10_000).wait()))


def write(key: bytes) -> Callable[[Transaction], bytes]:
    def fn(tr: Transaction) -> bytes:
        tr.set(key, b"")
        tr.add(b"total", 1)
        return key

    return fn


def test_functions_that_wait_together_share_a_commit(kv: EmbeddedStore, pool: ThreadPoolExecutor) -> None:
    before = version(kv)
    with one_batch(kv, pool) as submit:
        futures = [submit(write(b"%03d" % n)) for n in range(MANY)]
    assert [one.result(LONG) for one in futures] == [b"%03d" % n for n in range(MANY)]
    assert version(kv) - before == 1
    assert content(kv)[b"total"] == MANY.to_bytes(8, "little")


def test_stamps_of_one_commit_follow_the_order_of_its_functions(kv: EmbeddedStore, pool: ThreadPoolExecutor) -> None:
    with one_batch(kv, pool) as submit:
        futures = [submit(lambda tr: [tr.stamp(), tr.stamp()]) for _ in range(MANY)]
    stamps = [stamp for one in futures for stamp in one.result(LONG)]
    assert stamps == sorted(set(stamps))


def test_an_error_of_any_kind_while_a_batch_runs_one_by_one_leaves_no_thread_waiting(
    kv: EmbeddedStore, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = kv.engine.environment
    begin, commit = environment.begin_write, environment.commit
    runs = 0

    def failing(*_: object) -> None:
        monkeypatch.setattr(environment, "commit", commit)
        raise lmdb.Error("commit")

    def exhausted() -> lmdb.Transaction[bytes]:
        monkeypatch.setattr(environment, "begin_write", begin)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def first(tr: Transaction) -> bytes:
        nonlocal runs
        runs += 1
        if runs == 2:  # in a commit of its own: the next one cannot begin
            monkeypatch.setattr(environment, "begin_write", exhausted)
        return write(b"0")(tr)

    with one_batch(kv, pool) as submit:
        futures = [submit(first), *(submit(write(b"%d" % n)) for n in range(1, 4))]
        monkeypatch.setattr(environment, "commit", failing)
    with pytest.raises(StoreUnavailable, match=os.strerror(errno.EMFILE)):
        futures[1].result(LONG)
    assert [futures[n].result(LONG) for n in (0, 2, 3)] == [b"0", b"2", b"3"]
    assert content(kv) == {b"0": b"", b"2": b"", b"3": b"", b"total": (3).to_bytes(8, "little")}


def test_a_commit_whose_result_cannot_be_found_out_has_an_unknown_outcome(
    kv: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = kv.engine.environment
    commit = environment.commit

    def failing(*_: object) -> None:
        monkeypatch.setattr(environment, "commit", commit)
        raise lmdb.Error("commit")

    def exhausted(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(environment, "commit", failing)
    monkeypatch.setattr(environment, "settle", exhausted)
    with pytest.raises(OutcomeUnknown):
        kv.transact(write(b"key"))
    assert kv.transact(write(b"later")) == b"later"


def test_what_is_done_is_answered_even_if_a_watcher_cannot_be_told(
    kv: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = kv.engine.board

    def failing(keys: object) -> None:
        raise MemoryError

    watcher = Watcher({b"elsewhere": None}, None)
    board.add(watcher)
    monkeypatch.setattr(board, "notify", failing)
    assert kv.transact(write(b"key")) == b"key"
    board.discard(watcher)
    assert b"key" in content(kv)


def test_failing_functions_leave_their_neighbors_alone(kv: EmbeddedStore, pool: ThreadPoolExecutor) -> None:
    kv.transact(lambda tr: [tr.set(b"shared", b"0"), tr.add(b"total", 0)])

    def fail(tr: Transaction) -> None:
        tr.set(b"shared", b"wrong")
        tr.clear_range(b"000", b"999")
        tr.add(b"total", 1_000)
        tr.get(b"total").wait()
        tr.add(b"total", 1_000)
        tr.add(b"never", 1)
        raise LookupError

    with one_batch(kv, pool) as submit:
        futures = [submit(write(b"%03d" % n) if n % 2 else fail) for n in range(MANY)]
    for n, one in enumerate(futures):
        if n % 2:
            assert one.result(LONG) == b"%03d" % n
        else:
            assert isinstance(one.exception(LONG), LookupError)
    expected = {b"%03d" % n: b"" for n in range(1, MANY, 2)}
    assert content(kv) == {**expected, b"shared": b"0", b"total": (MANY // 2).to_bytes(8, "little")}


def test_neighbors_see_one_anothers_writes_in_order(kv: EmbeddedStore, pool: ThreadPoolExecutor) -> None:
    def append(tr: Transaction) -> bytes:
        text = (tr.get(b"text").wait() or b"") + b"x"
        tr.set(b"text", text)
        return text

    with one_batch(kv, pool) as submit:
        futures = [submit(append) for _ in range(MANY)]
    assert [one.result(LONG) for one in futures] == [b"x" * (n + 1) for n in range(MANY)]


def test_an_engine_error_fails_only_the_guilty(kv: EmbeddedStore, pool: ThreadPoolExecutor) -> None:
    """The whole batch is lost with the LMDB transaction; each function then runs again by itself."""
    runs = []

    def guilty_of_a_full_map(tr: Transaction) -> None:
        runs.append(1)
        tr.set(b"guilty", b"")
        try:
            raise lmdb.MapFullError("full")
        except lmdb.Error as error:
            raise tr.broken(error) from error

    before = version(kv)
    with one_batch(kv, pool) as submit:
        good = [submit(write(b"%03d" % n)) for n in range(5)]
        bad = submit(guilty_of_a_full_map)
        good += [submit(write(b"%03d" % n)) for n in range(5, 10)]
    assert [one.result(LONG) for one in good] == [b"%03d" % n for n in range(10)]
    error = bad.exception(LONG)
    assert isinstance(error, StoreFull)
    assert str(kv.engine.environment.path) in str(error)
    assert len(runs) == 2
    assert version(kv) - before == 6  # five alone, then the five behind the guilty one together
    assert content(kv) == {**{b"%03d" % n: b"" for n in range(10)}, b"total": (10).to_bytes(8, "little")}


@pytest.mark.parametrize("raises", [False, True])
def test_an_engine_error_that_a_function_swallows_counts_all_the_same(
    kv: EmbeddedStore, pool: ThreadPoolExecutor, raises: bool
) -> None:
    def work(tr: Transaction) -> str:
        tr.set(b"a", b"")
        tr.broken(lmdb.MapFullError("full"))
        if raises:
            raise LookupError
        return "as if nothing had happened"

    with one_batch(kv, pool) as submit:
        swallowing, good = submit(work), submit(write(b"good"))
    assert isinstance(swallowing.exception(LONG), StoreFull)
    assert good.result(LONG) == b"good"
    assert b"a" not in content(kv)


def test_nothing_written_is_nothing_flushed(kv: EmbeddedStore) -> None:
    before = version(kv)
    kv.transact(lambda tr: tr.get(b"a").wait())
    with pytest.raises(LookupError):
        kv.transact(_write_and_fail)
    assert version(kv) == before


def _write_and_fail(tr: Transaction) -> None:
    tr.set(b"a", b"")
    tr.add(b"b", 1)
    raise LookupError


def test_answers_come_after_the_commit(kv: EmbeddedStore, pool: ThreadPoolExecutor) -> None:
    """Errors and empty answers too: they may rest on what a neighbor has written."""
    environment = kv.engine.environment
    commit, order = environment.commit, []

    def watched(batch: Batch) -> None:
        order.extend(one.done() for one in futures)
        commit(batch)

    futures: list[Future[object]] = []
    environment.commit = watched
    with one_batch(kv, pool) as submit:
        futures = [submit(write(b"a")), submit(_write_and_fail), submit(lambda tr: tr.get(b"nothing").wait())]
    for one in futures:
        one.exception(LONG)
    assert order == [False] * 3


@pytest.mark.parametrize("happens", [False, True])
def test_a_commit_that_raises_is_done_again_unless_it_happened(
    kv: EmbeddedStore, pool: ThreadPoolExecutor, happens: bool
) -> None:
    broken = _BrokenCommits(kv, times=1, happens=happens)
    with one_batch(kv, pool) as submit:
        futures = [submit(write(b"%d" % n)) for n in range(3)]
    assert [one.result(LONG) for one in futures] == [b"0", b"1", b"2"]
    assert broken.left == 0
    assert content(kv)[b"total"] == (3).to_bytes(8, "little")


class _BrokenCommits:
    """Makes commits raise, before or after they have happened."""

    def __init__(self, kv: EmbeddedStore, *, times: int, happens: bool) -> None:
        self.left, self._happens = times, happens
        environment = kv.engine.environment
        self._commit = environment.commit
        environment.commit = self.commit

    def commit(self, batch: Batch) -> None:
        if not self.left:
            self._commit(batch)
            return
        self.left -= 1
        txn, happens = batch.txn, self._happens

        class Raising:
            def commit(self) -> None:
                txn.commit() if happens else txn.abort()
                raise lmdb.Error("commit", 0)

            def __getattr__(self, name: str) -> object:
                return getattr(txn, name)

        batch.txn = Raising()
        self._commit(batch)


def test_a_thread_that_waits_for_changes_is_not_woken_by_its_own(kv: EmbeddedStore, pool: ThreadPoolExecutor) -> None:
    """The next wait begins as soon as the change is durable: what is told of it later would wake it for nothing."""
    waiting = pool.submit(kv.watch, {b"another": None}, timeout=LONG)  # so that commits are told at all
    for n in range(200):
        value = b"%d" % n
        kv.transact(lambda tr, value=value: tr.set(b"mine", value))
        assert not kv.watch({b"mine": value}, timeout=0)
    kv.transact(lambda tr: tr.set(b"another", b""))
    assert waiting.result(LONG)
