"""What every engine refuses, so that code moves between them."""

import pytest

from queues.kv.errors import KeyTooLarge, TransactionTooLarge, TransactionTooOld, ValueTooLarge
from queues.kv.port import (
    MAX_KEY_SIZE,
    MAX_TRANSACTION_SECONDS,
    MAX_TRANSACTION_SIZE,
    MAX_VALUE_SIZE,
    KeyValueStore,
    ReadTransaction,
    Transaction,
)
from tests.conftest import Clock

LONGEST = b"k" * MAX_KEY_SIZE
KEY_VERBS = [
    lambda tr, key: tr.get(key),
    lambda tr, key: tr.set(key, b""),
    lambda tr, key: tr.clear(key),
    lambda tr, key: tr.add(key, 1),
    lambda tr, key: tr.max(key, 1),
    lambda tr, key: tr.add_read_conflict_key(key),
]


def is_empty(kv: KeyValueStore) -> bool:
    return kv.read(lambda tr: tr.get_key(b"", b"\xff").wait()) is None


def test_the_longest_key_and_the_largest_value_fit(kv: KeyValueStore) -> None:
    kv.transact(lambda tr: tr.set(LONGEST, b"v" * MAX_VALUE_SIZE))
    assert kv.read(lambda tr: tr.get(LONGEST).wait()) == b"v" * MAX_VALUE_SIZE


@pytest.mark.parametrize("verb", KEY_VERBS)
def test_a_longer_key_is_refused(kv: KeyValueStore, verb: object) -> None:
    with pytest.raises(KeyTooLarge, match="512 bytes"):
        kv.transact(lambda tr: verb(tr, LONGEST + b"k"))
    assert is_empty(kv)


@pytest.mark.parametrize("key", [b"", b"\xff", b"\xff\xffsystem"])
@pytest.mark.parametrize("verb", KEY_VERBS)
def test_empty_keys_and_the_engines_own_are_refused(kv: KeyValueStore, verb: object, key: bytes) -> None:
    with pytest.raises(ValueError, match="never begins with byte 0xff"):
        kv.transact(lambda tr: verb(tr, key))
    assert is_empty(kv)


def test_a_larger_value_is_refused(kv: KeyValueStore) -> None:
    with pytest.raises(ValueTooLarge, match="100,001 bytes"):
        kv.transact(lambda tr: tr.set(b"key", b"v" * (MAX_VALUE_SIZE + 1)))
    assert is_empty(kv)


def test_a_value_is_bytes(kv: KeyValueStore) -> None:
    with pytest.raises(TypeError, match="not str"):
        kv.transact(lambda tr: tr.set(b"key", "text"))


def test_a_transaction_of_nearly_the_limit_is_committed(kv: KeyValueStore) -> None:
    value = b"v" * 90_000
    kv.transact(lambda tr: [tr.set(b"%03d" % n, value) for n in range(MAX_TRANSACTION_SIZE // 90_100)])
    assert len(kv.read(lambda tr: tr.get_range(b"", b"\xff", limit=1_000).wait())) == MAX_TRANSACTION_SIZE // 90_100


@pytest.mark.parametrize("swallowed", [False, True])
def test_a_larger_transaction_is_refused_even_if_it_goes_on(kv: KeyValueStore, swallowed: bool) -> None:
    value = b"v" * 100_000

    def work(tr: Transaction) -> None:
        for n in range(101):
            try:
                tr.set(b"%03d" % n, value)
            except TransactionTooLarge:
                if not swallowed:
                    raise

    with pytest.raises(TransactionTooLarge, match="10,000,000 bytes"):
        kv.transact(work)
    assert is_empty(kv)


@pytest.mark.parametrize("verb", ["read", "transact"])
@pytest.mark.parametrize(
    "look",
    [
        lambda tr: tr.get(b"a"),
        lambda tr: tr.get_key(b"a", b"b"),
        lambda tr: tr.get_range(b"a", b"b", limit=1),
    ],
)
def test_reads_end_after_five_seconds(kv: KeyValueStore, clock: Clock, verb: str, look: object) -> None:
    def work(tr: ReadTransaction) -> None:
        clock.advance(MAX_TRANSACTION_SECONDS - 0.001)
        look(tr)
        clock.advance(0.002)
        look(tr)

    with pytest.raises(TransactionTooOld, match="5 seconds"):
        getattr(kv, verb)(work)


@pytest.mark.parametrize("swallowed", [False, True])
def test_a_transaction_older_than_five_seconds_writes_nothing(kv: KeyValueStore, clock: Clock, swallowed: bool) -> None:
    def work(tr: Transaction) -> None:
        tr.set(b"a", b"1")
        clock.advance(MAX_TRANSACTION_SECONDS + 1)
        if swallowed:
            with pytest.raises(TransactionTooOld):
                tr.get(b"a")

    with pytest.raises(TransactionTooOld):
        kv.transact(work)
    assert is_empty(kv)
    kv.transact(lambda tr: tr.set(b"b", b"2"))  # the next one has five seconds of its own
    assert not is_empty(kv)
