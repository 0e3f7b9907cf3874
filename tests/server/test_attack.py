"""The attacks of `tests.soak.attack`, once, with limits that a busy machine of two cores keeps too."""

from __future__ import annotations

from pathlib import Path

from tests.soak import attack

#: Seconds without a frame: release 0.1 stood still for 13; `python -m tests.soak.attack` asks for 1.
GAP = 6.0
MEMORY = 250_000_000


def test_a_page_stays_live_and_memory_bounded_under_attack(tmp_path: Path) -> None:
    found = list(attack.run(tmp_path))
    assert [one.attack for one in found] == [each.__name__ for each in attack.ATTACKS]
    assert [one for one in found if one.gap > GAP or one.memory > MEMORY] == []
    assert all(one.frames for one in found)
