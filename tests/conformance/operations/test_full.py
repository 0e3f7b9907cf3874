"""A full store refuses what comes in and lets everything out, by tools and by hand."""

from pathlib import Path

import pytest

from queues import open_store
from queues.errors import StoreFull


def test_a_full_store_can_be_inspected_paused_and_emptied(tmp_path: Path) -> None:
    with open_store(f"lmdb:{tmp_path / 'store'}", max_bytes=2_000_000) as store:
        ann = store.actions("ann")
        jobs = ann.create_queue("jobs")
        acknowledged = 0
        with pytest.raises(StoreFull, match="nothing was written"):
            while True:
                jobs.push(b"x" * 1000, priority=acknowledged)
                acknowledged += 1
        with pytest.raises(StoreFull):
            ann.push("jobs", b"x" * 1000, priority=1)
        assert acknowledged > 500
        assert jobs.depth() == acknowledged
        popped = ann.pop("jobs", end="max", reason="making room")
        ann.pause("jobs", reason="full")
        ann.resume("jobs")
        ann.undo(popped.trash_id)
        ann.rename_queue("jobs", "renamed-to-something-longer")
        ann.undo(ann.delete_queue("renamed-to-something-longer", confirm="renamed-to-something-longer"))
        taken = 0
        while items := jobs.pop_many(100):
            taken += len(items)
        assert taken == acknowledged
        assert jobs.push(b"room again", priority=1)
