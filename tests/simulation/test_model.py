"""Random histories of a whole store against a plain model of it: nothing lost, nothing twice, strict order.

One client at a time; several at once are in `test_schedules.py`.
"""

import sys

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, consumes, invariant, precondition, rule

from queues import Queue
from queues.errors import QueueExists, QueuePaused
from tests.full_count import check_full_count
from tests.simulation.machine import StoreMachine, on_every_engine, run

PRIORITIES = st.integers(min_value=-3, max_value=3)
NAMES = st.sampled_from(["a", "b", "c"])


class OnPurpose(Exception):
    """Raised inside a transaction to see it undone."""


class Model(StoreMachine):
    """Queues as plain lists of (priority, order, value), beside the real store."""

    popped = Bundle("popped")
    deleted = Bundle("deleted")

    def begin(self) -> None:
        self.handles: dict[str, Queue] = {}
        self.lists: dict[str, list] = {}
        self.paused: set[str] = set()
        self.order = 0
        #: What was the case when a queue agreed with its list.
        self.agreed: dict[str, tuple] = {}
        for name in ("a", "b"):
            self.create(name)

    def create(self, name: str) -> None:
        self.handles[name] = self.store.create_queue(name, bands=[-1, 1])
        self.lists[name] = []

    def entry(self, priority: int) -> tuple[int, int, bytes]:
        self.order += 1
        return priority, self.order, b"%d" % self.order

    def there(self, name: str) -> str:
        return name if name in self.lists else min(self.lists)

    @rule(name=NAMES, priorities=st.lists(PRIORITIES, min_size=1, max_size=5))
    @precondition(lambda self: self.lists)
    def push(self, name: str, priorities: list[int]) -> None:
        name = self.there(name)
        entries = [self.entry(priority) for priority in priorities]
        self.handles[name].push_many([(value, priority) for priority, _, value in entries])
        self.lists[name] = sorted(self.lists[name] + entries)
        self.clock.advance(0.5)

    @rule(name=NAMES, n=st.integers(min_value=1, max_value=4), end=st.sampled_from(["min", "max"]))
    @precondition(lambda self: self.lists)
    def pop(self, name: str, n: int, end: str) -> None:
        name = self.there(name)
        if name in self.paused:
            with pytest.raises(QueuePaused):
                self.handles[name].pop_many(n, end=end)
            return
        expected = self.lists[name][:n] if end == "min" else self.lists[name][::-1][:n]
        taken = self.handles[name].pop_many(n, end=end)
        assert [(item.priority, item.value) for item in taken] == [(p, v) for p, _, v in expected]
        self.lists[name] = [entry for entry in self.lists[name] if entry not in expected]

    @rule(target=popped, name=NAMES, end=st.sampled_from(["min", "max"]))
    @precondition(lambda self: any(self.lists[name] for name in self.lists if name not in self.paused))
    def pop_by_hand(self, name: str, end: str) -> tuple:
        if name not in self.lists or name in self.paused or not self.lists[name]:
            name = next(n for n in sorted(self.lists) if n not in self.paused and self.lists[n])
        entry = self.lists[name].pop(0 if end == "min" else -1)
        popped = self.ann.pop(name, end=end)
        assert popped.item.value == entry[2]
        return self.handles[name].id, popped.trash_id, entry

    @rule(one=consumes(popped))
    def put_back(self, one: tuple) -> None:
        queue_id, trash_id, entry = one
        for name, handle in self.handles.items():
            if handle.id == queue_id:
                self.ann.undo(trash_id)
                self.lists[name] = sorted([*self.lists[name], entry])

    @rule(priority=PRIORITIES, fail=st.booleans())
    @precondition(lambda self: len(self.lists) >= 2 and not self.paused)
    def move(self, priority: int, fail: bool) -> None:
        source, target = sorted(self.lists)[:2]
        moved = []

        def work(tr) -> None:
            moved.clear()
            item = self.handles[source].pop_max(tr=tr)
            if item is not None:
                moved.append(self.handles[target].push(item.value, priority=priority, tr=tr))
            if fail:
                raise OnPurpose

        if fail:
            with pytest.raises(OnPurpose):
                self.store.transact(work)
            return
        self.store.transact(work)
        if self.lists[source]:
            _, _, value = self.lists[source].pop()
            self.order += 1
            self.lists[target] = sorted([*self.lists[target], (priority, self.order, value)])

    @rule(name=NAMES)
    @precondition(lambda self: self.lists)
    def pause_or_resume(self, name: str) -> None:
        name = self.there(name)
        if name in self.paused:
            self.handles[name].resume()
            self.paused.remove(name)
        else:
            self.handles[name].pause(reason="r")
            self.paused.add(name)

    @rule(target=deleted, name=NAMES)
    @precondition(lambda self: len(self.lists) > 1)
    def delete(self, name: str) -> tuple:
        name = self.there(name)
        trash_id = self.store.delete_queue(name)
        paused = name in self.paused
        self.paused.discard(name)
        return name, trash_id, self.handles.pop(name), self.lists.pop(name), paused

    @rule(one=consumes(deleted))
    def restore(self, one: tuple) -> None:
        name, trash_id, handle, entries, paused = one
        if name in self.lists:
            with pytest.raises(QueueExists):
                self.store.restore(trash_id)
            return
        self.store.restore(trash_id)
        self.handles[name], self.lists[name] = handle, entries
        if paused:
            self.paused.add(name)

    @rule(name=NAMES)
    def create_or_rename(self, name: str) -> None:
        if name in self.lists:
            with pytest.raises(QueueExists):
                self.store.create_queue(name)
            return
        if self.order % 2:
            self.create(name)
        else:
            old = min(self.lists)
            self.store.rename_queue(old, name)
            self.handles[name], self.lists[name] = self.handles.pop(old), self.lists.pop(old)
            if old in self.paused:
                self.paused.remove(old)
                self.paused.add(name)

    @invariant()
    def agree(self) -> None:
        """Check the queues that have changed since they agreed, by their lists or by their own notice."""
        assert list(self.store.directory()) == sorted(self.lists)
        for name, entries in self.lists.items():
            queue = self.handles[name]
            change = self.store.context.keyspace.change(queue.id)
            noticed = self.store.read(lambda tr, key=change: tr.get(key).wait())
            now = queue.id, tuple(entries), name in self.paused, noticed
            if self.agreed.get(name) != now:
                self.check(queue, entries)
                self.agreed[name] = now

    def check(self, queue: Queue, entries: list) -> None:
        assert [(i.priority, i.value) for i in queue.items(limit=1000).items] == [(p, v) for p, _, v in entries]
        assert check_full_count(self.store, queue) == len(entries)
        oldest = queue.oldest()
        assert (oldest is None) == (not entries)
        status = queue.status()
        assert (status.min and status.min.value) == (entries[0][2] if entries else None)
        assert (status.max and status.max.value) == (entries[-1][2] if entries else None)

    def teardown(self) -> None:
        """Check all queues, unless something failed already."""
        try:
            if sys.exc_info()[0] is None:
                for name, entries in self.lists.items():
                    self.check(self.handles[name], entries)
        finally:
            super().teardown()


@on_every_engine
def test_a_store_is_its_model(engine: str) -> None:
    run(Model, engine=engine, examples=60, steps=40)
