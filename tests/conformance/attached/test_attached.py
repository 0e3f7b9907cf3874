"""Attached queues: items in a subspace that other programs write, on every engine."""

import random
from collections.abc import Callable

import pytest
from fdb import tuple as layer

from queues import Actions, Item, Queue, Store
from queues.catalog.store_record import StoreRecord
from queues.errors import (
    AlreadyRestored,
    BadName,
    BadPrefix,
    BadPriority,
    BadQueueKind,
    ConfirmationMismatch,
    DepthChanged,
    ItemNotFound,
    KeyTooLarge,
    NotAttached,
    NotForAttached,
    NotTheRecipe,
    PlaceTaken,
    PrefixTaken,
    QueueExists,
    QueueNotFound,
    StoreError,
    WrongKind,
)
from queues.operations.pop import PopRequest
from tests.conftest import Clock
from tests.interop.recipe_client import RecipeClient

PREFIX = layer.pack(("legacy", 1))
R = b"r" * 20


@pytest.fixture
def legacy(store: Store) -> Queue:
    return store.attach("legacy", prefix=("legacy", 1))


@pytest.fixture
def stranger(store: Store, legacy: Queue) -> RecipeClient:
    return RecipeClient(store.context.kv, PREFIX)


def write(store: Store, *pairs: tuple[bytes, bytes]) -> None:
    """Write keys under the prefix as another caller might."""

    def put(tr) -> None:
        for suffix, value in pairs:
            tr.set(PREFIX + suffix, value)

    store.transact(put)


def values(queue: Queue) -> list[bytes]:
    return [item.value for item in queue.items(limit=1_000).items]


def dump(store: Store) -> list[tuple[bytes, bytes]]:
    """Return everything that is not ours."""
    everything = store.read(lambda tr: tr.get_range(b"\x00", b"\xff", limit=100_000).wait())
    ours = store.context.keyspace.root
    return [(key, value) for key, value in everything if not key.startswith(ours)]


# Attaching


def test_attaching_shows_what_is_there_and_writes_nothing_there(store: Store) -> None:
    write(store, (layer.pack((5, 0, R)), b"a"), (layer.pack((7, 0, R)), b"b"))
    before = dump(store)
    legacy = store.attach("legacy", prefix=PREFIX, priority_type="float")
    assert values(legacy) == [b"a", b"b"]
    assert (legacy.attached, legacy.config.prefix, legacy.depth()) == (True, PREFIX, 2)
    again = store.queue("legacy")
    assert (again.attached, again.kind, again.priority_type) == (True, "priority", "float")
    assert [queue.attached for queue in store.queues()] == [True]
    store.detach("legacy")
    assert dump(store) == before
    with pytest.raises(QueueNotFound):
        legacy.pop_min()
    assert dump(store) == before


@pytest.mark.parametrize(
    "prefix",
    [
        b"",
        (),
        b"\xff",
        b"\xff/system",
        b"\xfe",
        b"\xfe\x15\x01",
        b"x" * 257,
        ("x" * 400,),
        (object(),),
        "text",
        5,
        None,
        (layer.Versionstamp(),),
    ],
)
def test_a_prefix_that_cannot_be_is_refused(store: Store, prefix: object) -> None:
    with pytest.raises(BadPrefix):
        store.attach("x", prefix=prefix)
    assert store.directory() == {}


@pytest.mark.parametrize(
    "prefix", [("pq",), ("pq", "q"), b"\x02", b"\x02pq", b"\x02pq\x00\x02q\x00", ("pq", "trash", "r")]
)
def test_a_prefix_over_our_own_keys_is_refused(store: Store, prefix: object) -> None:
    with pytest.raises(PrefixTaken, match="this store itself"):
        store.attach("x", prefix=prefix)


