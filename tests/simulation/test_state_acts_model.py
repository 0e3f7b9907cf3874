"""Random acts on the states of items, with workers between them, against a plain model: undo brings back the item."""

import shutil
import tempfile
from collections import Counter
from datetime import timedelta
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

from queues import Item, Lease, open_store
from queues.errors import ItemChanged, ItemGoneOn, StaleLease, WrongState
from tests.conftest import ENGINES, Clock, store_url
from tests.full_count import check_full_count
from tests.simulation.test_model import faulty_store

CHOICE = st.sets(st.integers(min_value=0, max_value=5), min_size=1, max_size=3)
VERBS = {"promote": "delayed", "reschedule": "delayed", "retry_dead": "dead", "release": "leased"}


class Model(RuleBasedStateMachine):
    """A queue as items by id beside the real one; each act remembers its items before and after."""

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
        self.jobs = self.store.create_queue("jobs", bands=[0])
        self.jobs.configure(max_attempts=2)
        self.there: dict[str, Item] = {}
        self.leases: list[Lease] = []

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.folder)

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

    @rule(target=acts, verb=st.sampled_from(sorted(VERBS)), choice=CHOICE)
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

    @rule(target=acts, state=st.sampled_from(["ready", "delayed", "leased", "dead"]), choice=CHOICE)
    def delete(self, state: str, choice: set[int]) -> object:
        ids = self.chosen(state, choice)
        if not ids:
            return multiple()
        changed = self.ann.delete_items("jobs", ids)
        return changed.trash_id, {item_id: self.there.pop(item_id) for item_id in ids}, {}

    @rule(act=consumes(acts))
    def undo(self, act: tuple) -> None:
        trash_id, before, after = act
        gone = [item_id for item_id, item in after.items() if self.there.get(item_id) != item]
        if gone:
            with pytest.raises(ItemGoneOn) as caught:
                self.ann.undo(trash_id)
            assert (caught.value.gone, caught.value.total) == (len(gone), len(after))
            return
        assert self.ann.undo(trash_id).count == len(before)
        self.there |= before

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "store"):
            return
        for item_id, item in self.there.items():
            assert self.jobs.find(item_id) == item
        totals, states = self.jobs.totals(), Counter(item.state for item in self.there.values())
        assert {state: getattr(totals, state) for state in ("ready", "delayed", "leased", "dead")} == {
            state: states[state] for state in ("ready", "delayed", "leased", "dead")
        }
        assert check_full_count(self.store, self.jobs) == states["ready"]


@pytest.mark.parametrize("engine", [*ENGINES, "faulty"])
def test_acts_on_states_and_undos_agree_with_the_model(engine: str) -> None:
    run_state_machine_as_test(
        type("Model", (Model,), {"engine": engine}),
        settings=settings(
            max_examples=8,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
