"""Actions: what a person does is audited in the same transaction, and can be put back."""

from collections.abc import Callable

import pytest

from queues import Actions, Store
from queues.errors import (
    AlreadyRestored,
    BadCursor,
    BadPriority,
    BadText,
    ConfirmationMismatch,
    DepthChanged,
    HeadChanged,
    ItemChanged,
    QueueExists,
    QueueNotFound,
    QueuePaused,
    TrashNotFound,
    WrongKind,
)
from queues.kv.port import Transaction
from tests.conftest import Clock
from tests.dumps import dump


def verbs(store: Store, **options: object) -> list[str]:
    return [entry.verb for entry in store.audit.entries(**options).entries]


def test_a_push_that_a_program_undoes_is_in_the_trash(store: Store, ann: Actions) -> None:
    jobs = ann.create_queue("jobs")
    pushed = ann.push_undoably("jobs", [(b"a", 1), (b"b", 2)])
    store.restore(pushed.trash_id)
    assert jobs.depth() == 0
    (entry,) = store.trash.entries().entries
    assert (entry.act, entry.count) == ("delete", 2)
    store.restore(entry.id)
    assert list(jobs.items().items) == pushed.items


def test_a_popped_item_goes_back_under_its_same_key(ann: Actions) -> None:
    jobs = ann.create_queue("jobs")
    jobs.push_many([(b"a", 1), (b"b", 1), (b"c", 2)])
    before = jobs.items()
    popped = ann.pop("jobs", end="min", reason="stuck")
    jobs.push(b"newer", priority=1)
    jobs.push(b"first", priority=0)
    assert popped.item == before.items[0]
    assert ann.undo(popped.trash_id).item == popped.item
    assert [item.value for item in jobs.items().items] == [b"first", b"a", b"b", b"newer", b"c"]
    assert jobs.find(popped.item.id) == popped.item
    assert jobs.depth() == 5
    assert sum(band.depth for band in jobs.status().bands) == 5
    with pytest.raises(AlreadyRestored):
        ann.undo(popped.trash_id)
    assert jobs.depth() == 5


def test_put_back_finds_a_renamed_queue_and_misses_a_deleted_one(store: Store, ann: Actions) -> None:
    ann.create_queue("jobs")
    ann.push("jobs", b"a", priority=1)
    ann.push("jobs", b"b", priority=2)
    first, second = ann.pop("jobs"), ann.pop("jobs", end="max")
    ann.rename_queue("jobs", "tasks")
    ann.undo(first.trash_id)
    assert store.queue("tasks").depth() == 1
    ann.delete_queue("tasks", confirm="tasks", expect_depth=1)
    with pytest.raises(QueueNotFound):
        ann.undo(second.trash_id)


def test_fifo_items_go_back_too(store: Store, ann: Actions) -> None:
    ann.create_queue("mail", kind="fifo")
    ann.push_many("mail", [(b"1", None), (b"2", None)])
    for end in ("max", "tail"):
        with pytest.raises(WrongKind, match="head only"):
            ann.pop("mail", end=end)
    popped = ann.pop("mail")
    assert popped.item.value == b"1"
    ann.undo(popped.trash_id)
    assert store.queue("mail").dequeue().value == b"1"


def test_a_pop_of_another_item_than_the_confirmed_one_takes_nothing(ann: Actions) -> None:
    jobs = ann.create_queue("jobs")
    shown = jobs.push(b"shown", priority=5)
    sneaked = jobs.push(b"sneaked", priority=1)
    with pytest.raises(HeadChanged) as caught:
        ann.pop("jobs", expect=shown.id)
    assert caught.value.item == sneaked
    assert jobs.depth() == 2
    assert ann.pop("jobs", expect=sneaked.id).item == sneaked
    jobs.pop_min()
    with pytest.raises(HeadChanged, match="Nothing is ready") as caught:
        ann.pop("jobs", expect=shown.id)
    assert caught.value.item is None


