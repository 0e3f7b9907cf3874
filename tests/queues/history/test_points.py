"""Blocks of history: what was packed comes back, and no block outgrows its share."""

import pickle
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queues.errors import NewerFormat
from queues.history.open_block import OpenBlock
from queues.history.points import MINUTES, RESOLUTIONS, Point, Resolution, bucket_ms, decode, encode
from queues.history.sampling import percentiles
from queues.items.counters import LAST_BUCKET, wait_bucket


def wild(seed: int) -> list[Point]:
    """Return points as uneven as can be: nothing in them can be packed well."""
    random, at, found = Random(seed), 0, []

    def bucket() -> int:
        return bucket_ms(random.randint(2, LAST_BUCKET))

    for _ in range(random.choice((0, 1, 5, 130))):
        at += random.randint(1, 10**6)
        numbers = {name: random.randrange(10**15) for name in ("ready", "delayed", "leased", "dead", "arrived", "left")}
        point = Point(
            at=at,
            **numbers,
            oldest_at=random.choice((None, random.randrange(2**33))),
            waits_ms=random.choice((None, (bucket(), bucket(), bucket()))),
            mix=tuple(random.randrange(10**9) for _ in range(random.randint(0, 16))),
            gap=random.random() < 0.1,
        )
        found.append(point)
    return found


@given(st.builds(wild, st.integers(0, 2**32)))
@settings(max_examples=30, deadline=None)
def test_what_was_packed_comes_back(given: list[Point]) -> None:
    assert decode(encode(given, 1_000_000)) == given
    assert decode(None) == []


@pytest.mark.parametrize("resolution", RESOLUTIONS.values(), ids=lambda resolution: resolution.name)
@given(given=st.builds(wild, st.integers(0, 2**32)))
@settings(max_examples=20, deadline=None)
def test_no_block_outgrows_its_share_and_the_newest_point_stays(resolution: Resolution, given: list[Point]) -> None:
    block = encode(given, resolution.room)
    assert len(block) <= resolution.room
    if given:
        assert decode(block)[-1].counts == given[-1].counts


def test_a_whole_history_stays_within_its_bound() -> None:
    key = 60  # bytes; longer than any key of a history under the default root
    assert sum(r.blocks * (r.room + key) for r in RESOLUTIONS.values()) <= 64 * 1024 + 8 * 1024
    assert sum(r.blocks * r.room for r in RESOLUTIONS.values()) <= 60 * 1024


def test_a_bucket_of_waits_contains_its_own_bound() -> None:
    for bucket in {wait_bucket(ms) for ms in (0, 1, 2, 3, 999, 60_000, 10**9)}:
        assert wait_bucket(bucket_ms(bucket)) == bucket


def test_percentiles_are_of_what_was_taken_since() -> None:
    before = {wait_bucket(10): 1_000}
    now = before | {wait_bucket(100): 95, wait_bucket(1_000): 4, wait_bucket(60_000): 1}
    p50, p95, p99 = percentiles(now, before)
    assert 100 <= p50 <= 182
    assert 100 <= p95 <= 182
    assert 1_000 <= p99 <= 1_500
    assert percentiles(now, now) is None


def test_a_block_of_a_newer_release_is_refused() -> None:
    block = encode([replace(NOTHING, at=5)], 1_000)
    with pytest.raises(NewerFormat):
        decode(b"\x03" + block[1:])


NOTHING = Point(at=0, ready=0, delayed=0, leased=0, dead=0, arrived=0, left=0)


@pytest.mark.parametrize("resolution", RESOLUTIONS.values(), ids=lambda resolution: resolution.name)
@given(given=st.builds(wild, st.integers(0, 2**32)), tame=st.booleans(), cut=st.integers(0, 130))
@settings(max_examples=20, deadline=None)
def test_points_that_are_added_one_by_one_are_those_of_a_plain_list(
    resolution: Resolution, given: list[Point], tame: bool, cut: int
) -> None:
    if tame:  # as points of a real queue are: they fit into their room
        given = [
            replace(point, **dict.fromkeys(("ready", "delayed", "dead"), n % 7)) for n, point in enumerate(given[:5])
        ]
    filling = OpenBlock(resolution, given[:cut])  # read from the store
    for point in given[cut:]:
        filling.add(point)
        assert (filling.at, filling.counts) == (point.at, point.counts)
    if tame:
        assert filling.points == given
        assert filling.block() == encode(given, resolution.room)
    assert len(filling.block()) <= resolution.room
    if given:
        newest = given[-1]
        assert filling.points[-1].counts == newest.counts
        filling.add(replace(filling.newest, at=newest.at + 5))
        assert filling.points[-1].at == newest.at + 5
        assert filling.points[-1].counts == newest.counts
        assert filling.points[-1].oldest_at == newest.oldest_at
        following = filling.next_block()
        assert (following.points, following.at) == ([], newest.at + 5)
        following.add(replace(newest, at=newest.at + 9))
        assert following.points == [replace(newest, at=newest.at + 9)]


@given(st.dictionaries(st.integers(0, 100), st.integers(0, 2**60)))
@settings(max_examples=30, deadline=None)
def test_a_histogram_that_is_noted_comes_back(histogram: dict[int, int]) -> None:
    filling = OpenBlock(MINUTES)
    assert filling.waits is None
    filling.note_waits(histogram)
    assert filling.waits == histogram
    assert filling.next_block().waits == filling.with_points([]).waits == histogram


def test_the_packed_points_of_a_queue_stay_below_a_bound_whatever_happens() -> None:
    random = Random(1)
    points = [point for seed in range(40) for point in wild(seed)]
    for resolution in RESOLUTIONS.values():
        filling = OpenBlock(resolution)
        for point in points:
            at = (filling.at or 0) + random.randint(1, 100)
            filling.add(replace(point, at=at))
            assert len(pickle.dumps(filling)) <= 6 * resolution.room
