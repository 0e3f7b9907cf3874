"""Actions on items: delete, move, re-prioritize, edit. Each is one transaction, and undone without a trace."""

from datetime import timedelta

import pytest

from queues import Actions, Queue, Store
from queues.errors import (
    AlreadyRestored,
    BadPriority,
    ItemChanged,
    ItemGoneOn,
    ItemLeased,
    ItemNotFound,
    NotForAttached,
    QueueNotFound,
    SameQueue,
    TooLarge,
    ValueChanged,
    ValueTooLarge,
    WrongKind,
)
from queues.items.stored_item import digest
from tests.conftest import Clock
from tests.dumps import dump, in_every_state, states
from tests.full_count import check_full_count


def values(queue: Queue) -> list[bytes]:
    return [item.value for item in queue.items(limit=1_000).items]


def one_of_each(store: Store, clock: Clock) -> tuple[Queue, dict[str, str]]:
    """Return a queue with two items in each state, and the ids of one of each."""
    jobs, found = in_every_state(store, clock)
    return jobs, {state: item_ids[-1] for state, item_ids in found.items()}


def test_items_of_every_state_are_deleted_and_come_back_as_they_were(store: Store, ann: Actions, clock: Clock) -> None:
    jobs, found = one_of_each(store, clock)
    before = dump(store, jobs)
    for state, item_id in found.items():
        popped = ann.delete_item("jobs", item_id)
        assert (popped.item.id, popped.item.state) == (item_id, state)
        assert states(store, jobs)[state] == 1
        check_full_count(store, jobs)
        assert store.trash.get(popped.trash_id).item == popped.item
        with pytest.raises(ItemNotFound):
            ann.delete_item("jobs", item_id)
        assert ann.undo(popped.trash_id).item.id == item_id
        assert dump(store, jobs) == before
        with pytest.raises(AlreadyRestored):
            ann.undo(popped.trash_id)


def test_a_page_of_all_states_is_deleted_as_one(store: Store, ann: Actions, clock: Clock) -> None:
    jobs, found = one_of_each(store, clock)
    before = dump(store, jobs)
    page = list(found.values())
    with pytest.raises(ItemNotFound, match="1 of the 5 items is not in this queue"):
        ann.delete_items("jobs", [*page, "00" * 20])
    assert dump(store, jobs) == before
    changed = ann.delete_items("jobs", [*page, "00" * 20, page[0]], skip_missing=True)
    assert (changed.count, changed.skipped) == (4, 1)
    assert states(store, jobs) == {"ready": 1, "delayed": 1, "leased": 1, "dead": 1}
    jobs.push(b"newcomer", priority=0)
    assert ann.undo(changed.trash_id).count == 4
    assert check_full_count(store, jobs) == 3
    assert jobs.remove(jobs.peek_min().id).value == b"newcomer"
    assert dump(store, jobs) == before
    entry = store.audit.entries().entries[0]
    assert (entry.verb, entry.count) == ("undo", 4)


def test_a_page_has_at_most_a_thousand_items(ann: Actions) -> None:
    jobs = ann.create_queue("jobs")
    with pytest.raises(TooLarge):
        ann.delete_items("jobs", ["00" * 20] * 1_001)
    with pytest.raises(TooLarge):
        ann.delete_items("jobs", [])
    big = jobs.push_many([(b"x" * 90_000, 1)] * 30) + jobs.push_many([(b"x" * 90_000, 1)] * 30)
    with pytest.raises(TooLarge, match="5 MB"):
        ann.delete_items("jobs", [item.id for item in big])
    assert jobs.depth() == 60


@pytest.mark.parametrize("state", ["ready", "delayed", "dead"])
def test_moving_keeps_value_id_and_priority_and_undo_leaves_no_trace(store: Store, clock: Clock, state: str) -> None:
    jobs, found = one_of_each(store, clock)
    review = store.create_queue("review", priority_type="float")
    older = review.push(b"older", priority=jobs.find(found[state]).priority)
    ann = store.actions("ann")
    before, was = dump(store, jobs, review), jobs.find(found[state])
    changed = ann.move_items("jobs", [was.id], "review")
    assert jobs.find(was.id) is None
    now = review.find(was.id)
    assert (now.value, now.priority, now.due_at) == (was.value, was.priority, was.due_at)
    assert now.state == ("delayed" if state == "delayed" else "ready")
    assert state == "delayed" or now.count > older.count, "it is a newcomer there"
    check_full_count(store, jobs)
    check_full_count(store, review)
    for name in ("jobs", "review"):
        assert store.audit.entries(queue=name).entries[0].verb == "move"
    assert store.trash.get(changed.trash_id).to == "review"
    assert ann.undo(changed.trash_id).count == 1
    assert dump(store, jobs, review) == before


