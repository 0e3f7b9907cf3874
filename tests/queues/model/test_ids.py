"""Ids increase, say when they were minted, and survive clocks that step."""

import os
import threading
from collections import Counter

import pytest

from queues.model import ids
from queues.model.ids import IdGenerator, another, minted_at, minted_ms, parse
from tests.conftest import Clock


def test_ids_increase_within_a_millisecond_and_when_the_clock_steps_back(clock: Clock) -> None:
    id_generator = IdGenerator(clock)
    ids = id_generator.new_ids(100)
    clock.advance(-3600)
    ids += [id_generator.new_id() for _ in range(100)]
    clock.advance(7200)
    ids.append(id_generator.new_id())
    assert ids == sorted(set(ids))
    assert {len(i) for i in ids} == {20}


def test_ids_say_when_they_were_minted(clock: Clock) -> None:
    minted = IdGenerator(clock).new_id()
    assert minted_ms(minted) == clock.now * 1000
    assert minted_at(minted).timestamp() == clock.now
    for foreign in (b"short", b"\xff" * 20, 5, None):
        assert minted_at(foreign) is None


def test_threads_never_mint_the_same_id(clock: Clock) -> None:
    id_generator, minted = IdGenerator(clock), []
    threads = [
        threading.Thread(target=lambda: minted.extend(id_generator.new_id() for _ in range(500))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(minted)) == 4000


def test_an_id_is_read_as_it_is_shown(clock: Clock) -> None:
    minted = IdGenerator(clock).new_id()
    assert parse(minted.hex()) == minted
    for text in ("", "0", "g" * 40, "0" * 41, "A" * 40, f"{'00' * 13}{' ' * 14}"):
        assert parse(text) is None


class Ticking:
    """A clock of which every look is a millisecond later than the one before."""

    def __init__(self) -> None:
        self.ms = 1_800_000_000_000.5

    def __call__(self) -> float:
        self.ms += 1
        return self.ms / 1000


def test_two_minters_on_one_clock_never_mint_the_same_id() -> None:
    ours, theirs = IdGenerator(Ticking()), IdGenerator(Ticking())
    assert not any(ours.new_ids(1) == theirs.new_ids(1) for _ in range(20_000))


def test_every_random_byte_of_a_fresh_millisecond_is_drawn_from_1_to_255_alike() -> None:
    id_generator = IdGenerator(Ticking())
    minted = [id_generator.new_ids(1)[0] for _ in range(50_000)]
    assert len({minted_ms(one) for one in minted}) == len(minted)
    assert len({one[ids.TIME :] for one in minted}) == len(minted)
    for at in range(ids.TIME, ids.SIZE):
        found = Counter(one[at] for one in minted)
        assert set(found) == set(range(1, 256))
        expected = len(minted) / 255
        # Chi-square of 254 degrees of freedom: above 400 once in some hundred million runs.
        assert sum((n - expected) ** 2 for n in found.values()) / expected < 400


def minter_at(clock: Clock, *drawn: bytes) -> IdGenerator:
    """Return a minter that draws these random bytes first."""
    left = list(drawn)
    return IdGenerator(clock, random=lambda n: left.pop(0) if left else os.urandom(n))


@pytest.mark.parametrize(
    "start", [b"\xff" * 14, b"\x01" * 12 + b"\xff" * 2, b"\x80" * 13 + b"\xf0", b"\xff" * 13 + b"\x01"]
)
def test_counting_on_carries_without_a_byte_0_and_never_backwards(clock: Clock, start: bytes) -> None:
    for many in (False, True):
        id_generator = minter_at(clock, start)
        minted = id_generator.new_ids(600) if many else [id_generator.new_id() for _ in range(600)]
        assert minted[0][ids.TIME :] == start
        clock.advance(-10)
        minted += [id_generator.new_id(), *id_generator.new_ids(300)]
        clock.advance(10)
        minted += [id_generator.new_id(), *id_generator.new_ids(300)]
        clock.advance(1)
        minted.append(id_generator.new_id())
        assert minted == sorted(set(minted))
        assert all(0 not in one[ids.TIME :] for one in minted)
        assert minted_ms(minted[-1]) == round(clock.now * 1000)


def test_a_millisecond_without_room_goes_on_with_fresh_bytes_of_the_next(clock: Clock) -> None:
    first, second = minter_at(clock, b"\xff" * 14).new_ids(2)
    assert minted_ms(second) == minted_ms(first) + 1
    assert second[ids.TIME :] != b"\x01" * 14


@pytest.mark.parametrize("later", [-1, 0, 1])
def test_ids_of_forked_children_increase_and_keep_their_entropy(clock: Clock, later: int) -> None:
    id_generator = IdGenerator(clock)
    last = id_generator.new_id()
    clock.advance(later)
    found = set()
    for _ in range(5):
        read, write = os.pipe()
        if not (child := os.fork()):
            os.write(write, b"".join([id_generator.new_id(), id_generator.new_id()]))
            os._exit(0)
        os.waitpid(child, 0)
        first, second = os.read(read, 20), os.read(read, 20)
        os.close(read)
        os.close(write)
        assert last < first < second
        assert 0 not in first[ids.TIME :]
        assert first[-4:] != b"\x01" * 4
        found.add(first)
    assert len(found | {id_generator.new_id()}) == 6


def test_another_id_keeps_the_time_and_is_the_same_each_time(clock: Clock) -> None:
    minted = IdGenerator(clock).new_id()
    others = {another(minted, b"%d" % n) for n in range(1_000)}
    assert len(others) == 1_000
    assert another(minted, b"5") == another(minted, b"5")
    assert {minted_ms(other) for other in others} == {minted_ms(minted)}
    assert all(len(other) == ids.SIZE and 0 not in other[ids.TIME :] for other in others)
