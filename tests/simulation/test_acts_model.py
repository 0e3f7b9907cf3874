"""Random acts and undos against plain models: every item is where it should be, and undo brings back the very item."""

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, multiple, rule

from queues import Item, Lease, Queue
from queues.errors import ItemChanged, StaleLease, WrongState
from tests.full_count import check_full_count
from tests.simulation.machine import ActsMachine, on_every_engine, run
from tests.sweeps import merge_generations

NAMES = st.sampled_from(["a", "b"])
PRIORITIES = st.integers(min_value=-3, max_value=3)
CHOICE = st.sets(st.integers(min_value=0, max_value=7), min_size=1, max_size=4)
FEWER = st.sets(st.integers(min_value=0, max_value=5), min_size=1, max_size=3)
VERBS = {"promote": "delayed", "reschedule": "delayed", "retry_dead": "dead", "release": "leased"}


class Places(ActsMachine):
    """Two queues as items by id, each with the name of its queue, beside the real store."""

    def begin(self) -> None:
        super().begin()
        self.queues: dict[str, Queue] = {name: self.store.create_queue(name, bands=[0]) for name in ("a", "b")}
        self.number = 0

    def chosen(self, name: str, choice: set[int]) -> list[str]:
        ids = sorted(item_id for item_id, (queue, _) in self.there.items() if queue == name)
        return [ids[n] for n in sorted(choice) if n < len(ids)]

    def acted(self, trash_id: str | None, item_ids: list[str], name: str) -> object:
        """Look at what an act left of these items in a queue, and remember the act."""
        if trash_id is None:
            return multiple()
        before = {item_id: self.there[item_id] for item_id in item_ids}
        for item_id in item_ids:
            found = self.queues[name].find(item_id)
            assert found is not None
            self.there[item_id] = (name, found)
        changed = {item_id for item_id in item_ids if self.there[item_id] != before[item_id]}
        after = {item_id: self.there[item_id] for item_id in changed}
        return trash_id, {item_id: before[item_id] for item_id in changed}, after

    @rule(name=NAMES, priorities=st.lists(PRIORITIES, min_size=1, max_size=4))
    def push(self, name: str, priorities: list[int]) -> None:
        for item in self.queues[name].push_many([(b"%d" % self.number, priority) for priority in priorities]):
            self.there[item.id] = (name, item)
        self.number += 1
        self.clock.advance(0.5)

    @rule(name=NAMES)
    def pop(self, name: str) -> None:
        item = self.queues[name].pop_min()
        if item is not None:
            assert self.there.pop(item.id) == (name, item)

    @rule(target=ActsMachine.acts, name=NAMES, choice=CHOICE)
    def delete(self, name: str, choice: set[int]) -> object:
        ids = self.chosen(name, choice)
        if not ids:
            return multiple()
        changed = self.ann.delete_items(name, ids)
        return changed.trash_id, {item_id: self.there.pop(item_id) for item_id in ids}, {}

    @rule(target=ActsMachine.acts, name=NAMES, choice=CHOICE)
    def move(self, name: str, choice: set[int]) -> object:
        ids, to = self.chosen(name, choice), "b" if name == "a" else "a"
        if not ids:
            return multiple()
        was = {item_id: self.there[item_id][1] for item_id in ids}
        acted = self.acted(self.ann.move_items(name, ids, to).trash_id, ids, to)
        for item_id, item in was.items():
            now = self.there[item_id][1]
            assert (now.value, now.priority) == (item.value, item.priority)
        return acted

    @rule(target=ActsMachine.acts, name=NAMES, choice=CHOICE, priority=PRIORITIES)
    def set_priority(self, name: str, choice: set[int], priority: int) -> object:
        ids = self.chosen(name, choice)
        if not ids:
            return multiple()
        acted = self.acted(self.ann.reprioritize(name, ids, priority=priority).trash_id, ids, name)
        assert {self.there[item_id][1].priority for item_id in ids} == {priority}
        return acted

    @rule(target=ActsMachine.acts, name=NAMES, choice=CHOICE, place=st.sampled_from(["front", "back"]))
    def bring(self, name: str, choice: set[int], place: str) -> object:
        ids = self.chosen(name, choice)
        if not ids:
            return multiple()
        order = [item.id for item in self.queues[name].items(limit=1_000).items]
        acted = self.acted(self.ann.reprioritize(name, ids, place=place).trash_id, ids, name)
        rest = [item_id for item_id in order if item_id not in ids]
        brought = [item_id for item_id in order if item_id in ids]
        now = [item.id for item in self.queues[name].items(limit=1_000).items]
        assert now == (brought + rest if place == "front" else rest + brought)
        return acted

    @rule(target=ActsMachine.acts, name=NAMES, choice=CHOICE)
    def edit(self, name: str, choice: set[int]) -> object:
        ids = self.chosen(name, choice)[:1]
        if not ids:
            return multiple()
        self.number += 1
        value, seen = b"edited %d" % self.number, self.there[ids[0]][1].value
        return self.acted(self.ann.edit_item(name, ids[0], value, expect=seen).trash_id, ids, name)

    @rule(target=ActsMachine.acts, name=NAMES)
    def purge(self, name: str) -> object:
        gone = [item_id for item_id, (queue, _) in self.there.items() if queue == name]
        purged = self.ann.purge(name, confirm=name, expect_depth=len(gone))
        if len(purged.trash_ids) != 1:
            # Of two generations no caller here knows what they hold: both come back at once.
            for trash_id in purged.trash_ids:
                self.ann.undo(trash_id)
            return multiple()
        return purged.trash_ids[0], {item_id: self.there.pop(item_id) for item_id in gone}, {}

    @rule()
    def merge(self) -> None:
        merge_generations(self.store)

    @invariant()
    def agree(self) -> None:
        for name, queue in self.queues.items():
            mine = [item for queue_name, item in self.there.values() if queue_name == name]
            mine.sort(key=lambda item: (item.priority, item.count, item.id))
            assert list(queue.items(limit=1_000).items) == mine
            assert check_full_count(self.store, queue) == len(mine)


