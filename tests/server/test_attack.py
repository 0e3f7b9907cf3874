"""The attacks of `tests.soak.attack`, once: the page of a viewer goes on during each, in bounded memory."""

from pathlib import Path

from tests.soak import attack

#: Bytes. `python -m tests.soak.attack` asks for 250 MB, and for frames without a gap of a second; here is room for what
#: the allocator keeps, and for a busy machine.
MEMORY = 300_000_000


def test_a_page_stays_live_and_memory_bounded_under_attack(tmp_path: Path) -> None:
    found = list(attack.run(tmp_path))
    assert [one.attack for one in found] == [each.__name__ for each in attack.ATTACKS]
    assert [one for one in found if not one.frames or one.memory > MEMORY] == []
