"""Where re-prioritized items would be, told before: the very place that they have afterwards."""

import pytest

from queues import Actions, Queue, Store
from queues.actions import position as positions
from queues.errors import BadPriority, ItemLeased, NotForAttached, WrongKind
from tests.dumps import dump

HOWS = [
    {"priority": 4},
    {"priority": 5},
    {"priority": -1},
    {"priority": 99},
    {"shift": 3},
    {"shift": -3},
    {"place": "front"},
    {"place": "back"},
]


def furnish(store: Store, priorities: list[int]) -> Queue:
    jobs = store.create_queue("jobs", bands=[3, 6])
    jobs.push_many([(b"%d.%d" % (priority, n), priority) for n, priority in enumerate(priorities)])
    return jobs


@pytest.mark.parametrize("chosen", [[4], [0, 6, 11], [2, 3, 4, 5]])
@pytest.mark.parametrize("how", HOWS, ids=str)
def test_items_come_where_it_was_foreseen(store: Store, ann: Actions, how: dict, chosen: list[int]) -> None:
    jobs = furnish(store, [1, 1, 2, 4, 4, 5, 5, 5, 6, 8, 8, 9])
    items = jobs.items().items
    ids = [items[n].id for n in chosen]
    before = dump(store, jobs)
    foreseen = ann.preview_reprioritize("jobs", ids, **how)
    assert dump(store, jobs) == before
    changed = ann.reprioritize("jobs", ids, **how)
    assert len(foreseen.changes) == changed.count
    if not changed.count:
        assert foreseen.first is foreseen.last is None
        return
    assert foreseen.was.before == min(
        n for n, item in enumerate(items) if item.id in {o.id for o, _ in foreseen.changes}
    )
    after = [item.id for item in jobs.items().items]
    moved = {old.id for old, _ in foreseen.changes}
    places = [n for n, item_id in enumerate(after) if item_id in moved]
    others = [item_id for item_id in after if item_id not in moved]
    for position, place in ((foreseen.first, places[0]), (foreseen.last, places[-1])):
        staying = sum(item_id not in moved for item_id in after[:place])
        assert (position.before, position.of, position.exact) == (staying, len(others), True)
        lower = others[staying - 1] if staying else None
        higher = others[staying] if staying < len(others) else None
        beside = position.neighbors
        assert (beside.lower and beside.lower.id, beside.higher and beside.higher.id) == (lower, higher)
    assert [new.priority for _, new in foreseen.changes] == [jobs.find(old.id).priority for old, _ in foreseen.changes]


def test_deep_in_a_band_it_is_about_right(store: Store, ann: Actions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "BOUND", 200)
    jobs = store.create_queue("jobs", bands=[3, 6])
    for _ in range(3):
        jobs.push_many([(b"x", n % 10) for n in range(900)])
    item = jobs.items(limit=1).items[0]
    near = ann.preview_reprioritize("jobs", [item.id], priority=3).first
    assert (near.before, near.exact) == (809, True), "the first of its band"
    near = ann.preview_reprioritize("jobs", [item.id], priority=9).first
    assert near.exact is False
    assert 1619 < near.before < 2699
    reads = store.read(lambda tr: (ann.preview_reprioritize("jobs", [item.id], priority=9, tr=tr), tr.reads)[1])
    assert reads < 60


def test_fifo_items_go_to_the_front_and_the_back(store: Store, ann: Actions) -> None:
    mail = store.create_queue("mail", kind="fifo")
    items = mail.enqueue_many([b"1", b"2", b"3", b"4"])
    front = ann.preview_reprioritize("mail", [items[2].id], place="front").first
    assert (front.before, front.of, front.neighbors.lower, front.neighbors.higher.value) == (0, 3, None, b"1")
    back = ann.preview_reprioritize("mail", [items[2].id], place="back").first
    assert (back.before, back.neighbors.lower.value, back.neighbors.higher) == (3, b"4", None)
    with pytest.raises(WrongKind):
        ann.preview_reprioritize("mail", [items[0].id], priority=1)


def test_what_would_be_refused_is_refused_before(store: Store, ann: Actions) -> None:
    jobs = furnish(store, [1, 2])
    lease = jobs.lease(seconds=60)
    with pytest.raises(ItemLeased):
        ann.preview_reprioritize("jobs", [lease.item.id], priority=4)
    with pytest.raises(BadPriority):
        ann.preview_reprioritize("jobs", [jobs.peek_min().id], priority="high")
    attached = store.attach("legacy", prefix=b"theirs")
    item = attached.push(b"x", priority=1)
    with pytest.raises(NotForAttached):
        ann.preview_reprioritize("legacy", [item.id], priority=4)
