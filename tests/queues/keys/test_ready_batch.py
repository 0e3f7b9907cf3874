"""Many ready keys taken apart at once equal each taken apart by itself, of any program."""

import copy
import pickle
from collections import Counter
from dataclasses import fields, replace
from typing import Any

import pytest
from fdb import tuple as layer
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queues.keys.ready_batch import Places, columns_of, pack_ids, pack_numbers, places
from queues.model import ids
from queues.model.bands import band_of
from queues.model.item import Item, ready_items

BEGIN = b"\x02pq\x00\x15\x01"
EDGES = {"int": (0, 5, 100), "float": (0.0, 0.5), "str": ("a", "m")}
ints = st.integers(-3, 300) | st.integers(-(1 << 70), 1 << 70)
priorities = {"int": ints, "float": st.floats(allow_nan=False, allow_infinity=False), "str": st.text(max_size=4)}
times = st.sampled_from([0x01A200FF00FF, 0x01A2FF010203, 0x01A200A21198, 0x01A201000000, (1 << 48) - 1])
minted = st.builds(
    lambda ms, rest: ms.to_bytes(6, "big") + rest,
    times,
    st.binary(min_size=14, max_size=14).filter(lambda b: 0 not in b),
)
foreign = st.binary(max_size=30) | st.binary(min_size=20, max_size=20)
counts = st.integers(1, 300) | st.integers(1 << 23, (1 << 23) + 5) | st.integers(0, 1 << 66)


@st.composite
def runs(draw: st.DrawFn) -> tuple[str | None, list[tuple[Any, ...]]]:
    kind = draw(st.sampled_from(["int", "float", "str", None]))
    rand = draw(st.sampled_from([minted, minted, minted | foreign]))
    row = st.tuples(counts, rand) if kind is None else st.tuples(priorities[kind], counts, rand)
    return kind, draw(st.lists(row, min_size=1, max_size=30, unique_by=layer.pack))


@settings(deadline=None)  # a busy machine takes its time
@given(runs())
@example(("int", [(5, 7, b"\x01\xa2\x00\xff" + b"\x01" * 16), (5, 300, b"\x01\xa2\x01\xff" + b"\x01" * 16)]))
@example(("int", [(5, 0x17, b"\x01" * 20), (5, 0x170101, b"\x01" * 20), (5, 0x1701, b"\x15\x01" * 10)]))
@example((None, [(1, b"\x01" * 20), (1, b"\x15\x01" + b"\x01" * 20)]))
@example(("str", [("\x00", 1, b"\x01" * 20), ("", 1, b"\x01" * 20)]))
def test_says_what_the_tuple_layer_says(run: tuple[str | None, list[tuple[Any, ...]]]) -> None:
    kind, rows = run
    known = None if kind is None else Places(EDGES[kind])
    keys = [BEGIN + layer.pack(row) for row in rows]
    columns = columns_of(keys, len(BEGIN), known)
    expected = [None if kind is None else row[0] for row in rows]
    assert list(columns.priorities) == expected
    assert [layer.unpack(tail) for tail in columns.tails] == [row[-2:] for row in rows]
    assert list(columns.packed_ids) == [layer.pack((row[-1],)) for row in rows]
    assert columns.bands == Counter(band_of(one, EDGES[kind]) for one in expected if kind is not None)
    told = [ids.minted_ms(row[-1]) for row in rows if len(row[-1]) == ids.SIZE]
    assert columns.pushed == Counter(ms for ms in told if ms <= ids.LAST_MS)
    items = ready_items([b"v"] * len(rows), zip(columns.priorities, columns.tails, [0] * len(rows), strict=True), None)
    assert [(item.priority, item.count, item.id) for item in items] == [
        (priority, row[-2], row[-1].hex()) for priority, row in zip(expected, rows, strict=True)
    ]


@settings(deadline=None)
@given(st.sampled_from([0, 1, 200, 255, 256, 65_530, (1 << 56) - 3, 1 << 56]), st.integers(1, 20))
def test_packs_numbers_and_ids_as_the_tuple_layer_does(first: int, n: int) -> None:
    assert pack_numbers(range(first, first + n)) == [layer.pack((number,)) for number in range(first, first + n)]
    for these in ([b"a\x00\x00\xff", b"", b"\x00" * 20], [b"x" * 20] * n):
        assert pack_ids(these) == [layer.pack((one,)) for one in these]


def test_places_tell_priorities_apart_that_are_equal() -> None:
    edges = (0, 1)
    assert places("int", edges).pack([1])[0] == [layer.pack((1,))]
    assert places("float", (0.0, 1.0)).pack([1.0])[0] == [layer.pack((1.0,))]
    zeros = places("float", (0.5,))
    assert str(zeros.unpack([layer.pack((-0.0,))])) == "([-0.0], {0: 1})"
    assert zeros.pack([0.0])[0] == [layer.pack((0.0,))]


def test_places_forget_and_learn_again() -> None:
    known = Places((0, 5_000))
    for begin in range(0, 20_000, 1_000):
        packed, bands = known.pack(range(begin, begin + 1_000))
        assert packed == [layer.pack((number,)) for number in range(begin, begin + 1_000)]
        assert known.unpack(packed) == (list(range(begin, begin + 1_000)), bands)
    assert len(pickle.dumps(known)) < 200_000


@pytest.mark.parametrize("read", [False, True])
def test_an_item_is_like_one_whose_fields_were_given(read: bool) -> None:
    rand = b"\x01\xa2\x00\xa2\x11\x98" + b"r" * 14
    (item,) = ready_items([b"value"], [(3, layer.pack((70_000, rand)), 2)], None)
    if read:
        assert [getattr(item, field.name) for field in fields(item)]
    given_ = Item(
        id=rand.hex(), priority=3, count=70_000, raw=b"value", pushed_at=ids.minted_at(rand), size=5, attempts=2
    )
    assert item == given_
    assert hash(item) == hash(given_)
    assert repr(item) == repr(given_)
    (again,) = ready_items([b"value"], [(3, layer.pack((70_000, rand)), 2)], None)
    assert pickle.loads(pickle.dumps(again)) == copy.copy(again) == copy.deepcopy(again) == given_
    assert replace(again, priority=4).priority == 4
    assert not again.truncated
    with pytest.raises(AttributeError):
        again.nothing  # noqa: B018
    with pytest.raises(AttributeError):
        again.raw = b""  # type: ignore[misc]