def test_a_page_moves_in_order_into_a_fifo_queue_and_from_there_with_a_priority(store: Store, ann: Actions) -> None:
    jobs, mail = ann.create_queue("jobs"), ann.create_queue("mail", kind="fifo")
    mail.enqueue(b"first")
    items = jobs.push_many([(b"b", 2), (b"a", 1), (b"c", 3)])
    before = dump(store, jobs, mail)
    with pytest.raises(WrongKind):
        ann.move_items("jobs", [items[0].id], "mail", priority=1)
    changed = ann.move_items("jobs", [item.id for item in items], "mail")
    assert values(mail) == [b"first", b"b", b"a", b"c"]
    assert jobs.depth() == 0
    with pytest.raises(BadPriority, match="Say which priority"):
        ann.move_items("mail", [items[0].id], "jobs")
    back = ann.move_items("mail", [items[0].id], "jobs", priority=9)
    assert jobs.peek_min().priority == 9
    ann.undo(back.trash_id)
    ann.undo(changed.trash_id)
    assert dump(store, jobs, mail) == before


def test_moves_that_do_not_fit_are_refused_and_change_nothing(store: Store, ann: Actions) -> None:
    jobs, words = ann.create_queue("jobs"), ann.create_queue("words", priority_type="str")
    item = jobs.push(b"x", priority=5)
    before = dump(store, jobs, words)
    with pytest.raises(BadPriority):
        ann.move_items("jobs", [item.id], "words")
    with pytest.raises(SameQueue):
        ann.move_items("jobs", [item.id], "jobs")
    with pytest.raises(QueueNotFound, match="words"):
        ann.move_items("jobs", [item.id], "word")
    with pytest.raises(ItemNotFound):
        ann.move_items("words", [item.id], "jobs", priority=1)
    assert dump(store, jobs, words) == before
    moved = ann.move_items("jobs", [item.id], "words", priority="high")
    assert words.peek_max().priority == "high"
    ann.undo(moved.trash_id)
    assert dump(store, jobs, words) == before


def test_what_is_in_a_workers_hands_is_only_deleted(store: Store, ann: Actions, clock: Clock) -> None:
    jobs, found = one_of_each(store, clock)
    store.create_queue("review")
    before = dump(store, jobs)
    for act in (
        lambda: ann.move_items("jobs", list(found.values()), "review"),
        lambda: ann.reprioritize("jobs", [found["leased"]], priority=1),
        lambda: ann.edit_item("jobs", found["leased"], b"x", expect=b"held1"),
    ):
        with pytest.raises(ItemLeased, match="worker's hands"):
            act()
    assert dump(store, jobs) == before


def test_undoing_a_move_is_refused_when_items_have_gone_on(ann: Actions) -> None:
    jobs, review = ann.create_queue("jobs"), ann.create_queue("review")
    items = jobs.push_many([(b"%d" % n, n) for n in range(4)])
    changed = ann.move_items("jobs", [item.id for item in items], "review")
    review.pop_min()
    ann.edit_item("review", items[1].id, b"edited", expect=b"1")
    with pytest.raises(ItemGoneOn, match="2 of the 4 items have gone on") as caught:
        ann.undo(changed.trash_id)
    assert (caught.value.gone, caught.value.total) == (2, 4)
    assert (jobs.depth(), review.depth()) == (0, 3)
    undone = ann.undo(changed.trash_id, partial=True)
    assert (undone.count, undone.skipped) == (2, 2)
    assert values(jobs) == [b"2", b"3"]
    assert values(review) == [b"edited"]
    with pytest.raises(AlreadyRestored):
        ann.undo(changed.trash_id, partial=True)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"priority": 2}, [b"b", b"a", b"c", b"d"]),
        ({"shift": 100}, [b"b", b"c", b"d", b"a"]),
        ({"shift": -100}, [b"a", b"b", b"c", b"d"]),
        ({"place": "back"}, [b"b", b"c", b"d", b"a"]),
    ],
)
def test_an_item_gets_another_priority(store: Store, ann: Actions, how: dict, expected: list[bytes]) -> None:
    jobs = ann.create_queue("jobs", bands=[2, 50])
    items = jobs.push_many([(b"a", 1), (b"b", 2), (b"c", 3), (b"d", 3)])
    before = dump(store, jobs)
    traffic = store.queue("jobs").status()
    if how == {"priority": 2}:
        expected = [b"a", b"b", b"c", b"d"]  # pushed before b, it stays before b
    changed = ann.reprioritize("jobs", [items[0].id], **how)
    assert values(jobs) == expected
    assert jobs.find(items[0].id).value == b"a"
    check_full_count(store, jobs)
    after = store.queue("jobs").status()
    assert (after.arrived, after.left) == (traffic.arrived, traffic.left), "nothing came and nothing went"
    ann.undo(changed.trash_id)
    assert dump(store, jobs) == before


