"""The slots that clients leave behind are swept after a day, and nothing else."""

import time

import pytest

from queues import Store
from queues.kv.commit_slots import Mark, SlotPool
from tests.conftest import Clock
from tests.sweeps import sweep_slots

DAY = 24 * 3600.0


@pytest.fixture(autouse=True)
def today(clock: Clock) -> None:
    """Let the sweeper's clock agree with the one by which the store's own client marks its slots."""
    clock.now = time.time()


def marked(store: Store, seconds_ago: float, number: int = 1) -> list[bytes]:
    """Leave marks as a client does that is gone since."""
    pool = SlotPool(store.context.keyspace.slots)
    keys = [pool.take().key for _ in range(number)]
    mark = Mark(sequence=3, attempt=0, ms=int((store.context.clock() - seconds_ago) * 1000)).encode()
    for start in range(0, number, 400):
        store.transact(lambda tr, start=start: [tr.set(key, mark) for key in keys[start : start + 400]])
    return keys


def there(store: Store, keys: list[bytes]) -> int:
    return store.read(lambda tr: sum(read.wait() is not None for read in [tr.get(key) for key in keys]))


def test_only_slots_unused_for_a_day_are_swept(store: Store, clock: Clock) -> None:
    old, new, ahead = marked(store, DAY + 1), marked(store, DAY - 1), marked(store, -DAY)
    strange = store.context.keyspace.slots + b"\x01strange\x00"
    store.transact(lambda tr: tr.set(strange, b"no mark"))
    store.create_queue("jobs").push(b"x", priority=1)
    assert sweep_slots(store) == 1
    assert (there(store, old), there(store, new), there(store, ahead)) == (0, 1, 1)
    assert there(store, [strange]) == 1
    assert sweep_slots(store) == 0
    clock.advance(2)
    assert sweep_slots(store) == 1
    assert store.queue("jobs").depth() == 1


def test_many_slots_are_swept_in_steps(store: Store) -> None:
    keys = marked(store, 2 * DAY, 1_001)
    assert sweep_slots(store) == len(keys)
    assert there(store, keys) == 0


def test_a_slot_that_is_used_meanwhile_stays(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    (key,) = marked(store, 2 * DAY)
    fresh = Mark(sequence=4, attempt=0, ms=int(store.context.clock() * 1000)).encode()
    transact = store.context.kv.transact

    def used_first(fn, **options):
        monkeypatch.undo()
        transact(lambda tr: tr.set(key, fresh))
        return transact(fn, **options)

    monkeypatch.setattr(store.context.kv, "transact", used_first)
    assert sweep_slots(store) == 0
    assert store.read(lambda tr: tr.get(key).wait()) == fresh