@pytest.mark.parametrize(
    ("error", "act"),
    [
        (HeadChanged, lambda ann, ids: ann.pop("jobs", expect=ids[1])),
        (HeadChanged, lambda ann, ids: ann.pop_many("jobs", 2, expect=ids[1])),
        (HeadChanged, lambda ann, ids: ann.lease("jobs", seconds=60, expect=ids[1])),
        (ItemChanged, lambda ann, ids: ann.lease("jobs", seconds=60, expect=ids[0], etag="another")),
        (DepthChanged, lambda ann, ids: ann.purge("jobs", confirm="jobs", expect_depth=77)),
        (BadText, lambda ann, ids: ann.purge("jobs", confirm="jobs", reason="\ud800")),
        (BadText, lambda ann, ids: ann.pop("jobs", reason="\ud800")),
        (BadText, lambda ann, ids: ann.delete_item("jobs", ids[0], reason="\ud800")),
        (BadText, lambda ann, ids: ann.edit_item("jobs", ids[0], b"z", expect=b"a", reason="\ud800")),
        (BadText, lambda ann, ids: ann.configure("jobs", note="x", reason="\ud800")),
    ],
)
def test_a_refusal_that_the_caller_of_a_transaction_catches_has_changed_nothing(
    store: Store, error: type[Exception], act: Callable[[Actions, list[str]], object]
) -> None:
    jobs = store.create_queue("jobs")
    jobs.push(b"later", 1, delay=60)
    ids = [item.id for item in jobs.push_many([(b"a", 1), (b"b", 2)])]
    before, config = dump(store, jobs), jobs.config

    def refused(tr: Transaction) -> None:
        with pytest.raises(error):
            act(store.actions("ann", tr=tr), ids)

    store.transact(refused)
    assert dump(store, jobs) == before
    assert store.queue("jobs").config == config
    assert (store.trash.entries().entries, verbs(store)) == ((), [])


def test_an_undo_that_finds_nothing_left_keeps_its_entry(store: Store, ann: Actions) -> None:
    jobs, review = ann.create_queue("jobs"), ann.create_queue("review")
    moved = ann.move_items("jobs", [jobs.push(b"x", 1).id], to="review")
    taken = review.lease(seconds=60)
    before = dump(store, jobs, review)

    def refused(tr: Transaction) -> None:
        with pytest.raises(TrashNotFound, match="nothing left to undo"):
            store.actions("ann", tr=tr).undo(moved.trash_id, partial=True)

    store.transact(refused)
    assert dump(store, jobs, review) == before
    review.release(taken, count_attempt=False)
    assert (ann.undo(moved.trash_id).count, jobs.depth()) == (1, 1), "it is where it was moved to, again"


def test_every_act_is_audited_and_failed_ones_are_not(store: Store, clock: Clock) -> None:
    ann, bob = store.actions("ann"), store.actions("bob", via="cli")
    ann.create_queue("jobs")
    clock.advance(1)
    ann.push("jobs", b"a", priority=1)
    popped = bob.pop("jobs", reason="by hand")
    bob.undo(popped.trash_id)
    ann.pause("jobs", reason="closing")
    with pytest.raises(QueuePaused):
        bob.pop("jobs")
    ann.resume("jobs")
    ann.rename_queue("jobs", "tasks")
    trash_id = ann.delete_queue("tasks", confirm="tasks")
    ann.undo(trash_id)
    for failing in (
        lambda: ann.push("tasks", b"x"),
        lambda: ann.push("tasks", b"x", priority="high"),
    ):
        with pytest.raises(BadPriority):
            failing()
    with pytest.raises(QueueExists):
        ann.create_queue("tasks")
    every = ["restore_queue", "delete_queue", "rename", "resume", "pause", "put_back", "pop_min", "push", "create"]
    assert verbs(store) == every
    assert verbs(store, queue="tasks") == every
    assert verbs(store, actor="bob") == ["put_back", "pop_min"]
    assert verbs(store, actor="bob", queue="tasks") == ["put_back", "pop_min"]
    assert verbs(store, actor="nobody") == []
    with pytest.raises(QueueNotFound):
        store.audit.entries(queue="jobs")
    pop = store.audit.entries(actor="bob").entries[1]
    assert (pop.via, pop.reason, pop.count, pop.queue, pop.item) == ("cli", "by hand", 1, "jobs", popped.item.id)
    assert pop.at.timestamp() == clock.now


def test_audit_and_trash_are_paged_newest_first(store: Store, ann: Actions) -> None:
    ann.create_queue("jobs")
    for n in range(7):
        ann.push("jobs", b"%d" % n, priority=n)
    for _ in range(7):
        ann.pop("jobs")
    page = store.audit.entries(limit=4)
    rest = store.audit.entries(limit=100, after=page.cursor)
    assert len(page.entries + rest.entries) == 15
    assert rest.cursor is None
    first = store.trash.entries(limit=3)
    others = store.trash.entries(after=first.cursor)
    assert [entry.item.value for entry in first.entries + others.entries] == [b"%d" % n for n in range(6, -1, -1)]
    for pages in (store.audit.entries, store.trash.entries):
        with pytest.raises(BadCursor):
            pages(after="nonsense")


