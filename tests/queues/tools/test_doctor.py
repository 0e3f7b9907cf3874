"""The doctor finds every kind of damage, mends it without touching an item, and takes no busy queue for damaged."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from queues import Queue, Store
from queues.errors import PrefixTaken
from queues.items.counters import total_bytes
from queues.items.stored_item import StoredItem, find, write_entries
from queues.keys.queue_keys import OUTSIDE, QueueKeys, place, ready_suffix
from queues.kv.commit_slots import Mark, SlotPool
from queues.model import range_in_steps
from queues.tools import count, doctor
from queues.tools.doctor import Examination
from tests import sweeps
from tests.conftest import Clock
from tests.full_count import check_full_count

Damage = Callable[[Store], None]


@pytest.fixture(autouse=True)
def today(clock: Clock) -> None:
    """Let the doctor's clock agree with the one by which the store's own client marks its slots."""
    clock.now = time.time()


@pytest.fixture
def jobs(store: Store) -> Queue:
    """A store with queues of all kinds, one deleted, one paused; returns a priority queue with 40 items."""
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"%d" % n, n % 12) for n in range(42)])
    jobs.pop_min(), jobs.pop_max()
    rand = bytes.fromhex(jobs.release(jobs.lease(seconds=60, end="max")).id)
    keys = store.context.keyspace.queue(jobs.id)
    RETURNED[:] = store.read(lambda tr: find(tr, keys, jobs.config, [rand]))
    store.create_queue("mail", kind="fifo").enqueue_many([b"a", b"b", b"c"])
    store.create_queue("names", priority_type="str").push(b"x", priority="m")
    store.create_queue("empty", priority_type="float").pause(reason="rest")
    store.create_queue("gone").push(b"old", priority=1)
    store.delete_queue("gone")
    return jobs


#: The item of the queue that was released.
RETURNED: list[StoredItem] = []
#: The ids of the queues, for damages that are done inside a transaction.
KNOWN: dict[str, int] = {}


@pytest.fixture(autouse=True)
def known(jobs: Queue, store: Store) -> None:
    """Remember the ids of the queues."""
    KNOWN.clear()
    KNOWN.update(store.directory())


def keys_of(store: Store, name: str = "jobs") -> QueueKeys:
    return store.context.keyspace.queue(KNOWN[name])


def write(store: Store, key: bytes, value: bytes | None) -> None:
    store.transact(lambda tr: tr.clear(key) if value is None else tr.set(key, value))


def dump(store: Store) -> list[tuple[bytes, bytes]]:
    pairs = store.read(lambda tr: tr.get_range(*store.context.keyspace.range, limit=100_000).wait())
    return [(key, value) for key, value in pairs if not key.startswith(store.context.keyspace.slots)]


def items(store: Store) -> dict[str, tuple[Any, ...]]:
    """Every item of every queue, by name."""
    return {
        name: tuple((i.id, i.priority, i.count, i.value) for i in store.queue(name).items(limit=1_000).items)
        for name in store.directory()
    }


def first_key(store: Store, name: str = "jobs") -> tuple[bytes, bytes]:
    """Return the suffix and id of a queue's first item."""
    item = store.queue(name).items(limit=1).items[0]
    rand = bytes.fromhex(item.id)
    return ready_suffix(item.priority, item.count, rand), rand


def counters_too_high(store: Store) -> None:
    store.transact(lambda tr: tr.add(keys_of(store).generation(1).counters.key("ready", "in"), 7))


def counters_too_low(store: Store) -> None:
    store.transact(lambda tr: tr.add(keys_of(store, "mail").generation(1).counters.key("ready", "out"), 2))


def counters_of_other_states(store: Store) -> None:
    def damage(tr):
        for state in ("delayed", "leased", "dead"):
            generation = 1 if state == "delayed" else OUTSIDE
            tr.add(keys_of(store).generation(generation).counters.key(state, "in"), 1)

    store.transact(damage)


def bands(store: Store) -> None:
    store.transact(lambda tr: tr.add(keys_of(store).generation(1).bands.key(3, "out"), 1))


def index_entry_gone(store: Store) -> None:
    for name in ("jobs", "mail"):
        write(store, keys_of(store, name).index("ready").key(first_key(store, name)[1]), None)


def index_entry_elsewhere(store: Store) -> None:
    _, rand = first_key(store)
    write(store, keys_of(store).index("ready").key(rand), place(1, ready_suffix(99, 1, rand), attempts=3))


def index_entry_of_nothing(store: Store) -> None:
    rand = b"\x01" * 20
    write(store, keys_of(store).index("ready").key(rand), place(1, ready_suffix(5, 1, rand)))


