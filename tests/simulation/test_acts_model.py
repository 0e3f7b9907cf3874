"""Random acts and undos against a plain model: every item is where it should be, and undo brings back the very item."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from queues import Item, Queue, open_store
from queues.errors import ItemGoneOn, StillMerging
from tests.conftest import ENGINES, Clock, store_url
from tests.full_count import check_full_count
from tests.simulation.test_model import faulty_store
from tests.sweeps import merge_generations

NAMES = st.sampled_from(["a", "b"])
PRIORITIES = st.integers(min_value=-3, max_value=3)
CHOICE = st.sets(st.integers(min_value=0, max_value=7), min_size=1, max_size=4)


class Model(RuleBasedStateMachine):
    """Two queues as items by id, beside the real store; each act remembers its items before and after."""

    engine = "simulated"
    acts = Bundle("acts")

    @initialize(seed=st.integers(min_value=0, max_value=1_000_000))
    def open(self, seed: int) -> None:
        self.folder, self.clock = Path(tempfile.mkdtemp()), Clock()
        self.store = (
            faulty_store(seed, self.clock)
            if self.engine == "faulty"
            else open_store(store_url(self.engine, self.folder), clock=self.clock)
        )
        self.ann = self.store.actions("ann")
        self.queues: dict[str, Queue] = {name: self.store.create_queue(name, bands=[0]) for name in ("a", "b")}
        self.there: dict[str, tuple[str, Item]] = {}
        self.number = 0

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.folder)

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

    @rule(target=acts, name=NAMES, choice=CHOICE)
    def delete(self, name: str, choice: set[int]) -> object:
        ids = self.chosen(name, choice)
        if not ids:
            return multiple()
        changed = self.ann.delete_items(name, ids)
        return changed.trash_id, {item_id: self.there.pop(item_id) for item_id in ids}, {}

    @rule(target=acts, name=NAMES, choice=CHOICE)
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

    @rule(target=acts, name=NAMES, choice=CHOICE, priority=PRIORITIES)
    def set_priority(self, name: str, choice: set[int], priority: int) -> object:
        ids = self.chosen(name, choice)
        if not ids:
            return multiple()
        acted = self.acted(self.ann.reprioritize(name, ids, priority=priority).trash_id, ids, name)
        assert {self.there[item_id][1].priority for item_id in ids} == {priority}
        return acted

    @rule(target=acts, name=NAMES, choice=CHOICE, place=st.sampled_from(["front", "back"]))
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

    @rule(target=acts, name=NAMES, choice=CHOICE)
    def edit(self, name: str, choice: set[int]) -> object:
        ids = self.chosen(name, choice)[:1]
        if not ids:
            return multiple()
        self.number += 1
        value, seen = b"edited %d" % self.number, self.there[ids[0]][1].value
        return self.acted(self.ann.edit_item(name, ids[0], value, expect=seen).trash_id, ids, name)

    @rule(target=acts, name=NAMES)
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

    @rule(act=consumes(acts))
    def undo(self, act: tuple) -> None:
        trash_id, before, after = act
        gone = [item_id for item_id, there in after.items() if self.there.get(item_id) != there]
        if gone:
            with pytest.raises(ItemGoneOn) as caught:
                self.ann.undo(trash_id)
            assert (caught.value.gone, caught.value.total) == (len(gone), len(after))
            return
        try:
            undone = self.ann.undo(trash_id)
        except StillMerging:
            merge_generations(self.store)
            undone = self.ann.undo(trash_id)
        assert undone.count == len(before)
        self.there |= before

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "store"):
            return
        for name, queue in self.queues.items():
            mine = [item for queue_name, item in self.there.values() if queue_name == name]
            mine.sort(key=lambda item: (item.priority, item.count, item.id))
            assert list(queue.items(limit=1_000).items) == mine
            assert check_full_count(self.store, queue) == len(mine)


@pytest.mark.parametrize("engine", [*ENGINES, "faulty"])
def test_acts_and_undos_agree_with_the_model(engine: str) -> None:
    run_state_machine_as_test(
        type("Model", (Model,), {"engine": engine}),
        settings=settings(
            max_examples=15 if engine == "faulty" else 30,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
