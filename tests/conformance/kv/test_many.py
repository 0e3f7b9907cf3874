"""Many keys written, cleared and stamped at once: what one call a key does, on every engine."""

import pytest

from queues.kv.errors import KeyTooLarge, TransactionTooLarge, ValueTooLarge
from queues.kv.port import MAX_KEY_SIZE, MAX_VALUE_SIZE, KeyValueStore, Transaction

KEYS = [b"key %03d" % n for n in range(100)]
VALUES = [b"%d" % n * 3 for n in range(100)]


def content(kv: KeyValueStore) -> list[tuple[bytes, bytes]]:
    return kv.read(lambda tr: tr.get_range(b"", b"\xff", limit=1_000).wait())


def test_many_new_pairs_are_written_and_seen_at_once(kv: KeyValueStore) -> None:
    def write(tr: Transaction) -> list[tuple[bytes, bytes]]:
        tr.set_new(KEYS[::-1], VALUES[::-1])
        tr.set_new([], [])
        return tr.get_range(KEYS[10], KEYS[20], limit=50).wait()

    assert kv.transact(write) == list(zip(KEYS[10:20], VALUES[10:20], strict=True))
    assert content(kv) == list(zip(KEYS, VALUES, strict=True))


def test_many_keys_are_cleared_those_too_that_are_not_there(kv: KeyValueStore) -> None:
    kv.transact(lambda tr: tr.set_new(KEYS, VALUES))

    def clear(tr: Transaction) -> None:
        tr.add_read_conflict_keys([b"nothing", *KEYS[5:]])
        tr.clear_many([b"nothing", *KEYS[5:], b"nothing either"])
        tr.clear_many([])

    kv.transact(clear)
    assert content(kv) == list(zip(KEYS[:5], VALUES[:5], strict=True))


def test_what_fails_takes_back_all_of_them_and_what_other_callers_wrote_stays(kv: KeyValueStore) -> None:
    kv.transact(lambda tr: tr.set_new(KEYS[:50], VALUES[:50]))
    before = content(kv)

    def fail(tr: Transaction) -> None:
        tr.set_new(KEYS[50:], VALUES[50:])
        tr.clear_many(KEYS[40:60])
        tr.set(KEYS[0], b"other")
        tr.clear_many([*KEYS[:10], b"nothing"])
        tr.set_new(KEYS[:3], VALUES[3:6])
        raise LookupError

    with pytest.raises(LookupError):
        kv.transact(fail)
    assert content(kv) == before


def test_many_counters_are_added_to_at_once(kv: KeyValueStore) -> None:
    kv.transact(lambda tr: [tr.add_all({b"a": 1, b"b": -1}), tr.add(b"a", 2), tr.add_all({b"a": 3, b"c": 4})])
    assert [(key, int.from_bytes(value, "little", signed=True)) for key, value in content(kv)] == [
        (b"a", 6),
        (b"b", -1),
        (b"c", 4),
    ]
    for key, refusal in ((b"k" * (MAX_KEY_SIZE + 1), KeyTooLarge), (b"\xff", ValueError), (b"", ValueError)):
        with pytest.raises(refusal):
            kv.transact(lambda tr, key=key: tr.add_all({b"a": 1, key: 1}))
    assert len(content(kv)) == 3


def test_stamps_count_up_by_one_and_go_on_behind_single_ones(kv: KeyValueStore) -> None:
    def stamp(tr: Transaction) -> list[int]:
        return [tr.stamp(), *tr.stamps(3), tr.stamp(), *tr.stamps(1)]

    first, *_ = stamps = kv.transact(lambda tr: (tr.set(b"a", b""), stamp(tr))[1])
    assert stamps == list(range(first, first + 6))
    assert kv.transact(lambda tr: (tr.set(b"b", b""), stamp(tr))[1])[0] > stamps[-1]


@pytest.mark.parametrize(
    ("key", "value", "refusal"),
    [(b"k" * (MAX_KEY_SIZE + 1), b"", KeyTooLarge), (b"k", b"v" * (MAX_VALUE_SIZE + 1), ValueTooLarge)],
)
def test_what_is_too_large_for_one_is_too_large_for_many(
    kv: KeyValueStore, key: bytes, value: bytes, refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        kv.transact(lambda tr: tr.set_new([b"a", key], [b"", value]))
    assert content(kv) == []


def test_all_of_a_transaction_count_towards_its_size(kv: KeyValueStore) -> None:
    large = [b"v" * MAX_VALUE_SIZE] * 60

    def write(tr: Transaction) -> None:
        tr.set_new(KEYS[:60], large)
        tr.set_new([key + b"'" for key in KEYS[:60]], large)

    with pytest.raises(TransactionTooLarge):
        kv.transact(write)
    assert content(kv) == []


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 15, 16, 17, 40])
@pytest.mark.parametrize("reverse", [False, True])
def test_ranges_end_where_they_end_however_many_they_hold(kv: KeyValueStore, n: int, reverse: bool) -> None:
    within = [(b"m%02d" % i, b"%d" % i) for i in range(n)]

    def write(tr: Transaction) -> None:
        for key, value in [*within, *((side + b"%02d" % i, b"x") for side in (b"l", b"n") for i in range(40))]:
            tr.set(key, value)

    kv.transact(write)
    expected = within[::-1] if reverse else within
    for limit in (1, 8, n or 1, n + 1, 100):
        found = kv.read(lambda tr, limit=limit: tr.get_range(b"m", b"n", limit=limit, reverse=reverse).wait())
        assert found == expected[:limit]
