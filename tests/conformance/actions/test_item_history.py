"""What is known of one item: the audit by item, its neighbors, and revealing it."""

import pytest

from queues import Actions, Queue, Store
from queues.actions.position import neighbors
from queues.errors import ItemNotFound, QueueNotFound


def verbs(store: Store, item_id: str, **options: object) -> list[str]:
    return [entry.verb for entry in store.audit.entries(item=item_id, **options).entries]


def test_every_act_on_an_item_is_in_its_history(store: Store) -> None:
    ann, bob = store.actions("ann"), store.actions("bob")
    ann.create_queue("jobs")
    ann.create_queue("done")
    first, second = ann.push_many("jobs", [(b"a", 1), (b"b", 2)])
    moved = bob.move_items("jobs", [first.id, second.id], "done")
    ann.undo(moved.trash_id or "")
    edited = ann.edit_item("jobs", first.id, b"A", expect=b"a")
    bob.undo(edited.trash_id or "")
    popped = ann.pop("jobs", end="min")
    assert verbs(store, first.id) == ["pop_min", "undo", "edit", "undo", "move", "push"]
    assert verbs(store, second.id) == ["undo", "move", "push"]
    assert verbs(store, first.id, actor="bob") == ["undo", "move"]
    bob.undo(popped.trash_id)
    assert verbs(store, first.id)[0] == "put_back"
    assert verbs(store, first.id, limit=2) == ["put_back", "pop_min"]
    after = store.audit.entries(item=first.id, limit=2).cursor
    assert verbs(store, first.id, after=after) == ["undo", "edit", "undo", "move", "push"]
    for unknown in ("0" * 40, "key-00", "", "x" * 20_000, "\ud800"):
        assert verbs(store, unknown) == []


def test_the_history_keeps_to_its_item(store: Store, ann: Actions) -> None:
    ann.create_queue("jobs")
    items = [ann.push("jobs", b"%d" % n, priority=n) for n in range(3)]
    ann.delete_items("jobs", [items[0].id, items[2].id])
    assert verbs(store, items[1].id) == ["push"]
    assert [entry.count for entry in store.audit.entries(item=items[2].id).entries] == [2, 1]


def test_a_reveal_records_person_and_item_without_the_value(store: Store) -> None:
    ann = store.actions("ann", via="cli")
    jobs = ann.create_queue("jobs")
    item = jobs.push(b'{"password": "hunter2"}', priority=1)
    before = jobs.status().change
    assert ann.reveal("jobs", item.id, reason="ticket 7", expect_id=jobs.id).value == item.value
    assert jobs.status().change == before, "nothing changed"
    (entry,) = store.audit.entries(item=item.id).entries
    assert (entry.actor, entry.via, entry.verb, entry.queue, entry.item) == ("ann", "cli", "reveal", "jobs", item.id)
    assert entry.reason == "ticket 7"
    assert "hunter2" not in repr(entry)
    with pytest.raises(ItemNotFound):
        ann.reveal("jobs", "0" * 40)
    with pytest.raises(QueueNotFound):
        ann.reveal("jobs", item.id, expect_id=jobs.id + 1)
    assert len(store.audit.entries(item=item.id).entries) == 1


def test_neighbors_are_the_items_that_leave_before_and_after(store: Store, jobs: Queue) -> None:
    items = jobs.push_many([(b"a" * 100, 1), (b"b", 2), (b"c", 2), (b"d", 9)])

    def beside(item_id: str) -> tuple[bytes | None, bytes | None]:
        def look(tr):
            found = jobs.find(item_id, tr=tr)
            return found and neighbors(jobs, found, preview=3, tr=tr)

        found = store.read(look)
        return found.lower and found.lower.value, found.higher and found.higher.value

    assert beside(items[0].id) == (None, b"b")
    assert beside(items[1].id) == (b"aaa", b"c")
    assert beside(items[2].id) == (b"b", b"d")
    assert beside(items[3].id) == (b"c", None)
    line = store.create_queue("line", kind="fifo")
    head, tail = line.enqueue_many([b"x", b"y"])
    read = store.read(lambda tr: neighbors(line, tail, preview=9, tr=tr))
    assert (read.lower.id, read.higher) == (head.id, None)
    lease = jobs.lease()
    held = jobs.find(lease.item.id)
    assert held is not None
    assert store.read(lambda tr: neighbors(jobs, held, preview=9, tr=tr)) is None