@pytest.mark.parametrize("first", [PREFIX, PREFIX + b"\xff", b"a", b"\x00"])
@pytest.mark.parametrize("more", [b"", b"\x00", b"\x15", b"\xff", b"\xff\xff\x01", b"\x02x\x00"])
def test_no_two_attached_prefixes_overlap(store: Store, first: bytes, more: bytes) -> None:
    for n, far in enumerate((b"\x01", b"Z", b"z", b"\xfd", PREFIX[:-1] + b"\x7f")):
        store.attach(f"far{n}", prefix=far)
    store.attach("one", prefix=first)
    for prefix in {first + more, *([first[:-1]] if len(first) > 1 and first[:-1] != PREFIX[:1] else [])}:
        with pytest.raises(PrefixTaken, match="one"):
            store.attach("two", prefix=prefix)
    store.detach("one")
    store.attach("two", prefix=first + more)
    with pytest.raises(PrefixTaken, match="two"):
        store.attach("one", prefix=first)


@pytest.mark.parametrize("under", [(), ("q",), ("q", 7, 1, "i")])
def test_another_store_is_never_attached_nor_what_lies_in_it(store: Store, under: tuple[object, ...]) -> None:
    record = StoreRecord(format=99, id="0" * 32).encode()
    store.transact(lambda tr: tr.set(layer.pack(("other", "pq", "store")), record))
    with pytest.raises(PrefixTaken, match="Another pqadmin store"):
        store.attach("x", prefix=("other", "pq", *under))
    assert store.directory() == {}
    store.attach("beside", prefix=("other", "queue"))


@pytest.mark.parametrize(
    "value", [b"", b"text", b"\x01\x00\x00\x02{}", b"\x01\x00\x00\x02[]", b"\x01\x00\x00\x02\xff\xff"]
)
def test_a_key_that_only_has_the_name_of_a_stores_record_does_no_harm(store: Store, value: bytes) -> None:
    store.transact(lambda tr: tr.set(layer.pack(("legacy", "store")), value))
    assert store.attach("jobs", prefix=("legacy", "jobs")).attached


def test_names_kinds_and_types_are_checked_as_for_our_own(store: Store, legacy: Queue) -> None:
    store.create_queue("jobs")
    for name in ("legacy", "jobs"):
        with pytest.raises(QueueExists):
            store.attach(name, prefix=("other",))
    with pytest.raises(QueueExists):
        store.create_queue("legacy", exist_ok=True)
    with pytest.raises(BadName):
        store.attach("a b", prefix=("other",))
    with pytest.raises(BadQueueKind):
        store.attach("x", prefix=("other",), kind="stack")
    with pytest.raises(BadQueueKind):
        store.attach("x", prefix=("other",), priority_type="bytes")
    assert store.attach("x", prefix=("other",)).depth() == 0


def test_an_attached_queue_can_be_renamed_and_its_handle_stays(store: Store, legacy: Queue) -> None:
    legacy.push(b"a", priority=1)
    assert store.rename_queue("legacy", "older").attached
    legacy.push(b"b", priority=1)
    assert values(store.queue("older")) == [b"a", b"b"]


def test_only_attached_queues_are_detached_and_only_our_own_deleted(store: Store, ann: Actions, legacy: Queue) -> None:
    jobs = store.create_queue("jobs")
    for detach in (store.detach, ann.detach):
        with pytest.raises(NotAttached):
            detach("jobs")
    with pytest.raises(NotForAttached, match="detach"):
        store.delete_queue("legacy")
    with pytest.raises(NotForAttached, match="detach"):
        ann.delete_queue("legacy", confirm="legacy")
    with pytest.raises(NotAttached):
        ann.purge_attached("jobs", confirm="jobs")
    assert (jobs.depth(), legacy.depth()) == (0, 0)