def test_deleting_needs_the_name_and_the_depth_that_was_shown(ann: Actions) -> None:
    jobs = ann.create_queue("jobs")
    jobs.push_many([(b"x", 1)] * 10)
    with pytest.raises(ConfirmationMismatch, match="jobs"):
        ann.delete_queue("jobs", confirm="Jobs")
    with pytest.raises(DepthChanged, match="10 items now, not the 8") as caught:
        ann.delete_queue("jobs", confirm="jobs", expect_depth=8, tolerance=1)
    assert caught.value.depth == 10
    assert jobs.depth() == 10
    ann.delete_queue("jobs", confirm="jobs", expect_depth=8, tolerance=2)


def test_what_changes_nothing_is_no_act(store: Store, ann: Actions) -> None:
    ann.create_queue("jobs")
    ann.resume("jobs")
    ann.rename_queue("jobs", "jobs")
    assert ann.pop("jobs") is None
    assert verbs(store) == ["create"]


def test_an_act_meant_for_another_queue_of_the_name_is_refused(store: Store, ann: Actions) -> None:
    old = ann.create_queue("jobs").id
    ann.delete_queue("jobs", confirm="jobs", expect_id=old)
    ann.create_queue("jobs")
    ann.create_queue("jobs-old")
    before = verbs(store)
    for act in (
        lambda: ann.delete_queue("jobs", confirm="jobs", expect_id=old),
        lambda: ann.pause("jobs", reason="r", expect_id=old),
        lambda: ann.resume("jobs", expect_id=old),
        lambda: ann.rename_queue("jobs", "tasks", expect_id=old),
        lambda: ann.purge("jobs", confirm="jobs", expect_id=old),
    ):
        with pytest.raises(QueueNotFound, match="Another queue has the name “jobs” now; .* was renamed") as error:
            act()
        assert error.value.suggestions == ()  # a name that looks alike is no help: it is not the name that is wrong
    assert verbs(store) == before


def test_an_undo_of_a_queue_that_is_gone_says_so_though_its_name_is_used_again(store: Store, ann: Actions) -> None:
    ann.create_queue("jobs").push(b"x", priority=1)
    popped = ann.pop("jobs")
    ann.delete_queue("jobs", confirm="jobs")
    ann.create_queue("jobs")
    ann.create_queue("jobs-old")
    with pytest.raises(QueueNotFound, match="The queue that had the name “jobs” is gone") as error:
        ann.undo(popped.trash_id)
    assert error.value.suggestions == ()


def test_a_page_of_trash_looks_past_what_was_restored(store: Store, ann: Actions) -> None:
    ann.create_queue("jobs")
    ann.push_many("jobs", [(b"%d" % n, n) for n in range(30)])
    popped = [ann.pop("jobs") for _ in range(30)]
    for one in popped[3:]:
        ann.undo(one.trash_id)
    page = store.trash.entries(limit=2)
    assert [entry.item.value for entry in page.entries] == [b"2", b"1"]
    rest = store.trash.entries(limit=2, after=page.cursor)
    assert [entry.item.value for entry in rest.entries] == [b"0"]
    assert rest.cursor is None


def test_long_names_of_people_and_long_reasons_are_no_trouble(store: Store) -> None:
    for actor in ("\U0001f600" * 150, "é" * 149, "x" * 200):
        acts = store.actions(actor)
        name = f"jobs{len(actor)}"
        acts.create_queue(name)
        acts.pause(name, reason="r" * 200_000)
        assert [entry.actor for entry in store.audit.entries(actor=actor, limit=1).entries] == [actor]
        assert len(store.queue(name).status().pause.reason) == 500


def test_an_unknown_queue_names_near_misses_in_acts_too(store: Store, ann: Actions) -> None:
    ann.create_queue("orders:new")
    for act in (lambda: ann.push("order:new", b"x", priority=1), lambda: ann.rename_queue("order:new", "x")):
        with pytest.raises(QueueNotFound, match="orders:new"):
            act()
    for name in ("日" * 200, "x" * 5_000, "\ud800"):
        with pytest.raises(QueueNotFound):
            store.audit.entries(queue=name)
