"""Reads, writes and their end, alike on every engine."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from queues.kv.errors import NestedTransaction, StoreClosed, TransactionEnded
from queues.kv.port import KeyValueStore, ReadTransaction, Transaction

LONG = 120.0  # seconds; reached only when something hangs


def number(value: int) -> bytes:
    return (value % 2**64).to_bytes(8, "little")


def content(kv: KeyValueStore) -> dict[bytes, bytes]:
    return dict(kv.read(lambda tr: tr.get_range(b"", b"\xff", limit=10_000).wait()))


def fill(kv: KeyValueStore, **pairs: bytes) -> None:
    def write(tr: Transaction) -> None:
        for key, value in pairs.items():
            tr.set(key.encode(), value)

    kv.transact(write)


def test_a_written_pair_is_read_back(kv: KeyValueStore) -> None:
    kv.transact(lambda tr: tr.set(b"key", b"value"))
    assert kv.read(lambda tr: tr.get(b"key").wait()) == b"value"


def test_an_absent_key_reads_none(kv: KeyValueStore) -> None:
    assert kv.read(lambda tr: tr.get(b"nothing").wait()) is None
    assert kv.transact(lambda tr: tr.get(b"nothing").wait()) is None


def test_an_empty_value_is_a_value(kv: KeyValueStore) -> None:
    fill(kv, key=b"")
    assert kv.read(lambda tr: tr.get(b"key").wait()) == b""
    assert content(kv) == {b"key": b""}


def test_a_key_and_a_value_of_a_class_that_extends_bytes_are_bytes(kv: KeyValueStore) -> None:
    class Subclass(bytes):
        pass

    kv.transact(lambda tr: tr.set(Subclass(b"key"), Subclass(b"value")))
    assert content(kv) == {b"key": b"value"}


def test_set_replaces_a_value(kv: KeyValueStore) -> None:
    fill(kv, key=b"old")
    fill(kv, key=b"new")
    assert content(kv) == {b"key": b"new"}


def test_clear_removes_and_forgives_absence(kv: KeyValueStore) -> None:
    fill(kv, key=b"value", other=b"stays")
    kv.transact(lambda tr: tr.clear(b"key"))
    kv.transact(lambda tr: tr.clear(b"key"))
    assert content(kv) == {b"other": b"stays"}


def test_clear_range_removes_begin_but_not_end(kv: KeyValueStore) -> None:
    fill(kv, a=b"1", b=b"2", c=b"3", d=b"4")
    kv.transact(lambda tr: tr.clear_range(b"b", b"d"))
    assert content(kv) == {b"a": b"1", b"d": b"4"}


@pytest.mark.parametrize(("begin", "end"), [(b"", b"\xff"), (b"a", b"e"), (b"", b"\xff\xff\xff")])
def test_clear_range_removes_everything(kv: KeyValueStore, begin: bytes, end: bytes) -> None:
    fill(kv, a=b"1", d=b"4")
    kv.transact(lambda tr: tr.clear_range(begin, end))
    assert content(kv) == {}


@pytest.mark.parametrize(("begin", "end"), [(b"c", b"b"), (b"b", b"b"), (b"x", b"z")])
def test_an_empty_clear_range_removes_nothing(kv: KeyValueStore, begin: bytes, end: bytes) -> None:
    fill(kv, a=b"1", b=b"2")
    kv.transact(lambda tr: tr.clear_range(begin, end))
    assert content(kv) == {b"a": b"1", b"b": b"2"}


def test_what_transact_returns_is_what_the_function_returned(kv: KeyValueStore) -> None:
    marker = object()
    assert kv.transact(lambda tr: marker) is marker
    assert kv.read(lambda tr: marker) is marker


def test_own_writes_are_seen(kv: KeyValueStore) -> None:
    fill(kv, kept=b"old", gone=b"old", raised=number(5))

    def work(tr: Transaction) -> list[bytes | None]:
        tr.set(b"kept", b"new")
        tr.clear(b"gone")
        tr.add(b"raised", 2)
        tr.add(b"fresh", 7)
        tr.max(b"most", 9)
        keys = (b"kept", b"gone", b"raised", b"fresh", b"most")
        return [tr.get(key).wait() for key in keys] + [tr.snapshot.get(key).wait() for key in keys]

    seen = [b"new", None, number(7), number(7), number(9)]
    assert kv.transact(work) == seen * 2
    assert content(kv) == {b"kept": b"new", b"raised": number(7), b"fresh": number(7), b"most": number(9)}


def test_a_write_after_clear_range_survives_and_one_before_does_not(kv: KeyValueStore) -> None:
    fill(kv, a=b"1", c=number(40))

    def work(tr: Transaction) -> list[tuple[bytes, bytes]]:
        tr.set(b"b", b"before")
        tr.add(b"d", 3)
        tr.clear_range(b"a", b"z")
        tr.set(b"a", b"after")
        tr.add(b"c", 2)
        return tr.get_range(b"", b"\xff", limit=10).wait()

    expected = [(b"a", b"after"), (b"c", number(2))]
    assert kv.transact(work) == expected
    assert content(kv) == dict(expected)


def test_adds_sum_up_and_wrap(kv: KeyValueStore) -> None:
    kv.transact(lambda tr: tr.add(b"n", 5))
    kv.transact(lambda tr: [tr.add(b"n", -2), tr.add(b"n", 10)])
    assert content(kv) == {b"n": number(13)}
    kv.transact(lambda tr: tr.add(b"n", -14))
    assert content(kv) == {b"n": number(-1)}
    kv.transact(lambda tr: tr.add(b"n", 1))
    assert content(kv) == {b"n": number(0)}


def test_an_add_of_nothing_leaves_a_counter_behind(kv: KeyValueStore) -> None:
    kv.transact(lambda tr: [tr.add(b"n", 3), tr.add(b"n", -3)])
    assert content(kv) == {b"n": number(0)}


def test_an_add_to_a_shorter_or_longer_value_gives_eight_bytes(kv: KeyValueStore) -> None:
    fill(kv, short=b"\x01\x01", long=number(1) + b"rest", empty=b"")
    kv.transact(lambda tr: [tr.add(key, 1) for key in (b"short", b"long", b"empty")])
    assert content(kv) == {b"short": number(0x0102), b"long": number(2), b"empty": number(1)}


def test_set_and_clear_after_an_add_win(kv: KeyValueStore) -> None:
    fill(kv, a=number(1), b=number(1))
    kv.transact(lambda tr: [tr.add(b"a", 5), tr.set(b"a", b"x"), tr.add(b"b", 5), tr.clear(b"b")])
    assert content(kv) == {b"a": b"x"}


def test_an_add_after_set_or_clear_builds_on_it(kv: KeyValueStore) -> None:
    fill(kv, a=number(1), b=number(1))
    kv.transact(lambda tr: [tr.set(b"a", number(10)), tr.add(b"a", 5), tr.clear(b"b"), tr.add(b"b", 5)])
    assert content(kv) == {b"a": number(15), b"b": number(5)}


def test_max_only_raises(kv: KeyValueStore) -> None:
    kv.transact(lambda tr: tr.max(b"m", 300))
    kv.transact(lambda tr: tr.max(b"m", 299))
    assert content(kv) == {b"m": number(300)}
    kv.transact(lambda tr: [tr.add(b"m", 1), tr.max(b"m", 301), tr.max(b"m", 2**64 - 1)])
    assert content(kv) == {b"m": number(2**64 - 1)}


@pytest.mark.parametrize("value", [-1, 2**64])
def test_max_refuses_what_is_not_a_word(kv: KeyValueStore, value: int) -> None:
    with pytest.raises(ValueError, match="unsigned 64-bit"):
        kv.transact(lambda tr: tr.max(b"m", value))


def test_an_exception_undoes_everything_and_reaches_the_caller(kv: KeyValueStore) -> None:
    fill(kv, replaced=b"old", cleared=b"old", a=b"1", b=b"2", n=number(5), most=number(1))
    before = content(kv)
    problem = KeyError("mine")

    def work(tr: Transaction) -> None:
        tr.set(b"replaced", b"new")
        tr.set(b"created", b"new")
        tr.clear(b"cleared")
        tr.clear_range(b"a", b"c")
        tr.add(b"n", 1)
        tr.get(b"n").wait()
        tr.add(b"n", 1)
        tr.add(b"m", 1)
        tr.get_range(b"", b"\xff", limit=100).wait()
        tr.max(b"most", 77)
        tr.set(b"n", b"x")
        tr.add(b"m", 3)
        raise problem

    with pytest.raises(KeyError) as raised:
        kv.transact(work)
    assert raised.value is problem
    assert content(kv) == before


def test_a_caught_exception_inside_the_function_keeps_the_rest(kv: KeyValueStore) -> None:
    def work(tr: Transaction) -> None:
        tr.set(b"a", b"1")
        with pytest.raises(ValueError, match="never empty"):
            tr.set(b"", b"refused")
        tr.set(b"b", b"2")

    kv.transact(work)
    assert content(kv) == {b"a": b"1", b"b": b"2"}


def test_a_reader_sees_one_version(kv: KeyValueStore) -> None:
    fill(kv, a=b"1", b=b"1")
    read, written = threading.Event(), threading.Event()

    def look(tr: ReadTransaction) -> list[bytes | None]:
        first = tr.get(b"a").wait()
        read.set()
        assert written.wait(LONG)
        return [first, tr.get(b"a").wait(), tr.get(b"b").wait(), tr.get(b"c").wait()]

    with ThreadPoolExecutor() as pool:
        looking = pool.submit(kv.read, look)
        assert read.wait(LONG)
        fill(kv, a=b"2", b=b"2", c=b"2")  # a writer never waits for readers, nor they for it
        written.set()
        assert looking.result(LONG) == [b"1", b"1", b"1", None]
    assert content(kv) == {b"a": b"2", b"b": b"2", b"c": b"2"}


def test_versions_grow_with_every_commit(kv: KeyValueStore) -> None:
    versions = []
    for value in (b"1", b"2", b"3"):
        fill(kv, key=value)
        versions.append(kv.read(lambda tr: tr.get_read_version()))
    assert versions == sorted(set(versions))
    assert kv.read(lambda tr: tr.get_read_version()) == versions[-1]


def test_stamps_grow_within_and_across_transactions(kv: KeyValueStore) -> None:
    stamps = []
    for _ in range(5):
        stamps += kv.transact(lambda tr: [tr.set(b"key", b"x"), [tr.stamp() for _ in range(1_000)]][1] or [])
    assert len(stamps) == 5_000
    assert stamps == sorted(set(stamps))


def test_a_stamp_is_an_int_of_at_most_eight_bytes(kv: KeyValueStore) -> None:
    assert 0 < kv.transact(lambda tr: tr.stamp()) < 2**63


def test_reads_are_counted(kv: KeyValueStore) -> None:
    before = kv.reads()

    def look(tr: ReadTransaction) -> int:
        tr.get(b"a").wait()
        tr.get_key(b"a", b"b").wait()
        tr.get_range(b"a", b"b", limit=5).wait()
        return tr.reads

    assert kv.read(look) == 3
    assert kv.transact(look) == 3
    assert kv.reads() - before == 6


@pytest.mark.parametrize("outer", ["read", "transact"])
@pytest.mark.parametrize("inner", ["read", "transact", "watch"])
def test_a_transaction_inside_another_is_refused(kv: KeyValueStore, outer: str, inner: str) -> None:
    begin = {
        "read": lambda: kv.read(lambda tr: None),
        "transact": lambda: kv.transact(lambda tr: None),
        "watch": lambda: kv.watch({}, timeout=0),
    }[inner]

    def work(tr: ReadTransaction) -> None:
        begin()

    with pytest.raises(NestedTransaction, match="tr="):
        getattr(kv, outer)(work)
    kv.transact(lambda tr: None)  # and the store still works


def test_another_store_inside_a_transaction_is_refused_too(kv: KeyValueStore, engine: str) -> None:
    from queues.kv import open_kv

    other = open_kv("memory:")
    with pytest.raises(NestedTransaction):
        kv.transact(lambda tr: other.read(lambda _: None))
    other.close()


@pytest.mark.parametrize(
    "use",
    [
        lambda tr: tr.get(b"a"),
        lambda tr: tr.get_key(b"a", b"b"),
        lambda tr: tr.get_range(b"a", b"b", limit=1),
        lambda tr: tr.get_read_version(),
        lambda tr: tr.set(b"a", b"1"),
        lambda tr: tr.clear(b"a"),
        lambda tr: tr.clear_range(b"a", b"b"),
        lambda tr: tr.add(b"a", 1),
        lambda tr: tr.add_all({b"a": 1}),
        lambda tr: tr.max(b"a", 1),
        lambda tr: tr.stamp(),
        lambda tr: tr.use_reserve(),
        lambda tr: tr.add_read_conflict_key(b"a"),
        lambda tr: tr.add_read_conflict_range(b"a", b"b"),
    ],
)
def test_a_transaction_ends_with_its_function(kv: KeyValueStore, use: object) -> None:
    ended = kv.transact(lambda tr: tr)
    with pytest.raises(TransactionEnded):
        use(ended)
    assert content(kv) == {}


def test_a_read_transaction_ends_with_its_function(kv: KeyValueStore) -> None:
    ended = kv.read(lambda tr: tr)
    with pytest.raises(TransactionEnded):
        ended.get(b"a")


def test_a_closed_store_refuses_everything(kv: KeyValueStore) -> None:
    kv.close()
    kv.close()
    for use in (
        lambda: kv.read(lambda tr: None),
        lambda: kv.transact(lambda tr: None),
        lambda: kv.watch({}, timeout=0),
        kv.size,
    ):
        with pytest.raises(StoreClosed, match="open it again"):
            use()


def test_close_finishes_what_was_accepted(kv: KeyValueStore) -> None:
    begun, go = threading.Event(), threading.Event()

    def work(tr: Transaction) -> str:
        begun.set()
        assert go.wait(LONG)
        tr.set(b"key", b"value")
        return "done"

    with ThreadPoolExecutor() as pool:
        working = pool.submit(kv.transact, work)
        assert begun.wait(LONG)
        closing = pool.submit(kv.close)
        go.set()
        assert working.result(LONG) == "done"
        closing.result(LONG)


def test_size_grows_with_what_is_stored(kv: KeyValueStore) -> None:
    empty, _ = kv.size()
    fill(kv, key=b"x" * 90_000)
    full, _ = kv.size()
    assert full >= empty + 90_000
    kv.transact(lambda tr: tr.clear(b"key"))
    assert kv.size()[0] <= empty + 8_192


def test_writes_of_many_threads_all_count(kv: KeyValueStore) -> None:
    def work(thread: int) -> None:
        for n in range(50):
            kv.transact(lambda tr, key=b"%d-%d" % (thread, n): [tr.add(b"total", 1), tr.set(key, b"")])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    stored = content(kv)
    assert stored.pop(b"total") == number(400)
    assert len(stored) == 400


def test_each_key_is_taken_once_by_many_threads(kv: KeyValueStore) -> None:
    kv.transact(lambda tr: [tr.set(b"item%03d" % n, b"") for n in range(100)])

    def take(tr: Transaction) -> bytes | None:
        found = tr.get_key(b"item", b"iten").wait()
        if found is not None:
            tr.clear(found)
        return found

    def work(_: int) -> list[bytes]:
        return list(iter(lambda: kv.transact(take), None))

    with ThreadPoolExecutor(4) as pool:
        taken = [key for keys in pool.map(work, range(4)) for key in keys]
    assert sorted(taken) == [b"item%03d" % n for n in range(100)]
    assert content(kv) == {}
