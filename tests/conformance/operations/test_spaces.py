"""Spaces hold the application's keys beside the queues: same transactions, own fence."""

import functools
import math
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from queues import Queue, Store, Transaction, open_store
from queues.errors import BadKey, BadLimit, BadName, BadValue, KeyTooLarge, ValueTooLarge
from queues.kv.port import MAX_KEY_SIZE
from tests.conftest import Clock, store_url
from tests.full_count import check_full_count


def test_a_key_is_set_read_replaced_and_cleared(store: Store) -> None:
    space = store.space("app")
    assert space.get(("run", 1)) is None
    space.set(("run", 1), b"first")
    space.set(("run", 1), b"second")
    assert space.get(("run", 1)) == b"second"
    space.clear(("run", 1))
    space.clear(("run", 1))
    assert space.get(("run", 1)) is None


def test_one_element_is_the_key_of_it_alone(store: Store) -> None:
    space = store.space("app")
    space.set(b"raw", b"1")
    space.set("text", b"2")
    assert (space.get((b"raw",)), space.get(("text",))) == (b"1", b"2")
    assert space.get_range() == [((b"raw",), b"1"), (("text",), b"2")]


KEYS = [(None,), (b"",), (b"\x00\xff",), (b"a", 1), ("",), ("a", -5), ("a", 2**70), ("é\x00",), (-1,), (1.5,), (True,)]
KEYS += [("nested", ("x", None, (1,))), ((), ()), (2**2_039,)]
NESTED: Any = functools.reduce(lambda inner, _: (inner,), range(20_000), ())


def test_keys_come_back_as_they_were_set_and_in_order(store: Store) -> None:
    space = store.space("app")
    for n, key in enumerate(KEYS):
        space.set(key, b"%d" % n)
    pairs = space.get_range()
    assert dict(pairs) == {key: b"%d" % n for n, key in enumerate(KEYS)}
    assert space.get_range(reverse=True) == pairs[::-1]
    paged: list[tuple[object, bytes]] = []
    while page := space.get_range((*paged[-1][0], None) if paged else None, limit=5):
        paged += page
    assert paged == pairs


def test_pages_go_on_behind_the_longest_key(store: Store) -> None:
    space, size = store.space("app"), MAX_KEY_SIZE
    with pytest.raises(KeyTooLarge):
        space.set("k" * size, b"")
    while True:
        size -= 1
        with suppress(KeyTooLarge):
            space.set("k" * size, b"")
            break
    space.set("last", b"")
    (last, _), *_ = space.get_range(limit=1)
    assert last == ("k" * size,)
    assert [key for key, _ in space.get_range((*last, None))] == [("last",)]
    assert [key for key, _ in space.get_range(end=(*last, None))] == [last]
    assert space.get("k" * size) == b""


def test_a_range_has_bounds_and_a_prefix(store: Store) -> None:
    space = store.space("app")
    for key in [("a",), ("a", 1), ("a", 2), ("a", 3), ("ab", 1), ("b",)]:
        space.set(key, b"")
    keys = lambda *bounds, **how: [key for key, _ in space.get_range(*bounds, **how)]  # noqa: E731
    assert keys(prefix=("a",)) == [("a", 1), ("a", 2), ("a", 3)]
    assert keys(("a", 2), ("ab", 1)) == [("a", 2), ("a", 3)]
    assert keys(("a", 2), prefix=("a",), limit=1) == [("a", 2)]
    assert keys(None, ("a", 3), limit=1, reverse=True) == [("a", 2)]
    assert keys("b", "a") == []


def test_spaces_do_not_see_each_other_and_no_key_leaves_its_space(store: Store, jobs: Queue) -> None:
    jobs.push(b"1", priority=1)
    app, other, longer = store.space("app"), store.space("other"), store.space("app2")
    app.set("x", b"of app")
    longer.set("x", b"of app2")
    for key in KEYS:
        other.set(key, b"")
        other.clear(key)
    assert app.get_range() == [(("x",), b"of app")]
    assert longer.get_range() == [(("x",), b"of app2")]
    assert other.get_range() == []
    assert check_full_count(store, jobs) == 1
    assert [finding for finding in store.doctor.examine().findings if finding.kind != "slot"] == []