def test_what_needs_other_programs_to_take_part_is_refused(store: Store, legacy: Queue) -> None:
    ann, token = store.actions("ann"), f"{0:040x}-{0:016x}"
    for refused in (
        lambda: legacy.pause(reason="r"),
        legacy.resume,
        lambda: ann.pause("legacy", reason="r"),
        lambda: legacy.depth("delayed"),
        lambda: legacy.depth("leased"),
        lambda: legacy.push(b"x", priority=1, delay=1),
        lambda: legacy.push_many([(b"x", 1, 1)]),
        legacy.promote,
        legacy.delayed,
        lambda: legacy.promote_now("0" * 40),
        lambda: legacy.reschedule("0" * 40, delay=1),
        legacy.lease,
        lambda: legacy.lease(wait=1),
        lambda: legacy.ack(token),
        lambda: legacy.ack_many([token]),
        lambda: legacy.release(token),
        lambda: legacy.extend(token, seconds=1),
        legacy.expire,
        legacy.leased,
        legacy.dead,
        lambda: legacy.retry_dead("0" * 40),
        lambda: legacy.delete_dead("0" * 40),
        lambda: legacy.configure(max_attempts=3),
    ):
        with pytest.raises(NotForAttached, match="legacy"):
            refused()
    legacy.push(b"a", priority=1)
    assert legacy.pop_min().value == b"a"
    assert [entry.verb for entry in store.audit.entries().entries] == []


# The verbs


def test_the_verbs_are_those_of_any_queue(legacy: Queue) -> None:
    legacy.push_many([(b"c", 3), (b"a1", 1), (b"b", 2), (b"a2", 1)])
    assert (legacy.peek_min().value, legacy.peek_max().value) == (b"a1", b"c")
    assert [item.value for item in legacy.peek_many(2, end="max")] == [b"c", b"b"]
    assert values(legacy) == [b"a1", b"a2", b"b", b"c"]
    assert legacy.depth() == 4
    assert [item.value for item in legacy.pop_many(2, end="max")] == [b"c", b"b"]
    assert [legacy.pop_max().value, legacy.pop_min().value, legacy.pop_min()] == [b"a2", b"a1", None]
    with pytest.raises(BadPriority):
        legacy.push(b"x", priority="high")
    with pytest.raises(WrongKind):
        legacy.enqueue(b"x")


def test_a_fifo_queue_is_attached_by_the_queues_recipe(store: Store) -> None:
    mail = store.attach("mail", prefix=b"mail", kind="fifo")
    mail.enqueue_many([b"1", b"2"])
    mail.enqueue(b"3")
    assert [item.count for item in mail.items(end="tail").items] == [3, 2, 1]
    assert [mail.dequeue().value, mail.peek().value] == [b"1", b"2"]
    assert [item.value for item in mail.dequeue_many(5)] == [b"2", b"3"]
    with pytest.raises(WrongKind):
        mail.push(b"x", priority=1)


def test_transactions_join_attached_queues_and_our_own(store: Store, jobs: Queue, legacy: Queue) -> None:
    first, second = legacy.push_many([(b"a", 1), (b"b", 2)])

    def move(tr) -> Item:
        item = legacy.remove(second.id, verb="move", tr=tr)
        jobs.push(item.value, priority=item.priority, tr=tr)
        legacy.push(b"c", priority=9, tr=tr)
        return legacy.pop_max(tr=tr)

    assert store.transact(move).value == b"c"
    assert (values(legacy), values(jobs)) == ([b"a"], [b"b"])
    with pytest.raises(ZeroDivisionError):
        store.transact(lambda tr: legacy.pop_min(tr=tr) and 1 / 0)
    assert values(legacy) == [b"a"]
    store.transact(lambda tr: legacy.push(jobs.remove(_first_id(jobs, tr), tr=tr).value, priority=1, tr=tr))
    assert (values(legacy), values(jobs)) == ([b"a", b"b"], [])
    assert legacy.find(first.id) == first


def _first_id(queue: Queue, tr) -> str:
    return queue.items(tr=tr).items[0].id