def test_an_undo_counts_as_restored_what_had_left_the_queue(store: Store, ann: Actions) -> None:
    jobs, _ = ann.create_queue("jobs"), ann.create_queue("review")
    ids = [item.id for item in jobs.push_many([(b"x", n) for n in range(10)])]
    ann.undo(ann.reprioritize("jobs", ids, priority=77).trash_id)
    ann.undo(ann.delay("jobs", ids, delay=60).trash_id)
    assert "restore" not in jobs.totals().traffic
    ann.undo(ann.delete_items("jobs", ids[:3]).trash_id)
    ann.undo(ann.move_items("jobs", ids[:4], to="review").trash_id)
    assert jobs.totals().traffic["restore"] == 7


def test_an_edit_keeps_to_the_largest_value_of_its_queue(store: Store, ann: Actions) -> None:
    jobs = ann.create_queue("jobs")
    large, small = jobs.push_many([(b"x" * 20, 1), (b"x", 2)])
    jobs.configure(max_value=10, max_depth=1, closed=True)
    with pytest.raises(ValueTooLarge, match="takes values of at most 10 bytes; this one has 11"):
        ann.edit_item("jobs", small.id, b"z" * 11, expect=b"x")
    assert jobs.find(small.id).value == b"x"
    edited = ann.edit_item("jobs", large.id, b"z" * 10, expect=b"x" * 20)
    ann.undo(edited.trash_id)
    assert jobs.find(large.id).size == 20, "what an undo brings back may be larger"


def test_a_page_goes_to_the_front_in_its_own_order(store: Store, ann: Actions) -> None:
    for name, kind in (("jobs", "priority"), ("mail", "fifo")):
        queue = ann.create_queue(name, kind=kind)
        items = ann.push_many(name, [(b"%d" % n, None if kind == "fifo" else n) for n in range(5)])
        before = dump(store, queue)
        front = ann.reprioritize(name, [items[4].id, items[2].id], place="front")
        assert values(queue) == [b"2", b"4", b"0", b"1", b"3"]
        back = ann.reprioritize(name, [items[0].id, items[2].id], place="back")
        assert values(queue) == [b"4", b"1", b"3", b"2", b"0"]
        check_full_count(store, queue)
        ann.undo(back.trash_id)
        ann.undo(front.trash_id)
        assert dump(store, queue) == before
    with pytest.raises(WrongKind):
        ann.reprioritize("mail", [items[0].id], priority=1)


def test_priorities_of_other_states_change_in_place(store: Store, ann: Actions, clock: Clock) -> None:
    jobs, found = one_of_each(store, clock)
    before = dump(store, jobs)
    changed = ann.reprioritize("jobs", [found["delayed"], found["dead"]], priority=77)
    assert {jobs.find(found[state]).priority for state in ("delayed", "dead")} == {77}
    check_full_count(store, jobs)
    ann.undo(changed.trash_id)
    assert dump(store, jobs) == before
    with pytest.raises(WrongKind, match="Only ready items"):
        ann.reprioritize("jobs", [found["delayed"]], place="front")


def test_priorities_that_cannot_be_are_refused(store: Store, ann: Actions) -> None:
    ann.create_queue("jobs")
    ann.create_queue("words", priority_type="str")
    ann.create_queue("scores", priority_type="float")
    job, word = ann.push("jobs", b"x", priority=1), ann.push("words", b"x", priority="a")
    score = ann.push("scores", b"x", priority=1e308)
    for act in (
        lambda: ann.reprioritize("jobs", [job.id], priority="high"),
        lambda: ann.reprioritize("jobs", [job.id], shift=0.5),
        lambda: ann.reprioritize("jobs", [job.id], shift=1 << 2_040),
        lambda: ann.reprioritize("jobs", [job.id]),
        lambda: ann.reprioritize("jobs", [job.id], priority=1, shift=1),
        lambda: ann.reprioritize("words", [word.id], shift=1),
        lambda: ann.reprioritize("scores", [score.id], shift=1e308),
    ):
        with pytest.raises(BadPriority):
            act()
    assert ann.reprioritize("jobs", [job.id], priority=1).count == 0
    assert [entry.verb for entry in store.audit.entries(queue="jobs").entries] == ["push", "create"]