def item_taken_by_others(store: Store) -> None:
    """As the recipe's code does when it pops from our ready items: neither counters nor index change."""
    write(store, keys_of(store).generation(1).ready.at(first_key(store)[0]), None)


def item_pushed_by_others(store: Store) -> None:
    write(store, keys_of(store).generation(1).ready.at(ready_suffix(4, 17, b"r" * 20)), b"theirs")


def drift_flag(store: Store) -> None:
    write(store, keys_of(store).drift, total_bytes(77))


def order(store: Store) -> None:
    """As after a backup whose commits are numbered anew: what is there is numbered ahead of what is pushed."""
    rand = b"\x02" * 20
    suffix = ready_suffix(5, 2**90, rand)

    def push(tr):
        keys = keys_of(store)
        tr.set(keys.generation(1).ready.at(suffix), b"ahead")
        tr.set(keys.index("ready").key(rand), place(1, suffix))
        tr.add(keys.generation(1).counters.key("ready", "in"), 1)
        tr.add(keys.generation(1).bands.key(6, "in"), 1)
        tr.add(keys.change, 1)

    store.transact(push)


def name_of_nothing(store: Store) -> None:
    write(store, store.context.keyspace.names.key("ghost"), (12345).to_bytes(8, "big"))


def second_name(store: Store) -> None:
    write(store, store.context.keyspace.names.key("alias"), KNOWN["jobs"].to_bytes(8, "big"))


def name_gone(store: Store) -> None:
    write(store, store.context.keyspace.names.key("jobs"), None)


def config_gone(store: Store) -> None:
    write(store, store.context.keyspace.configs.key(KNOWN["jobs"]), None)


def config_of_a_fifo_queue_gone(store: Store) -> None:
    write(store, store.context.keyspace.configs.key(KNOWN["mail"]), None)


def counters_of_nothing(store: Store) -> None:
    lost = store.context.keyspace.queue(777).generation(1)
    write(store, lost.counters.key("ready", "in"), total_bytes(4))


def stale_slot(store: Store) -> None:
    key = SlotPool(store.context.keyspace.slots).take().key
    write(store, key, Mark(sequence=1, attempt=0, ms=0).encode())


def later_entry_gone(store: Store) -> None:
    write(store, RETURNED[0].index(keys_of(store)), None)


def later_entry_without_age(store: Store) -> None:
    write(store, RETURNED[0].by_age(keys_of(store))[0], None)


def later_entry_of_another_age(store: Store) -> None:
    write(store, *msgspec.structs.replace(RETURNED[0], header={"since": 7}).by_age(keys_of(store)))


def later_entry_of_nothing(store: Store) -> None:
    rand = b"\x01" * 20
    other = msgspec.structs.replace(RETURNED[0], rand=rand, suffix=ready_suffix(5, 1, rand))
    store.transact(lambda tr: write_entries(tr, keys_of(store), other))


#: Each damage, and the kinds of what is found.
DAMAGES: dict[Damage, set[str]] = {
    counters_too_high: {"counter"},
    counters_too_low: {"counter"},
    counters_of_other_states: {"counter"},
    bands: {"band"},
    index_entry_gone: {"index"},
    index_entry_elsewhere: {"index"},
    index_entry_of_nothing: {"index"},
    later_entry_gone: {"index"},
    later_entry_without_age: {"index"},
    later_entry_of_another_age: {"index"},
    later_entry_of_nothing: {"index"},
    item_taken_by_others: {"index", "counter", "band"},
    item_pushed_by_others: {"index", "counter", "band"},
    drift_flag: {"drift"},
    order: {"order"},
    name_of_nothing: {"name"},
    second_name: {"name"},
    name_gone: {"name"},
    config_gone: {"name", "orphan"},
    config_of_a_fifo_queue_gone: {"name", "orphan"},
    counters_of_nothing: {"orphan"},
    stale_slot: {"slot"},
}


def check(store: Store, found: Examination) -> None:
    """Assert that a repair left nothing wrong, by its own words and by an independent count."""
    assert found.findings == ()
    assert found.mended
    again = store.doctor.examine()
    assert (again.findings, again.mended, again.notes) == ((), (), ())
    for name in store.directory():
        check_full_count(store, store.queue(name))


def test_a_healthy_store_is_healthy_and_nothing_is_changed(store: Store) -> None:
    before = dump(store)
    for look in (store.doctor.examine, store.doctor.repair):
        found = look()
        assert found == Examination(findings=(), notes=(), mended=(), queues=4, items=44)
        assert dump(store) == before


