"""What hot paths pack and unpack by themselves: FoundationDB's own bytes, for whatever a key may hold."""

from typing import Any

import pytest
from fdb import tuple as layer
from hypothesis import example, given
from hypothesis import strategies as st

from queues.model.tuples import pack, pack_ids, pack_number, pack_numbers, pack_priority, unpack_item, unpacked_row

numbers = st.integers() | st.integers(-(1 << 66), 1 << 66) | st.integers(-300, 300)
elements = st.binary(max_size=40) | st.text(max_size=20) | numbers | st.floats() | st.booleans() | st.none()
edges = [sign * ((1 << 8 * size) + off) for size in range(10) for off in (-1, 0, 1) for sign in (1, -1)]


@pytest.mark.parametrize("number", edges)
def test_packs_numbers_at_the_edges_of_their_sizes(number: int) -> None:
    assert pack(number) == pack_number(number) == pack_priority(number) == layer.pack((number,))


def test_tells_priorities_apart_that_are_equal() -> None:
    for priority in (0, 0.0, -0.0, 0, 5, 5.0, 5):
        assert pack_priority(priority) == layer.pack((priority,))


@given(st.lists(elements, max_size=4))
@example([b"\x00", b"\x00\xff", "\x00", "é", -0.0, 0.0, float("inf")])
def test_packs_the_tuple_layers_bytes(these: list[Any]) -> None:
    assert pack(*these) == layer.pack(tuple(these))


def test_refuses_what_the_tuple_layer_refuses() -> None:
    with pytest.raises(UnicodeEncodeError):
        pack("\ud800")
    with pytest.raises(Exception, match="Unsupported data type"):
        pack(object())


@given(st.integers(0, (1 << 64) - 2) | st.integers(0, 300), st.integers(0, 1 << 63), st.binary(min_size=1, max_size=20))
@example(0, 0, b"\x01" * 20)
@example(5, 7, b"\x00\xff\x00" * 6)
def test_reads_items_as_the_tuple_layer_does(priority: int, count: int, rand: bytes) -> None:
    for fifo in (True, False):
        packed = layer.pack((count, rand) if fifo else (priority, count, rand))
        read = unpack_item(packed, fifo=fifo)
        assert read == (None if fifo else priority, count, rand, layer.pack((rand,)))


@given(st.lists(elements, min_size=1, max_size=4), st.booleans())
def test_unpack_item_reads_tuples_of_items_alone(these: list[Any], fifo: bool) -> None:
    read = unpack_item(layer.pack(tuple(these)), fifo=fifo)
    assert read is None or list(read)[fifo:3] == these


@given(st.binary(max_size=40), st.booleans())
def test_leaves_damaged_bytes_to_the_tuple_layer(packed: bytes, fifo: bool) -> None:
    read = unpack_item(packed, fifo=fifo)
    if read is not None:
        assert layer.pack(read[1:3] if fifo else read[:3]) == packed or packed[0] == 0x14


@given(st.integers(-600, 600) | st.sampled_from(edges), st.integers(0, 700))
def test_packs_numbers_that_follow_each_other_as_the_tuple_layer_does(first: int, n: int) -> None:
    numbers = range(first, first + n)
    assert pack_numbers(numbers) == [layer.pack((number,)) for number in numbers]


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_packs_ids_together_as_the_tuple_layer_does(ids: list[bytes]) -> None:
    assert pack_ids(ids) == [layer.pack((one,)) for one in ids]


@given(elements, numbers | st.none(), elements)
@example(5, -1, b"\x01" * 20)
@example(0, 0, b"")
def test_reads_rows_of_both_kinds_as_the_tuple_layer_does(priority: Any, count: int | None, rand: Any) -> None:
    assert layer.pack(unpacked_row(layer.pack((priority, count, rand)))) == layer.pack((priority, count, rand))
    assert layer.pack(unpacked_row(layer.pack((count, rand)))) == layer.pack((None, count, rand))
