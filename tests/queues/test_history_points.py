"""Blocks of history: what was packed comes back, and no block outgrows its share."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queues.errors import NewerFormat
from queues.history.points import RESOLUTIONS, SHARES, Point, Resolution, bucket_ms, decode, encode
from queues.history.sampling import percentiles
from queues.tally import LAST_BUCKET, wait_bucket


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
            mix=tuple(random.randint(0, SHARES) for _ in range(random.randint(0, 16))),
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


def test_buckets_stay_themselves() -> None:
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
        decode(b"\x02" + block[1:])


NOTHING = Point(at=0, ready=0, delayed=0, leased=0, dead=0, arrived=0, left=0)
