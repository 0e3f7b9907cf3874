"""The in-process twin against a plain model: a sorted list of what is due, and a list of what is not."""

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from queues.local import Empty, Full, PriorityQueue, ordered
from tests.conftest import Clock
from tests.queues.local.test_priority_queue import Job, later


class Twin(RuleBasedStateMachine):
    """Every step is done to both, and both ends compared after it."""

    @initialize(maxsize=st.sampled_from([0, 0, 20]))
    def begin(self, maxsize: int) -> None:
        """Start with an empty queue."""
        self.clock = Clock()
        self.jobs: PriorityQueue[object] = PriorityQueue(maxsize, clock=self.clock)
        self.ready: list[Job] = []
        self.delayed: list[tuple[float, int, Job]] = []
        self.put = 0
        self.unfinished = 0

    def _full(self) -> bool:
        return 0 < self.jobs.maxsize <= len(self.ready) + len(self.delayed)

    @rule(priority=st.integers(0, 9), delay=st.sampled_from([None, None, -1, 0, 1, 2, 5]))
    def put_one(self, priority: int, delay: int | None) -> None:
        """Put an item, due now or later."""
        item = Job(priority, str(self.put))
        due = None if delay is None else later(self.clock, delay)
        if self._full():
            with pytest.raises(Full):
                self.jobs.put_nowait(item, due=due)
            return
        self.jobs.put_nowait(item, due=due)
        self.put += 1
        self.unfinished += 1
        if due is None or due.timestamp() <= self.clock.now:
            self.ready.append(item)
            self.ready.sort()
        else:
            self.delayed.append((due.timestamp(), self.put, item))

    @rule(priorities=st.lists(st.integers(0, 9), min_size=3, max_size=12))
    def put_several(self, priorities: list[int]) -> None:
        """Put several items that are ready."""
        for priority in priorities:
            self.put_one(priority, None)

    @rule(odd=st.sampled_from(["text", None, 3]))
    def put_odd(self, odd: object) -> None:
        """Put what does not compare; with nothing ready it would be let in."""
        if self.ready and not self._full():
            with pytest.raises(TypeError):
                self.jobs.put_nowait(odd)

    @rule(largest=st.booleans())
    def take(self, largest: bool) -> None:
        """Take from an end."""
        take = self.jobs.get_max if largest else self.jobs.get
        if self.ready:
            assert take(block=False) is self.ready.pop(-1 if largest else 0)
        else:
            with pytest.raises(Empty):
                take(block=False)

    @rule(seconds=st.sampled_from([0.5, 1, 3]))
    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.advance(seconds)
        for entry in sorted(self.delayed, key=lambda entry: entry[:2]):
            if entry[0] <= self.clock.now:
                self.delayed.remove(entry)
                self.ready.append(entry[2])
                self.ready.sort()

    @precondition(lambda self: self.unfinished)
    @rule()
    def finish(self) -> None:
        """Say that a task is done."""
        self.jobs.task_done()
        self.unfinished -= 1

    @invariant()
    def same(self) -> None:
        """Compare what can be seen."""
        size = len(self.ready) + len(self.delayed)
        assert (self.jobs.qsize(), self.jobs.empty(), self.jobs.full()) == (size, not size, self._full())
        assert self.jobs.unfinished_tasks == self.unfinished
        if self.ready:
            assert self.jobs.peek_min() is self.ready[0]
            assert self.jobs.peek_max() is self.ready[-1]
        else:
            for peek in (self.jobs.peek_min, self.jobs.peek_max):
                with pytest.raises(Empty):
                    peek()


@pytest.mark.parametrize("chunk", [2, 3, 512])
def test_the_queue_does_what_the_model_does(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "_FULL", chunk)  # small chunks: every step moves between them
    run_state_machine_as_test(
        Twin, settings=settings(max_examples=25, stateful_step_count=40, deadline=None, database=None)
    )
