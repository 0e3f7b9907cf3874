"""Which transactions conflict in an attached queue, other programs included: transactions driven step by step."""

from typing import Any

import pytest
from fdb import tuple as layer

from queues import Actions, Queue, Store
from queues.errors import KeyTooLarge
from queues.operations import attached
from queues.operations.pop import PopRequest
from tests.interop.recipe_client import RecipeClient
from tests.step_by_step import begin, on_concurrent_engines

PREFIX = layer.pack(("legacy",))


pytestmark = on_concurrent_engines


@pytest.fixture
def legacy(store: Store) -> Queue:
    legacy = store.attach("legacy", prefix=PREFIX)
    legacy.push_many([(b"%d" % n, n) for n in range(10)])
    return legacy


@pytest.fixture
def stranger(store: Store) -> RecipeClient:
    return RecipeClient(store.context.kv, PREFIX)


def strict_pop(legacy: Queue, tr: Any, end: str = "min") -> bytes:
    ((item,),) = legacy.opened.batch(PopRequest).execute(
        tr, [PopRequest(legacy.id, 1, end, legacy.opened.context.clock.now_ms())]
    )
    return item.value


@pytest.mark.parametrize("priority", [5, 6])
def test_two_pushes_never_conflict(store: Store, legacy: Queue, priority: int) -> None:
    first, second = begin(store), begin(store)
    one = legacy.push(b"first", priority=5, tr=first)
    other = legacy.push(b"second", priority=priority, tr=second)
    second.commit()
    first.commit()
    assert legacy.depth() == 12
    assert one.count == other.count == 1  # the random part alone keeps equal ones apart
    assert {legacy.find(one.id), legacy.find(other.id)} == {one, other}


def test_our_push_and_a_strangers_never_conflict(store: Store, legacy: Queue, stranger: RecipeClient) -> None:
    ours, theirs = begin(store), begin(store)
    legacy.push(b"ours", priority=5, tr=ours)
    stranger.push_in(theirs, b"theirs", 5)
    theirs.commit()
    ours.commit()
    assert legacy.depth() == 12


@pytest.mark.parametrize("priority", [-1, 0, 5, 99])
@pytest.mark.parametrize("end", ["min", "max"])
def test_a_push_of_a_stranger_never_aborts_our_pop(
    store: Store, legacy: Queue, stranger: RecipeClient, end: str, priority: int
) -> None:
    tr = begin(store)
    taken = strict_pop(legacy, tr, end)
    stranger.push(b"meanwhile", priority)
    tr.commit()
    assert taken == (b"0" if end == "min" else b"9")
    assert legacy.depth() == 10


@pytest.mark.parametrize("priority", [0, 5])
def test_a_pop_never_aborts_our_push(store: Store, legacy: Queue, stranger: RecipeClient, priority: int) -> None:
    tr = begin(store)
    legacy.push(b"slow", priority=priority, tr=tr)
    legacy.pop_min()
    stranger.pop()
    stranger.pop(largest=True)
    tr.commit()
    assert legacy.depth() == 8


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_a_stranger_and_we_never_take_the_same_item(
    store: Store, legacy: Queue, stranger: RecipeClient, first: str
) -> None:
    ours, theirs = begin(store), begin(store)
    assert strict_pop(legacy, ours) == stranger.pop_in(theirs) == b"0"
    early, late = (ours, theirs) if first == "ours" else (theirs, ours)
    early.commit()
    late.refused()
    assert legacy.depth() == 9


def test_removing_an_item_conflicts_with_a_pop_of_it(store: Store, legacy: Queue, stranger: RecipeClient) -> None:
    head, last = legacy.peek_min(), legacy.peek_max()
    aborted, undisturbed = begin(store), begin(store)
    assert legacy.remove(head.id, tr=aborted) == head
    assert legacy.remove(last.id, tr=undisturbed) == last
    stranger.pop()
    stranger.push(b"new", 5)
    aborted.refused()
    undisturbed.commit()
    assert legacy.depth() == 9


def test_a_chunk_of_a_purge_loses_nothing_that_is_pushed_meanwhile(
    store: Store, legacy: Queue, stranger: RecipeClient
) -> None:
    tr = begin(store)
    chunk = attached.take_chunk(
        tr, legacy.opened, after=None, last=attached.last_place(tr.snapshot, legacy.opened), limit=100
    )
    stranger.push(b"between", 5)
    stranger.push(b"before", -1)
    tr.commit()
    assert [item.value for item in chunk.items] == [b"%d" % n for n in range(10)]
    assert [item.value for item in legacy.items().items] == [b"before", b"between"]


def test_a_chunk_of_a_purge_takes_nothing_that_another_caller_took(
    store: Store, legacy: Queue, stranger: RecipeClient
) -> None:
    tr = begin(store)
    attached.take_chunk(tr, legacy.opened, after=None, last=attached.last_place(tr.snapshot, legacy.opened), limit=100)
    assert stranger.pop(largest=True) == b"9"
    tr.refused()
    assert legacy.depth() == 9


def test_a_key_that_other_programs_put_there_meanwhile_aborts_what_is_put_back(
    store: Store, legacy: Queue, stranger: RecipeClient
) -> None:
    popped = store.actions("ann").pop("legacy")
    tr = begin(store)
    store.restore(popped.trash_id, tr=tr)
    key = PREFIX + popped.item.foreign.suffix
    store.transact(lambda tr: tr.set(key, b"another"))
    tr.refused()
    assert legacy.peek_min().value == b"another"


def test_keys_longer_than_ours_are_shown_and_popped_and_left_by_acts(store: Store, ann: Actions, legacy: Queue) -> None:
    long = PREFIX + layer.pack((-1, 0, b"x" * 5_000))
    tr = begin(store)
    tr.set_past_the_port(long, b"far")  # as a FoundationDB client may; the port takes 511 bytes
    tr.commit()
    first = legacy.peek_min()
    assert (first.value, first.priority, legacy.find(first.id)) == (b"far", -1, first)
    assert legacy.items(limit=1, after=legacy.items(limit=1).cursor).items[0].value == b"0"
    assert legacy.depth() == 11
    for act in (lambda: ann.pop("legacy"), lambda: ann.delete_item("legacy", first.id)):
        with pytest.raises(KeyTooLarge):
            act()
    purged = ann.purge_attached("legacy", confirm="legacy")
    assert (purged.count, purged.skipped, legacy.depth()) == (10, 1, 1)
    assert legacy.pop_min() == first
    assert legacy.depth() == 0


@pytest.mark.parametrize("verb", ["push", "pop"])
def test_detaching_aborts_what_began_before_it(store: Store, legacy: Queue, verb: str) -> None:
    tr = begin(store)
    if verb == "push":
        legacy.push(b"x", priority=1, tr=tr)
    else:
        strict_pop(legacy, tr)
    store.detach("legacy")
    tr.refused()
    assert store.attach("again", prefix=PREFIX).depth() == 10


@pytest.mark.parametrize("other", [PREFIX, PREFIX + b"\x15\x01", PREFIX[:3]])
def test_of_two_overlapping_prefixes_attached_at_once_one_wins(store: Store, other: bytes) -> None:
    first, second = begin(store), begin(store)
    store.attach("one", prefix=PREFIX, tr=first)
    store.attach("two", prefix=other, tr=second)
    first.commit()
    second.refused()
    assert list(store.directory()) == ["one"]