def test_removing_one_item_takes_that_one_and_once(jobs: Queue, legacy: Queue) -> None:
    for queue in (legacy, jobs):
        items = queue.push_many([(b"a", 1), (b"b", 1), (b"c", 1)])
        assert queue.remove(items[1].id).value == b"b"
        assert queue.remove(items[1].id) is None
        assert queue.remove("nonsense") is None
        assert values(queue) == [b"a", b"c"]
        assert queue.depth() == 2
        assert queue.totals().traffic == {"push": 3, "delete": 1}
    assert jobs.status().bands[2].depth == 2


def test_ages_are_unknown_and_never_guessed(legacy: Queue, stranger: RecipeClient) -> None:
    pushed = legacy.push(b"ours", priority=1)
    stranger.push(b"theirs", 1)
    assert [item.pushed_at for item in (pushed, *legacy.items().items, legacy.pop_min())] == [None] * 4
    assert legacy.oldest() is None
    assert legacy.status().oldest is None


# Reading foreign keys and values


HOSTILE = [
    (b"\x00", b"a NUL"),
    (layer.pack((None, 0, R)), b"no priority"),
    (layer.pack((b"\x00\xff", 0, R)), b"bytes"),
    (layer.pack(("a\u202e\n", 0, R)), b"text"),
    (layer.pack((("x", (1, None)), 0, R)), b"nested"),
    (layer.pack((-(2**200), 0, R)), b"a large number"),
    (layer.pack((5, 0, R)), b"plain"),
    (layer.pack((5, "x", R)), b"no count"),
    (layer.pack((5,)), b"too short"),
    (layer.pack((5, 1, R, 3)), b"too long"),
    (layer.pack((float("nan"), 0, R)), b"NaN"),
    (layer.pack((float("-inf"), 0, R)), b"infinite"),
    (layer.pack((True, 0, R)), b"a bool"),
    (b"\x33" + b"\xff" * 10 + b"\x00\x00" + layer.pack((0, R)), b"an incomplete versionstamp"),
    (b"\x02no end", b"damaged"),
    (b"\x05" * 150, b"deep"),
    (b"\xfe\x01\x02", b"no tuple at all"),
    (b"\x15", b""),
]


def test_any_foreign_item_is_shown_and_can_be_taken(store: Store, legacy: Queue) -> None:
    write(store, *HOSTILE)
    expected = [value for _, value in sorted(HOSTILE)]
    shown = legacy.items().items
    assert [item.value for item in shown] == expected
    assert len({item.id for item in shown}) == len(HOSTILE)
    for item in shown:
        assert legacy.find(item.id) == item
        assert item.foreign.suffix in dict(HOSTILE)
        assert item.foreign.priority_text
    assert [item.value for item in legacy.items(end="max").items] == expected[::-1]
    assert (legacy.status().min.value, legacy.status().max.value) == (expected[0], expected[-1])
    assert legacy.depth() == len(HOSTILE)
    paged, cursor = [], None
    while cursor is not None or not paged:
        page = legacy.items(limit=4, after=cursor)
        paged += page.items
        cursor = page.cursor
    assert tuple(paged) == shown
    acts = store.actions("ann")
    taken = [acts.pop("legacy", end=random.choice(["min", "max"])) for _ in HOSTILE]
    assert legacy.depth() == 0
    before = [acts.undo(popped.trash_id).item for popped in taken]
    assert sorted(item.id for item in before) == sorted(item.id for item in shown)
    assert legacy.items().items == shown
    assert [item.value for item in legacy.pop_many(100)] == expected


