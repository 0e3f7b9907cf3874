"""Steps of a search: one that looking at values ends loses nothing."""

from datetime import timedelta
from pathlib import Path

import pytest

from queues import Query, open_store
from queues.operations import search_step
from tests.conftest import store_url


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