@pytest.mark.parametrize("in_steps", [False, True], ids=["at-once", "in-steps"])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_found_and_mended(
    store: Store, damage: Damage, in_steps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_steps:
        monkeypatch.setattr(count, "_MAX_KEYS", 0)
        monkeypatch.setattr(range_in_steps.StepSize.__init__, "__defaults__", (9, 9, 500_000))
    damage(store)
    there = (
        items(store) if damage not in (name_gone, name_of_nothing, config_gone, config_of_a_fifo_queue_gone) else None
    )
    before = dump(store)
    found = store.doctor.examine()
    assert {finding.kind for finding in found.findings} == DAMAGES[damage]
    assert all(finding.mendable for finding in found.findings)
    assert dump(store) == before, "an examination changes nothing"
    check(store, store.doctor.repair())
    if there is not None:
        there.pop("alias", None)
        assert items(store) == there


def header_of_later_entry(store: Store) -> bytes:
    key = RETURNED[0].index(keys_of(store))
    write(store, key, store.read(lambda tr: tr.get(key).wait())[:12] + b"\x7f" + RETURNED[0].place[13:])
    return key


def later_entry_cut(store: Store) -> bytes:
    key = RETURNED[0].index(keys_of(store))
    write(store, key, b"")
    return key


def age_entry_damaged(store: Store) -> bytes:
    key, value = RETURNED[0].by_age(keys_of(store))
    write(store, key, value[:12] + b"\x7f" + value[13:])
    return key


def index_entry_cut(store: Store) -> bytes:
    key = keys_of(store).index("ready").key(first_key(store)[1])
    write(store, key, b"\x01")
    return key


def later_entry_of_nothing_damaged(store: Store) -> bytes:
    later_entry_of_nothing(store)
    key = msgspec.structs.replace(RETURNED[0], rand=b"\x01" * 20).index(keys_of(store))
    write(store, key, b"\xff\x00")
    return key


@pytest.mark.parametrize("in_steps", [False, True], ids=["at-once", "in-steps"])
@pytest.mark.parametrize(
    "damage",
    [header_of_later_entry, later_entry_cut, age_entry_damaged, index_entry_cut, later_entry_of_nothing_damaged],
    ids=lambda damage: damage.__name__,
)
def test_an_entry_of_the_index_that_cannot_be_read_is_written_anew(
    store: Store, damage: Damage, in_steps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_steps:
        monkeypatch.setattr(count, "_MAX_KEYS", 0)
        monkeypatch.setattr(range_in_steps.StepSize.__init__, "__defaults__", (9, 9, 500_000))
    there = items(store)
    damage(store)
    before = dump(store)
    found = store.doctor.examine()
    assert {(finding.kind, finding.queue, finding.mendable) for finding in found.findings} == {("index", "jobs", True)}
    assert dump(store) == before
    check(store, store.doctor.repair())
    assert items(store) == there
    assert store.queue("jobs").pop_max().id == RETURNED[0].id


def test_an_error_in_one_queue_keeps_the_doctor_from_no_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    count_queue = doctor.count_queue

    def fail(*args: Any) -> Any:
        if args[-1].name == "mail":
            raise LookupError
        return count_queue(*args)

    monkeypatch.setattr(doctor, "count_queue", fail)
    drift_flag(store)
    found = store.doctor.examine()
    assert {(finding.kind, finding.queue) for finding in found.findings} == {("record", "mail"), ("drift", "jobs")}
    assert "cannot be read" in next(finding.says for finding in found.findings if finding.queue == "mail")


def test_repair_heals_all_damages_at_once(store: Store) -> None:
    for damage in DAMAGES:
        if damage not in (config_gone, config_of_a_fifo_queue_gone, name_gone):
            damage(store)
    check(store, store.doctor.repair())


def test_a_queue_that_lost_its_config_keeps_its_name_and_items(store: Store) -> None:
    before = items(store)
    config_gone(store)
    config_of_a_fifo_queue_gone(store)
    check(store, store.doctor.repair())
    assert items(store) == before
    assert store.queue("mail").kind == "fifo"
    assert store.queue("mail").dequeue().value == b"a"
    jobs = store.queue("jobs")
    jobs.push(b"new", priority=3)
    assert [item.value for item in jobs.items(limit=100).items if item.priority == 3][-1] == b"new"


def test_a_queue_that_lost_both_is_found_under_a_new_name(store: Store) -> None:
    before = items(store)["names"]
    write(store, store.context.keyspace.configs.key(KNOWN["names"]), None)
    write(store, store.context.keyspace.names.key("names"), None)
    found = store.doctor.examine()
    assert [(finding.kind, finding.mendable) for finding in found.findings] == [("orphan", True)]
    check(store, store.doctor.repair())
    recovered = store.queue(f"recovered-{KNOWN['names']:x}")
    assert (recovered.kind, recovered.priority_type) == ("priority", "str")
    assert items(store)[recovered.name] == before


@pytest.mark.parametrize("named", [True, False])
def test_what_was_purged_before_a_queue_lost_its_record_stays_in_the_trash(store: Store, *, named: bool) -> None:
    """Otherwise they are ready again until the trash is cleared, and an undo counts them twice."""
    ann = store.actions("ann")
    (purged,) = ann.purge("jobs", confirm="jobs").trash_ids
    store.queue("jobs").push(b"new", priority=3)
    config_gone(store)
    if not named:
        write(store, store.context.keyspace.names.key("jobs"), None)
    check(store, store.doctor.repair())
    jobs = store.queue("jobs" if named else f"recovered-{KNOWN['jobs']:x}")
    assert [item.value for item in jobs.items().items] == [b"new"]
    ann.undo(purged)
    assert check_full_count(store, jobs) == 41


def test_a_queue_that_lost_its_record_after_a_purge_is_empty(store: Store) -> None:
    ann = store.actions("ann")
    (purged,) = ann.purge("jobs", confirm="jobs").trash_ids
    config_gone(store)
    check(store, store.doctor.repair())
    jobs = store.queue("jobs")
    assert (jobs.priority_type, check_full_count(store, jobs)) == ("int", 0)
    jobs.push(b"new", priority=3)
    ann.undo(purged)
    assert check_full_count(store, jobs) == 41
    sweeps.merge_generations(store)
    assert check_full_count(store, jobs) == 41


def test_keys_with_delayed_items_are_never_cleared(store: Store) -> None:
    """What the queue was cannot be told from them: they are left alone, and told."""
    lost = store.context.keyspace.queue(777).generation(1)
    write(store, lost.delayed.at(b"\x15\x01\x01r\x00"), b"record")
    before = dump(store)
    found = store.doctor.repair()
    assert [finding.kind for finding in found.findings] == ["orphan"]
    assert dump(store) == before


def test_a_queue_whose_name_another_one_took_gets_one_of_its_own(store: Store) -> None:
    other = store.create_queue("other")
    write(store, store.context.keyspace.names.key("jobs"), other.id.to_bytes(8, "big"))
    store.doctor.repair()
    assert store.queue("jobs").id == KNOWN["jobs"]
    assert store.queue("other").id == other.id
    assert store.doctor.examine().healthy


def test_pushes_sort_behind_what_is_there_after_the_order_was_mended(store: Store) -> None:
    order(store)
    store.doctor.repair()
    store.queue("jobs").push(b"new", priority=5)
    assert [item.value for item in store.queue("jobs").items(limit=100).items if item.priority == 5][-2:] == [
        b"ahead",
        b"new",
    ]


def test_the_index_keeps_how_often_an_item_was_tried(store: Store) -> None:
    index_entry_elsewhere(store)
    store.doctor.repair()
    first = store.queue("jobs").peek_min()
    assert (first.attempts, first.ready_at) == (3, first.pushed_at)


def test_what_cannot_be_mended_is_left_and_said(store: Store) -> None:
    keys = keys_of(store)
    suffix, _ = first_key(store)
    write(store, keys.generation(1).ready.at(b"\x15\x01"), b"no item of the recipe")
    write(store, store.context.keyspace.configs.key(4711), b"\x09 of a later release")
    config = store.queue("names").config
    write(store, store.context.keyspace.configs.key(config.id), replace(config, priority_type="int").encode())
    found = store.doctor.repair()
    assert not found.healthy
    assert {finding.kind for finding in found.findings} == {"items", "record"}
    assert store.read(lambda tr: tr.get(keys.generation(1).ready.at(suffix)).wait()) is not None


@pytest.mark.parametrize("state", ["delayed", "leased", "dead"])
def test_a_record_of_an_item_that_cannot_be_read_is_told_and_left(store: Store, state: str) -> None:
    queue = store.create_queue("damaged")
    queue.configure(max_attempts=1)
    queue.push_many([(b"x", 2**70)] * 4 + [(b"y", 2**70, 60.0)] * 2)
    for lease in queue.lease_many(2, seconds=60):
        queue.release(lease)
    queue.lease_many(2, seconds=60)
    assert store.doctor.examine().healthy
    keys = store.context.keyspace.queue(queue.id)
    within = {"delayed": keys.generation(1).delayed.all, "leased": keys.leases.all, "dead": keys.dead.all}[state]
    key = store.read(lambda tr: tr.get_key(*within).wait())
    write(store, key, b"\x09 of a later release")
    for found in (store.doctor.examine(), store.doctor.repair()):
        (finding,) = found.findings
        assert (finding.kind, finding.queue, finding.mendable) == ("record", "damaged", False)
        assert finding.says.startswith(f"1 item is {state} with a record that cannot be read")
    assert store.read(lambda tr: tr.get(key).wait()) == b"\x09 of a later release"


@pytest.mark.parametrize("record", [b"\x09 of a later release", b"\x01\x00\x00\x02[]", b""])
def test_a_queue_whose_record_cannot_be_read_keeps_its_name(store: Store, record: bytes) -> None:
    before, config = store.directory(), store.queue("jobs").config
    write(store, store.context.keyspace.configs.key(config.id), record)
    assert [finding.kind for finding in store.doctor.examine().findings] == ["record"]
    found = store.doctor.repair()
    assert [(finding.kind, finding.queue) for finding in found.findings] == [("record", "jobs")]
    assert found.mended == ()
    assert store.directory() == before
    write(store, store.context.keyspace.configs.key(config.id), config.encode())
    check_full_count(store, store.queue("jobs"))


def test_a_busy_queue_that_fits_is_counted_at_one_version(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    busy(store, monkeypatch)
    found = store.doctor.examine()
    assert (found.findings, found.notes) == ((), ())


def test_a_large_queue_that_keeps_changing_is_told_as_that(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count, "_MAX_KEYS", 5)
    busy(store, monkeypatch)
    for look in (store.doctor.examine, store.doctor.repair):
        found = look()
        assert found.findings == ()
        assert [note for note in found.notes if note.startswith("jobs changed while it was counted")] == [*found.notes]
        assert len(found.notes) == 1
    monkeypatch.undo()
    check_full_count(store, store.queue("jobs"))


def busy(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Push and pop before every read in the background."""
    read, jobs = store.context.kv.read, store.queue("jobs")

    def meanwhile(fn, *, background=False):
        if background:
            jobs.push(b"busy", priority=3)
            jobs.pop_max()
        return read(fn, background=background)

    monkeypatch.setattr(store.context.kv, "read", meanwhile)


def test_counters_that_changed_since_the_count_are_counted_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    counters_too_high(store)
    transact, jobs, pushed = store.context.kv.transact, store.queue("jobs"), iter(range(3))

    def meanwhile(fn, *, background=False):
        if background and next(pushed, None) is not None:
            transact(lambda tr: jobs.push(b"meanwhile", priority=1, tr=tr))
        return transact(fn, background=background)

    monkeypatch.setattr(store.context.kv, "transact", meanwhile)
    found = store.doctor.repair()
    monkeypatch.undo()
    check(store, found)
    assert store.queue("jobs").depth() == 43


def counters_left_behind(store: Store) -> None:
    store.attach("theirs", prefix=("their", "subspace")).push(b"x", priority=1)
    store.detach("theirs")


@pytest.mark.parametrize("damage", [counters_too_high, counters_left_behind])
def test_two_doctors_do_not_mend_twice(
    store: Store, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Store], None]
) -> None:
    damage(store)
    transact, others = store.context.kv.transact, []

    def other_first(fn, *, background=False):
        if background:
            monkeypatch.undo()
            others.append(store.doctor.repair())
        return transact(fn, background=background)

    monkeypatch.setattr(store.context.kv, "transact", other_first)
    found = store.doctor.repair()
    assert (len(others), found.findings, found.mended) == (1, (), ())
    assert others[0].mended
    check_full_count(store, store.queue("jobs"))


def test_what_a_lost_queue_had_attached_is_attached_anew(store: Store) -> None:
    for name in ("theirs", "others"):
        store.attach(name, prefix=("their", name)).push(b"x", priority=1)
    write(store, store.context.keyspace.configs.key(store.queue("theirs").id), None)
    found = store.doctor.repair()
    assert (found.findings, len(found.mended)) == ((), 2)
    assert store.attach("again", prefix=("their", "theirs")).pop_min().raw == b"x"
    with pytest.raises(PrefixTaken):
        store.attach("twice", prefix=("their", "others"))


def test_attached_and_detached_queues_are_no_damage(store: Store) -> None:
    store.attach("theirs", prefix=("their", "subspace")).push(b"x", priority=1)
    found = store.doctor.examine()
    assert found.healthy
    assert [note.partition(" is ")[0] for note in found.notes] == ["theirs"]
    store.detach("theirs")
    found = store.doctor.examine()
    assert (found.healthy, len(found.notes)) == (True, 1)
    check(store, store.doctor.repair())
