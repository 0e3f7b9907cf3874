"""Every verb joins a transaction with `tr=`: all of it happens, or none."""

import pytest

from queues import Item, Queue, Store
from queues.errors import NestedTransaction, QueuePaused


def test_a_move_is_one_transaction(store: Store) -> None:
    a, b = store.create_queue("a"), store.create_queue("b")
    a.push(b"x", priority=9)
    moved = store.transact(lambda tr: b.push(a.pop_min(tr=tr).value, priority=1, tr=tr))
    assert isinstance(moved, Item)
    assert (a.depth(), b.depth()) == (0, 1)
    assert b.peek_min() == moved


def test_a_failing_function_undoes_everything(store: Store) -> None:
    a, b = store.create_queue("a"), store.create_queue("b")
    a.push(b"x", priority=1)
    b.pause(reason="r")
    before = store.snapshot([a.id, b.id])

    def fail(tr):
        b.push(a.pop_min(tr=tr).value, priority=1, tr=tr)
        store.create_queue("c", tr=tr)
        store.rename_queue("a", "d", tr=tr)
        b.pop_min(tr=tr)

    with pytest.raises(QueuePaused):
        store.transact(fail)
    assert store.snapshot([a.id, b.id], previous=before).queues == before.queues
    assert list(store.directory()) == ["a", "b"]
    assert a.pop_min().value == b"x"


def test_a_function_of_which_nothing_ran_is_refused_and_undone(store: Store, jobs: Queue) -> None:
    async def later() -> None: ...

    def push_and_return(result):
        def function(tr):
            jobs.push(b"x", priority=1, tr=tr)
            return result()

        return function

    for result in (later, lambda: (step for step in ())):
        with pytest.raises(TypeError, match="plain function"):
            store.transact(push_and_return(result))
        with pytest.raises(TypeError, match="plain function"):
            store.read(lambda tr, result=result: result())
    assert jobs.depth() == 0


def test_a_transaction_sees_its_own_work(store: Store, jobs: Queue) -> None:
    def work(tr):
        first = jobs.push(b"first", priority=5, tr=tr)
        second = jobs.push(b"second", priority=5, tr=tr)
        assert second.count > first.count
        assert jobs.peek_min(tr=tr) == first
        assert jobs.depth(tr=tr) == 2
        assert jobs.pop_max(tr=tr) == second
        assert jobs.find(second.id, tr=tr) is None
        assert [item.id for item in jobs.items(tr=tr).items] == [first.id]
        assert jobs.status(tr=tr).totals.ready == 1
        new = store.create_queue("new", tr=tr)
        new.push(b"x", priority=1, tr=tr)
        jobs.pause(reason="r", tr=tr)
        with pytest.raises(QueuePaused):
            jobs.pop_min(tr=tr)
        jobs.resume(tr=tr)
        return store.queue("new", tr=tr).totals(tr=tr).ready

    assert store.transact(work) == 1
    assert store.queue("new").depth() == 1


def test_a_read_is_one_version(store: Store) -> None:
    a, b = store.create_queue("a"), store.create_queue("b")
    a.push(b"x", priority=1)
    assert store.read(lambda tr: (a.depth(tr=tr), b.depth(tr=tr), a.peek_min(tr=tr).value)) == (1, 0, b"x")


@pytest.mark.parametrize("outer", ["transact", "read"])
def test_a_verb_without_tr_inside_a_transaction_is_refused(store: Store, jobs: Queue, outer: str) -> None:
    for inner in (
        lambda: jobs.push(b"x", priority=1),
        jobs.pop_min,
        jobs.peek_min,
        lambda: store.transact(lambda tr: None),
        lambda: store.read(lambda tr: None),
    ):
        with pytest.raises(NestedTransaction, match="tr="):
            getattr(store, outer)(lambda tr, inner=inner: inner())
    assert jobs.depth() == 0