def test_a_result_and_an_acknowledgement_are_one_transaction(store: Store) -> None:
    jobs, done = store.create_queue("jobs"), store.space("done")
    item = jobs.push(b"1", priority=1)

    def finish(tr: Transaction) -> None:
        jobs.ack(lease, must_hold=True, tr=tr)
        done.set(item.id, b"result", tr=tr)
        assert done.get(item.id, tr=tr) == b"result"
        assert done.get_range(tr=tr) == [((item.id,), b"result")]
        if fails:
            raise RuntimeError("after both")

    lease, fails = jobs.lease(), True
    with pytest.raises(RuntimeError):
        store.transact(finish)
    assert (jobs.depth("leased"), done.get(item.id)) == (1, None)
    fails = False
    store.transact(finish)
    assert (jobs.depth("leased"), done.get(item.id)) == (0, b"result")


@pytest.mark.parametrize("name", ["", "x" * 101, "a b", "a\x00", "\u3164", "\ud800", 5, None])
def test_a_name_that_cannot_be_used_is_refused(store: Store, name: str) -> None:
    with pytest.raises(BadName):
        store.space(name)


@pytest.mark.parametrize(
    "key",
    [(), "\ud800", ("a", ("\ud800",)), 2**2040, -(2**2040), math.nan, ("a", (math.nan,)), ["a"], object(), NESTED],
    ids=range(10),
)
def test_a_key_that_cannot_be_packed_is_refused(store: Store, key: object) -> None:
    space = store.space("app")
    for act in (lambda: space.set(key, b""), lambda: space.get(key), lambda: space.clear(key)):
        with pytest.raises(BadKey):
            act()
    assert space.get_range() == []


def test_sizes_are_refused_before_anything_is_written(store: Store) -> None:
    space = store.space("x" * 100)

    def write(tr: Transaction) -> None:
        space.set("small", b"", tr=tr)
        for key, value, error in ((b"x" * 500, b"", KeyTooLarge), ("v", b"x" * 100_001, ValueTooLarge)):
            with pytest.raises(error, match="this one has"):
                space.set(key, value, tr=tr)
        with pytest.raises(BadValue):
            space.set("v", "text", tr=tr)

    store.transact(write)
    assert space.get_range() == [(("small",), b"")]
    space.set(b"k" * 300, b"x" * 100_000)
    assert len(space.get(b"k" * 300) or b"") == 100_000


@pytest.mark.parametrize("limit", [0, -1, 1_001, True, 1.5, "5"])
def test_a_limit_that_no_range_read_has_is_refused(store: Store, limit: int) -> None:
    with pytest.raises(BadLimit):
        store.space("app").get_range(limit=limit)


def test_the_doctor_counts_spaces_and_leaves_them(store: Store, clock: Clock) -> None:
    clock.now = time.time()  # by which the store's own client marks its slots
    for n in range(300):
        store.transact(lambda tr, n=n: store.space("app").set(n, b"", tr=tr))
        if n == 5:
            store.space("b").set(n, b"")
    before = store.space("app").get_range(limit=1_000)
    found = store.doctor.repair()
    assert (found.findings, found.mended, dict(found.spaces)) == ((), (), {"app": 300, "b": 1})
    assert store.space("app").get_range(limit=1_000) == before


def test_spaces_of_a_store_are_there_when_it_is_opened_again(tmp_path: Path, clock: Clock) -> None:
    url = store_url("embedded", tmp_path)
    with open_store(url, clock=clock) as store:
        store.space("app").set("x", b"kept")
    with open_store(url, clock=clock) as store:
        assert store.space("app").get("x") == b"kept"
