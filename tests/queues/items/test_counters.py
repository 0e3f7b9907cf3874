"""The wait histogram's buckets."""

import math

from queues.items.counters import LAST_BUCKET, wait_bucket


def test_buckets_are_a_square_root_of_two_wide() -> None:
    assert [wait_bucket(ms) for ms in (-5, 0, 1, 2, 3, 4, 5, 6, 8)] == [0, 0, 0, 2, 3, 4, 4, 5, 6]
    for ms in range(2, 5000):
        bucket = wait_bucket(ms)
        assert math.isclose(2 ** (bucket / 2), ms) or 2 ** (bucket / 2) <= ms < 2 ** ((bucket + 1) / 2)
    assert wait_bucket(10**30) == LAST_BUCKET
