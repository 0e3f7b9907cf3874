"""One undo for every action: by a trash id or by the id of a bulk job."""

import pytest

from queues import Actions, Store
from queues.errors import TrashNotFound


def test_every_action_is_undone_by_its_id(store: Store, ann: Actions) -> None:
    jobs, review = ann.create_queue("jobs"), ann.create_queue("review")
    jobs.push_many([(b"%d" % n, n) for n in range(4)])
    before = jobs.items().items
    popped = ann.pop("jobs")
    moved = ann.move_items("jobs", [before[1].id], "review")
    begun = ann.run_bulk(ann.begin_bulk("delete", "jobs").id)
    deleted = ann.delete_queue("jobs", confirm="jobs")
    queue_back = ann.undo(deleted)
    assert (queue_back.queue, queue_back.item, queue_back.job) == ("jobs", None, None)
    undoing = ann.undo(begun.id).job
    assert ann.run_bulk(undoing.id).done == 2
    items_back = ann.undo(moved.trash_id)
    assert (items_back.queue, items_back.count, review.depth()) == ("jobs", 1, 0)
    assert ann.undo(popped.trash_id).item == before[0]
    assert store.queue("jobs").items().items == before
    verbs = [entry.verb for entry in store.audit.entries(queue="jobs").entries][:4]
    assert verbs == ["put_back", "undo", "undo", "restore_queue"]


@pytest.mark.parametrize("action_id", ["", "nothing", "0" * 40])
def test_what_was_never_done_is_not_undone(store: Store, action_id: str) -> None:
    with pytest.raises(TrashNotFound):
        store.actions("ann").undo(action_id)