class States(ActsMachine):
    """A queue as items by id beside the real one, with workers between the acts."""

    def begin(self) -> None:
        super().begin()
        self.jobs = self.store.create_queue("jobs", bands=[0])
        self.jobs.configure(max_attempts=2)
        self.leases: list[Lease] = []

    def chosen(self, state: str, choice: set[int]) -> list[str]:
        ids = sorted(item_id for item_id, item in self.there.items() if item.state == state)
        return [ids[n] for n in sorted(choice) if n < len(ids)]

    def look(self, item_id: str) -> Item:
        found = self.jobs.find(item_id)
        assert found is not None
        self.there[item_id] = found
        return found

    @rule(priority=st.integers(min_value=-2, max_value=2), later=st.booleans())
    def push(self, priority: int, later: bool) -> None:
        delay = timedelta(hours=1) if later else None
        item = self.jobs.push(b"%d" % len(self.there), priority=priority, delay=delay)
        self.look(item.id)
        self.clock.advance(0.5)

    @rule(worker=st.sampled_from(["w1", "w2"]))
    def lease(self, worker: str) -> None:
        for lease in self.jobs.lease_many(1, seconds=100_000, worker=worker):
            assert self.there[lease.item.id].state == "ready"
            self.look(lease.item.id)
            self.leases.append(lease)
        self.clock.advance(0.5)

    @rule(n=st.integers(min_value=0, max_value=5), done=st.booleans())
    def end_lease(self, n: int, done: bool) -> None:
        if n >= len(self.leases):
            return
        lease = self.leases.pop(n)
        item = self.there.get(lease.item.id)
        if item is None or (item.state, item.leased_at) != ("leased", lease.item.leased_at):
            with pytest.raises(StaleLease):  # gone altogether counts as acknowledged before: `release` says so too
                self.jobs.release(lease)
        elif done:
            self.jobs.ack(lease)
            del self.there[lease.item.id]
        else:
            self.jobs.release(lease, reason="failed")
            self.look(lease.item.id)
        self.clock.advance(0.5)

    @rule(target=ActsMachine.acts, verb=st.sampled_from(sorted(VERBS)), choice=FEWER)
    def bring(self, verb: str, choice: set[int]) -> object:
        ids = self.chosen(VERBS[verb], choice)
        if not ids:
            return multiple()
        before = {item_id: self.there[item_id] for item_id in ids}
        more = {"delay": timedelta(hours=2)} if verb == "reschedule" else {}
        marks = {picked.item.id: picked.etag for picked in self.ann.pick("jobs", ids).picked}
        changed = getattr(self.ann, verb)("jobs", ids, expect=marks, **more)
        assert changed.count == len(ids)
        with pytest.raises((WrongState, ItemChanged)):
            getattr(self.ann, verb)("jobs", ids, expect=marks, **more)
        self.clock.advance(0.5)
        return changed.trash_id, before, {item_id: self.look(item_id) for item_id in ids}

    @rule(target=ActsMachine.acts, state=st.sampled_from(["ready", "delayed", "leased", "dead"]), choice=FEWER)
    def delete(self, state: str, choice: set[int]) -> object:
        ids = self.chosen(state, choice)
        if not ids:
            return multiple()
        changed = self.ann.delete_items("jobs", ids)
        return changed.trash_id, {item_id: self.there.pop(item_id) for item_id in ids}, {}

    @invariant()
    def agree(self) -> None:
        for item_id, item in self.there.items():
            assert self.jobs.find(item_id) == item
        totals, states = self.jobs.totals(), Counter(item.state for item in self.there.values())
        assert {state: getattr(totals, state) for state in ("ready", "delayed", "leased", "dead")} == {
            state: states[state] for state in ("ready", "delayed", "leased", "dead")
        }
        assert check_full_count(self.store, self.jobs) == states["ready"]


@on_every_engine
def test_acts_and_undos_agree_with_the_model(engine: str) -> None:
    run(Places, engine=engine, examples=30)


@on_every_engine
def test_acts_on_states_and_undos_agree_with_the_model(engine: str) -> None:
    run(States, engine=engine, examples=8)
