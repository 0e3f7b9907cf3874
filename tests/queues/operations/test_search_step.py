"""Steps of a search: looking at values takes its time as well, and a step that it ends loses nothing."""

from datetime import timedelta
from pathlib import Path

import pytest

from queues import Item, Query, open_store
from queues.items.scan import Met
from queues.operations import search_step
from queues.operations.search_step import LOOK_SECONDS, Step
from tests.conftest import store_url


class Slow:
    """Picks nothing, and takes so many seconds of a clock for each item."""

    def __init__(self, seconds: float) -> None:
        self.now = 0.0
        self._seconds = seconds

    def clock(self) -> float:
        return self.now

    def pick(self, met: Met) -> Item | None:
        self.now += self._seconds
        return None


def _met() -> Met:
    return Met(place=b"", value=b"v", item=lambda: pytest.fail("nothing was picked"))


@pytest.mark.parametrize(("seconds", "looked"), [(LOOK_SECONDS / 4, 4), (LOOK_SECONDS * 40, 1)])
def test_a_step_ends_at_the_item_that_took_too_long(seconds: float, looked: int) -> None:
    slow = Slow(seconds)
    step = Step(slow.pick, limit=50, scan=5_000, clock=slow.clock)
    places = [bytes([n]) for n in range(100)]
    met = [place for place in places if step.meet(place, _met())]
    assert met == places[:looked]
    assert step.full()
    assert step.cut() == places[looked - 1], "the next step begins behind what was looked at"
    assert step.searched == looked


def test_time_that_reading_took_ends_no_read_half_way() -> None:
    slow = Slow(0)
    step = Step(slow.pick, limit=50, scan=5_000, clock=slow.clock)
    slow.now = 60
    assert all(step.meet(bytes([n]), _met()) for n in range(100))
    assert step.full()


@pytest.mark.parametrize("state", ["ready", "delayed"])
def test_steps_of_one_item_each_find_everything_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr(search_step, "LOOK_SECONDS", 0.0000000001)
    with open_store(store_url("embedded", tmp_path)) as store:
        queue = store.create_queue("jobs")
        delay = timedelta(hours=1) if state == "delayed" else None
        pushed = {queue.push(b"v%d" % n, priority=n % 3, delay=delay).id for n in range(25)}
        found, after, steps = [], None, 0
        while True:
            step = queue.search(Query(state=state, text="v"), after=after)
            found += [item.id for item in step.items]
            steps, after = steps + 1, step.cursor
            if after is None:
                break
        assert sorted(found) == sorted(pushed)
        assert steps >= 20
        assert step.searched_so_far == step.found_so_far == 25
