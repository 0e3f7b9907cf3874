"""Ids increase, say when they were minted, and survive clocks that step."""

from __future__ import annotations

import os
import threading

import pytest

from queues.ids import Minter, minted_at, minted_ms, parse
from tests.conftest import Clock


def test_ids_increase_within_a_millisecond_and_when_the_clock_steps_back(clock: Clock) -> None:
    minter = Minter(clock)
    ids = minter.mint_many(100)
    clock.advance(-3600)
    ids += [minter.mint() for _ in range(100)]
    clock.advance(7200)
    ids.append(minter.mint())
    assert ids == sorted(set(ids))
    assert {len(i) for i in ids} == {20}


def test_ids_say_when_they_were_minted(clock: Clock) -> None:
    minted = Minter(clock).mint()
    assert minted_ms(minted) == clock.now * 1000
    assert minted_at(minted).timestamp() == clock.now
    for foreign in (b"short", b"\xff" * 20, 5, None):
        assert minted_at(foreign) is None


def test_threads_never_mint_the_same_id(clock: Clock) -> None:
    minter, minted = Minter(clock), []
    threads = [threading.Thread(target=lambda: minted.extend(minter.mint() for _ in range(500))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(minted)) == 4000


@pytest.mark.parametrize("later", [0, 1])
def test_a_forked_child_mints_other_ids_than_its_parent(clock: Clock, later: int) -> None:
    minter = Minter(clock)
    minter.mint()
    read, write = os.pipe()
    clock.advance(later)
    if not (child := os.fork()):
        os.write(write, minter.mint())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 20) != minter.mint()
    os.close(read)
    os.close(write)


def test_an_id_is_read_as_it_is_shown(clock: Clock) -> None:
    minted = Minter(clock).mint()
    assert parse(minted.hex()) == minted
    for text in ("", "0", "g" * 40, "0" * 41, "A" * 40, f"{'00' * 13}{' ' * 14}"):
        assert parse(text) is None
