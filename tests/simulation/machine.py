"""What random histories of a store share: a store on an engine, and one of which commits fail, acts and their undo.

The engine "faulty" is the simulated one whose commits fail, lose their answers and land late: as every outcome is
settled in the end, nothing of it may show.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, rule, run_state_machine_as_test

from queues import Store, open_store
from queues.errors import ItemGoneOn, StillMerging
from queues.keys.keyspace import Keyspace
from queues.kv.simulated import Fault, SeededFaults, SimulatedStore
from tests.conftest import ENGINES, Clock, store_url
from tests.simulation.schedules import WithoutHeartbeats
from tests.sweeps import merge_generations

RATES = {
    Fault.CONFLICT: 0.1,
    Fault.TOO_OLD: 0.05,
    Fault.UNKNOWN_BEFORE: 0.1,
    Fault.UNKNOWN_AFTER: 0.1,
    Fault.LATE: 0.2,
}
#: The simulated engine runs with faults alone.
on_every_engine = pytest.mark.parametrize("engine", [*(name for name in ENGINES if name != "simulated"), "faulty"])


def faulty_store(seed: int, clock: Clock) -> Store:
    """Open a store that fails all the time."""
    keyspace = Keyspace(("pq",))
    kv = SimulatedStore(
        clock=clock,
        sleep=lambda seconds: clock.advance(0.01),
        faults=SeededFaults(seed, RATES),
        slots=keyspace.slots,
    )
    return Store(kv, url="memory:", keyspace=keyspace, clock=clock, background_threads=WithoutHeartbeats())


class StoreMachine(RuleBasedStateMachine):
    """Opens a store, which `begin` fills, and closes it."""

    engine = "simulated"

    @initialize(seed=st.integers(min_value=0, max_value=1_000_000))
    def open(self, seed: int) -> None:
        self.folder, self.clock = Path(tempfile.mkdtemp()), Clock()
        if self.engine == "faulty":
            self.store = faulty_store(seed, self.clock)
        else:
            self.store = open_store(store_url(self.engine, self.folder), clock=self.clock)
        self.ann = self.store.actions("ann")
        self.begin()

    def begin(self) -> None:
        """Create the queues and their model."""

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.folder)


class ActsMachine(StoreMachine):
    """Remembers of each act its trash id, and its items before and after; undoes them."""

    acts = Bundle("acts")

    def begin(self) -> None:
        #: What is known of each item, by id.
        self.there: dict[str, Any] = {}

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


def run(machine: type[StoreMachine], *, examples: int, steps: int = 30, **attributes: str) -> None:
    """Run random histories of a machine with these attributes; `PQ_HISTORIES=10` for ten times as many."""
    run_state_machine_as_test(
        type(machine.__name__, (machine,), attributes),
        settings=settings(
            max_examples=examples * int(os.environ.get("PQ_HISTORIES", "1")),
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
