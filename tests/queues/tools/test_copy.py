"""Copies of stores: bytes and order kept, resumable anywhere, never usable before they are complete and verified."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path

import pytest

from queues import Store, open_store
from queues.errors import (
    BadSetting,
    CopyUnfinished,
    NotAStore,
    OlderFormat,
    SourceChanged,
    TargetNotEmpty,
)
from queues.keys.keyspace import Keyspace
from queues.kv import open_kv
from queues.model import records
from queues.tools import content
from queues.tools.content import Walk, cost, digest
from queues.tools.copy import Copied, Progress, copy_store
from tests.conftest import ENGINES, store_url
from tests.full_count import check_full_count

KEYSPACE = Keyspace(("pq",))
#: Every pair of engines of which at most one is a cluster: there is only one to test on.
PAIRS = [(a, b) for a, b in product(ENGINES, ENGINES) if (a, b) != ("cluster", "cluster")]


def place(engine: str, folder: Path) -> str:
    return f"memory:{uuid.uuid4().hex}" if engine == "simulated" else store_url(engine, folder)


@contextmanager
def two_places(engines: tuple[str, str], folder: Path) -> Iterator[tuple[str, str]]:
    """The URLs of two fresh places, held open so that those in memory last."""
    here, there = (place(engine, folder / side) for engine, side in zip(engines, "ab", strict=True))
    with closing(open_kv(here)), closing(open_kv(there)):
        yield here, there


@pytest.fixture(params=PAIRS, ids="-".join)
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    with two_places(request.param, tmp_path) as places:
        yield places


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Two fresh places in memory, for what does not depend on the engine."""
    with two_places(("simulated", "simulated"), tmp_path) as places:
        yield places


def fill(store: Store) -> str:
    """Put a bit of everything into a store; return the trash id of a deleted queue."""
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"%d" % n, n % 3) for n in range(60)])
    jobs.push_many([(b"\x00\xff" * 45_000, 2**70), (b"", -(2**70))])
    store.create_queue("scores", priority_type="float").push_many([(b"s", -0.5), (b"t", 1e300)])
    names = store.create_queue("名前", priority_type="str", bands=["m"])
    names.push_many([(b"n", "a\x00b"), (b"o", "zz")])
    mail = store.create_queue("mail", kind="fifo")
    mail.enqueue_many([b"%d" % n for n in range(20)])
    gone = store.create_queue("gone")
    gone.push_many([(b"old", 7)] * 3)
    acts = store.actions("ann")
    acts.pause("scores", reason="on purpose")
    acts.pop("jobs")
    jobs.pop_min()
    jobs.release(jobs.lease(), reason="no", traceback="where")
    return store.delete_queue("gone", by="ann")


def filled(url: str) -> None:
    """Create a store with a bit of everything."""
    with open_store(url) as store:
        fill(store)


def contents(url: str) -> dict[bytes, bytes]:
    """All keys that a copy carries, the bases of queues levelled."""
    with closing(open_kv(url)) as kv:
        pairs = kv.read(lambda tr: [p for r in KEYSPACE.content for p in tr.get_range(*r, limit=100_000).wait()])
    return {key: content.with_base(value, lambda _: 0) for key, value in pairs}