@pytest.mark.parametrize("state", ["ready", "delayed", "dead"])
def test_a_value_is_edited_only_as_it_was_seen(store: Store, ann: Actions, clock: Clock, state: str) -> None:
    jobs, found = one_of_each(store, clock)
    item, before = jobs.find(found[state]), dump(store, jobs)
    with pytest.raises(ValueChanged) as caught:
        ann.edit_item("jobs", item.id, b"new", expect=b"something else")
    assert caught.value.item.value == item.value
    with pytest.raises(ItemChanged):
        ann.edit_item("jobs", item.id, b"new", expect=item.value, etag="that of another place")
    etag = ann.pick("jobs", [item.id]).picked[0].etag
    changed = ann.edit_item("jobs", item.id, b"new", expect=digest(item.value), etag=etag)
    assert jobs.find(item.id).value == b"new"
    assert jobs.find(item.id).priority == item.priority
    second = ann.edit_item("jobs", item.id, b"newer", expect=b"new")
    with pytest.raises(ItemGoneOn, match="The item has gone on"):
        ann.undo(changed.trash_id)
    ann.undo(second.trash_id)
    ann.undo(changed.trash_id)
    assert dump(store, jobs) == before
    assert ann.edit_item("jobs", item.id, item.value, expect=item.value).trash_id is None


def test_items_move_to_attached_queues_and_back(store: Store, ann: Actions) -> None:
    jobs = ann.create_queue("jobs")
    legacy = ann.attach("legacy", prefix=b"\x15old\x00")
    theirs = legacy.push(b"theirs", priority=5)
    items = jobs.push_many([(b"a", 5), (b"b", 7)])
    before, attached = dump(store, jobs), legacy.items().items
    changed = ann.move_items("jobs", [item.id for item in items], "legacy")
    assert values(legacy) == [b"theirs", b"a", b"b"]
    assert jobs.depth() == 0
    moved = ann.move_items("legacy", [theirs.id], "jobs")
    assert values(jobs) == [b"theirs"]
    check_full_count(store, jobs)
    ann.undo(moved.trash_id)
    ann.undo(changed.trash_id)
    assert dump(store, jobs) == before
    assert legacy.items().items == attached
    later = jobs.push(b"later", priority=1, delay=timedelta(hours=1))
    with pytest.raises(NotForAttached):
        ann.move_items("jobs", [later.id], "legacy")
    with pytest.raises(NotForAttached):
        ann.reprioritize("legacy", [theirs.id], priority=1)
    with pytest.raises(NotForAttached):
        ann.edit_item("legacy", theirs.id, b"x", expect=b"theirs")
    deleted = ann.delete_items("legacy", [theirs.id])
    assert legacy.items().items == ()
    ann.detach("legacy")
    with pytest.raises(QueueNotFound):
        ann.undo(deleted.trash_id)
    ann.attach("again", prefix=b"\x15old\x00")
    ann.undo(deleted.trash_id)
    assert values(store.queue("again")) == [b"theirs"]


def test_an_id_has_one_spelling(store: Store, ann: Actions) -> None:
    jobs, review = ann.create_queue("jobs"), ann.create_queue("review")
    item = ann.push("jobs", b"x", priority=1)
    before = dump(store, jobs, review)
    twice = [item.id, item.id.upper()]
    assert len(set(twice)) == 2
    for act in (
        lambda: ann.move_items("jobs", twice, "review"),
        lambda: ann.delete_items("jobs", twice),
        lambda: ann.reprioritize("jobs", twice, priority=2),
    ):
        with pytest.raises(ItemNotFound, match="1 of the 2 items is not in this queue"):
            act()
        assert dump(store, jobs, review) == before
    moved = ann.move_items("jobs", twice, "review", skip_missing=True)
    assert (moved.count, moved.skipped) == (1, 1)
    assert (check_full_count(store, jobs), check_full_count(store, review)) == (0, 1)


def test_what_no_queue_of_ours_takes_stays_in_the_attached_one(store: Store, ann: Actions) -> None:
    jobs = ann.create_queue("jobs")
    legacy = ann.attach("legacy", prefix=b"\x15old\x00")
    small, large = legacy.push(b"small", priority=5), legacy.push(b"large", priority=6)
    key = b"\x15old\x00" + large.foreign.suffix
    store.context.kv.transact(lambda tr: tr.set(key, b"x" * 90_001))
    before, theirs = dump(store, jobs), legacy.items().items
    with pytest.raises(ValueTooLarge, match="90,001"):
        ann.move_items("legacy", [small.id, large.id], "jobs")
    assert dump(store, jobs) == before
    assert legacy.items().items == theirs
    assert ann.move_items("legacy", [small.id], "jobs").count == 1