def test_pages_begin_at_a_priority(legacy: Queue, stranger: RecipeClient) -> None:
    for n in range(6):
        stranger.push(b"%d" % n, n // 2)
    assert [item.value for item in legacy.items(priority=1).items] == [b"2", b"3", b"4", b"5"]
    assert [item.value for item in legacy.items(priority=1, end="max").items] == [b"3", b"2", b"1", b"0"]


def test_values_up_to_the_stores_limit_are_read_taken_and_put_back(store: Store, legacy: Queue) -> None:
    large = random.Random(1).randbytes(100_000)
    write(store, (layer.pack((1, 0, R)), large))
    item = legacy.items(preview=10).items[0]
    assert (item.value, item.size, item.truncated) == (large[:10], 100_000, True)
    acts = store.actions("ann")
    popped = acts.pop("legacy")
    assert popped.item.value == large
    assert store.trash.get(popped.trash_id).item.value == large
    assert store.trash.entries().entries[0].item.value == large
    acts.undo(popped.trash_id)
    assert legacy.peek_min().value == large
    with pytest.raises(AlreadyRestored):
        acts.undo(popped.trash_id)


def test_a_large_value_in_our_own_queue_goes_through_the_trash_too(store: Store, jobs: Queue) -> None:
    item = jobs.push(b"small", priority=1)
    keys = store.context.keyspace.queue(jobs.id).generation(1)
    key = store.read(lambda tr: tr.get_key(*keys.ready.all).wait())
    store.transact(lambda tr: tr.set(key, b"x" * 100_000))
    acts = store.actions("ann")
    popped = acts.pop("jobs")
    assert acts.undo(popped.trash_id).item.id == item.id
    assert jobs.peek_min().value == b"x" * 100_000


def test_a_push_goes_on_from_the_last_whole_number(store: Store, legacy: Queue) -> None:
    write(store, (layer.pack((5, 41, R)), b"a"), (layer.pack((5, 7.5, R)), b"no count"), (layer.pack((5, None)), b"x"))
    assert legacy.push(b"b", priority=5).count == 42
    assert legacy.push(b"c", priority=6).count == 0
    write(store, (layer.pack((8,)) + b"\x1d\xff", b"damaged"))
    with pytest.raises(NotTheRecipe):
        legacy.push(b"d", priority=8)
    write(store, (layer.pack((8, 4, R)), b"an older one that is whole"))
    assert legacy.push(b"d", priority=8).count == 5
    write(store, (layer.pack((9, 2**2040 - 1, R)), b"the last number there is"))
    with pytest.raises(NotTheRecipe):
        legacy.push(b"d", priority=9)
    assert legacy.depth() == 9


def test_a_key_that_is_too_long_is_refused_and_nothing_pushed(store: Store) -> None:
    far = store.attach("far", prefix=b"p" * 256)
    with pytest.raises(KeyTooLarge):
        far.push_many([(b"fits", 1), (b"does not", 2 ** (254 * 8))])
    assert far.depth() == 0
    far.push(b"fits", priority=1)


# Depth


def test_depth_is_counted_exactly_over_many_steps(store: Store, legacy: Queue, clock: Clock) -> None:
    random_ = random.Random(2)
    for start in range(0, 2_500, 500):
        write(
            store,
            *[
                (layer.pack((n, 0, R)), random_.randbytes(10 ** random_.randrange(4)))
                for n in range(start, start + 500)
            ],
        )
    assert legacy.depth() == 2_500
    assert legacy.totals().ready == 2_500
    assert store.read(lambda tr: legacy.depth(tr=tr)) == 2_500
    count = store.counts.known(legacy.id)
    assert (count.depth, count.counted_at.timestamp()) == (2_500, clock.now)


def test_a_status_says_when_the_depth_was_counted(store: Store, legacy: Queue, clock: Clock) -> None:
    def status():
        return store.snapshot([legacy.id]).queues[legacy.id]

    assert (status().totals.ready, status().counted_at.timestamp()) == (0, clock.now)
    legacy.push(b"a", priority=1)
    clock.advance(1)
    assert (status().totals.ready, status().counted_at.timestamp()) == (1, clock.now)
    store.counts.close()  # counted by hand from here on
    legacy.push_many([(b"b", 2), (b"c", 3)])
    assert (status().totals.ready, status().counted_at) == (2, None)
    assert legacy.depth() == 3
    counted = clock.now
    clock.advance(7)
    legacy.push(b"d", priority=4)
    assert (status().totals.ready, status().counted_at.timestamp()) == (3, counted)
    assert legacy.depth() == 4
    assert (status().totals.ready, status().counted_at.timestamp()) == (4, clock.now)
    assert (status().attached, status().prefix, status().bands, status().drift) == (True, PREFIX, (), False)


def test_looking_has_the_depth_counted_behind_ones_back(store: Store, legacy: Queue) -> None:
    legacy.push_many([(b"x", n) for n in range(10)])
    known = _until(store, legacy, lambda status: status.counted_at is not None)
    assert known.totals.ready == 10
    RecipeClient(store.context.kv, PREFIX).push(b"y", 99)
    assert _until(store, legacy, lambda status: status.totals.ready == 11).max.value == b"y"


def _until(store: Store, queue: Queue, there: Callable[..., bool]):
    """Look again until what is awaited is there; the reader's thread counts meanwhile."""
    snapshot = None
    for _ in range(1_500):
        snapshot = store.snapshot([queue.id], previous=snapshot)
        if there(snapshot.queues[queue.id]):
            return snapshot.queues[queue.id]
        store.wait_for_change(snapshot, timeout=0.02)
    raise AssertionError("it never came")


# Snapshots


def test_a_snapshot_sees_what_other_programs_did_and_keeps_what_is_the_same(
    store: Store, legacy: Queue, stranger: RecipeClient
) -> None:
    store.counts.close()
    jobs = store.create_queue("jobs")
    stranger.push(b"a", 1)
    first = store.snapshot([legacy.id, jobs.id])
    second = store.snapshot([legacy.id, jobs.id], previous=first)
    assert all(second.queues[queue.id] is first.queues[queue.id] for queue in (legacy, jobs))
    stranger.push(b"b", 2)
    third = store.snapshot([legacy.id, jobs.id], previous=second)
    assert third.queues[legacy.id].max.value == b"b"
    assert third.queues[legacy.id].change != second.queues[legacy.id].change
    assert third.queues[jobs.id] is first.queues[jobs.id]
    store.detach("legacy")
    fourth = store.snapshot([legacy.id, jobs.id], previous=third)
    assert set(fourth.queues) == {jobs.id}


def test_our_own_pushes_and_pops_wake_our_viewers(store: Store, legacy: Queue) -> None:
    for act in (lambda: legacy.push(b"a", priority=1), legacy.pop_min, lambda: store.detach("legacy")):
        snapshot = store.snapshot([legacy.id])
        act()
        assert store.wait_for_change(snapshot, timeout=0)


# Actions


def test_attaching_and_detaching_are_acts(store: Store, ann: Actions) -> None:
    queue = ann.attach("legacy", prefix=("legacy", 1), reason="migration")
    with pytest.raises(PrefixTaken):
        ann.attach("twice", prefix=("legacy",))
    with pytest.raises(QueueNotFound):
        ann.detach("legacy", expect_id=queue.id + 1)
    ann.push("legacy", b"a", priority=1)
    popped = ann.pop("legacy")
    ann.detach("legacy", expect_id=queue.id)
    entries = store.audit.entries().entries
    assert [entry.verb for entry in entries] == ["detach", "pop_min", "push", "attach"]
    assert [entry.queue for entry in entries] == ["legacy"] * 4
    assert entries[-1].after == {"prefix": PREFIX.hex(), "kind": "priority", "priority_type": "int"}
    assert (entries[-1].reason, entries[-1].count) == ("migration", 0)
    assert entries[1].item == popped.item.id
    assert store.trash.get(popped.trash_id).item == popped.item


def test_deleting_one_item_can_be_undone(store: Store, ann: Actions, legacy: Queue, stranger: RecipeClient) -> None:
    for n in range(3):
        stranger.push(b"%d" % n, 1)
    before = dump(store)
    middle = legacy.items().items[1]
    deleted = ann.delete_item("legacy", middle.id, reason="poison")
    assert deleted.item == middle
    assert values(legacy) == [b"0", b"2"]
    with pytest.raises(ItemNotFound):
        ann.delete_item("legacy", middle.id)
    assert ann.undo(deleted.trash_id).item == middle
    assert dump(store) == before
    assert [entry.verb for entry in store.audit.entries().entries] == ["put_back", "delete"]
    jobs = store.create_queue("jobs")
    item = jobs.push(b"x", priority=1)
    assert ann.undo(ann.delete_item("jobs", item.id).trash_id).item == item


def test_putting_back_never_overwrites_what_other_programs_wrote(store: Store, ann: Actions, legacy: Queue) -> None:
    write(store, (b"\xfekey", b"old"))
    popped = ann.pop("legacy")
    write(store, (b"\xfekey", b"new"))
    with pytest.raises(PlaceTaken):
        ann.undo(popped.trash_id)
    assert values(legacy) == [b"new"]
    legacy.pop_min()
    ann.undo(popped.trash_id)
    assert values(legacy) == [b"old"]


def test_what_was_taken_goes_back_to_the_prefix_under_whatever_name(store: Store, ann: Actions, legacy: Queue) -> None:
    legacy.push(b"a", priority=1)
    popped = ann.pop("legacy")
    store.detach("legacy")
    with pytest.raises(QueueNotFound):
        ann.undo(popped.trash_id)
    store.create_queue("legacy")
    with pytest.raises(QueueNotFound):
        ann.undo(popped.trash_id)
    again = store.attach("again", prefix=PREFIX)
    ann.undo(popped.trash_id)
    assert values(again) == [b"a"]


def test_a_purge_takes_what_is_there_in_chunks_and_can_be_undone(store: Store, ann: Actions, legacy: Queue) -> None:
    size = random.Random(3)
    for start in range(10, 610, 200):
        write(store, *[(layer.pack((n, 0, R)), size.randbytes(size.randrange(20))) for n in range(start, start + 200)])
    write(store, *HOSTILE)
    before, total = dump(store), 600 + len(HOSTILE)
    with pytest.raises(ConfirmationMismatch):
        ann.purge_attached("legacy", confirm="legac")
    with pytest.raises(DepthChanged) as caught:
        ann.purge_attached("legacy", confirm="legacy", expect_depth=10, tolerance=5)
    assert caught.value.depth == total
    assert dump(store) == before
    heard: list[int] = []

    def progress(count: int) -> bool:
        heard.append(count)
        return True

    purged = ann.purge_attached(
        "legacy", confirm="legacy", expect_depth=total, reason="wrong import", progress=progress
    )
    assert (purged.count, purged.skipped, len(purged.trash_ids)) == (total, 0, len([taken for taken in heard if taken]))
    assert len(heard) > 2
    assert dump(store) == []
    assert legacy.depth() == 0
    entries = store.trash.entries().entries
    assert {entry.id for entry in entries} == set(purged.trash_ids)
    assert {entry.what for entry in entries} == {"items"}
    assert sum(entry.count for entry in entries) == total
    assert sum(entry.count for entry in store.audit.entries().entries if entry.verb == "purge") == total
    for trash_id in purged.trash_ids:
        ann.undo(trash_id)
        with pytest.raises(AlreadyRestored):
            ann.undo(trash_id)
    assert dump(store) == before
    left = [store.context.keyspace.trash_parts.below(bytes.fromhex(trash_id)) for trash_id in purged.trash_ids]
    assert store.read(lambda tr: [tr.get_key(*parts).wait() for parts in left]) == [None] * len(left)


def test_a_purge_knows_that_nothing_was_left_when_it_was_told_to_stop(store: Store, legacy: Queue) -> None:
    write(store, *[(layer.pack((n, 0, R)), b"") for n in range(200)])
    ann = store.actions("ann")
    first = ann.purge_attached("legacy", confirm="legacy", progress=lambda count: False)
    assert (first.count, first.finished, legacy.depth()) == (100, False, 100)
    rest = ann.purge_attached("legacy", confirm="legacy", progress=lambda count: False)
    assert (rest.count, rest.finished, legacy.depth()) == (100, True, 0)


def test_a_purge_that_is_told_to_stop_while_it_counts_takes_nothing(store: Store, legacy: Queue) -> None:
    legacy.push(b"a", priority=1)
    purged = store.actions("ann").purge_attached(
        "legacy", confirm="legacy", expect_depth=1, progress=lambda count: False
    )
    assert (purged.count, purged.trash_ids, purged.finished) == (0, (), False)
    assert legacy.depth() == 1


def test_a_purge_that_fails_halfway_tells_what_it_took(store: Store, ann: Actions, legacy: Queue) -> None:
    write(store, *[(layer.pack((n, 0, R)), b"") for n in range(400)])
    before = dump(store)

    def progress(count: int) -> bool:
        if count > 100:
            raise OSError("the pipe is broken")
        return True

    purged = ann.purge_attached("legacy", confirm="legacy", progress=progress)
    assert 100 < purged.count < 400
    assert isinstance(purged.failure, OSError)
    assert not purged.finished
    assert legacy.depth() == 400 - purged.count
    assert sum(ann.undo(trash_id).count for trash_id in purged.trash_ids) == purged.count
    assert dump(store) == before


def test_a_purge_whose_store_is_closed_halfway_tells_what_it_took(store: Store, ann: Actions, legacy: Queue) -> None:
    write(store, *[(layer.pack((n, 0, R)), b"") for n in range(300)])
    purged = ann.purge_attached("legacy", confirm="legacy", progress=lambda count: store.close() is None)
    assert (purged.count, len(purged.trash_ids), purged.finished) == (100, 1, False)
    assert isinstance(purged.failure, StoreError)
    with pytest.raises(StoreError):
        ann.purge_attached("legacy", confirm="legacy")


def test_a_purge_takes_no_more_than_was_there_when_it_began(
    store: Store, legacy: Queue, stranger: RecipeClient
) -> None:
    for n in range(150):
        stranger.push(b"old", n)

    def progress(count: int) -> bool:
        stranger.push(b"new", 1_000)
        stranger.push(b"new", -1)
        return True

    assert store.actions("ann").purge_attached("legacy", confirm="legacy", progress=progress).count == 150
    assert set(values(legacy)) == {b"new"}


def test_an_empty_queue_is_purged_in_no_act(store: Store, legacy: Queue) -> None:
    assert store.actions("ann").purge_attached("legacy", confirm="legacy", expect_depth=0).count == 0
    assert store.audit.entries().entries == ()


# Cost


def test_looking_and_taking_cost_the_same_at_any_depth(store: Store, legacy: Queue) -> None:
    def costs() -> list[int]:
        found = []
        for look in (
            lambda tr: legacy.peek_min(tr=tr),
            lambda tr: legacy.items(limit=5, tr=tr),
            lambda tr: legacy.status(tr=tr),
            lambda tr: legacy.find(item.id, tr=tr),
            lambda tr: legacy.push(b"x", priority=5, tr=tr),
            lambda tr: legacy.pop_max(tr=tr),
        ):

            def counted(tr, look=look) -> int:
                before = tr.reads
                look(tr)
                return tr.reads - before

            found.append(store.transact(counted))
        return found

    item = legacy.push(b"x", priority=1)
    few = costs()
    legacy.push_many([(b"x", n) for n in range(900)])
    assert costs() == few


def test_pops_are_executed_together_as_far_as_their_number_and_size_allow(
    store: Store, legacy: Queue, stranger: RecipeClient
) -> None:
    legacy.push_many([(b"x", n) for n in range(1_000)])
    legacy.push_many([(b"x", n) for n in range(1_000, 1_500)])

    def executed(*numbers: int) -> list[int]:
        requests = [PopRequest(legacy.id, n, "min") for n in numbers]
        batch = legacy.opened.batch(PopRequest)
        answers = store.transact(lambda tr: batch.execute(tr, batch.prepare(requests)))
        return [len(answer) for answer in answers]

    assert executed(400, 600, 1) == [400, 600]
    assert executed(1_000, 1) == [500]