def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a copy of a small store go by many steps."""
    monkeypatch.setattr(content, "MAX_KEYS", 7)
    monkeypatch.setattr(content, "_MAX_STEP", 4)


def stop_at(n: int) -> Callable[[Progress], None]:
    """Return a listener that stops the copy when it is told of its n-th progress."""
    told = iter(range(n))

    def tell(progress: Progress) -> None:
        if next(told, None) is None:
            raise KeyboardInterrupt

    return tell


def test_a_copy_holds_the_same_bytes_in_the_same_order(urls: tuple[str, str]) -> None:
    here, there = urls
    with open_store(here) as store:
        fill(store)
        store_id = store.id
    before = contents(here)
    copied = copy_store(here, there)
    assert contents(there) == before == contents(here)
    assert (copied.store_id, copied.rounds, copied.resumed) == (store_id, 1, False)
    for url in urls:
        with closing(open_kv(url)) as kv:
            assert digest(kv, KEYSPACE) == copied.digest
    assert copied.digest.keys == len(before)
    with open_store(here) as source, open_store(there) as target:
        assert target.id == store_id, "the copy is the same store in another place"
        assert target.directory() == source.directory()
        for name in target.directory():
            assert target.queue(name).items(limit=1_000).items == source.queue(name).items(limit=1_000).items
            check_full_count(target, target.queue(name))
        assert target.audit.entries().entries == source.audit.entries().entries
        assert target.trash.entries().entries == source.trash.entries().entries


def test_what_is_pushed_into_a_copy_sorts_behind_what_was_copied(urls: tuple[str, str]) -> None:
    here, there = urls
    with open_store(here) as store:
        trash_id = fill(store)
        for _ in range(300):  # stamps of the source far ahead of a fresh store's
            store.queue("jobs").push(b"old", priority=5)
    copy_store(here, there)
    with open_store(there) as store:
        store.restore(trash_id)
        for name, priority in (("jobs", 5), ("gone", 7)):
            queue = store.queue(name)
            queue.push(b"new", priority=priority)
            equals = [item.value for item in queue.items(limit=1_000).items if item.priority == priority]
            assert equals == [b"old"] * (len(equals) - 1) + [b"new"]
            assert len(equals) > 1
        gone = store.queue("gone")
        assert (gone.pop_max().value, gone.pop_min().value) == (b"new", b"old")
        mail = store.queue("mail")
        mail.enqueue(b"new")
        assert mail.dequeue().value == b"0"
        assert mail.items(limit=1_000).items[-1].value == b"new"


def test_a_copy_of_a_copy_keeps_the_order_too(urls: tuple[str, str], tmp_path: Path) -> None:
    here, there = urls
    third = f"lmdb:{tmp_path / 'third'}"
    with open_store(here) as store:
        store.create_queue("jobs").push_many([(b"0", 1), (b"1", 1)])
    copy_store(here, there)
    with open_store(there) as store:
        store.queue("jobs").push(b"2", priority=1)
    copy_store(there, third)
    with open_store(third) as store:
        queue = store.queue("jobs")
        queue.push(b"3", priority=1)
        assert [item.value for item in queue.items().items] == [b"0", b"1", b"2", b"3"]


def test_a_copy_stopped_anywhere_goes_on_where_it_was(two: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = two
    small_chunks(monkeypatch)
    filled(here)
    stops = 0
    seen: list[Progress] = []
    copied: Copied | None = None
    while copied is None:
        told: list[Progress] = []
        listener = stop_at(3)

        def tell(progress: Progress, told: list[Progress] = told, listener=listener) -> None:
            told.append(progress)
            if progress.phase != "verifying":  # verifying begins anew
                listener(progress)

        try:
            copied = copy_store(here, there, on_progress=tell)
        except KeyboardInterrupt:
            stops += 1
            with pytest.raises(CopyUnfinished, match="not finished"):
                open_store(there)
        seen += told
    assert stops > 5
    assert copied.resumed
    carried = [progress.keys for progress in seen if progress.phase == "copying"]
    assert carried == sorted(carried), "nothing was carried twice"
    assert contents(there) == contents(here)
    with open_store(here) as source, open_store(there) as target:
        base = {target.queue(name).config.base for name in target.directory()}
        assert len(base) == 1, "bases were raised by one stamp, once"
        assert source.queue("jobs").config.base == 0


@pytest.mark.parametrize("phase", ["copying", "verifying", "verified", "finishing"])
def test_a_source_that_changes_is_noticed_and_the_next_run_brings_the_copy_up_to_date(
    two: tuple[str, str], phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = two
    small_chunks(monkeypatch)
    with open_store(here) as store:
        trash_id = fill(store)
        told: list[str] = []

        def change(progress: Progress) -> None:
            told.append(progress.phase)
            if phase == "verified":  # the source was read to its end, and the copy is read now
                now = progress.phase == "verifying" and told.count("verifying") == told.count("copying")
            else:
                now = progress.phase == phase and told.count(phase) == (1 if phase == "finishing" else 3)
            if now:
                store.queue("jobs").pop_min()
                store.queue("jobs").push(b"late", priority=-(2**80))
                store.create_queue("newcomer").push_many([(b"n" * 2_000, n) for n in range(30)])
                store.rename_queue("mail", "post")
                store.restore(trash_id)

        with pytest.raises(SourceChanged, match="run the same command again"):
            copy_store(here, there, on_progress=change)
        with pytest.raises(CopyUnfinished):
            open_store(there)
        copied = copy_store(here, there)
        assert (copied.rounds, copied.resumed) == (2, True)
        assert contents(there) == contents(here)
        with open_store(there) as target:
            for name in target.directory():
                check_full_count(target, target.queue(name))


def test_a_copy_carries_the_keys_of_applications(urls: tuple[str, str]) -> None:
    here, there = urls
    with open_store(here) as store:
        fill(store)
        for n in range(40):
            store.space("app").set(("result", n), b"%d" % n)
        store.space("other").set("x", b"y")
        pairs = store.space("app").get_range(limit=1_000)
    copy_store(here, there)
    with open_store(there) as copied:
        assert copied.space("app").get_range(limit=1_000) == pairs
        assert copied.space("other").get("x") == b"y"


@pytest.mark.parametrize("phase", ["verifying", "finishing"])
def test_a_space_that_changes_while_a_copy_ends_is_noticed(two: tuple[str, str], phase: str) -> None:
    here, there = two
    with open_store(here) as store:
        fill(store)
        store.space("app").set("x", b"before")
        told: list[str] = []

        def change(progress: Progress) -> None:
            told.append(progress.phase)
            if progress.phase == phase and told.count(phase) == 1:
                store.space("app").set("x", b"after")

        with pytest.raises(SourceChanged):
            copy_store(here, there, on_progress=change)
        copy_store(here, there)
        with open_store(there) as copied:
            assert copied.space("app").get("x") == b"after"


@pytest.mark.parametrize("phase", ["verifying", "finishing"])
@pytest.mark.parametrize("what", ["cancel", "begin", "reveal", "once"])
def test_what_changes_no_queue_while_a_copy_ends_is_noticed(two: tuple[str, str], phase: str, what: str) -> None:
    here, there = two
    with open_store(here) as store:
        fill(store)
        ann = store.actions("ann")
        job, item = ann.begin_bulk("delete", "jobs"), store.queue("jobs").peek_min()
        changes: dict[str, Callable[[], object]] = {
            "cancel": lambda: ann.cancel_bulk(job.id),
            "begin": lambda: ann.begin_bulk("delete", "mail"),
            "reveal": lambda: ann.reveal("jobs", item.id),
            "once": lambda: store.once("key", lambda tr: b"answer"),
        }
        told: list[str] = []

        def change(progress: Progress) -> None:
            told.append(progress.phase)
            if progress.phase == phase and told.count(phase) == 1:
                changes[what]()

        with pytest.raises(SourceChanged):
            copy_store(here, there, on_progress=change)
        copy_store(here, there)
        assert contents(there) == contents(here)


def refused(here: str, there: str, error: type[Exception], words: str) -> None:
    """Assert that a copy is refused and leaves both sides alone."""

    def all_of(url: str) -> list[tuple[bytes, bytes]]:
        with closing(open_kv(url)) as kv:
            return kv.read(lambda tr: tr.get_range(b"", b"\xff", limit=100_000).wait())

    before = all_of(here), all_of(there)
    with pytest.raises(error, match=words):
        copy_store(here, there)
    if error is not TargetNotEmpty:  # a refused transaction may leave a slot
        assert (all_of(here), all_of(there)) == before
    assert {key: value for key, value in all_of(there) if not key.startswith(KEYSPACE.slots)} == {
        key: value for key, value in before[1] if not key.startswith(KEYSPACE.slots)
    }


def test_refusals_leave_the_target_alone(two: tuple[str, str], tmp_path: Path) -> None:
    here, there = two
    refused(here, there, NotAStore, "holds no pqadmin store")
    filled(here)
    refused(here, here, TargetNotEmpty, "holds a store already")
    with open_store(there, root=("pq", "inner")):
        pass
    refused(here, there, TargetNotEmpty, "something else under this root")


def test_only_the_same_copy_goes_on_and_an_unfinished_one_is_no_source(two: tuple[str, str], tmp_path: Path) -> None:
    here, there = two
    other = f"lmdb:{tmp_path / 'other'}"
    for url in (here, other):
        filled(url)
    with pytest.raises(KeyboardInterrupt):
        copy_store(here, there, on_progress=stop_at(0))
    refused(other, there, TargetNotEmpty, "unfinished copy of another store")
    refused(there, f"lmdb:{tmp_path / 'third'}", CopyUnfinished, "not finished")
    assert copy_store(here, there).resumed


def test_a_store_of_0_1_is_not_copied(two: tuple[str, str]) -> None:
    here, there = two
    with open_store(here) as store:
        record = records.encode({"format": 3, "id": store.id})
        store.transact(lambda tr: tr.set(KEYSPACE.store, record))
    refused(here, there, OlderFormat, "export_items")


def test_two_processes_do_not_work_on_one_copy(two: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = two
    small_chunks(monkeypatch)
    filled(here)
    inner: list[Copied] = []

    def meddle(progress: Progress) -> None:
        if not inner:
            inner.append(copy_store(here, there))

    with pytest.raises(CopyUnfinished, match="Another process"):
        copy_store(here, there, on_progress=meddle)
    assert contents(there) == contents(here)


def test_chunks_and_transactions_stay_small(two: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = two
    with open_store(here) as store:
        queue = store.create_queue("jobs")
        for n in range(8):
            queue.push_many([(b"x" * 90_000, n) for _ in range(10)])
            queue.push_many([(b"y", n) for _ in range(500)])
    with closing(open_kv(here)) as kv:
        costs = [cost(pairs) for pairs in Walk(kv, KEYSPACE).chunks()]
    assert len(costs) > 10
    assert max(costs) < 25_000_000, "a chunk is at most one step of small items that turned out large"
    copy_store(here, there)
    assert contents(there) == contents(here)


#: Keys around the root, as other programs write them: before it, behind it, and one that it begins with.
OUTSIDE = {b"\x01": b"", b"app\x00key": b"a" * 5_000, b"\x02pp\x00": b"b", b"\xfe\xff": b"c"} | {
    b"app/%d" % n: b"%d" % n for n in range(50)
}


def write_outside(url: str) -> None:
    with closing(open_kv(url)) as kv:
        kv.transact(lambda tr: [tr.set(*pair) for pair in OUTSIDE.items()])


def read_outside(url: str) -> dict[bytes, bytes]:
    begin, end = KEYSPACE.range
    with closing(open_kv(url)) as kv:
        sides = [
            kv.read(lambda tr, side=side: tr.get_range(*side, limit=10_000).wait())
            for side in ((b"\x00", begin), (end, b"\xff"))
        ]
    return dict(sides[0] + sides[1])


def embedded_like(url: str) -> bool:
    return not url.startswith("fdb:")


def test_keys_of_other_programs_are_copied_where_the_whole_file_is_the_store(
    urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_chunks(monkeypatch)
    here, there = urls
    with open_store(here) as store:
        fill(store)
        store.attach("theirs", prefix=("their",)).push_many([(b"x", n) for n in range(5)])
    write_outside(here)
    before = read_outside(here)
    copied = copy_store(here, there)
    assert read_outside(here) == before
    if embedded_like(here) and embedded_like(there):
        assert copied.outside.keys == len(before) == len(OUTSIDE) + 5
        assert copied.left == 0
        assert read_outside(there) == before
        with open_store(there) as store:
            assert len(store.queue("theirs").items(limit=10).items) == 5
    else:
        assert copied.outside is None
        assert copied.left == (len(before) if embedded_like(here) else None)
        assert read_outside(there) == {}


def test_keys_of_other_programs_are_left_or_copied_as_told(urls: tuple[str, str]) -> None:
    here, there = urls
    filled(here)
    write_outside(here)
    if not embedded_like(here):
        with pytest.raises(BadSetting, match="other programs"):
            copy_store(here, there, with_outside=True)
        return
    copied = copy_store(here, there, with_outside=not embedded_like(there))
    if embedded_like(there):
        assert (copied.outside, copied.left) == (None, len(OUTSIDE))
        assert read_outside(there) == {}
    else:
        assert read_outside(there) == OUTSIDE


def test_a_target_with_keys_of_another_program_is_left_alone(two: tuple[str, str]) -> None:
    here, there = two
    filled(here)
    write_outside(here)
    kv = open_kv(there)
    kv.transact(lambda tr: tr.set(b"app/1", b"of the target"))
    with pytest.raises(TargetNotEmpty, match="another program"):
        copy_store(here, there)
    assert read_outside(there) == {b"app/1": b"of the target"}
    assert contents(there) == {}
    copied = copy_store(here, there, with_outside=False)
    assert copied.left == len(OUTSIDE)
    assert read_outside(there) == {b"app/1": b"of the target"}
    kv.close()


def test_a_key_of_another_program_that_changes_meanwhile_is_noticed(
    two: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_chunks(monkeypatch)
    here, there = two
    filled(here)
    write_outside(here)

    def change(progress: Progress) -> None:
        if progress.phase == "verifying":
            kv.transact(lambda tr: tr.set(b"app/1", b"changed"))
            kv.transact(lambda tr: tr.clear(b"app/2"))

    kv = open_kv(here)
    with pytest.raises(SourceChanged):
        copy_store(here, there, on_progress=change)
    before = contents(there), read_outside(there)
    with pytest.raises(BadSetting, match="unfinished copy with keys outside"):
        copy_store(here, there, with_outside=False)
    assert (contents(there), read_outside(there)) == before
    copied = copy_store(here, there)
    assert copied.resumed
    assert read_outside(there) == read_outside(here)
    assert b"app/2" not in read_outside(there)
    kv.close()


@pytest.mark.parametrize("killed", [False, True])
def test_a_key_of_another_program_that_changes_after_it_was_compared_is_noticed(
    two: tuple[str, str], killed: bool
) -> None:
    here, there = two
    filled(here)
    write_outside(here)
    kv = open_kv(here)

    def change(progress: Progress) -> None:
        if progress.phase == "finishing":
            kv.transact(lambda tr: tr.set(b"app/1", b"changed"))
            if killed:
                raise KeyboardInterrupt

    if killed:
        with pytest.raises(KeyboardInterrupt):
            copy_store(here, there, on_progress=change)
    with pytest.raises(SourceChanged):
        copy_store(here, there, on_progress=lambda progress: None if killed else change(progress))
    copied = copy_store(here, there)
    assert copied.outside is not None
    assert read_outside(there) == read_outside(here)
    assert read_outside(there)[b"app/1"] == b"changed"
    kv.close()
