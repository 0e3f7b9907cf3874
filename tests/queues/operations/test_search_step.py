"""Steps of a search: how long they take at most, and one that looking at values ends loses nothing."""

from datetime import timedelta
from pathlib import Path

import pytest

from queues import Item, Query, open_store
from queues.items.scan import Met
from queues.operations import search_step
from queues.operations.search_step import Step
from tests.conftest import store_url


class Slow:
    """Picks nothing, and takes so many seconds of a clock for each item."""

    def __init__(self, seconds: float) -> None:
        self.now = 0.0
        self.seconds = seconds
        self.step = Step(self.pick, limit=50, scan=5_000, clock=lambda: self.now)

    def pick(self, met: Met) -> Item | None:
        self.now += self.seconds
        return None

    def meet(self, places: list[bytes]) -> list[bytes]:
        met = Met(place=b"", value=b"v", item=lambda: pytest.fail("nothing was picked"))
        return [place for place in places if self.step.meet(place, met)]


PLACES = [bytes([n]) for n in range(100)]


@pytest.mark.parametrize(("seconds", "looked"), [(0.0625, 4), (10.0, 1)])
def test_a_step_ends_at_the_item_with_which_looking_took_a_quarter_of_a_second(seconds: float, looked: int) -> None:
    slow = Slow(seconds)
    assert slow.meet(PLACES) == PLACES[:looked]
    assert slow.step.full()
    assert slow.step.cut() == PLACES[looked - 1], "the next step begins behind what was looked at"
    assert slow.step.searched == looked


def test_a_step_reads_for_a_second_and_ends_no_read_half_way() -> None:
    slow = Slow(0)
    slow.now = 0.9
    assert not slow.step.full()
    slow.now = 1.0
    assert slow.meet(PLACES) == PLACES
    assert slow.step.full()


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
